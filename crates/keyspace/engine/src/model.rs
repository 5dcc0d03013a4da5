//! The engine as a plain sorted map: what every other engine must agree with, and what tests of higher layers may run
//! on. Nothing in it is fast.

use crate::{
    CasIds, Due, Edited, Encoding, Engine, Entry, EntrySink, ExtFields, Fetch, Fields, Key, Known, Left, NewEntry,
    PackedFields, ScanStep, SharedBig, SharedBytes, Type, Unedited, Value, WalkProgress,
};
use base::hash::KeyHasher;
use base::slot::slot_of;
use base::{KeyspaceId, Rng, UnixMs};
use std::collections::BTreeMap;
use std::ops::Bound;
use value::{Big, Body, Buffer, Limits, Progress, Slot};

/// A scan step covers hashes that agree in this many top bits.
const SCAN_PREFIX_BITS: u32 = 6;

/// What is stored under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its type.
    pub kind: Type,
    /// How `value` is encoded.
    pub encoding: Encoding,
    /// The value.
    pub value: Content,
    /// When it expires.
    pub expire_at: Option<UnixMs>,
    /// Its optional fields.
    pub fields: PackedFields,
}

/// A value that owns itself.
#[derive(Clone, Debug)]
pub enum Content {
    /// A string or a packed collection.
    Bytes(SharedBytes),
    /// A tree.
    Big(SharedBig),
}

impl Content {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Bytes(SharedBytes::new(bytes.to_vec())),
            Value::Shared(shared) => Self::Bytes(shared.clone()),
            Value::Big(big) => Self::Big(big.clone()),
        }
    }

    /// It as an entry shows it.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Bytes(bytes) => Value::Shared(bytes),
            Self::Big(big) => Value::Big(big),
        }
    }

    /// Its bytes; of a tree, the changes that build it.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.to_vec(),
            Self::Big(big) => {
                let (mut out, mut from) = (Vec::new(), Some(Progress::default()));
                while let Some(progress) = from {
                    from = big.write_changes(progress, usize::MAX, &mut out);
                }
                out
            }
        }
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        matches!(self, Self::Big(_)) == matches!(other, Self::Big(_)) && self.bytes() == other.bytes()
    }
}

impl Eq for Content {}

impl Stored {
    /// A copy of an entry.
    pub fn of(entry: &Entry<'_>) -> Self {
        let value = Content::of(entry.value);
        let (expire_at, fields) = (entry.expire_at, entry.fields.to_owned());
        Self { kind: entry.kind, encoding: entry.encoding, value, expire_at, fields }
    }

    /// The earliest time at which an element of it is due.
    pub fn first_due(&self) -> Option<UnixMs> {
        value::first_due(self.kind, self.encoding, self.value.value().stored())
    }

    /// What of it is due at `now`.
    pub fn due(&self, now: UnixMs) -> Option<Due> {
        let is_past = |time: Option<UnixMs>| time.is_some_and(|at| at <= now);
        match () {
            () if is_past(self.expire_at) => Some(Due::Entry),
            () if is_past(self.first_due()) => Some(Due::Elements),
            () => None,
        }
    }

    /// The same without the CAS id, which no checkpoint need hold.
    #[must_use]
    pub fn without_cas_id(self) -> Self {
        let fields = Fields { cas: 0, ..self.fields.get().get() }.pack();
        Self { fields, ..self }
    }

    /// The value has changed.
    fn renew_cas_id(&mut self, ids: &mut CasIds) {
        let fields = self.fields.get().get();
        if fields.cas != 0 {
            self.fields = Fields { cas: ids.give(), ..fields }.pack();
        }
    }

    fn entry<'a>(&'a self, key: &'a [u8], stamp: u32) -> Entry<'a> {
        let (value, fields) = (self.value.value(), self.fields.get());
        Entry { key, kind: self.kind, encoding: self.encoding, value, expire_at: self.expire_at, stamp, fields }
    }
}

/// Where an entry is: in the order of a scan.
type Place = (KeyspaceId, u64, Vec<u8>);

/// A checkpoint of the model: the cut, copied whole.
struct Cut {
    sink: Box<dyn EntrySink>,
    entries: Vec<(Place, Stored)>,
}

/// The reference engine.
pub struct ModelEngine {
    entries: BTreeMap<Place, (Stored, u32)>,
    now: UnixMs,
    rng: Rng,
    limits: Limits,
    hasher: KeyHasher,
    cut: Option<Cut>,
    cas_ids: CasIds,
}

impl ModelEngine {
    /// An empty engine.
    pub fn new(mut rng: Rng) -> Self {
        let hasher = KeyHasher::new(&mut rng);
        Self::with_hasher(rng, hasher)
    }

    /// An empty engine whose trees are ordered by this hash function.
    pub fn with_hasher(mut rng: Rng, hasher: KeyHasher) -> Self {
        let cas_ids = CasIds::new(0, &mut rng);
        Self { entries: BTreeMap::new(), now: 0, rng, limits: Limits::default(), hasher, cut: None, cas_ids }
    }

    /// Continues with the CAS ids of another engine, which has just assigned this one.
    pub fn follow_cas_id(&mut self, given: u64) {
        self.cas_ids = CasIds::after(given);
    }

    /// Everything that is stored, expired entries included.
    pub fn contents(&self) -> BTreeMap<(KeyspaceId, Vec<u8>), Stored> {
        self.entries.iter().map(|((space, _, key), (stored, _))| ((*space, key.clone()), stored.clone())).collect()
    }

    /// What is stored under the key, expired or not.
    pub fn read_any(&self, key: &Key<'_>) -> Option<&Stored> {
        self.entries.get(&place(key)).map(|(stored, _)| stored)
    }

    fn stored(&mut self, key: &Key<'_>) -> Option<&mut Stored> {
        self.entries.get_mut(&place(key)).map(|(stored, _)| stored)
    }

    /// Counts the elements of a collection that an edit may change without a read before it.
    fn count_to_edit(&mut self, key: &Key<'_>, kind: Type, touch: bool) -> Result<u64, Unedited> {
        let entry = self.read(key, touch).ok().flatten().ok_or(Unedited::Absent)?;
        if entry.kind != kind {
            return Err(Unedited::OtherType);
        }
        if entry.is_compressed() {
            return Err(Unedited::Compressed);
        }
        match entry.first_due() {
            Some(_) => Err(Unedited::Timed),
            None => Ok(value::len(kind, entry.encoding, entry.value.stored())),
        }
    }

    fn stamp(&self) -> u32 {
        self.now.div_euclid(1000) as u32 & 0xF_FFFF
    }

    fn of_space(&self, space: KeyspaceId) -> impl Iterator<Item = (&Place, &(Stored, u32))> {
        self.entries.iter().filter(move |(place, _)| place.0 == space)
    }
}

fn place(key: &Key<'_>) -> Place {
    (key.space, key.hash, key.bytes.to_vec())
}

impl Engine for ModelEngine {
    fn set_time(&mut self, now: UnixMs) {
        self.now = now;
    }

    fn read(&mut self, key: &Key<'_>, touch: bool) -> Result<Option<Entry<'_>>, Fetch> {
        let (fresh, now) = (self.stamp(), self.now);
        let Some((place, (stored, stamp))) = self
            .entries
            .range_mut((Bound::Included(place(key)), Bound::Unbounded))
            .next()
            .filter(|(found, _)| found.0 == key.space && found.1 == key.hash && found.2 == key.bytes)
        else {
            return Ok(None);
        };
        let entry = stored.entry(&place.2, *stamp);
        if touch {
            *stamp = fresh;
        }
        Ok((!entry.is_expired(now)).then_some(entry))
    }

    fn write(&mut self, key: &Key<'_>, entry: &NewEntry<'_>) {
        let value = Content::of(entry.value);
        let (expire_at, fields) = (entry.expire_at, entry.fields.to_owned());
        let stored = Stored { kind: entry.kind, encoding: entry.encoding, value, expire_at, fields };
        let stamp = self.stamp();
        self.entries.insert(place(key), (stored, stamp));
    }

    fn splice(&mut self, key: &Key<'_>, offset: u64, bytes: &[u8]) -> bool {
        let Some((stored, _)) = self.entries.get_mut(&place(key)) else {
            panic!("a splice is for an entry that exists");
        };
        if stored.encoding.is_compressed() {
            stored.encoding = if bytes.is_empty() { Encoding::EDITED.compressed() } else { stored.encoding };
            return bytes.is_empty();
        }
        let Content::Bytes(value) = &mut stored.value else { panic!("a splice is for a string") };
        let (value, offset) = (SharedBytes::make_mut(value), offset as usize);
        value.resize(value.len().max(offset + bytes.len()), 0);
        value[offset..offset + bytes.len()].copy_from_slice(bytes);
        stored.encoding = Encoding::EDITED;
        stored.renew_cas_id(&mut self.cas_ids);
        true
    }

    fn recode(&mut self, key: &Key<'_>, encoding: Encoding, value: Value<'_>) {
        let stored = self.stored(key).expect("another form is for an entry that exists");
        (stored.encoding, stored.value) = (encoding, Content::of(value));
    }

    fn reform(&mut self, key: &Key<'_>, change: &mut dyn FnMut(&mut Big)) {
        match self.stored(key).map(|stored| &mut stored.value) {
            Some(Content::Big(big)) => change(SharedBig::make_mut(big)),
            _ => panic!("another form of leaves is for a tree"),
        }
    }

    fn edit(
        &mut self,
        key: &Key<'_>,
        kind: Type,
        changes: &[u8],
        known: Known,
        touch: bool,
    ) -> Result<Edited, Unedited> {
        let before = match known {
            Known::Read => 0,
            Known::Nothing => self.count_to_edit(key, kind, touch)?,
        };
        let stamp = self.stamp();
        let (stored, _) = self.entries.entry(place(key)).or_insert_with(|| {
            let value = Content::Bytes(SharedBytes::default());
            let fields = PackedFields::default();
            (Stored { kind, encoding: Encoding::PACKED, value, expire_at: None, fields }, stamp)
        });
        assert_eq!(stored.kind, kind, "an edit is for a collection of its type");
        if stored.encoding.is_compressed() {
            return Err(Unedited::Compressed);
        }
        let mut value = stored.value.clone();
        let body = match &mut value {
            Content::Bytes(bytes) => Body::Packed(SharedBytes::make_mut(bytes).into()),
            Content::Big(big) => Body::Big(SharedBig::make_mut(big)),
        };
        let mut slot = Slot { body, encoding: stored.encoding, limits: &self.limits, hasher: &self.hasher };
        let left = value::apply(kind, &mut slot, changes);
        let Slot { body, encoding, .. } = slot;
        stored.encoding = encoding;
        stored.value = match body {
            Body::Packed(Buffer::Made(bytes)) => Content::Bytes(SharedBytes::new(bytes)),
            Body::Grown(big) => Content::Big(big),
            Body::Packed(_) | Body::Big(_) => value,
        };
        if !left.is_any() && stored.fields.get().has_attributes() {
            (stored.encoding, stored.value) = (Encoding::PACKED, Content::Bytes(SharedBytes::default()));
            return Ok(Edited { before, left: Left::Elements(0) });
        }
        if !left.is_any() {
            self.entries.remove(&place(key));
        }
        Ok(Edited { before, left })
    }

    fn set_expiration(&mut self, key: &Key<'_>, at: Option<UnixMs>) -> bool {
        self.stored(key).map(|stored| stored.expire_at = at).is_some()
    }

    fn set_fields(&mut self, key: &Key<'_>, fields: ExtFields<'_>) -> bool {
        self.stored(key).map(|stored| stored.fields = fields.to_owned()).is_some()
    }

    fn cas_id(&mut self, key: &Key<'_>) -> Result<Option<u64>, Fetch> {
        let now = self.now;
        let Some((stored, _)) = self.entries.get_mut(&place(key)) else { return Ok(None) };
        if stored.kind != Type::String || stored.expire_at.is_some_and(|at| at <= now) {
            return Ok(None);
        }
        let fields = stored.fields.get().get();
        if fields.cas == 0 {
            stored.fields = Fields { cas: self.cas_ids.give(), ..fields }.pack();
        }
        Ok(Some(stored.fields.get().get().cas))
    }

    fn remove(&mut self, key: &Key<'_>) -> bool {
        self.entries.remove(&place(key)).is_some()
    }

    fn clear(&mut self, space: KeyspaceId) {
        self.entries.retain(|place, _| place.0 != space);
    }

    fn len(&self, space: KeyspaceId) -> u64 {
        self.of_space(space).count() as u64
    }

    fn expiring_len(&self, space: KeyspaceId) -> u64 {
        self.of_space(space).filter(|(_, (stored, _))| stored.expire_at.is_some()).count() as u64
    }

    fn timed_len(&self, space: KeyspaceId) -> u64 {
        self.of_space(space).filter(|(_, (stored, _))| stored.first_due().is_some()).count() as u64
    }

    fn scan(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>)) -> ScanStep {
        let next = (from >> (u64::BITS - SCAN_PREFIX_BITS)) + 1;
        let next = (next < 1 << SCAN_PREFIX_BITS).then_some(next << (u64::BITS - SCAN_PREFIX_BITS));
        self.of_space(space)
            .filter(|(place, _)| place.1 >= from && next.is_none_or(|next| place.1 < next))
            .for_each(|(place, (stored, stamp))| visit(&stored.entry(&place.2, *stamp)));
        ScanStep { next }
    }

    fn survey(&mut self, space: KeyspaceId, from: u64, visit: &mut dyn FnMut(&Entry<'_>, u64)) -> ScanStep {
        self.scan(space, from, &mut |entry| visit(entry, cost_of(entry)))
    }

    fn random_entry(&mut self, space: KeyspaceId) -> Option<Entry<'_>> {
        let chosen = self.rng.below(self.len(space)) as usize;
        self.of_space(space).nth(chosen).map(|(place, (stored, stamp))| stored.entry(&place.2, *stamp))
    }

    fn due(&mut self, limit: usize, visit: &mut dyn FnMut(Key<'_>, Due)) -> usize {
        let due = self.entries.iter().filter_map(|(place, (stored, _))| Some((place, stored.due(self.now)?)));
        due.take(limit)
            .map(|((space, hash, bytes), due)| {
                visit(Key { bytes, hash: *hash, slot: slot_of(bytes), space: *space }, due);
            })
            .count()
    }

    fn clean(&mut self, _budget: usize) -> bool {
        false
    }

    fn idle_seconds(&self, stamp: u32) -> u64 {
        u64::from(self.stamp().wrapping_sub(stamp) & 0xF_FFFF)
    }

    fn frequency(&self, _stamp: u32) -> u8 {
        0
    }

    fn cost_bytes(&mut self, key: &Key<'_>) -> Option<u64> {
        self.stored(key).map(|stored| cost_of(&stored.entry(key.bytes, 0)))
    }

    fn begin_checkpoint(&mut self, sink: Box<dyn EntrySink>) {
        assert!(self.cut.is_none(), "one checkpoint at a time");
        let entries = self.entries.iter().map(|(place, (stored, _))| (place.clone(), stored.clone())).collect();
        self.cut = Some(Cut { sink, entries });
    }

    fn walk_checkpoint(&mut self, budget: usize) -> WalkProgress {
        let Some(cut) = &mut self.cut else { return WalkProgress::Done };
        for ((space, _, key), stored) in cut.entries.drain(cut.entries.len().saturating_sub(budget)..) {
            cut.sink.save(space, &stored.entry(&key, 0));
        }
        if cut.entries.is_empty() { WalkProgress::Done } else { WalkProgress::More }
    }

    fn end_checkpoint(&mut self) -> Option<Box<dyn EntrySink>> {
        self.cut.take().map(|cut| cut.sink)
    }
}

fn cost_of(entry: &Entry<'_>) -> u64 {
    let value = match entry.value {
        Value::Big(big) => big.memory_bytes(),
        value => value.len(),
    };
    // One for the entry itself: the empty key with an empty value costs something too.
    (1 + entry.key.len() + value + entry.fields.packed().len()) as u64
}
