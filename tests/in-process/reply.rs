//! Replies of RESP2, as tests look at them.

use std::io::{BufRead, ErrorKind};

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A line without its mark: `OK`.
    Simple(String),
    /// An error without its mark.
    Error(String),
    /// An integer.
    Int(i64),
    /// A string, or nothing.
    Bulk(Option<String>),
    /// A list; nothing is an empty one.
    List(Vec<Reply>),
}

impl Reply {
    /// The next reply of a stream; `None` at its end.
    pub fn read(input: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        match input.read_line(&mut line) {
            Ok(0) => return None,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            result => result.expect("a reply in time"),
        };
        let rest = line.get(1..).expect("a reply begins with its mark").trim_end_matches(['\r', '\n']);
        let number = || rest.parse::<i64>().expect("a number");
        Some(match &line[..1] {
            "+" => Self::Simple(rest.into()),
            "-" => Self::Error(rest.into()),
            ":" => Self::Int(number()),
            "$" => Self::Bulk(usize::try_from(number()).ok().map(|length| {
                let mut bytes = vec![0; length + 2];
                input.read_exact(&mut bytes).expect("a whole reply");
                bytes.truncate(length);
                String::from_utf8(bytes).expect("these tests store text")
            })),
            "_" => Self::Bulk(None),
            // Of RESP3 tests need pushes and maps alone, and these as lists.
            "%" => Self::List((0..2 * number()).map(|_| Self::read(input).expect("a whole reply")).collect()),
            "*" | ">" => Self::List((0..number()).map(|_| Self::read(input).expect("a whole reply")).collect()),
            mark => panic!("no reply begins with {mark:?}"),
        })
    }

    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("{other:?} is no integer"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Self::Simple(text) | Self::Bulk(Some(text)) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    pub fn list(&self) -> &[Reply] {
        match self {
            Self::List(list) => list,
            other => panic!("{other:?} is no list"),
        }
    }

    /// The strings of a list.
    pub fn texts(&self) -> Vec<String> {
        self.list().iter().map(|item| item.text().to_owned()).collect()
    }
}
