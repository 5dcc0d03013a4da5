//! When keys expire.

use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::UnixMs;
use types::generic::{ExpireCondition, Expiry};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] =
    &[&EXPIRE, &PEXPIRE, &EXPIREAT, &PEXPIREAT, &TTL, &PTTL, &EXPIRETIME, &PEXPIRETIME, &PERSIST];

/// How a time is given: in seconds or milliseconds, from now or since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeUnit {
    seconds: bool,
    absolute: bool,
}

impl TimeUnit {
    /// Seconds from now (EX).
    pub(crate) const SECONDS: Self = Self { seconds: true, absolute: false };
    /// Milliseconds from now (PX).
    pub(crate) const MILLISECONDS: Self = Self { seconds: false, absolute: false };
    /// Seconds since 1970 (EXAT).
    pub(crate) const UNIX_SECONDS: Self = Self { seconds: true, absolute: true };
    /// Milliseconds since 1970 (PXAT).
    pub(crate) const UNIX_MILLISECONDS: Self = Self { seconds: false, absolute: true };

    /// The unit this option stands for.
    pub(crate) fn of(word: &[u8]) -> Option<Self> {
        [
            ("ex", Self::SECONDS),
            ("px", Self::MILLISECONDS),
            ("exat", Self::UNIX_SECONDS),
            ("pxat", Self::UNIX_MILLISECONDS),
        ]
        .into_iter()
        .find_map(|(name, unit)| word.eq_ignore_ascii_case(name.as_bytes()).then_some(unit))
    }

    /// The argument at `index` as a time in milliseconds since 1970; the number has to be above zero.
    pub(crate) fn positive_time(self, ctx: &Ctx<'_>, index: usize) -> Result<UnixMs, Stop> {
        let number = ctx.integer(index)?;
        if number <= 0 {
            return Err(invalid_time(ctx));
        }
        self.time(ctx, number)
    }

    /// The argument at `index` as a time in milliseconds since 1970; the number has to be zero at least.
    pub(crate) fn deadline(self, ctx: &Ctx<'_>, index: usize) -> Result<UnixMs, Stop> {
        let number = ctx.integer(index)?;
        if number < 0 {
            return Err(invalid_time(ctx));
        }
        self.time(ctx, number)
    }

    /// A time in milliseconds since 1970, as this unit shows it at `now`. Only live keys and fields are asked about, so
    /// it is never past.
    pub(crate) fn show(self, at: UnixMs, now: UnixMs) -> i64 {
        let ms = if self.absolute { at } else { left(at, now) };
        if self.seconds { rounded_seconds(ms) } else { ms }
    }

    /// A number of this unit as a time in milliseconds since 1970.
    fn time(self, ctx: &Ctx<'_>, number: i64) -> Result<UnixMs, Stop> {
        let ms = if self.seconds { number.checked_mul(1000) } else { Some(number) };
        let time = if self.absolute { ms } else { ms.and_then(|ms| ms.checked_add(ctx.now())) };
        time.ok_or_else(|| invalid_time(ctx))
    }
}

#[cold]
fn invalid_time(ctx: &Ctx<'_>) -> Stop {
    Stop::error_with(format!("ERR invalid expire time in '{}' command", ctx.spec.name))
}

static EXPIRE: CommandSpec = CommandSpec {
    name: "expire",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets how many seconds a key has left.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        history: &[("7.0.0", "Takes conditions: `NX`, `XX`, `GT`, `LT`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("seconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .since("7.0.0")
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(expire),
};

fn expire(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_expiration(ctx, TimeUnit::SECONDS)
}

static PEXPIRE: CommandSpec = CommandSpec {
    name: "pexpire",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets how many milliseconds a key has left.",
        since: "2.6.0",
        group: "generic",
        complexity: "O(1)",
        history: &[("7.0.0", "Takes conditions: `NX`, `XX`, `GT`, `LT`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::integer("milliseconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .since("7.0.0")
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(pexpire),
};

fn pexpire(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_expiration(ctx, TimeUnit::MILLISECONDS)
}

static EXPIREAT: CommandSpec = CommandSpec {
    name: "expireat",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets the second at which a key expires.",
        since: "1.2.0",
        group: "generic",
        complexity: "O(1)",
        history: &[("7.0.0", "Takes conditions: `NX`, `XX`, `GT`, `LT`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::unix_time("unix-time-seconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .since("7.0.0")
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(expireat),
};

fn expireat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_expiration(ctx, TimeUnit::UNIX_SECONDS)
}

static PEXPIREAT: CommandSpec = CommandSpec {
    name: "pexpireat",
    arity: -3,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Sets the millisecond at which a key expires.",
        since: "2.6.0",
        group: "generic",
        complexity: "O(1)",
        history: &[("7.0.0", "Takes conditions: `NX`, `XX`, `GT`, `LT`.")],
        arguments: &[
            Argument::key("key", 0),
            Argument::unix_time("unix-time-milliseconds"),
            Argument::one_of(
                "condition",
                &[
                    Argument::word("nx", "NX"),
                    Argument::word("xx", "XX"),
                    Argument::word("gt", "GT"),
                    Argument::word("lt", "LT"),
                ],
            )
            .since("7.0.0")
            .optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(pexpireat),
};

fn pexpireat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    set_expiration(ctx, TimeUnit::UNIX_MILLISECONDS)
}

fn set_expiration(ctx: &mut Ctx<'_>, unit: TimeUnit) -> Result<(), Stop> {
    let condition = condition(ctx.args.from(3))?;
    let at = unit.time(ctx, ctx.integer(2)?)?;
    let key = ctx.key(1);
    let set = types::generic::expire_at(ctx.ks, &key, at, condition)?;
    ctx.reply.integer(i64::from(set));
    Ok(())
}

/// The condition in these arguments: the words after the time.
pub(super) fn condition<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<ExpireCondition, Stop> {
    let mut condition = ExpireCondition::default();
    for word in words {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let option = match () {
            () if is("nx") => &mut condition.if_none,
            () if is("xx") => &mut condition.if_some,
            () if is("gt") => &mut condition.if_later,
            () if is("lt") => &mut condition.if_earlier,
            () => return Err(error::repeating("ERR Unsupported option ", word, "")),
        };
        *option = true;
    }
    if condition.if_none && (condition.if_some || condition.if_later || condition.if_earlier) {
        return Err(Stop::error("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if condition.if_later && condition.if_earlier {
        return Err(Stop::error("ERR GT and LT options at the same time are not compatible"));
    }
    Ok(condition)
}

static TTL: CommandSpec = CommandSpec {
    name: "ttl",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives how many seconds a key has left.",
        since: "1.0.0",
        group: "generic",
        complexity: "O(1)",
        history: &[("2.8.0", "Answers -2 for a key that is not there.")],
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(ttl),
};

fn ttl(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let now = ctx.now();
    reply_expiry(ctx, |at| rounded_seconds(left(at, now)))
}

static PTTL: CommandSpec = CommandSpec {
    name: "pttl",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives how many milliseconds a key has left.",
        since: "2.6.0",
        group: "generic",
        complexity: "O(1)",
        history: &[("2.8.0", "Answers -2 for a key that is not there.")],
        tips: &["nondeterministic_output"],
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(pttl),
};

fn pttl(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let now = ctx.now();
    reply_expiry(ctx, |at| left(at, now))
}

static EXPIRETIME: CommandSpec = CommandSpec {
    name: "expiretime",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the second at which a key expires.",
        since: "7.0.0",
        group: "generic",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(expiretime),
};

fn expiretime(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_expiry(ctx, rounded_seconds)
}

static PEXPIRETIME: CommandSpec = CommandSpec {
    name: "pexpiretime",
    arity: 2,
    flags: Flags::READONLY.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the millisecond at which a key expires.",
        since: "7.0.0",
        group: "generic",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(pexpiretime),
};

fn pexpiretime(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    reply_expiry(ctx, |at| at)
}

/// -2 for an absent key, -1 for one that stays, or what `show` makes of the time.
fn reply_expiry(ctx: &mut Ctx<'_>, show: impl FnOnce(UnixMs) -> i64) -> Result<(), Stop> {
    let key = ctx.key(1);
    let shown = match types::generic::expiry(ctx.ks, &key)? {
        Expiry::Absent => -2,
        Expiry::Never => -1,
        Expiry::At(at) => show(at),
    };
    ctx.reply.integer(shown);
    Ok(())
}

fn left(at: UnixMs, now: UnixMs) -> i64 {
    at.saturating_sub(now).max(0)
}

/// Milliseconds as the nearest second. Live keys expire after 1970, so this is never asked about the past.
fn rounded_seconds(ms: i64) -> i64 {
    (ms.max(0).unsigned_abs().saturating_add(500) / 1000) as i64
}

static PERSIST: CommandSpec = CommandSpec {
    name: "persist",
    arity: 2,
    flags: Flags::WRITE.union(Flags::FAST),
    categories: Categories::KEYSPACE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Makes a key stay that would have expired.",
        since: "2.2.0",
        group: "generic",
        complexity: "O(1)",
        arguments: &[Argument::key("key", 0)],
        ..Docs::NONE
    },
    run: Run::Call(persist),
};

fn persist(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let changed = types::generic::persist(ctx.ks, &key)?;
    ctx.reply.integer(i64::from(changed));
    Ok(())
}
