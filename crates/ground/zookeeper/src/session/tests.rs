//! Sessions with a server of a few lines, which answers what each test says.

use super::*;
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

const TIME: Duration = Duration::from_secs(30);

/// A server of one connection: it gives each of these frames after a frame of the client.
fn server(replies: Vec<Vec<Vec<u8>>>) -> (String, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        for frames in replies {
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut frame = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut frame).unwrap();
            received.push(frame);
            frames.iter().for_each(|frame| stream.write_all(frame).unwrap());
        }
        received
    });
    (address, thread)
}

fn welcome(milliseconds: i32) -> Vec<u8> {
    Frame::new().int(0).int(milliseconds).long(77).bytes(b"0123456789abcdef").flag(false).finish()
}

fn reply(number: i32, code: i32) -> Frame {
    Frame::new().int(number).long(5).int(code)
}

#[test]
fn a_session_begins_and_answers() {
    let children = reply(1, 0).int(2).bytes(b"a").bytes(b"b").finish();
    let fired = Frame::new().int(WATCH_FIRED).long(-1).int(0).int(4).int(3).bytes(b"/x").finish();
    let exists = reply(2, -110).finish();
    let (address, server) = server(vec![vec![welcome(4000)], vec![fired, children], vec![exists]]);
    let mut session = Session::open(&[address], &Identity::default(), TIME).unwrap();
    assert_eq!(session.timeout(), Duration::from_secs(4));
    assert_eq!(session.children("/x", true).unwrap(), ["a", "b"]);
    // It has come before the reply.
    assert_eq!(session.wait(Duration::ZERO).unwrap().as_deref(), Some("/x"));
    let error = session.create("/x/y", b"1MB", Lifetime::Ephemeral).unwrap_err();
    assert!(matches!(&error, Error::NodeExists { path } if path == "/x/y"), "{error}");
    assert_eq!((session.identity().id, session.identity().seen), (77, 5));
    let received = server.join().unwrap();
    // Its number, the request, the path, the data, one rule with all rights, and the flag of an ephemeral node.
    let expected = Frame::new().int(2).int(op::CREATE).bytes(b"/x/y").bytes(b"1MB").int(1).int(31);
    assert_eq!(received[2], expected.bytes(b"world").bytes(b"anyone").int(1).finish()[4..]);
}

#[test]
fn a_refused_session_has_expired() {
    let (address, server) = server(vec![vec![welcome(0)]]);
    let identity = Identity { id: 9, password: vec![1; 16], seen: 3 };
    let error = Session::open(&[address], &identity, TIME).unwrap_err();
    assert!(matches!(error, Error::Expired), "{error}");
    let hello = Frame::new().int(0).long(3).int(30_000).long(9).bytes(&[1; 16]).flag(false).finish();
    assert_eq!(server.join().unwrap(), [hello[4..].to_vec()]);
}

#[test]
fn the_next_server_is_tried() {
    let (closing, first) = server(vec![vec![]]);
    let (address, second) = server(vec![vec![welcome(4000)]]);
    let session = Session::open(&[closing, address.clone()], &Identity::default(), TIME).unwrap();
    assert_eq!(session.server(), address);
    first.join().unwrap();
    second.join().unwrap();
    let (closing, only) = server(vec![vec![]]);
    let error = Session::open(&[closing], &Identity::default(), TIME).unwrap_err();
    assert!(error.is_disconnection(), "{error}");
    only.join().unwrap();
    assert!(matches!(Session::open(&[], &Identity::default(), TIME), Err(Error::NoServer)));
}

#[test]
fn a_damaged_frame_is_an_error() {
    for frame in [b"\x7f\xff\xff\xff".to_vec(), Frame::new().int(1).finish(), b"\xff\xff\xff\xff".to_vec()] {
        let (address, server) = server(vec![vec![welcome(4000)], vec![frame]]);
        let mut session = Session::open(&[address], &Identity::default(), TIME).unwrap();
        let error = session.sync("/x").unwrap_err();
        assert!(matches!(error, Error::Frame { .. }), "{error}");
        server.join().unwrap();
    }
}

#[test]
fn a_silent_server_is_asked_and_then_lost() {
    let (address, server) = server(vec![vec![welcome(60_000)], vec![]]);
    let mut session = Session::open(&[address], &Identity::default(), TIME).unwrap();
    session.sent_at = Instant::now().checked_sub(Duration::from_secs(20)).unwrap();
    assert_eq!(session.wait(Duration::ZERO).unwrap(), None);
    assert_eq!(server.join().unwrap()[1], Frame::new().int(PING).int(op::PING).finish()[4..]);
    session.heard_at = Instant::now().checked_sub(Duration::from_secs(40)).unwrap();
    let error = session.wait(Duration::ZERO).unwrap_err();
    assert!(error.is_disconnection(), "{error}");
}
