//! Trees of which passes compress leaves while they are edited, read, shared and saved.

use super::*;
use crate::absent::{self, aside::Aside};
use crate::cold::{Cold, Keeper, Shelf};
use crate::hash::Change as HashChange;
use crate::list::{Change as ListChange, End};
use crate::set::Change as SetChange;
use crate::stream::{Change as StreamChange, Id, Ids};
use crate::tree::Plan;
use crate::zset::Change as ZsetChange;
use crate::{Stored, hash, list, set, zset};
use base::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A codec that makes nothing shorter, and counts.
#[derive(Default)]
struct Counting {
    forms: AtomicI64,
    kept: AtomicI64,
    thawed: AtomicU64,
    shelf: Shelf,
}

const TURNED: u8 = 0xA5;

impl Keeper for Counting {
    fn thaw(&self, stored: &[u8], out: &mut Vec<u8>) {
        self.thawed.fetch_add(1, Ordering::Relaxed);
        out.extend(stored.iter().map(|byte| byte ^ TURNED));
    }

    fn len_of(&self, stored: &[u8]) -> Option<usize> {
        Some(stored.len())
    }

    fn came(&self, _stored: &[u8]) {
        self.forms.fetch_add(1, Ordering::Relaxed);
    }

    fn went(&self, _stored: &[u8]) {
        self.forms.fetch_sub(1, Ordering::Relaxed);
    }

    fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    fn keeps(&self, bytes: usize, is_kept: bool) {
        self.kept.fetch_add(if is_kept { bytes as i64 } else { -(bytes as i64) }, Ordering::Relaxed);
    }
}

/// One of 400 members, of which some are long.
fn member(rng: &mut Rng) -> Vec<u8> {
    let number = rng.below(400);
    let len = if number.is_multiple_of(30) { 2_000 } else { number * 37 % 300 };
    format!("member {number} {}", "m".repeat(len as usize)).into_bytes()
}

/// A tree as an engine keeps it, with a plain model of a hash or set, sorted set or list, and a twin without
/// compression.
struct Pair {
    big: Big,
    twin: Big,
    fields: BTreeMap<Vec<u8>, (Vec<u8>, Option<base::UnixMs>)>,
    elements: Vec<Vec<u8>>,
    scores: BTreeMap<Vec<u8>, f64>,
    limits: Limits,
    hasher: KeyHasher,
    counting: Arc<Counting>,
    aside: Arc<Aside>,
    stops: u64,
}

impl Pair {
    fn new(kind: Type) -> Self {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        let (fields, elements, counting) = (BTreeMap::new(), Vec::new(), Arc::default());
        // A list that shrinks stays a tree.
        let limits = Limits::default();
        limits.set_list_size(0);
        Self {
            big: Big::empty(kind, &hasher),
            twin: Big::empty(kind, &hasher),
            fields,
            elements,
            scores: BTreeMap::new(),
            limits,
            hasher,
            counting,
            aside: Arc::default(),
            stops: 0,
        }
    }

    fn keeper(&self) -> Arc<dyn Keeper> {
        self.counting.clone()
    }

    fn edit(&mut self, rng: &mut Rng) {
        let mut changes = Vec::new();
        let len = if rng.one_in(30) { 2_000 } else { rng.below(300) };
        let value: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
        match self.big.kind() {
            Type::Hash => {
                let field = format!("field {}", rng.below(400)).into_bytes();
                let expire_at = rng.one_in(40).then(|| rng.below(50) as i64);
                if rng.one_in(5) {
                    HashChange::Delete(&field).put(&mut changes);
                    self.fields.remove(&field);
                } else {
                    HashChange::Set { field: &field, value: &value, expire_at }.put(&mut changes);
                    self.fields.insert(field, (value, expire_at));
                }
            }
            Type::Set => {
                let member = member(rng);
                if rng.one_in(5) {
                    SetChange::Remove(&member).put(&mut changes);
                    self.fields.remove(&member);
                } else {
                    SetChange::Add(&member).put(&mut changes);
                    self.fields.insert(member, (Vec::new(), None));
                }
            }
            Type::Zset => self.put_zset_change(rng, &mut changes),
            Type::Stream => self.put_stream_change(rng, &value, &mut changes),
            _ => {
                let (len, index) = (self.elements.len(), rng.below(self.elements.len() as u64 + 1));
                let end = End::ALL[rng.below(2) as usize];
                // Some stay, so that it stays a tree.
                match if len < 20 { 7 } else { rng.below(8) } {
                    0 => {
                        let count = rng.below(6);
                        ListChange::Remove { index, count }.put(&mut changes);
                        self.elements.drain(index as usize..(index + count).min(len as u64) as usize);
                    }
                    1 => {
                        ListChange::Insert { index, value: &value }.put(&mut changes);
                        self.elements.insert(index as usize, value);
                    }
                    2 if len > 0 => {
                        let index = index % len as u64;
                        ListChange::Set { index, value: &value }.put(&mut changes);
                        self.elements[index as usize] = value;
                    }
                    3 if len > 0 => {
                        ListChange::Pop { end, count: 1 }.put(&mut changes);
                        self.elements.remove(if end == End::Head { 0 } else { len - 1 });
                    }
                    _ => {
                        ListChange::Push { end, value: &value }.put(&mut changes);
                        self.elements.insert(if end == End::Head { 0 } else { len }, value);
                    }
                }
            }
        }
        if self.big.may_have_rows() {
            self.edit_with_rows(&changes);
        } else {
            let mut big = std::mem::replace(&mut self.big, Big::empty(self.twin.kind(), &self.hasher));
            self.apply(&mut big, &changes);
            self.big = big;
        }
        let mut twin = std::mem::replace(&mut self.twin, Big::empty(self.big.kind(), &self.hasher));
        self.apply(&mut twin, &changes);
        self.twin = twin;
    }

    fn apply(&self, big: &mut Big, changes: &[u8]) {
        let kind = big.kind();
        let mut slot =
            Slot { body: Body::Big(big), encoding: Encoding::BIG, limits: &self.limits, hasher: &self.hasher };
        crate::apply(kind, &mut slot, changes);
        assert!(matches!(slot.body, Body::Big(_)), "it stays a tree");
    }

    /// Edits as an engine does where leaves are rows: after each stop the tree is what it was.
    fn edit_with_rows(&mut self, changes: &[u8]) {
        let mut held = Vec::new();
        loop {
            let before = self.big.clone();
            let mut tree = before.clone();
            let edited = absent::catch(|| absent::whole(&mut tree, true, |tree| self.apply(tree, changes)));
            self.big = tree;
            let Err(stop) = edited else { break };
            self.stops += 1;
            assert!(held.len() < 24, "an edit reaches few leaves");
            let bytes = |big: &Big| (big.memory_bytes(), big.content_bytes());
            assert_eq!(bytes(&self.big), bytes(&before));
            if self.stops.is_multiple_of(16) {
                let saved = |big: &Big| {
                    let mut changes = Vec::new();
                    absent::waiting(|| big.write_all_changes(&mut changes));
                    changes
                };
                assert_eq!(saved(&self.big), saved(&before));
            }
            stop.leaf.fetch().expect("the row is readable");
            held.push(stop);
        }
    }

    /// Reads with all that is absent.
    fn reads_of(&self, read: impl Fn(&Self)) {
        absent::aside::run(|| read(self));
    }

    fn put_zset_change(&mut self, rng: &mut Rng, changes: &mut Vec<u8>) {
        let member = member(rng);
        match rng.below(20) {
            0 => {
                let (start, count) = (rng.below(self.scores.len() as u64 + 1), rng.below(6));
                ZsetChange::RemoveRange { start, count }.put(changes);
                for (_, member) in self.ranked().into_iter().skip(start as usize).take(count as usize) {
                    self.scores.remove(&member);
                }
            }
            1..=4 => {
                ZsetChange::Remove { member: &member }.put(changes);
                self.scores.remove(&member);
            }
            _ => {
                let score = rng.below(50) as f64 / 2.0;
                ZsetChange::Add { score, member: &member }.put(changes);
                self.scores.insert(member, score);
            }
        }
    }

    /// What the sorted set is to hold, in order.
    fn ranked(&self) -> Vec<(f64, Vec<u8>)> {
        let mut ranked: Vec<_> = self.scores.iter().map(|(member, score)| (*score, member.clone())).collect();
        ranked.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
        ranked
    }

    fn put_stream_change(&self, rng: &mut Rng, value: &[u8], changes: &mut Vec<u8>) {
        let Big::Stream(stream) = &self.twin else { unreachable!("it is a stream") };
        let last = stream.last_id();
        match rng.below(12) {
            0 => {
                let mut buffer = Vec::new();
                let gone =
                    stream.range(Id { ms: rng.below(last.ms + 1), seq: 0 }, Id::MAX).take(3).map(|entry| entry.id);
                let ids = Ids::collect(gone, &mut buffer);
                StreamChange::Delete { ids }.put(changes);
            }
            1 if rng.one_in(4) => StreamChange::Trim { count: rng.below(8) }.put(changes),
            2 => StreamChange::SetGroup { group: b"group", last, read: None }.put(changes),
            _ => {
                let id = Id { ms: last.ms + 1 + rng.below(3), seq: rng.below(3) };
                let name: &[u8] = if rng.one_in(5) { b"other" } else { b"name" };
                StreamChange::put_add(changes, id, 1, [name, value].into_iter());
            }
        }
    }

    /// A pass, or a part of one. What it finds is stored later, when the tree may have changed.
    fn pass(&mut self, rng: &mut Rng, edits: bool) {
        let (mut from, compresses) = (Some(0), !rng.one_in(6));
        let (age, is_other) = (rng.below(2) as u8, |_: &[u8]| !compresses);
        let plan = Plan {
            age,
            bytes: 4096,
            bytes_max: 32 << 10,
            retries: rng.one_in(3),
            compresses,
            takes_all: false,
            only_sheds: rng.one_in(8),
            is_other: &is_other,
        };
        let mut bytes = Vec::new();
        while let Some(here) = from {
            let (found, next) = self.big.look_for_cold(here, &plan, 1 + rng.below(20) as usize);
            from = next;
            if edits && rng.one_in(5) {
                self.edit(rng);
            }
            match found {
                Some(Find::Run(run, _)) if rng.one_in(9) => self.big.give_up(&run),
                Some(Find::Run(run, _)) => {
                    let count = run.bytes(&mut bytes).filter(|_| compresses);
                    let stored = bytes.iter().map(|byte| byte ^ TURNED).collect::<Vec<_>>();
                    match count {
                        Some(count) => {
                            let cold = Cold::new(&self.keeper(), &stored).expect("it has a length");
                            self.big.store_cold(&run, cold, count);
                        }
                        None if run.are_cold() => _ = self.big.store_warm(&run),
                        None => self.big.give_up(&run),
                    }
                }
                Some(Find::Thawed(rank)) => self.big.shed(rank),
                None => {}
            }
        }
    }

    fn check(&self) {
        self.check_tree(&self.big);
    }

    fn check_tree(&self, big: &Big) {
        if let Big::Hash(_) = big {
            let first = self.fields.values().filter_map(|(_, at)| *at).min();
            assert_eq!(hash::View::of(Encoding::BIG, Stored::Big(big)).first_due(), first);
        }
        self.check_elements(big);
    }

    fn check_elements(&self, big: &Big) {
        match big {
            Big::Hash(tree) => {
                let view = hash::View::of(Encoding::BIG, Stored::Big(big));
                let all: BTreeMap<_, _> =
                    view.iter().map(|cell| (cell.field.to_vec(), (cell.value.to_vec(), cell.expire_at))).collect();
                assert_eq!(all, self.fields);
                assert_eq!(view.len(), all.len());
                for (field, (value, expire_at)) in &self.fields {
                    let cell = view.get(field).expect("it is there");
                    assert_eq!((cell.value, cell.expire_at), (&**value, *expire_at));
                }
                tree.tree().check_sums();
            }
            Big::Set(tree) => {
                let view = set::View::of(Encoding::BIG, Stored::Big(big));
                let all: Vec<_> = tree.iter_from(0).map(<[u8]>::to_vec).collect();
                assert_eq!((view.len(), all.len()), (self.fields.len(), self.fields.len()));
                assert!(all.iter().all(|member| self.fields.contains_key(member)));
                assert!(self.fields.keys().all(|member| view.contains(member)));
                tree.tree().check_sums();
            }
            Big::Zset(tree) => {
                let view = zset::View::of(Stored::Big(big));
                let (all, ranked) = (|entry: zset::Entry<'_>| (entry.score, entry.member.to_vec()), self.ranked());
                assert!(view.forward(0).map(all).eq(ranked.iter().cloned()));
                assert!(view.backward(u64::MAX).map(all).eq(ranked.iter().rev().cloned()));
                for (rank, (score, member)) in ranked.iter().enumerate() {
                    assert_eq!(view.rank(member), Some((rank as u64, *score)));
                }
                let mut scanned = BTreeMap::new();
                assert_eq!(view.scan(0, u64::MAX, |entry| _ = scanned.insert(entry.member.to_vec(), entry.score)), 0);
                assert_eq!(scanned, self.scores);
                tree.check_sums();
            }
            Big::List(tree) => {
                let view = list::View::of(Encoding::BIG, Stored::Big(big));
                assert!(view.forward(0).eq(self.elements.iter().map(|element| &**element)));
                assert!(view.backward(u64::MAX).eq(self.elements.iter().rev().map(|element| &**element)));
                tree.tree().check_sums();
            }
            Big::Btree(_) => unreachable!("btree::tests make and check these"),
            Big::Stream(stream) => {
                let Big::Stream(twin) = &self.twin else { unreachable!("it is a stream") };
                let whole = |entry: crate::stream::Entry<'_>| {
                    let fields = entry.fields().map(|(name, value)| (name.to_vec(), value.to_vec()));
                    (entry.id, fields.collect::<Vec<_>>())
                };
                let (all, twins) = (stream.range(Id::MIN, Id::MAX).map(whole), twin.range(Id::MIN, Id::MAX).map(whole));
                assert!(all.eq(twins));
                let back = stream.range_back(Id::MIN, Id::MAX).map(|entry| entry.id);
                assert!(back.eq(twin.range_back(Id::MIN, Id::MAX).map(|entry| entry.id)));
                assert_eq!((stream.len(), stream.first_id()), (twin.len(), twin.first_id()));
                assert_eq!((stream.last_id(), stream.entries_added()), (twin.last_id(), twin.entries_added()));
                assert_eq!(stream.content_bytes() > 0, !stream.is_empty());
            }
        }
        let [mut changes, mut twins] = [Vec::new(), Vec::new()];
        big.write_all_changes(&mut changes);
        self.twin.write_all_changes(&mut twins);
        // Elements of one leaf are in the order in which they came there.
        assert!(matches!(big.kind(), Type::Hash | Type::Set) || changes == twins);
    }

    /// The tree that is loaded from the saved form, in parts; as by a process that hashes differently, if
    /// `is_elsewhere`.
    fn loaded(&self, budget: usize, is_elsewhere: bool) -> Big {
        let hasher = KeyHasher::new(&mut Rng::new(2));
        let (mut big, mut from) = (Big::empty(self.big.kind(), &hasher), Some(Progress::default()));
        while let Some(here) = from {
            let mut part = Vec::new();
            from = self.big.write_leaves(here, budget, &mut part);
            // The fingerprint of the order.
            match self.big.kind() {
                Type::Hash | Type::Set if is_elsewhere => part[32] ^= 1,
                Type::Zset if is_elsewhere && part[0] == 2 => part[33] ^= 1,
                _ => {}
            }
            assert!(Big::check_leaves(self.big.kind(), &part, |_| true));
            big.push_leaves(&part, &self.keeper());
        }
        let is_hashed = !matches!(self.big.kind(), Type::List | Type::Stream);
        assert_eq!(big.is_ordered_by(&hasher), !is_hashed || is_elsewhere);
        big
    }

    /// The tree that is loaded from leaves of which some are addresses: it has the same rows, and none was read.
    fn with_addresses(&self, budget: usize) -> Big {
        let keeper = absent::both(self.keeper(), self.aside.clone());
        let (mut big, mut from) = (Big::empty(self.big.kind(), &self.hasher), Some(Progress::default()));
        let reads = self.aside.reads();
        while let Some(here) = from {
            let (mut part, mut addresses) = (Vec::new(), 0);
            from = self.big.write_addresses(here, budget, &mut part);
            Big::addresses_in_leaves(self.big.kind(), &part, &mut |_| addresses += 1);
            assert!(addresses == 0 || !Big::check_leaves(self.big.kind(), &part, |_| true), "no checkpoint has rows");
            big.push_leaves(&part, &keeper);
            assert!(addresses == 0 || big.may_have_rows());
        }
        assert_eq!(self.aside.reads(), reads);
        big
    }
}

/// Any parts of a tree may be compressed, decompressed, dropped and stored raw again while it is edited and older
/// versions are kept. It keeps its contents in memory and when saved, its memory count is right, and no compressed form
/// leaks.
#[test]
fn compressed_leaves_change_nothing() {
    let (seeds, steps) = if cfg!(miri) { (1, 30) } else { (40, 300) };
    let kinds = [Type::Hash, Type::Set, Type::Zset, Type::List, Type::Stream];
    for (kind, seed) in kinds.iter().flat_map(|kind| (0..seeds).map(move |seed| (*kind, seed))) {
        let (mut pair, mut rng) = (Pair::new(kind), Rng::new(seed));
        (0..steps).for_each(|_| pair.edit(&mut rng));
        let mut was_cold = false;
        for _ in 0..if cfg!(miri) { 3 } else { 20 } {
            pair.pass(&mut rng, true);
            was_cold |= pair.big.has_cold();
            let kept = pair.big.clone();
            let (fields, elements, scores) = (pair.fields.clone(), pair.elements.clone(), pair.scores.clone());
            let then = Pair { twin: pair.twin.clone(), fields, elements, scores, ..Pair::new(kind) };
            if rng.one_in(2) {
                pair.check();
            }
            (0..rng.below(30)).for_each(|_| pair.edit(&mut rng));
            pair.pass(&mut rng, false);
            pair.check();
            then.check_tree(&kept);
            let mut changes = Vec::new();
            pair.big.write_all_changes(&mut changes);
            pair.check_tree(&Big::build(kind, &changes, &pair.limits, &pair.hasher));
            let thawed = pair.counting.thawed.load(Ordering::Relaxed);
            let mut loaded = pair.loaded(1 + rng.below(5_000) as usize, false);
            assert_eq!(pair.counting.thawed.load(Ordering::Relaxed), thawed, "a load reads nothing");
            assert_eq!(loaded.has_cold(), pair.big.has_cold());
            pair.check_tree(&loaded);
            std::mem::swap(&mut pair.big, &mut loaded);
            pair.edit(&mut rng);
            pair.check();
            pair.check_tree(&pair.loaded(1_000, true));
        }
        assert!(was_cold, "{kind:?} {seed}");
        let counting = pair.counting.clone();
        drop(pair);
        // Big trees are freed by a thread of their own.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let left = || (counting.forms.load(Ordering::Relaxed), counting.kept.load(Ordering::Relaxed));
        while left() != (0, 0) {
            assert!(std::time::Instant::now() < deadline, "{:?} are left", left());
            std::thread::yield_now();
        }
    }
}

/// Before each edit, every leaf is absent with even chance. The edit stops at each leaf that it needs and is not there,
/// and leaves the tree as it was; when it has come to its end, tree, model and a tree without rows agree, as does every
/// older version. No row stays without a leaf, and each leaf has its row. Passes that compress come in between.
#[test]
fn edits_of_trees_with_absent_leaves_are_whole_or_nothing() {
    let (seeds, steps) = if cfg!(miri) { (1, 30) } else { (10, 300) };
    let kinds = [Type::Hash, Type::Set, Type::Zset, Type::List, Type::Stream];
    let mut stops = BTreeMap::<Type, u64>::new();
    for (kind, seed) in kinds.iter().flat_map(|kind| (0..seeds).map(move |seed| (*kind, seed))) {
        let (mut pair, mut rng) = (Pair::new(kind), Rng::new(seed));
        (0..steps).for_each(|_| pair.edit(&mut rng));
        for _ in 0..if cfg!(miri) { 3 } else { 12 } {
            let kept = pair.big.clone();
            let (fields, elements, scores) = (pair.fields.clone(), pair.elements.clone(), pair.scores.clone());
            let then = Pair { twin: pair.twin.clone(), fields, elements, scores, ..Pair::new(kind) };
            for _ in 0..20 {
                pair.aside.clone().take(&mut pair.big, &mut || rng.one_in(2));
                pair.edit(&mut rng);
            }
            pair.pass(&mut rng, false);
            pair.reads_of(|pair| pair.check());
            pair.reads_of(|_| then.check_tree(&kept));
            let loaded = absent::waiting(|| pair.loaded(1 + rng.below(5_000) as usize, false));
            assert!(!loaded.may_have_rows(), "what is saved is the bytes, not their address");
            pair.check_tree(&loaded);
            let named = pair.with_addresses(1 + rng.below(5_000) as usize);
            // An address does not say when fields expire: leaves of such are rows in this test alone.
            pair.reads_of(|pair| pair.check_elements(&named));
        }
        *stops.entry(kind).or_default() += pair.stops;
        let aside = pair.aside.clone();
        drop(pair);
        // Big trees are freed by a thread of their own.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while (aside.held(), aside.kept()) != (0, 0) {
            assert!(std::time::Instant::now() < deadline, "{} rows are left", aside.held());
            std::thread::yield_now();
        }
    }
    assert!(cfg!(miri) || stops.values().all(|stops| *stops > 20), "{stops:?}");
}

/// Unused elements are compressed, used ones are not, and a failed attempt is not repeated.
#[test]
fn what_is_used_stays_as_it_is() {
    let mut pair = Pair::new(Type::Hash);
    for number in 0..400 {
        let field = format!("field {number}").into_bytes();
        let mut changes = Vec::new();
        HashChange::Set { field: &field, value: &[b'v'; 200], expire_at: None }.put(&mut changes);
        let mut slot = Slot {
            body: Body::Big(&mut pair.big),
            encoding: Encoding::BIG,
            limits: &pair.limits,
            hasher: &pair.hasher,
        };
        crate::apply(Type::Hash, &mut slot, &changes);
    }
    let plan = Plan {
        age: 3,
        bytes: 4096,
        bytes_max: 4096,
        retries: false,
        compresses: true,
        takes_all: false,
        only_sheds: false,
        is_other: &|_| false,
    };
    let hot = |big: &Big| {
        let Big::Hash(tree) = big else { unreachable!("it is a hash") };
        assert!(tree.get(b"field 7").is_some());
    };
    let mut bytes = Vec::new();
    for pass in 1..=5 {
        hot(&pair.big);
        let (mut from, mut runs) = (Some(0), 0);
        while let Some(here) = from {
            let (found, next) = pair.big.look_for_cold(here, &plan, 10);
            from = next;
            let Some(Find::Run(run, _)) = found else { continue };
            runs += 1;
            if runs % 2 == 0 {
                pair.big.give_up(&run);
                continue;
            }
            let count = run.bytes(&mut bytes).expect("no field has a time");
            let stored = bytes.iter().map(|byte| byte ^ TURNED).collect::<Vec<_>>();
            let cold = Cold::new(&pair.keeper(), &stored).expect("it has a length");
            assert!(pair.big.store_cold(&run, cold, count));
        }
        assert_eq!(runs > 10, pass == 3, "{runs} in pass {pass}");
        assert!(runs == 0 || pass == 3);
        let thawed = pair.counting.thawed.load(Ordering::Relaxed);
        hot(&pair.big);
        assert_eq!(pair.counting.thawed.load(Ordering::Relaxed), thawed, "what is used was not compressed");
    }
    assert!(pair.big.memory_bytes() > 80_000, "this codec saves nothing");
    assert_eq!(pair.counting.kept.load(Ordering::Relaxed), 0);
}

/// The bytes that docs/formats/collections.md shows, and none that are cut or have more.
#[test]
fn golden_leaves() {
    let counting = Arc::new(Counting::default());
    let keeper: Arc<dyn Keeper> = counting;
    let leaves = b"\x01\x05ab\x02\x01\x04\x02\x03\x03xyz";
    let mut big = Big::List(list::Big::default());
    assert!(Big::check_leaves(Type::List, leaves, |stored| stored == b"xyz"));
    assert!(!Big::check_leaves(Type::List, leaves, |_| false));
    big.push_leaves(leaves, &keeper);
    let mut again = Vec::new();
    assert_eq!(big.write_leaves(Progress::default(), 1_000, &mut again), None);
    assert_eq!(again, leaves);
    let Big::List(tree) = &big else { unreachable!("it is a list") };
    assert_eq!((tree.len(), tree.tree().content_bytes()), (4, 8));
    let mut seen = Vec::new();
    Big::stored_in_leaves(Type::List, leaves, &mut |stored| seen.push(stored));
    assert_eq!(seen, [b"xyz"]);
    let mut hash = vec![7; 40];
    hash.extend_from_slice(b"\x05\x01\x04\x02\x01fv\x80\x01\x02\x09\x01s");
    assert!(Big::check_leaves(Type::Hash, &hash, |stored| stored == b"s"));
    for (kind, good) in [(Type::List, &leaves[..]), (Type::Hash, &hash)] {
        let whole: &[usize] = if kind == Type::List { &[7] } else { &[47] };
        for end in 0..good.len() {
            assert_eq!(Big::check_leaves(kind, &good[..end], |_| true), whole.contains(&end), "{kind:?} {end}");
        }
    }
    let mut set = vec![7; 40];
    set.extend_from_slice(b"\x05\x01\x04\x01a\x01b\x80\x01\x02\x09\x01s");
    let by_score = b"\x01\0\0\x01\x07\x01\x01a\x07\x02bc\x07\x01d\x02\x05\x01s";
    let mut by_member = vec![7; 41];
    by_member[0] = 2;
    by_member.extend_from_slice(b"\x05\x01\x03\x01\x01a\x80\x01\x02\x09\x01s");
    for (kind, good, whole) in [(Type::Set, &set[..], 47), (Type::Zset, by_score, 12), (Type::Zset, &by_member, 47)] {
        assert!(Big::check_leaves(kind, good, |stored| stored == b"s"), "{kind:?}");
        assert!(!Big::check_leaves(kind, good, |_| false));
        seen.clear();
        Big::stored_in_leaves(kind, good, &mut |stored| seen.push(stored));
        assert_eq!(seen, [b"s"]);
        for end in 0..good.len() {
            assert_eq!(Big::check_leaves(kind, &good[..end], |_| true), end == whole, "{kind:?} {end}");
        }
    }
    let mut big = Big::empty(Type::Zset, &KeyHasher::new(&mut Rng::new(1)));
    big.push_leaves(by_score, &keeper);
    again.clear();
    assert_eq!(big.write_leaves(Progress::default(), 1_000, &mut again), Some(Progress(0, 1)));
    assert_eq!(again, by_score);
}
