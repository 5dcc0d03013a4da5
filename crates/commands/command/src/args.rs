//! The arguments of one request, where they lie.

use engine::{SharedBytes, Value};
use proto::Span;
use value::reaper;

/// A request's arguments, its name first: slices of the input they came in, or big ones in allocations of their own.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    input: &'a [u8],
    spans: &'a [Span],
    large: &'a [SharedBytes],
    /// The index that spans give to the first of `large`.
    large_from: usize,
}

impl<'a> Args<'a> {
    /// `spans` lie in `input`, which begins with their request, or name one of `large`.
    #[inline]
    pub fn new(input: &'a [u8], spans: &'a [Span], large: &'a [SharedBytes]) -> Self {
        Self { input, spans, large, large_from: 0 }
    }

    /// How many, with the name.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a request has a name")]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// The argument at `index`; `None` past the end.
    #[inline]
    pub fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        self.value(index).map(Value::bytes)
    }

    /// The argument at `index` as a value to store: shared, not copied, when it was received into a buffer of its own.
    #[inline]
    pub fn value(&self, index: usize) -> Option<Value<'a>> {
        let span = *self.spans.get(index)?;
        match span.large_index() {
            None => span.of(self.input).map(Value::Bytes),
            Some(large) => self.large.get(large.checked_sub(self.large_from)?).map(Value::Shared),
        }
    }

    /// Bytes of all arguments.
    #[inline]
    pub fn total_bytes(&self) -> usize {
        // Spans are less than 2^32 of less than 2^32 bytes.
        self.spans.iter().fold(0, |sum: usize, span| sum.wrapping_add(span.len()))
    }

    /// The arguments from `from` on.
    pub fn from(&self, from: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone + use<'a> {
        let args = *self;
        (from..args.len()).map(move |index| args.bytes(index).unwrap_or_default())
    }

    /// The request without its first arguments: what stands in ACL DRYRUN. There must be more than `count`.
    #[must_use]
    pub fn skip(&self, count: usize) -> Self {
        Self { spans: self.spans.get(count..).unwrap_or_default(), ..*self }
    }

    /// Copies the request, to run it later; big arguments are shared.
    pub fn to_owned(&self) -> OwnedArgs {
        let end = self.spans.iter().filter_map(|span| span.range()).map(|range| range.end).max().unwrap_or(0);
        let large = self.spans.iter().filter_map(|span| span.large_index());
        let first = large.clone().min().unwrap_or(0);
        let count = large.max().map_or(0, |last| last.saturating_sub(first).saturating_add(1));
        OwnedArgs {
            input: self.input.get(..end).unwrap_or_default().into(),
            spans: self.spans.into(),
            large: self.large.iter().skip(first.saturating_sub(self.large_from)).take(count).cloned().collect(),
            large_from: first,
        }
    }
}

/// The argument, which arity and earlier checks have shown to be there; empty otherwise.
impl std::ops::Index<usize> for Args<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.bytes(index).unwrap_or_default()
    }
}

/// A request that owns its bytes: queued by MULTI, or waiting.
#[derive(Debug, Default)]
pub struct OwnedArgs {
    input: Box<[u8]>,
    spans: Box<[Span]>,
    large: Box<[SharedBytes]>,
    large_from: usize,
}

impl Drop for OwnedArgs {
    fn drop(&mut self) {
        std::mem::take(&mut self.large).into_iter().for_each(reaper::free_bytes);
    }
}

impl OwnedArgs {
    /// The arguments, borrowed.
    pub fn as_args(&self) -> Args<'_> {
        Args { input: &self.input, spans: &self.spans, large: &self.large, large_from: self.large_from }
    }

    /// Puts a short text in the place of the argument at `index`.
    pub fn replace(&mut self, index: usize, text: &[u8]) {
        let end = self.input.len();
        if let (Some(place), Some(span)) = (self.spans.get_mut(index), Span::new(end, text.len())) {
            *place = span;
            self.input = [&*self.input, text].concat().into();
        }
    }

    /// Bytes held.
    pub fn held_bytes(&self) -> usize {
        let large = self.large.iter().fold(0, |sum: usize, bytes| sum.saturating_add(bytes.len()));
        self.input.len().saturating_add(size_of_val(&*self.spans)).saturating_add(large)
    }
}
