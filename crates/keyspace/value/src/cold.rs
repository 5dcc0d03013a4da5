//! Leaves of a tree that are stored compressed.
//!
//! ```text
//!            unused for a while                         a read
//!   plain  -------------------------------->  cold  ------------------------->  cold, thawed
//!     ^                                        ^ '---- unused for a while ------'  |
//!     '----------------------- a change -------------------------------------------'
//! ```
//!
//! The unit is a leaf, so a read of a big collection decompresses (*thaws*) only what it needs. Readers see no
//! difference: a leaf returns its bytes as before, and keeps them while they are used. Its memory is counted without
//! the thawed copy, since a read must not change the tree; the [`Keeper`] counts these copies instead.
//!
//! Z1. Compressed bytes stay the same, in memory and in checkpoints, until the leaf is changed.
//! Z2. Compressing a leaf, thawing it and dropping the thawed copy change no collection: clones and walks need not
//!     know. Dropping also moves a stored form out of a sparse page (`pages`).
//! Z3. The keeper counts every live [`Cold`], so that what reading it needs (a dictionary, a row) stays.
//!
//! The stored form may also be the address of a row of a database on disk: see [`absent`].

pub mod absent;

use self::absent::LeafRows;
use crate::nest::{Counted, Nests};
use crate::pages::{Pages, Place};
use crate::tree::allocated;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

pub use crate::pages::PagesUse;

/// Knows the codec, and counts.
pub trait Keeper: Send + Sync {
    /// Appends the bytes that are stored so.
    ///
    /// # Panics
    /// When they cannot be read: memory is damaged, or the program is wrong.
    fn thaw(&self, stored: &[u8], out: &mut Vec<u8>);

    /// How many bytes are stored so; `None` when these are no such bytes.
    fn len_of(&self, stored: &[u8]) -> Option<usize>;

    /// Bytes have come that are stored so.
    fn came(&self, stored: &[u8]);

    /// They have gone.
    fn went(&self, stored: &[u8]);

    /// Where stored forms lie.
    fn shelf(&self) -> &Shelf;

    /// This many bytes more, or fewer, are kept as thawed copies.
    fn keeps(&self, bytes: usize, is_kept: bool);

    /// Where the bytes are when they are not in memory: then stored forms are addresses, and nothing is thawed.
    fn rows(&self) -> Option<&dyn LeafRows> {
        None
    }

    /// The keeper of leaves that are rows, where trees may have such besides compressed ones.
    fn of_rows(&self) -> Option<&Arc<dyn Keeper>> {
        None
    }
}

/// Where stored forms and their handles lie: apart from the heap, so that the leaves they replace free whole pages.
#[derive(Debug, Default)]
pub struct Shelf {
    pages: Pages,
    kept: Nests<Kept>,
}

impl Shelf {
    /// What the pages of stored forms hold.
    pub fn pages(&self) -> PagesUse {
        self.pages.used()
    }

    fn put(&self, stored: &[u8], len: usize, keeper: &Arc<dyn Keeper>) -> Counted<Kept> {
        let (stored, thawed, keeper) = (self.pages.put(stored), OnceLock::new(), keeper.clone());
        self.kept.put(Kept { stored, len, thawed, keeper })
    }
}

/// Bytes in their stored form. A clone shares them.
#[derive(Clone)]
pub struct Cold(Counted<Kept>);

struct Kept {
    stored: Place,
    len: usize,
    thawed: OnceLock<Box<[u8]>>,
    keeper: Arc<dyn Keeper>,
}

impl Cold {
    /// What is stored so; `None` when it is not what the keeper knows how to read.
    pub fn new(keeper: &Arc<dyn Keeper>, stored: &[u8]) -> Option<Self> {
        let len = keeper.len_of(stored)?;
        keeper.came(stored);
        Some(Self(keeper.shelf().put(stored, len, keeper)))
    }

    /// How many bytes are stored so.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "no bytes get no shorter")]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Reads the stored form; see [`Place::with`].
    pub fn with_stored<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.0.stored.with(read)
    }

    /// The bytes, which are kept from then on. Takes some microseconds the first time. Unwinds when they are a row
    /// that is not in memory: see [`absent`].
    pub fn bytes(&self) -> &[u8] {
        self.0.thawed.get_or_init(|| {
            let mut bytes = Vec::new();
            self.thaw(&mut bytes);
            self.0.kept(bytes)
        })
    }

    /// The bytes, which are not kept for that.
    pub fn bytes_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if let Some(thawed) = self.0.thawed.get() {
            return thawed;
        }
        scratch.clear();
        self.thaw(scratch);
        scratch
    }

    /// Appends the bytes.
    fn thaw(&self, out: &mut Vec<u8>) {
        match self.0.keeper.rows() {
            None => self.with_stored(|stored| self.0.keeper.thaw(stored, out)),
            Some(rows) => absent::read(self, rows, out),
        }
    }

    /// Reads the row that has the bytes, unless they are in memory, and keeps them while any clone is held. Waits for a
    /// device, and needs no lock.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub fn fetch(&self) -> io::Result<()> {
        if let Some(rows) = self.0.keeper.rows().filter(|_| !self.is_thawed()) {
            let mut bytes = Vec::new();
            self.read_row(rows, &mut bytes)?;
            self.0.thawed.get_or_init(|| self.0.kept(bytes));
        }
        Ok(())
    }

    /// Appends the bytes, of a row also where others would unwind. May wait for a device.
    pub(crate) fn bytes_at_once(&self, out: &mut Vec<u8>) -> io::Result<()> {
        match self.0.keeper.rows() {
            Some(rows) if !self.is_thawed() => self.read_row(rows, out),
            _ => {
                out.extend_from_slice(self.bytes());
                Ok(())
            }
        }
    }

    /// Appends the bytes of the row.
    pub(crate) fn read_row(&self, rows: &dyn LeafRows, out: &mut Vec<u8>) -> io::Result<()> {
        // No page is to be kept from others for as long as a device takes.
        let (address, start) = (self.with_stored(<[u8]>::to_vec), out.len());
        rows.read(&address, out)?;
        match out.len() - start == self.len() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "a row has another length than its leaf")),
        }
    }

    /// The same row, with a copy of its own.
    pub(crate) fn apart(&self) -> Self {
        let (stored, keeper) = (self.with_stored(<[u8]>::to_vec), &self.0.keeper);
        keeper.came(&stored);
        Self(keeper.shelf().put(&stored, self.len(), keeper))
    }

    /// Whether the bytes are a row, whether they are in memory or not.
    pub fn is_row(&self) -> bool {
        self.0.keeper.rows().is_some()
    }

    /// Whether the bytes are kept.
    pub fn is_thawed(&self) -> bool {
        self.0.thawed.get().is_some()
    }

    /// Whether [`Self::shed`] would give memory back though the bytes are not kept.
    pub fn is_sparse(&self) -> bool {
        self.0.stored.is_sparse() || self.0.is_sparse()
    }

    /// Drops the thawed copy, and leaves a sparse page, unless the bytes are shared.
    pub fn shed(&mut self) {
        if let Some(kept) = self.0.get_mut() {
            kept.forget();
            if self.is_sparse() {
                *self = self.apart();
            }
        }
    }

    /// How many there are that share it.
    pub fn owners(&self) -> usize {
        self.0.owners()
    }

    /// Whether both are the same, not only equal.
    pub fn is(&self, other: &Self) -> bool {
        self.0.is(&other.0)
    }

    /// Bytes of its allocations, without the thawed copy and its part of a page.
    pub fn memory_bytes(&self) -> usize {
        Counted::<Kept>::BYTES + self.0.stored.len()
    }
}

impl Kept {
    /// These bytes as the copy to keep.
    fn kept(&self, bytes: Vec<u8>) -> Box<[u8]> {
        self.keeper.keeps(allocated(bytes.len()), true);
        bytes.into_boxed_slice()
    }

    fn forget(&mut self) {
        if let Some(thawed) = self.thawed.take() {
            self.keeper.keeps(allocated(thawed.len()), false);
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.forget();
        self.stored.with(|stored| self.keeper.went(stored));
    }
}

impl fmt::Debug for Cold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cold").field("stored_len", &self.0.stored.len()).finish_non_exhaustive()
    }
}

/// How many passes have looked at a leaf since its last use. Readers write it too, without synchronization: a lost
/// update is a pass more or less.
#[derive(Debug, Default)]
pub struct Age(AtomicU8);

impl Age {
    /// An attempt failed; it is not repeated before the next use.
    const VAIN: u8 = u8::MAX;

    /// Notes a use. It costs a write only after a pass.
    #[inline]
    pub fn renew(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// How old it will be when a pass has looked at it.
    pub fn next(&self) -> u8 {
        let age = self.0.load(Ordering::Relaxed);
        if age == Self::VAIN { age } else { (age + 1).min(Self::VAIN - 1) }
    }

    /// A pass has looked at it.
    pub fn grow(&self) {
        self.0.store(self.next(), Ordering::Relaxed);
    }

    /// Notes a failed attempt.
    pub fn give_up(&self) {
        self.0.store(Self::VAIN, Ordering::Relaxed);
    }

    /// Whether an attempt failed.
    pub fn is_given_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::VAIN
    }
}

impl Clone for Age {
    fn clone(&self) -> Self {
        Self(AtomicU8::new(self.0.load(Ordering::Relaxed)))
    }
}

/// A vector of bytes that may be stored compressed.
#[derive(Clone, Debug, Default)]
pub struct Bytes {
    form: Form,
    age: Age,
}

#[derive(Clone, Debug)]
enum Form {
    Plain(Vec<u8>),
    Cold(Cold),
}

impl Default for Form {
    fn default() -> Self {
        Self::Plain(Vec::new())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self { form: Form::Plain(bytes), age: Age::default() }
    }
}

impl From<Cold> for Bytes {
    fn from(cold: Cold) -> Self {
        Self { form: Form::Cold(cold), age: Age::default() }
    }
}

impl Bytes {
    /// The bytes.
    #[inline]
    pub fn get(&self) -> &[u8] {
        self.age.renew();
        match &self.form {
            Form::Plain(bytes) => bytes,
            Form::Cold(cold) => cold.bytes(),
        }
    }

    /// The bytes, without counting this as a use: no thawed copy is kept.
    pub fn get_once<'a>(&'a self, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        match &self.form {
            Form::Plain(bytes) => bytes,
            Form::Cold(cold) => cold.bytes_once(scratch),
        }
    }

    /// How many they are.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Plain(bytes) => bytes.len(),
            Form::Cold(cold) => cold.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes as they are, for any change.
    #[inline]
    pub fn own(&mut self) -> &mut Vec<u8> {
        self.age.renew();
        self.warm();
        match &mut self.form {
            Form::Plain(bytes) => bytes,
            Form::Cold(_) => unreachable!("they have just been stored as they are"),
        }
    }

    /// Stores the bytes as they are, if they are compressed.
    #[inline]
    pub fn warm(&mut self) {
        if let Form::Cold(cold) = &self.form {
            self.form = Self::warmed(cold);
        }
    }

    #[cold]
    fn warmed(cold: &Cold) -> Form {
        Form::Plain(cold.bytes_once(&mut Vec::new()).to_vec())
    }

    /// Bytes of their allocations, without thawed copies.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Plain(bytes) => allocated(bytes.capacity()),
            Form::Cold(cold) => cold.memory_bytes(),
        }
    }

    /// The stored form, if they are compressed.
    pub fn compressed(&self) -> Option<&Cold> {
        self.cold().filter(|cold| !cold.is_row())
    }

    /// The stored form, if they have one.
    pub fn cold(&self) -> Option<&Cold> {
        match &self.form {
            Form::Plain(_) => None,
            Form::Cold(cold) => Some(cold),
        }
    }

    /// The time since the last use.
    pub fn age(&self) -> &Age {
        &self.age
    }

    /// Drops the thawed copy, unless it is shared.
    pub fn shed(&mut self) {
        if let Form::Cold(cold) = &mut self.form {
            cold.shed();
        }
    }
}
