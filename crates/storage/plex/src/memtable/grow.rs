//! A list whose items never move: a reader that knows an item's number may read it while others are added.

use std::sync::OnceLock;

/// Places in the first chunk; each further one has twice as many as the one before.
const FIRST_CHUNK_LEN: u32 = 16;

/// With these, all numbers of 32 bits have a place.
const CHUNK_COUNT: usize = 29;

/// See the module.
pub(super) struct Grow<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNK_COUNT],
}

impl<T> Grow<T> {
    pub fn new() -> Self {
        Self { chunks: [const { OnceLock::new() }; CHUNK_COUNT] }
    }

    /// The chunk of a number and the place in it.
    #[inline]
    fn place(number: u32) -> (usize, usize) {
        let shifted = u64::from(number) + u64::from(FIRST_CHUNK_LEN);
        let chunk = (shifted / u64::from(FIRST_CHUNK_LEN)).ilog2();
        (chunk as usize, (shifted - (u64::from(FIRST_CHUNK_LEN) << chunk)) as usize)
    }

    /// The item of this number; `None` if it was not put there yet.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        let (chunk, place) = Self::place(number);
        self.chunks[chunk].get()?[place].get()
    }

    /// Puts an item where none is, and gives it back. Numbers are meant to be given one after the other: memory is
    /// taken for all below.
    pub fn put(&self, number: u32, item: T) -> &T {
        let (chunk, place) = Self::place(number);
        let len = (FIRST_CHUNK_LEN as usize) << chunk;
        let chunk = self.chunks[chunk].get_or_init(|| (0..len).map(|_| OnceLock::new()).collect());
        assert!(chunk[place].set(item).is_ok(), "a place is used once");
        chunk[place].get().expect("it was just put there")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number has a place of its own, up to the last.
    #[test]
    fn places_follow_each_other() {
        let mut expected = (0, 0);
        for number in 0..if cfg!(miri) { 200 } else { 100_000 } {
            assert_eq!(Grow::<()>::place(number), expected);
            expected.1 += 1;
            if expected.1 == (FIRST_CHUNK_LEN as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(Grow::<()>::place(u32::MAX).0 < CHUNK_COUNT);
    }

    /// What was put stays where it is, and nothing else is there.
    #[test]
    fn keeps_what_was_put() {
        let list = Grow::new();
        for number in 0..100 {
            assert!(list.get(number).is_none());
            list.put(number, number * 3);
        }
        assert!((0..100).all(|number| list.get(number) == Some(&(number * 3))));
    }
}
