//! A byte buffer whose address fits direct I/O. The only unsafe code of this crate.
#![allow(unsafe_code, reason = "a vector of aligned blocks is viewed as bytes")]

use std::ops::{Deref, DerefMut};

/// Address, offset and length of direct transfers are multiples of this many bytes. 4,096 covers every device with
/// logical blocks of 512 to 4,096 bytes, which are the sizes there are.
pub const DIRECT_ALIGNMENT: usize = 4096;

#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Block([u8; DIRECT_ALIGNMENT]);

const _: () = assert!(size_of::<Block>() == DIRECT_ALIGNMENT && align_of::<Block>() == DIRECT_ALIGNMENT);

/// Zeroed memory of a whole number of blocks, at an address that is a multiple of [`DIRECT_ALIGNMENT`].
///
/// A1. `blocks` is never resized after construction, so its bytes stay where they are and all of them are initialised.
pub struct AlignedBuf {
    blocks: Vec<Block>,
}

impl AlignedBuf {
    /// At least `len` bytes, rounded up to whole blocks, all zero.
    pub fn zeroed(len: usize) -> Self {
        Self { blocks: vec![Block([0; DIRECT_ALIGNMENT]); len.div_ceil(DIRECT_ALIGNMENT)] }
    }
}

impl Deref for AlignedBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: by A1 the vector holds `len` initialised blocks of DIRECT_ALIGNMENT bytes each, without padding (the
        // assertion above), so that many bytes are readable from its pointer; the borrow of `self` keeps them in place.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.blocks.len() * DIRECT_ALIGNMENT) }
    }
}

impl DerefMut for AlignedBuf {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; the exclusive borrow of `self` makes this the only view, and any byte is a valid u8.
        unsafe { std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.blocks.len() * DIRECT_ALIGNMENT) }
    }
}

impl std::fmt::Debug for AlignedBuf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AlignedBuf").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths round up, the address is aligned, and every byte can be written and read. Runs under Miri.
    #[test]
    fn is_aligned_zeroed_and_writable() {
        assert!(AlignedBuf::zeroed(0).is_empty());
        for (asked, given) in [(1, 4096), (4096, 4096), (4097, 8192)] {
            let mut buf = AlignedBuf::zeroed(asked);
            assert_eq!((buf.len(), buf.as_ptr().addr() % DIRECT_ALIGNMENT), (given, 0));
            assert!(buf.iter().all(|&byte| byte == 0));
            buf[asked - 1] = 7;
            buf[given - 1] ^= 9;
            assert_eq!(buf.iter().filter(|&&byte| byte != 0).count(), if asked == given { 1 } else { 2 });
        }
    }
}
