//! What every engine must do, as one test to call: random operations from a seed, on the engine and on the model. An
//! engine's crate runs [`check`] with its constructor; a failure names the seed and the step.

use crate::model::{Content, ModelEngine, Stored};
use crate::{
    Due, Encoding, Engine, Entry, EntrySink, ExtFields, Fields, Key, Known, NewEntry, PackedFields, Residency,
    SharedBig, SharedBytes, TierAddress, Type, Value, WalkProgress,
};
use base::hash::KeyHasher;
use base::{KeyspaceId, Rng, UnixMs};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use value::cold::{Cold, Keeper, Shelf};
use value::tree::Plan;
use value::{Big, Find, hash, list, set, zset};

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Operations of one run.
    pub steps: usize,
    /// Different keys; many make tables grow, few make them churn.
    pub keys: u64,
    /// Length of the longest values.
    pub value_len_max: u64,
    /// How late the engine may notice an expiration, in milliseconds.
    pub due_late_ms: i64,
    /// Whether entries get the optional fields that neither log nor rows hold.
    pub has_unlogged_fields: bool,
}

const SPACE_COUNT: u32 = 3;

/// Answers of [`crate::Fetch`] in a row after which an engine counts as stuck.
const FETCHES_MAX: usize = 1000;

/// Calls of [`Engine::due`] in a row that give nothing, after which nothing is due: an index may have to sort what a
/// jump of the clock brought up, and does that in steps.
const DUE_QUIET_CALLS: usize = 200;

/// Runs random operations on the engine and on the model, and compares all they show.
///
/// # Panics
/// When they differ, with the seed, the step and what differs.
pub fn check<E: Engine>(seed: u64, effort: Effort, make: impl FnOnce(KeyHasher) -> E) {
    let mut rng = Rng::new(seed);
    let hasher = KeyHasher::new(&mut rng);
    // With the same hash function, since trees are compared in the order of their hashes.
    let mut model = ModelEngine::with_hasher(Rng::new(seed), hasher.clone());
    let mut engine = make(hasher.clone());
    let now = 1_000_000;
    engine.set_time(now);
    model.set_time(now);
    model.follow_cas_id(some_cas_id(&mut engine, &hasher));
    let mut run = Run { engine, model, hasher, rng, effort, now, cut: None, recoded: BTreeMap::new() };
    for step in 0..effort.steps {
        let context = Context { seed, step };
        run.step();
        drop(context);
    }
    let context = Context { seed, step: effort.steps };
    run.compare_all();
    if run.cut.is_some() {
        run.finish_checkpoint();
    }
    run.begin_checkpoint();
    run.finish_checkpoint();
    run.drain();
    drop(context);
}

/// A CAS id that the engine gives to an entry, which is removed again; the model continues from this id.
fn some_cas_id<E: Engine>(engine: &mut E, hasher: &KeyHasher) -> u64 {
    let key = Key::new(hasher, KeyspaceId(0), b"key");
    let (kind, encoding, value, fields) = (Type::String, Encoding::PLAIN, Value::Bytes(b""), ExtFields::NONE);
    engine.write(&key, &NewEntry { kind, encoding, value, expire_at: None, fields });
    let id = (0..FETCHES_MAX).find_map(|_| engine.cas_id(&key).ok()).flatten().expect("it was just stored");
    assert!(engine.remove(&key));
    id
}

/// Says where a run was when it panicked.
struct Context {
    seed: u64,
    step: usize,
}

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("conformance: seed {}, step {}", self.seed, self.step);
        }
    }
}

/// A codec that turns bits.
#[derive(Default)]
struct Turning(Shelf);

impl Keeper for Turning {
    fn thaw(&self, stored: &[u8], out: &mut Vec<u8>) {
        out.extend(stored.iter().map(|byte| !byte));
    }

    fn len_of(&self, stored: &[u8]) -> Option<usize> {
        Some(stored.len())
    }

    fn came(&self, _stored: &[u8]) {}

    fn went(&self, _stored: &[u8]) {}

    fn shelf(&self) -> &Shelf {
        &self.0
    }

    fn keeps(&self, _bytes: usize, _is_kept: bool) {}
}

/// What reads the leaves that the suite compresses.
pub fn keeper() -> Arc<dyn Keeper> {
    Arc::<Turning>::default()
}

/// Stores each leaf of a tree, compressed or plain, so that the tree still equals the model's.
fn reform_leaves(tree: &mut Big, compresses: bool) {
    let (keeper, is_other): (Arc<dyn Keeper>, _) = (Arc::<Turning>::default(), |_: &[u8]| !compresses);
    let plan = Plan {
        age: 0,
        bytes: 0,
        bytes_max: usize::MAX,
        retries: true,
        compresses,
        takes_all: false,
        only_sheds: false,
        is_other: &is_other,
    };
    let (mut from, mut bytes) = (Some(0), Vec::new());
    while let Some(here) = from {
        let (found, next) = tree.look_for_cold(here, &plan, usize::MAX);
        from = next;
        match found {
            Some(Find::Run(run, _)) => match run.bytes(&mut bytes).filter(|_| compresses) {
                Some(count) => {
                    let stored: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
                    let cold = Cold::new(&keeper, &stored).expect("it has a length");
                    assert!(tree.store_cold(&run, cold, count), "a leaf is no longer there");
                }
                None => assert!(tree.store_warm(&run), "a leaf is no longer there"),
            },
            Some(Find::Thawed(rank)) => tree.shed(rank),
            None => {}
        }
    }
}

type Contents = BTreeMap<(KeyspaceId, Vec<u8>), Stored>;

/// A sink that keeps what it is given, each entry once.
#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Contents>>);

impl EntrySink for Collected {
    fn save(&mut self, space: KeyspaceId, entry: &Entry<'_>) {
        let mut contents = self.0.lock().expect("no other panic comes first");
        let before = contents.insert((space, entry.key.to_vec()), Stored::of(entry).without_cas_id());
        assert!(before.is_none(), "given to the checkpoint twice: {:?}", entry.key);
    }
}

struct Run<E> {
    engine: E,
    model: ModelEngine,
    hasher: KeyHasher,
    rng: Rng,
    effort: Effort,
    now: UnixMs,
    /// A running checkpoint: what it must have, what it has.
    cut: Option<(Contents, Collected)>,
    /// Further forms in which a checkpoint may save what was stored at its cut.
    recoded: BTreeMap<(KeyspaceId, Vec<u8>), Vec<Stored>>,
}

impl<E: Engine> Run<E> {
    fn step(&mut self) {
        let space = KeyspaceId(self.rng.below(u64::from(SPACE_COUNT)) as u32);
        let bytes = key_bytes(self.rng.below(self.effort.keys));
        let hasher = self.hasher.clone();
        let key = Key::new(&hasher, space, &bytes);
        match self.rng.below(1000) {
            0..350 => self.write(&key),
            350..425 => self.edit(&key),
            425..450 => self.edit_unread(&key),
            450..600 => assert_eq!(self.engine.remove(&key), self.model.remove(&key), "remove"),
            600..620 => {
                let fields = self.some_fields();
                let fields = fields.get();
                assert_eq!(self.engine.set_fields(&key, fields), self.model.set_fields(&key, fields), "set_fields");
            }
            620..700 => {
                let at = self.expiration();
                assert_eq!(self.engine.set_expiration(&key, at), self.model.set_expiration(&key, at), "set_expiration");
            }
            700..780 => self.splice(&key),
            780..800 => self.recode(&key),
            800..810 => self.reform(&key),
            810..930 => self.compare(&key),
            930..950 if self.effort.has_unlogged_fields => self.cas_id(&key),
            950..960 => self.advance(),
            960..980 => {
                self.engine.clean(64);
            }
            980..982 => self.compare_all(),
            // The rarer, the more keys there are: tables must have time to grow.
            982..984 if self.rng.one_in(self.effort.keys / 1_000 + 1) => {
                self.engine.clear(space);
                self.model.clear(space);
            }
            984..986 if self.cut.is_none() => self.begin_checkpoint(),
            // One in some is given up.
            986 if self.rng.one_in(4) => {
                self.cut = None;
                self.engine.end_checkpoint();
            }
            _ => self.walk(50),
        }
    }

    fn write(&mut self, key: &Key<'_>) {
        let (value, expire_at) = (self.value(), self.expiration());
        let shared = SharedBytes::new(value.clone());
        let value = if self.rng.one_in(2) { Value::Bytes(&value) } else { Value::Shared(&shared) };
        let encoding = self.string_encoding();
        let fields = if self.rng.one_in(4) { self.some_fields() } else { PackedFields::default() };
        let new = NewEntry { kind: Type::String, encoding, value, expire_at, fields: fields.get() };
        self.engine.write(key, &new);
        if fields.get().is_sticky() {
            self.engine.sticky_stored(key);
        }
        self.model.write(key, &new);
    }

    /// Changes the collection under the key, or makes one.
    fn edit(&mut self, key: &Key<'_>) {
        self.fetched(key);
        let kind = match self.model.read_any(key).map(|stored| stored.kind) {
            Some(Type::String) => {
                assert!(self.engine.remove(key) && self.model.remove(key));
                self.collection()
            }
            Some(kind) => kind,
            None => self.collection(),
        };
        let mut changes = Vec::new();
        // Sometimes enough changes, or a long enough one, that the collection becomes a tree.
        let count = if self.rng.one_in(20) { 200 } else { 1 + self.rng.below(8) };
        (0..count).for_each(|_| self.put_change(kind, &mut changes));
        let edited = self.engine.edit(key, kind, &changes, Known::Read, false);
        assert_eq!(edited, self.model.edit(key, kind, &changes, Known::Read, false), "edit");
    }

    /// Changes what may be no such collection: the engine makes of it what the model makes, or does nothing.
    fn edit_unread(&mut self, key: &Key<'_>) {
        let (kind, touch, mut changes) = (self.collection(), self.rng.one_in(2), Vec::new());
        self.put_change(kind, &mut changes);
        let known = Known::Nothing;
        if let Ok(edited) = self.engine.edit(key, kind, &changes, known, touch) {
            assert_eq!(Ok(edited), self.model.edit(key, kind, &changes, known, touch), "edit without a read");
        }
    }

    fn collection(&mut self) -> Type {
        [Type::List, Type::Set, Type::Zset, Type::Hash][self.rng.below(4) as usize]
    }

    fn put_change(&mut self, kind: Type, changes: &mut Vec<u8>) {
        let mut element = self.rng.below(400).to_string().into_bytes();
        // Long ones are packed too, until they are too many.
        let long = [70, 500, 5_000][self.rng.below(3) as usize];
        element.resize(if self.rng.one_in(50) { long } else { element.len() }, b'x');
        let (index, adds) = (self.rng.below(30), !self.rng.one_in(4));
        match kind {
            Type::List => {
                let end = list::End::ALL[self.rng.below(2) as usize];
                let change = match adds {
                    true => list::Change::Push { end, value: &element },
                    false => list::Change::Remove { index, count: 3 },
                };
                change.put(changes);
            }
            Type::Set if adds => set::Change::Add(&element).put(changes),
            Type::Set => set::Change::Remove(&element).put(changes),
            Type::Zset if adds => zset::Change::Add { score: index as f64, member: &element }.put(changes),
            Type::Zset => zset::Change::Remove { member: &element }.put(changes),
            Type::Hash if adds => {
                let expire_at = self.rng.one_in(3).then(|| self.now.max(0) + self.rng.below(20_000) as i64);
                hash::Change::Set { field: &element, value: b"value", expire_at }.put(changes);
            }
            Type::Hash => hash::Change::Delete(&element).put(changes),
            Type::String | Type::Stream | Type::Btree => unreachable!("not chosen"),
        }
    }

    fn splice(&mut self, key: &Key<'_>) {
        self.fetched(key);
        let string = self.model.read_any(key).filter(|stored| stored.kind == Type::String);
        let Some(len) = string.map(|stored| stored.value.value().len()) else { return };
        let (offset, bytes) = (self.rng.below(len as u64 + 20), self.value());
        assert_eq!(self.engine.splice(key, offset, &bytes), self.model.splice(key, offset, &bytes), "splice");
    }

    /// Stores a value in another form, which here is any: of a collection without times something compressed, and of
    /// one that is compressed a tree.
    fn recode(&mut self, key: &Key<'_>) {
        self.fetched(key);
        let Some(before) = self.model.read_any(key).cloned() else { return };
        let (bytes, tree);
        let (encoding, value) = match before.kind {
            Type::String => {
                bytes = self.value();
                (self.string_encoding(), Value::Bytes(&bytes))
            }
            _ if before.first_due().is_some() => return,
            kind if before.encoding.is_compressed() => {
                tree = SharedBig::new(self.tree(kind));
                (Encoding::BIG, Value::Big(&tree))
            }
            _ => {
                bytes = self.value();
                (before.encoding.compressed(), Value::Bytes(&bytes))
            }
        };
        self.engine.recode(key, encoding, value);
        self.model.recode(key, encoding, value);
        let place = (key.space, key.bytes.to_vec());
        if let Some((expected, _)) = &self.cut
            && let Some(at_cut) = expected.get(&place)
            && let (before, Some(after)) = (before.without_cas_id(), self.model.read_any(key))
        {
            let forms = self.recoded.entry(place).or_default();
            if *at_cut == before || forms.contains(&before) {
                forms.push(after.clone().without_cas_id());
            }
        }
    }

    /// Stores leaves of a tree compressed, or as they are. The model keeps its own as they are, which is no difference.
    fn reform(&mut self, key: &Key<'_>) {
        self.fetched(key);
        let is_tree = |stored: &Stored| matches!(stored.value, Content::Big(_));
        if self.model.read_any(key).is_some_and(is_tree) {
            let compresses = !self.rng.one_in(3);
            self.engine.reform(key, &mut |tree| reform_leaves(tree, compresses));
        }
    }

    /// A tree of some elements without times.
    fn tree(&mut self, kind: Type) -> Big {
        let mut changes = Vec::new();
        for _ in 0..1 + self.rng.below(300) {
            let element = self.rng.below(400).to_string().into_bytes();
            match kind {
                Type::List => list::Change::Push { end: list::End::Tail, value: &element }.put(&mut changes),
                Type::Set => set::Change::Add(&element).put(&mut changes),
                Type::Zset => zset::Change::Add { score: 1.0, member: &element }.put(&mut changes),
                _ => hash::Change::Set { field: &element, value: b"value", expire_at: None }.put(&mut changes),
            }
        }
        Big::build(kind, &changes, &value::Limits::default(), &self.hasher)
    }

    /// The next id is given, or the one that the entry has had since its last change.
    fn cas_id(&mut self, key: &Key<'_>) {
        let got = (0..FETCHES_MAX).find_map(|_| self.engine.cas_id(key).ok()).expect("it is fetched at last");
        assert_eq!(Ok(got), self.model.cas_id(key), "cas_id of {:?}", key.bytes);
    }

    fn string_encoding(&mut self) -> Encoding {
        Encoding(self.rng.below(u64::from(Encoding::BIG.0)) as u8)
    }

    fn advance(&mut self) {
        self.now += self.rng.below(5_000) as i64;
        self.engine.set_time(self.now);
        self.model.set_time(self.now);
        if self.rng.one_in(2) {
            self.expire();
        }
    }

    /// Removes what is due. All that has been due for long enough must be given, and nothing that is not.
    fn expire(&mut self) {
        let mut all = Vec::new();
        let mut quiet = 0;
        while quiet < DUE_QUIET_CALLS {
            all.clear();
            let count = self.engine.due(16, &mut |key, due| all.push((key.space, key.bytes.to_vec(), due)));
            assert_eq!((count, count <= 16), (all.len(), true), "due gives what it says, and no more than asked");
            quiet = if all.is_empty() { quiet + 1 } else { 0 };
            for (space, bytes, due) in &all {
                let key = Key::new(&self.hasher, *space, bytes);
                let stored = self.model.read_any(&key).expect("a due key is stored");
                assert_eq!(stored.due(self.now), Some(*due), "of {bytes:?}");
                match due {
                    Due::Entry => {
                        assert!(self.engine.remove(&key) && self.model.remove(&key), "given twice: {bytes:?}")
                    }
                    Due::Elements => self.delete_due_fields(&key),
                }
            }
        }
        let late = self.now - self.effort.due_late_ms;
        let left = self.model.contents();
        let forgotten = left.iter().find(|(_, stored)| stored.due(late).is_some());
        assert_eq!(forgotten, None, "was due and not given at {}", self.now);
    }

    /// Deletes some fields that are due, as upkeep does.
    fn delete_due_fields(&mut self, key: &Key<'_>) {
        let mut changes = Vec::new();
        let mut left = 1 + self.rng.below(20);
        let Some(stored) = self.model.read_any(key) else { return };
        hash::View::of(stored.encoding, stored.value.value().stored()).due(self.now, &mut |cell| {
            hash::Change::Delete(cell.field).put(&mut changes);
            left -= 1;
            left > 0
        });
        let edited = self.engine.edit(key, Type::Hash, &changes, Known::Read, false);
        assert!(edited.is_ok() && edited == self.model.edit(key, Type::Hash, &changes, Known::Read, false));
    }

    fn begin_checkpoint(&mut self) {
        let collected = Collected::default();
        self.engine.begin_checkpoint(Box::new(collected.clone()));
        self.recoded.clear();
        let contents = self.model.contents().into_iter().map(|(place, stored)| (place, stored.without_cas_id()));
        self.cut = Some((contents.collect(), collected));
    }

    fn walk(&mut self, budget: usize) {
        if self.engine.walk_checkpoint(budget) == WalkProgress::Done
            && let Some((mut expected, collected)) = self.cut.take()
        {
            assert!(self.engine.end_checkpoint().is_some(), "the sink comes back");
            let got = collected.0.lock().expect("no other panic comes first");
            for (place, forms) in std::mem::take(&mut self.recoded) {
                if let Some(saved) = got.get(&place).filter(|saved| forms.contains(saved)) {
                    expected.insert(place, saved.clone());
                }
            }
            compare_contents(&got, &expected, "checkpoint");
        }
    }

    fn finish_checkpoint(&mut self) {
        while self.cut.is_some() {
            self.walk(1000);
        }
    }

    /// Asserts that the engine's row is in memory within `FETCHES_MAX` reads.
    fn fetched(&mut self, key: &Key<'_>) {
        let present = (0..FETCHES_MAX).any(|_| self.engine.read(key, false).is_ok());
        assert!(present, "still to be fetched after {FETCHES_MAX} reads");
    }

    fn compare(&mut self, key: &Key<'_>) {
        self.fetched(key);
        let touch = self.rng.one_in(2);
        let expected = self.model.read(key, touch).expect("the model never fetches").map(|entry| Stored::of(&entry));
        let got = loop {
            if let Ok(got) = self.engine.read(key, touch) {
                break got;
            }
        };
        let bytes = got.map(|entry| entry.key.to_vec());
        let got = got.map(|entry| Stored::of(&entry));
        assert_eq!(got, expected, "read of {:?}", key.bytes);
        if let Some(bytes) = bytes {
            assert_eq!(bytes, key.bytes);
            self.fetched(key);
            let stamp = self.engine.read(key, false).ok().flatten().map(|entry| entry.stamp);
            let idle = stamp.map(|stamp| self.engine.idle_seconds(stamp));
            assert!(!touch || idle == Some(0), "a touched entry is not idle");
            assert!(self.engine.cost_bytes(key).is_some_and(|cost| cost > 0), "what is stored costs something");
        }
    }

    fn compare_all(&mut self) {
        let contents = self.model.contents();
        let (mut scanned, mut surveyed) = (BTreeMap::new(), BTreeMap::new());
        for space in (0..=SPACE_COUNT).map(KeyspaceId) {
            assert_eq!(self.engine.len(space), self.model.len(space), "len of {space}");
            assert_eq!(self.engine.expiring_len(space), self.model.expiring_len(space), "expiring_len of {space}");
            assert_eq!(self.engine.timed_len(space), self.model.timed_len(space), "timed_len of {space}");
            let random = self.engine.random_entry(space).map(|entry| (entry.key.to_vec(), Stored::of(&entry)));
            assert_eq!(random.is_some(), self.model.len(space) > 0, "random_entry of {space}");
            if let Some((key, stored)) = random {
                assert_eq!(contents.get(&(space, key)), Some(&stored), "random_entry of {space}");
            }
            let (mut from, mut last) = (Some(0), 0);
            while let Some(bound) = from {
                assert!(bound >= last, "a scan goes forward");
                let mut visit =
                    |entry: &Entry<'_>| drop(scanned.insert((space, entry.key.to_vec()), Stored::of(entry)));
                from = self.engine.scan(space, bound, &mut visit).next;
                last = bound;
            }
            from = Some(0);
            while let Some(bound) = from {
                let mut visit = |entry: &Entry<'_>, cost: u64| {
                    let earlier = surveyed.insert((space, entry.key.to_vec()), (Stored::of(entry), cost));
                    assert_eq!(earlier, None, "a survey visits an entry once");
                };
                from = self.engine.survey(space, bound, &mut visit).next;
            }
        }
        compare_contents(&scanned, &contents, "scan");
        for ((space, bytes), (stored, cost)) in &surveyed {
            let key = Key::new(&self.hasher, *space, bytes);
            assert_eq!(scanned.get(&(*space, bytes.clone())), Some(stored), "survey of {bytes:?}");
            assert_eq!(self.engine.cost_bytes(&key), Some(*cost), "cost of {bytes:?}");
        }
        assert_eq!(surveyed.len(), scanned.len(), "survey");
    }

    /// To the end of time: everything that expires goes, everything that is cleared goes.
    fn drain(&mut self) {
        self.now = i64::MAX - self.effort.due_late_ms * 4;
        self.engine.set_time(self.now);
        self.model.set_time(self.now);
        self.expire();
        self.compare_all();
        for space in (0..SPACE_COUNT).map(KeyspaceId) {
            self.engine.clear(space);
            self.model.clear(space);
        }
        while self.engine.clean(1000) {}
        self.compare_all();
    }

    /// Optional fields, any of them present or absent; sometimes long ones, with which an entry leaves the pages.
    fn some_fields(&mut self) -> PackedFields {
        let mut bytes = vec![0; self.rng.below(40) as usize];
        self.rng.fill(&mut bytes);
        let number = self.rng.next_u64();
        let parts = [0, 4, 8, 12].map(|shift| (number >> shift) as u32);
        let unknown = [&[9, 0x88, 7][..], &[1; 904]].concat();
        let mut one_in = |n| self.rng.one_in(n);
        let fields = Fields {
            flags: if one_in(2) { 1 + number as u32 % 1_000 } else { 0 },
            cas: if one_in(3) { number } else { 0 },
            is_sticky: one_in(4),
            attributes: if one_in(3) { &bytes } else { &[] },
            tier: one_in(4).then(|| TierAddress { segment: parts[0], offset: parts[1], len: parts[2], tag: parts[3] }),
            residency: if one_in(3) { Residency::DIRTY } else { Residency::NONE },
            unknown: if one_in(8) { &unknown } else { &[] },
        };
        if self.effort.has_unlogged_fields { fields.pack() } else { fields.logged().pack() }
    }

    fn value(&mut self) -> Vec<u8> {
        let spread = match self.rng.below(8) {
            0 => self.effort.value_len_max,
            1 => self.effort.value_len_max.min(1_000),
            2 => 300,
            _ => 40,
        };
        let mut value = vec![0; self.rng.below(spread + 1) as usize];
        self.rng.fill(&mut value);
        value
    }

    fn expiration(&mut self) -> Option<UnixMs> {
        match self.rng.below(12) {
            0 => Some(i64::MAX),
            1 => Some(self.now + self.rng.below(100_000_000) as i64),
            2..4 => Some(self.now + self.rng.below(20_000) as i64),
            _ => None,
        }
    }
}

/// Keys of all lengths, the empty one and very long ones among them.
fn key_bytes(number: u64) -> Vec<u8> {
    let mut key = format!("key:{number}").into_bytes();
    match number % 101 {
        0 => key.resize(260, b'w'),
        1 => key.resize(9000, b'x'),
        2 if number == 2 => key.clear(),
        _ => {}
    }
    key
}

fn compare_contents(got: &Contents, expected: &Contents, what: &str) {
    if got == expected {
        return;
    }
    let missing = expected.keys().find(|key| !got.contains_key(key));
    let wrong = got.iter().find(|(key, stored)| expected.get(key) != Some(stored)).map(|(key, _)| key);
    panic!("{what}: {} entries, expected {}; missing {missing:?}, wrong {wrong:?}", got.len(), expected.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model agrees with itself: the suite asks nothing that a plain map cannot give.
    #[test]
    fn the_model_conforms() {
        let effort =
            Effort { steps: 6_000, keys: 300, value_len_max: 2_000, due_late_ms: 1, has_unlogged_fields: true };
        (0..3).for_each(|seed| check(seed, effort, |hasher| ModelEngine::with_hasher(Rng::new(seed), hasher)));
    }
}
