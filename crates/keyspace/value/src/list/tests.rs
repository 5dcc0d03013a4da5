//! Lists in both forms against a vector, while a reader keeps an older version.

use super::*;
use crate::buffer::tests::apply_stored;
use crate::{Limits, Progress, absent};
use base::hash::KeyHasher;
use proptest::prelude::*;

/// A list as an engine keeps it between edits.
#[derive(Clone)]
enum Kept {
    Packed(Vec<u8>),
    Big(crate::Big),
}

impl Kept {
    fn stored(&self) -> (Encoding, Stored<'_>) {
        match self {
            Self::Packed(bytes) => (Encoding::PACKED, Stored::Packed(bytes)),
            Self::Big(big) => (Encoding::BIG, Stored::Big(big)),
        }
    }

    fn view(&self) -> View<'_> {
        let (encoding, stored) = self.stored();
        View::of(encoding, stored)
    }

    fn apply(&mut self, limits: &Limits, changes: &[u8]) -> bool {
        let hasher = KeyHasher::new(&mut base::Rng::new(1));
        let (mut packed, mut big, mut encoding) = match std::mem::replace(self, Self::Packed(Vec::new())) {
            Self::Packed(bytes) => (bytes, None, Encoding::PACKED),
            Self::Big(big) => (Vec::new(), Some(big), Encoding::BIG),
        };
        let value = (&mut packed, &mut big, &mut encoding);
        let is_left = apply_stored(crate::Type::List, value, (limits, &hasher), changes);
        assert_eq!(big.is_some(), encoding == Encoding::BIG);
        *self = big.map_or(Self::Packed(packed), Self::Big);
        is_left
    }
}

fn encoded(changes: &[Change<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    changes.iter().for_each(|change| change.put(&mut bytes));
    bytes
}

/// The same change to a vector.
fn apply_to_model(model: &mut Vec<Vec<u8>>, change: &Change<'_>) {
    let (len, at) = (model.len(), |index: u64| usize::try_from(index).unwrap().min(model.len()));
    match *change {
        Change::Push { end: End::Head, value } => model.insert(0, value.to_vec()),
        Change::Push { end: End::Tail, value } => model.push(value.to_vec()),
        Change::Pop { end: End::Head, count } => drop(model.drain(..at(count))),
        Change::Pop { end: End::Tail, count } => model.truncate(len - at(count)),
        Change::Set { index, value } => {
            if let Some(old) = model.get_mut(index as usize) {
                *old = value.to_vec();
            }
        }
        Change::Insert { index, value } => model.insert(at(index), value.to_vec()),
        Change::Remove { index, count } => drop(model.drain(at(index)..at(index.saturating_add(count)))),
    }
}

/// Every way of looking finds what the model has, also when leaves are absent.
fn check(kept: &Kept, model: &[Vec<u8>]) {
    check_once(kept.view(), model);
    match kept {
        Kept::Packed(bytes) => assert!(model.is_empty() || validate(Encoding::PACKED, bytes)),
        Kept::Big(big) => {
            absent::aside::over(big, |big| check_once(View::of(Encoding::BIG, Stored::Big(big)), model));
        }
    }
}

fn check_once(view: View<'_>, model: &[Vec<u8>]) {
    assert_eq!(view.len(), model.len() as u64);
    assert!(view.forward(0).eq(model.iter()));
    assert!(view.backward(u64::MAX).eq(model.iter().rev()));
    for index in [0, 1, model.len() / 2, model.len().saturating_sub(1), model.len()] {
        assert_eq!(view.get(index as u64), model.get(index).map(Vec::as_slice));
        assert!(view.forward(index as u64).eq(model.iter().skip(index)));
        assert!(view.backward(index as u64).eq(model.iter().take(index + 1).rev()));
    }
    assert_eq!((view.first(), view.last()), (model.first().map(Vec::as_slice), model.last().map(Vec::as_slice)));
}

/// What is saved piece by piece and applied again is the same list.
fn check_saving(kept: &Kept, limits: &Limits, model: &[Vec<u8>]) {
    let Kept::Big(big) = kept else { return };
    let (mut from, mut again) = (Some(Progress::default()), Kept::Packed(Vec::new()));
    while let Some(progress) = from {
        let mut changes = Vec::new();
        from = big.write_changes(progress, 200, &mut changes);
        assert!(!changes.is_empty() && crate::check_changes(crate::Type::List, &changes));
        again.apply(limits, &changes);
    }
    check(&again, model);
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(any::<u8>(), 0..30),
        2 => (-5000i64..5000).prop_map(|integer| integer.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 300..1500),
        1 => (0usize..3).prop_map(|size| vec![b'x'; 4090 + size * 40_000]),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Push(End, Vec<Vec<u8>>),
    Pop(End, u64),
    Set(u64, Vec<u8>),
    Insert(u64, Vec<u8>),
    Remove(u64, u64),
    Keep,
    Limit(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![Just(End::Head), Just(End::Tail)];
    prop_oneof![
        4 => (end.clone(), prop::collection::vec(value(), 1..40)).prop_map(|(end, values)| Step::Push(end, values)),
        2 => (end, 0u64..60).prop_map(|(end, count)| Step::Pop(end, count)),
        2 => (0u64..300, value()).prop_map(|(index, value)| Step::Set(index, value)),
        2 => (0u64..300, value()).prop_map(|(index, value)| Step::Insert(index, value)),
        2 => (0u64..300, 0u64..200).prop_map(|(index, count)| Step::Remove(index, count)),
        1 => Just(Step::Keep),
        1 => prop_oneof![Just(-2), Just(-1), Just(10), Just(128)].prop_map(Step::Limit),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 128 }))]

    /// Edits in whatever form are those of a vector; a clone taken before keeps what it had, read by another thread
    /// while edits continue.
    #[test]
    fn lists_are_vectors(steps in prop::collection::vec(step(), 0..60)) {
        let limits = Limits::default();
        let (mut kept, mut model) = (Kept::Packed(Vec::new()), Vec::<Vec<u8>>::new());
        std::thread::scope(|scope| {
            for step in &steps {
                let changes: Vec<Change<'_>> = match step {
                    Step::Push(end, values) => values.iter().map(|value| Change::Push { end: *end, value }).collect(),
                    Step::Pop(end, count) => vec![Change::Pop { end: *end, count: *count }],
                    Step::Set(index, value) => vec![Change::Set { index: *index, value }],
                    Step::Insert(index, value) => vec![Change::Insert { index: *index, value }],
                    Step::Remove(index, count) => vec![Change::Remove { index: *index, count: *count }],
                    Step::Keep => {
                        let (older, then) = (kept.clone(), model.clone());
                        scope.spawn(move || check(&older, &then));
                        continue;
                    }
                    Step::Limit(size) => {
                        limits.set_list_size(*size);
                        continue;
                    }
                };
                let is_left = kept.apply(&limits, &encoded(&changes));
                changes.iter().for_each(|change| apply_to_model(&mut model, change));
                assert_eq!(is_left, !model.is_empty());
                check(&kept, &model);
                if !is_left {
                    kept = Kept::Packed(Vec::new());
                }
            }
        });
        check_saving(&kept, &limits, &model);
    }

    /// No bytes make validation panic, nor reading what it let through.
    #[test]
    fn validation_is_total(bytes: Vec<u8>, encoding in 0u8..8) {
        if validate(Encoding(encoding), &bytes) {
            let kept = Kept::Packed(bytes);
            prop_assert_eq!(kept.view().forward(0).count() as u64, kept.view().len());
        }
    }
}

fn push(kept: &mut Kept, limits: &Limits, values: &[&[u8]]) {
    let changes: Vec<_> = values.iter().map(|value| Change::Push { end: End::Tail, value }).collect();
    kept.apply(limits, &encoded(&changes));
}

/// Where Valkey 9.1 converts, found by trying it: with the default of 8 KiB, and with a limit on elements.
#[test]
fn forms_change_where_valkeys_do() {
    let (limits, mut kept) = (Limits::default(), Kept::Packed(Vec::new()));
    // Eight bytes are ten in a listpack; the 819th would make 7 + 8180 + 8 = 8195 bytes.
    for number in 0..818 {
        push(&mut kept, &limits, &[format!("e{number:07}").as_bytes()]);
    }
    assert!(matches!(kept, Kept::Packed(_)));
    push(&mut kept, &limits, &[b"e0000818"]);
    assert!(matches!(kept, Kept::Big(_)));
    // Packed again at half: 408 elements are 4087 bytes.
    kept.apply(&limits, &encoded(&[Change::Pop { end: End::Head, count: 410 }]));
    assert!(matches!(kept, Kept::Big(_)));
    kept.apply(&limits, &encoded(&[Change::Pop { end: End::Tail, count: 1 }]));
    assert!(matches!(kept, Kept::Packed(_)));

    limits.set_list_size(4);
    let mut kept = Kept::Packed(Vec::new());
    push(&mut kept, &limits, &[b"1", b"2", b"3", b"4"]);
    assert!(matches!(kept, Kept::Packed(_)));
    push(&mut kept, &limits, &[b"5"]);
    assert!(matches!(kept, Kept::Big(_)));
    kept.apply(&limits, &encoded(&[Change::Set { index: 0, value: b"x" }]));
    kept.apply(&limits, &encoded(&[Change::Remove { index: 1, count: 2 }]));
    assert!(matches!(kept, Kept::Big(_)));
    kept.apply(&limits, &encoded(&[Change::Pop { end: End::Head, count: 1 }]));
    assert!(matches!(kept, Kept::Packed(_)));
}

/// Both ends of a list of a hundred thousand take what a short one takes, and its memory is known without a walk.
#[test]
fn ends_are_cheap_and_memory_is_known() {
    let (limits, mut kept) = (Limits::default(), Kept::Packed(Vec::new()));
    let texts: Vec<String> = (0..100_000).map(|number| format!("e{number:07}")).collect();
    for (number, text) in texts.iter().enumerate() {
        let end = End::ALL[number % 2];
        kept.apply(&limits, &encoded(&[Change::Push { end, value: text.as_bytes() }]));
    }
    let Kept::Big(big) = &kept else { panic!("100,000 elements are packed") };
    let bytes_per_element = big.memory_bytes() as f64 / 1e5;
    assert!((9.0..10.5).contains(&bytes_per_element), "{bytes_per_element}");
    for number in 0..100_000 {
        let end = End::ALL[number % 2];
        assert_eq!(kept.apply(&limits, &encoded(&[Change::Pop { end, count: 1 }])), number < 99_999);
    }
}

/// A list of long elements takes little more than they do, at whichever end it grows: the room that one surplus element
/// took in a leaf is given back when it leaves.
#[test]
fn long_elements_leave_no_room_behind() {
    for (end, len) in [(End::Head, 300), (End::Tail, 300), (End::Head, 2000), (End::Tail, 2000)] {
        let (limits, mut kept) = (Limits::default(), Kept::Packed(Vec::new()));
        let (value, count) = (vec![b'v'; len], 2000);
        for _ in 0..count {
            kept.apply(&limits, &encoded(&[Change::Push { end, value: &value }]));
        }
        let Kept::Big(big) = &kept else { panic!("{count} elements are packed") };
        let factor = big.memory_bytes() as f64 / (len * count) as f64;
        assert!((1.0..1.08).contains(&factor), "{factor} times {len} bytes at the {end:?}");
    }
}
