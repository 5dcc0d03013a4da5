//! Commands about the connection and the server.

use crate::answer;
use crate::arguments::WRONG_COUNT;
use admin::about;
use base::DbIndex;
use command::audit::Proof;
use command::redis::connection::{accept, note_refusal};
use command::{Ctx, Stop};
use std::sync::Arc;
use store::Store;

/// The version of SSDB whose protocol this is, for clients that look at it.
pub const SSDB_VERSION: &str = "1.9.8";

/// How many databases clients use whose types have one each.
const TYPES: u32 = 4;

const WRONG_PASSWORD: Stop = Stop::error("error invalid password");

/// `ping`
pub fn ping(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    answer::done(ctx.reply);
    Ok(())
}

/// `quit`: answers, and closes the connection.
pub fn quit(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    answer::done(ctx.reply);
    ctx.session.close_after_replies = true;
    Ok(())
}

/// `version`
pub fn version(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    answer::bytes(ctx.reply, Some(version_text().as_bytes()));
    Ok(())
}

fn version_text() -> String {
    format!("{SSDB_VERSION} (Onggi {})", about::VERSION)
}

/// `auth password`, of the user `default`; `auth user password` of any. Where no password is needed, each is right.
pub fn auth(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let args = ctx.args;
    let (user, password): (&[u8], usize) = match args.len() {
        2 if ctx.host.login.users.default_user().rules().needs_no_password => {
            answer::number(ctx.reply, 1);
            return Ok(());
        }
        2 => (b"default", 1),
        3 => (args.bytes(1).unwrap_or_default(), 2),
        _ => return Err(WRONG_COUNT),
    };
    let attempt = command::redis::connection::attempt(ctx, user, args.bytes(password).unwrap_or_default())?;
    ctx.session.hold(ctx.ks.now(), attempt.delay_ms);
    let now = ctx.now();
    let Some(found) = attempt.user else {
        note_refusal(ctx.session, ctx.host, "ssdb|auth", b"auth", user, now);
        return Err(WRONG_PASSWORD);
    };
    accept(ctx.session, ctx.host, found, Proof::Password, now);
    answer::number(ctx.reply, 1);
    Ok(())
}

/// `flushdb`: removes all keys of the connection's database, or databases.
pub fn flushdb(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let spaces = &ctx.host.part::<crate::Needed, Arc<Store>>().spaces;
    let all = databases(ctx).into_iter().filter_map(|db| spaces.get(db));
    all.for_each(|space| admin::keyspaces::clear(ctx.ks, space));
    answer::done(ctx.reply);
    Ok(())
}

/// The databases of the connection.
fn databases(ctx: &Ctx<'_>) -> Vec<DbIndex> {
    let count = if ctx.session.types_from().is_some() { TYPES } else { 1 };
    (0..count).map(|number| ctx.session.database_of_type(number)).collect()
}

/// `dbsize`: the bytes of all databases in memory, about.
pub fn dbsize(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let bytes = ctx.host.part::<crate::Needed, Arc<Store>>().used_bytes();
    answer::count(ctx.reply, bytes);
    Ok(())
}

/// `info [section]`: names and values.
pub fn info(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let host = ctx.host;
    let store = host.part::<crate::Needed, Arc<Store>>();
    let lens = databases(ctx).into_iter().map(|db| store.len(db));
    let (keys, expiring) =
        lens.fold((0u64, 0u64), |all, one| (all.0.saturating_add(one.0), all.1.saturating_add(one.1)));
    let namespaces = if ctx.session.types_from().is_some() { "separate" } else { "shared" };
    let lines = [
        ("version", SSDB_VERSION.to_owned()),
        ("onggi_version", about::VERSION.to_owned()),
        ("links", host.clients.count().to_string()),
        ("total_calls", calls(ctx).to_string()),
        ("dbsize", store.used_bytes().to_string()),
        ("database", ctx.session.database_of_type(0).0.to_string()),
        ("namespaces", namespaces.to_owned()),
        ("keys", keys.to_string()),
        ("expiring_keys", expiring.to_string()),
    ];
    answer::begin(ctx.reply);
    ctx.reply.block(b"ssdb-server");
    for (name, value) in lines {
        ctx.reply.block(name.as_bytes());
        ctx.reply.block(value.as_bytes());
    }
    ctx.reply.end_packet();
    Ok(())
}

/// Calls of commands of this protocol.
fn calls(ctx: &Ctx<'_>) -> u64 {
    let figures = &ctx.host.figures;
    let rows = ctx.host.table.rows().iter().zip(0u32..);
    let calls = |index: u32| figures.sum_stats(|stats| stats.command(index).map_or(0, |command| command.calls.get()));
    rows.filter(|((name, _), _)| name.starts_with("ssdb|")).map(|(_, index)| calls(index)).fold(0, u64::saturating_add)
}
