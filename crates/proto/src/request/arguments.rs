use std::ops::Range;

/// One argument of a request: where its bytes are. Either a range of the input given to
/// [`RequestParser::parse`](super::RequestParser::parse), or a buffer held by [`Arguments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Offset in the input, or [`OWNED`] plus the index of the buffer.
    start: u32,
    len: u32,
}

/// Marks a span that points to an owned buffer. Offsets in the input stay below it.
const OWNED: u32 = 1 << 31;

impl Span {
    /// The span of `input[start..start + len]`. `None` if it reaches 2 GiB or beyond.
    #[inline]
    pub fn new(start: usize, len: usize) -> Option<Self> {
        let end = start.checked_add(len)?;
        if end >= OWNED as usize {
            return None;
        }
        Some(Self { start: start as u32, len: len as u32 })
    }

    /// The span of the owned buffer at `index`. `None` if index or length cannot be expressed.
    fn owned(index: usize, len: usize) -> Option<Self> {
        let index = u32::try_from(index).ok().filter(|index| *index < OWNED)?;
        Some(Self { start: index | OWNED, len: u32::try_from(len).ok()? })
    }

    /// Length in bytes.
    #[inline]
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether the argument is the empty string.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Whether the argument is a buffer of its own and not a part of the input.
    #[inline]
    pub fn is_owned(self) -> bool {
        self.start & OWNED != 0
    }

    /// The range of the input. `None` for an owned argument.
    #[inline]
    pub fn range(self) -> Option<Range<usize>> {
        let start = self.start as usize;
        (!self.is_owned()).then(|| start..start.wrapping_add(self.len()))
    }

    fn index(self) -> Option<usize> {
        self.is_owned().then_some((self.start & !OWNED) as usize)
    }
}

/// The arguments of a batch of requests, one after the other: a request is a range of [`spans`](Self::spans). One
/// `Arguments` serves all connections of a worker and is cleared after each batch, so that parsing allocates nothing.
///
/// It also holds the few arguments that are not a range of the input: large bulks, which were received into a buffer of
/// their own and can be [taken](Self::take) without a copy, and quoted inline arguments.
#[derive(Debug, Default)]
pub struct Arguments {
    spans: Vec<Span>,
    owned: Vec<Vec<u8>>,
}

impl Arguments {
    /// No arguments, no memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// All arguments in the order of parsing.
    #[inline]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The number of arguments. Taken before and after a call of `parse`, it gives the request's range.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether no argument is held.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes of an argument, where `input` is what was given to the `parse` call that completed its request. Empty
    /// for a span of another input or of an earlier batch, and for an owned argument that has been taken.
    #[inline]
    pub fn bytes<'a>(&'a self, input: &'a [u8], span: Span) -> &'a [u8] {
        match span.range() {
            Some(range) => input.get(range),
            None => span.index().and_then(|index| self.owned.get(index)).map(Vec::as_slice),
        }
        .unwrap_or_default()
    }

    /// Hands an owned argument over without a copy. `None` for a range of the input. A second call finds it empty.
    pub fn take(&mut self, span: Span) -> Option<Vec<u8>> {
        self.owned.get_mut(span.index()?).map(std::mem::take)
    }

    /// Forgets all arguments, and frees the owned ones. The list of spans keeps its memory, up to `SPANS_KEPT`.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.spans.shrink_to(SPANS_KEPT);
        self.owned.clear();
        self.owned.shrink_to(OWNED_KEPT);
    }

    #[inline]
    pub(super) fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Adds `bytes` as an owned argument. `None` if its span cannot be expressed.
    pub(super) fn push_owned(&mut self, bytes: Vec<u8>) -> Option<()> {
        self.spans.push(Span::owned(self.owned.len(), bytes.len())?);
        self.owned.push(bytes);
        Some(())
    }

    /// How much is there now, to come back to with [`rewind`](Self::rewind).
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark { spans: self.spans.len(), owned: self.owned.len() }
    }

    /// Forgets what was added after `mark`.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.spans.truncate(mark.spans);
        self.owned.truncate(mark.owned);
    }

    /// Moves what was added after `mark` into `other`, which was empty.
    pub(super) fn move_tail(&mut self, mark: Mark, other: &mut Self) {
        debug_assert!(other.is_empty());
        other.owned.extend(self.owned.drain(mark.owned.min(self.owned.len())..));
        for span in self.spans.drain(mark.spans.min(self.spans.len())..) {
            other.spans.push(span.rebased(mark.owned, 0));
        }
    }

    /// Appends all of `other`, which is left empty.
    pub(super) fn append(&mut self, other: &mut Self) {
        let base = self.owned.len();
        self.owned.append(&mut other.owned);
        self.spans.extend(other.spans.drain(..).map(|span| span.rebased(0, base)));
    }

    /// The memory behind the list and its owned arguments.
    pub(super) fn held_bytes(&self) -> usize {
        let owned = self.owned.iter().fold(0usize, |sum, bytes| sum.saturating_add(bytes.capacity()));
        self.spans.capacity().saturating_mul(size_of::<Span>()).saturating_add(owned)
    }

    /// The first argument at or after `mark`.
    #[inline]
    pub(super) fn first_after(&self, mark: Mark) -> Option<Span> {
        self.spans.get(mark.spans).copied()
    }
}

impl Span {
    /// The same argument after its owned buffer has moved from a list where it came after `from` others into one where
    /// it comes after `to` others.
    #[inline]
    fn rebased(self, from: usize, to: usize) -> Self {
        match self.index() {
            None => self,
            Some(index) => {
                let index = index.wrapping_sub(from).wrapping_add(to);
                Self { start: (index as u32 & !OWNED) | OWNED, len: self.len }
            }
        }
    }
}

/// A place in [`Arguments`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    spans: usize,
    owned: usize,
}

/// A batch of some tens of usual commands stays within this many spans (512 KiB).
const SPANS_KEPT: usize = 65_536;
const OWNED_KEPT: usize = 64;
