//! MIGRATE: keys to another server, and away from here.

use crate::error::{self, Stop};
use crate::limits::REPLY_BYTES_MAX;
use crate::spec::{Argument, Docs, Keyword};
use crate::work::remote::{Content, Migration, RemoteWork, SendOutcome, Sending, SentKey};
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&MIGRATE];

/// What any step of the exchange may take when the request says nothing sensible.
const TIMEOUT_MS_DEFAULT: u64 = 1000;
/// Where options begin.
const OPTIONS: usize = 6;

const FLAGS: KeyFlags = KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE);
static KEYS: Keyword = Keyword { word: "KEYS", from: -2, is_optional: true, find: keys_word };

static MIGRATE: CommandSpec = CommandSpec {
    name: "migrate",
    arity: -6,
    flags: Flags::WRITE.union(Flags::MOVABLEKEYS).union(Flags::AUDITED),
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    keys: &[KeySpec::one(3, FLAGS).only_if(|args| keys_word(args).is_none()), KeySpec::all_behind(&KEYS, FLAGS)],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sends keys to another server, and removes them here when that has them.",
        since: "2.6.0",
        group: "generic",
        complexity: "This command actually executes a DUMP+DEL in the source instance, and a RESTORE in the target instance. See the pages of these commands for time complexity. Also an O(N) data transfer between the two instances is performed.",
        history: &[
            ("3.0.0", "Takes `COPY` and `REPLACE`."),
            ("3.0.6", "Takes `KEYS`."),
            ("4.0.7", "Takes `AUTH`."),
            ("6.0.0", "Takes `AUTH2`."),
        ],
        tips: &["nondeterministic_output"],
        arguments: &[
            Argument::string("host"),
            Argument::integer("port"),
            Argument::one_of("key-selector", &[Argument::key("key", 0), Argument::word("empty-string", "")]),
            Argument::integer("destination-db"),
            Argument::integer("timeout"),
            Argument::word("copy", "COPY").since("3.0.0").optional(),
            Argument::word("replace", "REPLACE").since("3.0.0").optional(),
            Argument::one_of(
                "authentication",
                &[
                    Argument::string("auth").displayed("password").after("AUTH").since("4.0.7"),
                    Argument::block("auth2", &[Argument::string("username"), Argument::string("password")])
                        .after("AUTH2")
                        .since("6.0.0"),
                ],
            )
            .optional(),
            Argument::key("keys", 1).displayed("key").after("KEYS").since("3.0.6").optional().repeated(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(migrate),
};

/// Where KEYS stands, which a password may be too.
fn keys_word(args: &Args<'_>) -> Option<usize> {
    let mut at = OPTIONS;
    while at < args.len() {
        let is = |word: &str| args[at].eq_ignore_ascii_case(word.as_bytes());
        if is("keys") {
            return Some(at);
        }
        let values = if is("auth2") { 2 } else { usize::from(is("auth")) };
        at = at.saturating_add(values).saturating_add(1);
    }
    None
}

fn migrate(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = Options::parse(ctx)?;
    let found = read(ctx, &options)?;
    let Some(remote) = ctx.take_work::<RemoteWork>() else {
        return match found.is_empty() {
            true => no_key(ctx),
            false => send(ctx, &options, found, Vec::new()),
        };
    };
    let Migration { keys, arrived, .. } = &remote.0.migration;
    let Some(outcome) = remote.0.outcome() else { return Err(UNKNOWN) };
    let answered = keys.iter().zip(&outcome.is_there).filter(|(_, is_there)| **is_there).map(|(sent, _)| sent);
    let there: BTreeMap<&[u8], &SentKey> = arrived.iter().chain(answered).map(|sent| (&sent.key[..], sent)).collect();
    // A key that another command has removed here stays on the other server, as if the removal had come later.
    let found = found.into_iter().filter_map(|now| Some((*there.get(&now.key[..])?, now)));
    let (same, changed): (Vec<_>, Vec<_>) = found.partition(|(sent, now)| now.is_same(sent));
    let error = error(outcome);
    if options.copy {
        return error.map_or_else(|| ok(ctx), Err);
    }
    if error.is_none() && !changed.is_empty() && ctx.may_begin_work() {
        // Sent again, over what was sent before.
        let again = changed.into_iter().map(|(_, now)| SentKey { replace: true, ..now }).collect();
        return send(ctx, &options, again, same.into_iter().map(|(_, now)| now).collect());
    }
    for (sent, _) in &same {
        let key = ctx.ks.key(&sent.key);
        types::generic::delete(ctx.ks, &key)?;
    }
    match error.or_else(|| changed_meanwhile(changed.len(), there.len())) {
        // What was removed stays so: this is a reply then, and not a command that has done nothing.
        Some(Stop::Error(text)) if !same.is_empty() => ctx.reply.error(text),
        Some(stop) => return Err(stop),
        None => ctx.reply.ok(),
    }
    Ok(())
}

/// What went wrong on the way.
fn error(outcome: &SendOutcome) -> Option<Stop> {
    let refused = |text: &Vec<u8>| [b"ERR Target instance replied with error: ", &text[..]].concat();
    let failed = outcome.failure.as_ref().map(|failure| format!("IOERR error or timeout {failure}").into_bytes());
    failed.or_else(|| outcome.refusal.as_ref().map(refused)).map(Stop::error_with)
}

fn changed_meanwhile(count: usize, of: usize) -> Option<Stop> {
    let text = || {
        format!(
            "TRYAGAIN {count} of {of} keys were changed while they were sent: they are still here, and the target has them as they were before"
        )
    };
    (count > 0).then(|| Stop::error_with(text()))
}

fn ok(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.ok();
    Ok(())
}

const IN_TRANSACTION: Stop =
    Stop::error("ERR MIGRATE cannot send keys inside MULTI, where everybody else would wait for the other server");
const UNKNOWN: Stop = Stop::error("ERR MIGRATE does not know what became of its keys: they are still here");
const NO_MIGRATOR: Stop = Stop::error("ERR MIGRATE is not possible here: this server does not open connections");
const TOO_MUCH: Stop = Stop::error("ERR the keys are more than 512 MB to send at once: name fewer of them");

fn no_key(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    ctx.reply.simple("NOKEY");
    Ok(())
}

/// The keys that are there, as they would be sent now.
fn read(ctx: &mut Ctx<'_>, options: &Options) -> Result<Vec<SentKey>, Stop> {
    let (mut found, mut bytes) = (Vec::new(), 0usize);
    for at in options.keys.clone() {
        let key = ctx.key(at);
        let now = ctx.now();
        let Some(entry) = ctx.ks.read(&key)? else { continue };
        let content = Content::of(&entry)?;
        bytes = bytes.saturating_add(content.bytes());
        if bytes > REPLY_BYTES_MAX {
            return Err(TOO_MUCH);
        }
        let expire_at = entry.expire_at;
        // None left is not no end.
        let ttl_ms = expire_at.map_or(0, |at| at.saturating_sub(now).max(1));
        found.push(SentKey { key: key.bytes.to_vec(), content, expire_at, ttl_ms, replace: options.replace });
    }
    Ok(found)
}

/// Has them sent, and the request run again when they have been.
fn send(ctx: &mut Ctx<'_>, options: &Options, keys: Vec<SentKey>, arrived: Vec<SentKey>) -> Result<(), Stop> {
    if !ctx.may_begin_work() {
        return Err(IN_TRANSACTION);
    }
    let migrator = ctx.host.migrator.as_ref().ok_or(NO_MIGRATOR)?;
    let text = |at: usize| String::from_utf8_lossy(&ctx.args[at]).into_owned();
    let login = options.login.clone().map(|at| ctx.args[at].to_vec()).collect();
    let migration = Migration {
        host: text(1),
        port: text(2),
        db: options.db,
        timeout_ms: options.timeout_ms,
        login,
        keys,
        arrived,
    };
    let info = &ctx.session.info;
    let closer = ctx.host.clients.closer();
    let sending = Arc::new(Sending::new(migration, info.worker(), info.id, closer));
    migrator.send(sending.clone());
    Err(ctx.begin_work(RemoteWork(sending)))
}

struct Options {
    copy: bool,
    replace: bool,
    /// The arguments of AUTH.
    login: std::ops::Range<usize>,
    /// The arguments that are keys.
    keys: std::ops::Range<usize>,
    db: i64,
    timeout_ms: u64,
}

impl Options {
    fn parse(ctx: &Ctx<'_>) -> Result<Self, Stop> {
        let (mut copy, mut replace, mut login, mut keys) = (false, false, 0..0, 3..4);
        let mut at = OPTIONS;
        while at < ctx.args.len() {
            let value = at.saturating_add(1);
            let left = ctx.args.len().saturating_sub(value);
            if ctx.is_word(at, "copy") {
                copy = true;
            } else if ctx.is_word(at, "replace") {
                replace = true;
            } else if ctx.is_word(at, "auth") && left >= 1 {
                login = value..value.saturating_add(1);
                at = value;
            } else if ctx.is_word(at, "auth2") && left >= 2 {
                login = value..value.saturating_add(2);
                at = value.saturating_add(1);
            } else if ctx.is_word(at, "keys") {
                if !ctx.args[3].is_empty() {
                    return Err(KEY_AND_KEYS);
                }
                keys = value..ctx.args.len();
                break;
            } else {
                return Err(error::SYNTAX);
            }
            at = at.saturating_add(1);
        }
        let timeout_ms = u64::try_from(ctx.integer(5)?).ok().filter(|ms| *ms > 0).unwrap_or(TIMEOUT_MS_DEFAULT);
        Ok(Self { copy, replace, login, keys, db: ctx.integer(4)?, timeout_ms })
    }
}

const KEY_AND_KEYS: Stop =
    Stop::error("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
