//! Where the stored forms of compressed leaves lie: in pages of their own, one after the other.
//!
//! ```text
//! page  | form | form | gone | form | ... | form |        closed: full
//! page  | form | form |                                   open: the next form comes here
//! ```
//!
//! A form is shorter than the leaf it replaces. In the heap it would land in a hole that one or two leaves left, so
//! nearly every page of the system would hold one: 100,000 paths as fields of a hash, compressed from 8.7 MB to 2.7,
//! kept as many pages as before, and returning free memory helped by an eighth. With pages of their own, the pages of
//! the leaves go back as a whole.
//!
//! S1. A form stays where it is, with the same bytes, as long as its [`Place`] is held.
//! S2. A page is given back when its last form has gone. Until then it also holds the space of dropped forms. When that
//!     is more than a quarter, the page [is sparse](Place::is_sparse): passes over the leaves move its forms.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use triomphe::Arc;

/// Of a page: a mapping of its own, of which the system backs what has been written.
const PAGE_BYTES: usize = 256 << 10;

/// A longer form has a page of its own.
const SHARED_LEN_MAX: usize = PAGE_BYTES / 8;

/// All pages that are in use; the open one is kept here.
#[derive(Debug, Default)]
pub struct Pages {
    open: Mutex<Option<Arc<Page>>>,
    sums: Arc<Sums>,
}

/// What pages hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagesUse {
    /// Bytes of forms that were put into the pages that are there.
    pub bytes: usize,
    /// Of these, bytes of forms that have gone.
    pub gone_bytes: usize,
}

/// Of all pages.
#[derive(Debug, Default)]
struct Sums {
    bytes: AtomicUsize,
    live_bytes: AtomicUsize,
}

struct Page {
    /// Never more than there is room for. Written under the lock of [`Pages`]; written bytes are only read.
    bytes: RwLock<Vec<u8>>,
    /// Of the forms that are there still.
    live_bytes: AtomicUsize,
    /// Nothing more comes.
    is_closed: AtomicBool,
    sums: Arc<Sums>,
}

/// Where a form is. Its bytes go with it.
#[derive(Debug)]
pub struct Place {
    page: Arc<Page>,
    start: u32,
    len: u32,
}

impl Pages {
    /// Stores a form.
    pub fn put(&self, form: &[u8]) -> Place {
        if form.len() > SHARED_LEN_MAX {
            let page = Page::new(form.len(), &self.sums);
            page.is_closed.store(true, Ordering::Relaxed);
            return page.put(form);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = open.as_ref().filter(|page| page.written() + form.len() > PAGE_BYTES) {
            page.is_closed.store(true, Ordering::Relaxed);
            *open = None;
        }
        open.get_or_insert_with(|| Page::new(PAGE_BYTES, &self.sums)).put(form)
    }

    /// What they hold: sums that are read one after the other.
    pub fn used(&self) -> PagesUse {
        let live_bytes = self.sums.live_bytes.load(Ordering::Relaxed);
        let bytes = self.sums.bytes.load(Ordering::Relaxed);
        PagesUse { bytes, gone_bytes: bytes.saturating_sub(live_bytes) }
    }
}

impl Page {
    fn new(capacity: usize, sums: &Arc<Sums>) -> Arc<Self> {
        let (bytes, sums) = (RwLock::new(Vec::with_capacity(capacity)), sums.clone());
        Arc::new(Self { bytes, live_bytes: AtomicUsize::new(0), is_closed: AtomicBool::new(false), sums })
    }

    fn written(&self) -> usize {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.sums.bytes.fetch_sub(self.written(), Ordering::Relaxed);
    }
}

/// Appends a form that has room.
trait Put {
    fn put(&self, form: &[u8]) -> Place;
}

impl Put for Arc<Page> {
    fn put(&self, form: &[u8]) -> Place {
        let mut bytes = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let (start, len) = (bytes.len() as u32, form.len() as u32);
        bytes.extend_from_slice(form);
        for sum in [&self.live_bytes, &self.sums.live_bytes, &self.sums.bytes] {
            sum.fetch_add(form.len(), Ordering::Relaxed);
        }
        Place { page: self.clone(), start, len }
    }
}

impl Place {
    /// How long the form is.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Reads the form. While `read` runs nothing is put into its page, so it is not to put anything anywhere.
    pub fn with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        let bytes = self.page.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let start = self.start as usize;
        read(&bytes[start..start + self.len()])
    }

    /// Whether more than a quarter of its page, which is closed, holds nothing any more.
    pub fn is_sparse(&self) -> bool {
        self.page.is_closed.load(Ordering::Relaxed)
            && self.page.live_bytes.load(Ordering::Relaxed) < self.page.written() / 4 * 3
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for sum in [&self.page.live_bytes, &self.page.sums.live_bytes] {
            sum.fetch_sub(self.len(), Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("live_bytes", &self.live_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forms stay as they are while others come and go, also in a page that has become sparse; long ones have pages of
    /// their own.
    #[test]
    fn forms_stay_where_they_are() {
        let (pages, mut rng) = (Pages::default(), base::Rng::new(1));
        let rounds = if cfg!(miri) { 300 } else { 5_000 };
        let form = |number: u64| {
            let len = if number.is_multiple_of(100) { SHARED_LEN_MAX + 1 } else { 100 + number as usize % 2_000 };
            vec![number as u8; len]
        };
        let mut held: Vec<(u64, Place)> = Vec::new();
        for number in 0..rounds {
            held.push((number, pages.put(&form(number))));
            if rng.one_in(2) {
                held.swap_remove(rng.below(held.len() as u64) as usize);
            }
        }
        for (number, place) in &held {
            assert!(place.with(|bytes| bytes == form(*number)));
            assert!(place.len() <= SHARED_LEN_MAX || !place.is_sparse());
        }
        assert!(cfg!(miri) || held.iter().any(|(_, place)| place.is_sparse()));
        // As a pass does.
        while let Some(at) = held.iter().position(|(_, place)| place.is_sparse()) {
            held[at].1 = pages.put(&held[at].1.with(<[u8]>::to_vec));
        }
        assert!(held.iter().all(|(number, place)| place.with(|bytes| bytes == form(*number))));
        let held_bytes: usize = held.iter().map(|(_, place)| place.len()).sum();
        let PagesUse { bytes, gone_bytes } = pages.used();
        assert_eq!(bytes - gone_bytes, held_bytes);
        assert!(gone_bytes <= bytes / 4 + PAGE_BYTES, "no closed page is sparse: {gone_bytes} of {bytes}");
        held.clear();
        let open_bytes = pages.open.lock().unwrap().as_ref().map_or(0, |page| page.written());
        assert_eq!(pages.used(), PagesUse { bytes: open_bytes, gone_bytes: open_bytes });
    }
}
