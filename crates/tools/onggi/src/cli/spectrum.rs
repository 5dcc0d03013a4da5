//! `--latency-dist`: round trips of PING by their duration, as rows of colours, with the output of redis-cli.

use super::session::Session;
use super::walk::good;
use super::watch::{PAUSE, is_pong};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Longest round trip of a class in microseconds, and its sign. What is longer than all is `?`.
const CLASSES: [(u128, char); 30] = [
    (10, '.'),
    (125, '-'),
    (250, '*'),
    (500, '#'),
    (1_000, '1'),
    (2_000, '2'),
    (3_000, '3'),
    (4_000, '4'),
    (5_000, '5'),
    (6_000, '6'),
    (7_000, '7'),
    (8_000, '8'),
    (9_000, '9'),
    (10_000, 'A'),
    (20_000, 'B'),
    (30_000, 'C'),
    (40_000, 'D'),
    (50_000, 'E'),
    (100_000, 'F'),
    (200_000, 'G'),
    (300_000, 'H'),
    (400_000, 'I'),
    (500_000, 'J'),
    (1_000_000, 'K'),
    (2_000_000, 'L'),
    (4_000_000, 'M'),
    (8_000_000, 'N'),
    (16_000_000, 'O'),
    (30_000_000, 'P'),
    (60_000_000, 'Q'),
];

/// Colours of a terminal with 256, from no round trip to all of them.
const COLOURS: [u8; 19] = [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196];
const GREYS: [u8; 13] = [0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 249, 251, 253];

/// Rows between two legends.
const ROWS: u64 = 20;

/// Counts of the classes, and the last of `?`.
#[derive(Default)]
struct Spectrum {
    counts: [u64; CLASSES.len() + 1],
}

impl Spectrum {
    fn take(&mut self, micros: u128) {
        let class = CLASSES.partition_point(|(longest, _)| *longest < micros);
        self.counts.iter_mut().skip(class).take(1).for_each(|count| *count += 1);
    }

    /// Each class on a colour by its share of all.
    fn row(&self, palette: &[u8]) -> String {
        let all: u64 = self.counts.iter().sum();
        let mut row = "\x1b[38;5;0m".to_owned();
        let signs = CLASSES.iter().map(|(_, sign)| *sign).chain(['?']);
        for (sign, count) in signs.zip(self.counts) {
            let steps = (palette.len() as u64).saturating_sub(1);
            let step = (count * steps).div_ceil(all.max(1));
            let colour = palette.get(step as usize).copied().unwrap_or_default();
            // Writing to a string does not fail.
            let _ = write!(row, "\x1b[48;5;{colour}m{sign}");
        }
        row + "\x1b[0m"
    }
}

fn legend(palette: &[u8]) -> String {
    let line = "---------------------------------------------";
    let colours: String = palette.iter().map(|colour| format!("\x1b[48;5;{colour}m ")).collect();
    format!(
        "{line}\n\
         . - * #          .01 .125 .25 .5 milliseconds\n\
         1,2,3,...,9      from 1 to 9     milliseconds\n\
         A,B,C,D,E        10,20,30,40,50  milliseconds\n\
         F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n\
         K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n\
         From 0 to 100%: {colours}\x1b[0m\n{line}"
    )
}

/// `--latency-dist`: a row every interval, which is a second, until interrupted.
pub fn distribution(
    session: &mut Session,
    interval: Duration,
    is_grey: bool,
    repeats: i64,
) -> Result<(), Box<dyn Error>> {
    let interval = if interval.is_zero() { Duration::from_secs(1) } else { interval };
    let palette: &[u8] = if is_grey { &GREYS } else { &COLOURS };
    let mut out = io::stdout().lock();
    let (mut spectrum, mut began) = (Spectrum::default(), Instant::now());
    let (mut rows, mut left) = (0, repeats);
    while left != 0 {
        let sent = Instant::now();
        let reply = session.ask(&[b"PING".to_vec()])?;
        if !is_pong(&reply) {
            good(reply)?;
        }
        spectrum.take(sent.elapsed().as_micros());
        if began.elapsed() > interval {
            if rows % ROWS == 0 {
                writeln!(out, "{}", legend(palette))?;
            }
            writeln!(out, "{}", spectrum.row(palette))?;
            out.flush()?;
            rows += 1;
            left -= 1;
            (spectrum, began) = (Spectrum::default(), Instant::now());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_fall_into_classes() {
        let mut spectrum = Spectrum::default();
        [0, 10, 11, 125, 501, 60_000_000, 60_000_001].into_iter().for_each(|micros| spectrum.take(micros));
        let found: Vec<_> = (0..).zip(spectrum.counts).filter(|(_, count)| *count > 0).collect();
        assert_eq!(found, [(0, 2), (1, 2), (4, 1), (29, 1), (30, 1)]);
    }

    /// Half of the 18 steps is 9.
    #[test]
    fn a_row_has_a_colour_for_each_class() {
        let mut spectrum = Spectrum::default();
        [1, 1, 200, 900].into_iter().for_each(|micros| spectrum.take(micros));
        let row = spectrum.row(&COLOURS);
        let begin = "\x1b[38;5;0m\x1b[48;5;247m.\x1b[48;5;0m-\x1b[48;5;239m*\x1b[48;5;0m#\x1b[48;5;239m1\x1b[48;5;0m2";
        assert!(row.starts_with(begin) && row.ends_with("\x1b[48;5;0m?\x1b[0m"), "{row:?}");
        assert_eq!(row.matches("\x1b[48;5;").count(), 31);
    }
}
