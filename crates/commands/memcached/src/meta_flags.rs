//! The flags of meta commands.

use base::UnixMs;
use command::Args;
use proto::memcached::{parse_signed, parse_unsigned};
use types::string::Expiration;

use crate::arguments::expiration_of;

const BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";

/// The longest opaque token, with its letter.
const OPAQUE_BYTES_MAX: usize = 32;

/// What the flags of a request ask for.
#[derive(Debug, Default)]
pub struct MetaFlags {
    /// `b`: the key is sent as base64 text.
    pub has_binary_key: bool,
    /// `C`: the id that the item must have.
    pub id: Option<u64>,
    /// `D`: what `ma` adds or takes away.
    pub delta: Option<u64>,
    /// `F`: the item's flags.
    pub client_flags: u32,
    /// `I`: the item becomes stale.
    pub marks_stale: bool,
    /// `J`: the value of an item that `ma` makes.
    pub initial: u64,
    /// `M`: the mode.
    pub mode: Option<u8>,
    /// `N`: an absent item is made, with this expiration.
    pub vivify: Option<Expiration>,
    /// `R`: an item that expires before then is to be renewed.
    pub renew_before: Option<Expiration>,
    /// `T`: the item's expiration.
    pub expiration: Option<Expiration>,
    /// `q`: the usual outcome is not reported.
    pub is_quiet: bool,
    /// `u`: the read is no access.
    pub leaves_no_trace: bool,
    /// `v`: the reply has the data.
    pub wants_data: bool,
}

impl MetaFlags {
    /// The flags among the arguments, from `first` on.
    ///
    /// # Errors
    /// The reply of memcached to flags that are wrong.
    pub fn parse(args: &Args<'_>, first: usize, now: UnixMs) -> Result<Self, &'static str> {
        let (mut flags, mut seen, mut error) = (Self::default(), 0u128, None);
        for word in args.from(first) {
            let Some((&letter, value)) = word.split_first() else { continue };
            let bit = 1u128.checked_shl(u32::from(letter)).filter(|bit| letter < 127 && seen & bit == 0);
            seen |= bit.ok_or("CLIENT_ERROR duplicate flag")?;
            match flags.take(letter, value, now) {
                Ok(()) => {}
                // Two are answered at once, as memcached does; of the others the last counts.
                Err(wrong @ (INVALID | NO_HIT_FLAG)) => return Err(wrong),
                Err("") => error = error.or(Some("CLIENT_ERROR bad command line format")),
                Err(wrong) => error = Some(wrong),
            }
        }
        error.map_or(Ok(flags), Err)
    }

    fn take(&mut self, letter: u8, value: &[u8], now: UnixMs) -> Result<(), &'static str> {
        let time = || parse_signed(value).map(|seconds| expiration_of(seconds, now)).ok_or(BAD_TOKEN);
        match letter {
            b'b' => self.has_binary_key = true,
            b'C' => self.id = Some(parse_unsigned(value).ok_or(BAD_TOKEN)?),
            b'D' => self.delta = Some(parse_unsigned(value).ok_or("CLIENT_ERROR invalid numeric delta value")?),
            b'F' => self.client_flags = parse_unsigned(value).and_then(|flags| u32::try_from(flags).ok()).ok_or("")?,
            b'I' => self.marks_stale = true,
            b'J' => self.initial = parse_unsigned(value).ok_or("CLIENT_ERROR invalid numeric initial value")?,
            b'M' => match value {
                [mode] => self.mode = Some(*mode),
                _ => return Err("CLIENT_ERROR incorrect length for M token"),
            },
            b'N' => self.vivify = Some(time()?),
            b'R' => self.renew_before = Some(time()?),
            b'T' => self.expiration = Some(time()?),
            b'q' => self.is_quiet = true,
            b'u' => self.leaves_no_trace = true,
            b'v' => self.wants_data = true,
            b'O' if value.len() >= OPAQUE_BYTES_MAX => return Err("CLIENT_ERROR opaque token too long"),
            b'O' | b'P' | b'L' | b'c' | b'f' | b'k' | b'l' | b's' | b't' => {}
            b'h' => return Err(NO_HIT_FLAG),
            _ => return Err(INVALID),
        }
        Ok(())
    }
}

const INVALID: &str = "CLIENT_ERROR invalid flag";
/// Whether an item was read before is not kept.
const NO_HIT_FLAG: &str = "CLIENT_ERROR flag h is not supported";

#[cfg(test)]
mod tests {
    use super::*;
    use proto::Span;

    fn parse(words: &str) -> Result<MetaFlags, &'static str> {
        let (mut spans, mut at) = (Vec::new(), 0);
        for word in words.split(' ') {
            spans.extend(Span::new(at, word.len()));
            at += word.len() + 1;
        }
        MetaFlags::parse(&Args::new(words.as_bytes(), &spans, &[]), 0, 1_000_000)
    }

    #[test]
    fn flags_are_read_once_each() {
        let flags = parse("v c T10 F7 C5 Oab q b").unwrap();
        assert!(flags.wants_data && flags.is_quiet && flags.has_binary_key);
        assert_eq!((flags.client_flags, flags.id), (7, Some(5)));
        assert_eq!(flags.expiration, Some(Expiration::At(1_010_000)));
        for (words, error) in [
            ("v v", "CLIENT_ERROR duplicate flag"),
            ("x", "CLIENT_ERROR invalid flag"),
            ("Tx", BAD_TOKEN),
            ("Tx x", "CLIENT_ERROR invalid flag"),
            ("Fx", "CLIENT_ERROR bad command line format"),
            ("Mxx", "CLIENT_ERROR incorrect length for M token"),
            ("Dx Jx", "CLIENT_ERROR invalid numeric initial value"),
            ("h", NO_HIT_FLAG),
            ("O01234567890123456789012345678901", "CLIENT_ERROR opaque token too long"),
        ] {
            assert_eq!(parse(words).map(|_| ()), Err(error), "{words}");
        }
    }
}
