//! CONFIG SET of `appendfsync` on a whole server: the mode is in force when the reply is OK.

use crate::ending::NoRdb;
use crate::recovery::Nobody;
use crate::reply::Reply;
use crate::served::{Client, Served};
use server::serve::Keeping;
use std::sync::Arc;
use vfs::SimFs;

fn setting(client: &mut Client, name: &str) -> String {
    match client.run(&["CONFIG", "GET", name]) {
        Reply::List(pair) => match pair.as_slice() {
            [_, Reply::Bulk(Some(value))] => value.clone(),
            other => panic!("CONFIG GET {name} answered {other:?}"),
        },
        other => panic!("CONFIG GET {name} answered {other:?}"),
    }
}

/// The mode in force, as INFO shows it.
fn in_force(client: &mut Client) -> String {
    let Reply::Bulk(Some(text)) = client.run(&["INFO", "persistence"]) else { panic!("INFO answers a text") };
    let mode = text.lines().find_map(|line| line.strip_prefix("log_mode:"));
    mode.expect("the log is on").to_owned()
}

/// EXEC holds the locks of its keys, so the mode cannot change in it. Before, the reply was OK, and the mode stayed
/// until the keeper had time: seconds, while it took a checkpoint.
#[test]
fn a_mode_that_exec_cannot_put_into_force_is_answered_by_an_error() {
    let keeping = Keeping::Directory { fs: Arc::new(SimFs::new(1)), tell: Arc::new(Nobody), rdb: Arc::new(NoRdb) };
    let options = ["--workers", "1", "--dir", "/data", "--appendfsync", "everysec", "--save", ""];
    let server = Served::start_keeping(&options, keeping);
    let mut client = server.connect();
    client.send(&[
        &["MULTI"],
        &["SET", "k", "v"],
        &["CONFIG", "SET", "maxmemory", "100mb", "appendfsync", "always"],
        &["EXEC"],
    ]);
    let replies: Vec<Reply> = (0..4).filter_map(|_| client.reply()).collect();
    let Some(Reply::List(ran)) = replies.last() else { panic!("EXEC answered {replies:?}") };
    let [Reply::Simple(_), Reply::Error(text)] = ran.as_slice() else { panic!("EXEC answered {ran:?}") };
    assert_eq!(
        text,
        "ERR CONFIG SET failed (possibly related to argument 'appendfsync') - a transaction that uses keys cannot \
         change it, and nothing was changed: send CONFIG SET outside MULTI"
    );
    assert_eq!(
        (setting(&mut client, "appendfsync"), setting(&mut client, "maxmemory"), in_force(&mut client)),
        ("everysec".into(), "0".into(), "everysec".into())
    );
    for mode in ["always", "no", "everysec"] {
        assert_eq!(client.run(&["CONFIG", "SET", "appendfsync", mode]), Reply::Simple("OK".into()));
        assert_eq!((setting(&mut client, "appendfsync"), in_force(&mut client)), (mode.into(), mode.into()));
    }
}
