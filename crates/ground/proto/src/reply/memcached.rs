//! Replies of memcached's text protocol.

use super::buffer::Words;
use super::{ReplyBuffer, SHARED_BYTES_MIN};
use std::sync::Arc;

/// Room for a line of an item around its key: words, three numbers, line ends.
const ITEM_BYTES_MAX: usize = 64;

/// Words that begin an error in the words of memcached.
const CODES: [&[u8]; 4] = [b"CLIENT_ERROR", b"SERVER_ERROR", b"ERROR", b"TYPE_MISMATCH"];

impl ReplyBuffer {
    /// An empty queue of a memcached client: what [`error`](Self::error) writes is in memcached's words.
    pub fn for_memcached() -> Self {
        let mut reply = Self::default();
        reply.words = Words::Memcached;
        reply
    }

    /// A line.
    #[inline]
    pub fn text_line(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The requests that follow are a pipe: their status lines wait for its end.
    pub fn begin_pipe(&mut self) {
        self.pipe.get_or_insert_default();
    }

    /// Answers the pipe, if that was not done before its end.
    pub fn end_pipe(&mut self) {
        if let Some(reply) = self.pipe.take().and_then(|pipe| pipe.end()) {
            self.bytes.extend_from_slice(reply.as_bytes());
        }
    }

    /// Whether requests are carried out: not those of a pipe after one that failed.
    pub fn takes_requests(&self) -> bool {
        self.pipe.as_ref().is_none_or(|pipe| pipe.is_open())
    }

    /// A line that is the whole reply to a request; in a pipe it becomes a part of the pipe's reply. `has_more`: the
    /// request is not the last of its pipe.
    pub fn status_line(&mut self, text: &str, has_more: bool) {
        let Some(pipe) = &mut self.pipe else { return self.text_line(text) };
        if let Some(reply) = pipe.push(text, has_more) {
            self.bytes.extend_from_slice(reply.as_bytes());
        }
    }

    /// Words, a number and data, with one space between two of them.
    pub fn words_line(&mut self, words: &[&[u8]], number: Option<usize>, data: &[u8]) {
        self.bytes.reserve(data.len().saturating_add(ITEM_BYTES_MAX));
        for word in words {
            self.bytes.extend_from_slice(word);
            self.bytes.push(b' ');
        }
        if let Some(number) = number {
            self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            self.bytes.push(b' ');
        }
        self.raw_line(data);
    }

    /// Bytes followed by a line end.
    pub fn raw_line(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// [`Self::raw`], sent from where the bytes are if they are at least [`SHARED_BYTES_MIN`].
    pub fn raw_shared(&mut self, bytes: Vec<u8>) {
        match bytes.len() < SHARED_BYTES_MIN {
            true => self.bytes.extend_from_slice(&bytes),
            false => self.push_shared(Arc::new(bytes)),
        }
    }

    /// What `append` appends.
    #[inline]
    pub fn raw_with<R>(&mut self, append: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        append(&mut self.bytes)
    }

    /// Bytes as they are: ARCUS has replies whose lines end in `\n` alone.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// [`Self::raw_line`], sent from where the bytes are if they are at least [`SHARED_BYTES_MIN`].
    pub fn data_shared(&mut self, data: Arc<Vec<u8>>) {
        if data.len() < SHARED_BYTES_MIN {
            return self.raw_line(&data);
        }
        self.push_shared(data);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// A line with a number.
    pub fn number_line(&mut self, number: u64) {
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// `VALUE key flags bytes [id]` and the data.
    #[inline]
    pub fn item(&mut self, key: &[u8], flags: u32, id: Option<u64>, data: &[u8]) {
        self.bytes.reserve(key.len().saturating_add(data.len()).saturating_add(ITEM_BYTES_MAX));
        self.item_header(key, flags, id, data.len());
        self.bytes.extend_from_slice(data);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// [`Self::item`] whose data is sent from where it is if it has at least [`SHARED_BYTES_MIN`].
    pub fn item_shared(&mut self, key: &[u8], flags: u32, id: Option<u64>, data: Arc<Vec<u8>>) {
        if data.len() < SHARED_BYTES_MIN {
            return self.item(key, flags, id, &data);
        }
        self.item_header(key, flags, id, data.len());
        self.push_shared(data);
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn item_header(&mut self, key: &[u8], flags: u32, id: Option<u64>, len: usize) {
        self.bytes.extend_from_slice(b"VALUE ");
        self.bytes.extend_from_slice(key);
        self.put_number(u64::from(flags));
        self.put_number(len as u64);
        if let Some(id) = id {
            self.put_number(id);
        }
        self.bytes.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn put_number(&mut self, number: u64) {
        self.bytes.push(b' ');
        self.bytes.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }

    /// An error whose text may be in the words of RESP, as the checks before a command give it.
    #[cold]
    pub(super) fn memcached_error(&mut self, text: &[u8]) {
        let (code, rest) = text.split_at(text.iter().position(|byte| *byte == b' ').unwrap_or(text.len()));
        match code {
            _ if CODES.contains(&code) => self.memcached_error_line(text),
            b"WRONGTYPE" => self.memcached_error_line(b"TYPE_MISMATCH"),
            b"NOAUTH" => self.memcached_error_line(b"CLIENT_ERROR unauthenticated"),
            b"OOM" => self.memcached_error_line(b"SERVER_ERROR out of memory storing object"),
            _ => self.memcached_error_line(&[b"SERVER_ERROR", rest].concat()),
        }
    }

    fn memcached_error_line(&mut self, text: &[u8]) {
        match self.pipe.is_some() {
            true => self.status_line(&String::from_utf8_lossy(text).replace(['\r', '\n', '\0'], " "), true),
            false => self.plain_line(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(reply: &ReplyBuffer) -> String {
        reply.io_slices().map(|slice| String::from_utf8_lossy(&slice).into_owned()).collect()
    }

    #[test]
    fn items_have_their_line_and_data() {
        let mut reply = ReplyBuffer::for_memcached();
        reply.item(b"k", 7, None, b"data");
        reply.item(b"k", 0, Some(12), b"");
        reply.item_shared(b"s", 1, None, Arc::new(b"xyz".to_vec()));
        reply.text_line("END");
        assert_eq!(sent(&reply), "VALUE k 7 4\r\ndata\r\nVALUE k 0 0 12\r\n\r\nVALUE s 1 3\r\nxyz\r\nEND\r\n");
        let mut reply = ReplyBuffer::for_memcached();
        reply.raw_with(|out| out.extend_from_slice(b"a b\r\n"));
        reply.raw_shared(b"c\r\n".to_vec());
        assert_eq!(reply.as_contiguous(), Some(&b"a b\r\nc\r\n"[..]));
        reply.raw_shared(vec![b'x'; SHARED_BYTES_MIN]);
        assert_eq!((reply.as_contiguous(), reply.len()), (None, 8 + SHARED_BYTES_MIN));
        let long = Arc::new(vec![b'x'; SHARED_BYTES_MIN]);
        let mut reply = ReplyBuffer::for_memcached();
        reply.item_shared(b"l", 0, None, long.clone());
        assert_eq!(reply.as_contiguous(), None);
        assert_eq!(reply.len(), "VALUE l 0 16384\r\n\r\n".len() + long.len());
    }

    #[test]
    fn a_pipe_has_one_reply() {
        let mut reply = ReplyBuffer::for_memcached();
        reply.begin_pipe();
        reply.status_line("STORED", true);
        reply.error("WRONGTYPE Operation against a key");
        reply.status_line("OVERFLOWED", false);
        assert!(reply.is_empty() && reply.takes_requests());
        reply.end_pipe();
        assert_eq!(sent(&reply), "RESPONSE 3\r\nSTORED\r\nTYPE_MISMATCH\r\nOVERFLOWED\r\nEND\r\n");
        let mut reply = ReplyBuffer::for_memcached();
        reply.begin_pipe();
        reply.status_line("STORED", true);
        reply.error("OOM command not allowed");
        assert!(!reply.takes_requests());
        reply.error("OOM command not allowed");
        reply.status_line("STORED", false);
        reply.end_pipe();
        let expected = "RESPONSE 2\r\nSTORED\r\nSERVER_ERROR out of memory storing object\r\nPIPE_ERROR bad error\r\n";
        assert_eq!(sent(&reply), expected);
        reply.status_line("STORED", false);
        assert!(sent(&reply).ends_with("error\r\nSTORED\r\n"), "the next request is in no pipe");
    }

    #[test]
    fn pipes_have_five_hundred_requests() {
        for (count, end) in [(500, "END"), (501, "PIPE_ERROR command overflow")] {
            let mut reply = ReplyBuffer::for_memcached();
            reply.begin_pipe();
            (1..=count).for_each(|number| reply.status_line("STORED", number < count));
            reply.end_pipe();
            assert_eq!(sent(&reply), format!("RESPONSE 500\r\n{}{end}\r\n", "STORED\r\n".repeat(500)));
        }
    }

    #[test]
    fn errors_are_in_the_words_of_memcached() {
        for (error, expected) in [
            ("OOM command not allowed when used memory > 'maxmemory'.", "SERVER_ERROR out of memory storing object"),
            ("NOAUTH Authentication required.", "CLIENT_ERROR unauthenticated"),
            ("WRONGTYPE Operation against a key", "TYPE_MISMATCH"),
            ("LOADING Onggi is loading", "SERVER_ERROR Onggi is loading"),
            ("CLIENT_ERROR bad data chunk", "CLIENT_ERROR bad data chunk"),
            ("ERROR", "ERROR"),
            ("ERR two\r\nlines", "SERVER_ERROR two  lines"),
        ] {
            let mut reply = ReplyBuffer::for_memcached();
            reply.error(error);
            assert_eq!(sent(&reply), format!("{expected}\r\n"));
        }
    }
}
