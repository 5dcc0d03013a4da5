//! The hottest keys: by calls, by time, by bytes.
//!
//! ```text
//! call done --chosen by cost--> a key of it --by hash--> stripe: up to 16 keys watched, the least important replaced
//! ```
//!
//! H1. What a chosen call stands for is added to one of its keys, each equally likely: all figures are unbiased sums
//!     over calls, from when the key began to be watched. Calls that take long are all chosen, and stand for
//!     themselves.
//! H2. A key that is not watched takes the place of the least important one of its stripe with a probability that grows
//!     with its own importance, and then inherits the other's: about what it may have had before it was watched (R. Ben
//!     Basat, X. Chen, G. Einziger, R. Friedman, Y. Kassner: Randomized Admission Policy for Efficient Top-k and
//!     Frequency Estimation, INFOCOM 2017). So keys that come once leave the others alone.
//! H3. Importance is counted in strides of the sampler, or in the time that a stride takes, if that is more; so one
//!     table serves all three orders.
//!
//! A key's stripe follows from its hash, whichever worker has met it; the lock is held for some hundred instructions.

use base::KeyspaceId;
use command::observer::Done;
use command::sampler::{self, STRIDE};
use command::{KeyFlags, KeySpec};
use engine::Key;
use parking_lot::Mutex;

/// Slices of the table, each with a lock.
const STRIPE_COUNT: usize = 64;
/// Keys watched in each.
const WATCHED_MAX: usize = 16;
/// Keys watched in all.
pub const KEYS_MAX: usize = STRIPE_COUNT * WATCHED_MAX;
/// Bytes kept of a key.
const KEY_BYTES_MAX: usize = 4096;
/// Calls that take at least this long are counted without being chosen.
pub const LONG_CALL_NS: u64 = 1_000_000;
/// Time that counts as much as a stride of the sampler: what about eighteen short calls take.
const STRIDE_NS: u64 = 4096;
/// Standard deviations within which an estimate is said to lie: 95 in 100 do.
const DEVIATIONS: f64 = 2.0;

/// By what keys are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Calls.
    Ops,
    /// Nanoseconds in calls.
    Cpu,
    /// Bytes of requests and replies.
    Bytes,
}

const MEASURES: usize = 3;

/// An amount of each [`Measure`].
type Amounts = [f64; MEASURES];

/// One of the keys asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct HotKey {
    /// Its first [`KEY_BYTES_MAX`] bytes.
    pub key: Box<[u8]>,
    /// Where it is.
    pub space: KeyspaceId,
    /// How much there was of the measure.
    pub estimate: f64,
    /// By how much the estimate may be wrong, with a probability of 95 %.
    pub error: f64,
}

/// The keys watched.
pub struct HotKeys {
    stripes: Box<[Mutex<Stripe>]>,
}

impl Default for HotKeys {
    fn default() -> Self {
        Self { stripes: (0..STRIPE_COUNT).map(|_| Mutex::default()).collect() }
    }
}

impl HotKeys {
    /// Takes account of a call if the worker's sampler has chosen it, or if it took long.
    pub fn look(&self, done: &Done<'_>) {
        let bytes = (done.request_bytes as u64).saturating_add(done.reply_bytes as u64);
        let cost = sampler::cost(bytes);
        let choice = done.stats.sampler.choice(cost);
        let (weight, draw) = match choice {
            _ if done.duration_ns >= LONG_CALL_NS => (1.0, done.stats.now()),
            Some(choice) => (choice.weight, choice.draw),
            None => return,
        };
        if let Some((key, keys)) = key_of(done, draw) {
            self.add(&key, &Sample::new(weight, keys, done.duration_ns, bytes), draw);
        }
    }

    fn add(&self, key: &Key<'_>, sample: &Sample, draw: u64) {
        let hash = key.hash ^ u64::from(key.space.0);
        if let Some(stripe) = self.stripes.get(hash as usize % STRIPE_COUNT) {
            stripe.lock().add(hash, key, sample, draw);
        }
    }

    /// The first keys in the order of a measure.
    pub fn first(&self, measure: Measure, count: usize) -> Vec<HotKey> {
        let mut keys: Vec<HotKey> = self.stripes.iter().flat_map(|stripe| stripe.lock().keys(measure)).collect();
        keys.sort_by(|a, b| b.estimate.total_cmp(&a.estimate));
        keys.truncate(count);
        keys
    }

    /// Forgets all keys.
    pub fn reset(&self) {
        self.stripes.iter().for_each(|stripe| *stripe.lock() = Stripe::default());
    }
}

/// A random one of the keys of a request, and how many it has.
fn key_of<'a>(done: &Done<'a>, draw: u64) -> Option<(Key<'a>, u64)> {
    if let Some((_, key)) = done.hashed
        && KeySpec::are_one(done.keys)
    {
        return Some((key, 1));
    }
    let mut keys = 0;
    visit_keys(done, |_| keys += 1);
    let chosen = draw.checked_rem(keys)?;
    let (mut visited, mut found) = (0, None);
    visit_keys(done, |index| {
        if visited == chosen {
            found = Some(index);
        }
        visited += 1;
    });
    found.map(|index| (done.key(index), keys))
}

/// Visits the argument indexes of keys. Channels are routed like keys, and are none.
fn visit_keys(done: &Done<'_>, mut each: impl FnMut(usize)) {
    KeySpec::visit_all(done.keys, &done.args, |index, spec| {
        if !spec.flags.contains(KeyFlags::NOT_KEY) {
            each(index);
        }
    });
}

/// What a chosen call adds to a key.
struct Sample {
    amounts: Amounts,
    /// Of the square of each amount, this share is variance.
    variance: f64,
    /// H3.
    importance: u64,
}

impl Sample {
    /// A call that stands for `weight` calls, on one of `keys` keys: each had the call, and a part of its cost.
    fn new(weight: f64, keys: u64, duration_ns: u64, bytes: u64) -> Self {
        Self {
            amounts: [weight * keys as f64, weight * duration_ns as f64, weight * bytes as f64],
            variance: 1.0 - 1.0 / weight,
            importance: (sampler::cost(bytes) / STRIDE).max(duration_ns / STRIDE_NS).max(1),
        }
    }
}

/// Keys that share a lock.
#[derive(Default)]
struct Stripe {
    /// The hash of each key watched, apart from the rest to be searched fast.
    hashes: [u64; WATCHED_MAX],
    watched: Vec<Watched>,
    /// The place of the least important key.
    least_at: usize,
    /// What was added, to keys watched and others.
    totals: Amounts,
    /// The importance of that.
    importance: u64,
}

struct Watched {
    key: Box<[u8]>,
    space: KeyspaceId,
    importance: u64,
    /// H2.
    inherited: u64,
    sums: Amounts,
    variances: Amounts,
}

impl Stripe {
    fn add(&mut self, hash: u64, key: &Key<'_>, sample: &Sample, draw: u64) {
        self.importance += sample.importance;
        self.totals.iter_mut().zip(sample.amounts).for_each(|(total, amount)| *total += amount);
        let found = (0..WATCHED_MAX).find(|at| self.hashes[*at] == hash).filter(|at| *at < self.watched.len());
        let Some(at) = found.or_else(|| self.admit(hash, key, sample.importance, draw)) else { return };
        let watched = &mut self.watched[at];
        watched.importance += sample.importance;
        for (index, amount) in sample.amounts.into_iter().enumerate() {
            watched.sums[index] += amount;
            watched.variances[index] += amount * amount * sample.variance;
        }
        if at == self.least_at {
            self.find_least();
        }
    }

    /// Begins to watch a key, perhaps (H2). Gives its place.
    fn admit(&mut self, hash: u64, key: &Key<'_>, importance: u64, draw: u64) -> Option<usize> {
        let (at, inherited) = match self.watched.len() {
            WATCHED_MAX => (self.least_at, self.watched[self.least_at].importance),
            length => (length, 0),
        };
        if draw % (inherited + importance) >= importance {
            return None;
        }
        let new = Watched {
            key: key.bytes.get(..KEY_BYTES_MAX).unwrap_or(key.bytes).into(),
            space: key.space,
            importance: inherited,
            inherited,
            sums: Amounts::default(),
            variances: Amounts::default(),
        };
        self.hashes[at] = hash;
        if at < self.watched.len() {
            self.watched[at] = new;
        } else {
            self.watched.push(new);
        }
        Some(at)
    }

    fn find_least(&mut self) {
        let by_importance = |(_, watched): &(usize, &Watched)| watched.importance;
        self.least_at = self.watched.iter().enumerate().min_by_key(by_importance).map_or(0, |(at, _)| at);
    }

    fn keys(&self, measure: Measure) -> Vec<HotKey> {
        let index = measure as usize;
        let average = self.totals[index] / self.importance.max(1) as f64;
        let key = |watched: &Watched| HotKey {
            key: watched.key.clone(),
            space: watched.space,
            estimate: watched.sums[index],
            error: watched.inherited as f64 * average + DEVIATIONS * watched.variances[index].sqrt(),
        };
        self.watched.iter().map(key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use base::hash::KeyHasher;
    use command::sampler::Sampler;

    /// What a run of calls on zipfian keys did with each, and what the sketch says.
    struct Run {
        exact: Vec<Amounts>,
        hot: HotKeys,
    }

    /// Calls on keys of which number `n` comes with a probability in proportion to `1 / (n + 1)`, in times that vary.
    fn run(calls: usize, key_count: usize, mut cost: impl FnMut(usize, &mut Rng) -> (u64, u64)) -> Run {
        let mut rng = Rng::new(4);
        let hasher = KeyHasher::new(&mut rng);
        let mut sums = vec![0.0];
        (1..=key_count).for_each(|n| sums.push(sums[n - 1] + 1.0 / n as f64));
        let (sampler, hot) = (Sampler::default(), HotKeys::default());
        let mut exact = vec![Amounts::default(); key_count];
        for _ in 0..calls {
            let point = rng.unit() * sums[key_count];
            let number = sums.partition_point(|sum| *sum <= point) - 1;
            let (ns, bytes) = cost(number, &mut rng);
            for (exact, amount) in exact[number].iter_mut().zip([1.0, ns as f64, bytes as f64]) {
                *exact += amount;
            }
            let cost = sampler::cost(bytes);
            sampler.passes(cost);
            if let Some(choice) = sampler.choice(cost) {
                let name = number.to_string();
                let key = Key::new(&hasher, KeyspaceId(0), name.as_bytes());
                hot.add(&key, &Sample::new(choice.weight, 1, ns, bytes), choice.draw);
            }
        }
        Run { exact, hot }
    }

    fn number(key: &HotKey) -> usize {
        std::str::from_utf8(&key.key).unwrap().parse().unwrap()
    }

    /// The ten first of a zipfian load, each within a tenth of what it really had, for calls as cheap as GET is; and
    /// bounds that nearly all of the first hundred keep.
    #[test]
    fn the_first_keys_of_a_zipfian_load_are_close() {
        let run = run(3_000_000, 100_000, |_, rng| (60 + rng.below(200), 100));
        for measure in [Measure::Ops, Measure::Cpu, Measure::Bytes] {
            let first = run.hot.first(measure, 100);
            let mut exact: Vec<f64> = run.exact.iter().map(|amounts| amounts[measure as usize]).collect();
            for key in &first[..10] {
                let real = exact[number(key)];
                assert!((key.estimate / real - 1.0).abs() < 0.1, "{measure:?} {key:?}: {real}");
            }
            let kept = first.iter().filter(|key| (key.estimate - exact[number(key)]).abs() <= key.error).count();
            assert!(kept >= 90, "{measure:?}: {kept}");
            exact.sort_by(|a, b| b.total_cmp(a));
            assert!(first[9].estimate > 0.9 * exact[9], "{measure:?}: none of the first ten is missing");
        }
    }

    /// A key of few but huge calls is the first by bytes, though hardly any calls are its.
    #[test]
    fn rare_huge_calls_are_found() {
        let run = run(300_000, 50_000, |number, _| if number == 4_000 { (30_000, 100_000_000) } else { (100, 100) });
        let first = &run.hot.first(Measure::Bytes, 1)[0];
        let real = run.exact[4_000][Measure::Bytes as usize];
        assert_eq!((number(first), first.estimate), (4_000, real), "each of them was looked at");
        assert_ne!(number(&run.hot.first(Measure::Ops, 1)[0]), 4_000);
    }

    /// Memory is bounded whatever comes, and a reset forgets.
    #[test]
    fn a_table_of_bounded_size() {
        let run = run(500_000, 1_000_000, |_, _| (1000, 1000));
        assert_eq!(run.hot.first(Measure::Ops, usize::MAX).len(), KEYS_MAX);
        run.hot.reset();
        assert_eq!(run.hot.first(Measure::Ops, usize::MAX), []);
    }
}
