//! Words of 8 bytes on their way to persistent memory.
//!
//! W1. Each word arrives alone: every subset of the words that are not fenced is a possible crash. Processors promise
//!     more within a cache line; code under test must not rely on it.
//! W2. A word is never torn. Of several stores to one word, any may be the last that arrived.
//! W3. A fence makes the flushed stores of a word durable, and the stores to it before them.

use std::collections::BTreeMap;
use std::ops::Range;

use super::draw::Draw;
use super::image::Image;

const WORD: u64 = 8;

type Word = [u8; WORD as usize];

/// The stores to one word, oldest first.
#[derive(Clone, Debug, Default)]
struct Stores {
    contents: Vec<Word>,
    /// How many of them the next fence covers.
    flushed: usize,
}

/// The words of a file that are not fenced, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(BTreeMap<u64, Stores>);

/// The numbers of the words that a range touches.
fn numbers(range: Range<u64>) -> Range<u64> {
    range.start / WORD..range.end.div_ceil(WORD)
}

fn write(image: &mut Image, number: u64, word: &Word) {
    let at = number * WORD;
    let len = image.len().saturating_sub(at).min(WORD) as usize;
    image.write(&word[..len], at);
}

impl Words {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of this range, which are in `live`, were stored.
    pub fn store(&mut self, live: &Image, range: Range<u64>, is_flushed: bool) {
        for number in numbers(range) {
            let mut word = Word::default();
            live.read(&mut word, number * WORD);
            let stores = self.0.entry(number).or_default();
            stores.contents.push(word);
            if is_flushed {
                stores.flushed = stores.contents.len();
            }
        }
    }

    /// The next fence covers the stores to this range.
    pub fn flush(&mut self, range: Range<u64>) {
        self.0.range_mut(numbers(range)).for_each(|(_, stores)| stores.flushed = stores.contents.len());
    }

    pub fn fence(&mut self, durable: &mut Image) {
        self.0.retain(|number, stores| {
            if let Some(last) = stores.contents.drain(..stores.flushed).next_back() {
                write(durable, *number, &last);
            }
            stores.flushed = 0;
            !stores.contents.is_empty()
        });
    }

    /// All words are durable.
    pub fn settle(&mut self, durable: &mut Image) {
        for (number, stores) in std::mem::take(&mut self.0) {
            stores.contents.last().into_iter().for_each(|last| write(durable, number, last));
        }
    }

    /// Draws what each word is after a crash.
    pub fn draw(&self, image: &mut Image, draw: &mut Draw) {
        for (number, stores) in &self.0 {
            let arrived = stores.contents.iter().rfind(|_| draw.keeps());
            arrived.into_iter().for_each(|word| write(image, *number, word));
        }
    }

    /// The number of states that a crash can leave.
    pub fn states(&self) -> Option<u64> {
        self.0.values().try_fold(1u64, |states, stores| states.checked_mul(stores.contents.len() as u64 + 1))
    }

    /// Leaves the state of this number, which is below [`states`](Self::states).
    pub fn apply_state(&self, mut state: u64, image: &mut Image) {
        for (number, stores) in &self.0 {
            let choices = stores.contents.len() as u64 + 1;
            let arrived = (state % choices).checked_sub(1).and_then(|last| stores.contents.get(last as usize));
            arrived.into_iter().for_each(|word| write(image, *number, word));
            state /= choices;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::CrashModel;
    use base::Rng;
    use std::collections::BTreeSet;

    fn image(len: u64) -> Image {
        let mut image = Image::default();
        image.grow(len);
        image
    }

    /// Three words of which one was stored twice: the states are all combinations, and draws find each of them.
    #[test]
    fn every_subset_of_words_is_a_state() {
        let (mut live, mut words) = (image(64), Words::default());
        for (at, byte) in [(0, 1), (8, 2), (16, 3), (8, 4)] {
            live.write(&[byte; 8], at);
            words.store(&live, at..at + 8, false);
        }
        assert_eq!(words.states(), Some(2 * 3 * 2));
        let bytes_of = |act: &dyn Fn(&mut Image)| {
            let mut image = image(64);
            act(&mut image);
            image.to_vec()
        };
        let all: BTreeSet<_> = (0..12).map(|state| bytes_of(&|image| words.apply_state(state, image))).collect();
        assert_eq!(all.len(), 12);
        assert!(all.iter().all(|bytes| bytes.chunks(8).all(|word| word.iter().all(|byte| *byte == word[0]))), "W2");
        let drawn: BTreeSet<_> = (0..500)
            .map(|seed| {
                let mut draw = Draw::new(Rng::new(seed), CrashModel::default());
                draw.choose_mood();
                let mut image = image(64);
                words.draw(&mut image, &mut draw);
                image.to_vec()
            })
            .collect();
        assert_eq!(drawn, all);
    }

    /// A fence makes durable what was flushed, and nothing else.
    #[test]
    fn a_fence_covers_what_was_flushed() {
        let (mut live, mut durable, mut words) = (image(20), image(20), Words::default());
        let mut store = |words: &mut Words, at: u64, byte: u8, is_flushed| {
            live.write(&[byte; 4], at);
            words.store(&live, at..at + 4, is_flushed);
        };
        store(&mut words, 0, 1, true);
        store(&mut words, 8, 2, false);
        store(&mut words, 16, 3, true);
        words.fence(&mut durable);
        assert_eq!(durable.to_vec()[..12], [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(durable.to_vec()[16..], [3; 4], "the last word is short");
        assert_eq!(words.states(), Some(2));
        store(&mut words, 8, 4, false);
        words.flush(9..10);
        store(&mut words, 12, 5, false);
        words.fence(&mut durable);
        assert_eq!(durable.to_vec()[8..16], [4, 4, 4, 4, 0, 0, 0, 0]);
        assert_eq!(words.states(), Some(2), "the store after the flush is pending");
        words.settle(&mut durable);
        assert_eq!(durable.to_vec()[8..16], [4, 4, 4, 4, 5, 5, 5, 5]);
        assert!(words.is_empty());
    }
}
