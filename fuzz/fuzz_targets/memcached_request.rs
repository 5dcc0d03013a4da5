//! Requests of memcached clients: bytes 0 to 3 choose how the others are split; the result must not depend on the
//! split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onggi_fuzz::{control, pieces};
use proto::Arguments;
use proto::memcached::{Arcus, Command, Limits, Parser, Progress};

/// Small, so that short inputs exceed it.
const LIMITS: Limits = Limits::of_items(100);

/// The most that a parser may hold: a name, an expiration, and itself.
const HELD_BYTES_MAX: usize = 4096;

fuzz_target!(|input: &[u8]| {
    let Some((control, data)) = control(input, 4) else { return };
    let whole = outcome(&[data]);
    assert_eq!(outcome(&pieces(data, &[control[1], control[2], control[3]])), whole);
});

#[derive(Debug, PartialEq)]
enum Event {
    Request(Command, Vec<Vec<u8>>),
    Foreign,
    /// Bytes are left that make no request yet.
    Waits(bool),
}

/// The events of a connection that receives the pieces.
fn outcome(pieces: &[&[u8]]) -> Vec<Event> {
    let (mut parser, mut kept, mut events) = (Parser::default(), Vec::new(), Vec::new());
    for piece in pieces {
        kept.extend_from_slice(piece);
        let mut at = 0;
        while at < kept.len() {
            let (input, mut out) = (&kept[at..], Arguments::new());
            match parser.parse(input, &LIMITS, &mut out) {
                Progress::Request { command, consumed } => {
                    // // The beginning or the end of a pipe.
                    let is_mark = matches!(command, Command::Arcus(Arcus::PipeBegin | Arcus::PipeEnd));
                    assert!((consumed > 0 || is_mark) && consumed <= input.len());
                    let words: Vec<Vec<u8>> = out.spans().iter().map(|span| out.bytes(input, *span).to_vec()).collect();
                    assert!(words.iter().zip(out.spans()).all(|(word, span)| word.len() == span.len()));
                    assert!(!matches!(command, Command::Refused(_)) || words.is_empty());
                    events.push(Event::Request(command, words));
                    at += consumed;
                }
                Progress::Nothing { consumed } => {
                    assert!(consumed > 0 && consumed <= input.len() && out.is_empty());
                    at += consumed;
                }
                Progress::Incomplete => {
                    assert!(out.is_empty());
                    break;
                }
                Progress::Foreign { .. } => {
                    events.push(Event::Foreign);
                    return events;
                }
            }
            assert!(parser.held_bytes() < HELD_BYTES_MAX);
        }
        kept.drain(..at);
    }
    events.push(Event::Waits(!kept.is_empty()));
    events
}
