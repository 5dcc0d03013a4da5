//! Replies: bytes 0 to 2 choose how the others are split. Values and errors must not depend on the split, and the quick
//! search for the end of a reply must agree with the parser.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onggi_fuzz::{control, pieces};
use proto::reply::{Parser, ReplyError, Value, skip_reply};

fuzz_target!(|input: &[u8]| {
    let Some((control, data)) = control(input, 3) else { return };
    let (whole, error) = read(&[data]);
    // // Compared as text, in which NaN equals itself.
    assert_eq!(format!("{:?}", read(&pieces(data, control))), format!("{:?}", (&whole, &error)));

    let mut rest = data;
    for _ in &whole {
        let len = skip_reply(rest).expect("the parser has read it").expect("the parser has read it");
        assert_eq!(skip_reply(&rest[..len - 1]), Ok(None));
        rest = &rest[len..];
    }
    if error.is_none() {
        assert_eq!(skip_reply(rest), Ok(None));
    }
});

fn read(pieces: &[&[u8]]) -> (Vec<Value>, Option<ReplyError>) {
    let mut parser = Parser::new();
    let mut values = Vec::new();
    for piece in pieces {
        parser.feed(piece);
        loop {
            match parser.next_value() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(error) => return (values, Some(error)),
            }
        }
    }
    (values, None)
}
