//! Streams: adding, reading by range, removing.

use super::stream_ids::{self, INVALID_ID, reply_entry, reply_id};
use super::stream_pieces::{Asked, Parts, reply_short};
use super::stream_trim::{self, TRIM_ARGUMENTS};
use crate::error::{self, Stop, check_reply};
use crate::spec::{Argument, Docs};
use crate::work::thread::Operand;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::{Key, Value};
use proto::ReplyBuffer;
use types::collection::Maker;
use types::stream::{Deleted, Draft, Entry, Id, NewId, SetId};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&XADD, &XLEN, &XRANGE, &XREVRANGE, &XDEL, &XTRIM, &XSETID];

static XADD: CommandSpec = CommandSpec {
    name: "xadd",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))
        .noting("UPDATE instead of INSERT because of the optional trimming feature")],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds an entry to a stream; an absent key becomes a stream.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
        history: &[
            ("6.2.0", "Takes `NOMKSTREAM`, trims by `MINID` too, and not beyond a `LIMIT`."),
            ("7.0.0", "Takes a time alone as the id: `<ms>-*`."),
        ],
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::key("key", 0),
            Argument::word("nomkstream", "NOMKSTREAM").optional().since("6.2.0"),
            Argument::block("trim", TRIM_ARGUMENTS).optional(),
            Argument::one_of("id-selector", &[Argument::word("auto-id", "*"), Argument::string("id")]),
            Argument::block("data", &[Argument::string("field"), Argument::string("value")]).repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xadd),
};

fn xadd(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = stream_trim::parse_before_id(ctx)?;
    let fields = options.end.saturating_add(1);
    let strings = ctx.args.len().saturating_sub(fields);
    if strings < 2 || strings % 2 == 1 {
        return Err(error::wrong_arity("xadd"));
    }
    let id = match &ctx.args[options.end] {
        b"*" => NewId::Next,
        text => match stream_ids::parse_any_seq(text) {
            Some(ms) => NewId::NextOf(ms),
            None => NewId::Exactly(stream_ids::parse(text, 0).ok_or(INVALID_ID)?),
        },
    };
    if id == NewId::Exactly(Id::MIN) {
        return Err(Stop::error("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let key = ctx.key(1);
    let draft = Draft { id, field_count: strings / 2, strings: ctx.args.from(fields) };
    // One that ends early would end early twice.
    let trimming = options.trimming.filter(|trimming| !trimming.is_limited(&ctx.ks.limits()));
    let trimmed = match trimming {
        Some(trimming) => stream_trim::trimmed(ctx, &key, trimming)?,
        None => None,
    };
    match types::stream::add(ctx.ks, &key, draft, options.makes_stream, options.trimming, trimmed.as_ref())? {
        Some(id) => reply_id(ctx.reply, id),
        None => ctx.reply.null(),
    }
    Ok(())
}

static XLEN: CommandSpec = CommandSpec {
    name: "xlen",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Counts the entries of a stream.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(xlen),
};

fn xlen(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let len = types::stream::read(ctx.ks, &key)?.map_or(0, |stream| stream.len());
    ctx.reply.integer(len as i64);
    Ok(())
}

const RANGE_COMPLEXITY: &str = "O(N) with N being the number of elements being returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).";

static XRANGE: CommandSpec = CommandSpec {
    name: "xrange",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the entries of a stream between two ids.",
        since: "5.0.0",
        group: "stream",
        complexity: RANGE_COMPLEXITY,
        history: &[("6.2.0", "Either end may be left out of the range.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("start"),
            Argument::string("end"),
            Argument::integer("count").after("COUNT").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xrange),
};

fn xrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (start, end) = (stream_ids::start(ctx, 2)?, stream_ids::end(ctx, 3)?);
    reply_range(ctx, start, end, false)
}

static XREVRANGE: CommandSpec = CommandSpec {
    name: "xrevrange",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the entries of a stream between two ids, the last first.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(N) with N being the number of elements returned. If N is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1).",
        history: &[("6.2.0", "Either end may be left out of the range.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("end"),
            Argument::string("start"),
            Argument::integer("count").after("COUNT").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xrevrange),
};

fn xrevrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (start, end) = (stream_ids::start(ctx, 3)?, stream_ids::end(ctx, 2)?);
    reply_range(ctx, start, end, true)
}

fn reply_range(ctx: &mut Ctx<'_>, start: Id, end: Id, is_reversed: bool) -> Result<(), Stop> {
    let count = range_count(ctx)?;
    let key = ctx.key(1);
    let Some(stream) = types::stream::read(ctx.ks, &key)? else {
        ctx.reply.array(0);
        return Ok(());
    };
    let is_written = match count {
        Some(0) => {
            ctx.reply.null_array();
            true
        }
        _ if is_reversed => reply_short(ctx.reply, stream.range_back(start, end), count),
        _ => reply_short(ctx.reply, stream.range(start, end), count),
    };
    if !is_written {
        let mut parts = Parts::default();
        parts.add(ctx, &key, Asked { start, end, is_reversed, count }, None)?;
        ctx.reply_long(parts)?;
    }
    Ok(())
}

/// What COUNT says, the last of several; `None` without it.
fn range_count(ctx: &Ctx<'_>) -> Result<Option<usize>, Stop> {
    let mut count = None;
    let mut at = 4usize;
    while at < ctx.args.len() {
        let number = at.saturating_add(1);
        if !ctx.is_word(at, "count") || number >= ctx.args.len() {
            return Err(error::SYNTAX);
        }
        count = Some(usize::try_from(ctx.integer(number)?).unwrap_or(0));
        at = number.saturating_add(1);
    }
    Ok(count)
}

/// Writes at most `count` entries as an array.
pub(super) fn reply_entries<'e>(
    reply: &mut ReplyBuffer,
    entries: impl Iterator<Item = Entry<'e>>,
    count: Option<usize>,
) -> Result<(), Stop> {
    let open = reply.begin_array();
    let mut written = 0usize;
    for entry in entries.take(count.unwrap_or(usize::MAX)) {
        reply_entry(reply, &entry);
        check_reply(reply)?;
        written = written.saturating_add(1);
    }
    reply.end(open, written);
    Ok(())
}

static XDEL: CommandSpec = CommandSpec {
    name: "xdel",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes entries of a stream, and counts those that were there.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1) for each single item to delete in the stream, regardless of the stream size.",
        arguments: &[Argument::key("key", 0), Argument::string("id").repeated()],
        ..Docs::NONE
    },
    run: Run::Call(xdel),
};

fn xdel(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    // An absent key is not looked at any further.
    let mut deleted = 0;
    if types::stream::exists(ctx.ks, &key)? {
        let ids = stream_ids::ids(ctx, 2)?;
        deleted = delete(ctx, &key, ids)?;
    }
    ctx.reply.integer(deleted as i64);
    Ok(())
}

/// Removes entries; many of a big stream by having another thread make what is left.
fn delete(ctx: &mut Ctx<'_>, key: &Key<'_>, ids: Vec<Id>) -> Result<u64, Stop> {
    let maker = Maker::of(ctx.ks);
    let entry = ctx.ks.peek(key)?.filter(|_| ids.len() >= Deleted::ENTRIES_MIN);
    match entry.map(|entry| entry.value) {
        Some(Value::Big(tree)) => {
            let (operand, tree) = (Operand::Tree(tree.clone()), tree.clone());
            let deleted = ctx.made_elsewhere(operand, move || Deleted::of(&maker, &tree, ids))?;
            Ok(types::stream::store_deleted(ctx.ks, key, &deleted))
        }
        _ => Ok(types::stream::delete(ctx.ks, key, ids)?),
    }
}

static XTRIM: CommandSpec = CommandSpec {
    name: "xtrim",
    arity: -4,
    flags: Flags::WRITE.union(Flags::FREES),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Removes the first entries of a stream, and counts them.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(N), with N being the number of evicted entries. Constant times are very small however, since entries are organized in macro nodes containing multiple entries that can be released with a single deallocation.",
        history: &[("6.2.0", "Trims by `MINID` too, and not beyond a `LIMIT`.")],
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0), Argument::block("trim", TRIM_ARGUMENTS)],
        ..Docs::NONE
    },
    run: Run::Call(xtrim),
};

fn xtrim(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let count = match stream_trim::parse(ctx)? {
        Some(trimming) => match stream_trim::trimmed(ctx, &key, trimming)? {
            Some(trimmed) => types::stream::store_trimmed(ctx.ks, &key, &trimmed),
            None => types::stream::trim(ctx.ks, &key, trimming)?,
        },
        None => 0,
    };
    ctx.reply.integer(count as i64);
    Ok(())
}

static XSETID: CommandSpec = CommandSpec {
    name: "xsetid",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STREAM,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets what a stream knows of ids it has had; for replication.",
        since: "5.0.0",
        group: "stream",
        complexity: "O(1)",
        history: &[("7.0.0", "Sets the number of entries added and the highest id deleted too.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::string("last-id"),
            Argument::integer("entries-added").after("ENTRIESADDED").optional().since("7.0.0"),
            Argument::string("max-deleted-id").after("MAXDELETEDID").optional().since("7.0.0"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xsetid),
};

fn xsetid(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let last = stream_ids::id(ctx, 2)?;
    let (mut added, mut deleted) = (None, Id::MIN);
    let mut at = 3usize;
    while at < ctx.args.len() {
        let value = at.saturating_add(1);
        let has_value = value < ctx.args.len();
        if has_value && ctx.is_word(at, "entriesadded") {
            let number = u64::try_from(ctx.integer(value)?);
            added = Some(number.map_err(|_| Stop::error("ERR entries_added must be positive"))?);
        } else if has_value && ctx.is_word(at, "maxdeletedid") {
            deleted = stream_ids::id(ctx, value)?;
            if last < deleted {
                return Err(Stop::error(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                ));
            }
        } else {
            return Err(error::SYNTAX);
        }
        at = value.saturating_add(1);
    }
    let key = ctx.key(1);
    let refused = match types::stream::set_id(ctx.ks, &key, last, added, deleted)? {
        SetId::Done => {
            ctx.reply.ok();
            return Ok(());
        }
        SetId::Absent => return Err(error::NO_SUCH_KEY),
        SetId::BelowDeleted => "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id",
        SetId::BelowEntry => "ERR The ID specified in XSETID is smaller than the target stream top item",
        SetId::AddedBelowLength => "ERR The entries_added specified in XSETID is smaller than the target stream length",
    };
    Err(Stop::error(refused))
}
