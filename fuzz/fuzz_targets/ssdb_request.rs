//! Packets of SSDB clients: bytes 0 to 3 choose how the others are split; the result must not depend on the split.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onggi_fuzz::{control, pieces};
use proto::Arguments;
use proto::ssdb::{Limits, Parser, Progress};

/// Small, so that short inputs exceed it.
const LIMITS: Limits = Limits { block_bytes_max: 100, block_count_max: 8 };

/// The most that a parser may hold: the places of blocks, and itself.
const HELD_BYTES_MAX: usize = 1024;

fuzz_target!(|input: &[u8]| {
    let Some((control, data)) = control(input, 4) else { return };
    let whole = outcome(&[data]);
    assert_eq!(outcome(&pieces(data, &[control[1], control[2], control[3]])), whole);
});

#[derive(Debug, PartialEq)]
enum Event {
    Request(Vec<Vec<u8>>),
    Resp,
    Refused(String),
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
                Progress::Request { consumed } => {
                    assert!(consumed > 0 && consumed <= input.len());
                    events.push(Event::Request(
                        out.spans().iter().map(|span| out.bytes(input, *span).to_vec()).collect(),
                    ));
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
                Progress::Resp => {
                    events.push(Event::Resp);
                    return events;
                }
                Progress::Refused(refusal) => {
                    events.push(Event::Refused(refusal.to_string()));
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
