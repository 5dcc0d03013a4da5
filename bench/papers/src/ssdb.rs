//! Suite `ssdb`: Redis and a database on disk compared by YCSB, as a paper did with Redis and SSDB (records by the
//! thousand, up to ten threads), and with data of five times the memory, which it did not test.

use clap::ValueEnum;
use loadgen::compare::{BuiltIn, Harness, Suite, YcsbPlan};
use loadgen::error::Result;
use loadgen::results::Section;
use loadgen::server::ServerSpec;
use loadgen::ycsb::Record;
use loadgen::ycsb::workload::Workload;

/// What is measured.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// 1,000, 5,000 and 10,000 records: everything is in memory.
    Small,
    /// Records of five times the memory of the database on disk.
    Larger,
}

impl Part {
    /// All of them, in order.
    pub const ALL: [Self; 2] = [Self::Small, Self::Larger];
}

/// Records of the paper.
const RECORDS: [u64; 3] = [1000, 5000, 10_000];

/// As YCSB has them.
const RECORD: Record = Record { fields: 10, field_bytes: 100 };

/// The longest scan of YCSB's workload E.
const SCAN_MAX: u64 = 100;

/// Memory of a database on disk at full size, in bytes.
const MEMORY_BYTES: f64 = (256u64 << 20) as f64;

/// Below this, a server cannot work.
const MEMORY_BYTES_MIN: f64 = (32u64 << 20) as f64;

/// What a record with its key and its place in the index takes, in bytes.
const RECORD_BYTES: f64 = 1200.0;

/// See the module.
pub struct Ssdb {
    pub parts: Vec<Part>,
    pub workloads: Vec<&'static Workload>,
    pub clients: Vec<usize>,
}

fn memory_bytes(scale: f64) -> f64 {
    (MEMORY_BYTES * scale).max(MEMORY_BYTES_MIN)
}

/// Onggi in memory, and with a database on disk; others as they are.
pub fn variants(spec: ServerSpec, scale: f64) -> Vec<ServerSpec> {
    if !spec.is_onggi() {
        return vec![spec];
    }
    let directives = vec![
        ("appendonly", "yes".to_owned()),
        ("database", "0 engine disk".to_owned()),
        ("maxmemory", format!("{:.0}", memory_bytes(scale))),
    ];
    vec![spec.with_directives("-disk", directives), spec]
}

impl Suite for Ssdb {
    fn name(&self) -> &str {
        "ssdb"
    }

    fn run(&self, harness: &mut Harness<'_>) -> Result<Vec<Section>> {
        let larger = (5.0 * memory_bytes(harness.plan.scale) / RECORD_BYTES) as u64;
        let counts = self.parts.iter().flat_map(|part| match part {
            Part::Small => RECORDS.to_vec(),
            Part::Larger => vec![larger],
        });
        let mut sections = Vec::new();
        for records in counts {
            let plan = YcsbPlan {
                workloads: self.workloads.clone(),
                clients: self.clients.clone(),
                rate: None,
                record: RECORD,
                records,
                scan_max: SCAN_MAX,
            };
            for mut section in BuiltIn::Ycsb(plan).run(harness)? {
                section.title = format!("{records} records: {}", section.title);
                sections.push(section);
            }
        }
        Ok(sections)
    }
}
