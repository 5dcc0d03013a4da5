//! One run over all targets in lockstep: the same steps to each, replies judged against the first.
//!
//! ```text
//! steps -> neighbours of one connection -> one write per target -> replies -> judge, step by step
//! ```
//!
//! S1. A step on another connection starts only when every target has answered the ones before it, so that the order
//!     of effects is the order of steps on every server.
//! S2. Targets work at the same time: all are written to before any is read from.

use std::io;

use base::Rng;

use crate::judge::Judge;
use crate::request;
use crate::resp::{self, Value};
use crate::step::{Action, Argument, Step};
use crate::target::{Kind, Outcome, Target};

/// The connection that belongs to the run and not to its steps.
const CONTROL: usize = 0;

/// At most this many steps go out in one write.
const PIPELINE_MAX: usize = 32;

/// A reply that is not the reference's and has no excuse.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The step's place in the run.
    pub step: usize,
    /// The name of the reference and what it answered.
    pub reference: (String, String),
    /// The name of the other target and what it answered.
    pub other: (String, String),
}

/// Whether a run continues after a mismatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Ends with the first: what follows would only be its consequence.
    FirstMismatch,
    /// Reports all, up to a closed connection: the steps are a list of independent checks.
    AllMismatches,
}

/// The targets and what may differ between them.
pub struct Session {
    targets: Vec<Box<dyn Target>>,
    judge: Judge,
    /// Steps that were answered and judged, over all runs.
    judged: u64,
    /// Those of them that ran a script or a function.
    scripts: u64,
    /// Decides what Onggi's databases on disk do between steps; `None` where there are none.
    rows: Option<Rng>,
}

/// Bytes dropped of each shard between steps, at most.
const DROPPED_MAX: u64 = 2000;

/// Between how many groups of steps Onggi is asked for a flush.
const FLUSH_EVERY: u64 = 4;

impl Session {
    /// What the server of a kind answers to a command of the run's own; nothing without such a server, or such an
    /// answer.
    pub fn ask_one(&mut self, kind: Kind, words: &[&str]) -> Option<Value> {
        let target = self.targets.iter_mut().find(|target| target.kind() == kind)?;
        target.send(CONTROL, &request::encode(words));
        match target.receive(CONTROL, 1).pop()? {
            Outcome::Reply(bytes) => resp::parse(&bytes).ok().map(|(value, _)| value),
            _ => None,
        }
    }

    /// A session over at least two targets, the reference first.
    ///
    /// # Panics
    /// With fewer than two.
    pub fn new(targets: Vec<Box<dyn Target>>, judge: Judge) -> Self {
        assert!(targets.len() >= 2, "a comparison needs two targets");
        Self { targets, judge, judged: 0, scripts: 0, rows: None }
    }

    /// Has Onggi forget entries that are the same on disk, and write the others to disk, between steps.
    #[must_use]
    pub fn disturbing_rows(self, rng: Rng) -> Self {
        Self { rows: Some(rng), ..self }
    }

    /// Whether Onggi has databases on disk.
    pub fn is_on_disk(&self) -> bool {
        self.rows.is_some()
    }

    /// See [`Session::disturbing_rows`]. Answers do not matter: a script may have taken the right to do this.
    fn disturb_rows(&mut self) {
        let Some(rng) = &mut self.rows else { return };
        let bytes = (rng.below(DROPPED_MAX)).to_string();
        let is_flush = rng.one_in(FLUSH_EVERY);
        let words: &[&str] = if is_flush { &["DEBUG", "DISK", "FLUSH"] } else { &["DEBUG", "DISK", "DROP", &bytes] };
        for target in self.targets.iter_mut().filter(|target| target.kind() == Kind::Onggi) {
            target.send(CONTROL, &request::encode(words));
            target.receive(CONTROL, 1);
        }
    }

    /// The judge, for the hits it counted.
    pub fn judge(&self) -> &Judge {
        &self.judge
    }

    /// Requests answered and judged so far.
    pub fn judged(&self) -> u64 {
        self.judged
    }

    /// Those of them that ran a script or a function.
    pub fn scripts(&self) -> u64 {
        self.scripts
    }

    /// Whether a server of this kind takes part.
    pub fn has(&self, kind: Kind) -> bool {
        self.targets.iter().any(|target| target.kind() == kind)
    }

    /// Empties every target, sets the parameters of `settings` and opens `connections` connections besides its own. A
    /// target that does not answer, or does not empty itself, is restarted.
    ///
    /// # Errors
    /// When a target cannot be brought back.
    pub fn reset(&mut self, settings: &[(&str, &str)], connections: usize) -> io::Result<()> {
        self.judge.forget_transactions();
        for target in &mut self.targets {
            if !prepare(target.as_mut(), settings, connections).unwrap_or(false) {
                target.restart()?;
                // It is empty now, whether or not it knows how to be emptied.
                prepare(target.as_mut(), settings, connections)?;
            }
        }
        Ok(())
    }

    /// Starts every target anew, after a run that may have left one of them stuck.
    ///
    /// # Errors
    /// When one does not come up.
    pub fn restart(&mut self) -> io::Result<()> {
        self.targets.iter_mut().try_for_each(|target| target.restart())
    }

    /// Runs the steps on connections that [`reset`](Session::reset) opened.
    pub fn run(&mut self, steps: &[Step], mode: Mode) -> Vec<Mismatch> {
        let mut mismatches = Vec::new();
        let mut start = 0;
        let is_every_command_logged = steps.iter().any(logs_every_command);
        while start < steps.len() {
            let end = group_end(steps, start);
            self.run_group(steps, start..end, &mut mismatches);
            if !is_every_command_logged {
                self.disturb_rows();
            }
            if mode == Mode::FirstMismatch && !mismatches.is_empty() {
                mismatches.truncate(1);
                break;
            }
            // A target that has closed the connection would do so again at every further step.
            if let Some(end) = mismatches.iter().position(|mismatch| mismatch.other.1 == CLOSED) {
                mismatches.truncate(end + 1);
                break;
            }
            start = end;
        }
        mismatches
    }

    /// Runs steps that belong into one write, or one step that is none.
    fn run_group(&mut self, steps: &[Step], group: std::ops::Range<usize>, mismatches: &mut Vec<Mismatch>) {
        let first = &steps[group.start];
        let connection = first.connection;
        let takes_part: Vec<bool> = self.targets.iter().map(|target| !first.without.contains(&target.kind())).collect();
        let per_target: Vec<Vec<Outcome>> = if first.pipelines() {
            let replies = steps[group.clone()].iter().map(Step::replies).sum();
            for (target, _) in self.targets.iter_mut().zip(&takes_part).filter(|(_, takes_part)| **takes_part) {
                let bytes: Vec<u8> = steps[group.clone()].iter().flat_map(|step| step.bytes(target.as_ref())).collect();
                target.send(connection, &bytes);
            }
            let receive = |(target, takes_part): (&mut Box<dyn Target>, &bool)| {
                if *takes_part { target.receive(connection, replies) } else { Vec::new() }
            };
            self.targets.iter_mut().zip(&takes_part).map(receive).collect()
        } else {
            let perform = |(target, takes_part): (&mut Box<dyn Target>, &bool)| {
                if *takes_part { perform(target.as_mut(), first).into_iter().collect() } else { Vec::new() }
            };
            self.targets.iter_mut().zip(&takes_part).map(perform).collect()
        };
        let mut next = 0;
        for step in group.clone() {
            let replies = if first.pipelines() { steps[step].replies() } else { per_target[0].len() };
            for reply in next..next + replies {
                self.judge_reply(step, &steps[step], &per_target, reply, mismatches);
            }
            next += replies;
        }
        if matches!(first.action, Action::Closed | Action::Reopen) {
            self.judge.forget_transaction(connection);
        }
    }

    fn judge_reply(
        &mut self,
        index: usize,
        step: &Step,
        outcomes: &[Vec<Outcome>],
        reply: usize,
        mismatches: &mut Vec<Mismatch>,
    ) {
        let Some(reference) = outcomes[0].get(reply) else { return };
        self.judged += 1;
        let arguments = step.arguments().unwrap_or_default();
        let words: Vec<Vec<u8>> = arguments.iter().map(|argument| argument.resolve(self.targets[0].as_ref())).collect();
        let runs =
            |name: &Vec<u8>| [&b"eval"[..], b"fcall"].iter().any(|run| name.to_ascii_lowercase().starts_with(run));
        self.scripts += u64::from(words.first().is_some_and(runs));
        for (target, outcomes) in self.targets.iter().zip(outcomes).skip(1) {
            let Some(other) = outcomes.get(reply) else { continue };
            if !self.judge.accept(target.kind(), step.connection, &words, reference, other) {
                mismatches.push(Mismatch {
                    step: index,
                    reference: (self.targets[0].name().to_owned(), shown(reference)),
                    other: (target.name().to_owned(), shown(other)),
                });
            }
        }
        self.judge.note(step.connection, words, reference);
    }

    /// The reply of the reference to a request on the run's own connection, and of every other target.
    pub fn ask(&mut self, request: &[Vec<u8>]) -> Vec<Option<Value>> {
        let bytes = request::encode(request);
        let ask = |target: &mut Box<dyn Target>| {
            target.send(CONTROL, &bytes);
            match target.receive(CONTROL, 1).pop() {
                Some(Outcome::Reply(bytes)) => resp::parse(&bytes).ok().map(|(value, _)| value),
                _ => None,
            }
        };
        self.targets.iter_mut().map(ask).collect()
    }

    /// Runs `steps` on the run's own connection.
    pub fn run_on_control(&mut self, steps: &mut [Step], mode: Mode) -> Vec<Mismatch> {
        steps.iter_mut().for_each(|step| step.connection = CONTROL);
        self.run(steps, mode)
    }
}

/// Whether SLOWLOG shows all commands from here on, those of the run's own among them.
fn logs_every_command(step: &Step) -> bool {
    let words: Vec<String> = step.arguments().unwrap_or_default().iter().map(ToString::to_string).collect();
    words.windows(2).any(|words| words == ["slowlog-log-slower-than", "0"])
}

/// Where the group that begins at `start` ends.
fn group_end(steps: &[Step], start: usize) -> usize {
    let first = &steps[start];
    if !first.pipelines() {
        return start + 1;
    }
    let same = |step: &&Step| step.pipelines() && step.connection == first.connection && step.without == first.without;
    start + steps[start..].iter().take(PIPELINE_MAX).take_while(same).count()
}

/// The users that scripts and random commands make.
const USERS: [&str; 3] = ["alice", "bob", "carol"];

/// Brings a target into the state a run begins with; whether it said that it emptied itself.
fn prepare(target: &mut dyn Target, settings: &[(&str, &str)], connections: usize) -> io::Result<bool> {
    target.open(CONTROL)?;
    let mut requests: Vec<Vec<&str>> = vec![vec!["CLIENT", "UNPAUSE"], vec!["FLUSHALL"]];
    requests.extend(settings.iter().map(|(name, value)| vec!["CONFIG", "SET", name, value]));
    requests.push(vec!["DEBUG", "SET-ACTIVE-EXPIRE", "1"]);
    requests.push([&["ACL", "DELUSER"], USERS.as_slice()].concat());
    requests.extend([vec!["ACL", "SETUSER", "default", "reset", "on", "nopass", "~*", "&*", "+@all"]]);
    requests.push(vec!["ACL", "LOG", "RESET"]);
    requests.extend([vec!["SLOWLOG", "RESET"], vec!["LATENCY", "RESET"]]);
    for kind in ["large-request", "large-reply"] {
        requests.push(vec!["COMMANDLOG", "RESET", kind]);
    }
    // The last request before the steps: what the ones above counted is forgotten.
    requests.push(vec!["CONFIG", "RESETSTAT"]);
    let bytes: Vec<u8> = requests.iter().flat_map(|request| request::encode(request)).collect();
    target.send(CONTROL, &bytes);
    let replies = target.receive(CONTROL, requests.len());
    if !replies.iter().all(|reply| matches!(reply, Outcome::Reply(_))) {
        return Err(io::Error::other(format!("{} does not answer", target.name())));
    }
    (1..=connections).try_for_each(|connection| target.open(connection))?;
    Ok(replies.get(1) == Some(&Outcome::Reply(b"+OK\r\n".to_vec())))
}

/// A step that is more than bytes and replies.
fn perform(target: &mut dyn Target, step: &Step) -> Option<Outcome> {
    match &step.action {
        Action::Scan(arguments) => Some(scan(target, step.connection, arguments)),
        Action::Blocked => Some(await_blocked(target, step.connection)),
        Action::Closed => {
            let outcome = target.await_close(step.connection);
            Some(reopened(target, step.connection).unwrap_or(outcome))
        }
        Action::Reopen => reopened(target, step.connection),
        _ => None,
    }
}

/// Opens the connection again, and waits until the server knows that the old one is closed: until then it may be served
/// what others send next. An outcome only if that fails.
fn reopened(target: &mut dyn Target, connection: usize) -> Option<Outcome> {
    let old = target.identity(connection).id.clone();
    if target.open(connection).is_err() {
        return Some(Outcome::Closed);
    }
    // Where a script has set a password, the control connection may not ask.
    match poll_client(target, &old, |line| line.is_none_or(<[u8]>::is_empty)) {
        true => None,
        false => Some(Outcome::Silence(b"the old connection stays".to_vec())),
    }
}

/// A full pass takes at most this many pages, far more than any keyspace of these tests has keys.
const SCAN_PAGES_MAX: usize = 100_000;

/// All keys of a full pass, sorted, each once: what SCAN promises, whatever the cursors.
fn scan(target: &mut dyn Target, connection: usize, arguments: &[Argument]) -> Outcome {
    let mut cursor = b"0".to_vec();
    let mut keys = Vec::new();
    for _ in 0..SCAN_PAGES_MAX {
        let mut request = vec![b"SCAN".to_vec(), cursor];
        request.extend(arguments.iter().map(|argument| argument.resolve(target)));
        target.send(connection, &request::encode(&request));
        let Some(outcome) = target.receive(connection, 1).pop() else { break };
        let page = match &outcome {
            Outcome::Reply(bytes) => resp::parse(bytes).ok().map(|(value, _)| value),
            _ => None,
        };
        let Some([Value::Bulk(next), Value::Array(page)]) = page.as_ref().and_then(Value::items) else {
            return outcome;
        };
        keys.extend(page.iter().filter_map(Value::text).map(<[u8]>::to_vec));
        cursor = next.clone();
        if cursor == b"0" {
            keys.sort();
            keys.dedup();
            return Outcome::Reply(request::encode(&keys));
        }
    }
    Outcome::Silence(b"SCAN does not come to its end".to_vec())
}

/// Asks until the connection is blocked.
fn await_blocked(target: &mut dyn Target, connection: usize) -> Outcome {
    let id = target.identity(connection).id.clone();
    let is_blocked = |line: &[u8]| String::from_utf8_lossy(line).contains(" flags=b");
    match poll_client(target, &id, |line| line.is_some_and(is_blocked)) {
        true => Outcome::Reply(b"+blocked\r\n".to_vec()),
        false => Outcome::Silence(b"the connection does not block".to_vec()),
    }
}

/// Asks for the line of CLIENT LIST about a client, which is empty when there is no such client, until it is as wanted;
/// false when it never is. `None` is given for any other reply.
fn poll_client(target: &mut dyn Target, id: &[u8], is_wanted: impl Fn(Option<&[u8]>) -> bool) -> bool {
    let request = request::encode(&[&b"CLIENT"[..], b"LIST", b"ID", id]);
    for _ in 0..1000 {
        target.send(CONTROL, &request);
        let reply = match target.receive(CONTROL, 1).pop() {
            Some(Outcome::Reply(bytes)) => resp::parse(&bytes).ok().map(|(value, _)| value),
            _ => None,
        };
        let line = if let Some(Value::Bulk(line)) = &reply { Some(&line[..]) } else { None };
        if is_wanted(line) {
            return true;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    false
}

/// What reports say of a closed connection.
const CLOSED: &str = "(closes the connection)";

/// An outcome as reports show it: the reply on one line, or what happened instead.
fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(bytes) => {
            let mut rest = &bytes[..];
            let mut values = Vec::new();
            while let Ok((value, length)) = resp::parse(rest) {
                values.push(value.to_string());
                rest = &rest[length..];
            }
            values.join(" then ")
        }
        Outcome::Closed => CLOSED.to_owned(),
        Outcome::Silence(bytes) => format!("(no reply in time) {}", crate::text::escaped(bytes)),
        Outcome::Malformed(bytes) => format!("(no reply, but) {}", crate::text::escaped(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::toy::{Defect, Toy};

    fn session(defect: Defect) -> Session {
        let targets: Vec<Box<dyn Target>> =
            vec![Box::new(Toy::new(Kind::Valkey, Defect::None)), Box::new(Toy::new(Kind::Onggi, defect))];
        Session::new(targets, Judge::load().expect("the tables load"))
    }

    fn steps() -> Vec<Step> {
        let lines: [&[&str]; 6] = [
            &["SET", "a", "1"],
            &["GET", "a"],
            &["SET", "lost", "long"],
            &["GET", "lost"],
            &["GET", "hang"],
            &["PING"],
        ];
        lines.iter().enumerate().map(|(i, words)| Step::words(1 + i % 2, words)).collect()
    }

    fn places(defect: Defect, mode: Mode) -> Vec<usize> {
        let mut session = session(defect);
        session.reset(&[], 2).expect("toys reset");
        session.run(&steps(), mode).iter().map(|mismatch| mismatch.step).collect()
    }

    /// The comparison sees a wrong reply, a lost write and a missing reply, at their step and nowhere else.
    #[test]
    fn defects_are_found_where_they_show() {
        assert_eq!(places(Defect::None, Mode::AllMismatches), [0; 0]);
        assert_eq!(places(Defect::ShortReads, Mode::AllMismatches), [3]);
        assert_eq!(places(Defect::LostWrites, Mode::AllMismatches), [3]);
        assert_eq!(places(Defect::Hangs, Mode::FirstMismatch), [4]);
    }

    #[test]
    fn who_sits_a_step_out_is_not_compared_by_it() {
        let mut session = session(Defect::ShortReads);
        session.reset(&[], 2).expect("toys reset");
        let mut steps = steps();
        steps.iter_mut().for_each(|step| step.without = vec![Kind::Onggi]);
        assert!(session.run(&steps, Mode::AllMismatches).is_empty());
        assert!(session.judged() > 0);
    }

    /// A write that left no trace in the replies is found in the state at the end.
    #[test]
    fn a_state_that_differs_is_found() {
        let mut session = session(Defect::LostWrites);
        session.reset(&[], 1).expect("toys reset");
        assert!(session.run(&steps()[2..3], Mode::FirstMismatch).is_empty());
        let (step, _) = crate::state::compare(&mut session, &[]).expect("the states differ");
        assert!(matches!(step.action, Action::Scan(_)));
    }

    #[test]
    fn neighbours_of_one_connection_share_a_write() {
        let steps: Vec<Step> = (0..50).map(|i| Step::words(1 + usize::from(i >= 40), &["PING"])).collect();
        assert_eq!(group_end(&steps, 0), PIPELINE_MAX);
        assert_eq!(group_end(&steps, 32), 40);
    }
}
