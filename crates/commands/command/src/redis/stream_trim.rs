//! The trimming options of XADD and XTRIM: MAXLEN, MINID, `~`, LIMIT.

use super::stream_ids;
use crate::Ctx;
use crate::error::{self, Stop};
use crate::spec::Argument;
use crate::work::thread::Operand;
use engine::{Key, Type, Value};
use types::collection::Maker;
use types::stream::{Precision, Stream, Trim, Trimmed, Trimming};
use value::Stored;

/// These options, for COMMAND DOCS.
pub(super) const TRIM_ARGUMENTS: &[Argument] = &[
    Argument::one_of(
        "strategy",
        &[Argument::word("maxlen", "MAXLEN"), Argument::word("minid", "MINID").since("6.2.0")],
    ),
    Argument::one_of("operator", &[Argument::word("equal", "="), Argument::word("approximately", "~")]).optional(),
    Argument::string("threshold"),
    Argument::integer("count").after("LIMIT").optional().since("6.2.0"),
];

/// What stands before the id of XADD.
pub(super) struct AddOptions {
    /// An absent key becomes a stream (no NOMKSTREAM).
    pub(super) makes_stream: bool,
    /// What is trimmed afterwards.
    pub(super) trimming: Option<Trimming>,
    /// Where the id stands, or should.
    pub(super) end: usize,
}

/// The options of XADD.
pub(super) fn parse_before_id(ctx: &Ctx<'_>) -> Result<AddOptions, Stop> {
    let mut options = Options::default();
    let mut makes_stream = true;
    let mut at = 2;
    while at < ctx.args.len() {
        if &ctx.args[at] == b"*" {
            break;
        } else if let Some(next) = options.take(ctx, at)? {
            at = next;
        } else if ctx.is_word(at, "nomkstream") {
            makes_stream = false;
            at = at.saturating_add(1);
        } else {
            check_new_id(&ctx.args[at])?;
            break;
        }
    }
    Ok(AddOptions { makes_stream, trimming: options.trimming(false)?, end: at })
}

/// An argument that is not an option must be an id. Its error comes before those about options that conflict.
fn check_new_id(text: &[u8]) -> Result<(), Stop> {
    let is_id = stream_ids::parse(text, 0).is_some() || stream_ids::parse_any_seq(text).is_some();
    if is_id { Ok(()) } else { Err(stream_ids::INVALID_ID) }
}

/// The options of XTRIM.
pub(super) fn parse(ctx: &Ctx<'_>) -> Result<Option<Trimming>, Stop> {
    let mut options = Options::default();
    let mut at = 2;
    while at < ctx.args.len() {
        at = options.take(ctx, at)?.ok_or(error::SYNTAX)?;
    }
    options.trimming(true)
}

#[derive(Default)]
struct Options {
    trim: Option<Trim>,
    is_rough: bool,
    limit: Option<u64>,
}

impl Options {
    /// Takes the option at this argument, and gives where the next is; `None` when it is not an option of these.
    fn take(&mut self, ctx: &Ctx<'_>, at: usize) -> Result<Option<usize>, Stop> {
        let mut value = at.saturating_add(1);
        let left = ctx.args.len().saturating_sub(value);
        if left == 0 {
            return Ok(None);
        }
        let (by_length, by_id) = (ctx.is_word(at, "maxlen"), ctx.is_word(at, "minid"));
        if by_length || by_id {
            if self.trim.is_some() {
                return Err(Stop::error(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                ));
            }
            self.is_rough = left >= 2 && &ctx.args[value] == b"~";
            if self.is_rough || (left >= 2 && &ctx.args[value] == b"=") {
                value = value.saturating_add(1);
            }
            self.trim = Some(match by_length {
                true => Trim::MaxLength(not_negative(ctx, value, "ERR The MAXLEN argument must be >= 0.")?),
                false => Trim::MinId(stream_ids::id(ctx, value)?),
            });
        } else if ctx.is_word(at, "limit") {
            self.limit = Some(not_negative(ctx, value, "ERR The LIMIT argument must be >= 0.")?);
        } else {
            return Ok(None);
        }
        Ok(Some(value.saturating_add(1)))
    }

    /// What they come to.
    fn trimming(self, needs_strategy: bool) -> Result<Option<Trimming>, Stop> {
        if self.trim.is_none() && self.limit.is_some_and(|limit| limit > 0) {
            return Err(Stop::error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy"));
        }
        if self.trim.is_none() && needs_strategy {
            return Err(Stop::error("ERR syntax error, XTRIM must be called with a trimming strategy"));
        }
        let precision = match (self.is_rough, self.limit) {
            (true, limit) => Precision::Rough(limit),
            (false, None) => Precision::Exact,
            (false, Some(_)) => {
                return Err(Stop::error("ERR syntax error, LIMIT cannot be used without the special ~ option"));
            }
        };
        Ok(self.trim.map(|trim| Trimming { trim, precision }))
    }
}

fn not_negative(ctx: &Ctx<'_>, index: usize, otherwise: &'static str) -> Result<u64, Stop> {
    u64::try_from(ctx.integer(index)?).map_err(|_| Stop::error(otherwise))
}

/// What trimming leaves of the stream under the key, if that takes long: then another thread makes it. Leaves no trace.
pub(super) fn trimmed(ctx: &mut Ctx<'_>, key: &Key<'_>, trimming: Trimming) -> Result<Option<Trimmed>, Stop> {
    let maker = Maker::of(ctx.ks);
    let entry = ctx.ks.peek(key)?.filter(|entry| entry.kind == Type::Stream);
    let tree = match entry.map(|entry| entry.value) {
        Some(Value::Big(tree)) if trimming.is_long(Stream::of(Stored::Big(tree)), maker.limits()) => tree.clone(),
        _ => return Ok(None),
    };
    let operand = Operand::Tree(tree.clone());
    ctx.made_elsewhere(operand, move || Trimmed::of(&maker, &tree, trimming)).map(Some)
}
