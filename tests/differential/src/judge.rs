//! Whether a reply is the reference's: equal bytes, or equal by the table of normalisers, or an accepted difference;
//! inside the reply of EXEC, each element by the command that was queued.

use std::collections::BTreeMap;

use crate::differences::Differences;
use crate::normalise::Table;
use crate::pattern::CommandLine;
use crate::resp::{self, Value};
use crate::target::{Kind, Outcome};

/// Both tables, and the transactions under way.
#[derive(Debug)]
pub struct Judge {
    normalisers: Table,
    differences: Differences,
    /// By connection, the commands queued since MULTI, as the reference saw them.
    queues: BTreeMap<usize, Vec<Vec<Vec<u8>>>>,
}

impl Judge {
    /// A judge by the tables of the project.
    ///
    /// # Errors
    /// When the page of differences cannot be read.
    pub fn load() -> Result<Self, String> {
        Ok(Self { normalisers: Table::load(), differences: Differences::load()?, queues: BTreeMap::new() })
    }

    /// The accepted differences, with their hits.
    pub fn differences(&self) -> &Differences {
        &self.differences
    }

    /// Whether a server of this kind may answer `other` to `words` where the reference answers `reference`.
    pub fn accept(
        &self,
        kind: Kind,
        connection: usize,
        words: &[Vec<u8>],
        reference: &Outcome,
        other: &Outcome,
    ) -> bool {
        if reference == other {
            // Two missing replies do not agree.
            return !matches!(reference, Outcome::Silence(_) | Outcome::Malformed(_));
        }
        let (Outcome::Reply(reference), Outcome::Reply(other)) = (reference, other) else { return false };
        let (Some((pushes, reference)), Some((other_pushes, other))) = (frames(reference), frames(other)) else {
            return false;
        };
        if pushes != other_pushes {
            return false;
        }
        match (&reference, &other, self.queues.get(&connection)) {
            (Value::Array(a), Value::Array(b), Some(queue))
                if is_exec(words) && a.len() == b.len() && a.len() == queue.len() =>
            {
                queue.iter().zip(a.iter().zip(b)).all(|(words, (a, b))| self.accept_value(kind, words, a, b))
            }
            _ => self.accept_value(kind, words, &reference, &other),
        }
    }

    fn accept_value(&self, kind: Kind, words: &[Vec<u8>], reference: &Value, other: &Value) -> bool {
        if reference == other {
            return true;
        }
        let line = CommandLine::new(words.to_vec());
        self.normalisers.agree(&line, reference, other) || self.differences.accept(kind, &line, reference, other)
    }

    /// Takes note of what the reference answered, so that a later EXEC can be judged.
    pub fn note(&mut self, connection: usize, words: Vec<Vec<u8>>, reference: &Outcome) {
        match reference {
            Outcome::Reply(bytes) if bytes == b"+QUEUED\r\n" => self.queues.entry(connection).or_default().push(words),
            Outcome::Reply(bytes) if !bytes.starts_with(b"-EXECABORT") && !ends_transaction(&words) => {}
            _ => self.forget_transaction(connection),
        }
    }

    /// The connection was closed or has left its transaction.
    pub fn forget_transaction(&mut self, connection: usize) {
        self.queues.remove(&connection);
    }

    /// All connections were closed.
    pub fn forget_transactions(&mut self) {
        self.queues.clear();
    }
}

/// The bytes of the pushes before a reply, and the reply.
fn frames(bytes: &[u8]) -> Option<(&[u8], Value)> {
    let mut start = 0;
    loop {
        match resp::parse(&bytes[start..]).ok()? {
            (Value::Push(_), length) => start += length,
            (value, _) => return Some((&bytes[..start], value)),
        }
    }
}

fn is_exec(words: &[Vec<u8>]) -> bool {
    words.first().is_some_and(|name| name.eq_ignore_ascii_case(b"EXEC"))
}

/// EXEC, DISCARD and RESET, whether they succeed or not: none of them is ever queued. EXEC with an argument too many
/// ends a transaction as well, which its error says.
fn ends_transaction(words: &[Vec<u8>]) -> bool {
    let Some(name) = words.first() else { return false };
    [&b"EXEC"[..], b"DISCARD", b"RESET"].iter().any(|word| name.eq_ignore_ascii_case(word)) && words.len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(bytes: &[u8]) -> Outcome {
        Outcome::Reply(bytes.to_vec())
    }

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn elements_of_exec_are_judged_by_what_was_queued() {
        let mut judge = Judge::load().expect("the tables load");
        judge.note(1, words("PTTL k"), &reply(b"+QUEUED\r\n"));
        judge.note(1, words("INCR k"), &reply(b"+QUEUED\r\n"));
        let reference = reply(b"*2\r\n:5000\r\n:1\r\n");
        let accepts =
            |judge: &Judge, other: &[u8]| judge.accept(Kind::Onggi, 1, &words("EXEC"), &reference, &reply(other));
        assert!(accepts(&judge, b"*2\r\n:4990\r\n:1\r\n"));
        assert!(!accepts(&judge, b"*2\r\n:5000\r\n:2\r\n"));
        judge.note(1, words("exec"), &reference);
        assert!(!accepts(&judge, b"*2\r\n:4990\r\n:1\r\n"));
    }

    #[test]
    fn silence_of_all_is_no_agreement() {
        let judge = Judge::load().expect("the tables load");
        let silence = Outcome::Silence(Vec::new());
        assert!(!judge.accept(Kind::Onggi, 1, &words("GET k"), &silence, &silence.clone()));
        assert!(judge.accept(Kind::Onggi, 1, &words("QUIT"), &Outcome::Closed, &Outcome::Closed));
    }
}
