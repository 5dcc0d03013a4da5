//! How long requests may be.

/// The longest data whose length can be said, with its line end.
pub(super) const DATA_BYTES_MAX: u64 = i32::MAX as u64 - 2;

/// What a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an item's data.
    pub item_bytes_max: usize,
    /// Bytes of an element's data, with its line end.
    pub element_bytes_max: usize,
    /// Fields that one request names of a map.
    pub fields_max: usize,
}

impl Limits {
    /// The limits of ARCUS, for items up to this length.
    pub const fn of_items(item_bytes_max: usize) -> Self {
        Self { item_bytes_max, element_bytes_max: 16 * 1024, fields_max: 50_000 }
    }
}
