//! The keys of YCSB: their names, the order of its index, and which of them an operation asks for.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::KEY_PREFIX;
use crate::keys::{THETA, Zipfian};
use base::random::Rng;

/// Items over which YCSB's scattered zipfian law is drawn, whatever the number of records
/// (`ScrambledZipfianGenerator.ITEM_COUNT`).
const SCATTERED_ITEMS: u64 = 10_000_000_000;

/// The sum of 1 / i^0.99 over them (`ScrambledZipfianGenerator.ZETAN`).
const SCATTERED_ZETA: f64 = 26.469_028_201_783_02;

/// The FNV-1a hash of a number's eight bytes, without its sign (`Utils.fnvhash64`).
pub fn fnv(number: u64) -> u64 {
    let hash = number
        .to_le_bytes()
        .iter()
        .fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211));
    (hash as i64).wrapping_abs() as u64
}

/// The key of a record (`CoreWorkload.buildKeyName`, with `insertorder=hashed`).
pub fn name(number: u64) -> String {
    format!("{KEY_PREFIX}{}", fnv(number))
}

/// The score of a key in the index: its `String.hashCode()`.
pub fn score(name: &str) -> i32 {
    name.bytes().fold(0, |hash: i32, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte)))
}

/// The records that exist, shared by all clients of a server. A record counts once all before it are there.
#[derive(Debug)]
pub struct Inserted {
    next: AtomicU64,
    count: AtomicU64,
    /// Records that are there, while one before them is not.
    ahead: Mutex<BTreeSet<u64>>,
}

impl Inserted {
    /// Records `0..count`.
    pub fn new(count: u64) -> Self {
        Self { next: AtomicU64::new(count), count: AtomicU64::new(count), ahead: Mutex::default() }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The number of a record that the caller is about to insert.
    pub fn begin(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// It is there.
    pub fn end(&self, number: u64) {
        let mut ahead = self.ahead.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        ahead.insert(number);
        let mut count = self.count.load(Ordering::Relaxed);
        while ahead.remove(&count) {
            count += 1;
        }
        self.count.store(count, Ordering::Release);
    }
}

/// Draws records for one client.
#[derive(Clone, Debug)]
pub enum Chooser {
    /// The popular ones scattered over those that there were at the beginning.
    Scattered {
        /// Of the law.
        zipfian: Zipfian,
        /// Records at the beginning.
        count: u64,
    },
    /// The newest ones most.
    Latest(Zipfian),
}

impl Chooser {
    /// Over `count` records.
    pub fn scattered(count: u64) -> Self {
        Self::Scattered { zipfian: Zipfian::with_zeta(SCATTERED_ITEMS, THETA, SCATTERED_ZETA), count }
    }

    /// Over `count` records and all that come.
    pub fn latest(count: u64) -> Self {
        Self::Latest(Zipfian::new(count, THETA))
    }

    /// The number of a record, of which there are `count` now.
    pub fn draw(&mut self, rng: &mut Rng, count: u64) -> u64 {
        match self {
            Self::Scattered { zipfian, count } => fnv(zipfian.rank(rng)) % *count,
            Self::Latest(zipfian) => {
                zipfian.grow(count);
                (count - 1).saturating_sub(zipfian.rank(rng))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures that the program of YCSB gives.
    #[test]
    fn names_are_those_of_ycsb() {
        assert_eq!(name(0), "user6284781860667377211");
        assert_eq!(name(1), "user8517097267634966620");
        assert_eq!(name(2), "user1820151046732198393");
        assert_eq!(score("user1"), 111_578_566);
    }

    #[test]
    fn records_count_once_all_before_are_there() {
        let inserted = Inserted::new(10);
        let numbers = [inserted.begin(), inserted.begin(), inserted.begin()];
        assert_eq!(numbers, [10, 11, 12]);
        inserted.end(12);
        inserted.end(11);
        assert_eq!(inserted.count(), 10);
        inserted.end(10);
        assert_eq!(inserted.count(), 13);
    }

    /// A law that has grown is that of the larger number.
    #[test]
    fn latest_follows_insertions() {
        let (mut chooser, mut rng) = (Chooser::latest(100), Rng::new(3));
        let drawn: Vec<u64> = (0..2000).map(|_| chooser.draw(&mut rng, 200)).collect();
        assert!(drawn.iter().all(|number| *number < 200));
        assert!(drawn.iter().filter(|number| **number >= 190).count() > 600);
        let (mut grown, whole) = (Zipfian::new(100, THETA), Zipfian::new(200, THETA));
        grown.grow(200);
        let (mut a, mut b) = (Rng::new(5), Rng::new(5));
        assert!((0..1000).all(|_| grown.rank(&mut a) == whole.rank(&mut b)));
    }

    /// The most popular record of the scattered law has the share that its rank has among ten billion.
    #[test]
    fn scattered_ranks_have_their_shares() {
        let (mut chooser, mut rng) = (Chooser::scattered(1000), Rng::new(4));
        const DRAWS: u64 = 200_000;
        let mut counts = vec![0u64; 1000];
        (0..DRAWS).for_each(|_| counts[chooser.draw(&mut rng, 1000) as usize] += 1);
        let hottest = fnv(0) % 1000;
        let share = counts[hottest as usize] as f64 / DRAWS as f64;
        // Besides its own rank it has about a thousandth of the others'.
        assert!((share - 1.0 / SCATTERED_ZETA - 0.001).abs() < 0.003, "{share}");
    }
}
