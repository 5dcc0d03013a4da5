//! The server is killed at random moments, while it works and while it starts.

use crate::judge::Promise;
use crate::load::{Company, Crowd};
use crate::report::Report;
use crate::server::Server;
use crate::writer::Ground;
use base::Rng;
use std::time::Duration;

/// What a run of kills is.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How often the server is killed under load.
    pub cycles: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Longest load before a kill, in milliseconds.
    pub load_ms: u64,
    /// What must hold.
    pub promise: Promise,
    /// Whether modes change meanwhile.
    pub company: Company,
}

/// One in so many starts is killed before the server answers, ...
const REKILLED: u64 = 7;
/// ... up to so many times in a row.
const REKILLS_MAX: u64 = 5;

/// Runs the plan; `None` when the server did not start again.
pub fn run(server: &Server, plan: &Plan, report: &mut Report) {
    let mut rng = Rng::new(plan.seed);
    let mut crowd = Crowd::new(plan.seed);
    let mut running = match server.start() {
        Ok((running, _)) => running,
        Err(text) => return report.fail("the first start", &text),
    };
    for cycle in 1..=plan.cycles {
        let ground = Ground::new(server.port, plan.promise == Promise::Sync || plan.company == Company::Modes, 200_000);
        let load = Duration::from_micros(20_000 + rng.below(plan.load_ms * 1000));
        let outcome = crowd.load(&ground, plan.company, rng.next_u64(), || {
            std::thread::sleep(load);
            running.kill();
        });
        if let Err(wrong) = outcome {
            return report.broken(cycle, &wrong);
        }
        if rng.one_in(REKILLED) {
            for _ in 0..=rng.below(REKILLS_MAX) {
                match server.spawn() {
                    Ok(mut starting) => {
                        std::thread::sleep(Duration::from_micros(rng.below(60_000)));
                        starting.kill();
                        report.rekills += 1;
                    }
                    Err(error) => return report.fail("a start", &error.to_string()),
                }
            }
        }
        let took = match server.start() {
            Ok((started, took)) => {
                running = started;
                took
            }
            Err(text) => return report.broken(cycle, &[text]),
        };
        match crowd.verify(&running, plan.promise) {
            Ok(verdict) => report.cycle(&verdict, took),
            Err(wrong) => return report.broken(cycle, &wrong),
        }
    }
}
