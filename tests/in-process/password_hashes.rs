//! Passwords kept as Argon2id hashes (`acl-password-hash`): a login waits for a thread, and others do not wait for it.

use crate::harness::{TestServer, memory, request};
use crate::served::{Client, Served};
use std::fs::read_to_string;

const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

/// A server that keeps new passwords as Argon2id hashes; the user `alice` has the password `sesame`.
struct Slow {
    server: TestServer,
    admin: usize,
    alice: usize,
}

impl Slow {
    fn new() -> Self {
        let mut server = TestServer::with_shards(memory, 4);
        let (admin, alice) = (server.connect_listed(), server.connect_listed());
        let mut slow = Self { server, admin, alice };
        assert_eq!(slow.admin("CONFIG SET acl-password-hash argon2id"), "+OK\r\n");
        assert_eq!(slow.admin("ACL SETUSER alice on >sesame ~* +@all"), "+OK\r\n");
        slow
    }

    fn admin(&mut self, line: &str) -> String {
        self.server.run(self.admin, &words(line))
    }

    fn alice(&mut self, line: &str) -> String {
        self.server.run(self.alice, &words(line))
    }

    /// Sends a request, and gives what is answered without help of another thread.
    fn at_once(&mut self, line: &str) -> Vec<u8> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.server.feed(self.alice, &request(&words));
        self.server.written(self.alice)
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn a_first_login_waits_for_a_thread_and_the_next_does_not() {
    let mut slow = Slow::new();
    let list = slow.admin("ACL LIST");
    assert!(list.contains("user alice on #$argon2id$v=19$m=19456,t=2,p=1$"), "{list}");
    assert!(slow.admin("ACL GETUSER alice").contains("\r\n$argon2id$v=19$"));

    assert_eq!(slow.at_once("AUTH alice sesame"), b"", "a thread checks it");
    assert_eq!(slow.admin("PING"), "+PONG\r\n", "and its worker serves others");
    assert_eq!(slow.server.replies(slow.alice), b"+OK\r\n");
    assert_eq!(slow.alice("ACL WHOAMI"), "$5\r\nalice\r\n");
    assert_eq!(slow.at_once("AUTH alice sesame"), b"+OK\r\n", "it is remembered");

    for line in ["AUTH alice sesam", "AUTH alice sesame", "AUTH nobody sesame", "HELLO 2 AUTH alice x"] {
        let expected = if line == "AUTH alice sesame" { "+OK\r\n" } else { WRONG };
        assert_eq!(slow.alice(line), expected, "{line}");
    }
    assert!(slow.alice("HELLO 2 AUTH alice sesame").starts_with("*14\r\n"));
}

/// An unknown user, a disabled one and a wrong password all cost a slow hash, so their times do not tell them apart.
#[test]
fn every_refused_login_takes_a_slow_hash() {
    let mut slow = Slow::new();
    slow.admin("ACL SETUSER off off >sesame");
    slow.admin("ACL SETUSER none on");
    for line in ["AUTH nobody sesame", "AUTH off sesame", "AUTH none sesame", "AUTH alice wrong"] {
        assert_eq!(slow.at_once(line), b"", "{line}");
        assert_eq!(String::from_utf8(slow.server.replies(slow.alice)).unwrap(), WRONG, "{line}");
    }
}

#[test]
fn rules_about_a_password_find_its_slow_hash() {
    let mut slow = Slow::new();
    assert_eq!(slow.alice("AUTH alice sesame"), "+OK\r\n");
    let phc = slow.admin("ACL LIST");
    let phc = phc.split('#').nth(1).and_then(|text| text.split(' ').next()).unwrap().to_owned();
    assert_eq!(slow.admin("ACL SETUSER alice <sesame >new"), "+OK\r\n");
    assert_eq!(slow.alice("AUTH alice sesame"), WRONG, "what was remembered is not asked for");
    assert_eq!(slow.alice("AUTH alice new"), "+OK\r\n");
    assert!(slow.admin("ACL SETUSER alice <sesame").starts_with("-ERR Error in ACL SETUSER modifier '<sesame'"));
    assert_eq!(slow.admin(&format!("ACL SETUSER bob on #{phc} +@all")), "+OK\r\n");
    assert_eq!(slow.alice("AUTH bob sesame"), "+OK\r\n");
    let damaged = slow.admin(&format!("ACL SETUSER bob #{phc}*"));
    assert!(damaged.contains("no Argon2id hash of version 19"), "{damaged}");
    // In a transaction the worker computes the hash.
    for line in ["MULTI", "ACL SETUSER carol on >third +@all", "AUTH carol third"] {
        slow.alice(line);
    }
    assert_eq!(slow.alice("EXEC"), "*2\r\n+OK\r\n+OK\r\n");
    // Two changes of one user at a time: neither is lost.
    let other = slow.server.connect_listed();
    slow.server.feed(slow.alice, &request(&[b"ACL", b"SETUSER", b"bob", b">one"]));
    slow.server.feed(other, &request(&[b"ACL", b"SETUSER", b"bob", b">two"]));
    let replies = [slow.server.replies(slow.alice), slow.server.replies(other)];
    assert_eq!(replies, [b"+OK\r\n", b"+OK\r\n"]);
    for password in ["one", "two", "sesame"] {
        assert_eq!(slow.alice(&format!("AUTH bob {password}")), "+OK\r\n", "{password}");
    }
}

/// Files with either kind of hash load whatever the directive says; passwords in them get the kind that it says.
#[test]
fn acl_files_go_both_ways() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("users.acl");
    std::fs::write(&path, "user fresh on >one +@all\n").unwrap();
    let start = |hashing| Served::start(&["--aclfile", path.to_str().unwrap(), "--acl-password-hash", hashing]);
    let log_in = |client: &mut Client, user: &str, password: &str| {
        assert_eq!(client.run(&["AUTH", user, password]).text(), "OK", "{user}");
    };
    {
        let served = start("argon2id");
        let mut client = served.connect();
        log_in(&mut client, "fresh", "one");
        assert_eq!(client.run(&["ACL", "SAVE"]).text(), "OK");
        let saved = read_to_string(&path).unwrap();
        assert!(saved.contains("user fresh on #$argon2id$"), "{saved}");
        std::fs::write(&path, saved + "user more on >two +@all\n").unwrap();
        assert_eq!(client.run(&["ACL", "LOAD"]).text(), "OK");
        log_in(&mut client, "more", "two");
    }
    let served = start("sha256");
    let mut client = served.connect();
    log_in(&mut client, "fresh", "one");
    log_in(&mut client, "more", "two");
    assert_eq!(client.run(&["ACL", "SETUSER", "fast", "on", ">three", "+@all"]).text(), "OK");
    log_in(&mut client, "fast", "three");
    assert_eq!(client.run(&["ACL", "SAVE"]).text(), "OK");
    let saved = read_to_string(&path).unwrap();
    let hash = command::acl::Hash::of(b"three").to_string();
    assert!(
        saved.contains(&format!("user fast on #{hash} ")) && saved.contains("user fresh on #$argon2id$"),
        "{saved}"
    );
}
