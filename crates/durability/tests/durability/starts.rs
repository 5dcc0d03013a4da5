//! Starts and ordered stops.

use crate::life::{Life, policy};
use crate::model::{Model, seeds};
use base::Rng;
use cmdlog::LogMode;
use durability::{Cause, Policy};
use vfs::SimFs;

const MODES: [LogMode; 3] = [LogMode::Sync, LogMode::Async, LogMode::WrittenOnly];

/// A fresh start, an ordered stop, a start: the same state, again and again, whatever the mode; each life adds commands,
/// and some a checkpoint.
#[test]
fn lives_go_on_where_the_last_one_ended() {
    for seed in seeds(3) {
        let (fs, mut rng) = (SimFs::new(seed), Rng::new(seed));
        let mut expected = None;
        for n in 0..6 {
            let policy = Policy { mode: MODES[(seed + n) as usize % 3], ..policy() };
            let mut life = Life::start(&fs, policy).expect("it starts");
            let mut model = Model::new(&life);
            assert!(expected.is_none_or(|expected| expected == model.now()), "seed {seed}, life {n}");
            assert_eq!(life.recovered.torn, None, "an ordered stop leaves nothing to cut");
            model.commands(&mut life, &mut rng, 60);
            if n % 3 == 1 {
                life.checkpoint(Cause::Asked).expect("the disk works");
                model.commands(&mut life, &mut rng, 10);
            }
            expected = Some(model.now());
            life.stop();
        }
    }
}
