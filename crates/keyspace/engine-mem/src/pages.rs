//! The allocator of a region: pages of equal slots, one size class each.
//!
//! ```text
//! page:  | slot | slot | free -> | slot | free -| slot |  never used ...  |
//!                                                      ^ bump: memory after it was never touched
//! ```
//!
//! A class allocates from the free slots of its *current* page; when there are none, the fullest page that has some
//! becomes current; when no page has any, a slot is carved at a bump pointer. So sparse pages empty out, free slots are
//! used before fresh memory is touched, and a class that only ever grew has touched no more than one system line (4
//! KiB) it does not need. A page without a live slot is given back.
//!
//! A shard of a few thousand entries of all lengths would still have more such lines than entries fill. So a class of
//! few entries (*small*) first takes what is resident and unused of the classes next to it, an eighth larger at most,
//! and its last line is *squeezed* out, when there is time, if what lies in it has room elsewhere.
//!
//! P1. A slot is live, free (marked so by the backing, and on its page's list unless the page is being emptied), or
//!     at or after the bump pointer.
//! P2. A page is in exactly one place: current, on the list it belongs to, full, being emptied, or not in use.
//! P3. `touched` counts the system lines below the bump pointers; memory after them is not resident.
//!
//! Handles count granules from the start of the region.

use crate::arena::{LINE_OF_SYSTEM_BYTES, PAGE_BYTES};
use crate::memory::{MemoryKind, MemoryUse};
use std::sync::Arc;

/// What pages are made of.
pub trait Backing {
    /// Bytes that handles count in.
    const GRANULE_BYTES: usize;

    /// Makes the first `bytes` accessible.
    fn commit(&mut self, bytes: usize);

    /// Gives memory of whole system lines back.
    fn discard(&mut self, start: usize, length: usize);

    /// Notes that a page has been filled from end to end.
    fn filled(&mut self, page: u32);

    /// Notes that a filled page gives memory back.
    fn opened(&mut self, page: u32);

    /// Marks a slot free and keeps a 16-bit link in it.
    fn mark_free(&mut self, handle: u32, link: u16);

    /// The link in a slot that is marked free; `None` when it is live.
    fn free_link(&self, handle: u32) -> Option<u16>;
}

/// No page, in page numbers.
const NO_PAGE: u32 = u32::MAX;

/// No slot, in places inside a page. No slot starts at the last granule, since none is that small.
const NO_SLOT: u16 = u16::MAX;

/// Lists of pages with free slots, by eighths of fullness.
const FULLNESS_COUNT: usize = 8;

/// The list after those: pages without free slots whose bump pointer is not at the end.
const ROOMY: usize = FULLNESS_COUNT;

/// A class of at most this many bytes is small.
const SMALL_BYTES_MAX: usize = PAGE_BYTES;

/// A slot that is taken instead of one of a small class is larger by at most one part in this many.
const NEAR_PARTS: u16 = 8;

/// A page being emptied gives its memory back in pieces of this many system lines, so that emptying can stop as soon as
/// enough has come back.
const GIVEN_BACK_LINES: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Unused,
    Current,
    Listed(u8),
    Full,
    Emptying,
    /// Part of a run of whole pages.
    Run,
}

struct Page {
    class: u8,
    place: Place,
    live: u16,
    /// First granule never used; the page's granules when there is none left.
    bump: u16,
    /// First free slot of the list, [`NO_SLOT`] when empty.
    free: u16,
    previous: u32,
    next: u32,
}

struct Class {
    /// A page with free slots that allocation draws from.
    current: u32,
    lists: [u32; FULLNESS_COUNT + 1],
    live: u32,
    /// Slots below the bump pointers, live or free.
    carved: u32,
}

/// A page being emptied from its end: slots at `high` and above are not live.
#[derive(Clone, Copy)]
struct Emptying {
    number: u32,
    high: u16,
    /// Slots below `low` are live, or were when they were passed.
    low: u16,
    /// Where a squeeze of the page's last system line ends; `None` when all of the page is to go.
    down_to: Option<u16>,
}

/// An allocator of slots over a backing, which comes first.
#[repr(C)]
pub struct Pages<B: Backing> {
    backing: B,
    slot_granules: &'static [u16],
    pages: Vec<Page>,
    classes: Vec<Class>,
    /// Pages that were used and given back; the lowest numbers are not preferred, since none of them is resident.
    unused: Vec<u32>,
    /// Pages being emptied, with the place above which they are.
    emptying: Vec<Emptying>,
    /// Classes below this one were squeezed.
    squeezed: u8,
    live_bytes: usize,
    carved_bytes: usize,
    touched_lines: usize,
    memory: Arc<MemoryUse>,
    kind: MemoryKind,
}

impl<B: Backing> Pages<B> {
    const PAGE_GRANULES: u32 = (PAGE_BYTES / B::GRANULE_BYTES) as u32;

    /// An allocator of the slot sizes given (in granules, ascending) that counts its memory as `kind`.
    pub fn new(backing: B, slot_granules: &'static [u16], memory: Arc<MemoryUse>, kind: MemoryKind) -> Self {
        assert!(Self::PAGE_GRANULES <= u32::from(NO_SLOT), "a place inside a page is 16 bits");
        let class = || Class { current: NO_PAGE, lists: [NO_PAGE; FULLNESS_COUNT + 1], live: 0, carved: 0 };
        Self {
            backing,
            slot_granules,
            pages: Vec::new(),
            classes: slot_granules.iter().map(|_| class()).collect(),
            unused: Vec::new(),
            emptying: Vec::new(),
            squeezed: 0,
            live_bytes: 0,
            carved_bytes: 0,
            touched_lines: 0,
            memory,
            kind,
        }
    }

    /// The memory that handles refer to.
    #[inline]
    pub fn backing(&self) -> &B {
        &self.backing
    }

    /// The memory that handles refer to, for writing.
    #[inline]
    pub fn backing_mut(&mut self) -> &mut B {
        &mut self.backing
    }

    /// Takes a slot of the class. Its contents are undefined.
    pub fn allocate(&mut self, class: u8) -> u32 {
        let (number, place) = self.take_free(class).unwrap_or_else(|| self.carve_next(class));
        self.make_live(number, place)
    }

    /// Takes a slot of the class, or of one next to it if it is small and has none in resident memory.
    pub fn allocate_near(&mut self, class: u8) -> u32 {
        let taken = self.take_free(class).or_else(|| self.take_near(class));
        let (number, place) = taken.unwrap_or_else(|| self.carve_next(class));
        self.make_live(number, place)
    }

    #[inline]
    fn make_live(&mut self, number: u32, place: u16) -> u32 {
        let size = self.slot_granules[self.pages[number as usize].class as usize];
        self.count_live(number, size, 1);
        number * Self::PAGE_GRANULES + u32::from(place)
    }

    /// A free slot of the class.
    #[inline]
    fn take_free(&mut self, class: u8) -> Option<(u32, u16)> {
        loop {
            let number = self.classes[class as usize].current;
            if number == NO_PAGE {
                self.choose_current(class)?;
            } else if let Some(place) = self.pop_free(number) {
                return Some((number, place));
            } else {
                self.classes[class as usize].current = NO_PAGE;
                self.list(number);
            }
        }
    }

    /// Without a current page: makes the fullest page with free slots current, if any page has some.
    fn choose_current(&mut self, class: u8) -> Option<()> {
        let lists = &self.classes[class as usize].lists[..FULLNESS_COUNT];
        let number = lists.iter().rev().copied().find(|&head| head != NO_PAGE)?;
        self.unlist(number);
        self.pages[number as usize].place = Place::Current;
        self.classes[class as usize].current = number;
        Some(())
    }

    /// For a small class that has no free slot: one of the classes next to it.
    fn take_near(&mut self, class: u8) -> Option<(u32, u16)> {
        let is_needed = self.is_small(class) && self.resident_room(class) == 0;
        is_needed.then(|| self.near(class).find_map(|near| self.take_resident(near))).flatten()
    }

    /// A slot of the class, if that needs no memory which is not resident.
    fn take_resident(&mut self, class: u8) -> Option<(u32, u16)> {
        self.take_free(class).or_else(|| (self.resident_room(class) > 0).then(|| self.carve_next(class)))
    }

    /// The classes whose slots may be taken instead of those of a small class.
    fn near(&self, class: u8) -> impl Iterator<Item = u8> + use<B> {
        let sizes = self.slot_granules;
        let size_max = sizes[class as usize] + sizes[class as usize] / NEAR_PARTS;
        (class + 1..sizes.len() as u8).take_while(move |&near| sizes[near as usize] <= size_max)
    }

    fn is_small(&self, class: u8) -> bool {
        self.slot_bytes(class) * self.classes[class as usize].carved as usize <= SMALL_BYTES_MAX
    }

    /// Slots of the class that were never used and are resident.
    fn resident_room(&self, class: u8) -> u32 {
        let number = self.classes[class as usize].lists[ROOMY];
        let used = self.pages.get(number as usize).map_or(0, |page| page.bump as usize * B::GRANULE_BYTES);
        ((used.next_multiple_of(LINE_OF_SYSTEM_BYTES) - used) / self.slot_bytes(class)) as u32
    }

    fn slot_bytes(&self, class: u8) -> usize {
        self.slot_granules[class as usize] as usize * B::GRANULE_BYTES
    }

    /// Takes `count` neighbouring slots of the class that were never used, if that needs only memory that is already
    /// resident. They are given back one by one.
    pub fn allocate_resident(&mut self, class: u8, count: u16) -> Option<u32> {
        let number = self.classes[class as usize].lists[ROOMY];
        let (size, bump) = (self.slot_granules[class as usize], self.pages.get(number as usize)?.bump);
        if lines_below::<B>(bump.checked_add(size * count)?) > lines_below::<B>(bump) {
            return None;
        }
        let place = self.carve(number, count);
        self.count_live(number, size, count);
        Some(number * Self::PAGE_GRANULES + u32::from(place))
    }

    /// Whether the class has no memory.
    pub fn is_unused(&self, class: u8) -> bool {
        self.classes[class as usize].carved == 0
    }

    #[inline]
    fn count_live(&mut self, number: u32, size: u16, count: u16) {
        let page = &mut self.pages[number as usize];
        page.live += count;
        self.classes[page.class as usize].live += u32::from(count);
        self.live_bytes += usize::from(size) * usize::from(count) * B::GRANULE_BYTES;
    }

    #[inline]
    fn pop_free(&mut self, number: u32) -> Option<u16> {
        let page = &mut self.pages[number as usize];
        if page.free == NO_SLOT {
            return None;
        }
        let place = page.free;
        page.free = self.backing.free_link(number * Self::PAGE_GRANULES + u32::from(place)).expect("P1: a free slot");
        Some(place)
    }

    /// Carves a slot of the class.
    fn carve_next(&mut self, class: u8) -> (u32, u16) {
        let number = match self.classes[class as usize].lists[ROOMY] {
            NO_PAGE => {
                let number = self.fresh_page();
                self.pages[number as usize].class = class;
                self.list(number);
                number
            }
            number => number,
        };
        (number, self.carve(number, 1))
    }

    /// Takes `count` slots at the bump pointer; the page has room for them.
    fn carve(&mut self, number: u32, count: u16) -> u16 {
        let page = &mut self.pages[number as usize];
        let (class, place) = (page.class as usize, page.bump);
        let size = self.slot_granules[class];
        page.bump += size * count;
        let lines = lines_below::<B>(page.bump) - lines_below::<B>(place);
        if u32::from(page.bump) + u32::from(size) > Self::PAGE_GRANULES {
            self.backing.filled(number);
            self.unlist(number);
            self.list(number);
        }
        self.classes[class].carved += u32::from(count);
        self.carved_bytes += usize::from(size) * usize::from(count) * B::GRANULE_BYTES;
        self.count_lines(lines as isize);
        place
    }

    /// Gives a slot back.
    pub fn free(&mut self, handle: u32) {
        let (number, place) = self.split(handle);
        let page = &mut self.pages[number as usize];
        let class = page.class;
        let size = self.slot_granules[class as usize];
        debug_assert!(place < page.bump && place % size == 0, "not a slot: {handle}");
        debug_assert!(self.backing.free_link(handle).is_none(), "freed twice: {handle}");
        page.live -= 1;
        self.classes[class as usize].live -= 1;
        self.live_bytes -= size as usize * B::GRANULE_BYTES;
        let link = if page.place == Place::Emptying { NO_SLOT } else { std::mem::replace(&mut page.free, place) };
        self.backing.mark_free(handle, link);
        match page.place {
            Place::Current | Place::Emptying => {}
            // The last page of a class is kept for a key that comes and goes; cleaning takes it.
            Place::Full | Place::Listed(_) if page.live == 0 && self.classes[class as usize].live > 0 => {
                self.unlist(number);
                self.give_back(number);
            }
            place @ (Place::Full | Place::Listed(_)) => {
                if place != self.place_of(number) {
                    self.unlist(number);
                    self.list(number);
                }
            }
            Place::Unused | Place::Run => unreachable!("P2: a slot of a page not in use"),
        }
    }

    /// The class of the slot.
    #[inline]
    pub fn class(&self, handle: u32) -> u8 {
        self.pages[(handle / Self::PAGE_GRANULES) as usize].class
    }

    /// Takes `count` neighbouring pages that no slot shares, of which the first `bytes` will be used.
    pub fn allocate_run(&mut self, count: u32, bytes: usize) -> u32 {
        let first = if count == 1 { self.fresh_page() } else { self.append_pages(count) };
        for number in first..first + count {
            self.pages[number as usize].place = Place::Run;
        }
        self.live_bytes += bytes;
        self.carved_bytes += bytes;
        self.count_lines(bytes.div_ceil(LINE_OF_SYSTEM_BYTES) as isize);
        first * Self::PAGE_GRANULES
    }

    /// Gives back a run taken with the same arguments.
    pub fn free_run(&mut self, handle: u32, count: u32, bytes: usize) {
        let first = handle / Self::PAGE_GRANULES;
        self.backing.discard(first as usize * PAGE_BYTES, count as usize * PAGE_BYTES);
        for number in first..first + count {
            debug_assert_eq!(self.pages[number as usize].place, Place::Run);
            self.pages[number as usize].place = Place::Unused;
            self.unused.push(number);
        }
        self.live_bytes -= bytes;
        self.carved_bytes -= bytes;
        self.count_lines(-(bytes.div_ceil(LINE_OF_SYSTEM_BYTES) as isize));
    }

    /// Bytes of live slots.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// Bytes of memory below the bump pointers: what is resident.
    pub fn touched_bytes(&self) -> usize {
        self.touched_lines * LINE_OF_SYSTEM_BYTES
    }

    fn split(&self, handle: u32) -> (u32, u16) {
        (handle / Self::PAGE_GRANULES, (handle % Self::PAGE_GRANULES) as u16)
    }

    fn fresh_page(&mut self) -> u32 {
        let number = self.unused.pop().unwrap_or_else(|| self.append_pages(1));
        let page = &mut self.pages[number as usize];
        debug_assert_eq!(page.place, Place::Unused);
        (page.live, page.bump, page.free) = (0, 0, NO_SLOT);
        number
    }

    fn append_pages(&mut self, count: u32) -> u32 {
        let first = self.pages.len() as u32;
        self.backing.commit((first + count) as usize * PAGE_BYTES);
        self.pages.extend((0..count).map(|_| Page {
            class: 0,
            place: Place::Unused,
            live: 0,
            bump: 0,
            free: NO_SLOT,
            previous: NO_PAGE,
            next: NO_PAGE,
        }));
        first
    }

    /// Returns an empty page's memory to the system.
    fn give_back(&mut self, number: u32) {
        debug_assert_eq!(self.pages[number as usize].live, 0);
        self.lower_bump(number, 0);
        let page = &mut self.pages[number as usize];
        (page.place, page.free) = (Place::Unused, NO_SLOT);
        self.unused.push(number);
    }

    /// Gives back the memory of a page from a place on; nothing after it is live.
    fn lower_bump(&mut self, number: u32, bump: u16) {
        let page = &mut self.pages[number as usize];
        let carved = std::mem::replace(&mut page.bump, bump) - bump;
        let size = self.slot_granules[page.class as usize];
        if carved > 0 && u32::from(bump + carved) + u32::from(size) > Self::PAGE_GRANULES {
            self.backing.opened(number);
        }
        let (before, after) = (lines_below::<B>(bump + carved), lines_below::<B>(bump));
        let class = page.class as usize;
        self.classes[class].carved -= u32::from(carved / self.slot_granules[class]);
        self.carved_bytes -= carved as usize * B::GRANULE_BYTES;
        if after < before {
            let start = number as usize * PAGE_BYTES + after * LINE_OF_SYSTEM_BYTES;
            self.backing.discard(start, (before - after) * LINE_OF_SYSTEM_BYTES);
            self.count_lines(after as isize - before as isize);
        }
    }

    fn count_lines(&mut self, lines: isize) {
        if lines == 0 {
            return;
        }
        self.touched_lines = self.touched_lines.checked_add_signed(lines).expect("P3: lines are given back once");
        let bytes = lines.unsigned_abs() * LINE_OF_SYSTEM_BYTES;
        if lines > 0 { self.memory.add(self.kind, bytes) } else { self.memory.sub(self.kind, bytes) }
    }

    /// Bytes of free slots.
    pub fn free_bytes(&self) -> usize {
        self.carved_bytes - self.live_bytes
    }

    /// Chooses a page to be emptied: the sparsest of the class with most free bytes. False when no class has a system
    /// line's worth.
    pub fn start_emptying(&mut self) -> bool {
        let free_bytes = |class: usize| {
            let Class { live, carved, .. } = self.classes[class];
            let bytes = (carved - live) as usize * self.slot_granules[class] as usize * B::GRANULE_BYTES;
            // A class without live slots gives its memory back, however little it is.
            if live == 0 && carved > 0 { bytes.max(LINE_OF_SYSTEM_BYTES) } else { bytes }
        };
        let Some(class) = (0..self.classes.len()).max_by_key(|&class| free_bytes(class)) else { return false };
        if free_bytes(class) < LINE_OF_SYSTEM_BYTES {
            return false;
        }
        let listed = self.classes[class].lists[..FULLNESS_COUNT].iter().copied().find(|&head| head != NO_PAGE);
        let number = listed.unwrap_or(self.classes[class].current);
        if number == NO_PAGE {
            return false;
        }
        self.push_emptying(number, None);
        true
    }

    fn push_emptying(&mut self, number: u32, down_to: Option<u16>) {
        self.unlist(number);
        let page = &mut self.pages[number as usize];
        page.place = Place::Emptying;
        let class = &mut self.classes[page.class as usize];
        if class.current == number {
            class.current = NO_PAGE;
        }
        self.emptying.push(Emptying { number, high: page.bump, low: 0, down_to });
    }

    /// Whether a page is being emptied.
    pub fn is_emptying(&self) -> bool {
        !self.emptying.is_empty()
    }

    /// Whether the page being emptied is one of which only the last line is to go.
    pub fn is_squeezing(&self) -> bool {
        self.emptying.last().is_some_and(|page| page.down_to.is_some())
    }

    /// Looks at all classes again when [`Self::start_squeezing`] is called next.
    pub fn squeeze_anew(&mut self) {
        self.squeezed = 0;
    }

    /// Chooses the last system line of a small class, if what lies in it has room in resident memory. False when all
    /// classes were looked at.
    pub fn start_squeezing(&mut self) -> bool {
        while usize::from(self.squeezed) < self.classes.len() {
            if let Some((number, down_to)) = self.squeezable(self.squeezed) {
                self.push_emptying(number, Some(down_to));
                return true;
            }
            self.squeezed += 1;
        }
        false
    }

    /// The sparsest page of a small class, and where its last system line begins, if the slots in that line seem to
    /// have room elsewhere.
    fn squeezable(&self, class: u8) -> Option<(u32, u16)> {
        let Class { current, lists, live, carved } = &self.classes[class as usize];
        let number = lists.iter().chain([current]).copied().find(|&number| number != NO_PAGE)?;
        if !self.is_small(class) {
            return None;
        }
        let (size, bump) = (self.slot_granules[class as usize], self.pages[number as usize].bump);
        let granules = lines_below::<B>(bump).checked_sub(1)? * LINE_OF_SYSTEM_BYTES / B::GRANULE_BYTES;
        let down_to = granules as u16 / size * size;
        let base = number * Self::PAGE_GRANULES;
        let is_live = |place: &u16| self.backing.free_link(base + u32::from(*place)).is_none();
        let needed = (down_to..bump).step_by(size.into()).filter(is_live).count() as u32;
        let free_behind = u32::from((bump - down_to) / size) - needed;
        let own = carved - live - free_behind;
        let room_of = |near: u8| {
            let Class { live, carved, .. } = self.classes[near as usize];
            carved - live + self.resident_room(near)
        };
        (needed <= own + self.near(class).map(room_of).sum::<u32>()).then_some((number, down_to))
    }

    /// The next slot to be moved out of a page being emptied, and its new place: the caller copies the bytes that both
    /// have, updates what pointed to the old place, and frees it. `None` when the page is done, which ends its
    /// emptying. `class_of` returns the class that would do for a slot's contents, where other classes will.
    pub fn next_move(&mut self, class_of: impl FnOnce(&B, u32) -> Option<u8>) -> Option<(u32, u32)> {
        let mut page = *self.emptying.last()?;
        let Emptying { number, down_to, .. } = page;
        let class = self.pages[number as usize].class;
        let size = self.slot_granules[class as usize];
        let base = number * Self::PAGE_GRANULES;
        let end = down_to.unwrap_or(0);
        while page.high > end && self.backing.free_link(base + u32::from(page.high - size)).is_some() {
            page.high -= size;
        }
        if lines_below::<B>(self.pages[number as usize].bump) - lines_below::<B>(page.high) >= GIVEN_BACK_LINES {
            self.lower_bump(number, page.high);
        }
        let from = (page.high > end).then(|| base + u32::from(page.high - size));
        let target = from.and_then(|from| {
            let own = class_of(&self.backing, from);
            let smaller = own.filter(|&own| own < class);
            let near = own.filter(|_| down_to.is_some());
            smaller
                .and_then(|smaller| self.take_resident(smaller))
                .or_else(|| self.take_free(class))
                .or_else(|| self.free_below(&mut page))
                .or_else(|| near.and_then(|own| self.near(own).find_map(|near| self.take_resident(near))))
        });
        let (Some(from), Some((target, place))) = (from, target) else {
            self.emptying.pop();
            self.settle(number, page.high);
            if down_to.is_some_and(|down_to| page.high > down_to) {
                // Less had room than it seemed.
                self.squeezed += 1;
            }
            return None;
        };
        *self.emptying.last_mut().expect("it was there") = page;
        Some((from, self.make_live(target, place)))
    }

    /// The lowest free slot of a page being emptied, below what is to go.
    fn free_below(&self, page: &mut Emptying) -> Option<(u32, u16)> {
        let base = page.number * Self::PAGE_GRANULES;
        let size = self.slot_granules[self.pages[page.number as usize].class as usize];
        let end = page.down_to.unwrap_or(page.high);
        while page.low < end && self.backing.free_link(base + u32::from(page.low)).is_none() {
            page.low += size;
        }
        (page.low < end).then_some((page.number, page.low))
    }

    /// Chooses up to `count` of the sparsest pages of the class to be emptied by a caller that knows what points to
    /// their slots: as many as the class's other pages have room for. False when there are none.
    pub fn start_emptying_all(&mut self, class: u8, count: usize) -> bool {
        debug_assert!(self.emptying.is_empty());
        let size = u32::from(self.slot_granules[class as usize]);
        let slots = Self::PAGE_GRANULES / size;
        let in_class = |page: &&Page| page.class == class && matches!(page.place, Place::Listed(_));
        let mut room: u32 = self.pages.iter().filter(in_class).map(|page| slots - u32::from(page.live)).sum();
        while self.emptying.len() < count
            && let Some(number) =
                self.classes[class as usize].lists[..FULLNESS_COUNT].iter().copied().find(|&head| head != NO_PAGE)
        {
            let live = u32::from(self.pages[number as usize].live);
            let Some(left) = room.checked_sub(slots) else { break };
            room = left;
            if live == slots {
                break;
            }
            self.push_emptying(number, None);
        }
        !self.emptying.is_empty()
    }

    /// Whether the slot is in a page being emptied.
    pub fn is_in_emptied_page(&self, handle: u32) -> bool {
        self.pages[(handle / Self::PAGE_GRANULES) as usize].place == Place::Emptying
    }

    /// Ends the emptying of all pages, wherever it is.
    pub fn settle_all(&mut self) {
        while let Some(Emptying { number, high, .. }) = self.emptying.pop() {
            self.settle(number, high);
        }
    }

    /// Ends the emptying of a page whose slots from `high` on are not live: gives back the memory from there, or all.
    fn settle(&mut self, number: u32, high: u16) {
        let page = &self.pages[number as usize];
        if page.live == 0 {
            return self.give_back(number);
        }
        let size = self.slot_granules[page.class as usize];
        self.lower_bump(number, high);
        self.relink(number, size);
        self.list(number);
    }

    /// Makes the list of free slots anew, lowest first.
    fn relink(&mut self, number: u32, size: u16) {
        let base = number * Self::PAGE_GRANULES;
        let mut free = NO_SLOT;
        let mut place = self.pages[number as usize].bump;
        while place > 0 {
            place -= size;
            if self.backing.free_link(base + u32::from(place)).is_some() {
                self.backing.mark_free(base + u32::from(place), free);
                free = place;
            }
        }
        self.pages[number as usize].free = free;
    }

    /// Where a page that is neither current nor being emptied belongs: with free slots by eighths of fullness, else
    /// where slots are carved, if there is room for one.
    fn place_of(&self, number: u32) -> Place {
        let page = &self.pages[number as usize];
        let size = u32::from(self.slot_granules[page.class as usize]);
        if page.free != NO_SLOT {
            let eighths = u32::from(page.live) * FULLNESS_COUNT as u32 * size / Self::PAGE_GRANULES;
            Place::Listed(eighths.min(FULLNESS_COUNT as u32 - 1) as u8)
        } else if u32::from(page.bump) + size <= Self::PAGE_GRANULES {
            Place::Listed(ROOMY as u8)
        } else {
            Place::Full
        }
    }

    /// Puts a page where it belongs.
    fn list(&mut self, number: u32) {
        let place = self.place_of(number);
        self.pages[number as usize].place = place;
        let Place::Listed(list) = place else { return };
        let class = self.pages[number as usize].class;
        let head = std::mem::replace(&mut self.classes[class as usize].lists[list as usize], number);
        if head != NO_PAGE {
            self.pages[head as usize].previous = number;
        }
        let page = &mut self.pages[number as usize];
        (page.previous, page.next) = (NO_PAGE, head);
    }

    /// Takes a page off its list, if it is on one.
    fn unlist(&mut self, number: u32) {
        let page = &self.pages[number as usize];
        let Place::Listed(list) = page.place else { return };
        let (class, previous, next) = (page.class, page.previous, page.next);
        if previous == NO_PAGE {
            self.classes[class as usize].lists[list as usize] = next;
        } else {
            self.pages[previous as usize].next = next;
        }
        if next != NO_PAGE {
            self.pages[next as usize].previous = previous;
        }
    }
}

/// System lines up to a place in a page.
fn lines_below<B: Backing>(granule: u16) -> usize {
    (granule as usize * B::GRANULE_BYTES).div_ceil(LINE_OF_SYSTEM_BYTES)
}

impl<B: Backing> Drop for Pages<B> {
    fn drop(&mut self) {
        self.memory.sub(self.kind, self.touched_bytes());
    }
}
