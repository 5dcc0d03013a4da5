//! The texts on the right are what Valkey 9.1 on x86-64 answers to INCRBYFLOAT of the left on a key that holds 0.

use super::*;

fn sum(a: &str, b: &str) -> Option<String> {
    Some(Extended::parse(a.as_bytes())?.checked_add(Extended::parse(b.as_bytes())?)?.to_text())
}

#[test]
fn reads_and_writes_like_the_processor() {
    for (text, expected) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("10.50", "10.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+1", "1"),
        ("3.0e-5", "0.00003"),
        ("1e21", "1000000000000000000000"),
        ("0.000000000000000005", "0"),
        ("-0.000000000000000001", "0"),
        ("0.00000000000000005", "0.00000000000000005"),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551617", "18446744073709551616"),
        ("123456789012345678901234567890", "123456789012345678899921813504"),
        ("123456789.123456789123456789", "123456789.12345678912242875"),
        ("12345678901234567.123456789123456789", "12345678901234567.123046875"),
        ("0x1.8p1", "3"),
        ("0x.8", "0.5"),
        ("-0x1p-1", "-0.5"),
        ("1E+2", "100"),
        ("0e99999", "0"),
        ("1e-4950", "0"),
    ] {
        assert_eq!(sum(text, "0").as_deref(), Some(expected), "{text}");
    }
    for text in [
        "",
        ".",
        "-",
        "e5",
        "1e",
        "1e+",
        "0x",
        "0x.",
        "0x1p",
        "abc",
        " 1",
        "1 ",
        "1d",
        "1..2",
        "1.2.3",
        "nan",
        "nan(1)",
        "infin",
        "1e5000",
        "-1e5000",
        "1e-4970",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "1\0",
        "--1",
    ] {
        assert_eq!(Extended::parse(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(Extended::parse(&[b'1'; TEXT_BYTES_MAX + 1]), None);
}

#[test]
fn sums_round_once() {
    for (a, b, expected) in [
        ("5.6", "5.0e3", "5005.60000000000000009"),
        ("10.5", "0.1", "10.6"),
        ("0.1", "0.2", "0.3"),
        ("3", "0.00000000000000001", "3.00000000000000001"),
        ("3", "0.000000000000000001", "3"),
        ("3", "1.000000000000000005", "4.00000000000000001"),
        ("1", "1e30", "1000000000000000000024696061952"),
        ("179769313486231570000000000000", "0.5", "179769313486231570000115662848"),
        ("1", "-1", "0"),
        ("-1", "1", "0"),
        ("1.5", "-3", "-1.5"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("18446744073709551615", "0.5", "18446744073709551616"),
        ("18446744073709551614", "0.5", "18446744073709551614"),
        ("18446744073709551616", "-0.5", "18446744073709551616"),
        ("18446744073709551616", "-0.25", "18446744073709551616"),
        ("9223372036854775808", "-0.5", "9223372036854775807.5"),
        ("1", "inf", "inf"),
        ("-inf", "1", "-inf"),
    ] {
        assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
    }
    assert_eq!(sum("inf", "-inf"), None);
    assert_eq!(sum("1e4932", "1e4932"), Some("inf".to_owned()));
}

/// The smallest and the largest numbers keep their places: reading what was written at full length gives the same.
#[test]
fn the_ends_of_the_range() {
    let smallest = Extended::Finite { negative: false, mantissa: 1, exponent: EXPONENT_MIN };
    assert_eq!(Extended::parse(b"0x1p-16445"), Some(smallest));
    assert_eq!(Extended::parse(b"3.6451995318824746025e-4951"), Some(smallest));
    assert_eq!(Extended::parse(b"0x1p-16446"), None, "half of the smallest is a tie, and goes to zero");
    assert_eq!(Extended::parse(b"0x1.8p-16446"), Some(smallest));
    let largest = Extended::Finite { negative: false, mantissa: u64::MAX, exponent: 16_320 };
    assert_eq!(Extended::parse(b"0xffffffffffffffffp16320"), Some(largest));
    assert_eq!(Extended::parse(largest.to_text().as_bytes()), Some(largest));
    assert_eq!(Extended::parse(b"0x1p16384"), None);
    assert_eq!(Extended::parse(b"0xffffffffffffffff8p16316"), None, "rounds to 2^16384");
    let sum = smallest.checked_add(smallest).expect("is a number");
    assert_eq!(sum, Extended::Finite { negative: false, mantissa: 2, exponent: EXPONENT_MIN });
}

/// Every double is an extended number, so reading its shortest text and writing it gives what 17 places of it are.
#[test]
fn doubles_are_exact() {
    let mut rng = base::Rng::new(11);
    for _ in 0..20_000 {
        let double = f64::from_bits(rng.next_u64());
        if !double.is_finite() {
            continue;
        }
        let read = Extended::parse(format!("{double:?}").as_bytes()).expect("a double is in range");
        // Few bits separate the decimal text from the double; both are closer than one unit of the double's last place.
        let Extended::Finite { mantissa, exponent, .. } = read else { panic!("{double} is finite") };
        let back = mantissa as f64 * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
        assert!((back - double.abs()).abs() <= double.abs() * f64::EPSILON || double.abs() < 1e-300, "{double:?}");
    }
    for whole in [0u64, 1, 10, 1 << 53, u64::MAX, 12_345_678_901_234_567_890] {
        assert_eq!(Extended::parse(whole.to_string().as_bytes()).expect("a number").to_text(), whole.to_string());
    }
}

#[test]
fn seconds_become_milliseconds() {
    for (seconds, milliseconds) in [
        ("0", Some(0)),
        ("0.001", Some(1)),
        ("0.0011", Some(2)),
        ("1e-9", Some(1)),
        ("1e-4000", Some(1)),
        ("4.35", Some(4350)),
        ("1.005", Some(1005)),
        ("0.035", Some(35)),
        ("0x.8", Some(500)),
        ("3600", Some(3_600_000)),
        ("-1", Some(-1000)),
        ("-0.0001", Some(0)),
        ("9223372036854775", Some(9_223_372_036_854_775_000)),
        ("9223372036854776", None),
        ("1e4000", None),
        ("inf", None),
    ] {
        assert_eq!(Extended::parse(seconds.as_bytes()).and_then(Extended::thousandfold), milliseconds, "{seconds}");
    }
}
