//! The values to write: sizes and content.

use crate::error::{BenchError, Result};
use crate::resp::write_bulk;
use base::random::Rng;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Length of values in bytes, uniform between both bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    /// Shortest value.
    pub min: usize,
    /// Longest value.
    pub max: usize,
}

impl Size {
    /// Values of one length.
    pub const fn exactly(bytes: usize) -> Self {
        Self { min: bytes, max: bytes }
    }
}

impl FromStr for Size {
    type Err = BenchError;

    /// `64`, `1k` or `300-500`.
    fn from_str(text: &str) -> Result<Self> {
        let one = |part: &str| {
            let part = part.trim();
            let (digits, unit) = match part.strip_suffix(['k', 'K']) {
                Some(digits) => (digits, 1024),
                None => (part, 1),
            };
            digits.parse::<usize>().ok().and_then(|n| n.checked_mul(unit))
        };
        let sizes = match text.split_once('-') {
            Some((min, max)) => one(min).zip(one(max)),
            None => one(text).map(|n| (n, n)),
        };
        match sizes {
            Some((min, max)) if min <= max => Ok(Self { min, max }),
            _ => Err(BenchError::Usage(format!("value size `{text}`: expected bytes such as 64, 1k or 300-500"))),
        }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.min == self.max { write!(f, "{}", self.min) } else { write!(f, "{}-{}", self.min, self.max) }
    }
}

/// What the bytes of values are.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Content {
    /// The same letter throughout, as memtier_benchmark sends by default: compresses to almost nothing.
    Constant,
    /// Random bytes: incompressible.
    Random,
    /// Documents from a file, one a line, or whole files of a directory; sizes are the documents' own.
    Documents {
        /// The file or directory.
        path: PathBuf,
    },
}

impl FromStr for Content {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "constant" => Ok(Self::Constant),
            None if text == "random" => Ok(Self::Random),
            Some(("file", path)) if !path.is_empty() => Ok(Self::Documents { path: path.into() }),
            _ => Err(BenchError::Usage(format!("payload `{text}`: expected constant, random or file:PATH"))),
        }
    }
}

/// Values ready to be sent. Each is already framed as a RESP bulk string, so a request copies one slice.
#[derive(Debug)]
pub struct Payload {
    bytes: Vec<u8>,
    /// End of each framed value in `bytes`, and the length of the bare value.
    values: Vec<(usize, usize)>,
}

/// Random values are drawn from a pool of this size: large enough that neither a compressor's window nor a cache of
/// equal values profits, and small enough not to slow the generator.
const RANDOM_POOL_BYTES: usize = 4 << 20;
const RANDOM_POOL_VALUES_MIN: usize = 8;
const RANDOM_POOL_VALUES_MAX: usize = 16 << 10;
/// A wide range of lengths is represented by this many evenly spaced ones, so that the pool stays small.
const CONSTANT_LENGTHS_MAX: usize = 1024;
/// Documents beyond this size are left out, to bound the generator's memory.
const DOCUMENT_POOL_BYTES: usize = 512 << 20;

impl Payload {
    /// Builds the pool.
    ///
    /// # Errors
    /// A documents path that cannot be read or holds no document.
    pub fn new(content: &Content, size: Size, seed: u64) -> Result<Self> {
        let mut pool = Self { bytes: Vec::new(), values: Vec::new() };
        let mut rng = Rng::new(seed ^ 0x70AD);
        match content {
            Content::Constant => {
                let letters = vec![b'x'; size.max];
                for length in (size.min..=size.max).step_by((size.max - size.min) / CONSTANT_LENGTHS_MAX + 1) {
                    pool.push(&letters[..length]);
                }
            }
            Content::Random => {
                let values =
                    (RANDOM_POOL_BYTES / size.max.max(1)).clamp(RANDOM_POOL_VALUES_MIN, RANDOM_POOL_VALUES_MAX);
                let mut value = vec![0; size.max];
                for _ in 0..values {
                    let length = size.min + rng.below((size.max - size.min + 1) as u64) as usize;
                    rng.fill(&mut value[..length]);
                    pool.push(&value[..length]);
                }
            }
            Content::Documents { path } => pool.push_documents(path)?,
        }
        Ok(pool)
    }

    /// One framed value, and the length of the value without its frame.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> (&[u8], usize) {
        let at = if self.values.len() == 1 { 0 } else { rng.below(self.values.len() as u64) as usize };
        let start = if at == 0 { 0 } else { self.values[at - 1].0 };
        (&self.bytes[start..self.values[at].0], self.values[at].1)
    }

    /// Different values in the pool.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    fn push(&mut self, value: &[u8]) {
        write_bulk(&mut self.bytes, value);
        self.values.push((self.bytes.len(), value.len()));
    }

    fn push_documents(&mut self, path: &Path) -> Result<()> {
        let failed = |op| move |source| BenchError::File { path: path.to_owned(), op, source };
        if path.is_dir() {
            let mut files: Vec<PathBuf> = std::fs::read_dir(path)
                .map_err(failed("list documents"))?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<std::io::Result<_>>()
                .map_err(failed("list documents"))?;
            files.retain(|file| file.is_file());
            files.sort();
            for file in files {
                let document = std::fs::read(&file).map_err(|source| BenchError::File {
                    path: file.clone(),
                    op: "read document",
                    source,
                })?;
                self.push_document(&document);
            }
        } else {
            let text = std::fs::read(path).map_err(failed("read documents"))?;
            for line in text.split(|&byte| byte == b'\n') {
                self.push_document(line.strip_suffix(b"\r").unwrap_or(line));
            }
        }
        if self.values.is_empty() {
            return Err(BenchError::Usage(format!("{}: no document found", path.display())));
        }
        Ok(())
    }

    fn push_document(&mut self, document: &[u8]) {
        if !document.is_empty() && self.bytes.len() + document.len() <= DOCUMENT_POOL_BYTES {
            self.push(document);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!("64".parse::<Size>().unwrap(), Size::exactly(64));
        assert_eq!("1k".parse::<Size>().unwrap(), Size::exactly(1024));
        assert_eq!("300-500".parse::<Size>().unwrap(), Size { min: 300, max: 500 });
        for bad in ["", "x", "5-", "9-3", "-4"] {
            assert!(bad.parse::<Size>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_range_of_sizes_is_covered_evenly() {
        let mut rng = Rng::new(1);
        for content in [Content::Constant, Content::Random] {
            let pool = Payload::new(&content, Size { min: 20, max: 60 }, 1).unwrap();
            let lengths: Vec<usize> = (0..10_000).map(|_| pool.draw(&mut rng).1).collect();
            assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&20), Some(&60)), "{content:?}");
            let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
            assert!((mean - 40.0).abs() < 1.0, "{content:?}: mean {mean}");
        }
    }

    #[test]
    fn documents_are_lines_of_a_file() {
        let path = std::env::temp_dir().join(format!("onggi-bench-documents-{}", std::process::id()));
        std::fs::write(&path, "{\"a\":1}\n\n{\"bc\":2}\r\n").unwrap();
        let pool = Payload::new(&Content::Documents { path: path.clone() }, Size::exactly(1), 1).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(pool.count(), 2);
        assert_eq!(pool.bytes, b"$7\r\n{\"a\":1}\r\n$8\r\n{\"bc\":2}\r\n");
    }
}
