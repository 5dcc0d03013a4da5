//! SORT: elements in another order, and values of other keys in their place.

use crate::acl::may_read_all_keys;
use crate::error::{self, Stop};
use crate::spec::{Argument, Docs, Find};
use crate::work::thread::Operand;
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use engine::{Key, SharedBig, Type, Value};
use types::collection::Made;
use types::sort::{Alone, Sorting};
use value::Big;
use value::list::View;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&SORT, &SORT_RO];

const CATEGORIES: Categories =
    Categories::SET.union(Categories::SORTED_SET).union(Categories::LIST).union(Categories::DANGEROUS);

const COMPLEXITY: &str = "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number of returned elements. When the elements are not sorted, complexity is O(N).";

const KEY: KeySpec = KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS));

const PATTERN_KEYS: KeySpec =
    KeySpec::unknown(Find::Derived(leads_to_keys), KeyFlags::RO.union(KeyFlags::ACCESS))
        .noting("For the optional BY/GET keyword. It is marked 'unknown' because the key names derive from the content of the key we sort");

const DESTINATION: KeySpec = KeySpec::unknown(Find::Rule(destination), KeyFlags::OW.union(KeyFlags::UPDATE))
    .noting("For the optional STORE keyword. It is marked 'unknown' because the keyword can appear anywhere in the argument array");

const KEY_ARGUMENT: Argument = Argument::key("key", 0);

const BY: Argument = Argument::key_pattern("by-pattern", 1).displayed("pattern").after("BY").optional();

const LIMIT: Argument =
    Argument::block("limit", &[Argument::integer("offset"), Argument::integer("count")]).after("LIMIT").optional();

const GET: Argument =
    Argument::key_pattern("get-pattern", 1).displayed("pattern").after("GET").optional().repeated_with_token();

const ORDER: Argument =
    Argument::one_of("order", &[Argument::word("asc", "ASC"), Argument::word("desc", "DESC")]).optional();

const ALPHA: Argument = Argument::word("sorting", "ALPHA").optional();

static SORT: CommandSpec = CommandSpec {
    name: "sort",
    arity: -2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLEKEYS),
    categories: CATEGORIES,
    keys: &[KEY, PATTERN_KEYS, DESTINATION],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sorts the elements of a list, a set or a sorted set, and gives or stores the result.",
        since: "1.0.0",
        group: "generic",
        complexity: COMPLEXITY,
        arguments: &[
            KEY_ARGUMENT,
            BY,
            LIMIT,
            GET,
            ORDER,
            ALPHA,
            Argument::key("destination", 2).after("STORE").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(sort),
};

static SORT_RO: CommandSpec = CommandSpec {
    name: "sort_ro",
    arity: -2,
    flags: Flags::READONLY.union(Flags::MOVABLEKEYS),
    categories: CATEGORIES,
    keys: &[KEY, PATTERN_KEYS],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the sorted elements of a list, a set or a sorted set.",
        since: "7.0.0",
        group: "generic",
        complexity: COMPLEXITY,
        arguments: &[KEY_ARGUMENT, BY, LIMIT, GET, ORDER, ALPHA],
        ..Docs::NONE
    },
    run: Run::Call(sort_ro),
};

/// How many arguments follow an option.
fn operands(option: &[u8]) -> Option<usize> {
    const OPERANDS: [(&str, usize); 7] =
        [("asc", 0), ("desc", 0), ("alpha", 0), ("limit", 2), ("store", 1), ("by", 1), ("get", 1)];
    OPERANDS.iter().find(|(name, _)| option.eq_ignore_ascii_case(name.as_bytes())).map(|(_, count)| *count)
}

/// The options from argument 2 on and where they stand, up to the first that is none.
fn options<'a>(args: &Args<'a>) -> impl Iterator<Item = (usize, &'a [u8])> {
    let args = *args;
    let mut at = 2usize;
    std::iter::from_fn(move || {
        let (place, option) = (at, args.bytes(at)?);
        at = at.saturating_add(operands(option)?).saturating_add(1);
        (at <= args.len()).then_some((place, option))
    })
}

/// Whether BY or GET leads to keys that stand nowhere in the request.
fn leads_to_keys(args: &Args<'_>) -> bool {
    options(args).any(|(place, option)| {
        let pattern = &args[place.saturating_add(1)];
        let is_pattern = option.eq_ignore_ascii_case(b"by") || option.eq_ignore_ascii_case(b"get");
        is_pattern && types::sort::has_place(pattern)
    })
}

/// Where the key after STORE stands, the last one if there are several.
fn destination(args: &Args<'_>) -> Option<usize> {
    let stores = options(args).filter(|(_, option)| option.eq_ignore_ascii_case(b"store"));
    stores.last().map(|(place, _)| place.saturating_add(1))
}

fn sort(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (key, sorting) = (ctx.key(1), parse(ctx)?);
    let Some(to) = destination(&ctx.args) else { return reply(ctx, &sorting) };
    let to = ctx.key(to);
    if let Some((alone, tree)) = alone(ctx, &key, &sorting)? {
        let made = ctx.made_elsewhere(Operand::Tree(tree.clone()), move || {
            let list = alone.sorted(&tree, true)?;
            let len = list.len();
            Ok::<_, Stop>((len, (len > 0).then(|| Made::of_tree(Big::List(list)))))
        })?;
        let (len, made) = made?;
        // A client's read.
        ctx.ks.read(&key)?;
        types::sort::store_sorted(ctx.ks, &to, made.as_ref())?;
        ctx.reply.integer(len.cast_signed());
        return Ok(());
    }
    let len = types::sort::sort_and_store(ctx.ks, &key, &sorting, &to)?;
    ctx.reply.integer(len as i64);
    Ok(())
}

fn sort_ro(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let sorting = parse(ctx)?;
    if destination(&ctx.args).is_some() {
        return Err(error::SYNTAX);
    }
    reply(ctx, &sorting)
}

/// Whether the user may read every key, as patterns of BY and GET may.
fn may_follow_patterns(ctx: &Ctx<'_>) -> bool {
    let session = &*ctx.session;
    session.is_unrestricted()
        || ctx.host.table.row_of(ctx.spec).is_some_and(|row| {
            may_read_all_keys(&session.user.rules(), &row, &ctx.args, ctx.host.login.users.scope(session.db))
        })
}

fn parse<'a>(ctx: &Ctx<'a>) -> Result<Sorting<'a>, Stop> {
    let mut sorting = Sorting::default();
    let mut end = 2usize;
    for (place, option) in options(&ctx.args) {
        let (first, second) = (place.saturating_add(1), place.saturating_add(2));
        end = first.saturating_add(operands(option).unwrap_or(0));
        match option.to_ascii_lowercase().as_slice() {
            b"asc" => sorting.descending = false,
            b"desc" => sorting.descending = true,
            b"alpha" => sorting.alphabetic = true,
            b"limit" => sorting.limit = Some((ctx.integer(first)?, ctx.integer(second)?)),
            b"by" if types::sort::has_place(&ctx.args[first]) && !may_follow_patterns(ctx) => {
                return Err(Stop::error("ERR BY option of SORT denied due to insufficient ACL permissions."));
            }
            b"get" if !may_follow_patterns(ctx) => {
                return Err(Stop::error("ERR GET option of SORT denied due to insufficient ACL permissions."));
            }
            b"by" => sorting.by = ctx.args.bytes(first),
            b"get" => sorting.gets.extend(ctx.args.bytes(first)),
            _ => {}
        }
    }
    if end == ctx.args.len() { Ok(sorting) } else { Err(error::SYNTAX) }
}

fn reply(ctx: &mut Ctx<'_>, sorting: &Sorting<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    if let Some((alone, tree)) = alone(ctx, &key, sorting)? {
        let operand = Operand::Tree(tree.clone());
        let sorted = ctx
            .made_elsewhere(operand, move || alone.sorted(&tree, false).map(|list| SharedBig::new(Big::List(list))))?;
        let sorted = sorted?;
        // A client's read.
        ctx.ks.read(&key)?;
        let Big::List(list) = &*sorted else { return Ok(()) };
        let len = list.len() as usize;
        ctx.reply.array(len);
        return ctx.reply_tree(sorted, 0..len, |encoding, stored, places, reply| {
            let elements = View::of(encoding, stored).forward(places.start as u64);
            elements.take(places.len()).for_each(|element| reply.bulk(element));
        });
    }
    let reply = &mut *ctx.reply;
    let (open, mut shown) = (reply.begin_array(), 0usize);
    types::sort::sort(ctx.ks, &key, sorting, &mut |value| {
        shown = shown.saturating_add(1);
        match value {
            Some(value) => reply.bulk(value),
            None => reply.null(),
        }
        error::check_reply(reply)
    })?;
    reply.end(open, shown);
    Ok(())
}

/// A tree that is sorted by nothing but itself: another thread can do that. Leaves no trace.
fn alone(ctx: &mut Ctx<'_>, key: &Key<'_>, sorting: &Sorting<'_>) -> Result<Option<(Alone, SharedBig)>, Stop> {
    let Some(alone) = Alone::of(sorting) else { return Ok(None) };
    let entry = ctx.ks.peek(key)?.filter(|entry| matches!(entry.kind, Type::List | Type::Set | Type::Zset));
    Ok(entry.and_then(|entry| if let Value::Big(tree) = entry.value { Some((alone, tree.clone())) } else { None }))
}
