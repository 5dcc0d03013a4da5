//! Rows of leaves in memory, for tests: what a disk is for others.

use super::{LeafRows, catch, waiting};
use crate::cold::{Cold, Keeper, Shelf};
use crate::tree::Plan;
use crate::{Big, Find};
use base::Rng;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The rows.
#[derive(Default)]
pub struct Aside {
    rows: Mutex<BTreeMap<u64, Row>>,
    last: AtomicU64,
    reads: AtomicU64,
    kept: AtomicI64,
    shelf: Shelf,
}

struct Row {
    bytes: Vec<u8>,
    handles: usize,
    is_damaged: bool,
}

/// Stops after which a reader waits for all other leaves, so that a test of a large tree comes to an end.
const STOPS_MAX: usize = 12;

impl Aside {
    /// Makes plain leaves for which `choose` says so absent, and drops the copies of such that are absent already.
    pub fn take(self: &Arc<Self>, big: &mut Big, choose: &mut dyn FnMut() -> bool) {
        let keeper: Arc<dyn Keeper> = self.clone();
        let plan = Plan {
            age: 0,
            bytes: 0,
            bytes_max: usize::MAX,
            retries: true,
            compresses: true,
            takes_all: true,
            only_sheds: false,
            is_other: &|_| false,
        };
        let (mut from, mut bytes) = (Some(0), Vec::new());
        while let Some(here) = from {
            let (found, next) = big.look_for_cold(here, &plan, usize::MAX);
            from = next;
            match found.filter(|_| choose()) {
                Some(Find::Run(run, _)) => {
                    let Some(count) = run.bytes(&mut bytes) else { continue };
                    let address = self.put(&bytes);
                    let cold = Cold::new(&keeper, &address).expect("it is an address");
                    assert!(big.store_cold(&run, cold, count), "nothing has changed the tree");
                }
                Some(Find::Thawed(rank)) => big.shed(rank),
                None => {}
            }
        }
    }

    fn put(&self, bytes: &[u8]) -> [u8; 16] {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.rows().insert(number, Row { bytes: bytes.to_vec(), handles: 0, is_damaged: false });
        (u128::from(number) << 64 | bytes.len() as u128).to_be_bytes()
    }

    /// The rows that are held.
    pub fn held(&self) -> usize {
        self.rows().len()
    }

    /// How often one was read.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Bytes of copies in memory.
    pub fn kept(&self) -> i64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// From now on no row that is there can be read.
    pub fn damage(&self) {
        self.rows().values_mut().for_each(|row| row.is_damaged = true);
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<u64, Row>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the row at an address, which is there.
    fn with_row<R>(&self, address: &[u8], change: impl FnOnce(&mut Row) -> R) -> R {
        let (number, _) = parts(address).expect("it is an address");
        change(self.rows().get_mut(&number).expect("a row lives as long as a handle to it"))
    }
}

/// The number of a row and its length.
fn parts(address: &[u8]) -> Option<(u64, usize)> {
    let (number, len) = address.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), u64::from_be_bytes(len.try_into().ok()?) as usize))
}

impl LeafRows for Aside {
    fn read(&self, address: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.with_row(address, |row| match row.is_damaged {
            true => Err(io::Error::other("a test has damaged the row")),
            false => {
                out.extend_from_slice(&row.bytes);
                Ok(())
            }
        })
    }
}

impl Keeper for Aside {
    fn thaw(&self, _stored: &[u8], _out: &mut Vec<u8>) {
        unreachable!("what has rows thaws nothing");
    }

    fn len_of(&self, stored: &[u8]) -> Option<usize> {
        parts(stored).map(|(_, len)| len)
    }

    fn came(&self, stored: &[u8]) {
        self.with_row(stored, |row| row.handles += 1);
    }

    fn went(&self, stored: &[u8]) {
        let left = self.with_row(stored, |row| {
            row.handles -= 1;
            row.handles
        });
        if left == 0 {
            self.rows().retain(|_, row| row.handles > 0);
        }
    }

    fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn keeps(&self, bytes: usize, is_kept: bool) {
        self.kept.fetch_add(if is_kept { bytes as i64 } else { -(bytes as i64) }, Ordering::Relaxed);
    }

    fn rows(&self) -> Option<&dyn LeafRows> {
        Some(self)
    }
}

/// Runs what reads or edits trees until it needs no absent leaf any more, and fetches each that it names. From some
/// stops on, it waits for the others.
pub fn run<R>(mut run: impl FnMut() -> R) -> R {
    let mut held = Vec::new();
    loop {
        if held.len() == STOPS_MAX {
            return waiting(run);
        }
        match catch(&mut run) {
            Ok(result) => return result,
            Err(absent) => {
                assert!(absent.error.is_none(), "it does not wait");
                assert!(absent.leaf.is_row() && !absent.leaf.is_thawed(), "only what is not there stops");
                absent.leaf.fetch().expect("the row is readable");
                held.push(absent);
            }
        }
    }
}

/// Runs a read over the same tree with leaves that are absent: each with even chance, and then all.
pub fn over(big: &Big, mut read: impl FnMut(&Big)) {
    let (aside, mut rng) = (Arc::new(Aside::default()), Rng::new(big.content_bytes() as u64));
    let mut tree = big.clone();
    for all in [false, true] {
        aside.take(&mut tree, &mut || all || rng.one_in(2));
        run(|| read(&tree));
    }
}
