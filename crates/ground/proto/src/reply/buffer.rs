use super::Protocol;
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// The replies of one connection that have not been sent: bytes, with large values spliced in by reference.
///
/// ```text
///  bytes    :1\r\n$20000\r\n\r\n+OK\r\n          one vector, to which commands append
///           ^sent        ^at
///  shared                [20000 bytes]           sent after the bytes before `at`
/// ```
///
/// Q1. `sent <= shared[0].at <= shared[1].at <= ... <= bytes.len()`.
/// Q2. A shared value in the queue has bytes to be sent.
#[derive(Debug, Default)]
pub struct ReplyBuffer {
    pub(super) bytes: Vec<u8>,
    /// How many of `bytes` have been sent.
    sent: usize,
    pub(super) shared: VecDeque<Shared>,
    /// Bytes of shared values that have not been sent.
    shared_len: usize,
    protocol: Protocol,
    /// The words of errors.
    pub(super) words: Words,
    /// The pipe whose requests are being answered.
    pub(super) pipe: Option<Box<super::pipe::Pipe>>,
}

/// A dialect, as errors need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Words {
    #[default]
    Resp,
    Memcached,
    Ssdb,
}

#[derive(Debug)]
pub(super) struct Shared {
    /// Where in the bytes the value stands.
    pub at: usize,
    value: Arc<Vec<u8>>,
    /// How many of its bytes have been sent.
    sent: usize,
}

/// A place between two replies, to come back to if a command fails after it has begun to reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyMark {
    bytes: usize,
    shared: usize,
}

/// Bytes already sent are cut off when there are this many and they are more than those that are not.
const SENT_BYTES_KEPT: usize = 64 * 1024;

impl ReplyBuffer {
    /// An empty queue, which holds no memory.
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, ..Self::default() }
    }

    /// The protocol that replies are written in.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Changes the protocol of the replies that follow.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// How many bytes are waiting to be sent.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len().wrapping_sub(self.sent).wrapping_add(self.shared_len)
    }

    /// How many of them are held here, and not by reference.
    #[inline]
    pub fn copied_len(&self) -> usize {
        self.bytes.len().wrapping_sub(self.sent)
    }

    /// Whether nothing is waiting to be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes to be sent, if they lie together: one plain write sends them. `None` if there are shared values.
    #[inline]
    pub fn as_contiguous(&self) -> Option<&[u8]> {
        if self.shared.is_empty() { self.bytes.get(self.sent..) } else { None }
    }

    /// The bytes to be sent in order, for a vectored write.
    pub fn io_slices(&self) -> impl Iterator<Item = IoSlice<'_>> {
        self.slices().map(IoSlice::new)
    }

    /// The first `len` bytes to be sent, or all if there are fewer.
    pub fn io_slices_up_to(&self, mut len: usize) -> impl Iterator<Item = IoSlice<'_>> {
        self.slices().map_while(move |slice| {
            let first = slice.get(..slice.len().min(len))?;
            len = len.wrapping_sub(first.len());
            (!first.is_empty()).then(|| IoSlice::new(first))
        })
    }

    fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = self.sent;
        self.shared
            .iter()
            .map(Some)
            .chain([None])
            .flat_map(move |shared| {
                let to = shared.map_or(self.bytes.len(), |shared| shared.at);
                let bytes = self.bytes.get(from..to).unwrap_or_default();
                from = to;
                [bytes, shared.map_or(&[], Shared::rest)]
            })
            .filter(|slice| !slice.is_empty())
    }

    /// Takes the first `count` bytes out of the queue, after they have been sent.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.len(), "{count} bytes sent of {}", self.len());
        if self.shared.is_empty() {
            self.sent = self.sent.wrapping_add(count);
        } else {
            self.advance_over_shared(count);
        }
        if self.is_empty() {
            self.bytes.clear();
            self.sent = 0;
        } else if self.sent >= SENT_BYTES_KEPT && self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            for shared in &mut self.shared {
                shared.at = shared.at.wrapping_sub(self.sent);
            }
            self.sent = 0;
        }
    }

    fn advance_over_shared(&mut self, mut count: usize) {
        while count > 0 {
            let next = self.shared.front().map_or(self.bytes.len(), |shared| shared.at);
            let step = count.min(next.wrapping_sub(self.sent));
            self.sent = self.sent.wrapping_add(step);
            count = count.wrapping_sub(step);
            let Some(front) = self.shared.front_mut() else { return };
            let step = count.min(front.rest().len());
            front.sent = front.sent.wrapping_add(step);
            self.shared_len = self.shared_len.wrapping_sub(step);
            count = count.wrapping_sub(step);
            if front.rest().is_empty() {
                self.shared.pop_front();
            }
        }
    }

    /// The memory of the queue if it is empty, so that an idle connection holds none and the next one to reply can
    /// [`adopt`](Self::adopt) it. `None` if bytes are waiting, or there is no memory.
    pub fn release(&mut self) -> Option<Vec<u8>> {
        if !self.is_empty() || self.bytes.capacity() == 0 {
            return None;
        }
        self.shared = VecDeque::new();
        self.sent = 0;
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        Some(bytes)
    }

    /// Gives the queue memory to write into, unless it has some. The contents of `memory` are forgotten.
    pub fn adopt(&mut self, mut memory: Vec<u8>) {
        if self.bytes.capacity() == 0 {
            memory.clear();
            self.bytes = memory;
        }
    }

    /// The memory that the queue keeps alive: its own, and its share of the spliced values' unsent bytes, which others
    /// may hold too. Takes time in proportion to the number of those values.
    pub fn held_bytes(&self) -> usize {
        let spliced = self.shared.capacity().saturating_mul(size_of::<Shared>());
        let values = self
            .shared
            .iter()
            .map(|shared| shared.rest().len().checked_div(Arc::strong_count(&shared.value)).unwrap_or(0));
        self.bytes.capacity().saturating_add(spliced).saturating_add(values.sum())
    }

    /// The end of what has been written.
    #[inline]
    pub fn mark(&self) -> ReplyMark {
        ReplyMark { bytes: self.bytes.len(), shared: self.shared.len() }
    }

    /// How many bytes waiting to be sent stand before the mark. Takes time in proportion to the number of spliced
    /// values.
    pub fn len_before(&self, mark: ReplyMark) -> usize {
        let shared = self.shared.iter().take(mark.shared).map(|shared| shared.rest().len());
        mark.bytes.wrapping_sub(self.sent).wrapping_add(shared.sum())
    }

    /// Takes back what was written after `mark`. Nothing may have been sent in between.
    pub fn rewind(&mut self, mark: ReplyMark) {
        debug_assert!(self.sent <= mark.bytes && mark.bytes <= self.bytes.len());
        self.bytes.truncate(mark.bytes);
        for shared in self.shared.drain(mark.shared.min(self.shared.len())..) {
            self.shared_len = self.shared_len.wrapping_sub(shared.rest().len());
        }
    }

    /// Appends the replies of another queue, of which nothing has been sent, in the protocol they were written in.
    pub fn append(&mut self, other: Self) {
        debug_assert!(other.sent == 0 && other.shared.iter().all(|shared| shared.sent == 0));
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.shared_len = self.shared_len.wrapping_add(other.shared_len);
        let moved = other.shared.into_iter().map(|shared| Shared { at: shared.at.wrapping_add(start), ..shared });
        self.shared.extend(moved);
    }

    /// Splices `value` in at the end.
    pub(super) fn push_shared(&mut self, value: Arc<Vec<u8>>) {
        if !value.is_empty() {
            self.shared_len = self.shared_len.wrapping_add(value.len());
            self.shared.push_back(Shared { at: self.bytes.len(), value, sent: 0 });
        }
    }

    /// Puts `header` in the place of the `placeholder` bytes at `at`, which are not sent yet; what follows moves.
    pub(super) fn replace(&mut self, at: usize, placeholder: usize, header: &[u8]) {
        debug_assert!(self.sent <= at && placeholder <= header.len());
        let end = at.wrapping_add(placeholder).min(self.bytes.len());
        self.bytes.splice(at.min(end)..end, header.iter().copied());
        let moved = header.len().wrapping_sub(placeholder);
        for shared in self.shared.iter_mut().rev().take_while(|shared| shared.at >= end) {
            shared.at = shared.at.wrapping_add(moved);
        }
    }
}

impl Shared {
    fn rest(&self) -> &[u8] {
        self.value.get(self.sent..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pending(reply: &ReplyBuffer) -> Vec<u8> {
        reply.io_slices().flat_map(|slice| slice.to_vec()).collect()
    }

    /// What is sent in pieces of any size is what was written, while more is written.
    #[derive(Debug, Clone)]
    enum Step {
        Bulk(usize),
        Shared(usize),
        Send(prop::sample::Index),
        WriteAndTakeBack(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0usize..100_000).prop_map(Step::Bulk),
            (0usize..100_000).prop_map(Step::Shared),
            any::<prop::sample::Index>().prop_map(Step::Send),
            any::<prop::sample::Index>().prop_map(Step::Send),
            (0usize..50_000).prop_map(Step::WriteAndTakeBack),
        ]
    }

    proptest! {
        #[test]
        fn bytes_leave_in_the_order_of_writing(steps in prop::collection::vec(step(), 1..30)) {
            let mut reply = ReplyBuffer::new(Protocol::Resp2);
            let (mut written, mut sent) = (Vec::new(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Bulk(len) | Step::Shared(len) => {
                        let value = vec![number as u8; len];
                        written.extend_from_slice(format!("${len}\r\n").as_bytes());
                        written.extend_from_slice(&value);
                        written.extend_from_slice(b"\r\n");
                        let mut apart = ReplyBuffer::new(Protocol::Resp2);
                        match step {
                            Step::Bulk(_) => reply.bulk(&value),
                            _ if len % 2 == 0 => reply.bulk_shared(Arc::new(value)),
                            _ => {
                                apart.bulk_shared(Arc::new(value));
                                reply.append(apart);
                            }
                        }
                    }
                    Step::Send(index) => {
                        let count = index.index(reply.len() + 1);
                        sent.extend_from_slice(&pending(&reply)[..count]);
                        reply.advance(count);
                    }
                    Step::WriteAndTakeBack(len) => {
                        let mark = reply.mark();
                        prop_assert_eq!(reply.len_before(mark), reply.len());
                        let open = reply.begin_array();
                        reply.bulk_shared(Arc::new(vec![7; len]));
                        reply.end(open, 12);
                        reply.integer(1);
                        prop_assert_eq!(sent.len() + reply.len_before(mark), written.len());
                        reply.rewind(mark);
                    }
                }
                prop_assert_eq!(sent.len() + reply.len(), written.len());
                prop_assert_eq!(pending(&reply).len(), reply.len());
                let half = reply.len() / 2;
                let first: Vec<u8> = reply.io_slices_up_to(half).flat_map(|slice| slice.to_vec()).collect();
                prop_assert_eq!(first, &pending(&reply)[..half]);
                if let Some(bytes) = reply.as_contiguous() {
                    prop_assert_eq!(bytes, pending(&reply));
                }
            }
            sent.extend_from_slice(&pending(&reply));
            reply.advance(reply.len());
            prop_assert_eq!(sent, written);
            prop_assert!(reply.is_empty());
        }
    }

    #[test]
    #[should_panic = "2 bytes sent of 1"]
    fn more_than_there_is_cannot_be_sent() {
        let mut reply = ReplyBuffer::default();
        reply.bytes.push(b'x');
        reply.advance(2);
    }

    #[test]
    fn an_empty_queue_gives_its_memory_away() {
        let mut reply = ReplyBuffer::default();
        assert_eq!(reply.release(), None);
        reply.ok();
        reply.bulk_shared(Arc::new(vec![1; 20_000]));
        assert_eq!(reply.release(), None);
        reply.advance(reply.len());
        let memory = reply.release().unwrap();
        assert!(memory.is_empty() && memory.capacity() > 0);
        assert_eq!(reply.held_bytes(), 0);
        reply.adopt(memory);
        assert!(reply.held_bytes() > 0);
        reply.ok();
        reply.adopt(b"other".to_vec());
        assert_eq!(pending(&reply), b"+OK\r\n");
    }

    /// A slow reader of a long stream of small replies does not make the queue keep what it has read.
    #[test]
    fn sent_bytes_are_let_go_while_others_wait() {
        let mut reply = ReplyBuffer::default();
        for _ in 0..10_000 {
            reply.bulk(&[1; 1000]);
            if reply.len() > 100_000 {
                reply.advance(1000);
            }
        }
        assert!(reply.held_bytes() < 2_000_000, "{}", reply.held_bytes());
    }
}
