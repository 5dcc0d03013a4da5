//! Backed keyspaces: the suite of the contract over one whose entries are flushed and dropped all the time, and the
//! promises of tickets, flushes and drops one by one.

use base::hash::KeyHasher;
use base::{KeyspaceId, Rng, ShardId, UnixMs};
use engine::conformance::{Effort, check, keeper};
use engine::{
    ChangedNames, Counts, Due, Edited, Encoding, Engine, Entry, EntrySink, ExtFields, Fetch, FlushProgress, Key, Known,
    Names, NewEntry, Rows, ScanStep, SortedRows, Type, Unedited, Usage, Value, WalkProgress,
};
use engine_mem::{MemEngine, MemoryUse};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::ops::RangeBounds;
use std::sync::Arc;
use value::Big;

const SPACE: KeyspaceId = KeyspaceId(0);
const SPACE_COUNT: u32 = 3;

/// Reads rows as soon as they are wanted; flushes and drops as chance will have it.
struct Churned {
    inner: MemEngine,
    rows: Vec<Arc<SortedRows>>,
    rng: Rng,
    hasher: KeyHasher,
    is_flushing: bool,
    sink: Option<Box<dyn EntrySink>>,
}

fn spaces() -> impl Iterator<Item = KeyspaceId> {
    (0..SPACE_COUNT).map(KeyspaceId)
}

impl Churned {
    fn new(seed: u64, hasher: KeyHasher) -> Self {
        let mut inner = MemEngine::new(hasher.clone(), Rng::new(seed), Arc::new(MemoryUse::default()));
        let rows: Vec<_> = spaces().map(|_| SortedRows::new()).collect();
        spaces().zip(&rows).for_each(|(space, rows)| inner.back(space, rows.clone(), Counts::default(), keeper()));
        Self { inner, rows, rng: Rng::new(seed), hasher, is_flushing: false, sink: None }
    }

    fn load(&mut self, key: &Key<'_>) {
        if self.inner.read(key, false).is_err() {
            let wanted = self.inner.want(key);
            let mut row = Vec::new();
            let rows = wanted.rows.expect("rows stand behind it");
            let is_there = rows.get(key.bytes, &mut row).expect("no read fails");
            assert!(self.inner.install(key, wanted.ticket, is_there.then_some(&row)));
            // What is wanted is not dropped, so it can be released after the operation.
            self.inner.release(key);
            if !is_there {
                // Known to be absent only while it is wanted.
                self.inner.want(key);
                let ticket = self.inner.want(key).ticket;
                self.inner.install(key, ticket, None);
            }
        }
    }

    fn load_all(&mut self, space: KeyspaceId) {
        let mut keys = Vec::new();
        let mut from = Some(0);
        while let Some(position) = from {
            from = self.inner.scan_rows(space, position, None, &mut |entry| keys.push(entry.key.to_vec()));
        }
        for bytes in keys {
            let hasher = self.hasher.clone();
            self.load(&Key::new(&hasher, space, &bytes));
        }
    }

    fn churn(&mut self) {
        if !self.is_flushing && self.rng.one_in(20) {
            for (space, rows) in spaces().zip(&self.rows) {
                self.inner.begin_flush(space, rows.begin_flush());
            }
            self.is_flushing = true;
        } else if self.is_flushing && self.rng.one_in(2) {
            let budget = self.rng.below(20) as usize;
            let walked: Vec<_> = spaces().map(|space| self.inner.walk_flush(space, budget)).collect();
            if !walked.contains(&FlushProgress::More) && self.rng.one_in(4) {
                let installs = !self.rng.one_in(4);
                for (space, rows) in spaces().zip(&self.rows) {
                    let is_void = self.inner.walk_flush(space, 0) == FlushProgress::Void;
                    self.inner.end_flush(space, (installs && !is_void).then(|| rows.install()));
                }
                self.is_flushing = false;
            }
        }
        if self.rng.one_in(4) {
            let (space, bytes) = (KeyspaceId(self.rng.below(u64::from(SPACE_COUNT)) as u32), self.rng.below(5_000));
            self.inner.drop_clean(space, bytes as usize);
        }
    }

    /// Has the row in memory before an operation, and something happen to others after it.
    fn with<R>(&mut self, key: &Key<'_>, run: impl FnOnce(&mut MemEngine) -> R) -> R {
        self.load(key);
        let result = run(&mut self.inner);
        (0..2).for_each(|_| self.inner.release(key));
        self.churn();
        result
    }
}

impl Engine for Churned {
    fn set_time(&mut self, now: UnixMs) {
        self.inner.set_time(now);
    }

    fn read(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch> {
        self.load(key);
        self.inner.read(key, touch)
    }

    fn write(&mut self, key: &Key<'_>, entry: &NewEntry<'_>) {
        self.with(key, |inner| inner.write(key, entry));
    }

    fn splice(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> bool {
        self.with(key, |inner| inner.splice(key, offset, bytes))
    }

    fn recode(&mut self, key: &Key<'_>, encoding: Encoding, value: Value<'_>) {
        self.with(key, |inner| {
            inner.recode(key, encoding, value);
            // The row has the other form, and the suite wants this one back: a change has it flushed.
            let mut expire_at = None;
            let mut next = Some(0);
            while let Some(from) = next {
                let mut note = |entry: &Entry<'_>| {
                    if entry.key == key.bytes {
                        expire_at = entry.expire_at;
                    }
                };
                next = inner.scan(key.space, from, &mut note).next;
            }
            inner.set_expiration(key, expire_at);
        });
    }

    fn reform(&mut self, key: &Key<'_>, change: &mut dyn FnMut(&mut Big)) {
        self.with(key, |inner| inner.reform(key, change));
    }

    fn edit(
        &mut self,
        key: &Key<'_>,
        kind: Type,
        changes: &[u8],
        known: Known,
        touch: bool,
    ) -> Result<Edited, Unedited> {
        self.with(key, |inner| inner.edit(key, kind, changes, known, touch))
    }

    fn set_expiration(&mut self, key: &Key<'_>, at: Option<UnixMs>) -> bool {
        self.with(key, |inner| inner.set_expiration(key, at))
    }

    fn set_fields(&mut self, key: &Key<'_>, fields: ExtFields<'_>) -> bool {
        self.with(key, |inner| inner.set_fields(key, fields))
    }

    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        self.load(key);
        self.inner.cas_id(key)
    }

    fn remove(&mut self, key: &Key<'_>) -> bool {
        self.with(key, |inner| inner.remove(key))
    }

    fn clear(&mut self, space: KeyspaceId) {
        self.inner.clear(space);
        self.churn();
    }

    fn len(&self, space: KeyspaceId) -> u64 {
        self.inner.len(space)
    }

    fn expiring_len(&self, space: KeyspaceId) -> u64 {
        self.inner.expiring_len(space)
    }

    fn timed_len(&self, space: KeyspaceId) -> u64 {
        self.inner.timed_len(space)
    }

    fn scan(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        let step = self.inner.scan(space, from, visit);
        if step.next.is_none() {
            let (since, mut next) = (Some(self.inner.loads(space)), Some(0));
            while let Some(position) = next {
                next = self.inner.scan_rows(space, position, since, visit);
            }
        }
        step
    }

    fn survey(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> ScanStep {
        self.load_all(space);
        self.inner.survey(space, from, visit)
    }

    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>> {
        self.inner.random_entry(space)
    }

    fn due(&mut self, limit: usize, visit: &mut dyn FnMut(Key<'_>, Due)) -> usize {
        self.inner.due(limit, visit)
    }

    fn clean(&mut self, budget: usize) -> bool {
        self.inner.clean(budget)
    }

    fn idle_seconds(&self, stamp: u32) -> u64 {
        self.inner.idle_seconds(stamp)
    }

    fn frequency(&self, stamp: u32) -> u8 {
        self.inner.frequency(stamp)
    }

    fn set_usage(&mut self, key: &Key<'_>, usage: Usage) {
        self.inner.set_usage(key, usage);
    }

    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        self.load(key);
        self.inner.cost_bytes(key)
    }

    /// A checkpoint leaves backed keyspaces out; for the suite everything is given at once.
    fn begin_checkpoint(&mut self, mut sink: Box<dyn EntrySink>) {
        for space in spaces() {
            let mut next = Some(0);
            while let Some(from) = next {
                next = self.scan(space, from, &mut |entry| sink.save(space, entry)).next;
            }
        }
        self.sink = Some(sink);
    }

    fn walk_checkpoint(&mut self, _budget: usize) -> WalkProgress {
        WalkProgress::Done
    }

    fn end_checkpoint(&mut self) -> Option<Box<dyn EntrySink>> {
        self.sink.take()
    }
}

#[test]
fn an_engine_with_rows_behind_it_keeps_the_contract() {
    let effort =
        Effort { steps: 10_000, keys: 100, value_len_max: 9_000, due_late_ms: 300, has_unlogged_fields: false };
    (0..10).for_each(|seed| check(seed, effort, |hasher| Churned::new(seed, hasher)));
}

/// A memory engine with one backed keyspace.
struct One {
    engine: MemEngine,
    rows: Arc<SortedRows>,
    hasher: KeyHasher,
}

impl One {
    fn new() -> Self {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let mut engine = MemEngine::new(hasher.clone(), Rng::new(1), Arc::new(MemoryUse::default()));
        let rows = SortedRows::new();
        engine.set_time(1_000);
        engine.back(SPACE, rows.clone(), Counts::default(), keeper());
        Self { engine, rows, hasher }
    }

    fn write(&mut self, key: &Key<'_>, value: &[u8]) {
        let (kind, encoding, value) = (Type::String, Encoding::PLAIN, Value::Bytes(value));
        self.engine.write(key, &NewEntry { kind, encoding, value, expire_at: None, fields: ExtFields::NONE });
    }

    fn value(&mut self, key: &Key<'_>) -> Result<Option<Vec<u8>>, Fetch> {
        self.engine.read(key, false).map(|entry| entry.map(|entry| entry.value.bytes().to_vec()))
    }

    fn begin_flush(&mut self) {
        self.engine.begin_flush(SPACE, self.rows.begin_flush());
    }

    fn end_flush(&mut self) {
        assert_eq!(self.engine.walk_flush(SPACE, usize::MAX), FlushProgress::Done);
        self.engine.end_flush(SPACE, Some(self.rows.install()));
    }

    fn flush_and_drop(&mut self) {
        self.begin_flush();
        self.end_flush();
        self.engine.drop_clean(SPACE, usize::MAX);
    }

    fn row(&self, key: &Key<'_>) -> Option<Vec<u8>> {
        let mut row = Vec::new();
        self.rows.get(key.bytes, &mut row).expect("no read fails").then_some(row)
    }
}

#[test]
fn a_slow_read_does_not_install_an_older_row() {
    let (mut one, hasher) = (One::new(), KeyHasher::new(&mut Rng::new(1)));
    let key = Key::new(&hasher, SPACE, b"key");
    one.write(&key, b"old");
    one.flush_and_drop();
    assert_eq!(one.value(&key), Err(Fetch));
    let slow = one.engine.want(&key);
    let old = one.row(&key).expect("it was flushed");
    one.engine.release(&key);
    // Written, flushed and dropped before the read ends.
    one.write(&key, b"new");
    one.flush_and_drop();
    assert!(!one.engine.install(&key, slow.ticket, Some(&old)), "the ticket is void");
    assert_eq!(one.value(&key), Err(Fetch));
    let ticket = one.engine.want(&key).ticket;
    let new = one.row(&key).expect("it was flushed");
    assert!(one.engine.install(&key, ticket, Some(&new)));
    assert_eq!(one.value(&key), Ok(Some(b"new".to_vec())));
}

#[test]
fn a_row_that_is_wanted_and_a_change_that_is_not_flushed_stay_in_memory() {
    let (mut one, hasher) = (One::new(), KeyHasher::new(&mut Rng::new(1)));
    let (wanted, changed) = (Key::new(&hasher, SPACE, b"wanted"), Key::new(&hasher, SPACE, b"changed"));
    one.write(&wanted, b"1");
    one.flush_and_drop();
    let ticket = one.engine.want(&wanted).ticket;
    let row = one.row(&wanted).expect("it was flushed");
    assert!(one.engine.install(&wanted, ticket, Some(&row)));
    one.write(&changed, b"2");
    assert_eq!(one.engine.drop_clean(SPACE, usize::MAX), 0);
    assert_eq!(one.value(&wanted), Ok(Some(b"1".to_vec())));
    one.engine.release(&wanted);
    assert!(one.engine.drop_clean(SPACE, usize::MAX) > 0);
    assert_eq!((one.value(&wanted), one.value(&changed)), (Err(Fetch), Ok(Some(b"2".to_vec()))));
}

#[test]
fn a_flush_gets_what_was_there_at_its_cut() {
    let (mut one, hasher) = (One::new(), KeyHasher::new(&mut Rng::new(1)));
    let key = |name: &'static [u8]| Key::new(&hasher, SPACE, name);
    let (changed, removed, new) = (key(b"changed"), key(b"removed"), key(b"new"));
    one.write(&changed, b"1");
    one.write(&removed, b"1");
    one.begin_flush();
    one.write(&changed, b"2");
    one.engine.remove(&removed);
    one.write(&new, b"2");
    one.end_flush();
    let value = |row: Option<Vec<u8>>| row.map(|row| row[4..].to_vec());
    let stored = [&changed, &removed, &new].map(|key| value(one.row(key)));
    assert_eq!(stored, [Some(b"1".to_vec()), Some(b"1".to_vec()), None]);
    // The next flush has what came after the cut.
    one.flush_and_drop();
    let stored = [&changed, &removed, &new].map(|key| value(one.row(key)));
    assert_eq!(stored, [Some(b"2".to_vec()), None, Some(b"2".to_vec())]);
    assert_eq!(one.engine.len(SPACE), 2);
}

#[test]
fn a_flush_that_fails_leaves_its_keys_to_the_next() {
    let (mut one, hasher) = (One::new(), KeyHasher::new(&mut Rng::new(1)));
    let key = Key::new(&hasher, SPACE, b"key");
    one.write(&key, b"1");
    one.begin_flush();
    assert_eq!(one.engine.walk_flush(SPACE, usize::MAX), FlushProgress::Done);
    one.engine.end_flush(SPACE, None);
    assert_eq!(one.engine.drop_clean(SPACE, usize::MAX), 0, "it is stored nowhere else");
    one.flush_and_drop();
    assert_eq!(one.value(&key), Err(Fetch));
    assert!(one.row(&key).is_some());
}

#[test]
fn clearing_voids_rows_and_the_running_flush() {
    let (mut one, hasher) = (One::new(), KeyHasher::new(&mut Rng::new(1)));
    let (old, new) = (Key::new(&hasher, SPACE, b"old"), Key::new(&hasher, SPACE, b"new"));
    one.write(&old, b"1");
    one.flush_and_drop();
    one.write(&new, b"1");
    one.begin_flush();
    one.engine.clear(SPACE);
    assert_eq!(one.engine.walk_flush(SPACE, usize::MAX), FlushProgress::Void);
    one.engine.end_flush(SPACE, None);
    assert_eq!((one.value(&old), one.engine.len(SPACE)), (Ok(None), 0), "no row counts any more");
    one.flush_and_drop();
    assert_eq!((one.row(&old), one.row(&new), one.value(&old)), (None, None, Ok(None)));
}

#[test]
fn clearing_after_all_was_walked_lets_the_flush_be_installed() {
    let (mut one, hasher) = (One::new(), KeyHasher::new(&mut Rng::new(1)));
    let key = Key::new(&hasher, SPACE, b"key");
    one.write(&key, b"1");
    one.begin_flush();
    assert_eq!(one.engine.walk_flush(SPACE, usize::MAX), FlushProgress::Done);
    one.engine.clear(SPACE);
    one.end_flush();
    assert!(one.row(&key).is_some(), "it was there at the cut");
    assert_eq!((one.value(&key), one.engine.len(SPACE)), (Ok(None), 0), "and is void since");
    one.flush_and_drop();
    assert_eq!((one.row(&key), one.value(&key), one.engine.len(SPACE)), (None, Ok(None), 0));
}

#[test]
fn a_flush_corrects_the_count_of_writes_that_read_nothing() {
    let mut one = One::new();
    let hasher = one.hasher.clone();
    let names: Vec<Vec<u8>> = (0..200).map(|number: u32| format!("key:{number}").into_bytes()).collect();
    // Some are new although the filter says that they may be there.
    names.iter().for_each(|name| one.write(&Key::new(&hasher, SPACE, name), b"1"));
    assert!(!one.engine.is_len_exact(SPACE), "the filter has false positives");
    assert_eq!(one.engine.len(SPACE), 200, "what is in memory is certain");
    one.flush_and_drop();
    assert_eq!(one.engine.len(SPACE), 200);
    names.iter().for_each(|name| one.write(&Key::new(&hasher, SPACE, name), b"2"));
    assert_eq!(one.engine.len(SPACE), 200);
    for name in &names[..50] {
        assert!(one.engine.remove(&Key::new(&hasher, SPACE, name)));
    }
    assert_eq!(one.engine.len(SPACE), 150);
    one.flush_and_drop();
    assert_eq!(one.engine.len(SPACE), 150);
}

/// Where a new key counts as overwriting, the entry that only rows hold must not seem to be gone.
#[test]
fn a_guessed_count_of_none_is_no_count() {
    let (mut one, hasher) = (One::new(), KeyHasher::new(&mut Rng::new(1)));
    let old = Key::new(&hasher, SPACE, b"old");
    one.write(&old, b"1");
    one.flush_and_drop();
    assert!(one.engine.is_len_exact(SPACE));
    let names: Vec<String> = (0..100_000).map(|number| format!("new{number}")).collect();
    let mut keys = names.iter().map(|name| Key::new(&hasher, SPACE, name.as_bytes()));
    let maybe = keys.find(|key| one.rows.may_have(key)).expect("one of them passes the filter");
    one.write(&maybe, b"2");
    assert!(one.engine.remove(&maybe));
    assert!(!one.engine.is_len_exact(SPACE), "the old entry counts as overwritten");
    let random = one.engine.random_entry(SPACE).map(|entry| entry.key.to_vec());
    assert_eq!(random.as_deref(), Some(&b"old"[..]));
    one.flush_and_drop();
    assert!(one.engine.is_len_exact(SPACE));
    assert_eq!(one.engine.len(SPACE), 1);
}

/// Reads over the memory budget drop an entry for each that they bring. When buckets were emptied in their order, the
/// entries that stayed were those of the last buckets: they did not fit when the table shrank, and it panicked.
#[test]
fn dropping_leaves_entries_of_all_buckets() {
    let mut one = One::new();
    let hasher = one.hasher.clone();
    const COUNT: u64 = 6_000;
    for number in 0..COUNT {
        one.write(&Key::new(&hasher, SPACE, format!("key:{number}").as_bytes()), &[b'v'; 100]);
    }
    one.begin_flush();
    one.end_flush();
    let mut rng = Rng::new(1);
    for resident in [1_100, 900, 800, 760, 720, 680, 640, 600, 500, 400] {
        let is_there = |one: &mut One, number: u64| {
            let name = format!("key:{number}");
            one.value(&Key::new(&hasher, SPACE, name.as_bytes())).is_ok()
        };
        let mut count = (0..COUNT).filter(|number| is_there(&mut one, *number)).count();
        for _ in 0..5_000 {
            while count > resident {
                one.engine.drop_clean_anywhere(1);
                count -= 1;
            }
            let name = format!("key:{}", rng.below(COUNT));
            let key = Key::new(&hasher, SPACE, name.as_bytes());
            if one.value(&key).is_err() {
                let (wanted, row) = (one.engine.want(&key), one.row(&key).expect("it was flushed"));
                one.engine.install(&key, wanted.ticket, Some(&row));
                one.engine.release(&key);
                count += 1;
            }
        }
    }
    while one.engine.droppable().now {
        one.engine.drop_clean_anywhere(1_000);
    }
    assert_eq!(one.engine.len(SPACE), COUNT);
}

#[test]
fn entries_that_were_used_are_dropped_last() {
    let mut one = One::new();
    let hasher = one.hasher.clone();
    let names: Vec<Vec<u8>> = (0..100).map(|number: u32| format!("key:{number}").into_bytes()).collect();
    names.iter().for_each(|name| one.write(&Key::new(&hasher, SPACE, name), &[b'v'; 100]));
    one.begin_flush();
    one.end_flush();
    // The hand begins its round, and a minute later half of them are used.
    one.engine.drop_clean(SPACE, 1);
    one.engine.set_time(61_000);
    let used: Vec<Key<'_>> = names[..50].iter().map(|name| Key::new(&hasher, SPACE, name)).collect();
    for key in &used {
        let _ = one.engine.read(key, true);
    }
    one.engine.drop_clean(SPACE, 4_000);
    let is_there = |one: &mut One, key: &Key<'_>| matches!(one.value(key), Ok(Some(_)));
    let kept = used.iter().filter(|key| is_there(&mut one, key)).count();
    let kept_of_others = names[50..].iter().filter(|name| is_there(&mut one, &Key::new(&hasher, SPACE, name))).count();
    assert!(kept > kept_of_others, "{kept} of those used, {kept_of_others} of the others");
}

/// Names in order, by short steps while keys change, are flushed and are dropped, against a sorted map.
#[test]
fn names_come_in_order_whatever_is_flushed() {
    const FAR: i64 = 1 << 40;
    let hasher = KeyHasher::new(&mut Rng::new(1));
    for seed in 0..40 {
        let (mut one, mut rng) = (One::new(), Rng::new(seed));
        one.engine.keep_order(SPACE);
        let (mut model, mut is_flushing) = (BTreeMap::<Vec<u8>, Type>::new(), false);
        for _ in 0..400 {
            let name = format!("{:o}", rng.below(200)).into_bytes();
            let key = Key::new(&hasher, SPACE, &name);
            match rng.below(20) {
                0..10 => {
                    let is_list = rng.one_in(3);
                    let (kind, value) = if is_list { (Type::List, &b""[..]) } else { (Type::String, &b"v"[..]) };
                    let expire_at = [None, Some(FAR), Some(1)][rng.below(3) as usize];
                    let (encoding, value) = (Encoding::PLAIN, Value::Bytes(value));
                    one.engine.write(&key, &NewEntry { kind, encoding, value, expire_at, fields: ExtFields::NONE });
                    match expire_at {
                        Some(1) => _ = model.remove(&name),
                        _ => _ = model.insert(name.clone(), kind),
                    }
                }
                10..14 => {
                    one.engine.remove(&key);
                    model.remove(&name);
                }
                14 if !is_flushing => {
                    one.begin_flush();
                    is_flushing = true;
                }
                15 if is_flushing => {
                    one.engine.walk_flush(SPACE, rng.below(9) as usize);
                }
                16 if is_flushing => {
                    let is_walked = one.engine.walk_flush(SPACE, usize::MAX) == FlushProgress::Done;
                    let installs = is_walked && !rng.one_in(3);
                    one.engine.end_flush(SPACE, installs.then(|| one.rows.install()));
                    is_flushing = false;
                }
                17 => _ = one.engine.drop_clean(SPACE, rng.below(3_000) as usize),
                18 => while one.engine.clean(64) {},
                _ if rng.one_in(20) => {
                    one.engine.clear(SPACE);
                    model.clear();
                }
                _ => {}
            }
            if rng.one_in(4) {
                let mut end = || {
                    let name = format!("{:o}", rng.below(200)).into_bytes();
                    [Unbounded, Included(name.clone()), Excluded(name)][rng.below(3) as usize].clone()
                };
                let (lower, upper) = (end(), end());
                let (is_reversed, limit) = (rng.one_in(2), 1 + rng.below(9) as usize);
                let kind = [None, Some(Type::String), Some(Type::List)][rng.below(3) as usize];
                let range =
                    Names::new(lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice), is_reversed);
                let is_meant = |(name, found): &(&Vec<u8>, &Type)| {
                    (lower.clone(), upper.clone()).contains(*name) && kind.is_none_or(|kind| kind == **found)
                };
                let mut expected: Vec<_> =
                    model.iter().filter(is_meant).map(|(name, kind)| (name.clone(), *kind)).collect();
                if is_reversed {
                    expected.reverse();
                }
                assert_eq!(all_names(&one, range, kind, limit), expected, "seed {seed}");
            }
        }
    }
}

/// The names of a range, by steps of up to `limit`.
fn all_names(one: &One, mut range: Names, kind: Option<Type>, limit: usize) -> Vec<(Vec<u8>, Type)> {
    let mut all = Vec::new();
    loop {
        let mut changed = ChangedNames::default();
        assert!(one.engine.changed_names(SPACE, ShardId(0), &range, 3, &mut changed), "the keyspace keeps an order");
        let step = changed.step(&range, kind, 1_000, limit).expect("no read fails");
        assert!(step.names.len() <= limit);
        all.extend(step.names);
        match step.end {
            Some(end) => range = range.behind(end),
            None => return all,
        }
    }
}
