//! The server is killed at random moments, while it works and while it starts.

use crate::codecs::Codecs;
use crate::judge::Promise;
use crate::load::{Company, Crowd};
use crate::report::Report;
use crate::server::{Running, Server};
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
    /// Whether strings are compressed, in ways that change.
    pub compressed: bool,
}

/// One in this many starts is killed before the server answers, ...
const REKILLED: u64 = 7;
/// ... up to this many times in a row.
const REKILLS_MAX: u64 = 5;

/// Runs the plan, up to the first broken promise.
pub fn run(plain: &Server, plan: &Plan, report: &mut Report) {
    let mut rng = Rng::new(plan.seed);
    let mut crowd = Crowd::new(plan.seed);
    let codecs = plan.compressed.then(Codecs::default);
    let mut server = plan.server(plain, codecs.as_ref(), &mut rng);
    let mut running = match server.start() {
        Ok((running, _)) => running,
        Err(text) => return report.fail("the first start", &text),
    };
    for cycle in (1..).take_while(|cycle| plan.goes_on(*cycle, codecs.as_ref())) {
        let ground = Ground::new(server.port, plan.promise == Promise::Sync, 200_000);
        let load = Duration::from_micros(20_000 + rng.below(plan.load_ms * 1000));
        let outcome = plan.load(&mut crowd, &ground, codecs.as_ref(), &mut rng, || {
            std::thread::sleep(load);
            running.kill();
        });
        if let Err(wrong) = outcome {
            return report.broken(cycle, &wrong);
        }
        server = plan.server(plain, codecs.as_ref(), &mut rng);
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
        let took = match plan.start(&server, codecs.as_ref()) {
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
    if let Some(codecs) = codecs {
        codecs.close(report);
    }
}

/// On a busy machine dictionaries are trained late. A run continues until one was used, for at most this many times its
/// cycles.
const LONGER_MAX: u64 = 4;

impl Plan {
    /// Whether there is a cycle of this number.
    pub fn goes_on(&self, cycle: u64, codecs: Option<&Codecs>) -> bool {
        let is_complete = codecs.is_none_or(Codecs::is_complete);
        cycle <= self.cycles || !is_complete && cycle <= self.cycles * LONGER_MAX
    }

    /// The server as it starts next.
    pub fn server(&self, plain: &Server, codecs: Option<&Codecs>, rng: &mut Rng) -> Server {
        codecs.map_or_else(|| plain.clone(), |codecs| codecs.server(plain, rng))
    }

    /// The load until the crash, with everything that runs at the same time.
    pub fn load(
        &self,
        crowd: &mut Crowd,
        ground: &Ground,
        codecs: Option<&Codecs>,
        rng: &mut Rng,
        crash: impl FnOnce(),
    ) -> Result<(), Vec<String>> {
        let (seed, codec_seed) = (rng.next_u64(), rng.next_u64());
        std::thread::scope(|scope| {
            if let Some(codecs) = codecs {
                scope.spawn(move || codecs.change(ground, codec_seed));
            }
            crowd.load(ground, self.company, seed, crash)
        })
    }

    /// Starts the server after a crash, and looks at what it has left before and afterwards; how long the start took.
    pub fn start(&self, server: &Server, codecs: Option<&Codecs>) -> Result<(Running, Duration), String> {
        codecs.map_or(Ok(()), |codecs| codecs.check(server))?;
        let started = server.start()?;
        if let Some(codecs) = codecs {
            codecs.found(&started.0);
        }
        Ok(started)
    }
}
