//! Whether all targets hold the same data: every key of every database with its type, value, deadline and encoding, and
//! after that DEBUG DIGEST of everything.

use crate::resp::Value;
use crate::session::{Mismatch, Mode, Session};
use crate::step::{Action, Argument, Step};
use crate::target::Kind;

/// The databases of a default configuration.
const DATABASES: usize = 16;

/// The requests compared for every key: the words before it, and those after it.
const QUESTIONS: [(&[&str], &[&str]); 7] = [
    (&["TYPE"], &[]),
    (&["GET"], &[]),
    (&["HGETALL"], &[]),
    (&["SMEMBERS"], &[]),
    (&["PEXPIRETIME"], &[]),
    (&["OBJECT", "ENCODING"], &[]),
    (&["XINFO", "STREAM"], &["FULL", "COUNT", "0"]),
];

/// The first difference between the targets, those `without` left out, and the request that shows it.
pub fn compare(session: &mut Session, without: &[Kind]) -> Option<(Step, Mismatch)> {
    (0..DATABASES)
        .find_map(|database| compare_database(session, without, database))
        .or_else(|| first_mismatch(session, without, vec![Step::words(0, &["DEBUG", "DIGEST"])]))
}

fn compare_database(session: &mut Session, without: &[Kind], database: usize) -> Option<(Step, Mismatch)> {
    let scan = Step { connection: 0, action: Action::Scan(Vec::new()), without: Vec::new() };
    let select = Step::words(0, &["SELECT", &database.to_string()]);
    if let Some(difference) = first_mismatch(session, without, vec![select, scan]) {
        return Some(difference);
    }
    let keys = match session.ask(&[b"KEYS".to_vec(), b"*".to_vec()]).into_iter().next() {
        Some(Some(Value::Array(keys))) => keys,
        _ => return None,
    };
    let mut steps = Vec::new();
    for key in keys.iter().filter_map(Value::text) {
        for (before, behind) in QUESTIONS {
            let words = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
            let arguments = [words(before), vec![key.to_vec()], words(behind)].concat();
            steps.push(Step::command(0, arguments.into_iter().map(Argument::Bytes).collect()));
        }
    }
    first_mismatch(session, without, steps)
}

fn first_mismatch(session: &mut Session, without: &[Kind], mut steps: Vec<Step>) -> Option<(Step, Mismatch)> {
    steps.iter_mut().for_each(|step| step.without = without.to_vec());
    let mismatch = session.run_on_control(&mut steps, Mode::FirstMismatch).pop()?;
    Some((steps[mismatch.step].clone(), mismatch))
}
