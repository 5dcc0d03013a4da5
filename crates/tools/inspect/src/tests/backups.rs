//! `backup` of a directory to which a server keeps writing.

use super::*;
use crate::{Verdict, backup, check};

const INTO: &str = "/backup";

/// The copy has exactly what was durable when it began. Later writes of the server are not in it, and the files are
/// linked, so the copy outlives them.
#[test]
fn a_copy_of_a_running_server() {
    let mut world = two_sets(4);
    let durable = world.log.durable_lsn();
    let expected = world.states.iter().rfind(|(after, _, _)| *after <= durable).unwrap().2.clone();
    world.changes(30);
    let clock = ManualClock::new(9_000_000);
    let into = Path::new(INTO);
    let mut said = String::new();
    let done =
        backup(&shared(&world.fs), &clock, Path::new(DIR), Some(durable), into, HistoryId([9; 20]), &mut |line| {
            said.push_str(line)
        })
        .unwrap();
    assert!(done.lsn == durable && said.contains("linked"), "{done:?}: {said}");
    let stopped = world.stop();
    for path in stopped.files("prdb-").iter().chain(&stopped.files("log-")) {
        stopped.fs.remove_file(path).unwrap();
    }
    let mut said = String::new();
    let verdict = check(&shared(&stopped.fs), into, &mut |line| said.push_str(&line.to_string())).unwrap();
    assert_eq!(verdict, Verdict::Good, "{said}");
    assert!(start(&stopped.fs, into).unwrap() == expected);
}

/// With the log off: the newest checkpoint alone. Files that the disk cannot link are copied.
#[test]
fn without_a_log() {
    let mut world = two_sets(4);
    world.checkpoint();
    let expected = world.model.clone();
    let mut next = world.manifest.current().clone();
    next.log.on = false;
    next.sets.last_mut().unwrap().log_from = None;
    world.manifest.commit(&world.dir, next).unwrap();
    let clock = ManualClock::new(9_000_000);
    let fs = &world.fs;
    backup(&shared(fs), &clock, Path::new(DIR), None, Path::new(INTO), HistoryId([9; 20]), &mut |_| {}).unwrap();
    assert!(start(fs, Path::new(INTO)).unwrap() == expected);
    let again = backup(&shared(fs), &clock, Path::new(DIR), None, Path::new(INTO), HistoryId([9; 20]), &mut |_| {});
    assert!(matches!(again, Err(crate::ToolError::NotEmpty { .. })));
}
