//! A value held across further reads and changes.

use engine::{SharedBytes, Value};

/// A value taken out of its entry: big ones by reference, small ones by copy.
#[derive(Clone, Debug)]
pub struct Kept {
    copied: Vec<u8>,
    shared: Option<SharedBytes>,
}

impl Kept {
    /// Keeps the value.
    pub fn new(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Self { copied: bytes.to_vec(), shared: None },
            Value::Shared(shared) => Self { copied: Vec::new(), shared: Some(shared.clone()) },
        }
    }

    /// Nothing: the value of an absent string where that counts as an empty one.
    pub fn empty() -> Self {
        Self { copied: Vec::new(), shared: None }
    }

    /// The value, to read or to store again.
    pub fn value(&self) -> Value<'_> {
        self.shared.as_ref().map_or(Value::Bytes(&self.copied), Value::Shared)
    }
}

/// Bytes made here, to be stored: from this size on they are handed over, not copied.
const SHARED_BYTES_MIN: usize = 16 * 1024;

impl From<Vec<u8>> for Kept {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() < SHARED_BYTES_MIN {
            Self { copied: bytes, shared: None }
        } else {
            Self { copied: Vec::new(), shared: Some(SharedBytes::new(bytes)) }
        }
    }
}
