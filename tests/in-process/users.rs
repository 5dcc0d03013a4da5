//! Users with rules: what a restricted user may not do, in every way that a request can reach a command.

use crate::harness::{TestServer, memory};
use crate::reply::Reply;
use crate::served::Served;
use command::acl::{Hash, categories};
use command::{CommandSpec, Flags, Run};
use server::observe::{Access, Shown, Visitor, access};
use std::path::PathBuf;

/// A server with an administrator and a client of the user `alice`.
struct Two {
    server: TestServer,
    admin: usize,
    alice: usize,
}

impl Two {
    /// `alice` has these rules.
    fn new(rules: &str) -> Self {
        let mut server = TestServer::with_shards(memory, 4);
        let (admin, alice) = (server.connect_listed(), server.connect_listed());
        let mut two = Self { server, admin, alice };
        two.set_user("alice", &format!("reset on nopass {rules}"));
        assert_eq!(two.alice("AUTH alice x"), "+OK\r\n");
        two
    }

    fn set_user(&mut self, name: &str, rules: &str) {
        assert_eq!(self.admin(&format!("ACL SETUSER {name} {rules}")), "+OK\r\n");
    }

    /// What the administrator is answered.
    fn admin(&mut self, request: &str) -> String {
        self.server.run(self.admin, &request.split(' ').collect::<Vec<_>>())
    }

    /// What alice is answered.
    fn alice(&mut self, request: &str) -> String {
        self.server.run(self.alice, &request.split(' ').collect::<Vec<_>>())
    }

    /// What a script of alice answers.
    fn eval(&mut self, script: &str) -> String {
        self.server.run(self.alice, &["EVAL", script, "0"])
    }
}

const NO_KEY: &str = "ACL failure in script: No permissions to access a key";

/// A script declares no key and no command, so each of its calls is checked as a request of its client.
#[test]
fn a_script_has_the_rights_of_its_client() {
    let mut two = Two::new("~mine:* +@all -incr db=0");
    two.admin("SET other secret");
    for call in ["redis.call('GET', 'other')", "redis.pcall('GET', 'other')", "redis.call('DEL', 'mine:a', 'other')"] {
        assert!(two.eval(&format!("return {call}")).contains(NO_KEY), "{call}");
    }
    let reply = two.eval("return redis.call('INCR', 'mine:n')");
    assert!(
        reply.contains("ACL failure in script: User alice has no permissions to run the 'incr' command"),
        "{reply}"
    );
    let reply = two.eval("return redis.call('SELECT', 1)");
    assert!(reply.contains("ACL failure in script: No permissions to access database"), "{reply}");
    let reply = two.eval("return redis.call('SORT', 'mine:l', 'BY', 'nosort', 'GET', 'other')");
    assert!(reply.contains("GET option of SORT denied"), "{reply}");
    assert_eq!(two.eval("return redis.call('SET', 'mine:a', 1)"), "+OK\r\n");
    assert_eq!(
        two.eval("return {redis.acl_check_cmd('GET', 'other'), redis.acl_check_cmd('GET', 'mine:a')}"),
        "*2\r\n$-1\r\n:1\r\n"
    );
    assert_eq!(two.admin("GET other"), "$6\r\nsecret\r\n");
    assert!(two.admin("ACL LOG").contains("$3\r\nlua\r\n"), "the log says that it was a script");
}

/// The same of functions, which an administrator may have loaded.
#[test]
fn a_function_has_the_rights_of_its_client() {
    const LIBRARY: &str = "#!lua name=lib
        server.register_function('read', function(keys, args) return server.call('GET', args[1]) end)
        server.register_function('count', function(keys, args) return server.call('INCR', args[1]) end)";
    let mut two = Two::new("~mine:* +@all -incr");
    assert_eq!(two.server.run(two.admin, &["FUNCTION", "LOAD", LIBRARY]), "$3\r\nlib\r\n");
    two.admin("MSET other secret mine:a 1");
    assert!(two.alice("FCALL read 0 other").contains(NO_KEY));
    let reply = two.alice("FCALL count 0 mine:a");
    assert!(
        reply.contains("ACL failure in script: User alice has no permissions to run the 'incr' command"),
        "{reply}"
    );
    assert_eq!(two.alice("FCALL read 0 mine:a"), "$1\r\n1\r\n");
    assert_eq!(two.alice("FCALL read 1 other mine:a"), "-NOPERM No permissions to access a key\r\n");
}

/// Queued requests are checked twice: when they are queued, and when they run, since rules may change in between.
#[test]
fn a_transaction_is_checked_when_queued_and_when_run() {
    let mut two = Two::new("~mine:* +@all");
    two.alice("MULTI");
    assert_eq!(two.alice("GET other"), "-NOPERM No permissions to access a key\r\n");
    assert!(two.alice("EXEC").starts_with("-EXECABORT"));
    two.alice("MULTI");
    assert_eq!(two.alice("GET mine:a"), "+QUEUED\r\n");
    two.set_user("alice", "resetkeys ~other");
    let reply = two.alice("EXEC");
    assert!(reply.starts_with("*1\r\n-NOPERM ACLs rules changed"), "{reply}");
    // WATCH reveals whether keys change.
    assert_eq!(two.alice("WATCH mine:a"), "-NOPERM No permissions to access a key\r\n");
}

/// A wait that began under other rules ends with an error and takes nothing.
#[test]
fn a_blocked_command_is_checked_when_it_is_served() {
    let mut two = Two::new("~mine:* +@all");
    assert_eq!(two.alice("BLPOP mine:l 0"), "");
    two.set_user("alice", "-blpop");
    assert_eq!(two.admin("RPUSH mine:l a"), ":1\r\n");
    two.server.executor.end_wait(two.alice);
    let reply = String::from_utf8(two.server.replies(two.alice)).unwrap();
    assert_eq!(reply, "-NOPERM User alice has no permissions to run the 'blpop' command\r\n");
    assert_eq!(two.admin("LRANGE mine:l 0 -1"), "*1\r\n$1\r\na\r\n");
}

/// Keys that are not arguments: those of SORT's patterns, and COPY and MOVE into other databases.
#[test]
fn keys_and_databases_that_are_reached_otherwise_are_checked() {
    let mut two = Two::new("~mine:* +@all db=0");
    two.admin("RPUSH mine:l a");
    for (request, reply) in [
        ("SORT mine:l BY w_*", "-ERR BY option of SORT denied due to insufficient ACL permissions.\r\n"),
        ("SORT mine:l GET w_*", "-ERR GET option of SORT denied due to insufficient ACL permissions.\r\n"),
        ("SORT_RO mine:l GET w_*", "-ERR GET option of SORT denied due to insufficient ACL permissions.\r\n"),
        ("SORT mine:l ALPHA STORE other", "-NOPERM No permissions to access a key\r\n"),
        ("COPY mine:l mine:m DB 1", "-NOPERM No permissions to access database\r\n"),
        ("MOVE mine:l 1", "-NOPERM No permissions to access database\r\n"),
        ("SWAPDB 0 1", "-NOPERM No permissions to access database\r\n"),
        ("SELECT 1", "-NOPERM No permissions to access database\r\n"),
        ("FLUSHALL", "-NOPERM No permissions to access database\r\n"),
        ("MOVE mine:l 16", "-ERR DB index is out of range\r\n"),
        ("OBJECT ENCODING other", "-NOPERM No permissions to access a key\r\n"),
        ("MIGRATE h 1 mine:l 0 10 KEYS other", "-NOPERM No permissions to access a key\r\n"),
        ("XREAD STREAMS mine:l other 0 0", "-NOPERM No permissions to access a key\r\n"),
    ] {
        assert_eq!(two.alice(request), reply, "{request}");
    }
}

/// Commands that show or change the server, tried by a user who has everything but administration.
#[test]
fn commands_for_administrators_are_refused_to_others() {
    let mut two = Two::new("allkeys allchannels +@all -@admin -@dangerous");
    for request in [
        "ACL SETUSER alice +@all",
        "ACL GETUSER default",
        "ACL LIST",
        "ACL USERS",
        "ACL LOG",
        "ACL SAVE",
        "ACL LOAD",
        "ACL DELUSER bob",
        "ACL DRYRUN alice GET a",
        "CONFIG SET requirepass x",
        "CONFIG GET requirepass",
        "CONFIG REWRITE",
        "CLIENT LIST",
        "CLIENT KILL TYPE normal",
        "MONITOR",
        "SLOWLOG GET",
        "LATENCY RESET",
        "DEBUG SLEEP 0",
        "SHUTDOWN NOSAVE",
        "FLUSHALL",
        "KEYS *",
        "REPLICAOF NO ONE",
        "BGSAVE",
        "INFO",
        "MIGRATE h 1 k 0 10",
        "RESTORE k 0 x",
        "SWAPDB 0 1",
    ] {
        let reply = two.alice(request);
        // A wrong subcommand or a command that this version lacks has an error of its own.
        assert!(reply.starts_with("-NOPERM User alice has no permissions to run the '"), "{request}: {reply}");
    }
    for (request, reply) in [("ACL WHOAMI", "$5\r\nalice\r\n"), ("CLIENT ID", ":2\r\n"), ("SET a 1", "+OK\r\n")] {
        assert_eq!(two.alice(request), reply, "{request}");
    }
}

/// Passwords are in no list that other clients can read.
#[test]
fn passwords_are_shown_nowhere() {
    let server = Served::start(&["--workers", "1", "--slowlog-log-slower-than", "0"]);
    let (mut admin, mut watcher, mut reader) = (server.connect(), server.connect(), server.connect());
    assert_eq!(watcher.run(&["MONITOR"]), Reply::Simple("OK".into()));
    for request in [
        &["ACL", "SETUSER", "bob", "on", ">s3cret", "+@all"][..],
        &["ACL", "SETUSER", "bob", "<s3cret", ">s3cret two", "(+get", "~s3cret:*)"],
        &["ACL", "SETUSER", "bob", "<s3cret wrong"],
        &["CONFIG", "SET", "requirepass", "s3cret"],
        &["AUTH", "s3cret"],
        &["AUTH", "bob", "s3cret two"],
        &["AUTH", "bob", "s3cret wrong"],
        &["HELLO", "2", "AUTH", "bob", "s3cret wrong"],
        &["HELLO", "2", "AUTH", "default", "s3cret"],
        &["CLIENT", "SETNAME", "last"],
    ] {
        admin.run(request);
    }
    let mut shown = String::new();
    while !shown.contains("SETNAME") {
        shown += watcher.reply().expect("an open connection").text();
    }
    assert_eq!(shown.matches("(redacted)").count(), 9, "{shown}");
    for request in [
        &["SLOWLOG", "GET", "100"][..],
        &["COMMANDLOG", "GET", "100", "slow"],
        &["CLIENT", "LIST"],
        &["ACL", "LOG"],
        &["CONFIG", "GET", "aclfile"],
        &["INFO", "everything"],
    ] {
        shown += &format!("{:?}", reader.run(request));
    }
    assert!(!shown.contains("s3cret"), "{shown}");
}

/// A user without a right cannot fill memory with denials: an entry keeps the beginning of a name.
#[test]
fn the_log_of_denials_keeps_little_of_long_names() {
    let mut two = Two::new("+get ~mine");
    let key = "k".repeat(1 << 20);
    for last in 0..20 {
        assert!(two.alice(&format!("GET {key}{last}")).starts_with("-NOPERM"));
    }
    let log = two.admin("ACL LOG 100");
    assert!(log.len() < 64 << 10, "{} bytes", log.len());
    assert!(log.contains(&format!("${}\r\n{}", 1024, "k".repeat(1024))), "the beginning is there");
}

/// A memcached client is the user `default` until it logs in. Categories, keys and databases apply to it.
#[test]
fn memcached_clients_are_users() {
    let mut server = TestServer::with_shards(memory, 4);
    let admin = server.connect_listed();
    let rules = ["ACL", "SETUSER", "default", "resetkeys", "~open:*", "-@all", "+@read", "+@string", "+@sortedset"];
    assert_eq!(server.run(admin, &rules), "+OK\r\n");
    let client = server.connect_memcached_as_default();
    let mut say = |request: &str| String::from_utf8(server.send(client, request.as_bytes())).unwrap();
    let no_key = "SERVER_ERROR No permissions to access a key\r\n";
    assert_eq!(say("set open:a 0 0 1\r\n1\r\n"), "STORED\r\n");
    assert_eq!(say("set other 0 0 1\r\n1\r\n"), no_key);
    assert_eq!(say("get other\r\n"), no_key);
    assert_eq!(say("gets other\r\ngat 0 other\r\n"), no_key.repeat(2));
    assert_eq!(say("delete other\r\nincr other 1\r\ntouch other 1\r\ncas other 0 0 1 1\r\n1\r\n"), no_key.repeat(4));
    assert_eq!(say("mg other v\r\nms other 1\r\n1\r\nmd other\r\nma other\r\n"), no_key.repeat(4));
    assert_eq!(say("bop get other 0\r\n"), no_key);
    assert_eq!(say("get open:a\r\n"), "VALUE open:a 0 1\r\n1\r\nEND\r\n");
    for request in ["flush_all\r\n", "verbosity 1\r\n", "cache_memlimit 64\r\n", "stats\r\n"] {
        assert!(say(request).starts_with("SERVER_ERROR User default has no permissions to run the '"), "{request}");
    }
    // One reply for a line of keys: a denied key among them is as one that is missing, and the last one ends it.
    let value = "VALUE open:a 0 1\r\n1\r\n";
    assert_eq!(say("get open:a other open:a\r\nmn\r\n"), format!("{value}{value}END\r\nMN\r\n"));
    assert_eq!(say("get open:a other\r\nmn\r\n"), format!("{value}{no_key}MN\r\n"));
    assert_eq!(say("nonsense\r\n"), "ERROR\r\n");
}

/// Once `default` needs a password, the first `set` of a memcached client logs in, as any user.
#[test]
fn memcached_clients_log_in_as_any_user() {
    let mut server = TestServer::with_shards(memory, 4);
    let admin = server.connect_listed();
    server.run(admin, &["ACL", "SETUSER", "default", "resetpass", ">x"]);
    server.run(admin, &["ACL", "SETUSER", "alice", "on", ">pw", "~a:*", "+@read", "+@write", "-@dangerous"]);
    let client = server.connect_memcached_as_default();
    let mut say = |request: &str| String::from_utf8(server.send(client, request.as_bytes())).unwrap();
    assert_eq!(say("get a:1\r\n"), "CLIENT_ERROR unauthenticated\r\n");
    assert_eq!(say("set k 0 0 8\r\nalice xx\r\n"), "CLIENT_ERROR authentication failure\r\n");
    assert_eq!(say("set k 0 0 8\r\nalice pw\r\n"), "STORED\r\n");
    assert_eq!(say("set a:1 0 0 1\r\n1\r\nget a:1\r\n"), "STORED\r\nVALUE a:1 0 1\r\n1\r\nEND\r\n");
    assert_eq!(say("set b:1 0 0 1\r\n1\r\n"), "SERVER_ERROR No permissions to access a key\r\n");
    let log = server.run(admin, &["ACL", "LOG"]);
    assert!(log.contains("cmd=memcached|set user=default") && log.contains("$4\r\nauth\r\n"), "{log}");
    assert!(!log.contains("pw"), "{log}");
}

/// The page asks commands for its clients. It gave keys to every user, and to everybody when `default` was off.
#[test]
fn the_page_shows_what_the_user_may_run() {
    let mut two = Two::new("~mine:* +@all -slowlog");
    let shared = two.server.shared.clone();
    let near = Visitor { address: ([127, 0, 0, 1], 5).into(), is_near: true, is_new: true };
    let may = |login, command: &str| {
        access(&shared, &near, login, &command.split(' ').collect::<Vec<_>>()).0 == Access::Granted
    };
    assert!(may(None, "CLIENT LIST") && may(Some(Shown::Password("alice", "any")), "CLIENT LIST"));
    assert!(may(None, "SLOWLOG GET") && !may(Some(Shown::Password("alice", "any")), "SLOWLOG GET"));
    two.set_user("bob", "on >pw +@all");
    assert!(
        may(Some(Shown::Password("bob", "pw")), "SLOWLOG GET")
            && !may(Some(Shown::Password("bob", "wrong")), "SLOWLOG GET")
    );
    let slow = |login| access(&shared, &near, login, &["SLOWLOG", "GET"]).0;
    assert_eq!(slow(Some(Shown::Password("alice", "any"))), Access::Forbidden);
    assert_eq!(slow(Some(Shown::Password("bob", "wrong"))), Access::NoLogin);
    two.set_user("default", "-slowlog");
    assert_eq!(slow(None), Access::NoLogin);
    assert!(may(None, "CLIENT LIST") && !may(None, "SLOWLOG GET"));
    two.set_user("default", "off");
    assert!(!may(None, "CLIENT LIST") && !may(None, "no such command"));
}

/// Clients of other hosts are shown nothing without a password, and their failures delay them and no one else.
#[test]
fn the_page_needs_a_password_from_other_hosts() {
    let mut two = Two::new("+@all");
    two.set_user("bob", "on >pw +info");
    let shared = two.server.shared.clone();
    let of = |host: [u8; 4], is_near| Visitor { address: (host, 5).into(), is_near, is_new: true };
    let (near, far, other) = (of([127, 0, 0, 1], true), of([10, 0, 0, 1], false), of([10, 0, 0, 2], false));
    let ask = |from: &Visitor, login| access(&shared, from, login, &["INFO"]);
    let right = Some(Shown::Password("bob", "pw"));
    assert_eq!(ask(&far, None).0, Access::NoLogin, "default is open");
    assert_eq!(ask(&far, Some(Shown::Password("alice", "any"))).0, Access::NoLogin, "alice has nopass");
    assert_eq!(ask(&near, Some(Shown::Password("alice", "any"))).0, Access::Granted);
    assert_eq!(ask(&far, right).0, Access::Granted);
    assert_eq!(access(&shared, &far, right, &["CLIENT", "LIST"]).0, Access::Forbidden);
    let delays: Vec<_> = (0..7).map(|_| ask(&far, Some(Shown::Password("bob", "wrong"))).1.as_millis()).collect();
    assert_eq!(delays, [0, 0, 0, 0, 0, 20, 40]);
    assert_eq!((ask(&other, right).1, ask(&near, right).1), Default::default());
    assert_eq!(ask(&far, right).1.as_millis(), 80, "the right one is delayed alike");
    let log = two.server.run(two.admin, &["ACL", "LOG"]);
    assert!(log.contains("addr=10.0.0.1:5 ") && log.contains("client|list") && !log.contains("wrong"), "{log}");
}

/// A directory of a test, which is removed with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onggi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory for temporary files");
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file is written");
        path.display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// CONFIG REWRITE writes the users of a running server as `user` lines, next to what the file had, and a start from it
/// has the same users. With an ACL file it writes none.
#[test]
fn config_rewrite_keeps_the_users_of_a_running_server() {
    let directory = Directory::new("rewrite");
    let hash = Hash::of(b"pw");
    let text = format!("# users\nuser alice on #{hash} ~a:* +get\nuser gone on nopass\nmaxclients 100\n");
    let path = directory.file("onggi.conf", &text);
    let ok = Reply::Simple("OK".into());
    let list = |server: &Served| match server.connect().run(&["ACL", "LIST"]) {
        Reply::List(lines) => lines,
        other => panic!("{other:?}"),
    };
    let before = {
        let server = Served::start(&[&path, "--workers", "1"]);
        let mut admin = server.connect();
        assert_eq!(admin.run(&["ACL", "SETUSER", "alice", "+set", "(%R~b +@read)"]), ok);
        assert_eq!(admin.run(&["ACL", "SETUSER", "bob", "on", ">secret words", "&news.*", "db=0,3", "+@all"]), ok);
        assert_eq!(admin.run(&["ACL", "DELUSER", "gone"]), Reply::Int(1));
        assert_eq!(admin.run(&["CONFIG", "REWRITE"]), ok);
        list(&server)
    };
    let written = std::fs::read_to_string(&path).expect("the file is there");
    assert!(written.starts_with("# users\n") && written.contains("\nmaxclients 100\n"), "{written}");
    let of_alice =
        format!("user alice on #{hash} ~a:* resetchannels -@all +get +set (%R~b resetchannels -@all +@read)");
    assert_eq!(written.lines().filter(|line| *line == of_alice).count(), 1, "{written}");
    assert_eq!(written.matches("\nuser ").count(), 2, "alice and bob, and not gone: {written}");
    assert!(!written.contains("secret words"), "{written}");
    {
        let server = Served::start(&[&path, "--workers", "1"]);
        assert_eq!(list(&server), before);
        let mut bob = server.connect();
        assert_eq!(bob.run(&["AUTH", "bob", "secret words"]), ok);
        assert_eq!(bob.run(&["CONFIG", "REWRITE"]), ok, "a second one");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("the file is there"), written, "changes nothing");

    let users = directory.file("users.acl", "user default on nopass ~* &* +@all\n");
    let path = directory.file("with-file.conf", &format!("aclfile {users}\n"));
    let server = Served::start(&[&path, "--workers", "1"]);
    let mut admin = server.connect();
    assert_eq!(admin.run(&["ACL", "SETUSER", "carol", "on"]), ok);
    assert_eq!(admin.run(&["CONFIG", "REWRITE"]), ok);
    let written = std::fs::read_to_string(&path).expect("the file is there");
    assert!(!written.contains("user carol") && written.contains("aclfile"), "{written}");
}

/// ACL SAVE writes what a start and ACL LOAD read. A file with a mistake changes nothing and starts no server.
#[test]
fn an_acl_file_is_loaded_saved_and_loaded_again() {
    let directory = Directory::new("aclfile");
    let hash = Hash::of(b"pw");
    let path = directory.file("users.acl", &format!("user alice on #{hash} ~a:* +@all -@dangerous (%R~b +get)\n"));
    let start = || Served::start(&["--workers", "1", "--aclfile", &path]);
    let ok = Reply::Simple("OK".into());
    {
        let server = start();
        let (mut admin, mut alice) = (server.connect(), server.connect());
        assert_eq!(alice.run(&["AUTH", "alice", "pw"]), ok);
        assert_eq!(alice.run(&["SET", "a:1", "1"]), ok);
        assert!(matches!(alice.run(&["SET", "b", "1"]), Reply::Error(_)));
        assert_eq!(admin.run(&["ACL", "SETUSER", "bob", "on", "nopass", "~*", "+@all", "&*"]), ok);
        assert_eq!(admin.run(&["ACL", "SAVE"]), ok);
        let saved = std::fs::read_to_string(&path).expect("the file is there");
        let of_alice = "~a:* resetchannels +@all -@dangerous (%R~b resetchannels -@all +get)";
        let expected = format!(
            "user alice on #{hash} {of_alice}\nuser bob on nopass ~* &* +@all\nuser default on nopass ~* &* +@all\n"
        );
        assert_eq!(saved, expected);
        assert_eq!(admin.run(&["ACL", "SETUSER", "alice", "off", "resetkeys"]), ok);
        directory.file("users.acl", &saved.replace("~a:*", "~c:*").replace("user bob", "user carol"));
        assert_eq!(admin.run(&["ACL", "LOAD"]), ok);
        assert_eq!(alice.run(&["SET", "c:1", "1"]), ok, "a connection follows the file");
        let users = Reply::List(["alice", "carol", "default"].map(|name| Reply::Bulk(Some(name.into()))).into());
        assert_eq!(admin.run(&["ACL", "USERS"]), users);
        directory.file("users.acl", "user alice on +nosuch\nuser bob\nuser bob on\n");
        let Reply::Error(error) = admin.run(&["ACL", "LOAD"]) else { panic!("the file has mistakes") };
        assert!(error.contains("users.acl:1: Error in applying operation '+nosuch'"), "{error}");
        assert!(error.contains("Duplicate user 'bob' found on line 3") && error.ends_with("was performed"), "{error}");
        assert_eq!(admin.run(&["ACL", "USERS"]), users);
        assert_eq!(admin.run(&["ACL", "SAVE"]), ok);
    }
    {
        let server = start();
        assert!(matches!(server.connect().run(&["ACL", "GETUSER", "carol"]), Reply::List(_)));
    }
    directory.file("users.acl", "user alice on +nosuch\n");
    let Err(error) = start().ended() else { panic!("the server started") };
    assert!(error.to_string().contains("users.acl:1: Error in applying operation '+nosuch'"), "{error}");
    std::fs::remove_file(&path).expect("it is there");
    let Err(error) = start().ended() else { panic!("the server started") };
    assert!(error.to_string().starts_with("cannot read the ACL file "), "{error}");
}

/// Every command and subcommand belongs to `@fast` or `@slow`, and is denied to a user who has all others.
#[test]
fn every_command_is_denied_to_a_user_without_it() {
    let mut two = Two::new("~* &* +@all");
    let rows = two.server.shared.table.resp_rows().to_vec();
    let is_container = |spec: &CommandSpec| matches!(spec.run, Run::Container(_));
    let needs_right = |spec: &CommandSpec| !spec.flags.intersects(Flags::NO_AUTH | Flags::NO_RIGHT);
    let mut wrong = Vec::new();
    for (name, spec) in rows.iter().filter(|(_, spec)| !is_container(spec) && needs_right(spec)) {
        if !categories(spec).any(|category| matches!(category.name(), "fast" | "slow")) {
            wrong.push(format!("{name} is neither fast nor slow"));
        }
        two.set_user("alice", &format!("+@all -{name}"));
        let mut words: Vec<&str> = name.split('|').collect();
        words.resize(words.len().max(spec.arity.unsigned_abs().into()), "1");
        let reply = two.server.run(two.alice, &words);
        // EXEC says so after `EXECABORT`.
        if !reply.contains(&format!("NOPERM User alice has no permissions to run the '{name}' command\r\n")) {
            wrong.push(format!("{words:?}: {reply}"));
        }
    }
    assert!(rows.len() > 300 && wrong.is_empty(), "{} rows: {wrong:#?}", rows.len());
}
