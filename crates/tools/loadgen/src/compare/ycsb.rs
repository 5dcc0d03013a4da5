//! Suite `ycsb`: the core workloads of YCSB on hashes and an index, each with several numbers of clients.

use std::time::Duration;

use super::Harness;
use super::rounds::{Effort, Figure};
use crate::error::{BenchError, Result};
use crate::generator::new_histogram;
use crate::results::{Better, Cell, ResultRow, Section, curve_of};
use crate::server::Server;
use crate::ycsb::workload::{Operation, Workload};
use crate::ycsb::{self, Inserted, Outcome, Record, Window};

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In this order.
    pub workloads: Vec<&'static Workload>,
    /// Numbers of clients; each is a row.
    pub clients: Vec<usize>,
    /// Operations per second of all clients; `None` for as fast as replies come.
    pub rate: Option<f64>,
    /// The shape of records.
    pub record: Record,
    /// Records at the beginning of a workload.
    pub records: u64,
    /// The longest scan, in records.
    pub scan_max: u64,
}

/// Windows of each server, and the length of one.
const EFFORT: Effort = Effort { rounds: 5, seconds: 5.0 };

/// The sections, all made from the same windows.
struct Sections {
    cpu: Section,
    speed: Section,
    latency: Section,
}

pub(super) fn run(harness: &mut Harness<'_>, plan: &Plan) -> Result<Vec<Section>> {
    if let Some(spec) = harness.plan.servers.iter().find(|spec| spec.is_echo()) {
        return Err(BenchError::Usage(format!("server {}: it keeps no records", spec.name)));
    }
    let servers = harness.start_all(&harness.options())?;
    let effort = harness.effort(EFFORT);
    let windows = plan.workloads.len() * plan.clients.len() * effort.rounds;
    let loads = 1 + plan.workloads.windows(2).filter(|pair| pair[0].inserts()).count();
    harness.steps.expect(servers.len() * (windows + loads));
    let mut sections = sections(plan);
    let mut records = Vec::new();
    let mut is_fresh = false;
    for workload in &plan.workloads {
        if !is_fresh {
            records.clear();
            for server in &servers {
                load(harness, plan, server)?;
                records.push(Inserted::new(plan.records));
            }
        }
        for clients in &plan.clients {
            let outcomes = interleave(harness, plan, workload, *clients, &servers, &records, effort)?;
            let plural = if *clients == 1 { "" } else { "s" };
            let title = format!("{}, {clients} client{plural}", workload.name);
            sections.add(harness, workload, &title, &servers, &outcomes)?;
        }
        is_fresh = !workload.inserts();
    }
    Ok(vec![sections.cpu, sections.speed, sections.latency])
}

fn load(harness: &Harness<'_>, plan: &Plan, server: &Server) -> Result<()> {
    harness.plan.guest.empty(server)?;
    harness.steps.say(&format!("loading {} records into {}", plan.records, server.record.name));
    ycsb::load(&server.target, plan.record, plan.records, harness.plan.settings.seed, &mut |fraction| {
        harness.steps.advance(fraction);
    })
}

/// The windows of each server, one server at a time; the first one changes with each round.
fn interleave(
    harness: &Harness<'_>,
    plan: &Plan,
    workload: &Workload,
    clients: usize,
    servers: &[Server],
    records: &[Inserted],
    effort: Effort,
) -> Result<Vec<Vec<Outcome>>> {
    let settings = &harness.plan.settings;
    let mut outcomes: Vec<Vec<Outcome>> = servers.iter().map(|_| Vec::new()).collect();
    for round in 0..effort.rounds {
        for turn in 0..servers.len() {
            let at = (round + turn) % servers.len();
            let name = &servers[at].record.name;
            harness.steps.say(&format!("{}, {clients}: round {}/{}, {name}", workload.name, round + 1, effort.rounds));
            let window = Window {
                workload,
                clients,
                rate: plan.rate,
                warmup: Duration::from_secs_f64(settings.warmup_seconds),
                measured: Duration::from_secs_f64(effort.seconds),
                record: plan.record,
                scan_max: plan.scan_max,
                // Another seed each round, the same for all servers in it.
                seed: settings.seed.wrapping_add(round as u64),
                cores: settings.generator_cores.as_ref(),
            };
            let watch = &mut |progress: crate::generator::Progress| harness.steps.advance(progress.fraction);
            outcomes[at].push(ycsb::run(&servers[at].target, &records[at], &window, watch)?);
        }
    }
    Ok(outcomes)
}

fn sections(plan: &Plan) -> Sections {
    let Record { fields, field_bytes } = plan.record;
    let pace = match plan.rate {
        Some(rate) => format!("{rate} operations a second; latency counts from the time when one was due"),
        None => "as fast as replies come".to_owned(),
    };
    let of: Vec<String> = plan.workloads.iter().map(|each| format!("{} is {}", each.name, each.about)).collect();
    let about = format!(
        "YCSB's core workloads on {} records, each a hash of {fields} fields of {field_bytes} B, with the commands of \
         its binding for Redis, {pace}. {}.",
        plan.records,
        of.join(", ")
    );
    let section = |title: &str, about: String, unit: &str, better| Section {
        title: title.to_owned(),
        about,
        unit: unit.to_owned(),
        better,
        rows: Vec::new(),
    };
    Sections {
        cpu: section("CPU time of the server", about, Figure::CpuPerOperation.unit(), Figure::CpuPerOperation.better()),
        speed: section(
            "Operations per second",
            "Of the same windows.".to_owned(),
            Figure::OperationsPerSecond.unit(),
            Figure::OperationsPerSecond.better(),
        ),
        latency: section(
            "Latency at 99 %, by operation",
            "Of the same windows. The curves are those of all rounds.".to_owned(),
            "us",
            Better::Lower,
        ),
    }
}

impl Sections {
    fn add(
        &mut self,
        harness: &Harness<'_>,
        workload: &Workload,
        title: &str,
        servers: &[Server],
        outcomes: &[Vec<Outcome>],
    ) -> Result<()> {
        let subject = &harness.plan.subject;
        for (section, figure) in
            [(&mut self.cpu, Figure::CpuPerOperation), (&mut self.speed, Figure::OperationsPerSecond)]
        {
            let cells = servers.iter().zip(outcomes).map(|(server, outcomes)| {
                let samples = outcomes.iter().map(|outcome| figure.of(&outcome.all, server)).collect::<Result<_>>()?;
                let mut latency = new_histogram();
                for outcome in outcomes {
                    latency.add(&outcome.latency).expect("all histograms have the same bounds");
                }
                let windows = outcomes.iter().map(|outcome| outcome.all.clone()).collect();
                Ok(Cell { windows, curve: curve_of(&latency), ..Cell::new(&server.record.name, samples) })
            });
            let row = ResultRow::new(title.to_owned(), cells.collect::<Result<_>>()?, subject, section.better);
            section.rows.push(row);
        }
        for operation in workload.operations() {
            let cells = servers.iter().zip(outcomes);
            let cells = cells.map(|(server, outcomes)| of_operation(server, outcomes, operation)).collect();
            let title = format!("{title}: {}", operation.name());
            self.latency.rows.push(ResultRow::new(title, cells, subject, self.latency.better));
        }
        Ok(())
    }
}

fn of_operation(server: &Server, outcomes: &[Outcome], operation: Operation) -> Cell {
    let mut all = new_histogram();
    let samples = outcomes.iter().map(|outcome| {
        let own = outcome.by_operation.iter().find(|(other, _)| *other == operation);
        let (_, latency) = own.expect("every window has the operations of its workload");
        all.add(latency).expect("all histograms have the same bounds");
        latency.value_at_quantile(0.99) as f64 / 1e3
    });
    let samples = samples.collect();
    Cell { curve: curve_of(&all), ..Cell::new(&server.record.name, samples) }
}
