//! Requests of a client that sends on while its replies are unsent: received, but neither parsed nor run.
//!
//! ```text
//! socket --> backlog (64 KiB chunks) --> parsed and run when the client has read enough
//! ```
//!
//! Many client libraries write a whole pipeline before they read the first reply. A server that stops reading at a
//! limit of unsent replies would wait for such a client for ever, and the client for the server. Requests are usually
//! much shorter than replies, so the backlog costs less memory than running them would.

use std::collections::VecDeque;

/// Size of a chunk. One is parsed in a turn.
const CHUNK_BYTES: usize = 64 << 10;

/// Received bytes that follow what the connection has parsed.
#[derive(Default)]
pub struct Backlog {
    chunks: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Backlog {
    /// Whether it holds nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Received bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory it holds.
    pub fn held_bytes(&self) -> usize {
        self.chunks.len() * CHUNK_BYTES
    }

    /// Appends what `read` puts into the room it is offered. Gives its length, and whether it filled the room.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn receive<E>(&mut self, read: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Result<(usize, bool), E> {
        let mut chunk = match self.chunks.pop_back() {
            Some(chunk) if chunk.len() < CHUNK_BYTES => chunk,
            full => {
                self.chunks.extend(full);
                Vec::new()
            }
        };
        let start = chunk.len();
        chunk.resize(CHUNK_BYTES, 0);
        let result = read(&mut chunk[start..]);
        let read = result.as_ref().map_or(0, |read| *read);
        chunk.truncate(start + read);
        self.bytes += read;
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
        Ok((result?, read == CHUNK_BYTES - start))
    }

    /// Takes the first bytes.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.len();
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn bytes_come_out_in_order_and_short_reads_share_a_chunk() {
        let mut backlog = Backlog::default();
        let mut expected = Vec::new();
        for length in [1, 1000, CHUNK_BYTES, 7, CHUNK_BYTES, 30_000] {
            let (read, is_full) = backlog
                .receive(|room| {
                    let length = length.min(room.len());
                    room[..length].fill(length as u8);
                    expected.extend_from_slice(&room[..length]);
                    Ok::<_, Infallible>(length)
                })
                .expect("nothing fails here");
            assert_eq!(is_full, read < length || read == CHUNK_BYTES);
        }
        assert_eq!((backlog.bytes(), backlog.chunks.len()), (expected.len(), 3));
        assert_eq!(backlog.receive(|_| Err(())), Err(()));
        let taken: Vec<u8> = std::iter::from_fn(|| backlog.take()).flatten().collect();
        assert!(taken == expected && backlog.is_empty() && backlog.held_bytes() == 0);
    }
}
