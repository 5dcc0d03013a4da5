//! Replies of SSDB's own protocol: a status, blocks, and an empty line.

use super::buffer::Words;
use super::{ReplyBuffer, SHARED_BYTES_MIN};
use std::sync::Arc;

/// Room for a block around its bytes: its length and two line ends.
const BLOCK_BYTES_MAX: usize = 24;

/// Words that begin an error in the words of SSDB.
const STATUSES: [&[u8]; 4] = [b"client_error", b"error", b"fail", b"noauth"];

impl ReplyBuffer {
    /// An empty queue of a client of SSDB's protocol: what [`error`](Self::error) writes is a status of it.
    pub fn for_ssdb() -> Self {
        let mut reply = Self::default();
        reply.words = Words::Ssdb;
        reply
    }

    /// From now on errors are in the words of Redis: the client has changed to its protocol.
    pub fn leave_ssdb(&mut self) {
        self.words = Words::Resp;
    }

    /// A block of these bytes.
    #[inline]
    pub fn block(&mut self, bytes: &[u8]) {
        self.bytes.reserve(bytes.len().saturating_add(BLOCK_BYTES_MAX));
        self.block_head(bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.bytes.push(b'\n');
    }

    /// A block sent from where its bytes are, if they are at least [`SHARED_BYTES_MIN`].
    pub fn block_shared(&mut self, bytes: Arc<Vec<u8>>) {
        if bytes.len() < SHARED_BYTES_MIN {
            return self.block(&bytes);
        }
        self.block_head(bytes.len());
        self.push_shared(bytes);
        self.bytes.push(b'\n');
    }

    /// A block that is the decimal text of a number.
    #[inline]
    pub fn block_integer(&mut self, number: i64) {
        self.block(itoa::Buffer::new().format(number).as_bytes());
    }

    /// Bytes of blocks that were written elsewhere.
    pub fn packet_part(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
    }

    /// The end of a reply.
    #[inline]
    pub fn end_packet(&mut self) {
        self.bytes.push(b'\n');
    }

    #[inline]
    fn block_head(&mut self, len: usize) {
        self.bytes.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
        self.bytes.push(b'\n');
    }

    /// An error whose text may be in the words of RESP, as the checks before a command give it.
    #[cold]
    pub(super) fn ssdb_error(&mut self, text: &[u8]) {
        let (code, rest) = text.split_at(text.iter().position(|byte| *byte == b' ').unwrap_or(text.len()));
        let message = rest.strip_prefix(b" ").unwrap_or(rest);
        let (status, message) = match code {
            _ if STATUSES.contains(&code) => (code, message),
            b"NOAUTH" => (&b"noauth"[..], &b"authentication required."[..]),
            b"ERR" if message.starts_with(b"Protocol error") => (&b"client_error"[..], message),
            b"ERR" => (&b"error"[..], message),
            _ => (&b"error"[..], text),
        };
        self.block(status);
        if !message.is_empty() {
            self.block(message);
        }
        self.end_packet();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(reply: &ReplyBuffer) -> String {
        reply.io_slices().map(|slice| String::from_utf8_lossy(&slice).into_owned()).collect()
    }

    #[test]
    fn blocks_have_their_lengths() {
        let mut reply = ReplyBuffer::for_ssdb();
        reply.block(b"ok");
        reply.block(b"");
        reply.block_integer(-12);
        reply.block_shared(Arc::new(b"a\nb".to_vec()));
        reply.end_packet();
        assert_eq!(sent(&reply), "2\nok\n0\n\n3\n-12\n3\na\nb\n\n");
        let long = Arc::new(vec![b'x'; SHARED_BYTES_MIN]);
        let mut reply = ReplyBuffer::for_ssdb();
        reply.block_shared(long.clone());
        assert_eq!(reply.as_contiguous(), None);
        assert_eq!(reply.len(), "16384\n\n".len() + long.len());
    }

    #[test]
    fn errors_are_statuses() {
        for (error, expected) in [
            ("NOAUTH Authentication required.", "6\nnoauth\n24\nauthentication required.\n\n"),
            ("WRONGTYPE Operation", "5\nerror\n19\nWRONGTYPE Operation\n\n"),
            ("ERR no such key", "5\nerror\n11\nno such key\n\n"),
            ("ERR Protocol error: x", "12\nclient_error\n17\nProtocol error: x\n\n"),
            ("client_error wrong number", "12\nclient_error\n12\nwrong number\n\n"),
            ("client_error", "12\nclient_error\n\n"),
        ] {
            let mut reply = ReplyBuffer::for_ssdb();
            reply.error(error);
            assert_eq!(sent(&reply), expected, "{error}");
            reply.leave_ssdb();
            reply.error("ERR x");
            assert!(sent(&reply).ends_with("-ERR x\r\n"));
        }
    }
}
