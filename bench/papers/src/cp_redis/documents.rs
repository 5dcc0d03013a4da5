//! Real documents from packages: JSON files, the members of large ones, and texts, each only once.
//!
//! A pool is a file with one document per line. JSON is written without whitespace between its parts, and line ends of
//! a text become spaces; a text that is too long is cut between paragraphs.

use loadgen::error::{BenchError, Result};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Longer files are left out.
const FILE_MAX: u64 = 32 << 20;
/// A pool takes no more than this: each window reads one into memory.
const POOL_MAX: u64 = 256 << 20;

/// Documents of about one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pool {
    pub(super) path: PathBuf,
    pub(super) documents: u64,
    pub(super) bytes: u64,
}

impl Pool {
    /// Its size, in a sentence.
    pub(super) fn sentence(&self, name: &str) -> String {
        let Self { documents, bytes, .. } = *self;
        let mean = bytes / documents.max(1);
        format!("{name} {documents} different ones, {mean} bytes each")
    }
}

/// Searches for documents below `directories`, and writes those of each range of lengths to a file in `scratch`.
///
/// # Errors
/// The files cannot be written. Unreadable documents are skipped.
pub(super) fn collect(directories: &[PathBuf], ranges: &[(usize, usize)], scratch: &Path) -> Result<Vec<Pool>> {
    let writers = ranges.iter().enumerate().map(|(at, &range)| Collector::new(range, scratch.join(format!("{at}"))));
    let mut all =
        Search { collectors: writers.collect::<Result<_>>()?, seen: HashSet::new(), hasher: RandomState::new() };
    for directory in directories {
        all.directory(directory)?;
    }
    all.collectors.into_iter().map(Collector::finish).collect()
}

/// Gathers the documents of one range.
struct Collector {
    range: (usize, usize),
    pool: Pool,
    file: BufWriter<File>,
}

impl Collector {
    fn new(range: (usize, usize), path: PathBuf) -> Result<Self> {
        let file = File::create(&path).map_err(file_error(&path))?;
        Ok(Self { range, pool: Pool { path, documents: 0, bytes: 0 }, file: BufWriter::new(file) })
    }

    fn takes(&self, length: usize) -> bool {
        (self.range.0..=self.range.1).contains(&length) && self.pool.bytes < POOL_MAX
    }

    fn push(&mut self, document: &str) -> Result<()> {
        self.file
            .write_all(document.as_bytes())
            .and_then(|()| self.file.write_all(b"\n"))
            .map_err(file_error(&self.pool.path))?;
        self.pool.documents += 1;
        self.pool.bytes += document.len() as u64;
        Ok(())
    }

    fn finish(mut self) -> Result<Pool> {
        self.file.flush().map_err(file_error(&self.pool.path))?;
        Ok(self.pool)
    }
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> BenchError {
    move |source| BenchError::File { path: path.to_owned(), op: "write documents", source }
}

struct Search {
    collectors: Vec<Collector>,
    /// Hashes of the documents taken, each with the range that took it.
    seen: HashSet<(usize, u64)>,
    hasher: RandomState,
}

impl Search {
    /// All files below a directory, in the order of their names; links are not followed.
    fn directory(&mut self, path: &Path) -> Result<()> {
        loadgen::interrupt::check()?;
        let Ok(entries) = std::fs::read_dir(path) else { return Ok(()) };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort_unstable();
        for path in paths {
            let Ok(about) = std::fs::symlink_metadata(&path) else { continue };
            if about.is_dir() {
                self.directory(&path)?;
            } else if about.is_file() && about.len() <= FILE_MAX {
                self.file(&path)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let Some(kind) = path.extension().and_then(|kind| kind.to_str()) else { return Ok(()) };
        match kind {
            "json" => match std::fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()) {
                Some(value) => self.json(&value, &(0..self.collectors.len()).collect::<Vec<_>>()),
                None => Ok(()),
            },
            "md" | "rst" | "txt" => match std::fs::read_to_string(path) {
                Ok(text) => self.text(&text),
                Err(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// A value, for the ranges that did not take a value around it.
    fn json(&mut self, value: &Value, ranges: &[usize]) -> Result<()> {
        let document = value.to_string();
        let mut within = Vec::new();
        for &at in ranges {
            if document.len() > self.collectors[at].range.1 {
                within.push(at);
            } else {
                self.take(at, &document)?;
            }
        }
        if within.is_empty() {
            return Ok(());
        }
        let is_document = |value: &&Value| value.is_object() || value.is_array();
        match value {
            Value::Object(members) => {
                members.values().filter(is_document).try_for_each(|each| self.json(each, &within))
            }
            Value::Array(members) => members.iter().filter(is_document).try_for_each(|each| self.json(each, &within)),
            _ => Ok(()),
        }
    }

    fn text(&mut self, text: &str) -> Result<()> {
        let paragraphs: Vec<String> =
            text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for at in 0..self.collectors.len() {
            let (least, most) = self.collectors[at].range;
            let mut piece = String::new();
            for paragraph in paragraphs.iter().filter(|paragraph| !paragraph.is_empty()) {
                if !piece.is_empty() && piece.len() + 1 + paragraph.len() > most {
                    piece.clear();
                }
                if !piece.is_empty() {
                    piece.push(' ');
                }
                piece.push_str(paragraph);
                if piece.len() >= (least + most) / 2 {
                    self.take(at, &piece)?;
                    piece.clear();
                }
            }
            self.take(at, &piece)?;
        }
        Ok(())
    }

    fn take(&mut self, at: usize, document: &str) -> Result<()> {
        let collector = &mut self.collectors[at];
        if collector.takes(document.len()) && self.seen.insert((at, self.hasher.hash_one(document))) {
            collector.push(document)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_found_by_their_length_and_none_twice() {
        let scratch = loadgen::server::new_directory("documents-test", None).unwrap();
        let from = scratch.0.join("from");
        std::fs::create_dir_all(from.join("deeper")).unwrap();
        let member = |n: usize| format!("{{\"name\": \"number {n}\", \"text\": \"{}\"}}", "x".repeat(60));
        let large = format!("{{\"all\": [{}], \"count\": 2}}", [member(1), member(2), member(1)].join(", "));
        std::fs::write(from.join("large.json"), large).unwrap();
        std::fs::write(from.join("deeper/again.json"), member(2)).unwrap();
        std::fs::write(from.join("broken.json"), "{").unwrap();
        std::fs::write(from.join("README.md"), format!("{}\n\nshort\n", "word ".repeat(20))).unwrap();
        let pools = collect(&[from], &[(50, 150), (200, 400), (5000, 6000)], &scratch.0).unwrap();
        let lines = |at: usize| std::fs::read_to_string(&pools[at].path).unwrap();
        assert_eq!(pools[0].documents, 3, "two members and the text: {}", lines(0));
        assert!(lines(0).lines().all(|line| (50..=150).contains(&line.len())));
        assert_eq!((pools[1].documents, pools[2].documents), (1, 0), "the whole file: {}", lines(1));
        assert_eq!(pools[0].bytes, lines(0).len() as u64 - 3);
    }
}
