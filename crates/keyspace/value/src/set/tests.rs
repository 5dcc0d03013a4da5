//! Sets of every form against a plain set, while others read and save what they were.

use super::*;
use crate::buffer::tests::apply_stored;
use crate::position::Position;
use crate::tree::HashedLeaf;
use crate::{Progress, Stored, absent, check_changes};
use base::Rng;
use base::hash::KeyHasher;
use base::integer::IntegerText;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::thread;

/// A set as an engine keeps it.
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
        assert!(check_changes(crate::Type::Set, changes));
        let value = (&mut self.packed, &mut self.big, &mut self.encoding);
        let is_left = apply_stored(crate::Type::Set, value, (&self.limits, &self.hasher), changes);
        let encoding = self.encoding;
        assert_eq!(self.big.is_some(), encoding == Encoding::BIG);
        assert!(!is_left || self.big.is_some() || validate(encoding, &self.packed));
        is_left
    }

    fn view(&self) -> View<'_> {
        View::of(self.encoding, self.big.as_ref().map_or(Stored::Packed(&self.packed), Stored::Big))
    }

    fn members(&self) -> BTreeSet<Vec<u8>> {
        members(self.view())
    }
}

fn members(view: View<'_>) -> BTreeSet<Vec<u8>> {
    let all: BTreeSet<Vec<u8>> = view.iter().map(|member| member.bytes(&mut IntegerText::default()).to_vec()).collect();
    assert_eq!(all.len(), view.len());
    all
}

/// Every way of looking finds what the model has.
fn check(view: View<'_>, model: &BTreeSet<Vec<u8>>) {
    assert_eq!(members(view), *model);
    assert!(model.iter().all(|member| view.contains(member)));
    assert!(!view.contains(b"member of none"));
    assert_eq!(view.at(model.len()), None);
    let (mut scanned, mut cursor) = (BTreeSet::new(), 0);
    loop {
        cursor = view.scan(cursor, 7, &mut |member| {
            scanned.insert(member.bytes(&mut IntegerText::default()).to_vec());
        });
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, *model);
}

fn text(number: u64) -> Vec<u8> {
    format!("member:{number}").into_bytes()
}

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u8>),
    Remove(Vec<u8>),
    RemoveAt(prop::sample::Index),
    AddMany(u64),
    Clear,
    Strings,
    Expect(u64),
    /// Others keep the set as it is now.
    Keep,
}

fn member() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => any::<i8>().prop_map(|number| number.to_string().into_bytes()),
        1 => any::<i64>().prop_map(|number| number.to_string().into_bytes()),
        2 => prop::collection::vec(any::<u8>(), 0..4),
        1 => (0usize..700, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => member().prop_map(Step::Add),
        3 => member().prop_map(Step::Remove),
        9 => any::<prop::sample::Index>().prop_map(Step::RemoveAt),
        1 => (0u64..400).prop_map(Step::AddMany),
        1 => prop_oneof![Just(Step::Clear), Just(Step::Strings), (0u64..1000).prop_map(Step::Expect)],
        1 => Just(Step::Keep),
    ]
}

/// The index alone leads to the member, unless an earlier one has the same tag.
#[test]
fn a_candidate_is_the_member_with_the_tag() {
    let hasher = KeyHasher::new(&mut Rng::new(1));
    let mut leaf = leaf::Leaf::default();
    let mut tags = BTreeSet::new();
    for number in 0..30u8 {
        let member = vec![number; if number == 7 { 300 } else { 1 + usize::from(number) }];
        let position = Position::of(&hasher, &member);
        assert_ne!(tags.contains(&position.tag()), leaf.candidate(position).is_empty());
        leaf.push(position, &member);
        if tags.insert(position.tag()) {
            // A long one has its length before it.
            let length = if number == 7 { 2 } else { 0 };
            assert!(member.starts_with(&leaf.candidate(position)[length..]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Any changes leave the members a plain set has, found by every way of looking, and no change reaches a version
    /// that others have kept and read meanwhile.
    #[test]
    fn sets_hold_what_a_plain_set_holds(steps in prop::collection::vec(step(), 0..300)) {
        let (mut set, mut model) = (Kept::new(), BTreeSet::new());
        thread::scope(|scope| {
            for step in steps {
                match step {
                    Step::Add(member) => {
                        set.apply(&[Change::Add(&member)]);
                        model.insert(member);
                    }
                    Step::Remove(member) => {
                        set.apply(&[Change::Remove(&member)]);
                        model.remove(&member);
                    }
                    Step::RemoveAt(index) if !model.is_empty() => {
                        let member = set.view().at(index.index(model.len())).unwrap();
                        let member = member.bytes(&mut IntegerText::default()).to_vec();
                        set.apply(&[Change::Remove(&member)]);
                        assert!(model.remove(&member));
                    }
                    Step::RemoveAt(_) => {}
                    Step::AddMany(first) => {
                        let many: Vec<Vec<u8>> = (first..first + 200).map(text).collect();
                        let changes: Vec<Change<'_>> = many.iter().map(|member| Change::Add(member)).collect();
                        set.apply(&changes);
                        model.extend(many);
                    }
                    Step::Clear => {
                        set.apply(&[Change::Clear]);
                        model.clear();
                    }
                    Step::Strings => {
                        set.apply(&[Change::Strings]);
                    }
                    Step::Expect(members) => {
                        set.apply(&[Change::Expect(members)]);
                    }
                    Step::Keep => {
                        if let Some(big) = set.big.clone() {
                            let expected = model.clone();
                            scope.spawn(move || {
                                let view = View::of(Encoding::BIG, Stored::Big(&big));
                                assert_eq!(members(view), expected);
                                assert_eq!(members(rebuilt(&big).view()), expected);
                            });
                        }
                    }
                }
                assert_eq!(set.apply(&[]), !model.is_empty());
                assert_eq!(set.view().len(), model.len());
            }
        });
        check(set.view(), &model);
        if let Some(big) = &set.big {
            absent::aside::over(big, |big| check(View::of(Encoding::BIG, Stored::Big(big)), &model));
        }
        let mut scanned = Vec::new();
        while_scanning(&mut set, 7, |_| (), |member| scanned.push(member));
        assert_eq!(scanned.len(), model.len());
        assert_eq!(scanned.into_iter().collect::<BTreeSet<_>>(), model);
    }

    /// Bytes are changes in one way only, and whatever bytes come, taking them ends.
    #[test]
    fn changes_have_one_form(bytes in prop::collection::vec(prop_oneof![0u8..8, any::<u8>()], 0..40)) {
        let mut rest = &bytes[..];
        let mut again = Vec::new();
        while let Some(change) = Change::take(&mut rest) {
            change.put(&mut again);
            assert_eq!(again, bytes[..again.len()]);
        }
    }
}

/// What comes of the changes that save the set, a few at a time.
fn rebuilt(big: &crate::Big) -> Kept {
    let mut kept = Kept::new();
    let mut progress = Some(Progress::default());
    while let Some(from) = progress {
        let mut changes = Vec::new();
        progress = big.write_changes(from, 100, &mut changes);
        kept.apply_bytes(&changes);
    }
    kept
}

/// Walks over a set, with something done to it between the steps.
fn while_scanning(set: &mut Kept, count: u64, mut between: impl FnMut(&mut Kept), mut visit: impl FnMut(Vec<u8>)) {
    let mut cursor = 0;
    loop {
        let mut room = IntegerText::default();
        cursor = set.view().scan(cursor, count, &mut |member| visit(member.bytes(&mut room).to_vec()));
        if cursor == 0 {
            return;
        }
        assert!(cursor < 1 << 53);
        between(set);
    }
}

/// SSCAN's promise, with leaves that split and merge during the walk.
#[test]
fn a_walk_misses_nothing_that_stays() {
    let mut set = Kept::new();
    let stays: Vec<Vec<u8>> = (0..3000).map(text).collect();
    stays.iter().for_each(|member| assert!(set.apply(&[Change::Add(member)])));
    let (mut seen, mut round) = (BTreeSet::new(), 0);
    let crowd = |set: &mut Kept| {
        round += 1;
        for number in 0..400 {
            let member = text(1_000_000 + number);
            let change = if round % 2 == 1 { Change::Add(&member) } else { Change::Remove(&member) };
            set.apply(&[change]);
        }
    };
    while_scanning(&mut set, 10, crowd, |member| {
        seen.insert(member);
    });
    assert!(stays.iter().all(|member| seen.contains(member)));
}

/// The forms that Valkey 9.1.2 gives a set, step by step.
#[test]
fn forms_are_those_of_valkey() {
    let integers: Vec<Vec<u8>> = (0..513).map(|number: i64| number.to_string().into_bytes()).collect();
    let with = |set: &mut Kept, members: &[Vec<u8>]| {
        members.iter().for_each(|member| assert!(set.apply(&[Change::Add(member)])));
        set.encoding
    };
    let mut set = Kept::new();
    assert_eq!(with(&mut set, &integers[..512]), INTEGERS);
    assert_eq!(with(&mut set, &integers[512..]), Encoding::BIG);
    set = Kept::new();
    with(&mut set, &integers[..127]);
    assert_eq!(with(&mut set, &[b"a".to_vec()]), STRINGS);
    assert_eq!(with(&mut set, &[b"b".to_vec()]), Encoding::BIG);
    set = Kept::new();
    with(&mut set, &integers[..128]);
    assert_eq!(with(&mut set, &[b"a".to_vec()]), Encoding::BIG);
    set = Kept::new();
    assert_eq!(with(&mut set, &[vec![b'a'; 64]]), STRINGS);
    assert_eq!(with(&mut set, &[vec![b'a'; 65]]), LONG_STRINGS);
    set = Kept::new();
    with(&mut set, &integers[..127]);
    assert_eq!(with(&mut set, &[vec![b'a'; 65]]), LONG_STRINGS);
    assert_eq!(with(&mut set, &[b"a".to_vec()]), Encoding::BIG);
    set = Kept::new();
    set.limits.set_set_value(2);
    with(&mut set, &integers[100..102]);
    assert_eq!(with(&mut set, &[b"a".to_vec()]), LONG_STRINGS);
    set = Kept::new();
    set.apply(&[Change::Expect(129), Change::Add(b"a")]);
    assert_eq!(set.encoding, Encoding::BIG);
    set = Kept::new();
    set.apply(&[Change::Expect(512), Change::Add(b"1")]);
    assert_eq!(set.encoding, INTEGERS);
    set.apply(&[Change::Expect(513), Change::Add(b"1")]);
    assert_eq!(set.encoding, Encoding::BIG);
    set.apply(&[Change::Clear, Change::Strings, Change::Add(b"1")]);
    assert_eq!(set.encoding, STRINGS);
}

/// A set is packed whatever the lengths of its members, as long as it has few bytes; it remembers that one was long.
#[test]
fn few_bytes_are_packed() {
    let mut set = Kept::new();
    let (long, first, last) = ([b'l'; 4000], [b'f'; 80], [b'g'; 20]);
    assert!(set.apply(&[Change::Add(b"1"), Change::Add(&long)]));
    assert_eq!(set.encoding, LONG_STRINGS);
    assert!(set.apply(&[Change::Add(&first), Change::Remove(&long), Change::Expect(128)]));
    assert_eq!(set.encoding, LONG_STRINGS);
    assert!(set.apply(&[Change::Add(&long)]));
    assert_eq!((set.encoding, set.packed.len()), (LONG_STRINGS, 1 + 2 + 81 + 4002));
    assert!(set.apply(&[Change::Add(&long)]));
    assert_eq!(set.encoding, LONG_STRINGS);
    assert!(set.apply(&[Change::Add(&last)]));
    assert_eq!(set.encoding, Encoding::BIG);
    assert_eq!(set.members(), [&b"1"[..], &long, &first, &last].map(<[u8]>::to_vec).into());
    set = Kept::new();
    assert!(set.apply(&[Change::Add(&[b'l'; 5000])]));
    assert_eq!(set.encoding, Encoding::BIG);
}

/// What sets cost beyond their key, with 100 and 600 members of 7 bytes.
#[test]
fn members_take_little_memory() {
    let fill = |count: u64| {
        let mut set = Kept::new();
        for number in 0..count {
            assert!(set.apply(&[Change::Add(format!("m{number:06}").as_bytes())]));
        }
        set
    };
    assert_eq!(fill(100).packed.len(), 1 + 100 * 8);
    for (count, bytes_max) in [(600, 15.0), (100_000, 14.0)] {
        let big = fill(count).big.unwrap();
        let bytes = big.memory_bytes() as f64 / count as f64;
        println!("{count} members: {bytes:.1} B each");
        assert!(bytes <= bytes_max, "{count} members take {bytes:.1} B each");
    }
}

/// Members too long for a length of one byte, alone and between others.
#[test]
fn long_members() {
    let mut set = Kept::new();
    let all: BTreeSet<Vec<u8>> =
        (0..100).map(|number: usize| vec![number as u8; (number % 4) * 254 + number]).collect();
    all.iter().for_each(|member| assert!(set.apply(&[Change::Add(member)])));
    assert_eq!(set.members(), all);
    for (index, member) in all.iter().enumerate() {
        assert!(set.view().contains(member));
        assert_eq!(set.apply(&[Change::Remove(member)]), index + 1 < all.len());
        assert!(!set.view().contains(member));
    }
}
