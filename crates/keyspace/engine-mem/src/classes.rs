//! Size classes of the entry pages.
//!
//! Small classes are exact multiples of the granule, so an entry never wastes more than three bytes. Bigger ones divide
//! the page evenly, one class for each count of slots, so that nothing is lost at a page's end: 0.8 % apart at 512
//! bytes, 1.6 % at 1 KiB, an eighth at the largest, which are eight to a page.
//!
//! K1. Classes ascend; the last holds [`ENTRY_BYTES_MAX`].
//! K2. Classes from 512 bytes up are multiples of 8, and so is every second class below: an entry that needs 8-byte
//!     alignment takes the next such class.

use crate::arena::PAGE_BYTES;

/// Sizes and handles count in these.
pub const GRANULE_BYTES: usize = 4;

/// The largest entry kept in a page. Bigger values are allocations of their own.
pub const ENTRY_BYTES_MAX: usize = 8192;

/// The smallest slot: header word, two lengths.
const ENTRY_BYTES_MIN: usize = 8;

const EXACT_BYTES_MAX: usize = 512;

/// Room for about four elements of 16 bytes; a list of a hundred elements of 8 bytes has 6 % at most.
const ROOM_STEP_BYTES_MAX: usize = 64;

const fn next_size(size: usize) -> usize {
    if size < EXACT_BYTES_MAX {
        return size + GRANULE_BYTES;
    }
    // As much as a slot may have when the page holds one slot fewer.
    let mut count = PAGE_BYTES / size;
    loop {
        count -= 1;
        let stretched = (PAGE_BYTES / count) & !7;
        if stretched > size {
            return stretched;
        }
    }
}

const fn count_classes() -> usize {
    let (mut size, mut count) = (ENTRY_BYTES_MIN, 1);
    while size < ENTRY_BYTES_MAX {
        size = next_size(size);
        count += 1;
    }
    count
}

/// How many classes there are.
pub const CLASS_COUNT: usize = count_classes();

const _: () = assert!(CLASS_COUNT < 256, "a class number is a byte, and so is their count");
const _: () = assert!(PAGE_BYTES / GRANULE_BYTES <= 1 << 16, "a granule's place in its page is 16 bits");

/// Slot size of each class, in granules.
pub static SLOT_GRANULES: [u16; CLASS_COUNT] = {
    let mut sizes = [0; CLASS_COUNT];
    let (mut size, mut class) = (ENTRY_BYTES_MIN, 0);
    while class < CLASS_COUNT {
        sizes[class] = (size / GRANULE_BYTES) as u16;
        size = next_size(size);
        class += 1;
    }
    sizes
};

/// `CLASS_OF[g]`: the smallest class that holds `g` granules.
static CLASS_OF: [u8; ENTRY_BYTES_MAX / GRANULE_BYTES + 1] = {
    let mut classes = [0; ENTRY_BYTES_MAX / GRANULE_BYTES + 1];
    let (mut granules, mut class) = (0, 0);
    while granules < classes.len() {
        if granules > SLOT_GRANULES[class] as usize {
            class += 1;
        }
        classes[granules] = class as u8;
        granules += 1;
    }
    classes
};

/// The class for an entry of this many bytes, at most [`ENTRY_BYTES_MAX`].
#[inline]
pub fn class_of(bytes: usize) -> u8 {
    CLASS_OF[bytes.div_ceil(GRANULE_BYTES)]
}

/// The class for an entry of this many bytes whose slot must begin at a multiple of 8.
#[inline]
pub fn aligned_class_of(bytes: usize) -> u8 {
    class_of(bytes.next_multiple_of(8))
}

/// The steps in which slots of edited entries grow: a quarter to an eighth of the entry, at most
/// [`ROOM_STEP_BYTES_MAX`].
#[inline]
fn room_step(bytes: usize) -> usize {
    let quarter = 1 << (bytes | ENTRY_BYTES_MIN).ilog2() >> 2;
    quarter.clamp(GRANULE_BYTES, ROOM_STEP_BYTES_MAX)
}

/// The class for an entry of this many bytes that is edited, so that an element more or less seldom moves it: the entry
/// is copied into memory that no cache holds when it moves, and what it leaves is a hole. On average a sixteenth is
/// unused.
#[inline]
pub fn roomy_class_of(bytes: usize) -> u8 {
    class_of(bytes.next_multiple_of(room_step(bytes)).min(ENTRY_BYTES_MAX))
}

/// Whether an edited entry of this many bytes stays in a slot of the class: there is room, and at most a step more than
/// [`roomy_class_of`] gives, so that one that grows and shrinks about a border stays where it is.
#[inline]
pub fn is_roomy(class: u8, bytes: usize) -> bool {
    let step = room_step(bytes);
    let most = (bytes.next_multiple_of(step) + step).min(ENTRY_BYTES_MAX);
    (class_of(bytes)..=class_of(most)).contains(&class)
}

/// Bytes of a slot of the class.
#[inline]
pub fn slot_bytes(class: u8) -> usize {
    SLOT_GRANULES[class as usize] as usize * GRANULE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size fits its class and no smaller one; small entries waste under a granule, a page of big ones about one
    /// slot in all, and the last class is the limit (K1, K2).
    #[test]
    fn classes_are_tight() {
        for bytes in 1..=ENTRY_BYTES_MAX {
            let class = class_of(bytes);
            let slot = slot_bytes(class);
            assert!(slot >= bytes, "{bytes} bytes in {slot}");
            assert!(class == 0 || slot_bytes(class - 1) < bytes, "{bytes} bytes fit the class below");
            let waste = slot - bytes;
            let tight =
                waste < GRANULE_BYTES || class == 0 || waste * (PAGE_BYTES / slot) <= slot + 8 * (PAGE_BYTES / slot);
            assert!(tight, "{bytes} bytes in {slot}");
            assert_eq!(slot_bytes(aligned_class_of(bytes)) % 8, 0, "alignment of {bytes}");
        }
        assert_eq!(slot_bytes((CLASS_COUNT - 1) as u8), ENTRY_BYTES_MAX);
    }

    /// Edited entries fit their slots, stay in them while they change by a step, and waste at most two steps.
    #[test]
    fn edited_entries_have_room_within_bounds() {
        for bytes in 1..=ENTRY_BYTES_MAX {
            let (class, step) = (roomy_class_of(bytes), room_step(bytes));
            assert!(is_roomy(class, bytes), "{bytes} bytes do not fit where they are put");
            assert!(step <= GRANULE_BYTES || step * 4 <= bytes, "steps of {step} for {bytes} bytes");
            let widest = (0..CLASS_COUNT as u8).filter(|class| is_roomy(*class, bytes)).max().unwrap();
            assert!(widest <= class_of((bytes + 2 * step).min(ENTRY_BYTES_MAX)), "{bytes} bytes keep too much");
            if bytes + step <= ENTRY_BYTES_MAX && room_step(bytes + step) == step {
                assert!(is_roomy(roomy_class_of(bytes + step), bytes), "{bytes} bytes after they were {step} more");
            }
        }
    }

    /// A page of any class loses little at its end.
    #[test]
    fn pages_are_used_to_their_end() {
        for class in 0..CLASS_COUNT {
            let slot = slot_bytes(class as u8);
            let lost = PAGE_BYTES % slot;
            assert!(lost * 100 < PAGE_BYTES, "class of {slot} loses {lost}");
        }
    }
}
