//! DEBUG: for tests and for looking inside. Refused unless `enable-debug-command` allows it.
//!
//! Its subcommands are not rows of their own, as in Redis. All shards are locked while one runs; DEBUG SLEEP holds up
//! the whole server, which is what it is for.

use crate::reply_help;
use command::clients::Address;
use command::spec::Docs;
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use config::DebugCommand;
use engine::{Entry, Type, Value};
use std::sync::Arc;
use std::time::Duration;
use store::{Digest, Store};
use types::Decoder;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&DEBUG];

static DEBUG: CommandSpec = CommandSpec {
    name: "debug",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::All,
    docs: &Docs {
        summary: "Looks inside the server, for tests.",
        since: "1.0.0",
        group: "server",
        complexity: "Depends on subcommand.",
        for_operators: true,
        ..Docs::NONE
    },
    run: Run::Call(debug),
};

/// Longest DEBUG SLEEP, so that a slip of the finger ends.
const SLEEP_SECONDS_MAX: f64 = 3600.0;

fn debug(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    check_allowed(ctx)?;
    let count = ctx.args.len();
    if ctx.is_word(1, "help") && count == 2 {
        help(ctx);
    } else if ctx.is_word(1, "sleep") && count == 3 {
        sleep(ctx);
    } else if ctx.is_word(1, "object") && (count == 3 || count == 4 && ctx.is_word(3, "fast")) {
        return object(ctx);
    } else if ctx.is_word(1, "digest") && count == 2 {
        let digest = digest_of_all(ctx);
        ctx.reply.simple(digest.to_string());
    } else if ctx.is_word(1, "disk") && ctx.is_word(2, "flush") && count == 3 {
        return flush_rows(ctx);
    } else if ctx.is_word(1, "disk") && ctx.is_word(2, "drop") && count == 4 {
        return drop_rows(ctx);
    } else if ctx.is_word(1, "digest-value") {
        return digest_value(ctx);
    } else if ctx.is_word(1, "set-active-expire") && count == 3 {
        set_active_expiration(ctx);
    } else {
        let before = "ERR unknown subcommand or wrong number of arguments for '";
        let word = &ctx.args[1];
        let shown = word.get(..SHOWN_BYTES_MAX).unwrap_or(word);
        return Err(error::repeating(before, shown, "'. Try DEBUG HELP."));
    }
    Ok(())
}

/// Of a subcommand that is none the error repeats this much, as for the other commands.
const SHOWN_BYTES_MAX: usize = 128;

fn check_allowed(ctx: &Ctx<'_>) -> Result<(), Stop> {
    let allowed = match ctx.host.configuration.current().enable_debug_command {
        DebugCommand::No => false,
        DebugCommand::Yes => true,
        DebugCommand::Local => is_local(&ctx.session.info.address),
    };
    let refusal = "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it \
                   from a local connection, otherwise you need to set this option in the configuration file, and then \
                   restart the server.";
    if allowed { Ok(()) } else { Err(Stop::error(refusal)) }
}

/// Over loopback or the unix socket.
fn is_local(address: &Address) -> bool {
    match address {
        Address::Tcp(address) => address.ip().to_canonical().is_loopback(),
        Address::Unix(_) => true,
    }
}

fn sleep(ctx: &mut Ctx<'_>) {
    let seconds = std::str::from_utf8(&ctx.args[2]).ok().and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    if seconds > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(seconds.min(SLEEP_SECONDS_MAX)));
    }
    ctx.reply.ok();
}

fn object(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(2);
    let Some(entry) = ctx.ks.peek(&key)? else { return Err(error::NO_SUCH_KEY) };
    let (encoding, stamp) = (types::encoding::name(&entry), entry.stamp);
    let address: *const () = match entry.value {
        Value::Big(big) => std::ptr::from_ref(&**big).cast(),
        value => value.bytes().as_ptr().cast(),
    };
    let mut text = format!("Value at:{address:p} refcount:1 encoding:{encoding}");
    if ctx.args.len() == 3 {
        let len = match entry.kind {
            // What reads as an integer is not compressed.
            Type::String if entry.is_compressed() => text_len(types::decoder::string_len(&entry)),
            Type::String => serialized_len(entry.value.bytes()),
            _ if entry.is_compressed() => types::decoder::string_len(&entry),
            _ => types::collection::saved_len(entry.value),
        };
        text.push_str(&format!(" serializedlength:{len}"));
    }
    text.push_str(&format!(" lru:{stamp} lru_seconds_idle:{}", ctx.ks.idle_seconds(stamp)));
    ctx.reply.simple(text);
    Ok(())
}

/// The bytes of a string in an RDB file, uncompressed: an integer of up to 32 bits with its tag, or a length and the
/// text.
fn serialized_len(value: &[u8]) -> usize {
    if let Some(number) = base::integer::parse_integer(value) {
        if i8::try_from(number).is_ok() {
            return 2;
        } else if i16::try_from(number).is_ok() {
            return 3;
        } else if i32::try_from(number).is_ok() {
            return 5;
        }
    }
    text_len(value.len())
}

/// A string that is stored as its text.
fn text_len(len: usize) -> usize {
    let length_bytes = match len {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x1_0000_0000 => 5,
        _ => 9,
    };
    length_bytes + len
}

/// The digest of all entries, through the shards locked for this command.
fn digest_of_all(ctx: &mut Ctx<'_>) -> Digest {
    let (mut digest, mut decoder, now) = (Digest::default(), Decoder::default(), ctx.now());
    let store = ctx.host.part::<crate::Needed, Arc<Store>>().clone();
    for db in (0..).map(base::DbIndex) {
        let Some(space) = ctx.ks.space_of(db) else { break };
        if ctx.ks.is_empty(space) {
            continue;
        }
        let (mut entries, mut cursor) = (Digest::default(), Some(0));
        while let Some(at) = cursor {
            let mut bytes = Vec::new();
            let mut visit = |entry: &Entry<'_>| {
                // A value that cannot be read counts as an empty one.
                let entry = store.whole(*entry, &mut bytes).unwrap_or_else(|_| entry.without_value());
                entries.add_entry(Digest::of_entry(&decoder.show(store.source(), entry), now));
            };
            cursor = ctx.ks.scan(space, at, &mut visit).next;
        }
        digest.add_database(db, entries);
    }
    digest
}

fn digest_value(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (mut digests, now) = (Vec::new(), ctx.now());
    for index in 2..ctx.args.len() {
        let key = ctx.key(index);
        digests.push(ctx.ks.peek_value(&key)?.map(|entry| Digest::of_value(&entry, now)).unwrap_or_default());
    }
    ctx.reply.array(digests.len());
    digests.iter().for_each(|digest| ctx.reply.simple(digest.to_string()));
    Ok(())
}

/// 0, and what is no number, turn it off; any other number turns it on.
fn set_active_expiration(ctx: &mut Ctx<'_>) {
    let on = ctx.integer(2).is_ok_and(|number| number != 0);
    ctx.host.part::<crate::Needed, Arc<Store>>().set_active_expiration(on);
    ctx.reply.ok();
}

/// Has databases on disk flushed, without waiting for it.
fn flush_rows(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let pressure = &ctx.host.part::<crate::Needed, Arc<Store>>().pressure;
    if pressure.spaces().is_empty() {
        return Err(NO_DISK);
    } else if !pressure.want() {
        return Err(Stop::error("ERR the last flush failed: its reason is in INFO disk and in the server's log"));
    }
    ctx.reply.ok();
    Ok(())
}

/// Forgets entries in memory that are the same on disk, and tells how many bytes they took.
fn drop_rows(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    if ctx.host.part::<crate::Needed, Arc<Store>>().pressure.spaces().is_empty() {
        return Err(NO_DISK);
    }
    let bytes = u64::try_from(ctx.integer(3)?).map_err(|_| error::NOT_INTEGER)?;
    let dropped = ctx.ks.drop_clean(bytes);
    ctx.reply.integer(i64::try_from(dropped).unwrap_or(i64::MAX));
    Ok(())
}

/// See DISK.
const NO_DISK: Stop = Stop::error("ERR no database is on disk: start with --database '0 engine disk'");

fn help(ctx: &mut Ctx<'_>) {
    reply_help(
        ctx,
        &[
            "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "DIGEST",
            "    Give one number for all data: equal on servers with equal data, Redis and",
            "    Valkey among them.",
            "DIGEST-VALUE <key> [<key> ...]",
            "    Give such a number for each of these keys' values.",
            "DISK FLUSH",
            "    Have databases on disk flushed, soon.",
            "DISK DROP <bytes>",
            "    Forget this many bytes of each shard's entries that are the same on disk.",
            "OBJECT <key> [fast]",
            "    Tell how the value under the key is stored.",
            "SET-ACTIVE-EXPIRE <0|1>",
            "    Leave expired keys where they are (0), or remove them (1). Either way no read",
            "    finds them.",
            "SLEEP <seconds>",
            "    Hold up the server; fractions are allowed.",
            "HELP",
            "    Print this help.",
        ],
    );
}
