//! What the rows of scripts and of functions share: their flags, and the keys that a request declares.

use command::{Ctx, Flags, KeyFlags, KeySpec, Stop};

const RUNS: Flags = Flags::NOSCRIPT
    .union(Flags::STALE)
    .union(Flags::SKIP_MONITOR)
    .union(Flags::NO_MANDATORY_KEYS)
    .union(Flags::MOVABLEKEYS);

pub(crate) const CHANGES: Flags = RUNS.union(Flags::MAY_REPLICATE);

pub(crate) const READS: Flags = RUNS.union(Flags::READONLY);

pub(crate) const CHANGED_KEYS: KeySpec =
    KeySpec::counted(2, 0, 1, 1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE));

pub(crate) const READ_KEYS: KeySpec = KeySpec::counted(2, 0, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS));

/// The number of keys that a call of a function says it has.
pub(crate) fn key_count_of(ctx: &Ctx<'_>) -> Result<usize, Stop> {
    ctx.integer(2).map_err(|_| Stop::error("ERR Bad number of keys provided"))?;
    key_count(ctx)
}

/// The number of keys that a request says it has.
pub(crate) fn key_count(ctx: &Ctx<'_>) -> Result<usize, Stop> {
    let count = ctx.integer(2)?;
    if count > i64::try_from(ctx.args.len()).unwrap_or(i64::MAX).saturating_sub(3) {
        return Err(Stop::error("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(count).map_err(|_| Stop::error("ERR Number of keys can't be negative"))
}
