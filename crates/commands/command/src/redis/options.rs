//! The options that SET, GETEX, MSETEX, HSETEX and HGETEX share: when to store, and what becomes of the expiration.

use super::expiration::TimeUnit;
use crate::Ctx;
use crate::error::{self, Stop};
use std::ops::Range;
use types::hash::{Deadline, FieldCondition, KeyCondition};
use types::string::{Condition, Expiration};

/// Which of the options a command takes, besides EX, PX, EXAT and PXAT.
#[derive(Clone, Copy)]
pub(super) struct Accepted {
    /// NX, XX
    presence: bool,
    /// IFEQ, GET
    old_value: bool,
    /// FNX, FXX
    fields: bool,
    /// KEEPTTL
    keep: bool,
    /// PERSIST
    persist: bool,
}

impl Accepted {
    pub(super) const BY_SET: Self = Self { presence: true, old_value: true, keep: true, ..Self::NOTHING };
    pub(super) const BY_GETEX: Self = Self { persist: true, ..Self::NOTHING };
    pub(super) const BY_MSETEX: Self = Self { presence: true, keep: true, ..Self::NOTHING };
    pub(super) const BY_HSETEX: Self = Self { presence: true, fields: true, keep: true, ..Self::NOTHING };
    pub(super) const BY_HGETEX: Self = Self::BY_GETEX;

    const NOTHING: Self = Self { presence: false, old_value: false, fields: false, keep: false, persist: false };
}

/// The options of one request. Each may be repeated; what contradicts an earlier one is a syntax error.
#[derive(Default)]
pub(super) struct Options<'a> {
    /// NX, XX or IFEQ.
    pub(super) condition: Condition<'a>,
    /// FNX or FXX.
    pub(super) fields: FieldCondition,
    /// GET
    pub(super) get: bool,
    /// PERSIST
    pub(super) persist: bool,
    keep: bool,
    /// A time is at this argument.
    time: Option<(TimeUnit, usize)>,
}

impl<'a> Options<'a> {
    /// Reads these arguments, but not yet the numbers among them: errors about these come second.
    pub(super) fn parse(ctx: &Ctx<'a>, arguments: Range<usize>, accepted: Accepted) -> Result<Self, Stop> {
        let mut options = Self::default();
        let mut at = arguments.start;
        let argument = |at: usize| arguments.contains(&at).then(|| ctx.args.bytes(at)).flatten();
        while let Some(word) = argument(at) {
            let value = at.saturating_add(1);
            let next = argument(value);
            if accepted.presence && ctx.is_word(at, "nx") && options.can_be(Condition::IfAbsent) {
                options.condition = Condition::IfAbsent;
            } else if accepted.presence && ctx.is_word(at, "xx") && options.can_be(Condition::IfPresent) {
                options.condition = Condition::IfPresent;
            } else if let (true, Condition::Always, Some(expected)) =
                (accepted.old_value && ctx.is_word(at, "ifeq"), options.condition, next)
            {
                options.condition = Condition::IfEqual(expected);
                at = value;
            } else if accepted.fields && ctx.is_word(at, "fnx") && options.fields != FieldCondition::IfPresent {
                options.fields = FieldCondition::IfAbsent;
            } else if accepted.fields && ctx.is_word(at, "fxx") && options.fields != FieldCondition::IfAbsent {
                options.fields = FieldCondition::IfPresent;
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

    /// What NX and XX ask of the key of a hash.
    pub(super) fn key_condition(&self) -> KeyCondition {
        match self.condition {
            Condition::IfAbsent => KeyCondition::IfAbsent,
            Condition::IfPresent => KeyCondition::IfPresent,
            Condition::Always | Condition::IfEqual(_) => KeyCondition::Always,
        }
    }

    /// What becomes of the times of fields, and `otherwise` if the options say nothing.
    pub(super) fn deadline(&self, ctx: &Ctx<'_>, otherwise: Deadline) -> Result<Deadline, Stop> {
        Ok(match self.time {
            Some((unit, index)) => Deadline::At(unit.deadline(ctx, index)?),
            None if self.keep => Deadline::Keep,
            None if self.persist => Deadline::Never,
            None => otherwise,
        })
    }
}
