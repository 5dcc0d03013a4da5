use super::*;
use crate::{Body, Encoding, Limits, Progress, absent, check_changes};
use base::hash::KeyHasher;
use base::{Rng, UnixMs};
use proptest::prelude::*;
use std::collections::BTreeMap;

type Strings = Vec<Vec<u8>>;

/// A change that owns its bytes.
#[derive(Clone, Debug)]
enum Step {
    Add(Id, Strings),
    Delete(Vec<Id>),
    Trim(u64),
    SetId(Id, u64, Id),
    SetGroup(u8, Id, Option<u64>),
    DestroyGroup(u8),
    SetConsumer(u8, u8, UnixMs, Option<UnixMs>),
    DeleteConsumer(u8, u8),
    Deliver(u8, u8, Vec<Claim>),
    Acknowledge(u8, Vec<Id>),
}

fn name(of: u8) -> Vec<u8> {
    vec![of; usize::from(of % 3)]
}

impl Step {
    fn put(&self, out: &mut Vec<u8>) {
        let mut buffer = Vec::new();
        match self {
            Self::Add(id, strings) => {
                Change::put_add(out, *id, strings.len() as u64 / 2, strings.iter().map(Vec::as_slice));
            }
            Self::Delete(ids) => Change::Delete { ids: Ids::collect(ids.iter().copied(), &mut buffer) }.put(out),
            Self::Trim(count) => Change::Trim { count: *count }.put(out),
            Self::SetId(last, added, deleted) => {
                Change::SetId { last: *last, added: *added, deleted: *deleted }.put(out);
            }
            Self::SetGroup(group, last, read) => {
                Change::SetGroup { group: &name(*group), last: *last, read: *read }.put(out);
            }
            Self::DestroyGroup(group) => Change::DestroyGroup { group: &name(*group) }.put(out),
            Self::SetConsumer(group, consumer, seen, active) => {
                let (group, consumer) = (&name(*group)[..], &name(*consumer)[..]);
                Change::SetConsumer { group, consumer, seen: *seen, active: *active }.put(out);
            }
            Self::DeleteConsumer(group, consumer) => {
                Change::DeleteConsumer { group: &name(*group), consumer: &name(*consumer) }.put(out);
            }
            Self::Deliver(group, consumer, claims) => {
                let claims = Claims::collect(claims.iter().copied(), &mut buffer);
                Change::Deliver { group: &name(*group), consumer: &name(*consumer), claims }.put(out);
            }
            Self::Acknowledge(group, ids) => {
                let ids = Ids::collect(ids.iter().copied(), &mut buffer);
                Change::Acknowledge { group: &name(*group), ids }.put(out);
            }
        }
    }
}

/// A stream as plain maps.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    entries: BTreeMap<Id, Strings>,
    last: Id,
    deleted: Id,
    added: u64,
    groups: BTreeMap<Vec<u8>, ModelGroup>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct ModelGroup {
    last: Id,
    read: Option<u64>,
    consumers: BTreeMap<Vec<u8>, (UnixMs, Option<UnixMs>)>,
    pending: BTreeMap<Id, (Vec<u8>, UnixMs, u64)>,
}

impl Model {
    fn apply(&mut self, step: &Step) {
        match step.clone() {
            Step::Add(id, strings) => {
                self.entries.insert(id, strings);
                self.last = id;
                self.added += 1;
            }
            Step::Delete(ids) => {
                for id in ids {
                    if self.entries.remove(&id).is_some() {
                        self.deleted = self.deleted.max(id);
                    }
                }
            }
            Step::Trim(count) => (0..count).for_each(|_| _ = self.entries.pop_first()),
            Step::SetId(last, added, deleted) => (self.last, self.added, self.deleted) = (last, added, deleted),
            Step::SetGroup(group, last, read) => {
                let group = self.groups.entry(name(group)).or_default();
                (group.last, group.read) = (last, read);
            }
            Step::DestroyGroup(group) => _ = self.groups.remove(&name(group)),
            Step::SetConsumer(group, consumer, seen, active) => {
                if let Some(group) = self.groups.get_mut(&name(group)) {
                    group.consumers.insert(name(consumer), (seen, active));
                }
            }
            Step::DeleteConsumer(group, consumer) => {
                if let Some(group) = self.groups.get_mut(&name(group)) {
                    group.consumers.remove(&name(consumer));
                    group.pending.retain(|_, (owner, ..)| *owner != name(consumer));
                }
            }
            Step::Deliver(group, consumer, claims) => {
                let group = self.groups.get_mut(&name(group));
                if let Some(group) = group.filter(|group| group.consumers.contains_key(&name(consumer))) {
                    for claim in claims {
                        group.pending.insert(claim.id, (name(consumer), claim.delivered, claim.deliveries));
                    }
                }
            }
            Step::Acknowledge(group, ids) => {
                if let Some(group) = self.groups.get_mut(&name(group)) {
                    ids.iter().for_each(|id| _ = group.pending.remove(id));
                }
            }
        }
    }
}

fn owned(entry: Entry<'_>) -> (Id, Strings) {
    let strings: Strings = entry.fields().flat_map(<[_; 2]>::from).map(<[u8]>::to_vec).collect();
    assert_eq!(entry.field_count() * 2, strings.len());
    (entry.id, strings)
}

/// Everything a reader can see, checked for agreement with itself.
fn seen(big: &Big) -> Model {
    let entries: BTreeMap<_, _> = big.range(Id::MIN, Id::MAX).map(owned).collect();
    assert_eq!(big.len(), entries.len() as u64);
    assert_eq!(big.is_empty(), entries.is_empty());
    assert_eq!(big.first_id(), entries.keys().next().copied().unwrap_or_default());
    assert!(big.range_back(Id::MIN, Id::MAX).map(owned).eq(entries.clone().into_iter().rev()));
    assert_eq!(big.last_entry().map(owned), entries.clone().pop_last());
    assert_eq!(big.nodes.skipping(0).map(|node| node.live()).sum::<u64>(), big.len());
    assert_eq!(big.nodes.skipping(0).count() as u64, big.node_count());
    assert!(big.nodes.skipping(0).all(|node| node.live() > 0));
    let nodes: usize = big.nodes.skipping(0).map(|node| node.heap_bytes()).sum();
    let groups: usize = big.groups().map(Group::heap_bytes).sum();
    assert!(big.memory_bytes() >= nodes + groups && big.group_bytes == groups);
    assert_eq!(big.content_bytes(), big.nodes.skipping(0).map(|node| node.content_bytes()).sum::<usize>());
    let groups = big.groups().map(|group| (group.name().to_vec(), seen_group(big, group))).collect();
    assert_eq!(big.group_count(), big.groups().count() as u64);
    Model { entries, last: big.last_id(), deleted: big.max_deleted_id(), added: big.entries_added(), groups }
}

fn seen_group(big: &Big, group: &Group) -> ModelGroup {
    assert!(std::ptr::eq(group, big.group(group.name()).unwrap()));
    let pending: BTreeMap<_, _> = group
        .pending(Id::MIN)
        .map(|pending| {
            (pending.id(), (pending.owner().to_vec(), pending.claim().delivered, pending.claim().deliveries))
        })
        .collect();
    assert_eq!(group.pending_count(), pending.len() as u64);
    assert_eq!(group.last_pending().map(Pending::id), pending.keys().last().copied());
    assert_eq!(group.consumer_count(), group.consumers().count() as u64);
    for consumer in group.consumers() {
        assert_eq!(group.consumer(consumer.name()).map(Consumer::seen), Some(consumer.seen()));
        let ids: Vec<Id> = consumer.pending_ids(Id::MIN).collect();
        let expected = pending.iter().filter(|(_, (owner, ..))| owner == consumer.name()).map(|(id, _)| *id);
        assert!(expected.eq(ids.iter().copied()), "{ids:?} of {:?}", consumer.name());
        assert_eq!(consumer.pending_count(), ids.len() as u64);
    }
    let consumers =
        group.consumers().map(|consumer| (consumer.name().to_vec(), (consumer.seen(), consumer.active()))).collect();
    ModelGroup { last: group.last_delivered(), read: group.entries_read(), consumers, pending }
}

/// Changes applied as the engine does.
fn build(big: &mut Option<crate::Big>, changes: &[u8], limits: &Limits) {
    assert!(check_changes(crate::Type::Stream, changes));
    let hasher = KeyHasher::new(&mut Rng::new(1));
    let mut packed = Vec::new();
    let body = match big {
        Some(big) => Body::Big(big),
        None => Body::Packed((&mut packed).into()),
    };
    let mut slot = Slot { body, encoding: Encoding::PACKED, limits, hasher: &hasher };
    assert!(crate::apply(crate::Type::Stream, &mut slot, changes).is_any());
    if let Body::Grown(grown) = slot.body {
        *big = Some(crate::Big::clone(&grown));
    }
}

fn stream(big: &Option<crate::Big>) -> &Big {
    Big::of(Stored::Big(big.as_ref().unwrap()))
}

fn limits(bytes: i64, entries: i64) -> Limits {
    let limits = Limits::default();
    limits.set_stream_node_bytes(bytes);
    limits.set_stream_node_entries(entries);
    limits
}

fn any_id() -> impl Strategy<Value = Id> {
    (0..40u64, 0..3u64).prop_map(|(ms, seq)| Id { ms, seq })
}

fn any_strings() -> impl Strategy<Value = Strings> {
    let same_names = prop::collection::vec(any::<u8>(), 0..20).prop_map(|value| vec![b"name".to_vec(), value]);
    let any = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 1..4);
    let pairs = any.prop_map(|strings| strings.iter().cycle().take(strings.len() * 2).cloned().collect());
    let big = Just(vec![b"name".to_vec(), vec![b'x'; 300]]);
    prop_oneof![4 => same_names, 2 => pairs, 1 => big]
}

/// A step whose id of a new entry is how far it is above the last.
fn any_step() -> impl Strategy<Value = Step> {
    let group = || 0..3u8;
    let ids = || prop::collection::vec(any_id(), 0..4);
    let claim =
        (any_id(), -5..100i64, 0..9u64).prop_map(|(id, delivered, deliveries)| Claim { id, delivered, deliveries });
    prop_oneof![
        12 => ((0..2u64, 0..3u64), any_strings()).prop_map(|((ms, seq), strings)| Step::Add(Id { ms, seq }, strings)),
        3 => ids().prop_map(Step::Delete),
        2 => (0..6u64).prop_map(Step::Trim),
        1 => (any_id(), any::<u64>(), any_id())
            .prop_map(|(last, added, deleted)| Step::SetId(last, added >> 1, deleted)),
        2 => (group(), any_id(), any::<Option<u64>>())
            .prop_map(|(group, last, read)| Step::SetGroup(group, last, read)),
        1 => group().prop_map(Step::DestroyGroup),
        3 => (group(), group(), any::<i64>(), any::<Option<i64>>())
            .prop_map(|(group, consumer, seen, active)| Step::SetConsumer(group, consumer, seen, active)),
        1 => (group(), group()).prop_map(|(group, consumer)| Step::DeleteConsumer(group, consumer)),
        6 => (group(), group(), prop::collection::vec(claim, 0..6))
            .prop_map(|(group, consumer, claims)| Step::Deliver(group, consumer, claims)),
        2 => (group(), ids()).prop_map(|(group, ids)| Step::Acknowledge(group, ids)),
    ]
}

/// The step as it can happen to this stream: ids of new entries are above the last, and the last is not below an entry.
fn fitted(step: Step, model: &Model) -> Step {
    match step {
        Step::Add(Id { ms, seq }, strings) => {
            let last = model.last;
            Step::Add(
                if ms > 0 { Id { ms: last.ms + ms, seq } } else { Id { seq: last.seq + seq + 1, ..last } },
                strings,
            )
        }
        Step::SetId(last, added, deleted) => {
            let top = model.entries.keys().last().copied().unwrap_or_default();
            Step::SetId(last.max(top), added, deleted)
        }
        step => step,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 300 }, ..Default::default() })]

    /// Against plain maps, whatever the size of nodes; a version kept on the way still reads as it was, on another
    /// thread, and saving it builds it again.
    #[test]
    fn agrees_with_plain_maps(
        steps in prop::collection::vec(any_step(), 1..120),
        (bytes, entries) in (0..400i64, 0..8i64),
        keep_at in 0..60usize,
        budget in 0..300usize,
    ) {
        let limits = limits(bytes, entries);
        let (mut model, mut big, mut kept) = (Model::default(), None, None);
        for (index, step) in steps.into_iter().enumerate() {
            if index == keep_at && let Some(big) = &big {
                let (clone, model): (crate::Big, Model) = (crate::Big::clone(big), model.clone());
                kept = Some(std::thread::spawn(move || assert_eq!(seen(Big::of(Stored::Big(&clone))), model)));
            }
            let step = fitted(step, &model);
            let mut changes = Vec::new();
            step.put(&mut changes);
            build(&mut big, &changes, &limits);
            model.apply(&step);
            prop_assert_eq!(&seen(stream(&big)), &model);
        }
        if let Some(big) = &big {
            absent::aside::over(big, |big| assert_eq!(seen(Big::of(Stored::Big(big))), model));
        }
        if let Some(reader) = kept {
            reader.join().unwrap();
        }
        prop_assert_eq!(seen(&saved_and_built(&big, budget)), model);
    }

    /// Ranges in both directions begin and end where they should.
    #[test]
    fn ranges_hold_what_is_between(
        steps in prop::collection::vec(any_step(), 1..60), entries in 1..8i64, start in any_id(), end in any_id(),
    ) {
        let (mut model, mut big) = (Model::default(), None);
        for step in steps {
            let step = fitted(step, &model);
            let mut changes = Vec::new();
            step.put(&mut changes);
            build(&mut big, &changes, &limits(0, entries));
            model.apply(&step);
        }
        let big = stream(&big);
        let expected: Vec<_> = model.entries.into_iter().filter(|(id, _)| (start..=end).contains(id)).collect();
        prop_assert_eq!(big.range(start, end).map(owned).collect::<Vec<_>>(), expected.clone());
        let (mut counted, mut from) = (0, Some(start));
        while let Some(id) = from {
            let (some, next) = big.count_some(id, end, 2);
            (counted, from) = (counted + some, next);
        }
        prop_assert_eq!(counted, expected.len() as u64);
        let back: Vec<_> = expected.into_iter().rev().collect();
        prop_assert_eq!(big.range_back(start, end).map(owned).collect::<Vec<_>>(), back);
    }

    /// Any bytes are a change or none; one that is has these bytes only.
    #[test]
    fn changes_have_one_form(bytes in prop::collection::vec(prop_oneof![0..12u8, any::<u8>()], 0..40)) {
        let mut rest = &bytes[..];
        if let Some(change) = Change::take(&mut rest) {
            let mut again = Vec::new();
            change.put(&mut again);
            prop_assert_eq!(&again[..], &bytes[..bytes.len() - rest.len()]);
        }
    }

    /// Approximate trimming removes no more than exact trimming, and leaves at most a node more.
    #[test]
    fn rough_trimming_stays_below_exact(
        adds in prop::collection::vec(any_strings(), 1..60),
        removed in prop::collection::vec(any_id(), 0..10),
        entries in 1..8i64,
        trim in prop_oneof![(0..60u64).prop_map(Trim::MaxLength), any_id().prop_map(Trim::MinId)],
    ) {
        let limits = limits(0, entries);
        let mut changes = Vec::new();
        for (ms, strings) in adds.iter().enumerate() {
            Step::Add(Id { ms: ms as u64 + 1, seq: 0 }, strings.clone()).put(&mut changes);
        }
        Step::Delete(removed).put(&mut changes);
        let mut big = None;
        build(&mut big, &changes, &limits);
        let added = Added::new(Id { ms: 1000, seq: 0 }, [&b"f"[..], b"v"].into_iter());
        for added in [None, Some(added)] {
            let (exact, rough) = (
                stream(&big).trimmed_exactly(trim, added),
                stream(&big).trimmed_roughly(trim, None, added, &limits),
            );
            prop_assert!(rough <= exact && exact < rough + entries as u64, "{rough} of {exact}");
            let some = stream(&big).trimmed_roughly(trim, Some(5), added, &limits);
            prop_assert!(some <= 5.min(rough));
            let left = stream(&big).len() + u64::from(added.is_some()) - exact;
            match trim {
                Trim::MaxLength(max) => prop_assert_eq!(left, max.min(left + exact)),
                Trim::MinId(min) => {
                    let above = stream(&big).range(min, Id::MAX).count() + usize::from(added.is_some());
                    prop_assert_eq!(left, above as u64);
                }
            }
        }
    }
}

/// What comes of applying what was saved in steps of this budget.
fn saved_and_built(big: &Option<crate::Big>, budget: usize) -> Big {
    let (saved, mut progress, mut built) = (big.as_ref().unwrap(), Some(Progress::default()), None);
    while let Some(from) = progress {
        let mut step = Vec::new();
        progress = saved.write_changes(from, budget, &mut step);
        assert!(!step.is_empty() || progress.is_none(), "a step did nothing");
        build(&mut built, &step, &Limits::default());
    }
    stream(&built).clone()
}

/// The bytes that docs/formats/collections.md shows.
#[test]
fn changes_are_written_as_documented() {
    let bytes = |step: Step| {
        let mut bytes = Vec::new();
        step.put(&mut bytes);
        bytes
    };
    let id = |ms, seq| Id { ms, seq };
    let group = 1;
    let add = Step::Add(id(300, 1), vec![b"f".to_vec(), b"v".to_vec()]);
    assert_eq!(bytes(add), b"\x01\xac\x02\x01\x01\x01f\x01v");
    assert_eq!(bytes(Step::Delete(vec![id(1, 2), id(3, 4)])), [2, 2, 1, 2, 3, 4]);
    assert_eq!(bytes(Step::Trim(5)), [3, 5]);
    assert_eq!(bytes(Step::SetId(id(1, 2), 3, id(4, 5))), [4, 1, 2, 3, 4, 5]);
    assert_eq!(bytes(Step::SetGroup(group, id(2, 3), None)), [5, 1, 1, 2, 3, 0]);
    assert_eq!(bytes(Step::SetGroup(group, id(2, 3), Some(4))), [5, 1, 1, 2, 3, 1, 4]);
    assert_eq!(bytes(Step::DestroyGroup(group)), [6, 1, 1]);
    assert_eq!(bytes(Step::SetConsumer(group, 4, 5, Some(-1))), [7, 1, 1, 1, 4, 10, 1, 1]);
    assert_eq!(bytes(Step::SetConsumer(group, 4, 5, None)), [7, 1, 1, 1, 4, 10, 0]);
    assert_eq!(bytes(Step::DeleteConsumer(group, 4)), [8, 1, 1, 1, 4]);
    let claims = vec![Claim { id: id(2, 3), delivered: 5, deliveries: 6 }];
    assert_eq!(bytes(Step::Deliver(group, 4, claims)), [9, 1, 1, 1, 4, 1, 2, 3, 10, 6]);
    assert_eq!(bytes(Step::Acknowledge(group, vec![id(2, 3)])), [10, 1, 1, 1, 2, 3]);
}

/// A clone shares everything, whatever the size, and adding to the original copies one node.
#[test]
fn a_clone_shares_and_an_edit_copies_one_node() {
    let mut changes = Vec::new();
    (1..5000).for_each(|ms| Step::Add(Id { ms, seq: 0 }, vec![b"field".to_vec(), b"value".to_vec()]).put(&mut changes));
    let mut big = None;
    build(&mut big, &changes, &Limits::default());
    let clone = big.clone();
    changes.clear();
    Step::Add(Id { ms: 5000, seq: 0 }, vec![b"field".to_vec(), b"value".to_vec()]).put(&mut changes);
    Step::Delete(vec![Id { ms: 2500, seq: 0 }]).put(&mut changes);
    build(&mut big, &changes, &Limits::default());
    let shared = stream(&big).nodes.skipping(0).filter(|node| std::sync::Arc::strong_count(node) > 1).count();
    assert_eq!(stream(&big).node_count(), 50);
    assert!(shared >= 25, "{shared} nodes are shared");
    assert_eq!((stream(&clone).len(), stream(&big).len()), (4999, 4999));
    assert!(stream(&clone).entry(Id { ms: 2500, seq: 0 }).is_some());
    assert!(stream(&big).entry(Id { ms: 2500, seq: 0 }).is_none());
}
