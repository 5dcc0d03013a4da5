//! Hits and misses of commands, as `stats` shows them: for each command, how often it found what it was asked for.

use command::stats::{OUTCOMES_MAX, WorkerStats};

/// A command whose outcomes are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Get,
    Set,
    Delete,
    Incr,
    Decr,
    Cas,
    Touch,
    LopCreate,
    LopInsert,
    LopDelete,
    LopGet,
    SopCreate,
    SopInsert,
    SopDelete,
    SopGet,
    SopExist,
    MopCreate,
    MopInsert,
    MopUpdate,
    MopDelete,
    MopGet,
    BopCreate,
    BopInsert,
    BopUpdate,
    BopDelete,
    BopIncr,
    BopDecr,
    BopGet,
    BopCount,
    BopPosition,
    BopPwg,
    BopGbp,
    BopMget,
    BopSmget,
    GetAttr,
    SetAttr,
    Auth,
}

/// How many there are.
pub const OPS: usize = Op::Auth as usize + 1;

/// What has become of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It found what it was asked for.
    Hit,
    /// It found no key.
    Miss,
    /// It found the key, and not the element; of `cas`: the item with another id.
    None,
}

const OUTCOMES: usize = 3;
const _: () = assert!(OPS * OUTCOMES <= OUTCOMES_MAX);

impl Outcome {
    /// The outcome that a collection command reports by its status. `None` for one that is neither a hit nor a miss.
    pub fn of_status(status: &str) -> Option<Self> {
        match status {
            "END" | "STORED" | "CREATED_STORED" | "DELETED" => Some(Self::Hit),
            "NOT_FOUND" | "UNREADABLE" => Some(Self::Miss),
            "NOT_FOUND_ELEMENT" | "OUT_OF_RANGE" | "NOT_EXIST" => Some(Self::None),
            "TYPE_MISMATCH" | "BKEY_MISMATCH" | "EFLAG_MISMATCH" | "OVERFLOWED" | "ELEMENT_EXISTS" | "EXISTS"
            | "NOTHING_TO_UPDATE" => None,
            _ if status.contains("ERROR") => None,
            _ => Some(Self::Hit),
        }
    }
}

/// The number under which an outcome is counted.
fn number(op: Op, outcome: Outcome) -> usize {
    (op as usize).saturating_mul(OUTCOMES).saturating_add(outcome as usize)
}

/// Counts an outcome.
#[inline]
pub fn count(stats: &WorkerStats, op: Op, outcome: Outcome) {
    stats.outcomes.count(number(op, outcome));
}

/// Counts an item that is longer than allowed.
pub fn count_too_large(stats: &WorkerStats) {
    count(stats, TOO_LARGE.0, TOO_LARGE.1);
}

/// Stores have no other outcomes that are counted.
pub const TOO_LARGE: (Op, Outcome) = (Op::Set, Outcome::None);

/// One worker's count of an outcome.
pub fn get(stats: &WorkerStats, op: Op, outcome: Outcome) -> u64 {
    stats.outcomes.get(number(op, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_a_count_of_its_own() {
        let stats = WorkerStats::new(0);
        count(&stats, Op::Get, Outcome::None);
        count(&stats, Op::Set, Outcome::Hit);
        count(&stats, Op::SetAttr, Outcome::None);
        assert_eq!(get(&stats, Op::Get, Outcome::None), 1);
        assert_eq!(get(&stats, Op::Get, Outcome::Miss), 0);
        assert_eq!(get(&stats, Op::SetAttr, Outcome::None), 1);
        stats.reset();
        assert_eq!(get(&stats, Op::SetAttr, Outcome::None), 0);
    }

    #[test]
    fn statuses_are_hits_misses_or_neither() {
        for (status, outcome) in [
            ("STORED", Some(Outcome::Hit)),
            ("CREATED_STORED", Some(Outcome::Hit)),
            ("TRIMMED", Some(Outcome::Hit)),
            ("COUNT=0", Some(Outcome::Hit)),
            ("17", Some(Outcome::Hit)),
            ("NOT_FOUND", Some(Outcome::Miss)),
            ("NOT_FOUND_ELEMENT", Some(Outcome::None)),
            ("TYPE_MISMATCH", None),
            ("ATTR_ERROR bad value", None),
        ] {
            assert_eq!(Outcome::of_status(status), outcome, "{status}");
        }
    }
}
