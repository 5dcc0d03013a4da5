//! Short reads without a system call, from files mapped into memory. Reads use the mapping while the file is mostly in
//! memory ([`Residency`]), and until the medium fails ([`Span`]): then they are system calls, which report the error.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::bus::Span;
use crate::residency::Residency;

/// Longer reads use a system call: it copies a page for less than the first mapping of one costs, and reads ahead by
/// the length of the request. Long reads are rarely repeated. In bytes.
const READ_BYTES_MAX: usize = 32 << 10;

/// Files mapped at a time. A Linux process has 65,530 mappings by default (`vm.max_map_count`), which memory allocators
/// and thread stacks also need.
const MAPPINGS_MAX: usize = 16 << 10;

/// Pages of the longest read, with the smallest page size.
const PAGES_MAX: usize = READ_BYTES_MAX / 4096 + 1;

static MAPPINGS: AtomicUsize = AtomicUsize::new(0);

/// A mapped file; see the module.
#[derive(Debug)]
pub(crate) struct Mapping {
    span: Span,
    residency: Residency,
}

impl Mapping {
    /// Maps the first `len` bytes of a readable file. `None` if the system declines, or enough files are mapped.
    pub fn new(file: &File, len: u64) -> Option<Self> {
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        let is_allowed = MAPPINGS.fetch_add(1, Ordering::Relaxed) < MAPPINGS_MAX;
        let span = is_allowed.then(|| Span::new(file, len, ProtFlags::READ, MapFlags::SHARED)).and_then(Result::ok);
        let Some(span) = span else {
            MAPPINGS.fetch_sub(1, Ordering::Relaxed);
            return None;
        };
        // If it is refused, faults read more than they need.
        span.advise(Advice::Random);
        Some(Self { span, residency: Residency::default() })
    }

    /// Fills the buffer from `offset`. Returns `false` if the file must be read by system calls; the buffer is then
    /// unspecified.
    pub fn read(&self, buf: &mut [u8], offset: u64) -> bool {
        let from = usize::try_from(offset).ok().filter(|from| self.span.has(*from, buf.len()));
        let Some(from) = from.filter(|_| buf.len() <= READ_BYTES_MAX && !self.span.is_broken()) else { return false };
        let look = || self.span.is_in_memory(from, buf.len(), &mut [0; PAGES_MAX]);
        self.residency.expect(look) && self.span.read(buf, from)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        MAPPINGS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LEN: usize = 100_000;

    fn file() -> File {
        let mut file = tempfile::tempfile().expect("a file for the test");
        let bytes: Vec<u8> = (0..LEN).map(|at| (at % 251) as u8).collect();
        file.write_all(&bytes).expect("writes");
        file
    }

    /// Reads until the mapping answers, which it does once a few reads have found their pages in memory.
    fn warm(mapping: &Mapping) {
        assert!((0..1000).any(|_| mapping.read(&mut [0; 10], 0)));
    }

    /// Bytes come from their places; reads beyond the end, and long reads, are declined.
    #[test]
    fn short_reads_inside_are_answered() {
        let mapping = Mapping::new(&file(), LEN as u64).expect("it can be mapped");
        warm(&mapping);
        for (from, len) in [(0, 1), (4000, 200), (4097, 8192), (LEN - 5, 5), (LEN, 0)] {
            let mut buf = vec![9; len];
            assert!(mapping.read(&mut buf, from as u64));
            assert!(buf.iter().enumerate().all(|(at, byte)| *byte == ((from + at) % 251) as u8));
        }
        for (from, len) in [(LEN - 5, 6), (LEN + 1, 0), (usize::MAX, 1), (0, READ_BYTES_MAX + 1)] {
            assert!(!mapping.read(&mut vec![0; len], from as u64));
        }
        assert!(Mapping::new(&file(), 0).is_none());
    }

    /// A lost page, like one that the medium cannot read, breaks its mapping and nothing else; other mappings continue.
    #[test]
    fn a_page_that_is_gone_is_no_end_of_the_process() {
        let (cut, other) = (file(), file());
        let mappings = [&cut, &other].map(|file| Mapping::new(file, LEN as u64).expect("it can be mapped"));
        mappings.iter().for_each(warm);
        cut.set_len(10).expect("it can be cut");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for at in 0..200 {
                        // A read that checks first does not touch the page; the others do, until the mapping is broken.
                        assert!(!mappings[0].read(&mut [0; 100], 4096 * (1 + at % 20)));
                        assert!(mappings[1].read(&mut [0; 100], 4096 * (1 + at % 20)));
                    }
                });
            }
        });
        assert!(mappings[0].span.is_broken());
        assert!(!mappings[1].span.is_broken());
    }
}
