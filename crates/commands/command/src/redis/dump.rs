//! Values as bytes that other servers load, and back: DUMP, RESTORE.

use crate::error::{self, Stop};
use crate::limits::REPLY_BYTES_MAX;
use crate::payload::{BTREE, content_bytes, payload, payload_of_tree, stop_of};
use crate::spec::{Argument, Docs};
use crate::work::thread::Operand;
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::UnixMs;
use engine::{Key, SharedBytes, Type, Usage, Value};
use rdb::{Place, RdbError, stored};
use types::Kept;
use types::collection::{Made, Maker};
use types::restore::Restored;

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&DUMP, &RESTORE];

static DUMP: CommandSpec = CommandSpec {
    name: "dump",
    arity: 2,
    flags: Flags::READONLY,
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives what is stored under a key as bytes that RESTORE takes, here and on other servers.",
        since: "2.6.0",
        group: "generic",
        complexity: "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(dump),
};

fn dump(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let big = ctx.ks.peek(&key)?.and_then(|entry| match entry.value {
        Value::Big(tree) => Some((content_bytes(&entry), entry.kind, tree.clone())),
        _ => None,
    });
    if let Some((bytes, kind, tree)) = big {
        if kind == Type::Btree {
            return Err(BTREE);
        }
        if bytes > REPLY_BYTES_MAX {
            return Err(error::REPLY_TOO_LONG);
        }
        let payload = ctx.made_elsewhere(Operand::Tree(tree.clone()), move || {
            payload_of_tree(kind, &tree).map_err(|error| stop_of(&error))
        })?;
        // A client's read.
        ctx.ks.read(&key)?;
        return ctx.reply_text(payload?);
    }
    let Some(entry) = ctx.ks.read(&key)? else {
        ctx.reply.null();
        return Ok(());
    };
    let payload = payload(&entry)?;
    ctx.reply_text(payload)
}

static RESTORE: CommandSpec = CommandSpec {
    name: "restore",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::KEYSPACE.union(Categories::DANGEROUS),
    keys: &[KeySpec::one(1, KeyFlags::OW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores under a key what DUMP gave, here or on another server.",
        since: "2.6.0",
        group: "generic",
        complexity: "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the number of objects composing the value and M their average size. For small string values the time complexity is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
        history: &[
            ("3.0.0", "Takes `REPLACE`."),
            ("5.0.0", "Takes `ABSTTL`."),
            ("5.0.0", "Takes `IDLETIME` and `FREQ`."),
        ],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("ttl"),
            Argument::string("serialized-value"),
            Argument::word("replace", "REPLACE").since("3.0.0").optional(),
            Argument::word("absttl", "ABSTTL").since("5.0.0").optional(),
            Argument::integer("seconds").after("IDLETIME").since("5.0.0").optional(),
            Argument::integer("frequency").after("FREQ").since("5.0.0").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(restore),
};

/// The key exists, and RESTORE came without REPLACE.
const BUSY_KEY: Stop = Stop::error("BUSYKEY Target key name already exists.");
const WRONG_FOOTER: Stop = Stop::error("ERR DUMP payload version or checksum are wrong");
const BAD_FORMAT: Stop = Stop::error("ERR Bad data format");

fn restore(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let options = Options::parse(ctx)?;
    let key = ctx.key(1);
    let is_taken = ctx.ks.read_to_edit(&key)?.is_some();
    if is_taken && !options.replace {
        return Err(BUSY_KEY);
    }
    let expire_at = options.expiration(ctx)?;

    let limit = ctx.host.string_limit.bytes();
    if let Value::Shared(payload) = ctx.value(3) {
        let (maker, payload) = (Maker::of(ctx.ks), payload.clone());
        let read = ctx.made_elsewhere(Operand::Bytes(payload.clone()), move || Read::of(&payload, limit, &maker))?;
        match read? {
            Read::String(bytes) => {
                types::restore::restore(ctx.ks, &key, Restored::String(Value::Shared(&bytes)), expire_at)?;
            }
            Read::Collection(made) => types::restore::restore(ctx.ks, &key, Restored::Made(&made), expire_at)?,
        }
    } else {
        restore_short(ctx, &key, limit, expire_at)?;
    }
    if let Some(usage) = options.usage(ctx) {
        ctx.ks.set_usage(&key, usage);
    }
    ctx.reply.ok();
    Ok(())
}

/// Stores what a payload holds that is no more than some kilobytes.
fn restore_short(ctx: &mut Ctx<'_>, key: &Key<'_>, limit: u64, expire_at: Option<UnixMs>) -> Result<(), Stop> {
    let (form, value) = rdb::dump::read_within(&ctx.args[3], limit).map_err(|error| stop(&error))?;
    let mut changes = ctx.ks.take_buffer();
    if let rdb::Value::String(bytes) = value {
        let bytes = Kept::from(bytes);
        types::restore::restore(ctx.ks, key, Restored::String(bytes.value()), expire_at)?;
    } else {
        let kind = stored::put_changes(&value, form, &mut changes).ok_or(BAD_FORMAT)?;
        // Two copies of a big value are enough.
        drop(value);
        types::restore::restore(ctx.ks, key, Restored::Collection { kind, changes: &changes }, expire_at)?;
    }
    ctx.ks.give_buffer(changes);
    Ok(())
}

/// What a long payload holds.
enum Read {
    String(SharedBytes),
    Collection(Made),
}

impl Read {
    fn of(payload: &[u8], limit: u64, maker: &Maker) -> Result<Self, Stop> {
        let (form, value) = rdb::dump::read_within(payload, limit).map_err(|error| stop(&error))?;
        if let rdb::Value::String(bytes) = value {
            return Ok(Self::String(SharedBytes::new(bytes)));
        }
        let mut changes = Vec::new();
        let kind: Type = stored::put_changes(&value, form, &mut changes).ok_or(BAD_FORMAT)?;
        // Two copies of a big value are enough.
        drop(value);
        Ok(Self::Collection(maker.make(kind, None, changes)))
    }
}

/// What is wrong with a payload, in the few words there are.
fn stop(error: &RdbError) -> Stop {
    match error {
        RdbError::Version { .. } | RdbError::Checksum { .. } | RdbError::Truncated { place: Place::Footer, .. } => {
            WRONG_FOOTER
        }
        RdbError::TooLong { .. } => error::STRING_TOO_LONG,
        _ => BAD_FORMAT,
    }
}

/// The options after the payload.
#[derive(Default)]
struct Options {
    replace: bool,
    is_absolute: bool,
    idle_seconds: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(ctx: &Ctx<'_>) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut at = 4;
        while at < ctx.args.len() {
            let number = at.saturating_add(1);
            let has_number = number < ctx.args.len();
            if ctx.is_word(at, "replace") {
                options.replace = true;
            } else if ctx.is_word(at, "absttl") {
                options.is_absolute = true;
            } else if ctx.is_word(at, "idletime") && has_number && options.frequency.is_none() {
                let seconds = u64::try_from(ctx.integer(number)?).ok();
                options.idle_seconds = Some(seconds.ok_or(INVALID_IDLE_TIME)?);
                at = number;
            } else if ctx.is_word(at, "freq") && has_number && options.idle_seconds.is_none() {
                let frequency = u8::try_from(ctx.integer(number)?).ok();
                options.frequency = Some(frequency.ok_or(INVALID_FREQUENCY)?);
                at = number;
            } else {
                return Err(error::SYNTAX);
            }
            at = at.saturating_add(1);
        }
        Ok(options)
    }

    /// When the key expires; a time that is beyond all others is over, as it is in Valkey.
    fn expiration(&self, ctx: &Ctx<'_>) -> Result<Option<UnixMs>, Stop> {
        match ctx.integer(2)? {
            ..0 => Err(INVALID_TTL),
            0 => Ok(None),
            at if self.is_absolute => Ok(Some(at)),
            ttl => Ok(Some(ctx.now().checked_add(ttl).unwrap_or(0))),
        }
    }

    /// What the policy in force wants to know of the key's use.
    fn usage(&self, ctx: &Ctx<'_>) -> Option<Usage> {
        match ctx.host.stamp_meaning.is_frequency() {
            true => self.frequency.map(Usage::Frequency),
            false => self.idle_seconds.map(Usage::IdleSeconds),
        }
    }
}

const INVALID_TTL: Stop = Stop::error("ERR Invalid TTL value, must be >= 0");
const INVALID_IDLE_TIME: Stop = Stop::error("ERR Invalid IDLETIME value, must be >= 0");
const INVALID_FREQUENCY: Stop = Stop::error("ERR Invalid FREQ value, must be >= 0 and <= 255");
