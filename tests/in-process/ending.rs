//! The end of a server by a signal or by SHUTDOWN, where the log is off and save points are set: what was acknowledged
//! is saved, or the server does not end.

use crate::reply::Reply;
use crate::served::{Client, SILENCE_MAX, Served};
use admin::EndOrder;
use checkpoint::{DataDir, Manifest};
use config::EndFlags;
use durability::{RdbWritten, Tell, WriteRdb};
use server::serve::{Keeping, ServeError};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use vfs::SimFs;

/// No log, one worker, and save points that are never reached while a test runs.
const OPTIONS: &[&str] =
    &["--workers", "1", "--shards", "16", "--dir", "/data", "--appendonly", "no", "--save", "3600 1"];

/// No page more fits on the disk.
const FULL: Option<u64> = Some(0);

/// The lines of the server's log. It waits after each one that a test has asked to stop at.
struct Lines {
    said: Sender<String>,
    stop_at: Option<(&'static str, Mutex<Receiver<()>>)>,
}

impl Tell for Lines {
    fn say(&self, text: &str) {
        // A test that has seen enough reads no more.
        let _ = self.said.send(text.to_owned());
        if let Some((_, go_on)) = self.stop_at.as_ref().filter(|(line, _)| text.starts_with(line)) {
            let _ = go_on.lock().expect("no test panics while holding it").recv();
        }
    }

    fn stop(&self, text: &str) {
        panic!("the server is to stop: {text}");
    }
}

pub struct NoRdb;

impl WriteRdb for NoRdb {
    fn write(&self, _: &DataDir, _: &Manifest, _: rdb::Target, _: &dyn Fn() -> bool) -> Result<RdbWritten, String> {
        Err("no test asks for one".to_owned())
    }
}

fn start_telling(fs: &SimFs, tell: Lines) -> Served {
    Served::start_keeping(
        OPTIONS,
        Keeping::Directory { fs: Arc::new(fs.clone()), tell: Arc::new(tell), rdb: Arc::new(NoRdb) },
    )
}

/// A server, and the lines of its log.
pub fn start(fs: &SimFs) -> (Served, Receiver<String>) {
    let (said, lines) = channel();
    (start_telling(fs, Lines { said, stop_at: None }), lines)
}

/// Waits for a line of the log.
pub fn wait_for(lines: &Receiver<String>, begin: &str) -> String {
    loop {
        let line = lines.recv_timeout(SILENCE_MAX).unwrap_or_else(|_| panic!("the server never says {begin:?}"));
        if line.starts_with(begin) {
            return line;
        }
    }
}

fn set(client: &mut Client, key: &str) -> bool {
    client.send(&[&["SET", key, "1"]]);
    client.reply() == Some(Reply::Simple("OK".into()))
}

fn exists(fs: &SimFs, key: &str) -> bool {
    let (server, _lines) = start(fs);
    server.connect().run(&["EXISTS", key]) == Reply::Int(1)
}

/// SET, +OK, signal at once: the write was counted at the end of its turn, after its reply, and the end that saw no
/// change saved nothing (6 of 12 runs).
#[test]
fn a_write_acknowledged_just_before_the_signal_is_saved() {
    for round in 0..20 {
        let fs = SimFs::new(round);
        let (server, _lines) = start(&fs);
        assert!(set(&mut server.connect(), "k"));
        server.ask_to_end(EndOrder::Terminate);
        server.ended().expect("it ends in order");
        assert!(exists(&fs, "k"), "round {round}");
    }
}

/// Writes after the cut of the last checkpoint were acknowledged and lost (10,857 of 15,806). They wait now, and their
/// clients are closed without a reply; reads work.
#[test]
fn no_write_is_acknowledged_after_the_last_cut() {
    let fs = SimFs::new(1);
    let ((said, lines), (go_on, wait)) = (channel(), channel());
    let server = start_telling(&fs, Lines { said, stop_at: Some(("checkpoint done", Mutex::new(wait))) });
    let (mut writer, mut reader) = (server.connect(), server.connect());
    assert!(set(&mut writer, "before"));
    server.ask_to_end(EndOrder::Terminate);
    wait_for(&lines, "checkpoint done");
    writer.send(&[&["SET", "after", "1"]]);
    // The one worker has met the write before it answers the second of these.
    for _ in 0..2 {
        assert_eq!(reader.run(&["EXISTS", "before"]), Reply::Int(1));
    }
    go_on.send(()).expect("the server waits");
    assert_eq!(writer.reply(), None, "it was never acknowledged");
    server.ended().expect("it ends in order");
    assert!(exists(&fs, "before") && !exists(&fs, "after"));
}

/// A disk that is full at the end made the server exit with status 0 and lose everything.
#[test]
fn a_full_disk_keeps_the_server_from_ending() {
    let fs = SimFs::new(2);
    let (server, lines) = start(&fs);
    let mut client = server.connect();
    assert!(set(&mut client, "k"));
    fs.set_capacity(FULL);
    // Of two orders one after the other both are refused, the second of a client that waits for its outcome.
    server.ask_to_end(EndOrder::Terminate);
    let line = wait_for(&lines, "SIGTERM refused: the checkpoint failed");
    assert!(line.contains("SHUTDOWN NOSAVE FORCE"), "{line}");
    assert_eq!(client.run(&["SHUTDOWN"]), Reply::Error("ERR Errors trying to SHUTDOWN. Check logs.".into()));
    assert_eq!(client.run(&["GET", "k"]), Reply::Bulk(Some("1".into())), "it goes on serving");
    fs.set_capacity(None);
    client.send(&[&["SHUTDOWN"]]);
    assert_eq!(client.reply(), None);
    server.ended().expect("it ends in order");
    assert!(exists(&fs, "k"));
}

/// A client's pause outlives an end that was refused, and writes work after both.
#[test]
fn a_refused_end_lets_writes_through_again() {
    let fs = SimFs::new(3);
    let (server, lines) = start(&fs);
    let mut client = server.connect();
    assert!(set(&mut client, "k"));
    client.run(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]);
    fs.set_capacity(FULL);
    server.ask_to_end(EndOrder::Interrupt);
    wait_for(&lines, "SIGINT refused");
    assert!(set(&mut client, "after"));
    client.run(&["CLIENT", "PAUSE", "100000", "WRITE"]);
    client.run(&["SHUTDOWN"]);
    let info = client.run(&["INFO", "clients"]);
    assert!(info.text().contains("paused_reason:client_pause\r\npaused_actions:write"), "{info:?}");
}

/// A forced end loses what is not saved, and the exit code shows it.
#[test]
fn a_forced_end_without_its_save_is_an_error() {
    for order in [EndOrder::Client(EndFlags { force: true, ..EndFlags::default() }), EndOrder::Terminate] {
        let fs = SimFs::new(4);
        let (server, _lines) = start(&fs);
        let mut client = server.connect();
        client.run(&["CONFIG", "SET", "shutdown-on-sigterm", "force"]);
        assert!(set(&mut client, "k"));
        fs.set_capacity(FULL);
        server.ask_to_end(order);
        assert!(matches!(server.ended(), Err(ServeError::Unsaved { .. })), "{order}");
    }
}

#[test]
fn nosave_saves_nothing() {
    let fs = SimFs::new(5);
    let (server, _lines) = start(&fs);
    let mut client = server.connect();
    client.run(&["CONFIG", "SET", "shutdown-on-sigint", "nosave"]);
    assert!(set(&mut client, "k"));
    server.ask_to_end(EndOrder::Interrupt);
    server.ended().expect("it ends in order");
    assert!(!exists(&fs, "k"));
}

/// SHUTDOWN ABORT answered that no shutdown was in progress, and the server ended. Listed in differences.md: Valkey
/// answers no command during its last save.
#[test]
fn shutdown_abort_calls_off_the_end_during_the_last_checkpoint() {
    let fs = SimFs::new(6);
    let ((said, lines), (go_on, wait)) = (channel(), channel());
    let server = start_telling(&fs, Lines { said, stop_at: Some(("checkpoint done", Mutex::new(wait))) });
    let (mut writer, mut asker, mut other) = (server.connect(), server.connect(), server.connect());
    assert!(set(&mut writer, "before"));
    asker.send(&[&["SHUTDOWN"]]);
    wait_for(&lines, "checkpoint done");
    writer.send(&[&["SET", "after", "1"]]);
    assert_eq!(other.run(&["SHUTDOWN", "ABORT"]), Reply::Simple("OK".into()));
    assert_eq!(asker.reply(), Some(Reply::Error("ERR Errors trying to SHUTDOWN. Check logs.".into())));
    wait_for(&lines, "SHUTDOWN called off by SHUTDOWN ABORT");
    assert_eq!(writer.reply(), Some(Reply::Simple("OK".into())), "the write that waited is acknowledged");
    assert_eq!(other.run(&["SHUTDOWN", "ABORT"]), Reply::Error("ERR No shutdown in progress.".into()));
    (0..2).for_each(|_| go_on.send(()).expect("the server waits"));
    server.ask_to_end(EndOrder::Terminate);
    server.ended().expect("it ends in order");
    assert!(exists(&fs, "before") && exists(&fs, "after"));
}
