//! A model of a slower medium, for experiments without one: each access to a region takes longer than memory does.
//!
//! Persistent memory has the interface of memory and other costs: about 300 ns for a random read where DRAM takes 90,
//! and writes in blocks of 256 bytes at a third of the bandwidth. The model adds a time to each read of more than one
//! cache line, and one for each block written. The thread spins: a processor cannot do other work meanwhile either. A
//! shorter read is the head of a record, which is in the block that the read after it begins with.
//!
//! Figures that were measured with it name it, and are none of a product.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::region::{Region, RegionKind};

/// Bytes that are written at once.
const BLOCK_BYTES: usize = 256;

/// Reads up to here take no longer.
const LINE_BYTES: usize = 64;

/// What accesses take in addition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Nanoseconds of a read.
    pub read_ns: u32,
    /// Nanoseconds of each 256 bytes written.
    pub write_ns: u32,
}

impl Delays {
    /// No delays.
    pub const NONE: Self = Self { read_ns: 0, write_ns: 0 };

    /// The region with these delays.
    pub fn of(self, region: Arc<dyn Region>) -> Arc<dyn Region> {
        if self == Self::NONE { region } else { Arc::new(Delayed { region, delays: self }) }
    }
}

impl fmt::Display for Delays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns a read and {} ns per {BLOCK_BYTES} bytes written", self.read_ns, self.write_ns)
    }
}

/// A region whose accesses take longer.
#[derive(Debug)]
struct Delayed {
    region: Arc<dyn Region>,
    delays: Delays,
}

impl Delayed {
    fn read(&self, len: usize) {
        if len > LINE_BYTES {
            spin(u64::from(self.delays.read_ns));
        }
    }

    fn written(&self, len: usize) {
        spin(len.div_ceil(BLOCK_BYTES) as u64 * u64::from(self.delays.write_ns));
    }
}

fn spin(ns: u64) {
    let (begin, time) = (Instant::now(), Duration::from_nanos(ns));
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

impl Region for Delayed {
    fn path(&self) -> &Path {
        self.region.path()
    }

    fn kind(&self) -> RegionKind {
        self.region.kind()
    }

    fn len(&self) -> u64 {
        self.region.len()
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        self.read(buf.len());
        self.region.read_exact_at(buf, offset)
    }

    fn append_to(&self, buf: &mut Vec<u8>, len: usize, offset: u64) -> Result<()> {
        self.read(len);
        self.region.append_to(buf, len, offset)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.region.prefetch(offset, len);
    }

    fn write_nt(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.region.write_nt(bytes, offset)?;
        self.written(bytes.len());
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.region.write(bytes, offset)
    }

    fn flush(&self, offset: u64, len: u64) {
        self.region.flush(offset, len);
        self.written(usize::try_from(len).unwrap_or(usize::MAX));
    }

    fn fence(&self) {
        self.region.fence();
    }

    fn durable_barrier(&self) -> Result<()> {
        self.region.durable_barrier()
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::{FileSystem, OpenOptions, RealFs};

    /// Accesses do what they do without delays, and take at least what the model says.
    #[test]
    fn accesses_take_longer() {
        let temp = tempfile::tempdir().expect("a directory");
        let delays = Delays { read_ns: 2_000_000, write_ns: 1_000_000 };
        let options = OpenOptions::write().create_new();
        let region = RealFs.map_writable(&temp.path().join("region"), options, 4096).expect("it is mapped");
        let region = delays.of(region);
        let took = |run: &dyn Fn()| {
            let begin = Instant::now();
            run();
            begin.elapsed()
        };
        let written = took(&|| region.write_nt(&[7; 1000], 16).expect("there is room"));
        assert!(written >= Duration::from_millis(4), "four blocks took {written:?}");
        let read = took(&|| {
            let (mut head, mut value) = ([0; 64], Vec::new());
            region.read_exact_at(&mut head, 16).expect("it is there");
            region.append_to(&mut value, 936, 80).expect("it is there");
            assert_eq!((head, value), ([7; 64], vec![7; 936]));
        });
        assert!((Duration::from_millis(2)..Duration::from_secs(2)).contains(&read), "a read took {read:?}");
    }
}
