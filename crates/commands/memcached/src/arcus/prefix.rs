//! Commands about prefixes of keys: `flush_prefix`, `stats prefixes` and `scan prefix`.
//!
//! No table of prefixes is kept. Each walks over the database in steps ([`crate::sweep`]), and answers at its end.

use crate::details::Details;
use crate::get::END;
use crate::prefixes::{NULL, Page, Prefixes};
use crate::sweep::{Answer, Busy, Purpose, Shown, Sweep, Sweeps, silence};
use command::blocking::{Awaited, Block};
use command::{Ctx, Stop};
use proto::ReplyBuffer;
use proto::memcached::parse_signed;
use std::sync::Arc;
use store::Store;

const BAD_FORMAT: Stop = Stop::error("CLIENT_ERROR bad command line format");
const TOO_LONG: Stop = Stop::error("CLIENT_ERROR too long prefix name");
const REFUSED: Stop = Stop::error("CLIENT_ERROR flush_prefix not allowed");
const BUSY: Stop = Stop::error("SERVER_ERROR too many walks over the database wait: send it again later");

const PREFIX_BYTES_MAX: usize = 250;
const TOO_MANY: &str = "CLIENT_ERROR invalid: too many prefixes";

/// Prefixes that `stats prefixes` lists, ARCUS' `max_stats_prefixes`.
pub const LISTED_MAX: usize = 10_000;

/// Seconds as a time of the clock.
fn due(ctx: &Ctx<'_>, seconds: i64) -> i64 {
    ctx.now().saturating_add(seconds.saturating_mul(1000))
}

/// Has the database walked over, and answers at the end of that.
fn wait_for(ctx: &mut Ctx<'_>, purpose: Purpose, answer: Answer) -> Result<(), Stop> {
    let sweep = Sweep::new(ctx.host.part::<crate::Needed, Arc<Store>>(), ctx.session.db, purpose, 0, answer);
    ctx.host.part::<crate::Needed, Arc<Sweeps>>().add(sweep.clone()).map_err(|Busy| BUSY)?;
    ctx.session.block = Some(Block::begin(&ctx.session.info, Awaited::Task(sweep), None));
    Ok(())
}

/// Removes all entries of the connection's database after this number of seconds.
pub fn flush_later(ctx: &mut Ctx<'_>, seconds: i64) -> Result<(), Stop> {
    later(ctx, Purpose::All, seconds)
}

/// Has this done after this number of seconds.
pub fn later(ctx: &mut Ctx<'_>, purpose: Purpose, seconds: i64) -> Result<(), Stop> {
    let due = due(ctx, seconds);
    let sweep = Sweep::new(ctx.host.part::<crate::Needed, Arc<Store>>(), ctx.session.db, purpose, due, silence);
    ctx.host.part::<crate::Needed, Arc<Sweeps>>().add(sweep).map_err(|Busy| BUSY)
}

/// `flush_prefix prefix [delay] [noreply]`
pub fn flush(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !ctx.host.configuration.current().memcached_flush {
        return Err(REFUSED);
    }
    let mut words: Vec<&[u8]> = ctx.args.from(1).collect();
    let is_silent = words.last() == Some(&&b"noreply"[..]);
    if is_silent {
        words.pop();
    }
    let (prefix, seconds) = match *words.as_slice() {
        [prefix] => (prefix, 0),
        [prefix, delay] => (prefix, parse_signed(delay).filter(|delay| *delay >= 0).ok_or(BAD_FORMAT)?),
        _ => return Err(BAD_FORMAT),
    };
    if prefix.len() > PREFIX_BYTES_MAX {
        return Err(TOO_LONG);
    }
    let named = (prefix != NULL).then_some(prefix);
    ctx.host.part::<crate::Needed, Arc<Details>>().forget(named);
    let purpose = Purpose::Prefix(named.map(Box::from));
    if seconds == 0 {
        return wait_for(ctx, purpose, if is_silent { silence } else { answer_flush });
    }
    later(ctx, purpose, seconds)?;
    if !is_silent {
        ctx.reply.text_line("OK");
    }
    Ok(())
}

fn answer_flush(sweep: &Sweep, reply: &mut ReplyBuffer) {
    reply.text_line(match sweep.removed() {
        _ if !sweep.is_whole() => "SERVER_ERROR items were left, since the command log takes no changes",
        0 => "NOT_FOUND",
        _ => "OK",
    });
}

/// `stats prefixes`, and `stats prefixlist item` with the prefixes that are wanted.
pub fn statistics(ctx: &mut Ctx<'_>, wanted: Option<&[&[u8]]>) -> Result<(), Stop> {
    let wanted = wanted.map(|names| names.iter().map(|name| Box::from(*name)).collect());
    wait_for(ctx, Purpose::count(Shown::Counts(wanted)), answer_statistics)
}

fn answer_statistics(sweep: &Sweep, reply: &mut ReplyBuffer) {
    let Purpose::Count { prefixes, shown: Shown::Counts(wanted) } = &sweep.purpose else { return };
    let prefixes = prefixes.lock();
    let is_wanted = |name: &[u8]| wanted.as_ref().is_none_or(|wanted| wanted.iter().any(|of| **of == *name));
    let shown = prefixes.all().map(|all| all.filter(|(name, _)| is_wanted(name)).collect::<Vec<_>>());
    let Some(shown) = shown.filter(|shown| shown.len() <= LISTED_MAX) else {
        return reply.text_line(TOO_MANY);
    };
    for (name, counts) in shown {
        reply.raw_line(&[b"PREFIX ", name, b" ", counts.words().as_bytes()].concat());
    }
    reply.text_line(END);
}

/// The time of a prefix, which is not kept: a day that no prefix can have been created on.
const NO_TIME: &str = "19700101000000";

/// `scan prefix`: the part after a cursor. The first one walks over the database, and the others show what it counted.
pub fn scan(ctx: &mut Ctx<'_>, page: Page) -> Result<(), Stop> {
    let sweeps = ctx.host.part::<crate::Needed, Arc<Sweeps>>();
    let counted = sweeps.counted(ctx.session.db).filter(|_| page.cursor > 0);
    let Some(counted) = counted else {
        return wait_for(ctx, Purpose::count(Shown::Page(page)), answer_scan);
    };
    if let Purpose::Count { prefixes, .. } = &counted.purpose
        && show_page(&page, &prefixes.lock(), ctx.reply) == 0
    {
        sweeps.forget_counted();
    }
    Ok(())
}

fn answer_scan(sweep: &Sweep, reply: &mut ReplyBuffer) {
    let Purpose::Count { prefixes, shown: Shown::Page(page) } = &sweep.purpose else { return };
    show_page(page, &prefixes.lock(), reply);
}

/// Shows a part, and returns the next cursor.
fn show_page(page: &Page, prefixes: &Prefixes, reply: &mut ReplyBuffer) -> u64 {
    let Some((found, next)) = page.of(prefixes) else {
        reply.text_line(TOO_MANY);
        return 0;
    };
    reply.text_line(&format!("PREFIXES {} {next}", found.len()));
    for (name, counts) in found {
        let rest = format!(" {} {} {NO_TIME}", counts.items(), counts.bytes());
        reply.raw_line(&[name, rest.as_bytes()].concat());
    }
    reply.text_line(END);
    next
}
