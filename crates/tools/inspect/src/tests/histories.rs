//! `history`, and a restore to before the last flush: from a stopped server and from a running one.

use super::*;
use crate::{Point, Source, When, history, restore};
use calendar::TimeZone;

impl World {
    /// FLUSHALL.
    fn flush(&mut self) {
        self.push(&[0, 1].map(|space| Effect::Clear { space: KeyspaceId(space) }));
        self.model.clear();
        if let Some((_, _, model)) = self.states.last_mut() {
            model.clear();
        }
    }

    /// Changes without a flush.
    fn puts(&mut self, count: usize) {
        for number in 0..count {
            self.put(format!("key {number}").as_bytes(), b"value");
            self.clock.advance_ms(50);
        }
        self.sync();
    }

    /// As a server that is idle for some seconds: a mark declares the last record durable.
    fn idle(&mut self) {
        (0..3).for_each(|_| self.sync());
    }
}

/// A server with two checkpoints, and changes before, between and after them.
fn three_times_forty(seed: u64) -> World {
    let mut world = World::new(seed);
    for _ in 0..2 {
        world.puts(40);
        world.checkpoint();
    }
    world.puts(40);
    world
}

fn flushed(world: &mut World) -> (Lsn, Model) {
    world.idle();
    let before = (world.states.last().expect("there are some").0, world.model.clone());
    world.clock.advance_ms(5_000);
    world.flush();
    // A program that retries: the second flush has nothing to remove.
    world.flush();
    world.idle();
    before
}

fn restored(fs: &SimFs, source: &Source<'_>, to: When, into: &str) -> Result<Model, crate::ToolError> {
    let clock = ManualClock::new(9_000_000_000);
    restore(&shared(fs), &clock, source, to, Path::new(into), HistoryId([9; 20]), &mut |_| {})?;
    Ok(start(fs, Path::new(into)).expect("it starts"))
}

#[test]
fn the_state_before_the_last_flush() {
    let mut world = three_times_forty(11);
    flushed(&mut world);
    world.puts(40);
    let (position, before) = flushed(&mut world);
    world.puts(40);
    // As the save rule does then, and the shutdown.
    world.checkpoint();
    world.checkpoint();
    let stopped = world.stop();
    let source = Source::Stopped(Path::new(DIR));
    let found = history(&shared(&stopped.fs), &source).expect("it reads");
    assert_eq!(found.flushes.len(), 2, "{found:?}");
    assert_eq!(found.notes, Vec::<String>::new());
    assert!(found.flushes[1].before >= position && found.flushes[1].databases == 4);
    assert!(!before.is_empty());
    assert!(restored(&stopped.fs, &source, When::BeforeLastFlush, "/undone").expect("it restores") == before);
}

#[test]
fn without_a_flush_there_is_nothing_before_it() {
    let stopped = three_times_forty(12).stop();
    let source = Source::Stopped(Path::new(DIR));
    let error = restored(&stopped.fs, &source, When::BeforeLastFlush, "/undone").expect_err("there is none");
    assert!(error.to_string().contains("there is no FLUSHALL or FLUSHDB in the history that is kept"), "{error}");
}

/// A server keeps writing: records after the position of the hold are ignored, damaged or not.
#[test]
fn from_a_running_server() {
    let mut world = three_times_forty(13);
    let (_, before) = flushed(&mut world);
    let (at, durable) = (world.clock.now_ms(), world.log.durable_lsn());
    assert_eq!(durable, world.log.end_lsn());
    world.puts(60);
    world.log.append(0, b"not written yet");
    let dir = Path::new(DIR);
    let source = Source::Running { dir, durable: Some(durable) };
    let found = history(&shared(&world.fs), &source).expect("it reads");
    assert_eq!((found.flushes.len(), found.notes), (1, Vec::new()));
    for (number, to) in [When::BeforeLastFlush, When::At(Point::Lsn(found.flushes[0].before))].into_iter().enumerate() {
        let state = restored(&world.fs, &source, to, &format!("/undone-{number}")).expect("it restores");
        assert!(state == before, "{to:?}");
    }
    for (number, ms) in [at, at + 10_000, i64::MAX].into_iter().enumerate() {
        let to = When::At(Point::Time(ms));
        let state = restored(&world.fs, &source, to, &format!("/now-{number}")).expect("it restores");
        assert!(state.is_empty(), "everything was flushed at {ms}");
    }
    let late = When::At(Point::Lsn(world.log.end_lsn()));
    let error = restored(&world.fs, &source, late, "/late").expect_err("beyond the hold");
    assert!(error.to_string().contains(&format!("the log is durable up to LSN {durable} so far")), "{error}");
}

#[test]
fn moments_are_shown_with_times() {
    let mut world = World::new(14);
    world.put(b"key", b"value");
    world.idle();
    world.checkpoint();
    let cut = world.log.end_lsn();
    world.clock.advance_ms(5_000);
    world.flush();
    world.idle();
    let now = world.clock.now_ms() + 600_000;
    let stopped = world.stop();
    let found = history(&shared(&stopped.fs), &Source::Stopped(Path::new(DIR))).expect("it reads");
    let seoul = TimeZone::posix("KST-9").expect("a zone");
    let lines = found.lines(now, &seoul);
    assert_eq!(
        lines[0],
        "1970-01-01 09:16:41 +09:00  10 min 6 s ago    checkpoint 00000001: 1 key, 220 bytes (LSN 40)"
    );
    assert_eq!(lines[1], format!("1970-01-01 09:16:46 +09:00  10 min 1 s ago    FLUSH of 2 databases (LSN {cut})"));
    let to = calendar::local(found.stretches[0].to_ms, &seoul);
    assert!(found.stretches[0].to_ms > found.flushes[0].at_ms);
    assert_eq!(lines[2], format!("restorable: every moment from 1970-01-01 09:16:41 +09:00 to {to} (6 s)"));
    assert_eq!(lines[3], format!("before-last-flush: LSN {cut}, 10 min 1 s ago"));
    assert_eq!(lines.len(), 4);
}
