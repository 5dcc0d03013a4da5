//! Scores as commands give them.

use super::ScoreEnd;

/// A score: a decimal number, or an infinity in words. `None` when it is not one, or too big or too small for one.
pub fn parse_score(text: &[u8]) -> Option<f64> {
    let score = parse(text)?;
    let is_word = || text.iter().any(|byte| byte.eq_ignore_ascii_case(&b'i'));
    let lost_digits = match score.classify() {
        std::num::FpCategory::Infinite => !is_word(),
        std::num::FpCategory::Zero => mantissa(text).any(|byte| (b'1'..=b'9').contains(byte)),
        _ => false,
    };
    (!lost_digits).then_some(score)
}

/// An end of a range of scores: a number, after `(` when it is not part of the range. One out of bounds is infinite or
/// zero, and an empty one is zero. `None` when it is no number.
pub fn parse_score_end(text: &[u8]) -> Option<ScoreEnd> {
    let (is_excluded, number) = match text {
        [b'(', number @ ..] => (true, number),
        number => (false, number),
    };
    // Valkey reads up to the first zero byte.
    let number = number.split(|byte| *byte == 0).next().unwrap_or_default();
    let score = if number.is_empty() { 0.0 } else { parse(number)? };
    Some(ScoreEnd { score, is_excluded })
}

fn parse(text: &[u8]) -> Option<f64> {
    let score: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (!score.is_nan()).then_some(score)
}

/// The digits before an exponent.
fn mantissa(text: &[u8]) -> impl Iterator<Item = &u8> {
    text.iter().take_while(|byte| !byte.eq_ignore_ascii_case(&b'e'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Valkey 9.1.2 takes and refuses them.
    #[test]
    fn scores_are_numbers_that_fit() {
        for (text, score) in [
            ("1", 1.0),
            ("+5", 5.0),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1E3", 1000.0),
            ("inf", f64::INFINITY),
            ("+Inf", f64::INFINITY),
            ("-INFINITY", f64::NEG_INFINITY),
            ("0e500", 0.0),
            ("5e-324", 5e-324),
        ] {
            assert_eq!(parse_score(text.as_bytes()), Some(score), "{text}");
        }
        for text in ["", " 1", "1 ", "0x10", "nan", "-nan", "1e400", "-1e400", "1e-400", "e5", ".", "+", "1\0", "1,5"] {
            assert_eq!(parse_score(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn ends_are_numbers_that_need_not_fit() {
        let end = |score, is_excluded| Some(ScoreEnd { score, is_excluded });
        for (text, expected) in [
            ("1.5", end(1.5, false)),
            ("(1.5", end(1.5, true)),
            ("(", end(0.0, true)),
            ("", end(0.0, false)),
            ("1e400", end(f64::INFINITY, false)),
            ("1\0x", end(1.0, false)),
            ("((1", None),
            ("nan", None),
            ("(nan", None),
            ("1 ", None),
        ] {
            assert_eq!(parse_score_end(text.as_bytes()), expected, "{text:?}");
        }
    }
}
