//! The six workloads, as YCSB's `workloads/workloada` to `workloadf` have them.

use crate::error::{BenchError, Result};

/// What a client does at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// All fields of one record.
    Read,
    /// One field of one record.
    Update,
    /// A new record.
    Insert,
    /// Some records in the order of the index.
    Scan,
    /// A read, and an update of the same record.
    ReadModifyWrite,
}

/// Number of [`Operation`]s.
pub const OPERATIONS: usize = 5;

impl Operation {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Update => "update",
            Self::Insert => "insert",
            Self::Scan => "scan",
            Self::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// Which records are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Popular {
    /// By a zipfian law, the popular ones scattered.
    Scattered,
    /// By a zipfian law, the newest ones most.
    Latest,
}

/// A mix of operations.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its letter.
    pub name: &'static str,
    /// What it is like, in a few words.
    pub about: &'static str,
    /// Operations with their shares of a hundred.
    pub mix: &'static [(Operation, u64)],
    /// Which records.
    pub popular: Popular,
}

use Operation::{Insert, Read, ReadModifyWrite, Scan, Update};

/// All of them.
pub const WORKLOADS: [Workload; 6] = [
    Workload {
        name: "A",
        about: "half reads, half updates",
        mix: &[(Read, 50), (Update, 50)],
        popular: Popular::Scattered,
    },
    Workload { name: "B", about: "mostly reads", mix: &[(Read, 95), (Update, 5)], popular: Popular::Scattered },
    Workload { name: "C", about: "only reads", mix: &[(Read, 100)], popular: Popular::Scattered },
    Workload { name: "D", about: "reads of the latest", mix: &[(Read, 95), (Insert, 5)], popular: Popular::Latest },
    Workload { name: "E", about: "short scans", mix: &[(Scan, 95), (Insert, 5)], popular: Popular::Scattered },
    Workload {
        name: "F",
        about: "read-modify-write",
        mix: &[(Read, 50), (ReadModifyWrite, 50)],
        popular: Popular::Scattered,
    },
];

impl Workload {
    /// The workload of a letter, in either case.
    ///
    /// # Errors
    /// There is no such workload.
    pub fn named(name: &str) -> Result<&'static Self> {
        let found = WORKLOADS.iter().find(|workload| workload.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| BenchError::Usage(format!("--workload {name}: there are a, b, c, d, e and f")))
    }

    /// What it does.
    pub fn operations(&self) -> impl Iterator<Item = Operation> {
        self.mix.iter().map(|(operation, _)| *operation)
    }

    /// Whether it makes records.
    pub fn inserts(&self) -> bool {
        self.operations().any(|operation| operation == Insert)
    }

    /// An operation by its share. `ticket` is below 100.
    pub fn pick(&self, ticket: u64) -> Operation {
        let mut below = 0;
        let picked = self.mix.iter().find(|(_, share)| {
            below += share;
            ticket < below
        });
        picked.expect("the shares of a workload are a hundred").0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_a_hundred() {
        for workload in &WORKLOADS {
            assert_eq!(workload.mix.iter().map(|(_, share)| share).sum::<u64>(), 100, "{}", workload.name);
            let picked: Vec<_> = (0..100).map(|ticket| workload.pick(ticket)).collect();
            for (operation, share) in workload.mix {
                assert_eq!(picked.iter().filter(|other| *other == operation).count() as u64, *share);
            }
        }
        assert_eq!(Workload::named("e").unwrap().name, "E");
        assert!(Workload::named("g").is_err());
    }
}
