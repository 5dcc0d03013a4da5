//! Nanoseconds per operation of what every request passes: `cargo bench -p onggi-proto`. The best of many short rounds
//! is printed, since the machine's other work only ever adds to it.
//!
//! With a number, `cargo bench -p onggi-proto -- 1`, each operation runs that many rounds and nothing is warmed up: for
//! an instruction count under callgrind.

use proto::{Arguments, Limits, Progress, Protocol, ReplyBuffer, RequestParser};
use std::hint::black_box;
use std::time::Instant;

/// The requests of one pipeline in one read, as load generators send them.
const PIPELINE: usize = 64;

fn main() {
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let value = [b'v'; 64];
    let key = |number: usize| format!("key:{number:012}").into_bytes();
    let requests = |request: &dyn Fn(usize) -> Vec<u8>| (0..PIPELINE).flat_map(request).collect::<Vec<u8>>();

    let set = requests(&|number| encode(&[b"SET", &key(number), &value]));
    measure("parse SET key value64", rounds, || parse(&set));
    let get = requests(&|number| encode(&[b"GET", &key(number)]));
    measure("parse GET key", rounds, || parse(&get));
    let large = requests(&|number| encode(&[b"SET", &key(number), &[b'v'; 1024]]));
    measure("parse SET key value1024", rounds, || parse(&large));
    let many = requests(&|number| {
        let keys: Vec<Vec<u8>> = (0..20).map(|at| key(number + at)).collect();
        let mut words: Vec<&[u8]> = vec![b"MGET"];
        words.extend(keys.iter().map(Vec::as_slice));
        encode(&words)
    });
    measure("parse MGET of 20 keys", rounds, || parse(&many));
    let inline = requests(&|number| [b"GET ", &key(number)[..], b"\r\n"].concat());
    measure("parse inline GET key", rounds, || parse(&inline));
    measure("parse SET cut in the value", rounds, || parse_cut(&set));

    let mut reply = ReplyBuffer::new(Protocol::Resp2);
    write("write +OK", rounds, &mut reply, |reply| reply.ok());
    write("write $64", rounds, &mut reply, |reply| reply.bulk(black_box(&value)));
    write("write $1024", rounds, &mut reply, |reply| reply.bulk(black_box(&[b'v'; 1024])));
    write("write null", rounds, &mut reply, |reply| reply.null());
    write("write :1", rounds, &mut reply, |reply| reply.integer(black_box(1)));
    write("write :1234567", rounds, &mut reply, |reply| reply.integer(black_box(1_234_567)));
    write("write double 1.5", rounds, &mut reply, |reply| reply.double(black_box(1.5)));
    write("write double 0.1234567891", rounds, &mut reply, |reply| reply.double(black_box(0.123_456_789_1)));

    (0..PIPELINE).for_each(|_| reply.bulk(&value));
    let bytes = reply.as_contiguous().unwrap_or_default().to_vec();
    measure("skip $64", rounds, || {
        let mut rest = &bytes[..];
        while let Ok(Some(len)) = proto::reply::skip_reply(black_box(rest)) {
            rest = &rest[len..];
        }
        assert!(rest.is_empty());
    });
}

/// Measures one call of the reply writer, with its share of taking the bytes out again.
fn write(name: &str, rounds: Option<usize>, reply: &mut ReplyBuffer, write: impl Fn(&mut ReplyBuffer)) {
    measure(name, rounds, || {
        for _ in 0..PIPELINE {
            write(black_box(reply));
        }
        reply.advance(reply.len());
    });
}

/// Runs `operation`, which is [`PIPELINE`] operations, and prints the time of one.
fn measure(name: &str, rounds: Option<usize>, mut operation: impl FnMut()) {
    const ROUND: usize = 100;
    let mut best = f64::INFINITY;
    for _ in 0..rounds.unwrap_or(2000) {
        let start = Instant::now();
        for _ in 0..ROUND {
            operation();
        }
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    println!("{name:32} {:8.2} ns", best / (ROUND * PIPELINE) as f64);
}

fn parse(input: &[u8]) {
    use std::cell::RefCell;
    thread_local!(static ARGUMENTS: RefCell<Arguments> = const { RefCell::new(Arguments::new()) });
    ARGUMENTS.with_borrow_mut(|out| {
        let mut parser = RequestParser::new();
        let mut rest = black_box(input);
        while let Ok(Progress::Complete { consumed }) = parser.parse(rest, black_box(&Limits::DEFAULT), out) {
            rest = &rest[consumed..];
        }
        assert!(rest.is_empty());
        black_box(&out);
        out.clear();
    });
}

/// Each request arrives in two parts.
fn parse_cut(input: &[u8]) {
    let mut out = Arguments::new();
    let mut parser = RequestParser::new();
    for request in black_box(input).chunks(input.len() / PIPELINE) {
        let cut = &request[..request.len() - 20];
        let progress = parser.parse(cut, &Limits::DEFAULT, &mut out);
        assert_eq!(progress, Ok(Progress::Incomplete { keep: cut.len() }));
        let progress = parser.parse(request, &Limits::DEFAULT, &mut out);
        assert_eq!(progress, Ok(Progress::Complete { consumed: request.len() }));
    }
    black_box(&out);
}

fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
