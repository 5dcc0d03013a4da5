/// A reply as a client sees it. It keeps what the wire distinguishes, so that a test can compare servers exactly.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `+OK`
    Simple(Vec<u8>),
    /// `-ERR no` or, from RESP3 on, `!6\r\nERR no`; its first word is the code.
    Error(Vec<u8>),
    /// `:1`
    Integer(i64),
    /// `$1\r\nx`
    Bulk(Vec<u8>),
    /// `$-1`, nothing in the place of a string in RESP2.
    NullBulk,
    /// `*-1`, nothing in the place of an array in RESP2.
    NullArray,
    /// `_`, nothing in RESP3.
    Null,
    /// `,0.5`
    Double(f64),
    /// `#t`
    Boolean(bool),
    /// `(12345678901234567890`: its digits.
    BigNumber(Vec<u8>),
    /// `=7\r\ntxt:abc`
    Verbatim {
        /// Three letters: `txt` or `mkd`.
        format: [u8; 3],
        /// What follows the colon.
        text: Vec<u8>,
    },
    /// `*2`
    Array(Vec<Value>),
    /// `%1`: keys and values in the order of the wire.
    Map(Vec<(Value, Value)>),
    /// `~2`
    Set(Vec<Value>),
    /// `>2`: a message that is no reply to a request.
    Push(Vec<Value>),
    /// `|1` and what it is about.
    Attributed {
        /// The attributes.
        attributes: Vec<(Value, Value)>,
        /// The reply that they belong to.
        value: Box<Value>,
    },
}

impl Value {
    /// Whether this is nothing, in any of its three forms.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::NullBulk | Self::NullArray | Self::Null)
    }

    /// The bytes of a string of any kind. `None` for errors and for everything else.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Simple(text) | Self::Bulk(text) | Self::BigNumber(text) | Self::Verbatim { text, .. } => Some(text),
            Self::Attributed { value, .. } => value.as_bytes(),
            _ => None,
        }
    }

    /// The text of an error. `None` for everything else.
    pub fn as_error(&self) -> Option<&[u8]> {
        match self {
            Self::Error(text) => Some(text),
            Self::Attributed { value, .. } => value.as_error(),
            _ => None,
        }
    }
}
