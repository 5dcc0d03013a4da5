//! `cmdlog` and `dump` of ARCUS: what administrators have written to files.

use crate::harness::{TestServer, memory};
use memcached::{Files, Sweeps};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use vfs::{FileSystem, OpenOptions, SimFs};

struct Writing {
    server: TestServer,
    client: usize,
    fs: SimFs,
}

impl Writing {
    fn new() -> Self {
        let fs = SimFs::new(1);
        let files = Files(Arc::new(fs.clone()));
        let mut server = TestServer::with_parts(memory, 4, |assembly| assembly.with(files));
        let client = server.connect_memcached_as_default();
        Self { server, client, fs }
    }

    /// Sends lines that `|` separates.
    fn say(&mut self, lines: &str) -> String {
        let reply = self.server.send(self.client, format!("{}\r\n", lines.replace('|', "\r\n")).as_bytes());
        String::from_utf8_lossy(&reply).replace("\r\n", "|")
    }

    /// The reply to a request that a thread answers, after all walks that are due.
    fn ask(&mut self, line: &str) -> String {
        let mut reply = self.say(line);
        let sweeps = self.server.shared.host.part::<memcached::Needed, Arc<Sweeps>>().clone();
        for _ in 0..10_000 {
            if !reply.is_empty() {
                return reply;
            }
            self.server.executor.begin_turn();
            self.server.executor.end_blocks();
            while self.server.executor.sweep(&sweeps) {}
            reply = String::from_utf8_lossy(&self.server.replies(self.client)).replace("\r\n", "|");
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{line} is not answered");
    }

    /// Asks until the answer contains this, and makes steps of walks.
    fn ask_until(&mut self, line: &str, part: &str) -> String {
        let sweeps = self.server.shared.host.part::<memcached::Needed, Arc<Sweeps>>().clone();
        for _ in 0..10_000 {
            let reply = self.ask(line);
            if reply.contains(part) {
                return reply;
            }
            self.server.executor.begin_turn();
            while self.server.executor.sweep(&sweeps) {}
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{line} does not come to {part}");
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = self.fs.read_dir(Path::new(directory)).unwrap_or_default();
        entries.into_iter().map(|entry| entry.name.to_string_lossy().into_owned()).collect()
    }

    fn content(&self, path: &str) -> String {
        let file = self.fs.open(Path::new(path), OpenOptions::read()).expect("it is there");
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

/// Each line that a client sends is in the file once: no data, no part of one with several keys, and none of a pipe
/// twice. What came before the start and after the stop is not.
#[test]
fn lines_of_clients_are_in_files() {
    let mut files = Writing::new();
    assert_eq!(files.say("get before"), "END|");
    assert_eq!(files.say("cmdlog stop"), "\tcommand logging already stopped.\n|");
    assert_eq!(files.say("cmdlog"), "\t* Usage: cmdlog [start [path] | stop | stats]\n|");
    assert_eq!(files.ask("cmdlog start"), "\tcommand logging started.\n|");
    assert_eq!(files.say("cmdlog start"), "\tcommand logging already started.\n|");
    let lines = [
        "set a 7 0 6|secret|get a b c",
        "mget 3 2|a b",
        "lop insert l 0 1 create 0 0 0 pipe|x|lop insert l 0 1|y",
        "set a 0 0 1 noreply|z|nonsense|gat 0 a d",
    ];
    lines.iter().for_each(|line| assert_ne!(files.say(line), "", "{line}"));
    assert!(files.say("cmdlog stats").starts_with("\tCommand logging state : running\n"));
    assert_eq!(files.say("cmdlog stop"), "\tcommand logging stopped.\n|");
    assert_eq!(files.say("get after"), "END|");
    let stats = files.ask_until("cmdlog stats", "state : Not started\n");
    assert!(stats.contains("entered commands : 11\n") && stats.contains("skipped commands : 0\n"), "{stats}");
    let directory = "arcus/command_log";
    let names = files.names(directory);
    assert!(names.len() == 1 && names[0].starts_with("command_0_") && names[0].ends_with("_0.log"), "{names:?}");
    let text = files.content(&format!("{directory}/{}", names[0]));
    let noted: Vec<&str> = text.lines().map(|line| line.splitn(3, ' ').nth(2).unwrap()).collect();
    let expected = [
        "cmdlog start",
        "set a 7 0 6",
        "get a b c",
        "mget 3 2",
        "lop insert l 0 1 create 0 0 0 pipe",
        "lop insert l 0 1",
        "set a 0 0 1 noreply",
        "nonsense",
        "gat 0 a d",
        "cmdlog stats",
        "cmdlog stop",
    ];
    assert_eq!(noted, expected);
    assert!(text.lines().all(|line| line.contains(" /test ")), "{text}");
    assert_eq!(files.ask("cmdlog start"), "\tcommand logging started.\n|", "it starts again");
}

#[test]
fn keys_are_written_to_a_file() {
    let mut files = Writing::new();
    assert_eq!(files.say("stats dump"), "STAT dumper:status stopped|STAT dumper:success false|END|");
    for number in 0..1000 {
        assert_eq!(files.say(&format!("set p:{number:03} 0 0 1|x")), "STORED|");
    }
    assert_eq!(files.say("bop create q:b 0 100 0|sop create s 0 0 0"), "CREATED|CREATED|");
    assert_eq!(files.ask("dump start key all.txt"), "OK|");
    let stats = files.ask_until("stats dump", "dumper:success true");
    assert!(stats.contains("STAT dumper:dumped 1002|STAT dumper:prefix <all>|"), "{stats}");
    let text = files.content("arcus/dump/all.txt");
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.pop(), Some("DUMP SUMMARY: { prefix=<all>, count=1002, elapsed=0 }"));
    lines.sort_unstable();
    assert_eq!((lines[0], lines[1], lines[1000], lines[1001]), ("B q:b 100", "K p:000 0", "K p:999 0", "S s 0"));
    for (prefix, expected) in [("q", "B q:b 100\n"), ("<null>", "S s 0\n"), ("none", "")] {
        assert_eq!(files.ask(&format!("dump start key {prefix} all.txt")), "OK|", "the file is written anew");
        files.ask_until("stats dump", "dumper:success true");
        let count = usize::from(!expected.is_empty());
        let summary = format!("{expected}DUMP SUMMARY: {{ prefix={prefix}, count={count}, elapsed=0 }}\n");
        assert_eq!(files.content("arcus/dump/all.txt"), summary);
    }
    assert_eq!(files.say("dump stop"), "OK|", "none is running");
}

/// Names are those of files in a directory that holds nothing else.
#[test]
fn no_name_leaves_the_directory() {
    let mut files = Writing::new();
    for name in ["../x", "/tmp/x", "a/b", ".x", "..", "a\0b", "k\u{e4}se", &"x".repeat(129)] {
        assert!(
            files.say(&format!("dump start key {name}")).starts_with("CLIENT_ERROR bad value: give a name"),
            "{name}"
        );
        assert!(
            files.say(&format!("cmdlog start {name}")).starts_with("CLIENT_ERROR bad value: give a name"),
            "{name}"
        );
    }
    for (line, reply) in [
        ("dump start value x", "NOT_SUPPORTED|"),
        ("dump start key", "CLIENT_ERROR bad command line format|"),
        ("dump", "CLIENT_ERROR bad command line format|"),
    ] {
        assert_eq!(files.say(line), reply, "{line}");
    }
    assert_eq!(files.say(&format!("dump start key {} x", "p".repeat(251))), "CLIENT_ERROR too long prefix name|");
    assert!(files.names(".").is_empty() && files.names("arcus").is_empty());
    let mut server = TestServer::with_shards(memory, 4);
    let client = server.connect_memcached_as_default();
    assert_eq!(server.send(client, b"dump start key x\r\n"), b"SERVER_ERROR this server has no data directory\r\n");
}
