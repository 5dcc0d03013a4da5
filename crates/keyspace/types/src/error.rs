//! Why an operation could not be done. Expected outcomes (not stored, absent) are values, not errors.

use engine::Fetch;

/// An operation that changed nothing, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// The row is not in memory: run again after the fetch.
    #[error(transparent)]
    Fetch(#[from] Fetch),
    /// The key holds another type than the operation is for.
    #[error("operation against a key holding the wrong kind of value")]
    WrongType,
    /// The stored value is not a decimal 64-bit integer.
    #[error("value is not an integer or out of range")]
    NotInteger,
    /// The stored value is not a finite decimal number.
    #[error("value is not a valid float")]
    NotFloat,
    /// The field's value is not a decimal 64-bit integer.
    #[error("hash value is not an integer")]
    FieldNotInteger,
    /// The field's value is not a finite decimal number.
    #[error("hash value is not a float")]
    FieldNotFloat,
    /// The result would not fit a signed 64-bit integer.
    #[error("increment or decrement would overflow")]
    Overflow,
    /// The result would be infinite or not a number.
    #[error("increment would produce NaN or Infinity")]
    NotFinite,
    /// A score would be the sum of opposite infinities.
    #[error("resulting score is not a number (NaN)")]
    ScoreNotNumber,
    /// The string would grow beyond `proto-max-bulk-len`.
    #[error("string exceeds maximum allowed size (proto-max-bulk-len)")]
    StringTooLong,
    /// Comparing the strings would take more memory than `proto-max-bulk-len` allows.
    #[error("the strings are too long to be compared")]
    LcsTooBig,
    /// The stored string is not a HyperLogLog.
    #[error("not a HyperLogLog")]
    NotHyperLogLog,
    /// The stored HyperLogLog is damaged.
    #[error("damaged HyperLogLog")]
    CorruptHyperLogLog,
    /// What elements are to be sorted by is no number.
    #[error("One or more scores can't be converted into double")]
    NotSortable,
    /// The stream has had the last id there is.
    #[error("the stream has exhausted the last possible id")]
    IdsExhausted,
    /// The id of a new entry is not above the last of the stream.
    #[error("the id is equal to or smaller than the last of the stream")]
    IdTooSmall,
    /// The fields of an entry are longer than 1 GiB.
    #[error("the entry is too long to be stored")]
    EntryTooLong,
    /// Source and destination are one key.
    #[error("source and destination objects are the same")]
    SameKey,
}
