//! Hashes of every form against a plain map, while others read and save what they were.

use super::*;
use crate::buffer::tests::apply_stored;
use crate::position::Position;
use crate::tree::HashedLeaf;
use crate::{Limits, Progress, Stored, absent, check_changes};
use base::Rng;
use base::hash::KeyHasher;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::thread;

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<UnixMs>)>;

/// A hash as an engine keeps it.
struct Kept {
    packed: Vec<u8>,
    big: Option<crate::Big>,
    encoding: Encoding,
    limits: Limits,
    hasher: KeyHasher,
}

impl Kept {
    fn new() -> Self {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        Self { packed: Vec::new(), big: None, encoding: Encoding::default(), limits: Limits::default(), hasher }
    }

    fn apply(&mut self, changes: &[Change<'_>]) -> bool {
        let mut bytes = Vec::new();
        changes.iter().for_each(|change| change.put(&mut bytes));
        self.apply_bytes(&bytes)
    }

    fn apply_bytes(&mut self, changes: &[u8]) -> bool {
        assert!(check_changes(crate::Type::Hash, changes));
        let value = (&mut self.packed, &mut self.big, &mut self.encoding);
        let is_left = apply_stored(crate::Type::Hash, value, (&self.limits, &self.hasher), changes);
        let encoding = self.encoding;
        assert_eq!(self.big.is_some(), encoding == Encoding::BIG);
        assert!(!is_left || self.big.is_some() || validate(encoding, &self.packed));
        is_left
    }

    fn stored(&self) -> Stored<'_> {
        self.big.as_ref().map_or(Stored::Packed(&self.packed), Stored::Big)
    }

    fn view(&self) -> View<'_> {
        View::of(self.encoding, self.stored())
    }

    fn set(&mut self, field: &[u8], value: &[u8], expire_at: Option<UnixMs>) -> bool {
        self.apply(&[Change::Set { field, value, expire_at }])
    }
}

fn contents(view: View<'_>) -> Model {
    let all: Model = view.iter().map(|cell| (cell.field.to_vec(), (cell.value.to_vec(), cell.expire_at))).collect();
    assert_eq!(all.len(), view.len());
    all
}

fn text(number: u64) -> Vec<u8> {
    format!("field:{number}").into_bytes()
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, Vec<u8>, Option<UnixMs>),
    SetMany(u64),
    /// Another value of as many bytes, and the same time.
    Overwrite(prop::sample::Index, u8),
    Delete(Vec<u8>),
    DeleteAt(prop::sample::Index),
    Expire(prop::sample::Index, Option<UnixMs>),
    /// What is due by then goes.
    Reap(UnixMs),
    Expect(u64),
    /// Others keep the hash as it is now.
    Keep,
}

fn field() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..3),
        1 => (0usize..300, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..20),
        1 => (0usize..3000, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
    ]
}

fn time() -> impl Strategy<Value = Option<UnixMs>> {
    prop_oneof![
        3 => Just(None),
        2 => (0i64..50).prop_map(Some),
        1 => prop_oneof![Just(UnixMs::MAX), 1_700_000_000_000i64..1_800_000_000_000].prop_map(Some),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        14 => (field(), value(), time()).prop_map(|(field, value, time)| Step::Set(field, value, time)),
        1 => (0u64..700).prop_map(Step::SetMany),
        6 => (index(), any::<u8>()).prop_map(|(index, byte)| Step::Overwrite(index, byte)),
        2 => field().prop_map(Step::Delete),
        8 => index().prop_map(Step::DeleteAt),
        5 => (index(), time()).prop_map(|(index, time)| Step::Expire(index, time)),
        1 => (0i64..60).prop_map(Step::Reap),
        1 => (0u64..1000).prop_map(Step::Expect),
        1 => Just(Step::Keep),
    ]
}

fn nth(model: &Model, index: prop::sample::Index) -> Option<Vec<u8>> {
    (!model.is_empty()).then(|| model.keys().nth(index.index(model.len())).cloned())?
}

/// Applies the step to both.
fn take_step(hash: &mut Kept, model: &mut Model, step: Step) {
    match step {
        Step::Set(field, value, at) => {
            hash.set(&field, &value, at);
            model.insert(field, (value, at));
        }
        Step::SetMany(count) => {
            let fields: Vec<_> = (0..count).map(text).collect();
            let set = |field| Change::Set { field, value: b"many", expire_at: None };
            hash.apply(&fields.iter().map(|field| set(field)).collect::<Vec<_>>());
            model.extend(fields.into_iter().map(|field| (field, (b"many".to_vec(), None))));
        }
        Step::Overwrite(index, byte) => {
            if let Some(field) = nth(model, index) {
                let (value, at) = model.get_mut(&field).expect("it is in the model");
                value.fill(byte);
                hash.set(&field, value, *at);
            }
        }
        Step::Delete(field) => {
            assert_eq!(hash.view().get(&field).is_some(), model.contains_key(&field));
            let is_left = hash.apply(&[Change::Delete(&field)]);
            model.remove(&field);
            assert_eq!(is_left, !model.is_empty());
        }
        Step::DeleteAt(index) => {
            if let Some(field) = nth(model, index) {
                let is_left = hash.apply(&[Change::Delete(&field)]);
                model.remove(&field);
                assert_eq!(is_left, !model.is_empty());
            }
        }
        Step::Expire(index, at) => {
            if let Some(field) = nth(model, index) {
                hash.apply(&[Change::Expire { field: &field, expire_at: at }]);
                model.entry(field).and_modify(|(_, time)| *time = at);
            }
        }
        Step::Reap(now) => {
            let mut changes = Vec::new();
            hash.view().due(now, &mut |cell| {
                Change::Delete(cell.field).put(&mut changes);
                true
            });
            assert_eq!(
                hash.view().count_due(now),
                model.values().filter(|(_, at)| at.is_some_and(|at| at <= now)).count()
            );
            hash.apply_bytes(&changes);
            model.retain(|_, (_, at)| at.is_none_or(|at| at > now));
            assert_eq!(hash.view().count_due(now), 0);
        }
        Step::Expect(fields) => {
            hash.apply(&[Change::Expect(fields)]);
        }
        Step::Keep => {}
    }
}

/// Every way of looking finds what the model has, also when leaves are absent.
fn check(hash: &Kept, model: &Model) {
    check_once(hash.view(), model);
    if let Some(big) = &hash.big {
        absent::aside::over(big, |big| check_once(View::of(Encoding::BIG, Stored::Big(big)), model));
    }
}

fn check_once(view: View<'_>, model: &Model) {
    assert_eq!(contents(view), *model);
    assert_eq!(view.first_due(), model.values().filter_map(|(_, at)| *at).min());
    for (index, cell) in view.iter().enumerate() {
        assert_eq!(view.get(cell.field), Some(cell));
        assert_eq!(view.at(index), Some(cell));
    }
    assert_eq!(view.at(model.len()), None);
    let (mut cursor, mut scanned) = (0, Model::new());
    loop {
        cursor = view.scan(cursor, 10, &mut |cell| {
            scanned.insert(cell.field.to_vec(), (cell.value.to_vec(), cell.expire_at));
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, *model);
}

/// Builds the tree anew from what it writes, in pieces.
fn rebuilt(big: &Big, budget: usize) -> Kept {
    let mut copy = Kept::new();
    let mut progress = Some(Progress::default());
    while let Some(from) = progress {
        let mut changes = Vec::new();
        progress = big.write_changes(from, budget, &mut changes);
        assert!(!changes.is_empty());
        copy.apply_bytes(&changes);
    }
    copy
}

/// Whatever is asked for: nothing changes, and nothing fails, of an empty tree, one of a leaf and one of three levels.
#[test]
fn loading_leaves_everything_as_it_is() {
    let (mut hash, mut model) = (Kept::new(), Model::new());
    Big::new(&hash.hasher).load(&[[b"absent", b""]], true);
    let count = if cfg!(miri) { 200 } else { 30_000 };
    for number in 0..count {
        let field = format!("field {number}").into_bytes();
        let value = vec![b'v'; if number % 10 == 0 { 300 } else { 10 }];
        hash.set(&field, &value, None);
        model.insert(field, (value, None));
        if let Some(big) = hash.big.as_ref().filter(|_| number % 1000 == 0 || number == count - 1) {
            let fields: Vec<Vec<u8>> = (0..number + 40).map(|number| format!("field {number}").into_bytes()).collect();
            let fields: Vec<[&[u8]; 2]> = fields.iter().map(|field| [field.as_slice(), b"value"]).collect();
            big.load(&fields, number % 2000 == 0);
        }
    }
    check(&hash, &model);
}

/// The index alone leads to the field, unless an earlier one has the same tag.
#[test]
fn a_candidate_is_the_cell_with_the_tag() {
    let hasher = KeyHasher::new(&mut Rng::new(1));
    let mut leaf = leaf::Leaf::default();
    let mut tags = std::collections::BTreeSet::new();
    for number in 0..30u32 {
        let (field, value) = (number.to_be_bytes(), vec![b'v'; if number == 7 { 300 } else { number as usize }]);
        let position = Position::of(&hasher, &field);
        assert_ne!(tags.contains(&position.tag()), leaf.candidate(position).is_empty());
        let cell = Cell { field: &field, value: &value, expire_at: None };
        leaf.push(position, &cell);
        let mut packed = vec![0; cell.packed_len()];
        cell.write(&mut packed);
        packed.truncate(255);
        if tags.insert(position.tag()) {
            assert_eq!(leaf.candidate(position), packed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any changes leave the fields a plain map has, found by every way of looking, and no change reaches a version
    /// that others have kept and read meanwhile.
    #[test]
    fn hashes_hold_what_a_plain_map_holds(steps in prop::collection::vec(step(), 0..300)) {
        let (mut hash, mut model) = (Kept::new(), Model::new());
        thread::scope(|scope| {
            for step in steps {
                if let (Step::Keep, Some(big)) = (&step, &hash.big) {
                    let (big, model) = (big.clone(), model.clone());
                    scope.spawn(move || {
                        let crate::Big::Hash(kept) = &big else { unreachable!() };
                        assert_eq!(contents(View::of(Encoding::BIG, Stored::Big(&big))), model);
                        assert_eq!(contents(rebuilt(kept, 100).view()), model);
                    });
                }
                take_step(&mut hash, &mut model, step);
            }
            check(&hash, &model);
        });
    }

    /// Any bytes are changes, and then the only ones with this meaning, or are refused; so are packed hashes.
    #[test]
    fn bytes_are_changes_in_their_only_form(bytes in prop::collection::vec(0u8..9, 0..40)) {
        let mut rest = &bytes[..];
        while let Some(change) = Change::take(&mut rest) {
            let mut again = Vec::new();
            change.put(&mut again);
            prop_assert!(bytes[..bytes.len() - rest.len()].ends_with(&again));
        }
        if validate(TIMED, &bytes) {
            let view = View::of(TIMED, Stored::Packed(&bytes));
            prop_assert_eq!(contents(view).len(), view.len());
        }
    }

    /// What stays throughout a scan is visited, whatever comes and goes between its steps.
    #[test]
    fn scans_miss_nothing_while_the_tree_changes(seed in any::<u64>(), fields in 600u64..3000) {
        let (mut hash, mut rng) = (Kept::new(), Rng::new(seed));
        let stays = |number: u64| number.is_multiple_of(4);
        for number in 0..fields {
            hash.set(&text(number), b"value", None);
        }
        let (mut cursor, mut seen) = (0, std::collections::BTreeSet::new());
        loop {
            cursor = hash.view().scan(cursor, 20, &mut |cell| {
                seen.insert(cell.field.to_vec());
            });
            if cursor == 0 {
                break;
            }
            prop_assert!(cursor < 1 << 53);
            let grows = rng.below(2) == 0;
            for _ in 0..200 {
                match rng.below(fields) {
                    number if stays(number) => {}
                    number if grows => {
                        hash.set(&text(number + fields * 4), b"value", None);
                    }
                    number => {
                        hash.apply(&[Change::Delete(&text(number))]);
                    }
                }
            }
        }
        prop_assert!((0..fields).filter(|number| stays(*number)).all(|number| seen.contains(&text(number))));
    }
}

/// The thresholds are Valkey's: more than 512 fields, a field or value of more than 64 bytes; a time alone leaves it
/// packed.
#[test]
fn forms_follow_the_limits() {
    let mut hash = Kept::new();
    for number in 0..512 {
        hash.set(&text(number), &[b'v'; 64], None);
    }
    assert_eq!(hash.encoding, UNTIMED);
    hash.set(&text(3), b"again", None);
    assert_eq!(hash.encoding, UNTIMED);
    hash.set(&text(512), b"", None);
    assert_eq!(hash.encoding, Encoding::BIG);
    for (field, value) in [(65, 1), (1, 65)] {
        let mut hash = Kept::new();
        hash.set(&vec![b'f'; field], &vec![b'v'; value], None);
        assert_eq!(hash.encoding, LONG);
        hash.set(b"short", b"", None);
        assert_eq!(hash.encoding, LONG);
        hash.apply(&[Change::Expect(513)]);
        assert_eq!(hash.encoding, Encoding::BIG);
    }
    let mut hash = Kept::new();
    hash.set(b"field", b"value", None);
    hash.apply(&[Change::Expire { field: b"other", expire_at: Some(5) }]);
    assert_eq!(hash.encoding, UNTIMED);
    hash.apply(&[Change::Expire { field: b"field", expire_at: Some(5) }]);
    hash.apply(&[Change::Expire { field: b"field", expire_at: None }]);
    assert_eq!(hash.encoding, TIMED);
    hash.apply(&[Change::Expect(513)]);
    assert_eq!(hash.encoding, Encoding::BIG);
}

/// A hash is packed whatever the lengths of its values, as long as it has few bytes; it remembers that one was long,
/// and whether a field had a time.
#[test]
fn few_bytes_are_packed() {
    let mut hash = Kept::new();
    hash.set(b"long", &[b'v'; 4000], None);
    hash.set(b"long", &[b'v'; 100], None);
    assert_eq!(hash.encoding, LONG);
    hash.set(b"long", b"short", None);
    hash.set(b"long", &[b'v'; 4050], None);
    hash.set(b"other", &[b'v'; 20], None);
    assert_eq!(hash.encoding, LONG);
    hash.set(b"other", &[b'v'; 40], None);
    assert_eq!(hash.encoding, Encoding::BIG);
    assert_eq!(hash.view().get(b"other").map(|cell| cell.value), Some(&[b'v'; 40][..]));
    for (length, encoding) in [(4000, TIMED), (5000, Encoding::BIG)] {
        let mut hash = Kept::new();
        hash.set(b"long", &[b'v'; 100], None);
        hash.apply(&[Change::Expire { field: b"long", expire_at: Some(7) }]);
        hash.set(b"long", &vec![b'v'; length], Some(8));
        assert_eq!(hash.encoding, encoding);
        assert_eq!(hash.view().first_due(), Some(8));
    }
}

/// The bytes that docs/formats/collections.md shows.
#[test]
fn golden() {
    let mut hash = Kept::new();
    let changes = [
        Change::Set { field: b"ab", value: b"c", expire_at: None },
        Change::Set { field: b"d", value: b"", expire_at: Some(300) },
        Change::Expire { field: b"ab", expire_at: Some(1) },
        Change::Expire { field: b"ab", expire_at: None },
        Change::Set { field: b"e", value: b"f", expire_at: None },
        Change::Delete(b"e"),
        Change::Expect(2),
    ];
    let mut bytes = Vec::new();
    changes.iter().for_each(|change| change.put(&mut bytes));
    assert_eq!(bytes, b"\x01\x02ab\x01c\x02\x01d\x00\xac\x02\x04\x02ab\x01\x05\x02ab\x01\x01e\x01f\x03\x01e\x06\x02");
    hash.apply_bytes(&bytes);
    assert_eq!(hash.packed, b"\x02\x04\x01abc\x03\x00\xac\x02d");
    assert_eq!(hash.encoding, TIMED);
}

/// Bytes of a hash of 600 fields of 7 bytes with values of 8, its allocations included.
#[test]
fn trees_are_small() {
    let mut hash = Kept::new();
    for number in 0..600 {
        hash.set(format!("{number:07}").as_bytes(), b"12345678", None);
    }
    let Some(big) = &hash.big else { panic!("600 fields are a tree") };
    let bytes = big.memory_bytes() / 600;
    assert!(bytes <= 28, "{bytes} bytes a field");
}
