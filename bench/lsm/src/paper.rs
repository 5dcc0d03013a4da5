//! The figures of the PlexDB paper: level deduplication at four thresholds, compared with LevelDB and LSM-trie.
//!
//! The paper writes 20 GB in records of 210 bytes, each key ten times; so does this workload, at any size. The paper
//! does not say how space was sampled, how many runs a level has, and whether its log was on. Here means are those of
//! the update phase, and all logs are counted except LSM-trie's own.

use serde::Serialize;

use crate::engines::{Contender, Dials, Name};
use crate::report::Outcome;

/// Entries per distinct key at which a level is merged.
const THRESHOLDS: [f64; 4] = [1.2, 1.4, 1.6, 1.8];

/// The stores of the paper; LevelDB only where it is linked.
pub fn contenders(dials: Dials) -> Vec<Contender> {
    let mut contenders = Vec::new();
    #[cfg(feature = "leveldb")]
    contenders.push(Contender::new(Name::Leveldb, dials));
    for duplicates_max in THRESHOLDS {
        contenders.push(Contender {
            label: ldc(duplicates_max),
            name: Name::PlexLdc,
            dials: Dials { duplicates_max, ..dials },
        });
    }
    contenders.push(Contender::new(Name::PlexTiered, dials));
    contenders.push(Contender::new(Name::PlexTrie, dials));
    contenders
}

fn ldc(threshold: f64) -> String {
    format!("plex-ldc {threshold}")
}

/// A sentence of the paper, held against a run.
#[derive(Debug, Serialize)]
pub struct Claim {
    pub says: String,
    pub reached: f64,
    pub holds: bool,
}

/// All sentences for which the run has the figures.
pub fn claims(outcomes: &[Outcome]) -> Vec<Claim> {
    let of = |label: &str| outcomes.iter().find(|outcome| outcome.engine == label).map(|outcome| &outcome.writing);
    let mean = |label: &str| of(label).map(|writing| writing.space_mean());
    let written = |label: &str| of(label).map(|writing| writing.write_amplification);
    let ratio = |one: Option<f64>, other: Option<f64>| Some(one? / other?);
    let near_one = |ratio: f64| (0.85..=1.15).contains(&ratio);
    let mut claims = Vec::new();
    let mut claim = |says: String, reached: Option<f64>, holds: &dyn Fn(f64) -> bool| {
        claims.extend(reached.map(|reached| Claim { says, reached, holds: holds(reached) }));
    };
    let says = "mean space at 1.2 is within 15 % of LevelDB's; share of it".to_owned();
    claim(says, ratio(mean(&ldc(1.2)), mean("leveldb")), &near_one);
    claim("mean space at 1.8 is 1.7 to 2.2".to_owned(), mean(&ldc(1.8)), &|mean| (1.7..=2.2).contains(&mean));
    for threshold in [1.6, 1.8] {
        for (label, name) in [("plex-tiered", "tiers'"), ("plex-trie", "LSM-trie's")] {
            let says = format!("writing at {threshold} is within 15 % of {name}; share of it");
            claim(says, ratio(written(&ldc(threshold)), written(label)), &near_one);
        }
    }
    claim("LSM-trie's space at the end is above 9".to_owned(), of("plex-trie").map(|w| w.space_end), &|end| end > 9.0);
    claims
}
