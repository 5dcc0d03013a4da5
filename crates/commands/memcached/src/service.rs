//! Commands about the connection and the server.

use crate::arcus::prefix;
use crate::arguments::{answer, expiration_of, number};
use admin::Configuration;
use admin::about;
use base::UnixMs;
use command::audit::Proof;
use command::redis::connection::{accept, note_refusal};
use command::{Ctx, Stop};
use types::string::Expiration;

/// The version of memcached whose protocol this is, for clients that look at it.
pub const MEMCACHED_VERSION: &str = "1.6.18";

const STORED: &str = "STORED";
const FLUSH_REFUSED: Stop = Stop::error("CLIENT_ERROR flush_all not allowed");
const TOKEN_FORMAT: Stop = Stop::error("CLIENT_ERROR bad authentication token format");
const WRONG_PASSWORD: Stop = Stop::error("CLIENT_ERROR authentication failure");

/// Words of the request without `noreply` at its end.
fn word_count(ctx: &Ctx<'_>) -> usize {
    let count = ctx.args.len();
    let is_silent = ctx.args.bytes(count.saturating_sub(1)) == Some(b"noreply");
    if is_silent { count.saturating_sub(1) } else { count }
}

/// Seconds from now: a delay, or until a Unix time, as for expirations.
fn seconds_of(delay: i64, now: UnixMs) -> i64 {
    match expiration_of(delay, now) {
        Expiration::At(at) => at.saturating_sub(now).max(0).div_euclid(1000),
        Expiration::Never | Expiration::Keep => 0,
    }
}

/// `flush_all [delay]`: removes all entries of the connection's database.
pub fn flush_all(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if !ctx.host.part::<Configuration>().current().memcached_flush {
        return Err(FLUSH_REFUSED);
    }
    let count = word_count(ctx);
    let delay = ctx.args.bytes(1).filter(|_| count > 1);
    if let Some(seconds) = delay.and_then(proto::memcached::parse_signed).filter(|delay| *delay > 0) {
        prefix::flush_later(ctx, seconds_of(seconds, ctx.now()))?;
        answer(ctx, count, "OK");
        return Ok(());
    }
    let space = ctx.ks.space();
    admin::keyspaces::clear(ctx.ks, space);
    answer(ctx, count, "OK");
    Ok(())
}

/// `verbosity level`: 0 sets `loglevel` to notice, 1 to verbose, and more to debug, until the next CONFIG SET or start.
pub fn verbosity(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let level: &[u8] = match number(&ctx.args, 1)? {
        0 => b"notice",
        1 => b"verbose",
        _ => b"debug",
    };
    let set = ctx.host.part::<Configuration>().set(ctx.host, &[(b"loglevel", level)], false);
    set.map_err(|error| Stop::error_with(format!("SERVER_ERROR loglevel cannot be set: {error}")))?;
    let count = word_count(ctx);
    answer(ctx, count, "OK");
    Ok(())
}

/// `version`
pub fn version(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.text_line(&format!("VERSION {MEMCACHED_VERSION} (Onggi {})", about::VERSION));
    Ok(())
}

/// `mn`
pub fn meta_noop(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.text_line("MN");
    Ok(())
}

/// `quit`: closes the connection without a reply.
pub fn quit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.session.close_after_replies = true;
    Ok(())
}

/// The `set` by which a client logs in, as memcached with an authentication file has it: the data is `user password`.
pub fn login(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let data = ctx.args.bytes(2).unwrap_or_default();
    let space = data.iter().position(|byte| *byte == b' ').ok_or(TOKEN_FORMAT)?;
    let (user, rest) = data.split_at(space);
    let password = rest.get(1..).unwrap_or_default();
    let attempt = command::login::attempt(ctx, user, password)?;
    ctx.session.hold(ctx.ks.now(), attempt.delay_ms);
    let Some(user) = attempt.user else {
        note_refusal(ctx.session, ctx.host, "memcached|set", b"set", user, ctx.now());
        return Err(WRONG_PASSWORD);
    };
    let now = ctx.now();
    accept(ctx.session, ctx.host, user, Proof::Password, now);
    ctx.reply.text_line(STORED);
    Ok(())
}
