//! Commands about prefixes of keys: `flush_prefix` and `stats prefixes`.
//!
//! No table of prefixes is kept. Each walks over the database in steps ([`crate::sweep`]), and answers at its end.

use crate::get::END;
use crate::prefixes::NULL;
use crate::sweep::{Answer, NotAdded, Purpose, Sweep, Sweeps, silence};
use admin::Configuration;
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
pub(super) const ON_DISK: Stop =
    Stop::error("SERVER_ERROR not available for a database on disk yet: delete the keys one by one");

/// What a client reads when a walk is not added.
fn refused(why: NotAdded) -> Stop {
    match why {
        NotAdded::Busy => BUSY,
        NotAdded::OnDisk => ON_DISK,
    }
}

const PREFIX_BYTES_MAX: usize = 250;

/// Prefixes that `stats prefixes` lists, ARCUS' `max_stats_prefixes`.
const LISTED_MAX: usize = 10_000;

/// Seconds as a time of the clock.
fn due(ctx: &Ctx<'_>, seconds: i64) -> i64 {
    ctx.now().saturating_add(seconds.saturating_mul(1000))
}

/// Has the database walked over, and answers at the end of that.
fn wait_for(ctx: &mut Ctx<'_>, purpose: Purpose, answer: Answer) -> Result<(), Stop> {
    let sweep = Sweep::new(ctx.host.part::<Arc<Store>>(), ctx.session.db, purpose, 0, answer);
    ctx.host.part::<Arc<Sweeps>>().add(sweep.clone()).map_err(refused)?;
    ctx.session.block = Some(Block::begin(&ctx.session.info, Awaited::Task(sweep), None));
    Ok(())
}

/// Removes all entries of the connection's database after this number of seconds.
pub fn flush_later(ctx: &mut Ctx<'_>, seconds: i64) -> Result<(), Stop> {
    later(ctx, Purpose::All, seconds)
}

fn later(ctx: &mut Ctx<'_>, purpose: Purpose, seconds: i64) -> Result<(), Stop> {
    let due = due(ctx, seconds);
    let sweep = Sweep::new(ctx.host.part::<Arc<Store>>(), ctx.session.db, purpose, due, silence);
    ctx.host.part::<Arc<Sweeps>>().add(sweep).map_err(refused)
}

/// `flush_prefix prefix [delay] [noreply]`
pub fn flush(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !ctx.host.part::<Configuration>().current().memcached_flush {
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
    let purpose = Purpose::Prefix((prefix != NULL).then(|| prefix.into()));
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

/// `stats prefixes`
pub fn statistics(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    wait_for(ctx, Purpose::Count(Default::default()), answer_statistics)
}

fn answer_statistics(sweep: &Sweep, reply: &mut ReplyBuffer) {
    let Purpose::Count(prefixes) = &sweep.purpose else { return };
    let prefixes = prefixes.lock();
    let Some(all) = prefixes.all().filter(|all| all.len() <= LISTED_MAX) else {
        return reply.text_line("CLIENT_ERROR invalid: too many prefixes");
    };
    for (name, counts) in all {
        reply.raw_line(&[b"PREFIX ", name, b" ", counts.words().as_bytes()].concat());
    }
    reply.text_line(END);
}
