//! What the words of a collection command say.

use super::super::{parse_signed, parse_unsigned};
use super::Family;

/// A word that follows a request: how it wants to be answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// With a reply.
    #[default]
    Reply,
    /// Without one.
    Silent,
    /// In the reply of its pipe.
    Piped,
}

impl Tail {
    /// The tail that the word stands for; [`Self::Reply`] for any other.
    pub fn of(word: &[u8]) -> Self {
        match word {
            b"noreply" => Self::Silent,
            b"pipe" => Self::Piped,
            _ => Self::Reply,
        }
    }
}

/// What a full collection does with one element more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Refuses it.
    Error,
    /// Drops the head of a list.
    HeadTrim,
    /// Drops the tail of a list.
    TailTrim,
    /// Drops the smallest element of a b+tree, and notes that it did.
    SmallestTrim,
    /// Drops the largest element of a b+tree, and notes that it did.
    LargestTrim,
    /// Drops the smallest element of a b+tree.
    SmallestSilentTrim,
    /// Drops the largest element of a b+tree.
    LargestSilentTrim,
}

impl Action {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Error,
        Self::HeadTrim,
        Self::TailTrim,
        Self::SmallestTrim,
        Self::LargestTrim,
        Self::SmallestSilentTrim,
        Self::LargestSilentTrim,
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::HeadTrim => "head_trim",
            Self::TailTrim => "tail_trim",
            Self::SmallestTrim => "smallest_trim",
            Self::LargestTrim => "largest_trim",
            Self::SmallestSilentTrim => "smallest_silent_trim",
            Self::LargestSilentTrim => "largest_silent_trim",
        }
    }

    /// The action with this word.
    pub fn parse(word: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name().as_bytes() == word)
    }

    /// Whether collections of this family have it.
    pub fn fits(self, family: Family) -> bool {
        match self {
            Self::Error => true,
            Self::HeadTrim | Self::TailTrim => family == Family::List,
            _ => family == Family::Tree,
        }
    }
}

/// The attributes of a collection that is to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Create {
    /// Flags of the client.
    pub flags: u32,
    /// When it expires, as memcached says times; -1 for sticky.
    pub exptime: i64,
    /// The most elements: 0 for the default, negative for as many as the server allows.
    pub max_count: i64,
    /// What happens when it is full; `None` for the default of its type.
    pub action: Option<Action>,
    /// Reads are refused until an attribute allows them.
    pub is_unreadable: bool,
}

impl Create {
    /// `flags [exptime [maxcount]] [action] [unreadable]`.
    pub fn parse(words: &[&[u8]], family: Family) -> Option<Self> {
        let (flags, mut rest) = words.split_first()?;
        let flags = parse_unsigned(flags).and_then(|flags| u32::try_from(flags).ok())?;
        let mut create = Self { flags, exptime: 0, max_count: 0, action: None, is_unreadable: false };
        for number in [&mut create.exptime, &mut create.max_count] {
            if let Some((word, behind)) = rest.split_first()
                && let Some(value) = parse_signed(word).filter(|value| i32::try_from(*value).is_ok())
            {
                (*number, rest) = (value, behind);
            }
        }
        if let [b"unreadable"] | [_, b"unreadable"] = rest {
            create.is_unreadable = true;
            rest = rest.split_last()?.1;
        }
        match rest {
            [] => Some(create),
            [action] => {
                create.action = Some(Action::parse(action).filter(|action| action.fits(family))?);
                Some(create)
            }
            _ => None,
        }
    }

    /// Attributes of a command that does nothing but create: all three numbers.
    pub fn parse_whole(words: &[&[u8]], family: Family) -> Option<Self> {
        let are_numbers = words.get(..3)?.iter().all(|word| parse_signed(word).is_some());
        if are_numbers { Self::parse(words, family) } else { None }
    }

    /// The words of an insert after its position: none, or `create` and attributes.
    pub fn parse_optional(words: &[&[u8]], family: Family) -> Option<Option<Self>> {
        match words.split_first() {
            None => Some(None),
            Some((&b"create", attributes)) => Self::parse(attributes, family).map(Some),
            Some(_) => None,
        }
    }
}

/// A position in a list, from the head if it is not negative, else from the tail.
pub fn parse_index(word: &[u8]) -> Option<i32> {
    parse_signed(word).and_then(|index| i32::try_from(index).ok())
}

/// `index` or `from..to`.
pub fn parse_index_range(word: &[u8]) -> Option<(i32, i32)> {
    match split_range(word) {
        Some((from, to)) => Some((parse_index(from)?, parse_index(to)?)),
        None => parse_index(word).map(|index| (index, index)),
    }
}

/// The two sides of `..`.
pub(super) fn split_range(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = word.windows(2).position(|pair| pair == b"..")?;
    Some((word.get(..at)?, word.get(at.saturating_add(2)..)?))
}

/// What a read does with what it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing.
    Keep,
    /// It deletes the elements.
    Delete,
    /// It deletes the elements, and the collection if none is left.
    Drop,
}

impl Removal {
    /// `[delete|drop]` of a read.
    pub fn of_read(words: &[&[u8]]) -> Option<Self> {
        match words {
            [] => Some(Self::Keep),
            [b"delete"] => Some(Self::Delete),
            [b"drop"] => Some(Self::Drop),
            _ => None,
        }
    }

    /// `[drop]` of a delete.
    pub fn of_delete(words: &[&[u8]]) -> Option<Self> {
        match words {
            [] => Some(Self::Delete),
            [b"drop"] => Some(Self::Drop),
            _ => None,
        }
    }
}

/// The words of a line of fields or keys: one space or comma between two.
pub fn split_keys(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    block.split(|byte| matches!(byte, b' ' | b','))
}

/// Whether a block is this number of words, none of them longer than `len_max`.
pub(in super::super) fn are_keys(block: &[u8], count: u64, len_max: usize) -> bool {
    let mut found = 0u64;
    let are_words = split_keys(block).all(|word| {
        found = found.saturating_add(1);
        !word.is_empty() && word.len() <= len_max
    });
    are_words && found == count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(text: &str) -> Option<Create> {
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        Create::parse(&words, Family::List)
    }

    #[test]
    fn attributes_may_be_short() {
        let plain = Create { flags: 7, exptime: 0, max_count: 0, action: None, is_unreadable: false };
        for (text, expected) in [
            ("7", Some(plain)),
            ("7 10", Some(Create { exptime: 10, ..plain })),
            ("7 -1 5", Some(Create { exptime: -1, max_count: 5, ..plain })),
            ("7 0 5 error", Some(Create { max_count: 5, action: Some(Action::Error), ..plain })),
            (
                "7 0 0 tail_trim unreadable",
                Some(Create { action: Some(Action::TailTrim), is_unreadable: true, ..plain }),
            ),
            ("7 unreadable", Some(Create { is_unreadable: true, ..plain })),
            ("7 0 0 smallest_trim", None),
            ("7 0 0 other", None),
            ("7 0 0 error other", None),
            ("-1 0 0", None),
            ("7 0 x", None),
        ] {
            assert_eq!(create(text), expected, "{text}");
        }
    }

    #[test]
    fn ranges_have_two_ends_or_one() {
        assert_eq!(parse_index_range(b"3"), Some((3, 3)));
        assert_eq!(parse_index_range(b"-1..0"), Some((-1, 0)));
        for word in [&b".."[..], b"1..", b"..1", b"1...2", b"x", b"2147483648"] {
            assert_eq!(parse_index_range(word), None, "{word:?}");
        }
    }

    #[test]
    fn lines_of_keys_are_exact() {
        assert!(are_keys(b"a bc,d", 3, 2));
        for (block, count) in [(&b"a  b"[..], 2), (b" a", 1), (b"a b", 1), (b"abc", 1), (b"", 0)] {
            assert!(!are_keys(block, count, 2), "{block:?}");
        }
    }
}
