//! ACL GETUSER, LIST, USERS and LOG: users and denials as replies.

use super::{login, wrong_form};
use base::integer::parse_integer;
use command::acl::{Entry, Selector};
use command::{Ctx, Stop, error};
use proto::ReplyBuffer;

/// Entries that ACL LOG shows by default.
const LOG_COUNT_DEFAULT: usize = 10;

pub(super) fn users(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let users = login(ctx).users.all();
    ctx.reply.array(users.len());
    users.iter().for_each(|user| ctx.reply.bulk(user.name()));
    Ok(())
}

pub(super) fn list(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let users = login(ctx).users.all();
    ctx.reply.array(users.len());
    for user in &users {
        ctx.reply.bulk(&[b"user ", user.name(), b" ", &*user.rules().describe()].concat());
    }
    Ok(())
}

pub(super) fn get_user(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let Some(user) = login(ctx).users.find(&ctx.args[2]) else {
        ctx.reply.null();
        return Ok(());
    };
    let (rules, reply) = (user.rules(), &mut *ctx.reply);
    reply.map(7);
    reply.bulk(b"flags");
    reply.set(rules.flags().count());
    rules.flags().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(rules.passwords().len());
    rules.passwords().iter().for_each(|hash| reply.bulk(hash.to_string().as_bytes()));
    reply_selector(reply, rules.root());
    reply.bulk(b"selectors");
    reply.array(rules.selectors().len());
    for selector in rules.selectors() {
        reply.map(4);
        reply_selector(reply, selector);
    }
    Ok(())
}

/// Four fields of a map.
fn reply_selector(reply: &mut ReplyBuffer, selector: &Selector) {
    reply.bulk(b"commands");
    reply.bulk(selector.describe_commands().as_bytes());
    reply.bulk(b"keys");
    reply.bulk(&selector.describe_keys());
    reply.bulk(b"channels");
    reply.bulk(&selector.describe_channels());
    reply.bulk(b"databases");
    let databases = selector.describe_databases();
    reply.bulk(if databases == "resetdbs" { b"" } else { databases.as_bytes() });
}

pub(super) fn log(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let count = match ctx.args.len() {
        2 => LOG_COUNT_DEFAULT,
        3 if ctx.is_word(2, "reset") => {
            login(ctx).log.reset();
            ctx.reply.ok();
            return Ok(());
        }
        3 => usize::try_from(parse_integer(&ctx.args[2]).ok_or(error::NOT_INTEGER)?).unwrap_or(0),
        _ => return Err(wrong_form(ctx)),
    };
    let (entries, now) = (login(ctx).log.latest(count), ctx.now());
    ctx.reply.array(entries.len());
    entries.iter().for_each(|entry| reply_entry(ctx.reply, entry, now));
    Ok(())
}

fn reply_entry(reply: &mut ReplyBuffer, entry: &Entry, now: base::UnixMs) {
    reply.map(10);
    reply.bulk(b"count");
    reply.integer(entry.count.cast_signed());
    for (name, value) in [
        ("reason", entry.reason.word().as_bytes()),
        ("context", entry.origin.word().as_bytes()),
        ("object", &entry.object),
        ("username", &entry.user),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(value);
    }
    reply.bulk(b"age-seconds");
    reply.double(now.saturating_sub(entry.updated_at) as f64 / 1000.0);
    reply.bulk(b"client-info");
    reply.bulk(entry.client.as_bytes());
    for (name, value) in [
        ("entry-id", entry.id.cast_signed()),
        ("timestamp-created", entry.created_at),
        ("timestamp-last-updated", entry.updated_at),
    ] {
        reply.bulk(name.as_bytes());
        reply.integer(value);
    }
}
