//! The audit log: its lines as a guide shows them, and what they never contain.

use crate::harness::{TestServer, memory};
use crate::served::Served;
use command::audit::{Message, line_end, notes};
use command::{Args, Flags};
use proto::Span;
use std::fs::read_to_string;
use std::sync::mpsc::Receiver;

/// A server with an audit log, and two clients.
struct Audited {
    server: TestServer,
    lines: Receiver<Message>,
    admin: usize,
    client: usize,
}

impl Audited {
    fn new() -> Self {
        let mut server = TestServer::with_shards(memory, 4);
        let lines = server.shared.host.login.audit.open().unwrap();
        let (admin, client) = (server.connect_listed(), server.connect_listed());
        Self { server, lines, admin, client }
    }

    fn admin(&mut self, request: &str) -> String {
        self.server.run(self.admin, &request.split(' ').collect::<Vec<_>>())
    }

    fn client(&mut self, request: &str) -> String {
        self.server.run(self.client, &request.split(' ').collect::<Vec<_>>())
    }

    /// The lines since the last look.
    fn lines(&self) -> String {
        let text = |message| match message {
            Message::Line(line) => line + &line_end(0),
            other => panic!("{other:?}"),
        };
        self.lines.try_iter().map(text).collect()
    }
}

/// The format that docs/guides/security.md describes.
#[test]
fn lines_have_the_form_of_the_guide() {
    let mut audited = Audited::new();
    audited.admin("ACL SETUSER app on >sesame ~app:* +@read +config|set");
    audited.client("AUTH app wrong");
    audited.client("AUTH app sesame");
    audited.client("SET app:1 x");
    audited.client("GET other");
    audited.client("MULTI");
    audited.client("CONFIG SET maxmemory 1gb requirepass sesame");
    audited.client("EXEC");
    audited.client("CONFIG SET maxmemory sesame");
    audited.admin("FLUSHALL ASYNC");
    audited.admin("EVAL redis.call('FLUSHDB') 0");
    audited.admin("ACL DELUSER app");
    assert_eq!(audited.lines(), include_str!("testdata/audit.txt"));
}

/// Whatever a session does with a secret, no line has it.
#[test]
fn no_line_has_a_password_or_a_value() {
    let mut audited = Audited::new();
    let hash = command::acl::Hash::of(b"sesame").to_string();
    for request in [
        "ACL SETUSER app on >sesame ~* +@all",
        "ACL SETUSER app sesame",
        "ACL SETUSER app (sesame)",
        &format!("ACL SETUSER app #{hash}"),
        &format!("ACL SETUSER app !{hash}"),
        "ACL SETUSER app <sesame",
        "ACL SETUSER app on >sesame",
        "ACL GETUSER app",
        "AUTH app sesame",
        "AUTH sesame",
        "HELLO 3 AUTH app sesame SETNAME sesame",
        "HELLO 3 AUTH app sesame-wrong",
        "CONFIG SET requirepass sesame",
        "CONFIG SET masterauth sesame maxmemory 1gb",
        "CONFIG SET primaryauth sesame",
        "CONFIG SET sesame requirepass",
        "CONFIG SET maxmemory sesame",
        "CONFIG SET user sesame",
        "MIGRATE 10.0.0.9 6379 nothing 0 10 AUTH2 app sesame",
        "MIGRATE 10.0.0.9 6379 nothing 0 10 AUTH sesame",
        "SET sesame sesame",
        "DEBUG sesame",
        "EVAL return('sesame') 0",
        "SHUTDOWN sesame",
        "FLUSHALL sesame",
    ] {
        audited.client(request);
    }
    let lines = audited.lines();
    assert!(lines.lines().count() > 15, "{lines}");
    assert!(!lines.contains("sesame") && !lines.contains(&hash), "{lines}");
    for shown in [r#""requirepass":"(redacted)""#, r#"["10.0.0.9","6379"]"#, r##"["app","#(redacted)"]"##] {
        assert!(lines.contains(shown), "{shown} in {lines}");
    }
}

/// A client that guesses passwords, or asks without a right, does not fill the files.
#[test]
fn refusals_are_limited_and_counted() {
    let mut audited = Audited::new();
    audited.admin("ACL SETUSER app on nopass ~app:* +get");
    audited.client("AUTH app x");
    for _ in 0..25 {
        audited.client("GET other");
        audited.admin("ACL WHOAMI");
    }
    assert_eq!(audited.lines().matches("\"denied\"").count(), 10);
    audited.server.pass_ms(1000);
    audited.client("GET other");
    assert!(audited.lines().ends_with("\"object\":\"other\",\"left_out\":15}\n"));
}

/// The file has every line when the server has ended, and one more for its end.
#[test]
fn the_file_is_complete_when_the_server_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let served = Served::start(&["--audit-log-file", path.to_str().unwrap(), "--audit-log-max-size", "2kb"]);
    let mut client = served.connect();
    for _ in 0..20 {
        client.run(&["CONFIG", "SET", "maxmemory", "1gb"]);
    }
    drop((client, served));
    // How many lines the writer has found at once decides how many files there are, but never fewer than two.
    let names = (1..9).rev().map(|number| format!("audit.log.{number}")).chain(["audit.log".to_owned()]);
    let texts: Vec<String> = names.filter_map(|name| read_to_string(dir.path().join(name)).ok()).collect();
    assert!(texts.len() > 1, "{texts:?}");
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
    assert_eq!(lines.len(), 22, "{lines:?}");
    assert!(
        lines[0].contains(r#""event":"start","pid":"#) && lines[21].contains(r#""event":"end","pid":"#),
        "{lines:?}"
    );
    assert!(lines[1..21].iter().all(|line| line.contains(r#""settings":{"maxmemory":"1gb"}}"#)), "{lines:?}");
}

/// Every command of administrators is in the log, except those that only read. A new one is in it until `QUIET` has it.
#[test]
fn commands_that_change_the_server_are_in_the_log() {
    let server = TestServer::with_shards(memory, 4);
    let (input, spans) = (b"x y z", [Span::new(0, 1).unwrap(), Span::new(2, 1).unwrap(), Span::new(4, 1).unwrap()]);
    let args = Args::new(input, &spans, &[]);
    let rows = server.shared.table.rows();
    let noted = |name: &str| rows.iter().any(|(row, spec)| row == name && notes(row, spec.flags, &args));
    for name in [
        "acl|deluser",
        "acl|load",
        "acl|log",
        "acl|save",
        "acl|setuser",
        "bgrewriteaof",
        "bgsave",
        "client|kill",
        "client|pause",
        "client|unpause",
        "config|resetstat",
        "config|rewrite",
        "config|set",
        "debug",
        "flushall",
        "flushdb",
        "function|delete",
        "function|flush",
        "function|load",
        "function|restore",
        "memcached|flush_all",
        "ssdb|flushdb",
        "migrate",
        "monitor",
        "replicaof",
        "save",
        "script|flush",
        "shutdown",
        "slaveof",
        "swapdb",
    ] {
        assert!(noted(name), "{name}");
    }
    let quiet = rows.iter().filter(|(name, spec)| spec.flags.contains(Flags::ADMIN) && !notes(name, spec.flags, &args));
    let quiet: Vec<&str> = quiet.map(|(name, _)| name.as_str()).collect();
    for name in ["acl|list", "client|list", "config|get", "slowlog|get"] {
        assert!(quiet.contains(&name), "{name}: {quiet:?}");
    }
    assert!(["get", "set", "info", "keys", "sort", "restore"].iter().all(|name| !noted(name)));
}
