//! What may be found after a crash.
//!
//! The operations of one connection are done in their order. So what is found of a writer's cells must be what a
//! beginning of its operations leaves: nothing lost in the middle, nothing done twice, no transaction half, no deleted
//! key back. How long that beginning must be is the promise of the mode:
//!
//! - J1. Sync: it has every operation that was answered while the mode was certain.
//! - J2. Async, with a window: of what is missing, nothing was answered longer than the window before the last request
//!   that the server still answered was sent.
//! - J3. Always: what one writer sent after it, or another, had been answered is not found without what was answered.
//!
//! What the writers share follows from their beginnings: a counter is the sum of the increments that were kept.

use crate::operation::{Action, Cell, MEMBERS, Operation, Outcome, SHARED_COUNTERS, SHARED_GROUPS, apply, key_of};
use crate::writer::Writer;

/// What is promised of answered operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// J1 for all that was answered in certain sync mode.
    Sync,
    /// J2: at most this many microseconds are lost.
    Window(u64),
    /// J1 and J3 alone: the mode was changed.
    Changing,
}

/// What was found on the server.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The cells of each writer.
    pub cells: Vec<Vec<Cell>>,
    /// The shared counters.
    pub counters: Vec<i64>,
    /// The numbers of the members of each shared group; `None` for no key.
    pub groups: Vec<[Option<u64>; MEMBERS]>,
}

impl Found {
    /// An empty server.
    pub fn nothing(writers: usize) -> Self {
        Self {
            cells: vec![vec![Cell::Absent; crate::operation::CELLS]; writers],
            counters: vec![0; SHARED_COUNTERS],
            groups: vec![[None; MEMBERS]; SHARED_GROUPS],
        }
    }
}

/// What a crash has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Operations that were answered.
    pub answered: u64,
    /// Answered operations that are gone. Reads are not counted.
    pub lost: u64,
    /// The longest time from an answer that is gone to the last request sent that was answered, in microseconds.
    pub lost_us: u64,
}

/// Beginnings of a writer's operations that leave what was found: the shortest and the longest.
#[derive(Clone, Copy, Debug)]
struct Kept {
    least: usize,
    most: usize,
}

/// Judges what was found after a crash. `before` was found before the load.
///
/// # Errors
/// Every promise that was broken, in words.
pub fn judge(writers: &[Writer], before: &Found, found: &Found, promise: Promise) -> Result<Verdict, Vec<String>> {
    let mut wrong = Vec::new();
    let mut kept = Vec::new();
    for (writer, cells) in writers.iter().zip(&found.cells) {
        match beginning(writer, cells) {
            Ok(some) => kept.push(some),
            Err(text) => wrong.push(text),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut verdict = Verdict::default();
    // The last request that was answered, by the time it was sent: until then the server took writes.
    let last_us =
        writers.iter().flat_map(|w| &w.operations).filter(|o| is_done_write(o)).map(|o| o.sent_us).max().unwrap_or(0);
    let mut first_lost: Option<(usize, u64)> = None;
    for (writer, kept) in writers.iter().zip(&kept) {
        for (index, operation) in writer.operations.iter().enumerate() {
            let Outcome::Done { at_us, kept: certain } = operation.outcome else { continue };
            verdict.answered += 1;
            if index < kept.most || !is_done_write(operation) {
                continue;
            }
            verdict.lost += 1;
            verdict.lost_us = verdict.lost_us.max(last_us.saturating_sub(at_us));
            if first_lost.is_none_or(|(_, time)| at_us < time) {
                first_lost = Some((writer.id, at_us));
            }
            if certain && wrong.len() < 5 {
                wrong.push(format!(
                    "J1: writer {}: {:?} (number {}) was answered at {at_us} us in sync mode and is lost; {} of {} \
                     operations are there",
                    writer.id,
                    operation.action,
                    operation.number,
                    kept.most,
                    writer.operations.len()
                ));
            }
        }
    }
    if let Promise::Window(window_us) = promise
        && verdict.lost_us > window_us
    {
        wrong.push(format!("J2: {} us are lost, {window_us} are promised", verdict.lost_us));
    }
    if let Some((loser, lost_us)) = first_lost {
        for (writer, kept) in writers.iter().zip(&kept) {
            let last = writer.operations[..kept.least].iter().rfind(|o| o.outcome != Outcome::Refused && is_write(o));
            if let Some(operation) = last.filter(|o| o.sent_us > lost_us) {
                wrong.push(format!(
                    "J3: writer {}: number {} was sent at {} us and is there; what writer {loser} was answered at \
                     {lost_us} us is lost",
                    writer.id, operation.number, operation.sent_us
                ));
                break;
            }
        }
    }
    shared(writers, &kept, before, found, &mut wrong);
    if wrong.is_empty() { Ok(verdict) } else { Err(wrong) }
}

fn is_write(operation: &Operation) -> bool {
    !matches!(operation.action, Action::Read { .. })
}

fn is_done_write(operation: &Operation) -> bool {
    matches!(operation.outcome, Outcome::Done { .. }) && is_write(operation)
}

/// Finds the beginnings of the writer's operations that leave the cells as found.
fn beginning(writer: &Writer, found: &[Cell]) -> Result<Kept, String> {
    let mut cells = writer.cells.clone();
    let mut different = cells.iter().zip(found).filter(|(a, b)| a != b).count();
    let mut kept: Option<Kept> = None;
    let mut nearest = (different, 0);
    for index in 0..=writer.operations.len() {
        if different == 0 {
            kept = Some(Kept { least: kept.map_or(index, |k| k.least), most: index });
        }
        if different <= nearest.0 {
            nearest = (different, index);
        }
        let Some(operation) = writer.operations.get(index).filter(|o| o.outcome != Outcome::Refused) else { continue };
        // Only one cell changes: count it before and after.
        let changed = cell_of(operation);
        let wrong_before = changed.is_some_and(|cell| cells[cell] != found[cell]);
        apply(&mut cells, operation);
        let wrong_after = changed.is_some_and(|cell| cells[cell] != found[cell]);
        different = different + usize::from(wrong_after) - usize::from(wrong_before);
    }
    kept.ok_or_else(|| explain(writer, found, nearest.1))
}

/// The cell that an operation changes.
fn cell_of(operation: &Operation) -> Option<usize> {
    use crate::operation::{COUNTERS, VALUES};
    match operation.action {
        Action::Set { key, .. } | Action::Delete { key } => Some(key),
        Action::Increment { counter } => Some(VALUES + counter),
        Action::Group { group } => Some(VALUES + COUNTERS + group),
        _ => None,
    }
}

/// In words, how what was found differs from the beginning that is nearest to it.
fn explain(writer: &Writer, found: &[Cell], length: usize) -> String {
    let mut cells = writer.cells.clone();
    for operation in writer.operations[..length].iter().filter(|o| o.outcome != Outcome::Refused) {
        apply(&mut cells, operation);
    }
    let mut parts = Vec::new();
    for (cell, (expected, got)) in cells.iter().zip(found).enumerate().filter(|(_, (a, b))| a != b).take(4) {
        let history: Vec<String> = writer
            .operations
            .iter()
            .enumerate()
            .filter(|(index, o)| cell_of(o) == Some(cell) && index.abs_diff(length) < 2000)
            .map(|(index, o)| format!("{index}: {:?} number {} {:?}", o.action, o.number, o.outcome))
            .collect();
        let near = &history[history.len().saturating_sub(4)..];
        parts.push(format!(
            "{} holds {got:?} and not {expected:?} (its last: {})",
            key_of(writer.id, cell, 0),
            near.join("; ")
        ));
    }
    format!(
        "writer {}: no beginning of its {} operations leaves what was found; nearest are {length}, but {}",
        writer.id,
        writer.operations.len(),
        parts.join(", ")
    )
}

/// Judges what the writers share by their beginnings.
fn shared(writers: &[Writer], kept: &[Kept], before: &Found, found: &Found, wrong: &mut Vec<String>) {
    let some = |of: fn(usize, &Operation, Kept) -> bool| {
        writers.iter().zip(kept).flat_map(move |(writer, kept)| {
            let all = writer.operations.iter().enumerate().filter(|(_, o)| o.outcome != Outcome::Refused);
            all.filter(move |(index, o)| of(*index, o, *kept)).map(|(_, o)| o)
        })
    };
    // Those that are there for certain, and those that may be.
    let surely = || some(|index, o, kept| index < kept.least || matches!(o.outcome, Outcome::Done { kept: true, .. }));
    let maybe = || some(|index, _, kept| index < kept.most);
    for counter in 0..SHARED_COUNTERS {
        let is = |o: &&Operation| o.action == Action::SharedIncrement { counter };
        let count = |all: usize| i64::try_from(all).unwrap_or(i64::MAX);
        let least = before.counters[counter] + count(surely().filter(is).count());
        let most = before.counters[counter] + count(maybe().filter(is).count());
        let got = found.counters[counter];
        if !(least..=most).contains(&got) {
            wrong.push(format!("shared counter {counter} is {got}, not {least} to {most}"));
        }
    }
    for (group, numbers) in found.groups.iter().enumerate() {
        if numbers.iter().any(|number| *number != numbers[0]) {
            wrong.push(format!("shared group {group} is torn: {numbers:?}"));
            continue;
        }
        let is = |o: &&Operation| o.action == Action::SharedGroup { group };
        if *numbers == before.groups[group] {
            if let Some(o) = surely().find(is) {
                wrong.push(format!(
                    "shared group {group} still has {:?}, though number {} is kept",
                    numbers[0], o.number
                ));
            }
            continue;
        }
        let Some(setter) = maybe().filter(is).find(|o| Some(o.number) == numbers[0]) else {
            wrong.push(format!("shared group {group} has {:?}, which nothing that is kept has sent", numbers[0]));
            continue;
        };
        // Set before another that is kept was even sent: then that one is lost.
        if let Outcome::Done { at_us, .. } = setter.outcome
            && let Some(later) = surely().filter(is).find(|o| o.sent_us > at_us)
        {
            wrong.push(format!(
                "shared group {group} has {}, though number {} came later and is kept",
                setter.number, later.number
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{COUNTERS, VALUES};

    const GROUP: usize = VALUES + COUNTERS;

    /// Two writers; the first has set, counted, deleted and set a group, each answered a millisecond after it was sent.
    fn crowd() -> (Vec<Writer>, Found) {
        let mut writers: Vec<Writer> = (0..2).map(|id| Writer::new(id, 2, 1)).collect();
        let actions = [
            Action::Set { key: 0, len: 10 },
            Action::Increment { counter: 0 },
            Action::Delete { key: 0 },
            Action::Group { group: 0 },
            Action::SharedIncrement { counter: 0 },
            Action::Set { key: 1, len: 10 },
        ];
        writers[0].operations = actions
            .iter()
            .enumerate()
            .map(|(index, action)| {
                let (number, sent_us) = (index as u64 + 1, index as u64 * 10_000);
                let outcome = Outcome::Done { at_us: sent_us + 1000, kept: true };
                Operation { number, action: *action, sent_us, outcome }
            })
            .collect();
        let mut found = Found::nothing(2);
        for operation in &writers[0].operations {
            apply(&mut found.cells[0], operation);
        }
        found.counters[0] = 1;
        (writers, found)
    }

    fn verdict(change: impl Fn(&mut Vec<Writer>, &mut Found), promise: Promise) -> Result<Verdict, String> {
        let (mut writers, mut found) = crowd();
        change(&mut writers, &mut found);
        judge(&writers, &Found::nothing(2), &found, promise).map_err(|wrong| wrong.join("; "))
    }

    fn wrong(change: impl Fn(&mut Vec<Writer>, &mut Found), part: &str) {
        let text = verdict(change, Promise::Sync).expect_err("it is wrong");
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn all_that_was_answered_is_right_and_everything_else_is_not() {
        assert_eq!(verdict(|_, _| (), Promise::Sync).map(|v| (v.answered, v.lost)), Ok((6, 0)));
        wrong(|_, found| found.cells[0][1] = Cell::Absent, "J1");
        wrong(|_, found| found.cells[0][0] = Cell::Value { number: 1, len: 10 }, "no beginning");
        wrong(|_, found| found.cells[0][VALUES] = Cell::Count(2), "no beginning");
        wrong(|_, found| found.cells[0][VALUES] = Cell::Absent, "no beginning");
        wrong(|_, found| found.cells[0][GROUP] = Cell::Broken, "no beginning");
        wrong(|_, found| found.cells[1][0] = Cell::Value { number: 9, len: 10 }, "no beginning");
        wrong(|_, found| found.counters[0] = 0, "shared counter");
        wrong(|_, found| found.counters[0] = 2, "shared counter");
        wrong(|_, found| found.groups[0][1] = Some(4), "torn");
        wrong(|_, found| found.groups[0] = [Some(4); MEMBERS], "nothing that is kept has sent");
    }

    #[test]
    fn what_was_not_answered_may_be_there_or_not_and_what_was_refused_may_not() {
        let unanswered = |writers: &mut Vec<Writer>| writers[0].operations[5].outcome = Outcome::Unanswered;
        assert!(verdict(|writers, _| unanswered(writers), Promise::Sync).is_ok());
        let lost = |writers: &mut Vec<Writer>, found: &mut Found| {
            unanswered(writers);
            found.cells[0][1] = Cell::Absent;
        };
        assert!(verdict(lost, Promise::Sync).is_ok());
        wrong(|writers, _| writers[0].operations[5].outcome = Outcome::Refused, "no beginning");
    }

    #[test]
    fn a_window_bounds_what_is_lost() {
        // The last three are lost: the group was answered at 31 ms, and the last request was sent at 50 ms.
        let lost = |writers: &mut Vec<Writer>, found: &mut Found| {
            for operation in &mut writers[0].operations {
                let Outcome::Done { at_us, .. } = operation.outcome else { continue };
                operation.outcome = Outcome::Done { at_us, kept: false };
            }
            found.cells[0][GROUP] = Cell::Absent;
            found.cells[0][1] = Cell::Absent;
            found.counters[0] = 0;
        };
        assert_eq!(verdict(lost, Promise::Window(19_000)).map(|v| (v.lost, v.lost_us)), Ok((3, 19_000)));
        assert!(verdict(lost, Promise::Window(18_999)).is_err_and(|text| text.contains("J2")));
        assert!(verdict(lost, Promise::Changing).is_ok());
        // If a connection wrote after the lost answer, that write must be lost too.
        let later = |writers: &mut Vec<Writer>, found: &mut Found| {
            lost(writers, found);
            let action = Action::Set { key: 3, len: 10 };
            writers[1].operations =
                vec![Operation { number: 8, action, sent_us: 32_000, outcome: Outcome::Unanswered }];
            found.cells[1][3] = Cell::Value { number: 8, len: 10 };
        };
        assert!(verdict(later, Promise::Changing).is_err_and(|text| text.contains("J3")));
    }
}
