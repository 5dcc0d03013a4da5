//! What scripts set of `cjson`.

/// What scripts set.
#[derive(Clone, Copy)]
pub struct Settings {
    pub(super) sparse_convert: bool,
    pub(super) sparse_ratio: i32,
    pub(super) sparse_safe: i32,
    pub(super) encode_depth_max: i32,
    /// How deep arrays and objects may be nested.
    pub decode_depth_max: i32,
    pub(super) precision: i32,
    pub(super) keeps_buffer: bool,
    pub(super) invalid_numbers: InvalidNumbers,
    /// Whether hexadecimal numbers, infinity and the like are read.
    pub decode_invalid_numbers: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            precision: 14,
            keeps_buffer: true,
            invalid_numbers: InvalidNumbers::Off,
            decode_invalid_numbers: true,
        }
    }
}

/// What infinity and the like are encoded as.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InvalidNumbers {
    /// An error.
    Off,
    /// Their text.
    On,
    /// `null`.
    Null,
}
