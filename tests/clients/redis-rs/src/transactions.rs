//! MULTI, EXEC, DISCARD and WATCH, with conflicts made on purpose and by contention.

use crate::harness::{Harness, equal, eventually, fails, in_threads};
use redis::{Commands, cmd};
use std::time::Duration;

pub fn run(h: &Harness) {
    let mut r = h.connection();
    let mut other = h.connection();
    h.check("transactions: results come in order", || {
        let got: (String, i64, String) = redis::pipe().atomic().set("t", 1).incr("t", 9).get("t").query(&mut r)?;
        equal(got, ("OK".to_string(), 10, "10".to_string()))
    });
    h.check("transactions: a change between WATCH and EXEC aborts, a read does not", || {
        let () = cmd("WATCH").arg("t").query(&mut r)?;
        let () = other.set("t", "other")?;
        let aborted: Option<(String,)> = redis::pipe().atomic().set("t", "mine").query(&mut r)?;
        equal(aborted, None)?;
        let () = cmd("WATCH").arg("t").query(&mut r)?;
        equal(other.get::<_, String>("t")?, "other".to_string())?;
        let done: Option<(i64,)> = redis::pipe().atomic().append("t", "!").query(&mut r)?;
        equal(done, Some((6,)))
    });
    h.check("transactions: a watched key that expires aborts", || {
        let () = r.pset_ex("brief", "v", 30)?;
        let () = cmd("WATCH").arg("brief").query(&mut r)?;
        eventually(Duration::from_secs(5), || Ok(!other.exists::<_, bool>("brief")?))?;
        let aborted: Option<(String,)> = redis::pipe().atomic().set("t", "mine").query(&mut r)?;
        equal(aborted, None)
    });
    h.check("transactions: DISCARD, EXECABORT, and an error inside", || {
        let () = cmd("MULTI").query(&mut r)?;
        equal(cmd("SET").arg("t").arg("never").query::<String>(&mut r)?, "QUEUED".to_string())?;
        let () = cmd("DISCARD").query(&mut r)?;
        equal(r.get::<_, String>("t")?, "other!".to_string())?;
        let () = cmd("MULTI").query(&mut r)?;
        fails(cmd("NOSUCH").query::<String>(&mut r), "unknown command")?;
        fails(cmd("EXEC").query::<Vec<String>>(&mut r), "discarded because of previous errors")?;
        fails(cmd("EXEC").query::<Vec<String>>(&mut r), "EXEC without MULTI")?;
        let failed: Result<(i64, String), _> = redis::pipe().atomic().incr("t", 1).set("t", "after").query(&mut r);
        fails(failed, "not an integer")?;
        equal(r.get::<_, String>("t")?, "after".to_string())
    });
    h.check("transactions: transfers between 5 accounts by 4 threads keep the sum", || {
        for account in 0..5 {
            let () = r.set(format!("account:{account}"), 100)?;
        }
        in_threads((0..4).map(|_| h.connection()).collect(), |mut mine| {
            for step in 0..100 {
                let (from, to) = (format!("account:{}", step % 5), format!("account:{}", (step * 3 + 1) % 5));
                if from == to {
                    continue;
                }
                let keys = [from.clone(), to.clone()];
                let () = redis::transaction(&mut mine, &keys, |connection, pipe| {
                    let a: i64 = connection.get(&from)?;
                    let b: i64 = connection.get(&to)?;
                    pipe.set(&from, a - 1).ignore().set(&to, b + 1).ignore().query(connection)
                })?;
            }
            Ok(())
        })?;
        let mut sum = 0;
        for account in 0..5 {
            sum += r.get_del::<_, i64>(format!("account:{account}"))?;
        }
        equal(sum, 500)?;
        Ok(r.del("t")?)
    });
}
