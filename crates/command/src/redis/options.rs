//! The options that SET, GETEX and MSETEX share: when to store, and what becomes of the expiration.

use super::expiration::TimeUnit;
use crate::Ctx;
use crate::error::{self, Stop};
use types::string::{Condition, Expiration};

/// Which of the options a command takes, besides EX, PX, EXAT and PXAT.
#[derive(Clone, Copy)]
pub(super) struct Accepted {
    /// NX, XX
    presence: bool,
    /// IFEQ, GET
    old_value: bool,
    /// KEEPTTL
    keep: bool,
    /// PERSIST
    persist: bool,
}

impl Accepted {
    pub(super) const BY_SET: Self = Self { presence: true, old_value: true, keep: true, persist: false };
    pub(super) const BY_GETEX: Self = Self { presence: false, old_value: false, keep: false, persist: true };
    pub(super) const BY_MSETEX: Self = Self { presence: true, old_value: false, keep: true, persist: false };
}

/// The options of one request. Each may be repeated; what contradicts an earlier one is a syntax error.
#[derive(Default)]
pub(super) struct Options<'a> {
    /// NX, XX or IFEQ.
    pub(super) condition: Condition<'a>,
    /// GET
    pub(super) get: bool,
    /// PERSIST
    pub(super) persist: bool,
    keep: bool,
    /// A time is at this argument.
    time: Option<(TimeUnit, usize)>,
}

impl<'a> Options<'a> {
    /// Reads the arguments from `from` on, but not yet the numbers among them: errors about these come second.
    pub(super) fn parse(ctx: &Ctx<'a>, from: usize, accepted: Accepted) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut at = from;
        while let Some(word) = ctx.args.bytes(at) {
            let value = at.saturating_add(1);
            let next = ctx.args.bytes(value);
            if accepted.presence && ctx.is_word(at, "nx") && options.can_be(Condition::IfAbsent) {
                options.condition = Condition::IfAbsent;
            } else if accepted.presence && ctx.is_word(at, "xx") && options.can_be(Condition::IfPresent) {
                options.condition = Condition::IfPresent;
            } else if let (true, Condition::Always, Some(expected)) =
                (accepted.old_value && ctx.is_word(at, "ifeq"), options.condition, next)
            {
                options.condition = Condition::IfEqual(expected);
                at = value;
            } else if accepted.old_value && ctx.is_word(at, "get") {
                options.get = true;
            } else if accepted.keep && ctx.is_word(at, "keepttl") && options.time.is_none() {
                options.keep = true;
            } else if accepted.persist && ctx.is_word(at, "persist") && options.time.is_none() {
                options.persist = true;
            } else if let (Some(unit), Some(_)) = (TimeUnit::of(word).filter(|unit| options.can_expire(*unit)), next) {
                options.time = Some((unit, value));
                at = value;
            } else {
                return Err(error::SYNTAX);
            }
            at = at.saturating_add(1);
        }
        Ok(options)
    }

    fn can_be(&self, condition: Condition<'_>) -> bool {
        self.condition == Condition::Always || self.condition == condition
    }

    fn can_expire(&self, unit: TimeUnit) -> bool {
        !self.keep && !self.persist && self.time.is_none_or(|(other, _)| other == unit)
    }

    /// What becomes of the expiration.
    pub(super) fn expiration(&self, ctx: &Ctx<'_>) -> Result<Expiration, Stop> {
        Ok(match self.time {
            Some((unit, index)) => Expiration::At(unit.positive_time(ctx, index)?),
            None if self.keep => Expiration::Keep,
            None => Expiration::Never,
        })
    }
}
