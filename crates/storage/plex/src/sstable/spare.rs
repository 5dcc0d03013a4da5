//! Memory for blocks, from blocks without references.
//!
//! Blocks are of nearly one length, so that one fits where another one was. A thread keeps the last few that it dropped
//! and reads into them: they are likely to be in a cache of its processor, and the memory allocator is not called.

use std::cell::RefCell;
use std::sync::Arc;

/// Pieces that a thread keeps: a scan lets go of a block of each run at once, and the next one wants as many.
const PIECES_MAX: usize = 32;

/// A longer piece is not kept, in bytes.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Pieces take a multiple of it, in bytes.
const PADDING_BYTES: usize = 128;

thread_local! {
    static PIECES: RefCell<Vec<Arc<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// At least `len` bytes, and not many more, without other references; their content is unspecified.
pub(super) fn take(len: usize) -> Arc<[u8]> {
    let fits = len..=len + len / 8 + PADDING_BYTES;
    let mut kept = PIECES.with_borrow_mut(|pieces| {
        let at = pieces.iter().rposition(|piece| fits.contains(&piece.len()))?;
        Some(pieces.swap_remove(at))
    });
    match kept.take_if(|piece| Arc::get_mut(piece).is_some()) {
        Some(piece) => piece,
        None => std::iter::repeat_n(0, len.next_multiple_of(PADDING_BYTES)).collect(),
    }
}

/// Keeps memory if nothing else refers to it and there is room.
pub(super) fn give(piece: Arc<[u8]>) {
    if (1..=PIECE_BYTES_MAX).contains(&piece.len()) {
        // A thread that ends has nothing to keep.
        let _ = PIECES.try_with(|pieces| {
            if let Ok(mut pieces) = pieces.try_borrow_mut() {
                // The oldest fits nothing that is asked for now, or it would have been taken.
                if pieces.len() == PIECES_MAX {
                    pieces.remove(0);
                }
                pieces.push(piece);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory without references is reused where it fits; memory with references is not.
    #[test]
    fn memory_of_before() {
        let first = take(4000);
        assert_eq!(first.len(), 4096);
        let (at, held) = (first.as_ptr(), first.clone());
        give(first);
        let second = take(4000);
        assert_ne!(second.as_ptr(), at);
        give(held);
        let third = take(3900);
        assert_eq!((third.as_ptr(), third.len()), (at, 4096));
        give(third);
        assert_eq!(take(100).len(), 128);
        (0..100).for_each(|_| give(Arc::from([0; 200])));
        assert_eq!(PIECES.with_borrow(Vec::len), PIECES_MAX);
        // Among many that do not fit, the piece is found, and the last of many is kept.
        let (last, mut others) = (take(4000), (0..PIECES_MAX - 1).map(|_| Arc::from([0; 300])));
        let at = last.as_ptr();
        give(last);
        others.by_ref().for_each(give);
        assert_eq!(take(4000).as_ptr(), at);
        give(Arc::default());
    }
}
