//! Frames: numbers in network order, texts and byte strings behind their lengths.

/// The longest frame that a server may send. ZooKeeper's own limit is 1 MiB (`jute.maxbuffer`).
pub const FRAME_BYTES_MAX: usize = 4 << 20;

/// The bytes before a frame that say how long it is.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A frame to be sent.
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    /// An empty frame.
    pub(crate) fn new() -> Self {
        Self(vec![0; LENGTH_BYTES])
    }

    pub(crate) fn int(mut self, value: i32) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn long(mut self, value: i64) -> Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn flag(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        self = self.int(i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.0.extend(value);
        self
    }

    /// The bytes to send.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len().saturating_sub(LENGTH_BYTES)).unwrap_or(u32::MAX);
        if let Some(head) = self.0.get_mut(..LENGTH_BYTES) {
            head.copy_from_slice(&length.to_be_bytes());
        }
        self.0
    }
}

/// The rest of a received frame. Reads give `None` where it ends too early.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        self.take(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        self.take(8)?.try_into().ok().map(i64::from_be_bytes)
    }

    /// A byte string; a null one, whose length is -1, is empty.
    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        match self.int()? {
            -1 => Some(&[]),
            length => self.take(usize::try_from(length).ok()?),
        }
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    pub(crate) fn texts(&mut self) -> Option<Vec<String>> {
        let count = self.int()?.max(0);
        // Each takes four bytes at least, so a damaged count ends at the end of the frame.
        (0..count).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let frame = Frame::new().int(-7).long(1 << 40).flag(true).bytes(b"path").bytes(b"").finish();
        assert_eq!(frame[..4], 25u32.to_be_bytes());
        let mut reader = Reader(&frame[4..]);
        assert_eq!((reader.int(), reader.long()), (Some(-7), Some(1 << 40)));
        assert_eq!(reader.take(1), Some(&[1u8][..]));
        assert_eq!((reader.text().as_deref(), reader.bytes()), (Some("path"), Some(&b""[..])));
        assert_eq!(reader.int(), None);
    }

    #[test]
    fn damaged_frames_are_refused() {
        for frame in [&b""[..], b"\0\0\0", b"\0\0\0\x05abcd", b"\x80\0\0\0", b"\xff\xff\xff\xfe"] {
            assert_eq!(Reader(frame).text(), None, "{frame:?}");
        }
        assert_eq!(Reader(b"\x7f\xff\xff\xff\0\0\0\0").texts(), None);
        assert_eq!(Reader(b"\xff\xff\xff\xff").bytes(), Some(&b""[..]));
    }
}
