use super::*;

const LIMITS: Limits = Limits { block_bytes_max: 20, block_count_max: 4 };

/// What a connection says that receives these pieces.
fn outcome(pieces: &[&[u8]]) -> Vec<String> {
    let (mut parser, mut kept, mut events) = (Parser::default(), Vec::new(), Vec::new());
    for piece in pieces {
        kept.extend_from_slice(piece);
        let mut at = 0;
        while at < kept.len() {
            let (input, mut out) = (&kept[at..], Arguments::new());
            match parser.parse(input, &LIMITS, &mut out) {
                Progress::Request { consumed } => {
                    let words: Vec<_> =
                        out.spans().iter().map(|span| out.bytes(input, *span).escape_ascii().to_string()).collect();
                    events.push(words.join("|"));
                    assert_eq!(parser.held_bytes(), size_of::<Parser>(), "nothing is kept between packets");
                    at += consumed;
                }
                Progress::Nothing { consumed } => at += consumed,
                Progress::Incomplete => break,
                Progress::Resp => {
                    events.push("RESP".to_owned());
                    return events;
                }
                Progress::Refused(refusal) => {
                    events.push(refusal.to_string());
                    return events;
                }
            }
        }
        kept.drain(..at);
    }
    if !kept.is_empty() {
        events.push("waits".to_owned());
    }
    events
}

/// Each input whole, and split at every byte.
#[test]
fn packets_are_read_however_they_come() {
    let long = Refusal::BlockTooLong { len: 21, max: 20 }.to_string();
    let huge = Refusal::BlockTooLong { len: 999_999_999_999_999_999, max: 20 }.to_string();
    let many = Refusal::TooManyBlocks { max: 4 }.to_string();
    let (length, end) = (Refusal::Length.to_string(), Refusal::BlockEnd.to_string());
    for (input, expected) in [
        (&b"3\nget\n3\nkey\n\n"[..], &["get|key"][..]),
        (b"3\r\nget\r\n3\r\nkey\r\n\r\n", &["get|key"]),
        (b"\n\r\n\n4\nping\n\n\n\n4\nping\n\n", &["ping", "ping"]),
        (b"3\nset\n0\n\n4\na\n\r\n\n\n", &["set||a\\n\\r\\n"]),
        (b"003\nget\n\n", &["get"]),
        (b"20\n01234567890123456789\n\n", &["01234567890123456789"]),
        (b"21\n", &[&long]),
        (b"999999999999999999\n", &[&huge]),
        (b"9999999999999999999\n", &[&length]),
        (b"99999999999999999999999", &[&length]),
        (b"-1\n", &[&length]),
        (b"get key\n", &[&length]),
        (b" 3\nget\n\n", &[&length]),
        (b"3\rget\n\n", &[&length]),
        (b"3\ngett\n\n", &[&end]),
        (b"3\nget\rx\n", &[&end]),
        (b"1\na\n1\na\n1\na\n1\na\n1\na\n\n", &[&many]),
        (b"4\nping\n\n*1\r\n$4\r\nPING\r\n", &["ping", "RESP"]),
        (b"3\nget\n3\nke", &["waits"]),
        (b"3\nget\n", &["waits"]),
    ] {
        let shown = input.escape_ascii();
        assert_eq!(outcome(&[input]), expected, "{shown}");
        for at in 1..input.len() {
            let (first, second) = input.split_at(at);
            assert_eq!(outcome(&[first, second]), expected, "{shown} at {at}");
        }
        let bytes: Vec<&[u8]> = input.chunks(1).collect();
        assert_eq!(outcome(&bytes), expected, "{shown} byte by byte");
    }
}

/// A client that sends a packet of many blocks byte by byte costs no more than its bytes.
#[test]
fn no_block_is_read_twice() {
    let limits = Limits { block_bytes_max: 20, block_count_max: 1 << 20 };
    let packet = [&b"1\na\n".repeat(50_000)[..], b"\n"].concat();
    let (mut parser, mut out) = (Parser::default(), Arguments::new());
    for end in (1..packet.len()).step_by(4) {
        assert_eq!(parser.parse(&packet[..end], &limits, &mut out), Progress::Incomplete);
    }
    assert_eq!(parser.parse(&packet, &limits, &mut out), Progress::Request { consumed: packet.len() });
    assert_eq!(out.len(), 50_000);
}
