//! `restore`: exactly the state at the point, in a directory that is whole, and nothing changed in the old one.

use super::*;
use crate::{Point, Restored, Source, ToolError, Verdict, When, check, restore};
use std::error::Error;

const INTO: &str = "/restored";

fn restored(fs: &SimFs, from: &str, to: Point, into: &str) -> Result<Restored, ToolError> {
    let before = fs.contents();
    let clock = ManualClock::new(9_000_000);
    let (source, to) = (Source::Stopped(Path::new(from)), When::At(to));
    let done = restore(&shared(fs), &clock, &source, to, Path::new(into), HistoryId([9; 20]), &mut |_| {});
    let after = fs.contents();
    let is_kept = |(path, bytes): (&PathBuf, &Vec<u8>)| path.ends_with("LOCK") || after.get(path) == Some(bytes);
    assert!(before.iter().all(is_kept), "the source has changed");
    done
}

fn state_at(states: &[(Lsn, UnixMs, Model)], lsn: Lsn) -> &(Lsn, UnixMs, Model) {
    states.iter().rfind(|(after, _, _)| *after <= lsn).expect("the first is of LSN 0")
}

fn is_good(fs: &SimFs, dir: &str) {
    let mut said = String::new();
    let verdict = check(&shared(fs), Path::new(dir), &mut |line| said.push_str(&line.to_string())).unwrap();
    assert_eq!(verdict, Verdict::Good, "{said}");
}

/// To any position since the oldest checkpoint, inside records too; and again from the restored copy.
#[test]
fn to_a_position() {
    let stopped = two_sets(1).stop();
    let mut rng = Rng::new(2);
    let data = DataDir::open_to_look(shared(&stopped.fs), Path::new(DIR));
    let manifest = ManifestFile::load(&data).unwrap().unwrap().current().clone();
    let (first, last) = (manifest.sets[0].cut, stopped.states.last().unwrap().0);
    let cuts = manifest.sets.iter().map(|set| set.cut);
    let ends = stopped.states.iter().map(|state| state.0).filter(|lsn| *lsn >= first).step_by(23);
    let random: Vec<_> = (0..20).map(|_| Lsn(first.0 + rng.below(last.0 - first.0))).collect();
    for (number, lsn) in cuts.chain(ends).chain(random).enumerate() {
        let into = format!("{INTO}-{number}");
        let done = restored(&stopped.fs, DIR, Point::Lsn(lsn), &into).unwrap();
        assert!(done.lsn <= lsn);
        let expected = &state_at(&stopped.states, lsn).2;
        assert!(start(&stopped.fs, Path::new(&into)).unwrap() == *expected, "LSN {lsn}");
        is_good(&stopped.fs, &into);
        if number % 5 == 0 {
            let back = Lsn(manifest.sets.iter().rfind(|set| set.cut <= lsn).unwrap().cut.0.midpoint(lsn.0));
            let again = format!("{into}-again");
            restored(&stopped.fs, &into, Point::Lsn(back), &again).unwrap();
            assert!(start(&stopped.fs, Path::new(&again)).unwrap() == state_at(&stopped.states, back).2);
        }
    }
}

/// A restore to the time before a FLUSHALL undoes it. A time between marks gives the state of a moment before it, never
/// after.
#[test]
fn to_a_time() {
    let mut world = two_sets(3);
    // The sync thread writes a mark a second after the last sync of a burst.
    (0..3).for_each(|_| world.sync());
    let before = (world.clock.now_ms(), world.model.clone());
    let last_before = world.states.last().unwrap().0;
    world.clock.advance_ms(5_000);
    let mut record = RecordBuilder::default();
    for space in [0, 1] {
        record.push(&Effect::Clear { space: KeyspaceId(space) });
    }
    world.model.clear();
    world.append(&record);
    world.sync();
    let since = world.manifest.current().sets[0].created_ms;
    let stopped = world.stop();
    assert!(start(&stopped.fs, Path::new(DIR)).unwrap().is_empty() && !before.1.is_empty());
    for (number, ms) in [before.0, before.0 + 4_000].into_iter().enumerate() {
        let into = format!("{INTO}-{number}");
        let done = restored(&stopped.fs, DIR, Point::Time(ms), &into).unwrap();
        assert!(start(&stopped.fs, Path::new(&into)).unwrap() == before.1, "{done:?} of {last_before}");
        is_good(&stopped.fs, &into);
    }
    let mut rng = Rng::new(4);
    for number in 0..20 {
        let into = format!("{INTO}-random-{number}");
        let at = since + rng.below((before.0 - since).unsigned_abs()) as i64;
        let done = restored(&stopped.fs, DIR, Point::Time(at), &into).unwrap();
        let (_, ms, expected) = state_at(&stopped.states, done.lsn);
        assert!(*ms <= at && start(&stopped.fs, Path::new(&into)).unwrap() == *expected);
        // With a sync about every 800 ms here, little is missing.
        let missed = stopped.states.iter().filter(|(lsn, ms, _)| *lsn > done.lsn && *ms <= at - 5_000).count();
        assert_eq!(missed, 0, "at {at}");
    }
    let end = restored(&stopped.fs, DIR, Point::Time(i64::MAX), INTO).unwrap();
    assert!(end.lsn >= stopped.states.last().unwrap().0 && start(&stopped.fs, Path::new(INTO)).unwrap().is_empty());
}

/// Damage after the point does no harm. Damage before it is an error, and the partial output is not a data directory.
#[test]
fn damage_counts_only_before_the_point() {
    let stopped = two_sets(5).stop();
    let data = DataDir::open_to_look(shared(&stopped.fs), Path::new(DIR));
    let set = ManifestFile::load(&data).unwrap().unwrap().current().sets[1].clone();
    let later: Vec<_> = stopped.states.iter().filter(|state| state.0 > set.cut).collect();
    let (point, behind) = (later[later.len() / 3].0, later[later.len() / 2].0);
    let (first, path) = segment_of(&stopped, behind);
    stopped.fs.flip_bit(&path, 4096 + first % 4096 + behind.0 - first, 2).unwrap();
    assert!(start(&stopped.fs, Path::new(DIR)).is_err(), "a start refuses");
    for (number, point) in [point, behind].into_iter().enumerate() {
        let into = format!("{INTO}-{number}");
        restored(&stopped.fs, DIR, Point::Lsn(point), &into).unwrap();
        assert!(start(&stopped.fs, Path::new(&into)).unwrap() == state_at(&stopped.states, point).2);
    }
    let refused = restored(&stopped.fs, DIR, Point::Lsn(Lsn(behind.0 + 1000)), INTO).unwrap_err();
    assert!(matches!(refused, ToolError::Log(_)), "{refused}");
    assert!(!stopped.fs.exists(Path::new(INTO)).unwrap(), "nothing was written yet");

    let file = stopped.files("prdb-00000001")[0].clone();
    // In the header: the writer's threads decide which file gets how many entries.
    stopped.fs.flip_bit(&file, 40, 2).unwrap();
    let first = stopped.states.iter().find(|state| state.0 >= set.cut).unwrap().0;
    restored(&stopped.fs, DIR, Point::Lsn(first), "/other").unwrap();
    let refused = restored(&stopped.fs, DIR, Point::Lsn(Lsn(set.cut.0 - 1)), INTO).unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
    assert!(start(&stopped.fs, Path::new(INTO)).is_err(), "no server starts with half of it");
}

fn segment_of(stopped: &Stopped, lsn: Lsn) -> (u64, PathBuf) {
    let firsts = stopped.files("log-").into_iter().map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (u64::from_str_radix(name.trim_start_matches("log-"), 16).unwrap(), path)
    });
    firsts.filter(|(first, _)| *first <= lsn.0).max().unwrap()
}

/// A refusal comes before anything is written, with the reason.
#[test]
fn refusals() {
    let world = two_sets(6);
    let refused = restored(&world.fs, DIR, Point::Time(i64::MAX), INTO);
    assert!(matches!(refused, Err(ToolError::InUse { pid: Some(_), .. })), "{refused:?}");
    let stopped = world.stop();
    let first = stopped.states[1].1;
    for (to, why) in [
        (Point::Lsn(Lsn(3)), "oldest checkpoint"),
        (Point::Time(first), "oldest checkpoint"),
        (Point::Lsn(Lsn(u64::MAX)), "log ends at"),
    ] {
        let refused = restored(&stopped.fs, DIR, to, INTO).unwrap_err();
        assert!(refused.to_string().contains(why) && refused.source().is_none(), "{refused}");
    }
    let full = restored(&stopped.fs, DIR, Point::Time(i64::MAX), DIR);
    assert!(matches!(full, Err(ToolError::NotEmpty { .. })), "{full:?}");
    assert!(!stopped.fs.exists(Path::new(INTO)).unwrap());
}

/// Without a checkpoint, the log alone reaches every moment since its beginning.
#[test]
fn from_the_log_alone() {
    let mut world = World::new(7);
    world.changes(80);
    let stopped = world.kill();
    for (number, state) in stopped.states.iter().step_by(16).enumerate() {
        let into = format!("{INTO}-{number}");
        restored(&stopped.fs, DIR, Point::Lsn(state.0), &into).unwrap();
        assert!(start(&stopped.fs, Path::new(&into)).unwrap() == state.2);
        is_good(&stopped.fs, &into);
    }
}
