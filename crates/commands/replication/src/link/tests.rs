//! Handshakes with a primary that says what a test has it say.

use super::*;
use std::net::TcpListener;
use std::thread::{self, JoinHandle};

const ID: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "89abcdef0123456789abcdef0123456789abcdef";

/// A primary that answers each request by the next text; it returns the requests.
fn primary(replies: &'static [&'static str]) -> (Primary, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut seen = Vec::new();
        for reply in replies {
            seen.push(read_request(&mut stream));
            stream.write_all(reply.as_bytes()).unwrap();
        }
        seen
    });
    (Primary { host: "127.0.0.1".into(), port, user: None, password: None, is_tls: false }, thread)
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut input = BufReader::with_capacity(1, stream);
    let mut line = || {
        let mut line = String::new();
        input.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let words: usize = line()[1..].parse().unwrap();
    let words: Vec<String> = (0..words).map(|_| (line(), line()).1).collect();
    words.join(" ")
}

fn at(id: &str, offset: u64) -> Position {
    Position { id: id.into(), offset }
}

#[test]
fn a_copy_and_the_stream_after_it() {
    let (primary, thread) = primary(&[
        "+PONG\r\n",
        "+OK\r\n",
        "+OK\r\n",
        "-ERR Unrecognized REPLCONF option: version\r\n",
        "\n\n+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 7\r\n\n\n$5\r\nREDIS*1\r\n$4\r\nPING\r\n",
    ]);
    let (mut link, opened) = Link::open(&primary, &Terms::default(), None).unwrap();
    assert_eq!(opened, Opened::Copy(at(ID, 7)));
    let mut copy = Vec::new();
    assert_eq!(link.pass_copy(&mut copy, &mut |_| ()).unwrap(), 5);
    assert_eq!(copy, b"REDIS");
    let mut stream = String::new();
    link.read_to_string(&mut stream).unwrap();
    assert_eq!(stream, "*1\r\n$4\r\nPING\r\n");
    let seen = thread.join().unwrap();
    assert_eq!(
        seen,
        ["PING", "REPLCONF listening-port 0", "REPLCONF capa eof capa psync2", "REPLCONF version 9.1.0", "PSYNC ? -1"]
    );
}

#[test]
fn a_position_is_continued() {
    for (reply, id) in [
        (&["+OK\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n", "+CONTINUE\r\n"][..], ID),
        (
            &["+OK\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n", "+CONTINUE 89abcdef0123456789abcdef0123456789abcdef\r\n"],
            OTHER,
        ),
    ] {
        let (mut primary, thread) = primary(reply);
        (primary.user, primary.password) = (Some("ann".into()), Some("secret".into()));
        let (_, opened) = Link::open(&primary, &Terms { port: 6380, ..Terms::default() }, Some(&at(ID, 41))).unwrap();
        assert_eq!(opened, Opened::Continue(at(id, 41)));
        let seen = thread.join().unwrap();
        assert_eq!((seen[0].as_str(), seen[4].as_str()), ("AUTH ann secret", &*format!("PSYNC {ID} 42")));
    }
}

#[test]
fn refusals_are_named() {
    let error = |replies| {
        let (primary, _thread) = primary(replies);
        let error = Link::open(&primary, &Terms::default(), None).map(|(_, opened)| opened).unwrap_err();
        (error.may_pass(), error.to_string().split_once(": ").unwrap().1.to_owned())
    };
    assert_eq!(
        error(&["-NOAUTH Authentication required.\r\n"]),
        (false, "PING was refused: NOAUTH Authentication required.".into())
    );
    assert_eq!(
        error(&["+OK\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n", "-LOADING busy\r\n"]),
        (true, "not ready: LOADING busy".into())
    );
    assert_eq!(error(&["+OK\r\n", "+OK\r\n"]), (true, "the connection ended while waiting for a reply".into()));
    assert_eq!(
        error(&["HTTP/1.1 400 Bad Request\r\n"]),
        (false, "expected a status, received \"HTTP/1.1 400 Bad Request\"".into())
    );
    assert_eq!(
        error(&["+OK\r\n", "+OK\r\n", "+OK\r\n", "+OK\r\n", "+CONTINUE\r\n"]),
        (false, "expected +FULLRESYNC or +CONTINUE, received \"+CONTINUE\"".into())
    );
}

/// A full buffer of a primary's words is no memory of ours.
#[test]
fn an_endless_line_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        while stream.write_all(&[b'+'; 4096]).is_ok() {}
    });
    let primary = Primary { host: "127.0.0.1".into(), port, user: None, password: None, is_tls: false };
    let error = Link::open(&primary, &Terms::default(), None).map(|(_, opened)| opened).unwrap_err();
    assert!(matches!(error, LinkError::Protocol { expected: "a line", .. }), "{error}");
    thread.join().unwrap();
}
