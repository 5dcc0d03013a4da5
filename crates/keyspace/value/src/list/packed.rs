//! A run of elements in one buffer: a whole small list, and a leaf of a big one.
//!
//! ```text
//! element | ... | element || length | ... | length || bytes of the lengths | bytes as a listpack
//! ```
//!
//! Lengths are varints in the order of the elements. Only the last byte of a varint has its high bit clear, so the
//! lengths, and the two numbers after them, can be read from either side. Finding an element reads lengths only. An
//! empty list has no bytes.

use super::change::{Change, End};
use super::listpack::element_bytes;
use crate::Resize;
use crate::wire::take_varint_back;
use base::varint;
use std::ops::Range;

/// The elements of a buffer, or some neighbours of them, from either side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a> {
    data: &'a [u8],
    lengths: &'a [u8],
}

/// What stands in a buffer.
#[derive(Clone, Copy)]
struct Parts<'a> {
    elements: Elements<'a>,
    listpack_bytes: u64,
}

#[inline]
fn parts(bytes: &[u8]) -> Option<Parts<'_>> {
    let mut rest = bytes;
    if rest.is_empty() {
        return Some(Parts { elements: Elements::NONE, listpack_bytes: 0 });
    }
    let listpack_bytes = take_varint_back(&mut rest)?;
    let lengths = usize::try_from(take_varint_back(&mut rest)?).ok()?;
    let (data, lengths) = rest.split_at_checked(rest.len().checked_sub(lengths)?)?;
    Some(Parts { elements: Elements { data, lengths }, listpack_bytes })
}

#[inline]
fn stored(bytes: &[u8]) -> Parts<'_> {
    parts(bytes).expect("a packed list is checked where it is loaded and whole ever after")
}

/// The elements of a packed list.
#[inline]
pub(super) fn elements(bytes: &[u8]) -> Elements<'_> {
    stored(bytes).elements
}

/// What the elements would take in a listpack, without its header and end.
pub(super) fn listpack_bytes(bytes: &[u8]) -> u64 {
    stored(bytes).listpack_bytes
}

/// How many of the first elements take at most `bytes`, their lengths included.
pub(super) fn count_within(bytes: &[u8], bytes_max: usize) -> usize {
    let (mut rest, mut taken, mut count) = (elements(bytes).lengths, 0, 0);
    loop {
        let left = rest.len();
        let Some(length) = take_length(&mut rest) else { return count };
        taken += length + (left - rest.len());
        if taken > bytes_max {
            return count;
        }
        count += 1;
    }
}

/// The index before which about half of the bytes are.
pub(super) fn middle(bytes: &[u8]) -> usize {
    count_within(bytes, bytes.len() / 2)
}

/// Makes a change.
pub(super) fn apply(bytes: &mut impl Resize, change: &Change<'_>) {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    match *change {
        Change::Push { end, value } => push(bytes, end, value),
        Change::Insert { index, value } => insert(bytes, count(index), value),
        Change::Set { index, value } => set(bytes, count(index), value),
        Change::Pop { end: End::Head, count: popped } => remove(bytes, 0..count(popped)),
        Change::Pop { end: End::Tail, count: popped } => pop_back(bytes, count(popped)),
        Change::Remove { index, count: removed } => {
            let index = count(index);
            remove(bytes, index..index.saturating_add(count(removed)));
        }
    }
}

/// Whether these bytes are a packed list that is not empty, in its only form.
pub(super) fn is_valid(bytes: &[u8]) -> bool {
    let Some(Parts { elements, listpack_bytes }) = parts(bytes) else { return false };
    let (mut lengths, mut data, mut again) = (elements.lengths, elements.data, 0u64);
    while !lengths.is_empty() {
        let length = varint::take(&mut lengths).and_then(|length| usize::try_from(length).ok());
        let Some((element, rest)) = length.and_then(|length| data.split_at_checked(length)) else { return false };
        again = again.saturating_add(element_bytes(element));
        data = rest;
    }
    let numbers = varint::len(elements.lengths.len() as u64) + varint::len(listpack_bytes);
    let is_whole = elements.data.len() + elements.lengths.len() + numbers == bytes.len();
    !elements.lengths.is_empty() && data.is_empty() && again == listpack_bytes && is_whole
}

/// The lowest bit of each byte.
const LOW_BITS: u64 = u64::MAX / 0xFF;

impl<'a> Elements<'a> {
    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        /// A run of words whose bytes one byte can count.
        const WORDS_MAX: usize = u8::MAX as usize / 8;
        let (words, rest) = self.lengths.as_chunks::<8>();
        let ends = |word: &[u8; 8]| !u64::from_le_bytes(*word) >> 7 & LOW_BITS;
        // Eight counts side by side, and then their sum in the highest byte.
        let count = |counts: u64| (counts.wrapping_mul(LOW_BITS) >> 56) as usize;
        let last = match self.lengths.last_chunk() {
            _ if rest.is_empty() => 0,
            // Without the bytes that are in whole words.
            Some(word) => ends(word) >> (8 * (8 - rest.len())),
            None => {
                let mut word = [0x80; 8];
                word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                ends(&word)
            }
        };
        let whole = |words: &[[u8; 8]]| count(words.iter().map(ends).sum());
        let words = if words.len() <= WORDS_MAX { whole(words) } else { words.chunks(WORDS_MAX).map(whole).sum() };
        words + count(last)
    }

    /// Whether there is none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The element at an index.
    #[inline]
    pub(super) fn get(mut self, index: usize) -> Option<&'a [u8]> {
        self.drop_front(index);
        self.next()
    }

    /// No elements.
    pub(super) const NONE: Self = Self { data: &[], lengths: &[] };

    /// The first `count`.
    #[inline]
    pub(super) fn first(self, count: usize) -> Self {
        // Each has at least a byte of length.
        if count >= self.lengths.len() {
            return self;
        }
        let (data, lengths) = self.extent(count);
        Self { data: &self.data[..data], lengths: &self.lengths[..lengths] }
    }

    /// Leaves out the first `count`.
    #[inline]
    pub(super) fn drop_front(&mut self, count: usize) {
        let (data, lengths) = self.extent(count);
        self.data = &self.data[data..];
        self.lengths = &self.lengths[lengths..];
    }

    /// Leaves out the last `count`.
    #[inline]
    pub(super) fn drop_back(&mut self, count: usize) {
        for _ in 0..count {
            if self.next_back().is_none() {
                return;
            }
        }
    }

    /// Bytes of the first `count`: of the elements, and of their lengths.
    #[inline]
    fn extent(&self, count: usize) -> (usize, usize) {
        let (mut rest, mut data) = (self.lengths, 0);
        for _ in 0..count {
            let Some(length) = take_length(&mut rest) else { break };
            data += length;
        }
        (data, self.lengths.len() - rest.len())
    }

    /// What they would take in a listpack.
    fn listpack_bytes(self) -> u64 {
        self.map(element_bytes).sum()
    }
}

#[inline]
fn take_length(lengths: &mut &[u8]) -> Option<usize> {
    match *lengths {
        [] => None,
        [length @ 0..0x80, rest @ ..] => {
            *lengths = rest;
            Some(usize::from(*length))
        }
        _ => Some(varint::take(lengths)? as usize),
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let length = take_length(&mut self.lengths)?;
        let (element, rest) = self.data.split_at(length);
        self.data = rest;
        Some(element)
    }
}

impl DoubleEndedIterator for Elements<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.lengths.is_empty() {
            return None;
        }
        let length = take_varint_back(&mut self.lengths)? as usize;
        let (rest, element) = self.data.split_at(self.data.len() - length);
        self.data = rest;
        Some(element)
    }
}

/// Inserts an element before the one at `index`, or after the last.
pub(super) fn insert(bytes: &mut impl Resize, index: usize, element: &[u8]) {
    splice(bytes, index, 0, Some(element));
}

/// Appends an element: [`insert`] without counting.
pub(super) fn push_back(bytes: &mut impl Resize, element: &[u8]) {
    push(bytes, End::Tail, element);
}

/// Puts an element at an end.
pub(super) fn push(bytes: &mut impl Resize, end: End, element: &[u8]) {
    let Parts { elements: Elements { data, lengths }, listpack_bytes } = stored(bytes);
    let (data, lengths) = (data.len(), lengths.len());
    let (added, added_length) = (element.len(), varint::len(element.len() as u64));
    let (old_len, new_len) = (data + lengths, data + lengths + added + added_length);
    let numbers = Numbers { lengths: lengths + added_length, listpack_bytes: listpack_bytes + element_bytes(element) };
    bytes.resize_to(new_len + numbers.len());
    let bytes = &mut **bytes;
    let (place, length_place) = match end {
        End::Head => {
            bytes.copy_within(data..old_len, data + added + added_length);
            bytes.copy_within(..data, added);
            (0, data + added)
        }
        End::Tail => {
            bytes.copy_within(data..old_len, data + added);
            (data, new_len - added_length)
        }
    };
    bytes[place..place + added].copy_from_slice(element);
    put_length(&mut bytes[length_place..], added);
    numbers.write(&mut bytes[new_len..]);
}

/// Replaces the element at `index`, if there is one.
pub(super) fn set(bytes: &mut impl Resize, index: usize, element: &[u8]) {
    if elements(bytes).get(index).is_some() {
        splice(bytes, index, 1, Some(element));
    }
}

/// Removes the elements of a range, as far as there are any.
pub(super) fn remove(bytes: &mut impl Resize, range: Range<usize>) {
    splice(bytes, range.start, range.len(), None);
}

/// Removes the last `count`.
pub(super) fn pop_back(bytes: &mut impl Resize, count: usize) {
    let Parts { elements, listpack_bytes } = stored(bytes);
    let mut left = elements;
    left.drop_back(count);
    let (data, lengths) = (left.data.len(), left.lengths.len());
    if lengths == 0 {
        return bytes.resize_to(0);
    }
    let removed = Elements { data: &elements.data[data..], lengths: &elements.lengths[lengths..] };
    let listpack_bytes = listpack_bytes - removed.listpack_bytes();
    let lengths_at = elements.data.len();
    bytes.copy_within(lengths_at..lengths_at + lengths, data);
    finish(bytes, data + lengths, lengths, listpack_bytes);
}

/// Inserts an element before the first of a packed list that is not empty and starts after a gap with room for it.
/// Returns the remaining gap.
pub(super) fn push_front(bytes: &mut Vec<u8>, gap: usize, element: &[u8]) -> usize {
    let Parts { elements, listpack_bytes } = stored(&bytes[gap..]);
    let lengths = gap + elements.data.len()..gap + elements.data.len() + elements.lengths.len();
    let (first, added) = (gap - element.len(), varint::len(element.len() as u64));
    let end = lengths.end + added;
    let numbers = Numbers { lengths: lengths.len() + added, listpack_bytes: listpack_bytes + element_bytes(element) };
    bytes.resize_to(end + numbers.len());
    bytes[first..gap].copy_from_slice(element);
    bytes.copy_within(lengths.clone(), lengths.start + added);
    put_length(&mut bytes[lengths.start..], element.len());
    numbers.write(&mut bytes[end..]);
    first
}

/// Removes the first elements, but not all, of a packed list that starts after a gap. Returns the new gap.
pub(super) fn pop_front(bytes: &mut Vec<u8>, gap: usize, count: usize) -> usize {
    let Parts { elements, listpack_bytes } = stored(&bytes[gap..]);
    let removed = elements.first(count);
    let listpack_bytes = listpack_bytes - removed.listpack_bytes();
    let lengths = gap + elements.data.len()..gap + elements.data.len() + elements.lengths.len();
    let (first, removed_lengths) = (gap + removed.data.len(), removed.lengths.len());
    bytes.copy_within(lengths.start + removed_lengths..lengths.end, lengths.start);
    finish(bytes, lengths.end - removed_lengths, lengths.len() - removed_lengths, listpack_bytes);
    first
}

/// Makes the gap before a packed list so wide.
pub(super) fn widen_gap(bytes: &mut Vec<u8>, gap: usize, wide: usize) {
    let len = bytes.len();
    bytes.resize_to(len + wide - gap);
    bytes.copy_within(gap..len, wide);
}

/// Moves the elements from `index` on into a buffer of their own.
pub(super) fn split_off(bytes: &mut Vec<u8>, index: usize) -> Vec<u8> {
    let Parts { elements: all, listpack_bytes: of_all } = stored(bytes);
    let (data, lengths) = all.extent(index);
    let tail = Elements { data: &all.data[data..], lengths: &all.lengths[lengths..] };
    let head = Elements { data: &all.data[..data], lengths: &all.lengths[..lengths] };
    // Of the shorter part it is found out element by element.
    let listpack_bytes = match lengths < tail.lengths.len() {
        true => of_all - head.listpack_bytes(),
        false => tail.listpack_bytes(),
    };
    let mut other = Vec::with_capacity(tail.data.len() + tail.lengths.len() + 2 * varint::MAX_LEN);
    if !tail.lengths.is_empty() {
        other.extend_from_slice(tail.data);
        other.extend_from_slice(tail.lengths);
        let end = other.len();
        finish(&mut other, end, tail.lengths.len(), listpack_bytes);
    }
    if lengths == 0 {
        bytes.clear();
    } else {
        let lengths_at = all.data.len();
        bytes.copy_within(lengths_at..lengths_at + lengths, data);
        finish(bytes, data + lengths, lengths, of_all - listpack_bytes);
    }
    other
}

/// Appends the elements of another buffer.
pub(super) fn append(bytes: &mut Vec<u8>, other: &[u8]) {
    let (ours, theirs) = (stored(bytes), stored(other));
    let (data, lengths) = (ours.elements.data.len(), ours.elements.lengths.len());
    let (more, more_lengths) = (theirs.elements.data, theirs.elements.lengths);
    let listpack_bytes = ours.listpack_bytes + theirs.listpack_bytes;
    bytes.truncate(data + lengths);
    bytes.extend_from_slice(more);
    bytes.extend_from_slice(more_lengths);
    bytes.copy_within(data..data + lengths, data + more.len());
    bytes[data..data + more.len()].copy_from_slice(more);
    if lengths + more_lengths.len() > 0 {
        let end = bytes.len();
        finish(bytes, end, lengths + more_lengths.len(), listpack_bytes);
    }
}

#[inline]
fn splice(bytes: &mut impl Resize, index: usize, removed: usize, element: Option<&[u8]>) {
    let place = |all: Elements<'_>| {
        let start = match index {
            usize::MAX => (all.data.len(), all.lengths.len()),
            _ => all.extent(index),
        };
        let mut behind = Elements { data: &all.data[start.0..], lengths: &all.lengths[start.1..] };
        behind = behind.first(removed);
        (start, (start.0 + behind.data.len(), start.1 + behind.lengths.len()))
    };
    replace(bytes, place, element);
}

/// An offset among the elements and one among the lengths.
type Place = (usize, usize);

/// Replaces the elements between two places by one or none. `place` finds them.
#[inline]
fn replace(bytes: &mut impl Resize, place: impl FnOnce(Elements<'_>) -> (Place, Place), element: Option<&[u8]>) {
    let Parts { elements: all, listpack_bytes } = stored(bytes);
    let (start, end) = place(all);
    let Elements { data, lengths } = all;
    let (data_len, lengths_len) = (data.len(), lengths.len());
    let removed = Elements { data: &data[start.0..end.0], lengths: &lengths[start.1..end.1] };
    let listpack_bytes = listpack_bytes - removed.listpack_bytes() + element.map_or(0, element_bytes);
    let added = element.map_or(0, <[u8]>::len);
    let added_length = element.map_or(0, |element| varint::len(element.len() as u64));
    let new_data = start.0 + added + (data_len - end.0);
    let new_lengths = start.1 + added_length + (lengths_len - end.1);
    if new_lengths == 0 {
        return bytes.resize_to(0);
    }
    // Elements after the place and lengths before it are adjacent and move as one; lengths after it follow.
    let (old_len, new_len) = (data_len + lengths_len, new_data + new_lengths);
    if new_len > old_len {
        bytes.resize_to(new_len);
    }
    let (near, far) = (end.0..data_len + start.1, data_len + end.1..old_len);
    let (near_to, far_to) = (start.0 + added, new_len - far.len());
    if near_to >= near.start {
        bytes.copy_within(far, far_to);
        bytes.copy_within(near, near_to);
    } else {
        bytes.copy_within(near, near_to);
        bytes.copy_within(far, far_to);
    }
    if let Some(element) = element {
        bytes[start.0..start.0 + added].copy_from_slice(element);
        put_length(&mut bytes[new_data + start.1..], element.len());
    }
    finish(bytes, new_len, new_lengths, listpack_bytes);
}

/// Writes a length where [`varint::len`] bytes are free for it.
fn put_length(to: &mut [u8], mut length: usize) {
    let mut at = 0;
    while length >= 0x80 {
        to[at] = length as u8 | 0x80;
        length >>= 7;
        at += 1;
    }
    to[at] = length as u8;
}

/// The two numbers at the end.
struct Numbers {
    lengths: usize,
    listpack_bytes: u64,
}

impl Numbers {
    #[inline]
    fn len(&self) -> usize {
        varint::len(self.lengths as u64) + varint::len(self.listpack_bytes)
    }

    /// Writes them where there is room for just them.
    #[inline]
    fn write(&self, place: &mut [u8]) {
        let at = varint::write(place, self.lengths as u64);
        varint::write(&mut place[at..], self.listpack_bytes);
    }
}

/// Writes the two numbers after the first `len` bytes, in place of what is there.
fn finish(bytes: &mut impl Resize, end: usize, lengths: usize, listpack_bytes: u64) {
    let numbers = Numbers { lengths, listpack_bytes };
    bytes.resize_to(end + numbers.len());
    numbers.write(&mut bytes[end..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(values: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| push_back(&mut bytes, value));
        bytes
    }

    fn check(bytes: &[u8], model: &[Vec<u8>]) {
        assert_eq!(elements(bytes).map(<[u8]>::to_vec).collect::<Vec<_>>(), model);
        let back: Vec<_> = elements(bytes).rev().map(<[u8]>::to_vec).collect();
        assert!(back.iter().rev().eq(model));
        assert_eq!(elements(bytes).len(), model.len());
        assert_eq!(bytes.is_empty(), model.is_empty());
        assert!(model.is_empty() || is_valid(bytes));
        assert_eq!(bytes, pack(model), "one form only");
    }

    /// The aim for a list of 100 elements of 8 bytes; the entry around it is small in comparison.
    #[test]
    fn an_element_takes_one_byte_more() {
        let bytes = pack(&(0..100).map(|number| format!("e{number:07}").into_bytes()).collect::<Vec<_>>());
        assert_eq!(bytes.len(), 100 * 9 + 3);
    }

    fn value() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..4),
            (-5000i64..5000).prop_map(|integer| integer.to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 120..140),
            Just(vec![b'x'; 17_000]),
        ]
    }

    proptest! {
        #[test]
        fn edits_are_those_of_a_vector(
            edits in prop::collection::vec((0u8..7, 0usize..12, 0usize..6, value()), 0..60)
        ) {
            let (mut bytes, mut model) = (Vec::new(), Vec::<Vec<u8>>::new());
            for (what, index, count, value) in edits {
                let at = index.min(model.len());
                match what {
                    0 => {
                        insert(&mut bytes, at, &value);
                        model.insert(at, value);
                    }
                    1 => {
                        push_back(&mut bytes, &value);
                        model.push(value);
                    }
                    5 => {
                        push(&mut bytes, End::Head, &value);
                        model.insert(0, value);
                    }
                    2 if at < model.len() => {
                        set(&mut bytes, at, &value);
                        model[at] = value;
                    }
                    3 => {
                        let end = (at + count).min(model.len());
                        remove(&mut bytes, at..at + count);
                        model.drain(at..end);
                    }
                    4 => {
                        pop_back(&mut bytes, count);
                        model.truncate(model.len().saturating_sub(count));
                    }
                    _ => {
                        let other = split_off(&mut bytes, at);
                        check(&bytes, &model[..at]);
                        check(&other, &model[at..]);
                        append(&mut bytes, &other);
                    }
                }
                check(&bytes, &model);
                // What `Limit::surely_holds` relies on.
                assert!(listpack_bytes(&bytes) <= 2 * bytes.len() as u64);
            }
        }

        /// No bytes make validation or, once valid, reading panic; and valid bytes have one form.
        #[test]
        fn validation_is_total(
            mut bytes: Vec<u8>, values in prop::collection::vec(value(), 0..4), flip: Option<(usize, u8)>
        ) {
            if !values.is_empty() {
                bytes = pack(&values);
            }
            if let Some((at, mask)) = flip && !bytes.is_empty() {
                let at = at % bytes.len();
                bytes[at] ^= mask;
            }
            if is_valid(&bytes) {
                let read: Vec<_> = elements(&bytes).map(<[u8]>::to_vec).collect();
                prop_assert_eq!(pack(&read), bytes);
            }
        }
    }
}
