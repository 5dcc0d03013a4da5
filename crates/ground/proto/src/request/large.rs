//! A large argument on its way in: a buffer that grows with what has been received.

use super::ProtocolError;

/// From this length on, an argument that has not arrived completely is received into a buffer of its own.
pub const LARGE_BULK_BYTES: usize = 32 * 1024;

/// The buffer grows by what it holds, at least this, so that a slow start costs few reads.
const GROWTH_BYTES_MIN: usize = 16 * 1024;
/// And at most this, so that the last step before 512 MB does not take as much again.
const GROWTH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// An argument and its line end, as far as received.
#[derive(Debug)]
pub(super) struct Receiving {
    bytes: Vec<u8>,
    /// Length of the argument and its line end.
    total: usize,
    /// Bytes received before those, and not kept; `None` while all are kept.
    dropped: Option<usize>,
}

/// Bytes of a dropped argument that are kept: its line end, to be checked.
const KEPT_OF_DROPPED: usize = 2;

impl Receiving {
    pub(super) fn new(len: usize, received: &[u8]) -> Self {
        let mut receiving = Self { bytes: Vec::new(), total: len.saturating_add(2), dropped: None };
        receiving.append(received);
        receiving
    }

    pub(super) fn missing(&self) -> usize {
        self.total.saturating_sub(self.dropped.unwrap_or(0)).saturating_sub(self.bytes.len())
    }

    /// Whether what arrives is not kept.
    pub(super) fn is_dropped(&self) -> bool {
        self.dropped.is_some()
    }

    /// Length of the argument.
    pub(super) fn len(&self) -> usize {
        self.total.saturating_sub(2)
    }

    /// Keeps nothing of the argument from now on. Gives what was received.
    pub(super) fn drop_bytes(&mut self) -> Vec<u8> {
        let end = self.bytes.len().saturating_sub(KEPT_OF_DROPPED);
        let kept = self.bytes.get(end..).unwrap_or_default().to_vec();
        self.dropped = Some(self.dropped.unwrap_or(0).saturating_add(end));
        std::mem::replace(&mut self.bytes, kept)
    }

    /// Takes what belongs to the argument from the start of `arrived` and says how much that was.
    pub(super) fn append(&mut self, arrived: &[u8]) -> usize {
        let used = arrived.len().min(self.missing());
        if self.is_dropped() {
            // All but the last bytes are passed over.
            let skipped = used.saturating_sub(KEPT_OF_DROPPED);
            self.dropped = self.dropped.map(|dropped| dropped.saturating_add(skipped));
            self.bytes.extend_from_slice(arrived.get(skipped..used).unwrap_or_default());
            self.drop_bytes();
            return used;
        }
        let spare = self.bytes.capacity().saturating_sub(self.bytes.len());
        if spare < used {
            self.grow(used);
        }
        self.bytes.extend_from_slice(arrived.get(..used).unwrap_or_default());
        used
    }

    /// Makes room for at least `needed` more bytes, and for not more than are missing.
    fn grow(&mut self, needed: usize) {
        let step = self.bytes.len().clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX);
        self.bytes.reserve_exact(step.max(needed).min(self.missing()));
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The argument, once nothing is missing.
    pub(super) fn finish(self) -> Result<Vec<u8>, ProtocolError> {
        let mut bytes = self.bytes;
        if !bytes.ends_with(b"\r\n") {
            return Err(ProtocolError::LineEnd);
        }
        bytes.truncate(bytes.len().saturating_sub(2));
        Ok(bytes)
    }
}

/// A large argument that is being received: read from the socket into it until nothing is missing.
///
/// ```no_run
/// # use std::io::Read;
/// # fn read(mut socket: std::net::TcpStream, parser: &mut proto::RequestParser) -> std::io::Result<()> {
/// if let Some(mut large) = parser.large_bulk() {
///     let missing = large.missing() as u64;
///     // Appends straight into the spare room; what was read before an error (such as "would block") stays.
///     (&mut socket).take(missing).read_to_end(large.buffer())?;
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LargeBulk<'a> {
    receiving: &'a mut Receiving,
}

impl<'a> LargeBulk<'a> {
    pub(super) fn new(receiving: &'a mut Receiving) -> Self {
        Self { receiving }
    }

    /// How many bytes have not arrived, the line end of the argument included.
    pub fn missing(&self) -> usize {
        self.receiving.missing()
    }

    /// The buffer with room for more: at most as much as is [`missing`](Self::missing), and in proportion to what has
    /// arrived. Bytes are only ever appended to it, and never more than are missing.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        if self.receiving.bytes.capacity() == self.receiving.bytes.len() && self.receiving.missing() > 0 {
            self.receiving.grow(0);
        }
        &mut self.receiving.bytes
    }

    /// Copies received bytes from elsewhere and says how many of them, from the first on, belong to the argument.
    pub fn append(&mut self, arrived: &[u8]) -> usize {
        self.receiving.append(arrived)
    }
}
