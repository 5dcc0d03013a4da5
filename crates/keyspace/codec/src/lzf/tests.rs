//! LZF against files made with liblzf 3.6, against a plain reader of the format, and against damage.

use super::*;
use proptest::prelude::*;

/// A line for each input: its length, the CRC-32C of it, and what liblzf 3.6 made of it, in hexadecimal.
const LIBLZF: &str = include_str!("../../testdata/liblzf-3.6.txt");

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("two digits")).collect()
}

fn compressed(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(Compressor::new().compress(input, usize::MAX, &mut out));
    out
}

/// The format byte by byte, without a check: what any reader of LZF makes of good input.
fn plain_reader(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    let mut next = || {
        at += 1;
        input.get(at - 1).map(|byte| usize::from(*byte))
    };
    while let Some(control) = next() {
        if control < 32 {
            (0..=control).for_each(|_| out.push(next().expect("a literal") as u8));
            continue;
        }
        let long = if control >> 5 == 7 { next().expect("a length") } else { 0 };
        let distance = (control & 31) * 256 + next().expect("an offset") + 1;
        (0..(control >> 5) + long + 2).for_each(|_| out.push(out[out.len() - distance]));
    }
    out
}

/// Whatever liblzf wrote is read, and what we write of the same input is not much longer.
#[test]
fn output_of_liblzf_is_read() {
    let mut count = 0;
    for line in LIBLZF.lines().filter(|line| !line.starts_with('#')) {
        let [len, checksum, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("three words: {line}") };
        let theirs = bytes_of(hex);
        let mut input = Vec::new();
        decompress(&theirs, len.parse().expect("a length"), &mut input).expect("good LZF");
        assert_eq!(format!("{:08x}", base::checksum::crc32c(&input)), checksum, "{line}");
        let ours = compressed(&input);
        assert_eq!(plain_reader(&ours), input);
        assert!(ours.len() <= theirs.len() + theirs.len() / 8 + 2, "{} bytes, liblzf {}", ours.len(), theirs.len());
        count += 1;
    }
    assert!(count >= 12, "{count} cases");
}

/// Every form of a copy, at both ends of its lengths and distances.
#[test]
fn copies_of_all_forms() {
    let cases: [(&[u8], Vec<u8>); 5] = [
        (&[0, b'a', 0x20, 0], b"aaaa".to_vec()),
        (&[0, b'a', 0xc0, 0], vec![b'a'; 9]),
        (&[0, b'a', 0xe0, 0, 0], vec![b'a'; 10]),
        (&[0, b'a', 0xe0, 255, 0], vec![b'a'; 265]),
        (&[2, b'a', b'b', b'c', 0xa0, 1], b"abcbcbcbcb".to_vec()),
    ];
    for (input, expected) in cases {
        let mut out = Vec::new();
        decompress(input, expected.len(), &mut out).expect("good LZF");
        assert_eq!(out, expected, "{input:?}");
    }
    let mut far: Vec<u8> = b"xyz".to_vec();
    far.extend((0..DISTANCE_MAX - 3).map(|n| [b'0', b'1'][n.count_ones() as usize % 2]));
    far.extend_from_slice(b"xyz");
    assert_eq!(plain_reader(&compressed(&far)), far);
}

/// Damage is detected, appends nothing, and a false length reserves nothing.
#[test]
fn damage_is_named() {
    let cases: [(&[u8], usize, LzfError); 8] = [
        (&[], 1, LzfError::Length { expected: 1, more: false }),
        (&[0], 1, LzfError::Truncated),
        (&[3, b'a', b'b'], 4, LzfError::Truncated),
        (&[0, b'a', 0xe0, 1], 11, LzfError::Truncated),
        (&[0, b'a', 0x20, 1], 4, LzfError::BeforeStart { position: 1, distance: 2 }),
        (&[0, b'a', 0x20, 0], 3, LzfError::Length { expected: 3, more: true }),
        (&[1, b'a', b'b'], 1, LzfError::Length { expected: 1, more: true }),
        (&[0, b'a', 0x20, 0], usize::MAX, LzfError::Length { expected: usize::MAX, more: false }),
    ];
    for (input, len, error) in cases {
        let mut out = b"kept".to_vec();
        assert_eq!(decompress(input, len, &mut out), Err(error), "{input:?}");
        assert_eq!(out, b"kept");
        assert!(out.capacity() < 1000);
    }
}

/// The limit is kept to the byte, and an input that did not fit leaves no candidates for the next one.
#[test]
fn the_limit_is_kept() {
    let input: Vec<u8> = (0..400u32).flat_map(|n| (n / 3).to_le_bytes()).collect();
    let whole = compressed(&input);
    let mut compressor = Compressor::new();
    for len_max in 0..=whole.len() + 1 {
        let mut out = b"kept".to_vec();
        assert_eq!(compressor.compress(&input, len_max, &mut out), len_max >= whole.len(), "{len_max}");
        assert_eq!(&out[4..], if len_max >= whole.len() { &whole[..] } else { &[] });
    }
}

/// When positions are used up, the table starts anew.
#[test]
fn positions_start_again() {
    let mut compressor = Compressor::new();
    compressor.base = u32::MAX - 1500;
    for _ in 0..3 {
        let mut out = Vec::new();
        assert!(compressor.compress(&[7; 1000], 1000, &mut out));
        assert_eq!(out, compressed(&[7; 1000]));
    }
}

/// Text of few words, so that there are copies near and far, between stretches of noise.
fn inputs() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        4 => prop::sample::select(vec![&b"\"name\": "[..], b"onggi", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"{}"])
            .prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..200),
        1 => (any::<u8>(), 0..9000usize).prop_map(|(byte, count)| vec![byte; count]),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    /// What is written is read again, by us and by a plain reader, whatever was compressed before.
    #[test]
    fn round_trips(all in prop::collection::vec(inputs(), 1..4)) {
        let mut compressor = Compressor::new();
        for input in all {
            let mut packed = Vec::new();
            prop_assert!(compressor.compress(&input, usize::MAX, &mut packed));
            prop_assert_eq!(&packed, &compressed(&input));
            prop_assert!(packed.len() <= input.len() + input.len().div_ceil(LITERALS_MAX));
            prop_assert_eq!(plain_reader(&packed), &input[..]);
            let mut out = Vec::new();
            prop_assert_eq!(decompress(&packed, input.len(), &mut out), Ok(()));
            prop_assert_eq!(out, input);
        }
    }

    /// Any bytes give an output of the promised length or an error.
    #[test]
    fn any_bytes_are_judged(input in prop::collection::vec(any::<u8>(), 0..300), len in 0..2000usize) {
        let mut out = Vec::new();
        match decompress(&input, len, &mut out) {
            Ok(()) => prop_assert_eq!(out, plain_reader(&input)),
            Err(_) => prop_assert!(out.is_empty()),
        }
    }
}
