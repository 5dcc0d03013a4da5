//! `getattr` and `setattr`: the attributes of an item of any type.

use super::tree_words::{bkey_of, bkey_text};
use super::{Request, action_of, limits, overflow_of};
use crate::arguments::{expiration_of, remaining_seconds};
use crate::sticky;
use crate::tally::Op;
use base::UnixMs;
use command::{Ctx, Stop};
use engine::{Entry, Key, Type};
use proto::memcached::arcus::grammar::Action;
use proto::memcached::arcus::tree_grammar::parse_bkey;
use proto::memcached::parse_signed;
use types::TypeError;
use types::attributed::{self, Attributes, Bkey, Tree};
use types::generic;
use types::string::Expiration;

const NOT_FOUND: &str = "NOT_FOUND";
const BAD_VALUE: &str = "ATTR_ERROR bad value";
const NO_SUCH_NAME: &str = "ATTR_ERROR not found";

/// An attribute that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Type,
    Flags,
    ExpireTime,
    Count,
    MaxCount,
    OverflowAction,
    Readable,
    MaxBkeyRange,
    MinBkey,
    MaxBkey,
    Trimmed,
}

/// Attributes of an item that is no collection.
const OF_ANY: [Name; 3] = [Name::Type, Name::Flags, Name::ExpireTime];
/// Those that collections have besides.
const OF_COLLECTIONS: [Name; 4] = [Name::Count, Name::MaxCount, Name::OverflowAction, Name::Readable];
/// Those that b+trees have besides.
const OF_TREES: [Name; 4] = [Name::MaxBkeyRange, Name::MinBkey, Name::MaxBkey, Name::Trimmed];

impl Name {
    fn text(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Flags => "flags",
            Self::ExpireTime => "expiretime",
            Self::Count => "count",
            Self::MaxCount => "maxcount",
            Self::OverflowAction => "overflowaction",
            Self::Readable => "readable",
            Self::MaxBkeyRange => "maxbkeyrange",
            Self::MinBkey => "minbkey",
            Self::MaxBkey => "maxbkey",
            Self::Trimmed => "trimmed",
        }
    }

    /// The attribute with this name, if an item has it.
    fn parse(word: &[u8], kind: Type) -> Option<Self> {
        names(kind).find(|name| name.text().as_bytes() == word)
    }
}

fn names(kind: Type) -> impl Iterator<Item = Name> {
    let others = if kind == Type::String { &[] } else { &OF_COLLECTIONS[..] };
    let of_trees = if kind == Type::Btree { &OF_TREES[..] } else { &[] };
    OF_ANY.into_iter().chain(others.iter().copied()).chain(of_trees.iter().copied())
}

/// An item, as its attributes show it.
struct Item {
    kind: Type,
    flags: u32,
    expire_at: Option<UnixMs>,
    is_sticky: bool,
    len: u64,
    attributes: Attributes,
    /// The smallest and the largest key of a b+tree with elements.
    ends: Option<(Bkey, Bkey)>,
    /// The most elements of one that names no number.
    allowed: u32,
}

impl Item {
    fn of(entry: &Entry<'_>, now: UnixMs, allowed: u32) -> Result<Self, TypeError> {
        let (kind, expire_at, is_sticky) = (entry.kind, entry.expire_at, entry.is_sticky());
        if kind == Type::String {
            let flags = entry.fields.get().flags;
            let attributes = Attributes::default_of(kind);
            return Ok(Self { kind, flags, expire_at, is_sticky, len: 0, attributes, ends: None, allowed });
        }
        let (attributes, flags) = Attributes::of_entry(entry);
        let ends = match kind {
            Type::Btree => Tree::of_entry(entry).ok().and_then(|tree| tree.view.min().zip(tree.view.max())),
            _ => None,
        };
        Ok(Self { kind, flags, expire_at, is_sticky, len: attributed::len(entry, now)?, attributes, ends, allowed })
    }

    fn read(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<Option<Self>, Stop> {
        let now = ctx.now();
        let host = ctx.host;
        let of = |entry: Entry<'_>| Self::of(&entry, now, limits::allowed(host, entry.kind)());
        Ok(ctx.ks.peek_value(key)?.map(of).transpose()?)
    }

    fn end(&self, end: Option<Bkey>) -> String {
        end.map_or_else(|| "-1".to_owned(), |bkey| bkey_text(&bkey))
    }

    fn value(&self, name: Name, now: UnixMs) -> String {
        match name {
            Name::Type => type_name(self.kind).to_owned(),
            Name::Flags => self.flags.to_string(),
            Name::ExpireTime if self.is_sticky => sticky::SECONDS.to_string(),
            Name::ExpireTime => self.expire_at.map_or(0, |at| remaining_seconds(at, now)).to_string(),
            Name::Count => self.len.to_string(),
            Name::MaxCount => self.attributes.count_max(|| self.allowed).to_string(),
            Name::OverflowAction => action_of(self.attributes.overflow).name().to_owned(),
            Name::MaxBkeyRange => self.attributes.range.map_or_else(|| "0".to_owned(), |range| bkey_text(&range)),
            Name::MinBkey => self.end(self.ends.map(|ends| ends.0)),
            Name::MaxBkey => self.end(self.ends.map(|ends| ends.1)),
            Name::Trimmed => u8::from(self.attributes.is_trimmed).to_string(),
            Name::Readable => (if self.attributes.is_readable { "on" } else { "off" }).to_owned(),
        }
    }
}

/// The distance that `maxbkeyrange` sets; 0 for any. `None` when it does not fit the keys that are there.
fn range_of(value: &[u8], item: &Item) -> Option<Option<Bkey>> {
    let range = parse_bkey(value).map(|bkey| bkey_of(&bkey))?;
    if range == Bkey::Number(0) {
        return Some(None);
    }
    match &item.ends {
        Some((min, max)) if !range.is_like(min) || max.minus(min).is_beyond(&range) => None,
        _ => Some(Some(range)),
    }
}

/// ARCUS' names; types that it does not know have those of Redis.
fn type_name(kind: Type) -> &'static str {
    match kind {
        Type::String => "kv",
        Type::Hash => "map",
        Type::Btree => "b+tree",
        kind => kind.name(),
    }
}

/// `getattr key [names]`
pub fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::GetAttr) else { return Ok(()) };
    // A tree has every name.
    if request.words.iter().any(|word| Name::parse(word, Type::Btree).is_none()) {
        return request.answer(ctx, NO_SUCH_NAME);
    }
    let Some(item) = Item::read(ctx, &request.key)? else { return request.answer(ctx, NOT_FOUND) };
    let kind = item.kind;
    let asked: Option<Vec<Name>> = match request.words.is_empty() {
        true => Some(names(kind).collect()),
        false => request.words.iter().map(|word| Name::parse(word, kind)).collect(),
    };
    let Some(asked) = asked else { return request.answer(ctx, NO_SUCH_NAME) };
    let now = ctx.now();
    for name in asked {
        ctx.reply.text_line(&format!("ATTR {}={}", name.text(), item.value(name, now)));
    }
    request.answer(ctx, "END")
}

/// `setattr key name=value ...`
pub fn set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(request) = Request::of(ctx, Op::SetAttr) else { return Ok(()) };
    let Some(item) = Item::read(ctx, &request.key)? else { return request.answer(ctx, NOT_FOUND) };
    let (mut attributes, mut expiration) = (item.attributes, None);
    for word in &request.words {
        let at = word.iter().position(|byte| *byte == b'=').unwrap_or(word.len());
        let (name, value) = (word.get(..at).unwrap_or_default(), word.get(at.saturating_add(1)..).unwrap_or_default());
        let change = Change::parse(name, value, &item, ctx.now());
        match change {
            Err(status) => return request.answer(ctx, status),
            Ok(Change::Expiration(at)) => expiration = Some(at),
            Ok(Change::Attributes(change)) => change.apply(&mut attributes),
        }
    }
    if attributes != item.attributes {
        attributed::set_attributes(ctx.ks, &request.key, &attributes)?;
    }
    match expiration {
        Some(Expiration::At(at)) => {
            generic::expire_at(ctx.ks, &request.key, at, Default::default())?;
        }
        Some(Expiration::Never | Expiration::Keep) => {
            generic::persist(ctx.ks, &request.key)?;
        }
        None => {}
    }
    request.answer(ctx, "OK")
}

/// A change that `setattr` makes.
enum Change {
    Expiration(Expiration),
    Attributes(Attribute),
}

/// An attribute of a collection and its value.
enum Attribute {
    MaxCount(Option<u32>),
    Overflow(attributed::Overflow),
    Readable,
    Range(Option<Bkey>),
}

impl Attribute {
    fn apply(&self, attributes: &mut Attributes) {
        match *self {
            Self::MaxCount(count) => attributes.max_count = count,
            Self::Readable => attributes.is_readable = true,
            Self::Range(range) => attributes.range = range,
            Self::Overflow(overflow) => {
                attributes.overflow = overflow;
                attributes.is_trimmed = false;
            }
        }
    }
}

impl Change {
    fn parse(name: &[u8], value: &[u8], item: &Item, now: UnixMs) -> Result<Self, &'static str> {
        let number = || parse_signed(value).filter(|number| i32::try_from(*number).is_ok()).ok_or(BAD_VALUE);
        let change = match Name::parse(name, item.kind).ok_or(NO_SUCH_NAME)? {
            // Nothing becomes sticky, or ceases to be.
            Name::ExpireTime if (number()? == sticky::SECONDS) != item.is_sticky => return Err(BAD_VALUE),
            Name::ExpireTime if item.is_sticky => return Ok(Self::Expiration(Expiration::Never)),
            Name::ExpireTime => return Ok(Self::Expiration(expiration_of(number()?, now))),
            Name::MaxCount => {
                let count = limits::count_max_of(number()?, || item.allowed);
                if u64::from(count.unwrap_or(item.allowed)) < item.len {
                    return Err(BAD_VALUE);
                }
                Attribute::MaxCount(count)
            }
            Name::OverflowAction => {
                let overflow = Action::parse(value).map(overflow_of).filter(|overflow| overflow.fits(item.kind));
                Attribute::Overflow(overflow.ok_or(BAD_VALUE)?)
            }
            Name::Readable if value == b"on" => Attribute::Readable,
            Name::Readable => return Err(BAD_VALUE),
            Name::MaxBkeyRange => Attribute::Range(range_of(value, item).ok_or(BAD_VALUE)?),
            Name::Type | Name::Flags | Name::Count | Name::MinBkey | Name::MaxBkey | Name::Trimmed => {
                return Err(NO_SUCH_NAME);
            }
        };
        Ok(Self::Attributes(change))
    }
}
