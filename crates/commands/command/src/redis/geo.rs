//! Places on earth: how they are stored, where they are, how far they are from each other.

use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use proto::ReplyBuffer;
use types::geo::{Point, distance, position};
use types::zset::{Entry, Only, Rule, View, parse_score};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&GEOADD, &GEODIST, &GEOHASH, &GEOPOS];

/// The key of a command that reads one index.
pub(super) const READ_KEY: KeySpec = KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS));

/// The units of length.
pub(super) const UNIT: Argument = Argument::one_of(
    "unit",
    &[Argument::word("m", "M"), Argument::word("km", "KM"), Argument::word("ft", "FT"), Argument::word("mi", "MI")],
);

static GEOADD: CommandSpec = CommandSpec {
    name: "geoadd",
    arity: -5,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::GEO,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Puts members with their places into an index, which is made if the key is absent.",
        since: "3.2.0",
        group: "geo",
        complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
        history: &[("6.2.0", "Takes `CH`, `NX` and `XX`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::one_of("condition", &[Argument::word("nx", "NX"), Argument::word("xx", "XX")])
                .since("6.2.0")
                .optional(),
            Argument::word("change", "CH").since("6.2.0").optional(),
            Argument::block(
                "data",
                &[Argument::double("longitude"), Argument::double("latitude"), Argument::string("member")],
            )
            .repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(geoadd),
};

fn geoadd(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut at, mut rule, mut counts_updated) = (2, Rule::default(), false);
    let [mut nx, mut xx] = [false; 2];
    loop {
        if ctx.is_word(at, "nx") {
            nx = true;
        } else if ctx.is_word(at, "xx") {
            xx = true;
        } else if ctx.is_word(at, "ch") {
            counts_updated = true;
        } else {
            break;
        }
        at = at.saturating_add(1);
    }
    let left = ctx.args.len().saturating_sub(at);
    if left == 0 || !left.is_multiple_of(3) || nx && xx {
        return Err(error::SYNTAX);
    }
    rule.only = match (nx, xx) {
        (true, _) => Only::New,
        (_, true) => Only::Existing,
        _ => Only::Any,
    };
    let entries: Vec<Entry<'_>> = (at..ctx.args.len())
        .step_by(3)
        .map(|at| {
            let member = ctx.args.bytes(at.saturating_add(2)).unwrap_or_default();
            Ok(Entry { score: point(ctx.args, at)?.score(), member })
        })
        .collect::<Result<_, Stop>>()?;
    let key = ctx.key(1);
    let outcome = types::zset::add(ctx.ks, &key, rule, &entries)?;
    let updated = if counts_updated { outcome.updated } else { 0 };
    ctx.reply.integer(outcome.added.saturating_add(updated) as i64);
    Ok(())
}

/// The longitude in the argument at `index` and the latitude after it.
pub(super) fn point(args: Args<'_>, index: usize) -> Result<Point, Stop> {
    let degrees = |index: usize| parse_score(&args[index]).ok_or(error::NOT_FLOAT);
    let (longitude, latitude) = (degrees(index)?, degrees(index.saturating_add(1))?);
    let point = Point { longitude, latitude };
    if !point.is_valid() {
        let text = format!("ERR invalid longitude,latitude pair {longitude:.6},{latitude:.6}");
        return Err(Stop::error_with(text));
    }
    Ok(point)
}

/// Whether the argument at `index` is this word, in any case.
pub(super) fn is_word(args: Args<'_>, index: usize, word: &str) -> bool {
    args[index].eq_ignore_ascii_case(word.as_bytes())
}

/// Metres in the unit that the argument at `index` names.
pub(super) fn unit(args: Args<'_>, index: usize) -> Result<f64, Stop> {
    [("m", 1.0), ("km", 1000.0), ("ft", 0.3048), ("mi", 1609.34)]
        .into_iter()
        .find_map(|(word, metres)| is_word(args, index, word).then_some(metres))
        .ok_or(Stop::error("ERR unsupported unit provided. please use M, KM, FT, MI"))
}

static GEODIST: CommandSpec = CommandSpec {
    name: "geodist",
    arity: -4,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the distance of two members of an index.",
        since: "3.2.0",
        group: "geo",
        complexity: "O(1)",
        arguments: &[
            Argument::key("key", 0),
            Argument::string("member1"),
            Argument::string("member2"),
            UNIT.optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(geodist),
};

fn geodist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let metres = match ctx.args.len() {
        4 => 1.0,
        5 => unit(ctx.args, 4)?,
        _ => return Err(error::SYNTAX),
    };
    let key = ctx.key(1);
    let args = ctx.args;
    let between = |view: View<'_>| {
        let place = |index: usize| position(&view, &args[index]);
        Some(distance(place(2)?, place(3)?))
    };
    match types::zset::read(ctx.ks, &key)?.and_then(between) {
        Some(distance) => reply_distance(ctx.reply, distance / metres),
        None => ctx.reply.null(),
    }
    Ok(())
}

/// A distance, with four decimals.
pub(super) fn reply_distance(reply: &mut ReplyBuffer, distance: f64) {
    // Rounded as a product and not as a text: that is how Valkey does it.
    let number = (distance * 10_000.0).round_ties_even() as i64;
    reply.bulk(format!("{}.{:04}", number / 10_000, number % 10_000).as_bytes());
}

/// A place: an array of longitude and latitude.
pub(super) fn reply_point(reply: &mut ReplyBuffer, point: Point) {
    reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        let text = format!("{degrees:.17}");
        reply.double_text(text.trim_end_matches('0').trim_end_matches('.'));
    }
}

static GEOHASH: CommandSpec = CommandSpec {
    name: "geohash",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the places of members of an index as geohashes.",
        since: "3.2.0",
        group: "geo",
        complexity: "O(1) for each member requested.",
        arguments: &[Argument::key("key", 0), Argument::string("member").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(geohash),
};

fn geohash(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_places(ctx, |reply, place| match place {
        Some(place) => reply.bulk(&place.name()),
        None => reply.null(),
    })
}

static GEOPOS: CommandSpec = CommandSpec {
    name: "geopos",
    arity: -2,
    flags: Flags::READONLY,
    categories: Categories::GEO,
    keys: &[READ_KEY],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the places of members of an index as longitudes and latitudes.",
        since: "3.2.0",
        group: "geo",
        complexity: "O(1) for each member requested.",
        arguments: &[Argument::key("key", 0), Argument::string("member").optional().repeated()],
        ..Docs::NONE
    },
    run: Run::Call(geopos),
};

fn geopos(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_places(ctx, |reply, place| match place {
        Some(place) => reply_point(reply, place),
        None => reply.null_array(),
    })
}

/// An array of what `each` writes for the members from the second argument on.
fn reply_places(ctx: &mut Ctx<'_>, each: impl Fn(&mut ReplyBuffer, Option<Point>)) -> Result<(), Stop> {
    let key = ctx.key(1);
    let view = types::zset::read(ctx.ks, &key)?;
    ctx.reply.array(ctx.args.len().saturating_sub(2));
    for member in ctx.args.from(2) {
        each(ctx.reply, view.as_ref().and_then(|view| position(view, member)));
    }
    Ok(())
}
