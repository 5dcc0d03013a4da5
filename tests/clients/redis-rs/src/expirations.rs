//! Expirations in all their spellings. Waits are for an event by a deadline.

use crate::harness::{Harness, between, equal, eventually, fails};
use redis::{Commands, Expiry, SetExpiry, SetOptions};
use std::time::{Duration, Instant};

pub fn run(h: &Harness) {
    let mut r = h.connection();
    h.check("expirations: EX, PX, EXAT, PXAT, KEEPTTL", || {
        let (now, _): (i64, i64) = redis::cmd("TIME").query(&mut r)?;
        let at = (now + 100) as u64;
        let spellings = [SetExpiry::EX(100), SetExpiry::PX(100_000), SetExpiry::EXAT(at), SetExpiry::PXAT(at * 1000)];
        for expiry in spellings {
            let () = r.set_options("k", "v", SetOptions::default().with_expiration(expiry))?;
            between(r.ttl("k")?, 95, 101)?;
            between(r.pttl("k")?, 95_000, 101_000)?;
            let () = r.set_options("k", "w", SetOptions::default().with_expiration(SetExpiry::KEEPTTL))?;
            between(r.ttl("k")?, 95, 101)?;
        }
        equal(r.expire_time::<_, i64>("k")?, now + 100)?;
        let () = r.set("k", "x")?;
        equal(r.ttl::<_, i64>("k")?, -1)?;
        equal(r.ttl::<_, i64>("nothing")?, -2)
    });
    h.check("expirations: EXPIRE with NX, XX, GT, LT; PERSIST; GETEX", || {
        let mut expire = |seconds: i64, option: &str| -> Result<i64, redis::RedisError> {
            redis::cmd("EXPIRE").arg("k").arg(seconds).arg(option).query(&mut r)
        };
        equal(expire(100, "XX")?, 0)?;
        equal(expire(100, "NX")?, 1)?;
        equal(expire(50, "GT")?, 0)?;
        equal(expire(50, "LT")?, 1)?;
        fails(expire(50, "SOON"), "Unsupported option")?;
        equal(r.persist::<_, bool>("k")?, true)?;
        equal(r.get_ex::<_, String>("k", Expiry::EX(30))?, "x".to_string())?;
        between(r.ttl("k")?, 25, 30)?;
        equal(r.get_ex::<_, String>("k", Expiry::PERSIST)?, "x".to_string())?;
        equal(r.ttl::<_, i64>("k")?, -1)?;
        equal(r.pexpire_at::<_, bool>("k", 1000)?, true)?;
        equal(r.exists::<_, bool>("k")?, false)
    });
    h.check("expirations: a key is there until its time and gone after it", || {
        let started = Instant::now();
        let () = r.pset_ex("soon", "v", 120)?;
        eventually(Duration::from_secs(5), || Ok(!r.exists::<_, bool>("soon")?))?;
        between(started.elapsed().as_millis() as i64, 115, 5000)
    });
    h.check("expirations: 10000 keys leave without being read", || {
        let mut other = h.connection_to(11);
        let mut pipe = redis::pipe();
        for number in 0..10_000u64 {
            pipe.pset_ex(format!("brief:{number}"), number, 100 + number % 100).ignore();
        }
        let () = pipe.query(&mut other)?;
        eventually(Duration::from_secs(20), || Ok(redis::cmd("DBSIZE").query::<i64>(&mut other)? == 0))
    });
}
