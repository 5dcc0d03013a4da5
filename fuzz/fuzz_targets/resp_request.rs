//! Requests: bytes 0 to 3 choose limits and how the others are split; the result must not depend on the split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onggi_fuzz::{LONG_PIECE, control, pieces};
use proto::{Arguments, Limits, Progress, RequestParser};

fuzz_target!(|input: &[u8]| {
    let Some((control, data)) = control(input, 4) else { return };
    let limits = match control[0] % 4 {
        0 => Limits::DEFAULT,
        1 => Limits::BEFORE_LOGIN,
        2 => Limits { bulk_bytes_max: 30, argument_count_max: 5, inline_bytes_max: 20, before_login: false },
        _ => Limits { bulk_bytes_max: 1 << 40, argument_count_max: usize::MAX, ..Limits::DEFAULT },
    };
    let mut sizes = [control[1], control[2], control[3]];
    let mut data = data.to_vec();
    if control[0] & 0x80 != 0 {
        // // Short inputs cannot contain large bulks. Every third piece is long, or one would take a second.
        data = inflated(&data);
        sizes[0] |= LONG_PIECE;
    }
    let whole = outcome(&[&data], &limits, false);
    let cut = pieces(&data, &sizes);
    assert_eq!(outcome(&cut, &limits, false), whole);
    assert_eq!(outcome(&cut, &limits, true), whole);
});

/// Replaces each of the first two `~` by 33,000 bytes, so that `$33000\r\n~\r\n` is a large bulk.
fn inflated(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, part) in data.split_inclusive(|byte| *byte == b'~').enumerate() {
        bytes.extend_from_slice(part);
        if number < 2 && part.ends_with(b"~") {
            bytes.resize(bytes.len() + 32_999, b'~');
        }
    }
    bytes
}

#[derive(Debug, PartialEq)]
enum Event {
    Request(Vec<Vec<u8>>),
    Error(Vec<u8>),
    Waits,
}

/// The events of a connection that receives the pieces, by the contract of `proto::request`.
fn outcome(pieces: &[&[u8]], limits: &Limits, reads_into_large: bool) -> Vec<Event> {
    let mut parser = RequestParser::new();
    let mut buffer = Vec::new();
    let mut events = Vec::new();
    let mut received = 0;
    for piece in pieces {
        let mut piece = *piece;
        received += piece.len();
        if reads_into_large && let Some(mut large) = parser.large_bulk() {
            let taken = piece.len().min(large.missing());
            let buffer = large.buffer();
            assert!(buffer.capacity() <= 2 * received + 17_000);
            buffer.extend_from_slice(&piece[..taken]);
            piece = &piece[taken..];
        }
        buffer.extend_from_slice(piece);
        let mut start = 0;
        loop {
            let mut out = Arguments::new();
            let input = &buffer[start..];
            let consumed = match parser.parse(input, limits, &mut out) {
                Ok(Progress::Complete { consumed }) => {
                    let words: Vec<Vec<u8>> = out.spans().iter().map(|span| out.bytes(input, *span).to_vec()).collect();
                    assert!(!words.is_empty() && words.len() <= limits.argument_count_max);
                    assert!(words.iter().zip(out.spans()).all(|(word, span)| word.len() == span.len()));
                    assert!(words.iter().all(|word| word.len() <= limits.bulk_bytes_max));
                    events.push(Event::Request(words));
                    consumed
                }
                Ok(Progress::Empty { consumed }) => {
                    assert!(consumed > 0 && out.is_empty());
                    consumed
                }
                Ok(Progress::Dropped { .. }) => panic!("nothing was dropped"),
                Ok(Progress::Incomplete { keep }) => {
                    assert!(out.is_empty());
                    buffer.truncate(start + keep);
                    break;
                }
                Err(error) => {
                    assert!(out.is_empty() && !parser.is_partial());
                    events.push(Event::Error(error.message()));
                    return events;
                }
            };
            assert_eq!(parser.held_bytes(), 0);
            start += consumed;
        }
        buffer.drain(..start);
        // An argument takes at least six bytes on the wire and eight in the list of spans, which doubles as it grows.
        assert!(parser.held_bytes() <= 4 * received + 17_000, "{} bytes held of {received}", parser.held_bytes());
    }
    if parser.is_partial() {
        events.push(Event::Waits);
    }
    events
}
