//! `--lru-test`: a cache that a few keys are asked for most of, to see what a `maxmemory-policy` keeps of it.

use super::session::Session;
use super::walk::good;
use base::{Entropy, Rng};
use proto::reply::Value;
use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Time of a row.
const CYCLE: Duration = Duration::from_secs(1);

/// Requests that are sent together.
const TOGETHER: usize = 250;

/// How much more often the keys of low numbers come: one fifth of the keys has four fifths of the requests.
const ALPHA: f64 = 6.2;

/// A key of a power law, as redis-cli draws it.
fn key(rng: &mut Rng, keys: u64) -> Vec<u8> {
    let (least, most, power) = (1f64, keys as f64 + 1.0, ALPHA + 1.0);
    let (low, high) = (least.powf(power), most.powf(power));
    let drawn = ((high - low) * rng.unit() + low).powf(1.0 / power);
    format!("lru:{}", (keys.saturating_sub(drawn as u64)).saturating_add(1)).into_bytes()
}

/// Five letters.
fn value(rng: &mut Rng) -> Vec<u8> {
    (0..5).map(|_| b'A' + rng.below(57) as u8).collect()
}

/// Half writes and half reads of `keys` keys, with a row of hits and misses each second.
pub fn test(session: &mut Session, keys: u64, repeats: i64) -> Result<(), Box<dyn Error>> {
    let (mut rng, mut out, mut left) = (base::random::OsEntropy.rng(), io::stdout().lock(), repeats);
    while left != 0 {
        let (began, mut hits, mut misses) = (Instant::now(), 0u64, 0u64);
        while began.elapsed() < CYCLE {
            let set = |rng: &mut Rng| vec![b"SET".to_vec(), key(rng, keys), value(rng)];
            let writes: Vec<_> = (0..TOGETHER).map(|_| set(&mut rng)).collect();
            // A write that memory has no room for is an answer as well: it is what the policy does.
            session.ask_all(&writes)?;
            let reads: Vec<_> = (0..TOGETHER).map(|_| vec![b"GET".to_vec(), key(&mut rng, keys)]).collect();
            for reply in session.ask_all(&reads)? {
                match good(reply)? {
                    Value::Null | Value::NullBulk => misses += 1,
                    _ => hits += 1,
                }
            }
        }
        let all = hits + misses;
        let share = |part: u64| part as f64 * 100.0 / all.max(1) as f64;
        writeln!(
            out,
            "{all} Gets/sec | Hits: {hits} ({:.2}%) | Misses: {misses} ({:.2}%)",
            share(hits),
            share(misses)
        )?;
        out.flush()?;
        left -= 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_of_the_keys_has_most_of_the_requests() {
        let mut rng = Rng::new(7);
        let mut few = 0;
        for _ in 0..10_000 {
            let key = String::from_utf8(key(&mut rng, 1000)).unwrap();
            let number: u64 = key.strip_prefix("lru:").unwrap().parse().unwrap();
            assert!((1..=1000).contains(&number), "{key}");
            few += u64::from(number <= 200);
        }
        assert!((7500..8500).contains(&few), "{few}");
        assert!((0..100).all(|_| key(&mut rng, 1) == b"lru:1"), "the only key");
    }
}
