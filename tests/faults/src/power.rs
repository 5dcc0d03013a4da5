//! The power goes: the server stands still, its file system forgets what was not synced, and both start again.

use crate::codecs::Codecs;
use crate::judge::Promise;
use crate::kill::Plan;
use crate::load::Crowd;
use crate::report::Report;
use crate::server::{Running, Server};
use crate::volume::Volume;
use crate::writer::Ground;
use base::Rng;
use std::time::Duration;

/// One in this many starts has its power cut before the server answers.
const CUT_AT_START: u64 = 7;

/// Cuts the power of a running server, and has the file system back.
///
/// # Errors
/// What a tool said.
pub fn cut(running: &mut Running, volume: &Volume) -> Result<(), String> {
    running.freeze();
    let done = volume.cut();
    running.kill();
    done?;
    volume.remount()
}

/// Runs the plan; its cycles are cuts.
pub fn run(plain: &Server, volume: &Volume, plan: &Plan, report: &mut Report) {
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
        let mut done = Ok(());
        let outcome = plan.load(&mut crowd, &ground, codecs.as_ref(), &mut rng, || {
            std::thread::sleep(load);
            done = cut(&mut running, volume);
        });
        if let Err(text) = done {
            return report.fail("cutting the power", &text);
        }
        if let Err(wrong) = outcome {
            return report.broken(cycle, &wrong);
        }
        server = plan.server(plain, codecs.as_ref(), &mut rng);
        if rng.one_in(CUT_AT_START) {
            let again = server.spawn().map_err(|error| error.to_string()).and_then(|mut starting| {
                std::thread::sleep(Duration::from_micros(rng.below(60_000)));
                cut(&mut starting, volume)
            });
            if let Err(text) = again {
                return report.fail("cutting the power at a start", &text);
            }
            report.rekills += 1;
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
