//! Asking memory for a line before it is needed: a merge of twenty runs touches a block of each in turn, and none of
//! them is in a cache of the processor.
#![allow(unsafe_code)]

/// Fetches the cache line of the byte at `at`, if there is one, in the background.
#[inline]
pub(crate) fn prefetch(bytes: &[u8], at: usize) {
    prefetch_item(bytes, at);
}

/// Fetches the cache line where an item begins, if there is one, in the background.
#[inline]
pub(crate) fn prefetch_item<T>(items: &[T], at: usize) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(item) = items.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch changes no state a program can see, whatever the address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast()) }
    }
    #[cfg(any(miri, not(target_arch = "x86_64")))]
    let _ = (items, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any place will do, also one after the end.
    #[test]
    fn changes_nothing() {
        let bytes = *b"line";
        [0, 3, 4, usize::MAX].into_iter().for_each(|at| prefetch(&bytes, at));
        assert_eq!(bytes, *b"line");
    }
}
