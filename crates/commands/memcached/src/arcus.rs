//! The collections of ARCUS: `lop`, `sop`, `mop`, `bop`, their attributes, and pipes.
//!
//! The parser has checked each request and put its words in one order ([`proto::memcached::arcus`]). A handler reads
//! them again, calls an operation of [`types::attributed`], and answers in the words of ARCUS.
//! docs/protocol/arcus.md is the page about it.

mod attributes;
mod cluster;
pub mod command_lines;
pub mod config;
mod dump;
mod help;
mod limits;
mod list;
pub mod long_queries;
mod map;
mod pipe;
pub mod prefix;
pub mod rows;
mod scan;
mod set;
mod stamps;
mod tree;
mod tree_many;
mod tree_words;

pub use cluster::for_administrators;

use crate::arguments::expiration_of;
use crate::details;
use crate::key_prefix::has_good_prefix;
use crate::sticky;
use crate::tally::{self, Op, Outcome};
use command::{Args, Ctx, Stop};
use engine::{Key, Type};
use proto::memcached::arcus::Family;
use proto::memcached::arcus::grammar::{Action, Create, Removal, Tail};
use types::attributed::{self, Added, Attributes, New, Overflow, Taken};
use types::string::Expiration;

/// Where the words of the line begin that follow the key.
const WORDS: usize = 4;

/// A request whose words were checked cannot be read. No client can bring this about.
const UNREADABLE_REQUEST: Stop = Stop::error("SERVER_ERROR a checked request cannot be read: a bug of this server");
/// Sticky items have no room, or there may be none.
const NO_ROOM: &str = "SERVER_ERROR out of memory";
const BAD_PREFIX: Stop = Stop::error("CLIENT_ERROR invalid prefix name");

/// A request of a collection command.
struct Request<'a> {
    op: Op,
    key: Key<'a>,
    block: &'a [u8],
    tail: Tail,
    words: Vec<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// The request; `None` of one in a pipe that has failed, which is not carried out.
    fn of(ctx: &Ctx<'a>, op: Op) -> Option<Self> {
        let args: Args<'a> = ctx.args;
        ctx.reply.takes_requests().then(|| Self {
            op,
            key: ctx.key(1),
            block: args.bytes(2).unwrap_or_default(),
            tail: Tail::of(args.bytes(3).unwrap_or_default()),
            words: args.from(WORDS).collect(),
        })
    }

    /// The words from this one on.
    fn words_from(&self, index: usize) -> &[&'a [u8]] {
        self.words.get(index..).unwrap_or_default()
    }

    fn word(&self, index: usize) -> &'a [u8] {
        self.words.get(index).copied().unwrap_or_default()
    }

    /// Answers with a status.
    fn answer(&self, ctx: &mut Ctx<'_>, status: &str) -> Result<(), Stop> {
        let outcome = Outcome::of_status(status);
        if let Some(outcome) = outcome {
            tally::count(ctx.stats, self.op, outcome);
        }
        details::note(ctx, self.op, self.key.bytes, outcome);
        if self.tail != Tail::Silent {
            ctx.reply.status_line(status, self.tail == Tail::Piped);
        }
        Ok(())
    }

    /// Answers an insert.
    fn answer_added(&self, ctx: &mut Ctx<'_>, added: Added) -> Result<(), Stop> {
        self.answer(
            ctx,
            match added {
                Added::Stored => "STORED",
                Added::Created => "CREATED_STORED",
                Added::Replaced => "REPLACED",
                Added::NoKey => "NOT_FOUND",
                Added::Exists => "ELEMENT_EXISTS",
                Added::Absent => "NOT_FOUND_ELEMENT",
                Added::Overflowed => "OVERFLOWED",
                Added::OutOfRange => "OUT_OF_RANGE",
            },
        )
    }

    /// Answers a read or a delete; after elements it is the last line.
    fn answer_taken(&self, ctx: &mut Ctx<'_>, taken: Taken) -> Result<(), Stop> {
        self.answer(
            ctx,
            match taken {
                Taken::Shown => "END",
                Taken::Deleted => "DELETED",
                Taken::Dropped => "DELETED_DROPPED",
                Taken::NoKey => "NOT_FOUND",
                Taken::NoElements => "NOT_FOUND_ELEMENT",
                Taken::Unreadable => "UNREADABLE",
            },
        )
    }

    /// The collection that an insert makes, if it is to make one.
    fn created(&self, ctx: &mut Ctx<'_>, from: usize, family: Family) -> Result<Option<New>, Stop> {
        sticky::check_growth(ctx, &self.key, self.block.len(), NO_ROOM)?;
        match Create::parse_optional(self.words_from(from), family).ok_or(UNREADABLE_REQUEST)? {
            None => Ok(None),
            Some(create) => {
                // Prefixes are checked only where something is to be made.
                let is_there = ctx.ks.peek_head(&self.key)?.is_some();
                if is_there { Ok(None) } else { new_of(ctx, self.key.bytes, &create, kind_of(family)).map(Some) }
            }
        }
    }
}

/// The type of a family's collections.
fn kind_of(family: Family) -> Type {
    match family {
        Family::List => Type::List,
        Family::Set => Type::Set,
        Family::Map | Family::Any => Type::Hash,
        Family::Tree => Type::Btree,
    }
}

/// What to remove, in the words of the operations.
fn removal_of(removal: Removal) -> attributed::Removal {
    match removal {
        Removal::Keep => attributed::Removal::Keep,
        Removal::Delete => attributed::Removal::Delete,
        Removal::Drop => attributed::Removal::Drop,
    }
}

fn overflow_of(action: Action) -> Overflow {
    match action {
        Action::Error => Overflow::Error,
        Action::HeadTrim => Overflow::HeadTrim,
        Action::TailTrim => Overflow::TailTrim,
        Action::SmallestTrim => Overflow::SmallestTrim,
        Action::LargestTrim => Overflow::LargestTrim,
        Action::SmallestSilentTrim => Overflow::SmallestSilentTrim,
        Action::LargestSilentTrim => Overflow::LargestSilentTrim,
    }
}

/// The word of what a full collection does.
fn action_of(overflow: Overflow) -> Action {
    let is_it = |action: &Action| overflow_of(*action) == overflow;
    Action::ALL.into_iter().find(is_it).unwrap_or(Action::Error)
}

/// The collection that is to be made under a key.
fn new_of(ctx: &Ctx<'_>, key: &[u8], create: &Create, kind: Type) -> Result<New, Stop> {
    let is_sticky = create.exptime == sticky::SECONDS;
    if is_sticky {
        sticky::check_room(ctx, key.len(), NO_ROOM)?;
    }
    if !has_good_prefix(key) {
        return Err(BAD_PREFIX);
    }
    let expire_at = match expiration_of(create.exptime, ctx.now()) {
        _ if is_sticky => None,
        Expiration::At(at) => Some(at),
        Expiration::Never | Expiration::Keep => None,
    };
    let attributes = Attributes {
        max_count: limits::count_max_of(create.max_count, limits::allowed(ctx.host, kind)),
        overflow: create.action.map_or(Overflow::default_of(kind), overflow_of),
        is_readable: !create.is_unreadable,
        is_trimmed: false,
        range: None,
    };
    Ok(New { flags: create.flags, expire_at, is_sticky, attributes })
}

/// `xop create key attributes`
fn create(ctx: &mut Ctx<'_>, family: Family) -> Result<(), Stop> {
    let op = match family {
        Family::List => Op::LopCreate,
        Family::Set => Op::SopCreate,
        Family::Map | Family::Any => Op::MopCreate,
        Family::Tree => Op::BopCreate,
    };
    let Some(request) = Request::of(ctx, op) else { return Ok(()) };
    let create = Create::parse_whole(&request.words, family).ok_or(UNREADABLE_REQUEST)?;
    let kind = kind_of(family);
    if ctx.ks.peek_head(&request.key)?.is_some() {
        return request.answer(ctx, "EXISTS");
    }
    let new = new_of(ctx, request.key.bytes, &create, kind)?;
    if new.expire_at.is_none_or(|at| at > ctx.now()) {
        attributed::create(ctx.ks, &request.key, kind, &new)?;
    }
    request.answer(ctx, "CREATED")
}

/// `VALUE flags count`
fn value_line(reply: &mut proto::ReplyBuffer, flags: u32, count: u64) {
    reply.text_line(&format!("VALUE {flags} {count}"));
}

/// `bytes data`
fn element_line(reply: &mut proto::ReplyBuffer, data: &[u8]) {
    reply.words_line(&[], Some(data.len()), data);
}
