//! A line and its words.

/// The most words that a line of anything but keys may have. More are counted as one.
const WORDS_MAX: usize = 24;

/// The words of a line, as ranges of the input.
pub(super) struct Words {
    ranges: [(u32, u32); WORDS_MAX],
    count: usize,
}

impl Words {
    /// The words of `line`: what spaces separate.
    pub(super) fn of(line: &[u8]) -> Self {
        let mut words = Self { ranges: [(0, 0); WORDS_MAX], count: 0 };
        let mut at = 0;
        while words.count < WORDS_MAX
            && let Some((start, end)) = next_word(line, at)
        {
            if let Some(place) = words.ranges.get_mut(words.count) {
                *place = (start as u32, end as u32);
            }
            words.count = words.count.wrapping_add(1);
            at = end;
        }
        words
    }

    /// How many there are; of more than [`WORDS_MAX`], that number.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Where the word at `index` starts and ends; both 0 when there are fewer.
    pub(super) fn range(&self, index: usize) -> (usize, usize) {
        let range = self.ranges.get(index).filter(|_| index < self.count);
        range.map_or((0, 0), |(start, end)| (*start as usize, *end as usize))
    }

    /// The bytes of the word at `index`; empty when there are fewer.
    pub(super) fn bytes<'a>(&self, line: &'a [u8], index: usize) -> &'a [u8] {
        let (start, end) = self.range(index);
        line.get(start..end).unwrap_or_default()
    }

    /// Whether the last word asks for no reply.
    pub(super) fn ends_with_noreply(&self, line: &[u8]) -> bool {
        self.bytes(line, self.count.wrapping_sub(1)) == b"noreply"
    }
}

/// Where the first word at or after `from` starts and ends.
pub(super) fn next_word(line: &[u8], from: usize) -> Option<(usize, usize)> {
    let rest = line.get(from..)?;
    let start = from.wrapping_add(rest.iter().position(|byte| *byte != b' ')?);
    let rest = line.get(start..)?;
    let len = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    Some((start, start.wrapping_add(len)))
}
