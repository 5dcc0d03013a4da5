//! Values of directives without effect. CONFIG GET and CONFIG SET treat them as Valkey does, since tools and test
//! suites read and set them on every server. No other part of this server reads them.

use crate::ValueError;
use crate::syntax::{parse_flag, parse_integer, parse_size, quote};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The values that such a directive takes, and its default.
pub struct Inert {
    /// As CONFIG GET answers it.
    pub(crate) default: &'static str,
    syntax: Syntax,
}

/// The syntax of a value, as Valkey 9.1 checks it.
enum Syntax {
    /// `yes` or `no`.
    Flag,
    /// A number within bounds.
    Integer { min: i64, max: i64 },
    /// A size with units, within bounds.
    Size { min: i64, max: i64 },
    /// One of several words, in any case.
    Choice(&'static [&'static str]),
    /// Any text that this accepts.
    Text(fn(&str) -> Result<(), ValueError>),
    /// Three numbers from -2000 to 2000.
    Scores,
}

impl Inert {
    const fn of(default: &'static str, syntax: Syntax) -> Self {
        Self { default, syntax }
    }

    pub(crate) const fn flag(default: &'static str) -> Self {
        Self::of(default, Syntax::Flag)
    }

    pub(crate) const fn integer(default: &'static str, min: i64, max: i64) -> Self {
        Self::of(default, Syntax::Integer { min, max })
    }

    pub(crate) const fn size(default: &'static str, min: i64, max: i64) -> Self {
        Self::of(default, Syntax::Size { min, max })
    }

    pub(crate) const fn choice(default: &'static str, words: &'static [&'static str]) -> Self {
        Self::of(default, Syntax::Choice(words))
    }

    pub(crate) const fn text(default: &'static str) -> Self {
        Self::of(default, Syntax::Text(|_| Ok(())))
    }

    pub(crate) const fn checked_text(default: &'static str, check: fn(&str) -> Result<(), ValueError>) -> Self {
        Self::of(default, Syntax::Text(check))
    }

    pub(crate) const fn scores(default: &'static str) -> Self {
        Self::of(default, Syntax::Scores)
    }

    /// Whether it takes several words.
    pub(crate) fn takes_many(&self) -> bool {
        matches!(self.syntax, Syntax::Scores)
    }

    /// A value as a line of the file has it.
    pub(crate) fn line(&self, value: &[u8]) -> String {
        match self.syntax {
            Syntax::Text(_) => quote(value),
            _ => String::from_utf8_lossy(value).into_owned(),
        }
    }

    /// The value of these words, as CONFIG GET answers it.
    ///
    /// # Errors
    /// What Valkey would refuse.
    pub(crate) fn read(&self, words: &[impl AsRef<[u8]>]) -> Result<Vec<u8>, ValueError> {
        let words: Vec<&[u8]> = words.iter().map(AsRef::as_ref).collect();
        if let Syntax::Scores = self.syntax {
            return read_scores(&words);
        }
        let [word] = words.as_slice() else { return Err(ValueError::WordCount) };
        match &self.syntax {
            Syntax::Flag => Ok(if parse_flag(word).ok_or(ValueError::NotFlag)? { "yes" } else { "no" }.into()),
            Syntax::Integer { min, max } => {
                let number = parse_integer(word).ok_or(ValueError::NotInteger)?;
                within(number, *min, *max)
            }
            Syntax::Size { min, max } => {
                let size = match parse_integer(word) {
                    // Where a negative number means something.
                    Some(number) if *min < 0 && number < 0 => Some(number),
                    _ => parse_size(word).and_then(|size| i64::try_from(size).ok()),
                };
                within(size.ok_or(ValueError::NotSize)?, *min, *max)
            }
            Syntax::Choice(choices) => {
                let found = choices.iter().find(|choice| choice.as_bytes().eq_ignore_ascii_case(word));
                Ok((*found.ok_or(ValueError::NotOneOf(choices))?).into())
            }
            Syntax::Text(check) => {
                check(&String::from_utf8_lossy(word))?;
                Ok(word.to_vec())
            }
            // Read above.
            Syntax::Scores => Err(ValueError::WordCount),
        }
    }
}

fn within(number: i64, min: i64, max: i64) -> Result<Vec<u8>, ValueError> {
    if (min..=max).contains(&number) {
        Ok(number.to_string().into())
    } else {
        Err(ValueError::out_of_range(&min, &max))
    }
}

/// The values of `oom-score-adj-values`.
fn read_scores(words: &[&[u8]]) -> Result<Vec<u8>, ValueError> {
    let [_, _, _] = words else { return Err(ValueError::WordCount) };
    let read = |word: &&[u8]| -> Option<i64> {
        let number = std::str::from_utf8(word).ok()?.parse().ok()?;
        (-2000..=2000).contains(&number).then_some(number)
    };
    let scores: Option<Vec<i64>> = words.iter().map(read).collect();
    let scores = scores.ok_or(ValueError::OomScore)?;
    Ok(scores.iter().map(i64::to_string).collect::<Vec<_>>().join(" ").into())
}

/// Accepts an address of IPv4, or nothing.
pub(crate) fn check_ipv4(text: &str) -> Result<(), ValueError> {
    if text.is_empty() || text.parse::<Ipv4Addr>().is_ok() { Ok(()) } else { Err(ValueError::NotIpv4) }
}

/// Accepts an address of IPv6, or nothing.
pub(crate) fn check_ipv6(text: &str) -> Result<(), ValueError> {
    if text.is_empty() || text.parse::<Ipv6Addr>().is_ok() { Ok(()) } else { Err(ValueError::NotIpv6) }
}

/// Accepts the name of a host, or nothing.
pub(crate) fn check_hostname(text: &str) -> Result<(), ValueError> {
    if text.len() >= 256 {
        return Err(ValueError::HostnameTooLong);
    }
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    if text.bytes().all(is_part) { Ok(()) } else { Err(ValueError::NotHostname) }
}

/// The values that were set and are not defaults.
#[derive(Clone, Default)]
pub struct InertValues(BTreeMap<&'static str, Vec<u8>>);

impl InertValues {
    /// The value of a row.
    pub(crate) fn get(&self, name: &'static str, inert: &Inert) -> Vec<u8> {
        self.0.get(name).cloned().unwrap_or_else(|| inert.default.into())
    }

    /// Sets the value of a row. A default is not kept, so that CONFIG REWRITE does not add a line for it.
    pub(crate) fn set(&mut self, name: &'static str, inert: &Inert, value: Vec<u8>) {
        if value == inert.default.as_bytes() {
            self.0.remove(name);
        } else {
            self.0.insert(name, value);
        }
    }
}

/// Only names: some of the values are passwords (C6).
impl fmt::Debug for InertValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, directives};

    /// C3 for these rows.
    #[test]
    fn defaults_are_values_of_their_directives() {
        for row in directives() {
            let Kind::NotNeeded { inert, .. } = &row.kind else { continue };
            let words: Vec<&str> = match inert.takes_many() {
                true => inert.default.split(' ').collect(),
                false => vec![inert.default],
            };
            assert_eq!(inert.read(&words), Ok(inert.default.into()), "{}", row.name);
        }
    }

    #[test]
    fn values_are_checked_as_valkey_checks_them() {
        let read = |inert: Inert, word: &str| inert.read(&[word]).map_err(|error| error.to_string());
        assert_eq!(read(Inert::size("0", 0, i64::MAX), "10MB"), Ok("10485760".into()));
        assert_eq!(read(Inert::size("0", -1, i64::MAX), "-1"), Ok("-1".into()));
        assert_eq!(read(Inert::size("0", 0, i64::MAX), "-1"), Err("argument must be a memory value".into()));
        assert_eq!(read(Inert::flag("no"), "YES"), Ok("yes".into()));
        assert_eq!(read(Inert::choice("a", &["a", "b"]), "B"), Ok("b".into()));
        assert_eq!(read(Inert::integer("0", 1, 64), "65"), Err("argument must be between 1 and 64 inclusive".into()));
        assert_eq!(read(Inert::checked_text("", check_ipv4), "1.2.3"), Err("Invalid IPv4 address".into()));
        let scores = Inert::scores("0 200 800");
        assert_eq!(scores.read(&["1", "2", "2001"]), Err(ValueError::OomScore));
        assert_eq!(scores.read(&["1", "2"]), Err(ValueError::WordCount));
        assert_eq!(scores.read(&["-1", "2", "3"]), Ok("-1 2 3".into()));
    }
}
