//! The languages that clients speak. A listener has one, and so has each connection that it accepts.

use proto::memcached;
use proto::request::LargeBulk;
use proto::{Protocol, ReplyBuffer, RequestParser};

/// A language, as listeners know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// That of Redis.
    #[default]
    Resp,
    /// The text protocol of memcached.
    Memcached,
    /// SSDB's own protocol.
    Ssdb,
}

/// The language of a connection, with the state of its parser.
pub enum Dialect {
    /// That of Redis.
    Resp(RequestParser),
    /// The text protocol of memcached.
    Memcached(Box<memcached::Parser>),
    /// SSDB's own protocol.
    Ssdb(Box<proto::ssdb::Parser>),
}

const _: () = assert!(size_of::<Dialect>() == 16);

impl Dialect {
    /// The state at the start of a connection.
    pub fn new(language: Language) -> Self {
        match language {
            Language::Resp => Self::Resp(RequestParser::new()),
            Language::Memcached => Self::Memcached(Box::default()),
            Language::Ssdb => Self::Ssdb(Box::default()),
        }
    }

    /// The same with keys of memcached clients up to this length.
    pub fn with_keys_up_to(self, bytes: usize) -> Self {
        match self {
            Self::Memcached(_) => Self::Memcached(Box::new(memcached::Parser::with_keys_up_to(bytes))),
            other => other,
        }
    }

    /// Replies in this language.
    pub fn reply_buffer(&self) -> ReplyBuffer {
        match self {
            Self::Resp(_) => ReplyBuffer::new(Protocol::Resp2),
            Self::Memcached(_) => ReplyBuffer::for_memcached(),
            Self::Ssdb(_) => ReplyBuffer::for_ssdb(),
        }
    }

    /// The argument that is received into a buffer of its own, if there is one.
    #[inline]
    pub fn large_bulk(&mut self) -> Option<LargeBulk<'_>> {
        match self {
            Self::Resp(parser) => parser.large_bulk(),
            Self::Memcached(_) | Self::Ssdb(_) => None,
        }
    }

    /// Keeps no more of that argument; gives what was kept.
    pub fn drop_large_bulk(&mut self) -> Vec<u8> {
        match self {
            Self::Resp(parser) => parser.drop_large_bulk(),
            Self::Memcached(_) | Self::Ssdb(_) => Vec::new(),
        }
    }

    /// Bytes of that argument.
    pub fn large_bulk_bytes(&self) -> usize {
        match self {
            Self::Resp(parser) => parser.large_bulk_bytes(),
            Self::Memcached(_) | Self::Ssdb(_) => 0,
        }
    }

    /// Bytes that the parser holds, that argument included.
    pub fn held_bytes(&self) -> usize {
        match self {
            Self::Resp(parser) => parser.held_bytes(),
            Self::Memcached(parser) => parser.held_bytes(),
            Self::Ssdb(parser) => parser.held_bytes(),
        }
    }
}
