//! Login, protocol versions, the unix socket, and coming back after the server has closed a connection.

use crate::harness::{Harness, equal, fails};
use redis::{Commands, Value, cmd};
use std::collections::HashMap;

pub fn run(h: &Harness) {
    let mut r = h.connection();
    h.check("connections: login is needed, wrong passwords are refused", || {
        let refused = h.client(0, "wrong", "resp3").get_connection().map(drop);
        equal(refused.is_err(), true)?;
        let mut stranger = h.client(0, "", "resp2").get_connection_with_timeout(std::time::Duration::from_secs(5));
        match &mut stranger {
            Ok(connection) => fails(connection.get::<_, String>("k"), "NOAUTH"),
            Err(problem) => equal(problem.to_string().is_empty(), false),
        }
    });
    h.check("connections: RESP3 answers maps where RESP2 answers lists", || {
        let mut old = h.connection_resp2();
        equal(cmd("CONFIG").arg("GET").arg("maxmemory").query::<Value>(&mut r)?.is_map(), true)?;
        equal(cmd("CONFIG").arg("GET").arg("maxmemory").query::<Value>(&mut old)?.is_list(), true)?;
        let hello: HashMap<String, Value> = cmd("HELLO").arg(3).query(&mut r)?;
        equal(hello.get("proto"), Some(&Value::Int(3)))?;
        fails(cmd("HELLO").arg(4).query::<Value>(&mut r), "NOPROTO")
    });
    h.check("connections: unix socket", || {
        let mut local = h.local()?;
        let () = local.set("p", "through the socket")?;
        equal(r.get::<_, String>("p")?, "through the socket".to_string())
    });
    h.check("connections: after CLIENT KILL a new connection serves", || {
        let mut victim = h.connection();
        let id: i64 = cmd("CLIENT").arg("ID").query(&mut victim)?;
        equal(cmd("CLIENT").arg("KILL").arg("ID").arg(id).query::<i64>(&mut r)?, 1)?;
        let broken = victim.get::<_, String>("p");
        equal(broken.is_err_and(|problem| problem.is_connection_dropped()), true)?;
        equal(h.connection().get_del::<_, String>("p")?, "through the socket".to_string())
    });
    h.check("connections: names, lists, databases", || {
        let mut named = h.connection_to(3);
        let () = cmd("CLIENT").arg("SETNAME").arg("dictionary").query(&mut named)?;
        let list: String = cmd("CLIENT").arg("LIST").query(&mut r)?;
        equal(list.lines().filter(|line| line.contains(" name=dictionary ") && line.contains(" db=3 ")).count(), 1)?;
        let () = named.set("here", 1)?;
        equal(r.exists::<_, bool>("here")?, false)?;
        Ok(cmd("FLUSHDB").query(&mut named)?)
    });
}

/// What a reply is, without its contents.
trait Shape {
    fn is_map(&self) -> bool;
    fn is_list(&self) -> bool;
}

impl Shape for Value {
    fn is_map(&self) -> bool {
        matches!(self, Value::Map(_))
    }

    fn is_list(&self) -> bool {
        matches!(self, Value::Array(_))
    }
}
