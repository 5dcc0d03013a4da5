//! Rounds of random commands: each from its own seed, on emptied targets, with the whole state compared at its end; a
//! failing round is shrunk and printed as a script.

use std::io;

use base::Rng;
use base::random::splitmix64;

use crate::big;
use crate::generate::{CONNECTIONS, Generator};
use crate::grammar::Rule;
use crate::script;
use crate::session::{Mismatch, Mode, Session};
use crate::shrink;
use crate::state;
use crate::step::Step;
use crate::target::Kind;

/// Requests of one round: enough for keys to gather a history, few enough to shrink.
const ROUND_LENGTH: usize = 1000;

/// One round in this many uses rules that Redis 7.0 lacks; it sits these rounds out.
const ROUNDS_WITHOUT_REDIS: u64 = 2;

/// Number of last steps to show of a failure that did not repeat.
const STEPS_SHOWN: usize = 20;

/// Parameters that rounds change, and what each round begins with. Slow commands are logged only beyond any time a
/// busy machine takes, so that the log is the same everywhere.
pub const SETTINGS: [(&str, &str); 9] = [
    ("lfu-log-factor", "10"),
    ("lfu-decay-time", "1"),
    ("slowlog-max-len", "128"),
    ("slowlog-log-slower-than", "100000000"),
    ("latency-monitor-threshold", "0"),
    ("maxmemory", "0"),
    ("hll-sparse-max-bytes", "3000"),
    ("notify-keyspace-events", ""),
    ("requirepass", ""),
];

/// What else each begins with where Onggi has databases on disk.
pub const ON_DISK: [(&str, &str); 1] = [("maxmemory", "64mb")];

/// The database that stays in memory where most are on disk.
pub const IN_MEMORY: &str = "2";

/// A round that failed, ready to print.
#[derive(Debug)]
pub struct Failure {
    /// The round, for `ONGGI_DIFF_ROUND`.
    pub round: u64,
    /// The shrunk sequence as a script, with both replies.
    pub report: String,
    /// The command whose replies differ, to distinguish failures.
    pub command: String,
}

/// The rounds of one seed.
#[derive(Debug)]
pub struct Rounds {
    seed: u64,
    with_redis: Generator,
    without_redis: Generator,
    /// Rounds begin with big collections.
    are_big: bool,
    /// Onggi has databases on disk and one in memory.
    are_on_disk: bool,
}

/// What a sequence ended with.
struct Finding {
    /// The step that shows it: of the sequence, or of the comparison of states after it.
    step: Step,
    /// Its place, when it is a step of the sequence.
    at: Option<usize>,
    mismatch: Mismatch,
}

impl Rounds {
    /// Rounds over these rules.
    pub fn new(seed: u64, rules: &[Rule]) -> Self {
        let (with_redis, without_redis) = (Generator::new(rules, true), Generator::new(rules, false));
        Self { seed, with_redis, without_redis, are_big: false, are_on_disk: false }
    }

    /// Rounds that begin with big collections.
    #[must_use]
    pub fn beginning_big(self) -> Self {
        Self { are_big: true, ..self }
    }

    /// Rounds for databases on disk and one in memory, which are not swapped.
    #[must_use]
    pub fn on_disk(self) -> Self {
        Self { are_on_disk: true, ..self }
    }

    /// The steps of one round: the same for the same seed and number.
    fn steps(&self, round: u64) -> Vec<Step> {
        let mut state = self.seed.wrapping_add(round);
        let mut rng = Rng::new(splitmix64(&mut state));
        let without_redis = round % ROUNDS_WITHOUT_REDIS == 1;
        let generator = if without_redis { &self.without_redis } else { &self.with_redis };
        let mut steps = if self.are_big { big::steps(&mut rng) } else { Vec::new() };
        steps.extend(generator.sequence(&mut rng, ROUND_LENGTH));
        if self.are_on_disk {
            steps.retain(|step| !is_memory_only(step));
        }
        if without_redis {
            steps.iter_mut().for_each(|step| step.without = vec![Kind::Redis]);
        }
        steps
    }

    /// Runs one round; the failure it ended with, shrunk.
    ///
    /// # Errors
    /// When a target cannot be brought back to life.
    pub fn run(&self, session: &mut Session, round: u64) -> io::Result<Option<Failure>> {
        check(session, &self.steps(round), self.seed, round)
    }
}

/// Whether a step exchanges the database in memory for another one, which Onggi refuses; asks how far a log is synced,
/// which depends on the moment; or for references, which the peers share only without a limit of memory; or for the
/// number of keys, which is exact only after a flush.
fn is_memory_only(step: &Step) -> bool {
    let words: Vec<String> = step.arguments().unwrap_or_default().iter().map(ToString::to_string).collect();
    let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    match lower[..] {
        ["swapdb", one, other] => (one == IN_MEMORY) != (other == IN_MEMORY),
        ["waitaof", ..] | ["object", "refcount", ..] | ["dbsize"] | ["info", ..] => true,
        _ => false,
    }
}

/// Runs the steps of a round; the failure it ended with, shrunk.
///
/// # Errors
/// When a target cannot be brought back to life.
pub(crate) fn check(session: &mut Session, steps: &[Step], seed: u64, round: u64) -> io::Result<Option<Failure>> {
    let Some(finding) = run_sequence(session, steps)? else { return Ok(None) };
    let command = command_of(&finding.step);
    let upto = finding.at.map_or(steps.len(), |at| at + 1);
    let mut broken = None;
    let shrunk = shrink::shrink(steps[..upto].to_vec(), |steps| match run_sequence(session, steps) {
        Ok(found) => found.is_some_and(|found| command_of(&found.step) == command),
        Err(error) => {
            broken = Some(error);
            false
        }
    });
    if let Some(error) = broken {
        return Err(error);
    }
    // The shrunk sequence once more, for its replies; what does not repeat is shown as it was found.
    let again = run_sequence(session, &shrunk)?;
    let title = format!("seed {} round {round}", seed);
    let report = match again {
        Some(found) => report(&title, &shrunk, &found),
        None => {
            let last = &steps[upto.saturating_sub(STEPS_SHOWN)..upto];
            report(&format!("{title}, seen once and not again: its last steps"), last, &finding)
        }
    };
    Ok(Some(Failure { round, report, command }))
}

/// Runs a sequence on emptied targets and compares what they hold at its end.
fn run_sequence(session: &mut Session, steps: &[Step]) -> io::Result<Option<Finding>> {
    let on_disk: &[_] = if session.is_on_disk() { &ON_DISK } else { &[] };
    session.reset(&[&SETTINGS, on_disk].concat(), CONNECTIONS)?;
    let (filling, others) = steps.split_at(big::filling(steps));
    for (part, before) in [(filling, 0), (others, filling.len())] {
        if let Some(mismatch) = session.run(part, Mode::FirstMismatch).pop() {
            let at = before + mismatch.step;
            return Ok(Some(Finding { step: steps[at].clone(), at: Some(at), mismatch }));
        }
        if before == 0 && !filling.is_empty() {
            big::rest(session);
        }
    }
    // A server that sat the sequence out holds nothing to compare.
    let sat_out = steps.first().map(|step| step.without.clone()).unwrap_or_default();
    let found = state::compare(session, &sat_out);
    Ok(found.map(|(step, mismatch)| Finding { step, at: None, mismatch }))
}

/// The command that distinguishes findings.
fn command_of(step: &Step) -> String {
    let line = step.arguments().and_then(|arguments| arguments.first()).map(ToString::to_string);
    line.unwrap_or_default().to_ascii_uppercase()
}

fn report(title: &str, steps: &[Step], finding: &Finding) -> String {
    let Mismatch { reference, other, .. } = &finding.mismatch;
    let behind = if finding.at.is_some() { String::new() } else { format!("then      {}\n", finding.step) };
    let script = script::print(title, steps);
    let width = reference.0.len().max(other.0.len());
    format!("{script}{behind}{:width$}  {}\n{:width$}  {}\n", reference.0, reference.1, other.0, other.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grammar;
    use crate::judge::Judge;
    use crate::target::Target;
    use crate::target::toy::{Defect, Toy};

    /// A defect is found by random commands and shrunk to one write; the state at the end shows it.
    #[test]
    fn a_failing_round_is_shrunk_to_its_cause() {
        let targets: Vec<Box<dyn Target>> =
            vec![Box::new(Toy::new(Kind::Valkey, Defect::None)), Box::new(Toy::new(Kind::Onggi, Defect::ShortReads))];
        let mut session = Session::new(targets, Judge::load().expect("the tables load"));
        let rounds = Rounds::new(7, &grammar::load(&["string".to_owned()]).expect("the grammar parses"));
        let failure = (0..10).find_map(|round| rounds.run(&mut session, round).expect("toys answer"));
        let failure = failure.expect("the defect is found");
        assert_eq!(failure.command, "GET");
        let lines: Vec<&str> = failure.report.lines().collect();
        assert_eq!(lines.len(), 5, "{}", failure.report);
        assert!(lines[1].to_ascii_uppercase().starts_with("SET "), "{}", failure.report);
        assert!(lines[2].starts_with("then ") && lines[2].contains("GET"), "{}", failure.report);
    }
}
