use super::*;
use crate::{Body, Buffer, Encoding, Limits, Progress, Slot, Stored, absent};
use base::Rng;
use base::hash::KeyHasher;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Model = BTreeMap<Bkey, (Vec<u8>, Vec<u8>)>;

fn element<'a>((bkey, (eflag, data)): (&Bkey, &'a (Vec<u8>, Vec<u8>))) -> Element<'a> {
    Element { bkey: *bkey, eflag, data }
}

fn bytes(bytes: &[u8]) -> Bkey {
    Bkey::Bytes(ByteKey::new(bytes).unwrap())
}

/// One collection, in whatever form it has.
struct Kept {
    packed: Vec<u8>,
    big: Option<crate::Big>,
    limits: Limits,
    hasher: KeyHasher,
}

impl Kept {
    fn new() -> Self {
        let hasher = KeyHasher::new(&mut Rng::new(1));
        Self { packed: Vec::new(), big: None, limits: Limits::default(), hasher }
    }

    fn apply(&mut self, changes: &[u8]) -> Left {
        let Self { packed, big, limits, hasher } = self;
        let encoding = if big.is_some() { Encoding::BIG } else { Encoding::PACKED };
        let body = match big {
            Some(big) => Body::Big(big),
            None => Body::Packed(Buffer::Lent(packed)),
        };
        let mut slot = Slot { body, encoding, limits, hasher };
        let left = apply(&mut slot, changes);
        if let Body::Grown(grown) = slot.body {
            self.big = Some(crate::Big::clone(&grown));
        }
        left
    }

    fn view(&self) -> View<'_> {
        View::of(self.big.as_ref().map_or(Stored::Packed(&self.packed), Stored::Big))
    }

    /// Every way of looking finds what the model has, also when leaves are absent.
    fn check(&self, model: &Model, rng: &mut Rng) {
        check(self.view(), model, rng);
        if let Some(big) = &self.big {
            let seed = rng.below(u64::MAX);
            absent::aside::over(big, |big| check(View::of(Stored::Big(big)), model, &mut Rng::new(seed)));
        }
        if let Some(crate::Big::Btree(big)) = &self.big {
            big.tree().check_sums();
        }
    }
}

fn check(view: View<'_>, model: &Model, rng: &mut Rng) {
    assert_eq!(view.len(), model.len() as u64);
    assert!(view.forward(0).eq(model.iter().map(element)));
    assert!(view.backward(u64::MAX).eq(model.iter().rev().map(element)));
    let at = rng.below(model.len() as u64 + 2);
    assert!(view.forward(at).eq(model.iter().skip(at as usize).map(element)));
    assert!(view.backward(at).eq(model.iter().take(at as usize + 1).rev().map(element)));
    let bkey = some_bkey(rng);
    assert_eq!(view.position(&bkey), (model.range(..bkey).count() as u64, model.contains_key(&bkey)));
    assert_eq!(view.get(&bkey), model.get_key_value(&bkey).map(element));
}

fn some_bkey(rng: &mut Rng) -> Bkey {
    Bkey::Number(rng.below(600) << (8 * rng.below(2)))
}

/// Random changes, against a sorted map; and each tree is the same again when it was built from its changes or leaves.
#[test]
fn changes_are_those_of_a_sorted_map() {
    for round in 0..if cfg!(miri) { 2 } else { 30 } {
        let mut rng = Rng::new(round);
        let (mut kept, mut model) = (Kept::new(), Model::new());
        let grows = round % 3 != 0;
        for _ in 0..if cfg!(miri) { 60 } else { 600 } {
            let mut changes = Vec::new();
            match rng.below(if grows { 40 } else { 8 }) {
                0..2 => {
                    let bkey = some_bkey(&mut rng);
                    Change::Remove(bkey).put(&mut changes);
                    model.remove(&bkey);
                }
                2 => {
                    let (start, count) = (rng.below(model.len() as u64 + 2), rng.below(if grows { 9 } else { 60 }));
                    Change::RemoveRange { start, count }.put(&mut changes);
                    let gone: Vec<_> = model.keys().skip(start as usize).take(count as usize).copied().collect();
                    gone.iter().for_each(|bkey| drop(model.remove(bkey)));
                }
                _ => {
                    let bkey = some_bkey(&mut rng);
                    let eflag = vec![7; rng.below(4) as usize];
                    let longest = if rng.one_in(20) { 3000 } else { 40 };
                    let data = vec![8; rng.below(longest) as usize];
                    Change::Put(Element { bkey, eflag: &eflag, data: &data }).put(&mut changes);
                    model.insert(bkey, (eflag, data));
                }
            }
            let left = kept.apply(&changes);
            assert_eq!(left.is_any(), !model.is_empty());
            kept.check(&model, &mut rng);
        }
        if let Some(big) = &kept.big {
            check_saved(big, &mut rng, &model);
        }
    }
}

fn check_saved(big: &crate::Big, rng: &mut Rng, model: &Model) {
    let mut built = Kept::new();
    let (mut changes, mut from) = (Vec::new(), Some(Progress::default()));
    while let Some(progress) = from {
        from = big.write_changes(progress, 1 + rng.below(2000) as usize, &mut changes);
    }
    built.big = Some(crate::Big::build(crate::Type::Btree, &changes, &built.limits, &built.hasher));
    built.check(model, rng);
}

#[test]
fn keys_have_an_order_and_a_distance() {
    let keys = [Bkey::Number(0), Bkey::Number(u64::MAX), bytes(b"\0"), bytes(b"\0\0"), bytes(b"\x01"), bytes(b"\xff")];
    assert!(keys.is_sorted());
    assert_eq!(Bkey::Number(9).minus(&Bkey::Number(4)), Bkey::Number(5));
    assert_eq!(bytes(b"\x02").minus(&bytes(b"\x01\x01")), bytes(b"\0\xff"));
    assert!(bytes(b"\0\xff").is_beyond(&bytes(b"\0\xfe")) && !bytes(b"\0\x10\0").is_beyond(&bytes(b"\0\x10")));
    assert_eq!(ByteKey::new(&[0; 32]), None);
}

/// The bytes that docs/formats/collections.md gives.
#[test]
fn golden_bytes() {
    let (number, string) = (Bkey::Number(300), bytes(b"ab"));
    let changes = [
        (Change::Put(Element { bkey: number, eflag: b"", data: b"xyz" }), &b"\x01\x22\x01\x2c\0\x03xyz"[..]),
        (Change::Put(Element { bkey: string, eflag: b"e", data: b"" }), b"\x01\x02ab\x01e\0"),
        (Change::Remove(Bkey::Number(0)), b"\x02\x20"),
        (Change::RemoveRange { start: 1, count: 300 }, b"\x03\x01\xac\x02"),
    ];
    let mut kept = Kept::new();
    for (change, golden) in changes {
        let mut out = Vec::new();
        change.put(&mut out);
        assert_eq!(out, golden, "{change:?}");
        let mut rest = golden;
        assert_eq!(Change::take(&mut rest), Some(change));
        assert!(rest.is_empty());
        kept.apply(golden);
    }
    assert_eq!(kept.packed, b"\x01\x22\x01\x2c\0\x03xyz");
}

/// 600 elements with keys of 8 bytes and 16 bytes of data.
#[test]
fn an_element_costs_few_bytes() {
    let mut kept = Kept::new();
    for number in 0..600u64 {
        let bkey = Bkey::Number((1 << 60) + (number << 20));
        let mut changes = Vec::new();
        Change::Put(Element { bkey, eflag: b"", data: &[7; 16] }).put(&mut changes);
        kept.apply(&changes);
    }
    let memory = kept.big.as_ref().expect("600 elements are a tree").memory_bytes();
    assert!(memory <= 600 * 34, "{memory} bytes");
}

proptest! {
    /// Any bytes are a change in its only form, or none.
    #[test]
    fn decoding_is_total_and_canonical(bytes: Vec<u8>, tag in 0u8..5) {
        let bytes = [&[tag][..], &bytes].concat();
        let mut rest = &bytes[..];
        if let Some(change) = Change::take(&mut rest) {
            let mut again = Vec::new();
            change.put(&mut again);
            prop_assert_eq!(&bytes[..bytes.len() - rest.len()], &again[..]);
        }
    }
}
