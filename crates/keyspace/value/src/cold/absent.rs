//! Leaves that are rows of a database on disk: *absent leaves*.
//!
//! ```text
//! view or edit --Cold::bytes--> in memory? --yes--> continues
//!      ^                           | no
//!      |                        unwinds with `Absent`, which names the leaf --> caller of the command
//!      '---- runs again, while a clone of the leaf is held <---- Cold::fetch <------'
//! ```
//!
//! An absent leaf is a [`Cold`] whose stored form is the address of a row; its [keeper](super::Keeper) has the
//! rows. A view cannot fail, and a hundred places read views. So a view unwinds instead of returning an error, and
//! trees in memory pay nothing for it. The panic hook does not run.
//!
//! A1. A row never changes: a changed leaf gets another one. So readers of older versions of the tree find theirs.
//! A2. The keeper counts the handles of a row (Z3), which lives as long as they do.
//! A4. An edit of a tree that may have such leaves takes place in a clone ([`whole`]), which shares everything.
//! A6. A leaf is fetched without any lock. The fetch sets the copy of all clones, and a clone that is held keeps it.

#[cfg(any(test, feature = "testing"))]
pub mod aside;

use super::{Cold, Keeper, Shelf};
use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Reads rows.
pub trait LeafRows: Send + Sync {
    /// Appends the bytes of a leaf whose stored form is this address. Waits for a device.
    ///
    /// # Errors
    /// When the row cannot be read.
    fn read(&self, address: &[u8], out: &mut Vec<u8>) -> io::Result<()>;
}

/// What a view or an edit that needs an absent leaf unwinds with.
#[derive(Debug)]
pub struct Absent {
    /// The leaf. [`Cold::fetch`] reads it, and while this is held the view finds it.
    pub leaf: Cold,
    /// Why its row cannot be read, when that was tried at once ([`waiting`]).
    pub error: Option<io::Error>,
}

thread_local! {
    /// How many have this thread wait for rows.
    static WAITS: Cell<u32> = const { Cell::new(0) };

    /// What this thread runs may be stopped. Other threads wait.
    static STOPS: Cell<bool> = const { Cell::new(false) };
}

/// While this lives, absent leaves stop what its thread runs, unless that waits for them.
#[derive(Debug)]
pub struct Stops {
    /// Whether they did before.
    before: bool,
}

impl Stops {
    /// From now on.
    #[inline]
    #[expect(clippy::new_without_default, reason = "its life has a meaning")]
    pub fn new() -> Self {
        Self { before: STOPS.replace(true) }
    }
}

impl Drop for Stops {
    #[inline]
    fn drop(&mut self) {
        STOPS.set(self.before);
    }
}

/// Runs what reads absent leaves at once, and waits for the device, where stopping would leave half a change behind. So
/// does all that runs while no [`Stops`] lives. It unwinds only when a row cannot be read.
pub fn waiting<R>(run: impl FnOnce() -> R) -> R {
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            end_waiting();
        }
    }
    begin_waiting();
    let _end = End;
    run()
}

/// Has this thread wait for rows until [`end_waiting`], where what is to run is not at hand as for [`waiting`]. Both
/// may be within each other, and end in any order.
pub fn begin_waiting() {
    WAITS.set(WAITS.get() + 1);
}

/// Ends what [`begin_waiting`] has begun.
pub fn end_waiting() {
    WAITS.set(WAITS.get() - 1);
}

/// Whether this thread waits for rows.
pub fn is_waiting() -> bool {
    !STOPS.get() || WAITS.get() > 0
}

/// Runs what may need an absent leaf, and is stopped by it unless it waits.
///
/// # Errors
/// When it does. What it has changed by then stays.
pub fn catch<R>(run: impl FnOnce() -> R) -> Result<R, Absent> {
    let _stops = Stops::new();
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match of_payload(payload) {
        Ok(absent) => absent,
        Err(payload) => resume_unwind(payload),
    })
}

/// Of trees that have both compressed leaves and such that are rows: the keeper of the former, which knows that of the
/// latter.
pub fn both(compressed: Arc<dyn Keeper>, rows: Arc<dyn Keeper>) -> Arc<dyn Keeper> {
    Arc::new(Both { compressed, rows })
}

struct Both {
    compressed: Arc<dyn Keeper>,
    rows: Arc<dyn Keeper>,
}

impl Keeper for Both {
    fn thaw(&self, stored: &[u8], out: &mut Vec<u8>) {
        self.compressed.thaw(stored, out);
    }

    fn len_of(&self, stored: &[u8]) -> Option<usize> {
        self.compressed.len_of(stored)
    }

    fn came(&self, stored: &[u8]) {
        self.compressed.came(stored);
    }

    fn went(&self, stored: &[u8]) {
        self.compressed.went(stored);
    }

    fn shelf(&self) -> &Shelf {
        self.compressed.shelf()
    }

    fn keeps(&self, bytes: usize, is_kept: bool) {
        self.compressed.keeps(bytes, is_kept);
    }

    fn of_rows(&self) -> Option<&Arc<dyn Keeper>> {
        Some(&self.rows)
    }
}

/// Changes a tree so that stopping leaves it as it was: in a clone, which takes its place, if leaves may be rows (A4).
pub fn whole<T: Clone, R>(tree: &mut T, has_rows: bool, edit: impl FnOnce(&mut T) -> R) -> R {
    if !has_rows {
        return edit(tree);
    }
    let mut clone = tree.clone();
    let result = edit(&mut clone);
    *tree = clone;
    result
}

/// What unwinding has brought, if it was for an absent leaf.
///
/// # Errors
/// The payload itself, of any other panic: a bug.
pub fn of_payload(payload: Box<dyn Any + Send>) -> Result<Absent, Box<dyn Any + Send>> {
    payload.downcast().map(|absent| *absent)
}

/// Appends the bytes of a leaf that is not in memory, or unwinds.
pub(crate) fn read(leaf: &Cold, rows: &dyn LeafRows, out: &mut Vec<u8>) {
    let error = match is_waiting() {
        false => None,
        true => match leaf.read_row(rows, out) {
            Ok(()) => return,
            Err(error) => Some(error),
        },
    };
    resume_unwind(Box::new(Absent { leaf: leaf.clone(), error }));
}

#[cfg(test)]
mod tests {
    use super::aside::{self, Aside};
    use super::*;
    use crate::hash::{Change, View};
    use crate::{Big, Encoding, Limits, Stored, Type};
    use base::Rng;
    use base::hash::KeyHasher;
    use std::sync::Arc;

    /// A hash of some leaves, all of them absent.
    fn absent_hash() -> (Big, Arc<Aside>) {
        let (limits, hasher, mut changes) = (Limits::default(), KeyHasher::new(&mut Rng::new(1)), Vec::new());
        for number in 0..200 {
            let (field, value) = (format!("field {number}"), format!("value {number} {}", "v".repeat(60)));
            Change::Set { field: field.as_bytes(), value: value.as_bytes(), expire_at: None }.put(&mut changes);
        }
        let (mut big, aside) = (Big::empty(Type::Hash, &hasher), Arc::new(Aside::default()));
        let body = crate::Body::Big(&mut big);
        let mut slot = crate::Slot { body, encoding: Encoding::BIG, limits: &limits, hasher: &hasher };
        crate::apply(Type::Hash, &mut slot, &changes);
        aside.take(&mut big, &mut || true);
        assert!(aside.held() > 5 && big.may_have_rows() && !big.has_cold());
        (big, aside)
    }

    fn get(big: &Big, number: u32) -> Vec<u8> {
        let view = View::of(Encoding::BIG, Stored::Big(big));
        view.get(format!("field {number}").as_bytes()).expect("it is there").value.to_vec()
    }

    #[test]
    fn a_stop_names_one_leaf_and_a_clone_keeps_what_was_fetched() {
        let (big, aside) = absent_hash();
        let stop = catch(|| get(&big, 7)).expect_err("it is absent");
        assert!(stop.error.is_none() && aside.reads() == 0);
        let copy = big.clone();
        stop.leaf.fetch().unwrap();
        stop.leaf.fetch().unwrap();
        assert_eq!((aside.reads(), aside.kept() > 0), (1, true), "a second fetch reads nothing");
        for tree in [&big, &copy] {
            assert!(catch(|| get(tree, 7)).unwrap().starts_with(b"value 7 "));
        }
        // Dropping copies is a pass over the tree, which does not drop what is held.
        let mut big = big;
        drop(copy);
        aside.take(&mut big, &mut || true);
        assert!(catch(|| get(&big, 7)).is_ok());
        drop(stop);
        aside.take(&mut big, &mut || true);
        assert!(catch(|| get(&big, 7)).is_err());
        assert_eq!(aside.kept(), 0);
        drop(big);
        assert_eq!(aside.held(), 0, "a row lives as long as its handles");
    }

    #[test]
    fn who_may_wait_reads_at_once_and_learns_of_a_row_that_cannot_be_read() {
        let (big, aside) = absent_hash();
        assert!(waiting(|| waiting(|| get(&big, 1)).starts_with(b"value 1 ") && get(&big, 2).starts_with(b"value 2 ")));
        assert!(aside.reads() > 0);
        assert!(catch(|| get(&big, 1)).is_ok(), "it keeps the copy");
        aside.damage();
        let absent = (3..200).find_map(|number| catch(|| get(&big, number)).err()).expect("not all were read");
        assert!(absent.error.is_none(), "this thread does not wait any more");
        assert_eq!(absent.leaf.fetch().unwrap_err().to_string(), "a test has damaged the row");
        let failed = (3..200).find_map(|number| catch(|| waiting(|| get(&big, number))).err()).expect("none is read");
        assert_eq!(failed.error.unwrap().to_string(), "a test has damaged the row");
        assert!(catch(|| get(&big, 1)).is_ok(), "what is in memory is readable");
    }

    #[test]
    fn other_unwinding_goes_on() {
        let payload = catch_unwind(|| catch(|| resume_unwind(Box::new("a bug")))).unwrap_err();
        assert_eq!(of_payload(payload).unwrap_err().downcast_ref(), Some(&"a bug"));
    }

    /// Reads that all need another leaf come to their end.
    #[test]
    fn a_long_read_comes_to_its_end() {
        let (big, aside) = absent_hash();
        let all = aside::run(|| View::of(Encoding::BIG, Stored::Big(&big)).iter().count());
        assert_eq!(all, 200);
        assert!(aside.reads() as usize >= aside.held());
    }
}
