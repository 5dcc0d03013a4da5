//! Counters: exact sums over the catalogue and from many threads, and their limits.

use crate::catalogue::{self, BATCH};
use crate::harness::{Harness, equal, fails, in_threads};
use redis::Commands;
use std::collections::HashMap;

pub fn run(h: &Harness) {
    let mut r = h.connection();
    h.check("counters: letters of the dictionary", || {
        let words = catalogue::words()?;
        let mut expected: HashMap<char, i64> = HashMap::new();
        for batch in words.chunks(BATCH) {
            let mut pipe = redis::pipe();
            for word in batch {
                let first = word.chars().next().ok_or("an empty word")?;
                let length = word.chars().count() as i64;
                *expected.entry(first).or_default() += length;
                pipe.incr(format!("letters:{first}"), length).ignore();
            }
            let () = pipe.query(&mut r)?;
        }
        for (letter, sum) in expected {
            equal(r.get_del::<_, i64>(format!("letters:{letter}"))?, sum)?;
        }
        Ok(())
    });
    h.check("counters: INCR, DECR, INCRBYFLOAT and their limits", || {
        equal(r.incr::<_, _, i64>("n", 42)?, 42)?;
        equal(r.decr::<_, _, i64>("n", 50)?, -8)?;
        equal(r.incr::<_, _, String>("f", 1.5)?, "1.5".to_string())?;
        equal(r.incr::<_, _, String>("f", -0.25)?, "1.25".to_string())?;
        let () = r.set("n", i64::MAX)?;
        fails(r.incr::<_, _, i64>("n", 1), "overflow")?;
        equal(r.get::<_, i64>("n")?, i64::MAX)?;
        let () = r.set("n", i64::MIN)?;
        fails(r.decr::<_, _, i64>("n", 1), "overflow")?;
        let () = r.set("n", " 1")?;
        fails(r.incr::<_, _, i64>("n", 1), "not an integer")?;
        Ok(r.del(&["n", "f"])?)
    });
    h.check("counters: 8 threads lose no increment", || {
        in_threads((0..8).map(|_| h.connection()).collect(), |mut mine| {
            (0..1000).try_for_each(|_| mine.incr::<_, _, i64>("together", 1).map(drop))
        })?;
        equal(r.get_del::<_, i64>("together")?, 8000)
    });
}
