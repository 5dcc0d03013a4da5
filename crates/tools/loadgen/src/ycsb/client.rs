//! One client of a window: a thread with a connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use proto::reply::Value;

use super::keys::{self, Chooser, Inserted};
use super::workload::{OPERATIONS, Operation, Popular};
use super::{INDEX_KEY, Record, Window};
use crate::client::Client;
use crate::error::{BenchError, Result};
use crate::generator::new_histogram;
use base::random::Rng;

/// What a client has done in the window.
#[derive(Debug)]
pub(super) struct Ended {
    /// In nanoseconds, by [`Operation`].
    pub latency: [Histogram<u64>; OPERATIONS],
    pub misses: u64,
    pub errors: u64,
    pub first_error: Option<String>,
}

/// See the module.
pub(super) struct YcsbClient<'a> {
    connection: Client,
    inserted: &'a Inserted,
    window: &'a Window<'a>,
    chooser: Chooser,
    rng: Rng,
    origin: Instant,
    /// Nanoseconds from one due time to the next, and the first one.
    schedule: Option<(f64, f64)>,
    ended: Ended,
}

impl<'a> YcsbClient<'a> {
    pub fn new(
        connection: Client,
        inserted: &'a Inserted,
        window: &'a Window<'a>,
        at: usize,
        origin: Instant,
    ) -> Result<Self> {
        let count = inserted.count();
        if count == 0 {
            return Err(BenchError::Usage("--records must be at least 1".to_owned()));
        }
        let chooser = match window.workload.popular {
            Popular::Scattered => Chooser::scattered(count),
            Popular::Latest => Chooser::latest(count),
        };
        let interval = window.rate.map(|rate| 1e9 * window.clients as f64 / rate);
        let ended =
            Ended { latency: std::array::from_fn(|_| new_histogram()), misses: 0, errors: 0, first_error: None };
        Ok(Self {
            connection,
            inserted,
            window,
            chooser,
            rng: Rng::new(window.seed.wrapping_add((at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))),
            origin,
            schedule: interval.map(|interval| (interval, interval * at as f64 / window.clients as f64)),
            ended,
        })
    }

    /// Operates until the window has ended. An operation counts if it ends in the window; at a fixed rate, if it was
    /// due in it, and its latency begins there.
    pub fn drive(mut self, stop: &AtomicBool) -> Result<Ended> {
        let from = nanoseconds(self.window.warmup);
        let to = from.saturating_add(nanoseconds(self.window.measured));
        for number in 0u64.. {
            let due = self.schedule.map(|(interval, first)| (first + interval * number as f64) as u64);
            let begin = match due {
                Some(due) => {
                    std::thread::sleep(Duration::from_nanos(due.saturating_sub(self.now())));
                    due
                }
                None => self.now(),
            };
            if begin >= to || stop.load(Ordering::Relaxed) {
                break;
            }
            let operation = self.window.workload.pick(self.rng.below(100));
            let error = self.operate(operation)?;
            let end = self.now();
            let counted = if due.is_some() { begin } else { end };
            if (from..to).contains(&counted) {
                self.ended.latency[operation as usize].saturating_record(end.saturating_sub(begin));
                if let Some(error) = error {
                    self.ended.errors += 1;
                    self.ended.first_error.get_or_insert(error);
                }
            }
        }
        Ok(self.ended)
    }

    fn now(&self) -> u64 {
        nanoseconds(self.origin.elapsed())
    }

    /// The text of an error reply, if there was one.
    fn operate(&mut self, operation: Operation) -> Result<Option<String>> {
        match operation {
            Operation::Read => {
                let key = self.popular();
                self.read(&key)
            }
            Operation::Update => {
                let key = self.popular();
                self.update(&key)
            }
            Operation::ReadModifyWrite => {
                let key = self.popular();
                let error = self.read(&key)?;
                Ok(error.or(self.update(&key)?))
            }
            Operation::Insert => {
                let number = self.inserted.begin();
                for command in insertion(number, self.window.record, &mut self.rng) {
                    let error = self.ask(&command)?;
                    if error.is_some() {
                        return Ok(error);
                    }
                }
                self.inserted.end(number);
                Ok(None)
            }
            Operation::Scan => self.scan(),
        }
    }

    fn popular(&mut self) -> String {
        keys::name(self.chooser.draw(&mut self.rng, self.inserted.count()))
    }

    fn read(&mut self, key: &str) -> Result<Option<String>> {
        let reply = self.connection.ask(&["HGETALL", key])?;
        match &reply {
            Value::Array(fields) if fields.is_empty() => self.ended.misses += 1,
            Value::Array(_) => {}
            other => return Ok(Some(unexpected(other))),
        }
        Ok(None)
    }

    fn update(&mut self, key: &str) -> Result<Option<String>> {
        let record = self.window.record;
        let field = field(self.rng.below(record.fields as u64) as usize);
        let value = value(record.field_bytes, &mut self.rng);
        self.ask(&[b"HMSET".to_vec(), key.as_bytes().to_vec(), field, value])
    }

    fn scan(&mut self) -> Result<Option<String>> {
        let score = keys::score(&self.popular()).to_string();
        let limit = (1 + self.rng.below(self.window.scan_max)).to_string();
        let found = self.connection.ask(&["ZRANGEBYSCORE", INDEX_KEY, &score, "inf", "LIMIT", "0", &limit])?;
        let Value::Array(found) = found else { return Ok(Some(unexpected(&found))) };
        for key in found {
            let Value::Bulk(key) = key else { return Ok(Some(unexpected(&key))) };
            let error = self.read(&String::from_utf8_lossy(&key))?;
            if error.is_some() {
                return Ok(error);
            }
        }
        Ok(None)
    }

    fn ask(&mut self, command: &[Vec<u8>]) -> Result<Option<String>> {
        let words: Vec<&[u8]> = command.iter().map(|word| &word[..]).collect();
        let reply = self.connection.ask_bytes(&words)?;
        Ok(reply.as_error().map(|error| String::from_utf8_lossy(error).into_owned()))
    }
}

/// What a reply of the wrong kind says.
fn unexpected(reply: &Value) -> String {
    match reply.as_error() {
        Some(error) => String::from_utf8_lossy(error).into_owned(),
        None => format!("an array was expected, not {reply:?}"),
    }
}

/// The commands that insert a record.
pub(super) fn insertion(number: u64, record: Record, rng: &mut Rng) -> [Vec<Vec<u8>>; 2] {
    let key = keys::name(number);
    let mut fields = vec![b"HMSET".to_vec(), key.as_bytes().to_vec()];
    for at in 0..record.fields {
        fields.extend([field(at), value(record.field_bytes, rng)]);
    }
    let score = keys::score(&key).to_string();
    let index = vec![b"ZADD".to_vec(), INDEX_KEY.into(), score.into_bytes(), key.into_bytes()];
    [fields, index]
}

fn field(at: usize) -> Vec<u8> {
    format!("field{at}").into_bytes()
}

/// Random text, six characters from 32 bits as YCSB's `RandomByteIterator` makes it, so that it compresses as well.
fn value(bytes: usize, rng: &mut Rng) -> Vec<u8> {
    const SHIFTS: [(u32, u32); 6] = [(0, 31), (5, 63), (10, 95), (15, 31), (20, 63), (25, 95)];
    let mut value = Vec::with_capacity(bytes + SHIFTS.len());
    while value.len() < bytes {
        // A shift of a signed number, as in Java.
        let word = rng.next_u64() as i32;
        value.extend(SHIFTS.map(|(shift, mask)| ((word >> shift) as u32 & mask) as u8 + b' '));
    }
    value.truncate(bytes);
    value
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_text_of_their_length() {
        let mut rng = Rng::new(1);
        for bytes in [0, 1, 6, 100] {
            let value = value(bytes, &mut rng);
            assert_eq!(value.len(), bytes);
            assert!(value.iter().all(|byte| (32..128).contains(byte)));
        }
        let [fields, index] = insertion(0, Record { fields: 10, field_bytes: 100 }, &mut rng);
        assert_eq!(
            (fields.len(), fields[1].clone(), fields[20].clone()),
            (22, b"user6284781860667377211".to_vec(), b"field9".to_vec())
        );
        assert_eq!(index[..2], [b"ZADD".to_vec(), b"_indices".to_vec()]);
    }
}
