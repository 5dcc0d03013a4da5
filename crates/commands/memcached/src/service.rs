//! Commands about the connection and the server.

use crate::arcus::{for_administrators, prefix};
use crate::arguments::{answer, expiration_of, number};
use crate::sweep::Purpose;
use crate::tally::{self, Op, Outcome};
use admin::ShutdownRequest;
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
    if !ctx.host.configuration.current().memcached_flush {
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
    let set = admin::change_settings(ctx.host, &[(b"loglevel", level)], false);
    set.map_err(|error| Stop::error_with(format!("SERVER_ERROR loglevel cannot be set: {error}")))?;
    let count = word_count(ctx);
    answer(ctx, count, "OK");
    Ok(())
}

/// The least `maxmemory` that `cache_memlimit` sets, in megabytes, and the most.
const MEMORY_LIMITS: (u64, u64) = (8, 1_000_000_000);

/// `cache_memlimit megabytes`: sets `maxmemory`, until the next CONFIG SET or start.
pub fn memory_limit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let megabytes = number(&ctx.args, 1)?;
    let count = word_count(ctx);
    let text = match megabytes {
        _ if megabytes < MEMORY_LIMITS.0 => "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
        _ if megabytes > MEMORY_LIMITS.1 => "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes",
        _ => {
            let value = format!("{megabytes}mb");
            match admin::change_settings(ctx.host, &[(b"maxmemory", value.as_bytes())], false) {
                Ok(_) => "OK",
                Err(_) => "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust",
            }
        }
    };
    answer(ctx, count, text);
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
    if !log_in(ctx, user, rest.get(1..).unwrap_or_default(), "memcached|set")? {
        return Err(WRONG_PASSWORD);
    }
    ctx.reply.text_line(STORED);
    Ok(())
}

/// Logs the client in; false for a wrong name or password, after the delay that AUTH has, too.
fn log_in(ctx: &mut Ctx<'_>, user: &[u8], password: &[u8], command: &'static str) -> Result<bool, Stop> {
    let attempt = command::redis::connection::attempt(ctx, user, password)?;
    ctx.session.hold(ctx.ks.now(), attempt.delay_ms);
    let now = ctx.now();
    let Some(found) = attempt.user else {
        tally::count(ctx.stats, Op::Auth, Outcome::Miss);
        let name = command.rsplit('|').next().unwrap_or(command);
        note_refusal(ctx.session, ctx.host, command, name.as_bytes(), user, now);
        return Ok(false);
    };
    tally::count(ctx.stats, Op::Auth, Outcome::Hit);
    accept(ctx.session, ctx.host, found, Proof::Password, now);
    Ok(true)
}

/// The mechanism of SASL that is offered. It sends the password as it is: use it with TLS, or on one host.
const MECHANISM: &[u8] = b"PLAIN";
const SASL_OK: &str = "SASL_OK";
const NO_MECHANISM: &str = "AUTH_ERROR no such mechanism: use PLAIN";
const NO_EXCHANGE: &str = "AUTH_ERROR no exchange to continue: PLAIN takes all its data at once";
const SASL_FORMAT: &str = "AUTH_ERROR PLAIN needs an empty name or the user's own, the user and the password";
const SASL_REFUSED: &str = "AUTH_ERROR authentication failure";

/// `sasl mech`
pub fn sasl_mechanisms(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.raw_line(&[b"SASL_MECH ", MECHANISM].concat());
    Ok(())
}

/// `sasl auth PLAIN data`: the data is `[name] NUL user NUL password` (RFC 4616).
pub fn sasl_auth(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let text = match ctx.args.bytes(1).unwrap_or_default() {
        b"" => NO_EXCHANGE,
        MECHANISM => {
            let mut parts = ctx.args.bytes(2).unwrap_or_default().splitn(3, |byte| *byte == 0);
            match (parts.next(), parts.next(), parts.next()) {
                (Some(name), Some(user), Some(password)) if name.is_empty() || name == user => {
                    match log_in(ctx, user, password, "memcached|sasl")? {
                        true => SASL_OK,
                        false => SASL_REFUSED,
                    }
                }
                _ => SASL_FORMAT,
            }
        }
        _ => NO_MECHANISM,
    };
    ctx.reply.text_line(text);
    Ok(())
}

const SHUTDOWN_OFF: &str = "ERROR: shutdown not enabled";
const BAD_ARGUMENTS: Stop = Stop::error("CLIENT_ERROR invalid arguments");
const BAD_FORMAT: Stop = Stop::error("CLIENT_ERROR bad command line format");

/// The longest time before a shutdown, in seconds.
const SHUTDOWN_SECONDS_MAX: u64 = 600;

/// `shutdown [seconds|graceful]`: ends the server as SIGTERM does, after this time. The earliest of several counts.
pub fn shutdown(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    if !ctx.host.configuration.current().memcached_enable_shutdown {
        ctx.reply.text_line(SHUTDOWN_OFF);
        return Ok(());
    }
    let seconds = match (ctx.args.bytes(1), ctx.args.len()) {
        (None | Some(b"graceful"), 1 | 2) => 0,
        (Some(seconds), 2) => {
            let seconds = proto::memcached::parse_unsigned(seconds);
            seconds.filter(|seconds| *seconds <= SHUTDOWN_SECONDS_MAX).ok_or(BAD_ARGUMENTS)?
        }
        _ => return Err(BAD_FORMAT),
    };
    let request = ctx.host.part::<crate::Needed, ShutdownRequest>().clone();
    prefix::later(ctx, Purpose::End(request), i64::try_from(seconds).unwrap_or(0))?;
    ctx.reply.text_line("OK");
    Ok(())
}
