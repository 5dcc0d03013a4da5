//! A refused login takes as long for an unknown user as for a known one, and wherever the password differs.

use command::clients::Address;
use command::login::{Login, PASSWORD_BYTES_MAX};
use std::time::{Duration, Instant};

/// Attempts of one kind in a row, and how often the kinds take turns. The shortest time of each kind counts: other
/// programs only lengthen them.
const ATTEMPTS: usize = 500;
const TURNS: usize = 60;

/// A login that skips the hash of its password takes a fraction.
const RATIO_MAX: f64 = 1.6;

#[test]
fn refused_logins_take_alike_long() {
    let login = Login::default();
    // The longest passwords, whose hashes are the largest part of an attempt.
    let right = "x".repeat(PASSWORD_BYTES_MAX);
    login.set_password(Some(right.as_bytes())).unwrap();
    let first = format!("y{}", &right[1..]);
    let last = format!("{}y", &right[1..]);
    let from = Address::Tcp(([10, 0, 0, 1], 1).into());
    let kinds = [("unknown", &right), ("unknown", &first), ("default", &first), ("default", &last)];
    let mut shortest = [Duration::MAX; 4];
    for _ in 0..TURNS {
        for ((user, password), shortest) in kinds.iter().zip(&mut shortest) {
            let began = Instant::now();
            for _ in 0..ATTEMPTS {
                assert!(login.attempt(user.as_bytes(), password.as_bytes(), &from, 0).user.is_none());
            }
            *shortest = began.elapsed().min(*shortest);
        }
    }
    let (least, most) = (shortest.iter().min().unwrap(), shortest.iter().max().unwrap());
    let ratio = most.as_secs_f64() / least.as_secs_f64();
    println!("{shortest:?} for {ATTEMPTS} attempts of each kind, {ratio:.2} to 1");
    assert!(ratio < RATIO_MAX, "{shortest:?}: {ratio:.2} to 1");
}
