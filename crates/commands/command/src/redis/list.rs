//! Lists: their ends, their elements, their ranges. What moves elements between lists is in `list_moving`, what waits
//! for them in `list_blocking`.

use super::list_long;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs, Look};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::integer::parse_integer;
use proto::ReplyBuffer;
use types::list::{self, End, InsertOutcome, Search, SetOutcome};
use value::list::View;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&LPUSH, &RPUSH, &LPUSHX, &RPUSHX, &LPOP, &RPOP, &LLEN, &LINDEX, &LSET, &LINSERT, &LRANGE, &LREM, &LTRIM, &LPOS];

/// Documentation that all rows of this family share.
const fn docs(summary: &'static str, since: &'static str, complexity: &'static str) -> Docs {
    Docs { summary, since, group: "list", complexity, ..Docs::NONE }
}

static LPUSH: CommandSpec = CommandSpec {
    name: "lpush",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::string("element").repeated()],
        history: &[("2.4.0", "Takes several elements.")],
        ..docs(
            "Adds elements to the beginning of a list, which it creates if it is absent.",
            "1.0.0",
            "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
        )
    },
    run: Run::Call(lpush),
};

fn lpush(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    push(ctx, End::Head, false)
}

static RPUSH: CommandSpec = CommandSpec {
    name: "rpush",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::string("element").repeated()],
        history: &[("2.4.0", "Takes several elements.")],
        ..docs(
            "Adds elements to the end of a list, which it creates if it is absent.",
            "1.0.0",
            "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
        )
    },
    run: Run::Call(rpush),
};

fn rpush(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    push(ctx, End::Tail, false)
}

static LPUSHX: CommandSpec = CommandSpec {
    name: "lpushx",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::string("element").repeated()],
        history: &[("4.0.0", "Takes several elements.")],
        ..docs(
            "Adds elements to the beginning of a list that exists.",
            "2.2.0",
            "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
        )
    },
    run: Run::Call(lpushx),
};

fn lpushx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    push(ctx, End::Head, true)
}

static RPUSHX: CommandSpec = CommandSpec {
    name: "rpushx",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::string("element").repeated()],
        history: &[("4.0.0", "Takes several elements.")],
        ..docs(
            "Adds elements to the end of a list that exists.",
            "2.2.0",
            "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
        )
    },
    run: Run::Call(rpushx),
};

fn rpushx(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    push(ctx, End::Tail, true)
}

fn push(ctx: &mut Ctx<'_>, end: End, only_existing: bool) -> Result<(), Stop> {
    let key = ctx.key(1);
    let len = list::push(ctx.ks, &key, end, ctx.args.from(2), only_existing)?;
    ctx.reply.integer(len.cast_signed());
    Ok(())
}

static LPOP: CommandSpec = CommandSpec {
    name: "lpop",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::integer("count").since("6.2.0").optional()],
        history: &[("6.2.0", "Takes a `count`.")],
        ..docs(
            "Takes the first elements off a list, which goes with its last.",
            "1.0.0",
            "O(N) where N is the number of elements returned",
        )
    },
    run: Run::Call(lpop),
};

fn lpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop(ctx, End::Head)
}

static RPOP: CommandSpec = CommandSpec {
    name: "rpop",
    arity: -2,
    flags: Flags::WRITE.union(Flags::FAST).union(Flags::FREES),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::integer("count").since("6.2.0").optional()],
        history: &[("6.2.0", "Takes a `count`.")],
        ..docs(
            "Takes the last elements off a list, which goes with its last.",
            "1.0.0",
            "O(N) where N is the number of elements returned",
        )
    },
    run: Run::Call(rpop),
};

fn rpop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    pop(ctx, End::Tail)
}

/// With a count an array, even of one; without, the element itself.
fn pop(ctx: &mut Ctx<'_>, end: End) -> Result<(), Stop> {
    let key = ctx.key(1);
    if ctx.args.len() > 3 {
        return Err(error::wrong_arity(ctx.spec.name));
    }
    if ctx.args.len() == 2 {
        let reply = &mut *ctx.reply;
        let shown = list::pop(ctx.ks, &key, end, 1, |_, elements| elements.for_each(|element| reply.bulk(element)))?;
        if shown.is_none() {
            ctx.reply.null();
        }
        return Ok(());
    }
    let count = parse_integer(&ctx.args[2]).and_then(|count| u64::try_from(count).ok());
    let count = count.ok_or(Stop::error("ERR value is out of range, must be positive"))?;
    if list_long::pop(ctx, &key, end, count, |_| ())? {
        return Ok(());
    }
    let reply = &mut *ctx.reply;
    let shown = list::pop(ctx.ks, &key, end, count, |count, elements| show(reply, count, elements))?;
    if shown.is_none() {
        ctx.reply.null_array();
    }
    Ok(())
}

/// Elements as an array.
pub(super) fn show<'a>(reply: &mut ReplyBuffer, count: u64, elements: impl Iterator<Item = &'a [u8]>) {
    reply.array(usize::try_from(count).unwrap_or(usize::MAX));
    elements.for_each(|element| reply.bulk(element));
}

static LLEN: CommandSpec = CommandSpec {
    name: "llen",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RO)],
    locks: Locks::Keys,
    docs: &Docs { arguments: &[Argument::key("key", 0)], ..docs("Counts the elements of a list.", "1.0.0", "O(1)") },
    run: Run::Read(llen),
};

fn llen(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let len = list::of_entry(look.entry)?.map_or(0, |list| list.len());
    reply.integer(len.cast_signed());
    Ok(())
}

static LINDEX: CommandSpec = CommandSpec {
    name: "lindex",
    arity: 3,
    flags: Flags::READONLY,
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::integer("index")],
        ..docs(
            "Gives the element at an index.",
            "1.0.0",
            "O(N) where N is the number of elements to traverse to get to the element at index. This makes asking for the first or the last element of the list O(1).",
        )
    },
    run: Run::Read(lindex),
};

fn lindex(look: &Look<'_>, reply: &mut ReplyBuffer) -> Result<(), Stop> {
    let Some(list) = list::of_entry(look.entry)? else {
        reply.null();
        return Ok(());
    };
    // A wrong index is an error only when there is a list.
    let index = parse_integer(&look.args[2]).ok_or(error::NOT_INTEGER)?;
    match list::element(&list, index) {
        Some(element) => reply.bulk(element),
        None => reply.null(),
    }
    Ok(())
}

static LSET: CommandSpec = CommandSpec {
    name: "lset",
    arity: 4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::integer("index"), Argument::string("element")],
        ..docs(
            "Replaces the element at an index.",
            "1.0.0",
            "O(N) where N is the length of the list. Setting either the first or the last element of the list is O(1).",
        )
    },
    run: Run::Call(lset),
};

fn lset(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let index = match parse_integer(&ctx.args[2]) {
        Some(index) => index,
        None if list::len(ctx.ks, &key)? > 0 => return Err(error::NOT_INTEGER),
        None => 0,
    };
    match list::set(ctx.ks, &key, index, &ctx.args[3])? {
        SetOutcome::Done => ctx.reply.ok(),
        SetOutcome::NoKey => return Err(error::NO_SUCH_KEY),
        SetOutcome::OutOfRange => return Err(Stop::error("ERR index out of range")),
    }
    Ok(())
}

static LINSERT: CommandSpec = CommandSpec {
    name: "linsert",
    arity: 5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of("where", &[Argument::word("before", "BEFORE"), Argument::word("after", "AFTER")]),
            Argument::string("pivot"),
            Argument::string("element"),
        ],
        ..docs(
            "Adds an element before or after another one.",
            "2.2.0",
            "O(N) where N is the number of elements to traverse before seeing the value pivot. This means that inserting somewhere on the left end on the list (head) can be considered O(1) and inserting somewhere on the right end (tail) is O(N).",
        )
    },
    run: Run::Call(linsert),
};

fn linsert(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let is_behind = match () {
        () if ctx.is_word(2, "after") => true,
        () if ctx.is_word(2, "before") => false,
        () => return Err(error::SYNTAX),
    };
    let args = ctx.args;
    let find = list_long::finding(ctx, &key, &args[3])?;
    let outcome = list::insert(ctx.ks, &key, find, is_behind, &args[4])?;
    ctx.reply.integer(match outcome {
        InsertOutcome::Done(len) => len.cast_signed(),
        InsertOutcome::NoKey => 0,
        InsertOutcome::NoPivot => -1,
    });
    Ok(())
}

static LRANGE: CommandSpec = CommandSpec {
    name: "lrange",
    arity: 4,
    flags: Flags::READONLY,
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::integer("start"), Argument::integer("stop")],
        ..docs(
            "Gives the elements of a range of indexes.",
            "1.0.0",
            "O(S+N) where S is the distance of start offset from HEAD for small lists, from nearest end (HEAD or TAIL) for large lists; and N is the number of elements in the specified range.",
        )
    },
    run: Run::Call(lrange),
};

fn lrange(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let range = (ctx.integer(2)?, ctx.integer(3)?);
    let range = list::range(ctx.ks, &key, range)?;
    let place = |place| usize::try_from(place).unwrap_or(usize::MAX);
    let places = place(range.start)..place(range.end);
    ctx.reply.array(places.len());
    ctx.reply_elements(&key, places, |encoding, stored, places, reply| {
        let elements = View::of(encoding, stored).forward(places.start as u64);
        elements.take(places.len()).for_each(|element| reply.bulk(element));
    })
}

static LREM: CommandSpec = CommandSpec {
    name: "lrem",
    arity: 4,
    flags: Flags::WRITE.union(Flags::FREES),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::integer("count"), Argument::string("element")],
        ..docs(
            "Removes elements that are equal to one. The list goes with its last.",
            "1.0.0",
            "O(N+M) where N is the length of the list and M is the number of elements removed.",
        )
    },
    run: Run::Call(lrem),
};

fn lrem(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let (count, args) = (signed(ctx, 2)?, ctx.args);
    let removed = match list_long::remove(ctx, &key, count, &args[3])? {
        Some(removed) => removed,
        None => list::remove(ctx.ks, &key, count, &args[3])?,
    };
    ctx.reply.integer(removed.cast_signed());
    Ok(())
}

static LTRIM: CommandSpec = CommandSpec {
    name: "ltrim",
    arity: 4,
    flags: Flags::WRITE.union(Flags::FREES),
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[Argument::key("key", 0), Argument::integer("start"), Argument::integer("stop")],
        ..docs(
            "Removes the elements outside a range. The list goes with its last.",
            "1.0.0",
            "O(N) where N is the number of elements to be removed by the operation.",
        )
    },
    run: Run::Call(ltrim),
};

fn ltrim(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let range = (ctx.integer(2)?, ctx.integer(3)?);
    list::trim(ctx.ks, &key, range)?;
    ctx.reply.ok();
    Ok(())
}

static LPOS: CommandSpec = CommandSpec {
    name: "lpos",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::LIST,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        arguments: &[
            Argument::key("key", 0),
            Argument::string("element"),
            Argument::integer("rank").after("RANK").optional(),
            Argument::integer("num-matches").after("COUNT").optional(),
            Argument::integer("len").after("MAXLEN").optional(),
        ],
        ..docs(
            "Finds the indexes of elements that are equal to one.",
            "6.0.6",
            "O(N) where N is the number of elements in the list, for the average case. When searching for elements near the head or the tail of the list, or when the MAXLEN option is provided, the command may run in constant time.",
        )
    },
    run: Run::Call(lpos),
};

fn lpos(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let (search, has_count) = search(ctx)?;
    let args = ctx.args;
    let found = list_long::positions(ctx, &key, &args[2], search)?;
    if has_count {
        return list_long::reply_positions(ctx, found);
    }
    match found.first() {
        Some(index) => ctx.reply.integer(index.cast_signed()),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// The argument at `index` as an integer whose sign can be turned.
fn signed(ctx: &Ctx<'_>, index: usize) -> Result<i64, Stop> {
    const OUT_OF_RANGE: Stop =
        Stop::error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
    ctx.integer(index).and_then(|number| if number == i64::MIN { Err(OUT_OF_RANGE) } else { Ok(number) })
}

/// The options of LPOS, and whether a COUNT is among them.
fn search(ctx: &Ctx<'_>) -> Result<(Search, bool), Stop> {
    const RANK_IS_ZERO: Stop = Stop::error(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end \
         of the list",
    );
    let natural = |index: usize| parse_integer(&ctx.args[index]).and_then(|number| u64::try_from(number).ok());
    let mut search = Search { skip: 0, is_backward: false, count: 1, compared_max: 0 };
    let mut has_count = false;
    for word in (3..ctx.args.len()).step_by(2) {
        let value = word.saturating_add(1);
        match () {
            () if value == ctx.args.len() => return Err(error::SYNTAX),
            () if ctx.is_word(word, "rank") => {
                let rank = signed(ctx, value)?;
                search.skip = rank.unsigned_abs().checked_sub(1).ok_or(RANK_IS_ZERO)?;
                search.is_backward = rank < 0;
            }
            () if ctx.is_word(word, "count") => {
                search.count = natural(value).ok_or(Stop::error("ERR COUNT can't be negative"))?;
                has_count = true;
            }
            () if ctx.is_word(word, "maxlen") => {
                search.compared_max = natural(value).ok_or(Stop::error("ERR MAXLEN can't be negative"))?;
            }
            () => return Err(error::SYNTAX),
        }
    }
    Ok((search, has_count))
}
