//! The header to the byte, and which headers are refused.

use super::*;
use proptest::prelude::*;

fn number(number: u32) -> DictionaryNumber {
    DictionaryNumber(NonZeroU32::new(number).expect("not 0"))
}

/// The bytes are the format: a change of them needs a new version.
#[test]
fn headers_are_these_bytes() {
    let cases: [(Form, usize, &[u8]); 7] = [
        (Form::Lzf, 5, &[0x11, 5]),
        (Form::Lz4, 127, &[0x12, 127]),
        (Form::Zstd, 128, &[0x13, 0x80, 1]),
        (Form::ZstdFrame, 16_384, &[0x14, 0x80, 0x80, 1]),
        (Form::ZstdDictionary(number(1)), 82, &[0x15, 82, 1]),
        (Form::ZstdDictionary(number(300)), 397, &[0x15, 0x8d, 3, 0xac, 2]),
        (Form::ZstdDictionaryFrame(number(u32::MAX)), 82, &[0x16, 82, 0xff, 0xff, 0xff, 0xff, 0xf]),
    ];
    for (form, len, bytes) in cases {
        let mut out = Vec::new();
        put_header(form, len, &mut out);
        assert_eq!(out, bytes, "{form:?}");
        assert_eq!(header_len(form, len), bytes.len());
    }
}

/// What no encoder writes is an error that says why.
#[test]
fn other_headers_are_refused() {
    let zeroes = [0; 64];
    let with_payload = |header: &[u8]| [header, &zeroes].concat();
    let cases: [(Vec<u8>, &str); 10] = [
        (vec![], "it is empty"),
        (with_payload(&[0x01, 5]), "its version is not 1"),
        (with_payload(&[0x21, 5]), "its version is not 1"),
        (with_payload(&[0x10, 5]), "its form is unknown"),
        (with_payload(&[0x17, 5]), "its form is unknown"),
        (vec![0x11], "it ends in its header"),
        (with_payload(&[0x11, 0x85, 0]), "not written the shortest way"),
        (with_payload(&[0x15, 5, 0]), "no possible number"),
        (with_payload(&[0x15, 5, 0xff, 0xff, 0xff, 0xff, 0x1f]), "no possible number"),
        (with_payload(&[0x13, 0x81, 0x80, 0x80, 0x80, 2]), "do not stand for 536870913"),
    ];
    for (bytes, words) in cases {
        let error = Stored::parse(&bytes).expect_err(words).to_string();
        assert!(error.contains(words), "{bytes:?}: {error}");
    }
}

/// No payload is believed to stand for more than its codec can make of it.
#[test]
fn impossible_lengths_are_refused() {
    for form in Form::all(number(7)) {
        let payload = [0; 10];
        for (len, possible) in [(10 * form.expansion_max(), true), (10 * form.expansion_max() + 1, false)] {
            let mut bytes = Vec::new();
            put_header(form, len, &mut bytes);
            bytes.extend_from_slice(&payload);
            assert_eq!(Stored::parse(&bytes).is_ok(), possible, "{form:?}, {len}");
        }
    }
}

proptest! {
    /// What is written is read, and a header that is read is the one way to write it.
    #[test]
    fn headers_round_trip(
        form in (1..=u32::MAX, 0..6usize).prop_map(|(n, form)| Form::all(number(n))[form]),
        len in 0..200usize,
        payload in prop::collection::vec(any::<u8>(), 10..20),
    ) {
        let mut bytes = Vec::new();
        put_header(form, len, &mut bytes);
        prop_assert!(bytes.len() <= HEADER_LEN_MAX);
        prop_assert_eq!(bytes.len(), header_len(form, len));
        bytes.extend_from_slice(&payload);
        prop_assert_eq!(Stored::parse(&bytes).expect("a good header"), Stored { form, len, payload: &payload });
    }

    #[test]
    fn any_bytes_have_one_meaning(bytes in prop::collection::vec(any::<u8>(), 0..40), first in 0x10..0x18u8) {
        let bytes = [&[first], &bytes[..]].concat();
        if let Ok(stored) = Stored::parse(&bytes) {
            let mut again = Vec::new();
            put_header(stored.form, stored.len, &mut again);
            again.extend_from_slice(stored.payload);
            prop_assert_eq!(again, bytes);
        }
    }
}
