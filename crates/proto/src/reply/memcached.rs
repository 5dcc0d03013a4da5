//! Replies of memcached's text protocol.

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
        reply.is_memcached = true;
        reply
    }

    /// A line.
    #[inline]
    pub fn text_line(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Bytes and a line end behind them.
    pub fn raw_line(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
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
            _ if CODES.contains(&code) => self.plain_line(text),
            b"WRONGTYPE" => self.plain_line(b"TYPE_MISMATCH"),
            b"NOAUTH" => self.plain_line(b"CLIENT_ERROR unauthenticated"),
            b"OOM" => self.plain_line(b"SERVER_ERROR out of memory storing object"),
            _ => self.plain_line(&[b"SERVER_ERROR", rest].concat()),
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
        let long = Arc::new(vec![b'x'; SHARED_BYTES_MIN]);
        let mut reply = ReplyBuffer::for_memcached();
        reply.item_shared(b"l", 0, None, long.clone());
        assert_eq!(reply.as_contiguous(), None);
        assert_eq!(reply.len(), "VALUE l 0 16384\r\n\r\n".len() + long.len());
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
