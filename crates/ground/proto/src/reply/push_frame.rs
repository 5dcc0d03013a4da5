//! A push message, encoded once for all that get it.

use super::write::{SHARED_BYTES_MIN, put_header};
use super::{Protocol, ReplyBuffer};
use std::sync::Arc;

/// An aggregate with everything but its first byte, which says in the receiver's protocol what it is: an array in
/// RESP2, a push in RESP3.
#[derive(Debug)]
pub struct PushFrame {
    /// The number of elements, all of them, and the header of the text if there is one.
    head: Box<[u8]>,
    text: Option<Arc<Vec<u8>>>,
}

impl PushFrame {
    /// These strings, and then the text, which is shared.
    pub fn with_text(words: &[&[u8]], text: Arc<Vec<u8>>) -> Self {
        let mut head = Self::begin(words, words.len().saturating_add(1));
        put_header(&mut head, b'$', text.len());
        Self { head: head.into_boxed_slice(), text: Some(text) }
    }

    fn begin(words: &[&[u8]], count: usize) -> Vec<u8> {
        let mut head = Vec::with_capacity(words.iter().map(|word| word.len().saturating_add(16)).sum::<usize>());
        put_header(&mut head, b'*', count);
        // The first byte is the receiver's.
        head.remove(0);
        for word in words {
            put_header(&mut head, b'$', word.len());
            head.extend_from_slice(word);
            head.extend_from_slice(b"\r\n");
        }
        head
    }

    /// The bytes a receiver is sent.
    pub fn sent_bytes(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |text| text.len().saturating_add(2));
        self.head.len().saturating_add(text).saturating_add(1)
    }
}

impl ReplyBuffer {
    /// A message that is not a reply. Its text is copied or, from [`SHARED_BYTES_MIN`] on, sent from where it is.
    pub fn push_frame(&mut self, frame: &PushFrame) {
        let kind = match self.protocol() {
            Protocol::Resp2 => b'*',
            Protocol::Resp3 => b'>',
        };
        self.bytes.reserve(frame.head.len().saturating_add(3));
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&frame.head);
        if let Some(text) = &frame.text {
            match text.len() < SHARED_BYTES_MIN {
                true => self.bytes.extend_from_slice(text),
                false => self.push_shared(text.clone()),
            }
            self.bytes.extend_from_slice(b"\r\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(protocol: Protocol, frame: &PushFrame) -> Vec<u8> {
        let mut reply = ReplyBuffer::new(protocol);
        reply.push_frame(frame);
        assert_eq!(reply.len(), frame.sent_bytes());
        reply.io_slices().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn a_frame_is_an_array_or_a_push() {
        let frame = PushFrame::with_text(&[b"message", b"news"], Arc::new(b"hello".to_vec()));
        assert_eq!(sent(Protocol::Resp2, &frame), b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
        assert_eq!(sent(Protocol::Resp3, &frame), b">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$5\r\nhello\r\n");
    }

    #[test]
    fn a_large_text_is_not_copied() {
        let text = Arc::new(vec![b'x'; SHARED_BYTES_MIN]);
        let frame = PushFrame::with_text(&[b"message", b""], text.clone());
        let mut reply = ReplyBuffer::new(Protocol::Resp3);
        reply.push_frame(&frame);
        assert_eq!(Arc::strong_count(&text), 3);
        assert!(sent(Protocol::Resp3, &frame).ends_with(b"xx\r\n"));
    }
}
