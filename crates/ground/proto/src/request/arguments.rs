use std::ops::Range;
use std::sync::Arc;

/// One argument of a request: where its bytes are. Either a range of the input given to
/// [`RequestParser::parse`](super::RequestParser::parse), or one of [`Arguments::large`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Offset in the input, or [`LARGE`] plus the index of the large argument.
    start: u32,
    len: u32,
}

/// Marks a span that is no range of the input. Offsets in the input stay below it.
const LARGE: u32 = 1 << 31;

impl Span {
    /// No bytes.
    pub(super) const EMPTY: Self = Self { start: 0, len: 0 };

    /// Where a span may end at most.
    pub(super) const END_MAX: usize = LARGE as usize - 1;

    /// The span of `input[start..start + len]`. `None` if it reaches 2 GiB or beyond.
    #[inline]
    pub fn new(start: usize, len: usize) -> Option<Self> {
        (start.checked_add(len)? <= Self::END_MAX).then(|| Self::below_end_max(start, len))
    }

    /// The span of `input[start..start + len]`, which the caller knows to end at or before [`END_MAX`](Self::END_MAX).
    #[inline]
    pub(super) fn below_end_max(start: usize, len: usize) -> Self {
        debug_assert!(start.saturating_add(len) <= Self::END_MAX);
        Self { start: start as u32, len: len as u32 }
    }

    /// The span of the large argument at `index`. `None` if index or length cannot be expressed.
    fn large(index: usize, len: usize) -> Option<Self> {
        let index = u32::try_from(index).ok().filter(|index| *index < LARGE)?;
        Some(Self { start: index | LARGE, len: u32::try_from(len).ok()? })
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

    /// The range of the input. `None` for a large argument.
    #[inline]
    pub fn range(self) -> Option<Range<usize>> {
        let start = self.start as usize;
        (self.start & LARGE == 0).then(|| start..start.wrapping_add(self.len()))
    }

    /// The bytes, where `input` is what was given to the `parse` call that completed the request. `None` for a large
    /// argument, and for a span of another input that reaches beyond this one.
    #[inline]
    pub fn of(self, input: &[u8]) -> Option<&[u8]> {
        input.get(self.range()?)
    }

    /// The index in [`Arguments::large`]. `None` for a range of the input.
    #[inline]
    pub fn large_index(self) -> Option<usize> {
        (self.start & LARGE != 0).then_some((self.start & !LARGE) as usize)
    }
}

/// The arguments of a batch of requests, one after the other: a request is a range of [`spans`](Self::spans). One
/// `Arguments` serves all connections of a worker and is cleared after each batch, so that parsing allocates nothing.
///
/// It also holds the few arguments that are not a range of the input: large bulks, which were received into a buffer of
/// their own and can be stored without a copy; and inline words with quotes, of any length.
#[derive(Debug, Default)]
pub struct Arguments {
    spans: Vec<Span>,
    large: Vec<Arc<Vec<u8>>>,
}

impl Arguments {
    /// No arguments, no memory.
    pub const fn new() -> Self {
        Self { spans: Vec::new(), large: Vec::new() }
    }

    /// All arguments in the order of parsing.
    #[inline]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The arguments that are not ranges of the input, by [`Span::large_index`].
    #[inline]
    pub fn large(&self) -> &[Arc<Vec<u8>>] {
        &self.large
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
    /// for a span of another input or of an earlier batch.
    #[inline]
    pub fn bytes<'a>(&'a self, input: &'a [u8], span: Span) -> &'a [u8] {
        match span.large_index() {
            None => span.of(input),
            Some(index) => self.large.get(index).map(|bytes| bytes.as_slice()),
        }
        .unwrap_or_default()
    }

    /// Takes the large arguments out, before [`clear`](Self::clear): they may be so long that freeing them takes time.
    #[inline]
    pub fn take_large(&mut self) -> impl Iterator<Item = Arc<Vec<u8>>> {
        self.large.drain(..)
    }

    /// Forgets all arguments, and lets go of the large ones. The lists keep the memory that a usual batch needs.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.spans.shrink_to(SPANS_KEPT);
        self.large.clear();
        self.large.shrink_to(LARGE_KEPT);
    }

    /// Adds an argument that is a range of the input.
    #[inline]
    pub(crate) fn push(&mut self, span: Span) {
        self.spans.push(span);
    }

    /// Adds `bytes` as a large argument. `None` if its span cannot be expressed.
    pub(super) fn push_large(&mut self, bytes: Vec<u8>) -> Option<()> {
        self.push_shared(Arc::new(bytes))
    }

    /// Adds bytes that others may hold as a large argument. `None` if its span cannot be expressed.
    pub(crate) fn push_shared(&mut self, bytes: Arc<Vec<u8>>) -> Option<()> {
        self.spans.push(Span::large(self.large.len(), bytes.len())?);
        self.large.push(bytes);
        Some(())
    }

    /// How much is there now, to come back to with [`rewind`](Self::rewind).
    #[inline]
    pub(crate) fn mark(&self) -> Mark {
        Mark { spans: self.spans.len(), large: self.large.len() }
    }

    /// Forgets what was added after `mark`.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.spans.truncate(mark.spans);
        self.large.truncate(mark.large);
    }

    /// Takes the arguments added after `mark` out. They are ranges of the input: an array that has only begun has no
    /// large argument yet, and an inline request is added as a whole.
    pub(super) fn split_off(&mut self, mark: Mark) -> Self {
        debug_assert_eq!(self.large.len(), mark.large);
        let spans = self.spans.drain(mark.spans.min(self.spans.len())..).collect();
        Self { spans, large: Vec::new() }
    }

    /// Appends all of `other`, which is left empty.
    pub(super) fn append(&mut self, other: &mut Self) {
        let base = self.large.len();
        self.large.append(&mut other.large);
        self.spans.extend(other.spans.drain(..).map(|span| span.behind(base)));
    }

    /// The memory of the lists and the large arguments.
    pub(super) fn held_bytes(&self) -> usize {
        let large = self.large.iter().fold(0usize, |sum, bytes| sum.saturating_add(bytes.capacity()));
        self.spans.capacity().saturating_mul(size_of::<Span>()).saturating_add(large)
    }

    /// The first argument at or after `mark`.
    #[inline]
    pub(super) fn first_after(&self, mark: Mark) -> Option<Span> {
        self.spans.get(mark.spans).copied()
    }
}

impl Span {
    /// The same argument after its large bytes have moved into a list that held `others` before.
    #[inline]
    fn behind(self, others: usize) -> Self {
        match self.large_index() {
            None => self,
            Some(index) => Self { start: (index.wrapping_add(others) as u32 & !LARGE) | LARGE, len: self.len },
        }
    }
}

/// A place in [`Arguments`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    spans: usize,
    large: usize,
}

/// A batch of some tens of usual commands stays within this many spans (512 KiB).
const SPANS_KEPT: usize = 65_536;
const LARGE_KEPT: usize = 64;
