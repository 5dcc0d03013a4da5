//! What guessing a password is worth: a million guesses open nothing, and their timing says nothing.

use base::Rng;
use command::clients::Address;
use command::login::Login;
use std::hint::black_box;
use std::time::Instant;

const PASSWORD: &[u8] = b"correct-horse-battery-staple-0123456789";

const GUESSES: usize = 1_000_000;

/// Timings of each kind of guess, and how many of the slowest, which measure the machine, are left out.
const SAMPLES: usize = 100_000;
const SLOWEST_LEFT_OUT: usize = SAMPLES / 10;

/// Welch's t beyond which a difference is no chance (as in "dude, is my code constant time?", Reparaz et al., DATE
/// 2017).
const T_MAX: f64 = 4.5;

/// Differences below this, in nanoseconds, come from the places of the two guesses in memory: on a quiet machine 0.2 of
/// 212 give a t of 9. A comparison that stops early shows at least one nanosecond for each byte that is right.
const DIFFERENCE_MIN: f64 = 1.0;

/// Rounds of the measurement: a difference that is there shows in each of them, one of the machine's seldom.
const ROUNDS: usize = 3;

fn source() -> Address {
    Address::Tcp(([10, 0, 0, 1], 1000).into())
}

fn login() -> Login {
    let login = Login::default();
    login.set_password(Some(PASSWORD)).expect("a short password");
    login
}

/// Guesses near the password and far from it are all wrong, and soon each of them costs a second.
#[test]
fn a_million_guesses_open_nothing() {
    let (login, source, mut rng) = (login(), source(), Rng::new(25));
    for number in 0..GUESSES {
        let mut guess = PASSWORD.to_vec();
        match rng.next_u64() % 4 {
            0 => {
                let at = (rng.next_u64() % guess.len() as u64) as usize;
                guess[at] ^= 1 << (rng.next_u64() % 8);
            }
            1 => guess.truncate((rng.next_u64() % guess.len() as u64) as usize),
            2 => guess.extend_from_slice(&rng.next_u64().to_le_bytes()),
            _ => guess = rng.next_u64().to_le_bytes().to_vec(),
        }
        let attempt = login.attempt(b"default", &guess, &source, 0);
        assert!(attempt.user.is_none(), "{guess:?}");
        assert_eq!(attempt.delay_ms == 1000, number >= 11, "the delay of guess {number} is {}", attempt.delay_ms);
    }
}

/// A guess that is wrong in its first byte takes as long as one that is wrong in its last. The same measurement detects
/// a comparison that stops early.
#[test]
fn timing_does_not_tell_how_far_a_guess_is_right() {
    let (mut first, mut last) = (PASSWORD.to_vec(), PASSWORD.to_vec());
    first[0] ^= 1;
    last[PASSWORD.len() - 1] ^= 1;
    let (login, source) = (login(), source());
    let of_login = |guess: &[u8]| {
        black_box(login.attempt(b"default", guess, &source, 0));
    };
    let smallest = (0..ROUNDS).map(|round| t_of(&of_login, &first, &last, round as u64).abs()).fold(f64::MAX, f64::min);
    assert!(smallest < T_MAX, "t = {smallest:.1}: the time depends on where the guess is wrong");

    let stops_early = |guess: &[u8]| {
        for _ in 0..20 {
            black_box(black_box(guess).iter().zip(black_box(PASSWORD)).all(|(a, b)| black_box(a) == black_box(b)));
        }
    };
    let smallest =
        (0..ROUNDS).map(|round| t_of(&stops_early, &first, &last, round as u64).abs()).fold(f64::MAX, f64::min);
    assert!(smallest > T_MAX, "t = {smallest:.1}: the measurement sees nothing");
}

/// Welch's t of the times that two inputs take, in random order; 0 for less than [`DIFFERENCE_MIN`].
fn t_of(call: &impl Fn(&[u8]), one: &[u8], other: &[u8], seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let mut times = [Vec::with_capacity(SAMPLES), Vec::with_capacity(SAMPLES)];
    while times.iter().any(|times| times.len() < SAMPLES) {
        let kind = (rng.next_u64() & 1) as usize;
        let input = black_box(if kind == 0 { one } else { other });
        let start = Instant::now();
        call(input);
        let nanoseconds = start.elapsed().as_nanos() as f64;
        if times[kind].len() < SAMPLES {
            times[kind].push(nanoseconds);
        }
    }
    let [one, other] = times.map(|mut times| {
        times.sort_unstable_by(f64::total_cmp);
        times.truncate(SAMPLES - SLOWEST_LEFT_OUT);
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    });
    let t = (one.0 - other.0) / (one.1 + other.1).sqrt();
    println!("{:.1} ns and {:.1} ns: t = {t:.2}", one.0, other.0);
    if (one.0 - other.0).abs() < DIFFERENCE_MIN { 0.0 } else { t }
}
