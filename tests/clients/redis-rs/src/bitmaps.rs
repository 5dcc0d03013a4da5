//! Bitmaps over the catalogue, compared with byte vectors.

use crate::catalogue::{self, BATCH};
use crate::harness::{Harness, equal, fails};
use redis::Commands;

/// The bitmap of the places for which `holds` is true, as Redis lays it out: the first place is the highest bit.
fn model(words: &[String], holds: impl Fn(&str) -> bool) -> Vec<u8> {
    let mut bytes = vec![0; words.len().div_ceil(8)];
    for (place, _) in words.iter().enumerate().filter(|(_, word)| holds(word)) {
        bytes[place / 8] |= 0x80 >> (place % 8);
    }
    bytes
}

fn ones(bytes: &[u8]) -> i64 {
    bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()
}

pub fn run(h: &Harness) {
    let mut r = h.connection();
    let words = catalogue::words().unwrap_or_default();
    let vowel = model(&words, |word| word.starts_with(['a', 'e', 'i', 'o', 'u']));
    let long = model(&words, |word| word.len() > 10);
    h.check("bitmaps: SETBIT and BITCOUNT of the catalogue, read back with GET", || {
        for (key, bytes) in [("vowel", &vowel), ("long", &long)] {
            let () = r.setbit(key, bytes.len() * 8 - 1, false)?;
            let places: Vec<usize> =
                (0..words.len()).filter(|place| bytes[place / 8] & (0x80 >> (place % 8)) != 0).collect();
            for batch in places.chunks(BATCH) {
                let mut pipe = redis::pipe();
                for place in batch {
                    pipe.setbit(key, *place, true).ignore();
                }
                let () = pipe.query(&mut r)?;
            }
            equal(&r.get::<_, Vec<u8>>(key)?, bytes)?;
            equal(r.bitcount::<_, i64>(key)?, ones(bytes))?;
            equal(r.bitcount_range::<_, i64>(key, 1000, 2000)?, ones(&bytes[1000..=2000]))?;
        }
        Ok(())
    });
    h.check("bitmaps: BITOP equals the model", || {
        let both =
            |combine: fn(u8, u8) -> u8| -> Vec<u8> { vowel.iter().zip(&long).map(|(a, b)| combine(*a, *b)).collect() };
        let keys = ["vowel", "long"];
        let () = r.bit_and("out", &keys)?;
        equal(r.get::<_, Vec<u8>>("out")?, both(|a, b| a & b))?;
        let () = r.bit_or("out", &keys)?;
        equal(r.get::<_, Vec<u8>>("out")?, both(|a, b| a | b))?;
        let () = r.bit_xor("out", &keys)?;
        equal(r.get::<_, Vec<u8>>("out")?, both(|a, b| a ^ b))?;
        let () = r.bit_not("out", "vowel")?;
        equal(r.get::<_, Vec<u8>>("out")?, vowel.iter().map(|byte| !byte).collect())
    });
    h.check("bitmaps: BITPOS and BITFIELD", || {
        let first = words.iter().position(|word| word.len() > 10).ok_or("no long word")?;
        equal(redis::cmd("BITPOS").arg("long").arg(1).query::<usize>(&mut r)?, first)?;
        let mut field = |arguments: &str| -> Result<Vec<Option<i64>>, redis::RedisError> {
            let mut command = redis::cmd("BITFIELD");
            command.arg("bf");
            for argument in arguments.split(' ') {
                command.arg(argument);
            }
            command.query(&mut r)
        };
        equal(field("SET i64 0 -1 GET u63 0 INCRBY i64 0 2")?, vec![Some(0), Some(i64::MAX), Some(1)])?;
        equal(field("OVERFLOW FAIL INCRBY u8 #9 256 INCRBY u8 #9 255")?, vec![None, Some(255)])?;
        equal(field("OVERFLOW SAT INCRBY i4 #30 100 INCRBY i4 #30 -100")?, vec![Some(7), Some(-8)])?;
        fails(field("GET u64 0"), "Invalid bitfield type")?;
        Ok(r.del(&["vowel", "long", "out", "bf"])?)
    });
}
