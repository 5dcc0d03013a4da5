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

/// Numbers that a seed determines (xorshift64*).
struct Source(u64);

impl Source {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    /// The bytes with a few of them changed, cut off, repeated or put in.
    fn damage(&mut self, bytes: &[u8]) -> Vec<u8> {
        const NUMBERS: [[u8; 4]; 5] =
            [[0xff; 4], [0x7f, 0xff, 0xff, 0xff], [0x80, 0, 0, 0], [0; 4], [0, 0x3f, 0xff, 0xff]];
        let mut bytes = bytes.to_vec();
        for _ in 0..self.below(6).saturating_sub(2) {
            let at = self.below(bytes.len().max(1));
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => bytes.extend_from_within(at.min(bytes.len())..),
                2 => bytes.insert(at.min(bytes.len()), self.below(256) as u8),
                3 => {
                    let number = NUMBERS[self.below(NUMBERS.len())];
                    bytes.iter_mut().skip(at / 4 * 4).zip(number).for_each(|(byte, new)| *byte = new);
                }
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (at % 8)),
            }
        }
        bytes
    }
}

/// Whatever a server sends, the client returns, and holds no more than a frame of the longest length.
#[test]
fn damaged_replies_do_no_harm() {
    const CONNECTIONS: u64 = 3000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = thread::spawn(move || {
        for seed in 1..=CONNECTIONS {
            let (mut stream, _) = listener.accept().unwrap();
            let mut source = Source(seed);
            let fired = Frame::new().int(WATCH_FIRED).long(-1).int(0).int(4).int(3).bytes(b"/x").finish();
            let stat = (0..10).fold(reply(2, 0), |frame, _| frame.long(77)).finish();
            let children = reply(1, 0).int(2).bytes(b"a").bytes(b"b").finish();
            let created = reply(3, 0).bytes(b"/x/y").finish();
            let mut sent = if source.below(4) == 0 { source.damage(&welcome(4000)) } else { welcome(4000) };
            for frame in [fired.clone(), children, fired, stat, created] {
                sent.extend(source.damage(&frame));
            }
            // The client may have closed the connection already. Its requests are read, so that none of this is lost.
            let _ = stream.write_all(&sent).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
            let _ = io::copy(&mut stream, &mut io::sink());
        }
    });
    let mut answers = [0; 4];
    for _ in 0..CONNECTIONS {
        let Ok(mut session) = Session::open(std::slice::from_ref(&address), &Identity::default(), TIME) else {
            continue;
        };
        let found = [
            session.children("/x", true).is_ok(),
            session.owns("/x").is_ok(),
            session.create("/x/y", b"1MB", Lifetime::Ephemeral).is_ok(),
            session.wait(Duration::ZERO).is_ok(),
        ];
        answers.iter_mut().zip(found).for_each(|(count, is_ok)| *count += u64::from(is_ok));
        assert!(session.received.len() <= FRAME_BYTES_MAX + 8192 && session.fired.len() <= FIRED_MAX);
    }
    thread.join().unwrap();
    // Both are met: replies that are right, and those that are not.
    assert!(answers.iter().take(3).all(|count| (50..CONNECTIONS - 50).contains(count)), "{answers:?}");
}

/// A server that fires the same watch again and again fills no memory.
#[test]
fn fired_watches_are_kept_once() {
    let fired =
        |path: &str| Frame::new().int(WATCH_FIRED).long(-1).int(0).int(4).int(3).bytes(path.as_bytes()).finish();
    let mut flood: Vec<Vec<u8>> = (0..1000).map(|number| fired(&format!("/x{}", number % 100))).collect();
    flood.push(reply(1, 0).int(0).finish());
    let (address, server) = server(vec![vec![welcome(4000)], flood]);
    let mut session = Session::open(&[address], &Identity::default(), TIME).unwrap();
    assert_eq!(session.children("/x", true).unwrap(), Vec::<String>::new());
    assert_eq!(session.fired.len(), FIRED_MAX);
    server.join().unwrap();
}
