//! Strings.

use crate::error::{self, Stop};
use crate::spec::{Argument, ArgumentFlags, ArgumentKind, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::UnixMs;
use types::string::{Condition, Expiration, SetOutcome};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&GET, &SET, &INCR];

/// The key argument nearly every row starts with.
const KEY: Argument = Argument {
    name: "key",
    kind: ArgumentKind::Key(0),
    display: None,
    token: None,
    summary: None,
    since: None,
    deprecated_since: None,
    flags: ArgumentFlags::empty(),
};

static GET: CommandSpec = CommandSpec {
    name: "get",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the string under a key.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        history: &[],
        tips: &[],
        arguments: &[KEY],
        deprecated: None,
    },
    run: Run::Call(get),
};

fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    match types::string::get(ctx.ks, &key)? {
        None => ctx.reply.null(),
        Some(value) => reply_value(ctx.reply, value),
    }
    Ok(())
}

/// A value as a bulk string: copied, or shared when it is big.
#[inline]
pub(crate) fn reply_value(reply: &mut proto::ReplyBuffer, value: engine::Value<'_>) {
    match value {
        engine::Value::Bytes(bytes) => reply.bulk(bytes),
        engine::Value::Shared(shared) => reply.bulk_shared(shared.clone()),
    }
}

static SET: CommandSpec = CommandSpec {
    name: "set",
    arity: -3,
    flags: Flags::WRITE.union(Flags::DENYOOM),
    categories: Categories::STRING,
    keys: &[KeySpec::one(
        1,
        KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE).union(KeyFlags::VARIABLE_FLAGS),
    )],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Stores a string under a key, whatever was there.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        history: &[],
        tips: &[],
        arguments: &[KEY],
        deprecated: None,
    },
    run: Run::Call(set),
};

/// SET's options.
#[derive(Default)]
struct SetOptions<'a> {
    condition: Condition<'a>,
    expiration: Expiration,
    get: bool,
}

fn set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let options = if ctx.args.len() == 3 { SetOptions::default() } else { set_options(ctx)? };
    if options.get {
        match types::string::get(ctx.ks, &key)? {
            None => ctx.reply.null(),
            Some(value) => reply_value(ctx.reply, value),
        }
    }
    let value = ctx.value(2);
    let outcome = types::string::set(ctx.ks, &key, value, options.condition, options.expiration)?;
    match outcome {
        _ if options.get => {}
        SetOutcome::Stored => ctx.reply.ok(),
        SetOutcome::NotStored => ctx.reply.null(),
    }
    Ok(())
}

fn set_options<'a>(ctx: &Ctx<'a>) -> Result<SetOptions<'a>, Stop> {
    let mut options = SetOptions::default();
    let mut at = 3;
    while let Some(word) = ctx.args.bytes(at) {
        let next = ctx.args.bytes(at.saturating_add(1));
        let mut takes_value = false;
        if word.eq_ignore_ascii_case(b"nx") && options.condition == Condition::Always {
            options.condition = Condition::IfAbsent;
        } else if word.eq_ignore_ascii_case(b"xx") && options.condition == Condition::Always {
            options.condition = Condition::IfPresent;
        } else if let (true, Condition::Always, Some(expected)) =
            (word.eq_ignore_ascii_case(b"ifeq"), options.condition, next)
        {
            options.condition = Condition::IfEqual(expected);
            takes_value = true;
        } else if word.eq_ignore_ascii_case(b"get") {
            options.get = true;
        } else if word.eq_ignore_ascii_case(b"keepttl") && options.expiration == Expiration::Never {
            options.expiration = Expiration::Keep;
        } else if let (Some(unit), Expiration::Never, Some(_)) = (TimeUnit::of(word), options.expiration, next) {
            options.expiration = Expiration::At(unit.expire_time(ctx, at.saturating_add(1))?);
            takes_value = true;
        } else {
            return Err(error::SYNTAX);
        }
        at = at.saturating_add(1).saturating_add(usize::from(takes_value));
    }
    Ok(options)
}

/// How a time is given: EX, PX (from now), EXAT, PXAT (since 1970).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    seconds: bool,
    absolute: bool,
}

impl TimeUnit {
    /// The unit this word stands for.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        let unit = |seconds, absolute| Some(Self { seconds, absolute });
        match word.to_ascii_lowercase().as_slice() {
            b"ex" => unit(true, false),
            b"px" => unit(false, false),
            b"exat" => unit(true, true),
            b"pxat" => unit(false, true),
            _ => None,
        }
    }

    /// The time in argument `at` as milliseconds since 1970; it has to be positive and to fit.
    pub(crate) fn expire_time(self, ctx: &Ctx<'_>, at: usize) -> Result<UnixMs, Stop> {
        let number = ctx.integer(at)?;
        let invalid = || Stop::error_with(format!("ERR invalid expire time in '{}' command", ctx.spec.name));
        if number <= 0 {
            return Err(invalid());
        }
        let ms = if self.seconds { number.checked_mul(1000).ok_or_else(invalid)? } else { number };
        if self.absolute { Ok(ms) } else { ms.checked_add(ctx.now()).ok_or_else(invalid) }
    }
}

static INCR: CommandSpec = CommandSpec {
    name: "incr",
    arity: 2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    categories: Categories::STRING,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Adds one to the integer under a key; an absent key counts as 0.",
        since: "1.0.0",
        group: "string",
        complexity: "O(1)",
        history: &[],
        tips: &[],
        arguments: &[KEY],
        deprecated: None,
    },
    run: Run::Call(incr),
};

fn incr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let sum = types::string::increment(ctx.ks, &key, 1)?;
    ctx.reply.integer(sum);
    Ok(())
}
