use super::*;
use base::Rng;
use std::collections::BTreeMap;

/// Elements, and the bytes Valkey 9.1.2 had for them.
#[test]
fn bytes_are_those_of_valkey() {
    let one = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\x80\x7f\xf5\x84\x08";
    let mut hll = HyperLogLog::empty(3000);
    assert_eq!(hll.bytes, b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff");
    assert_eq!(hll.observe(Observation::of(b"x")), Ok(true));
    hll.invalidate();
    assert_eq!(hll.bytes, one);
    assert_eq!(hll.observe(Observation::of(b"x")), Ok(false));
}

fn element(number: u64) -> Observation {
    Observation::of(format!("element:{number}").as_bytes())
}

fn registers_of(hll: &HyperLogLog) -> Box<Registers> {
    let mut registers = Box::new([0; REGISTER_COUNT]);
    merge_into(&mut registers, hll.form, &hll.bytes).unwrap();
    registers
}

/// The sparse form at every size, the conversion and the dense form hold the registers that a plain array has.
#[test]
fn both_forms_agree_with_a_plain_array() {
    let mut rng = Rng::new(7);
    for bytes_max in [0, 30, 300, 3000] {
        let mut hll = HyperLogLog::empty(bytes_max);
        let mut plain = [0; REGISTER_COUNT];
        for step in 0..3_000 {
            // Neighbours and equal ranks are what runs are made of.
            let seen = match rng.below(3) {
                0 => element(step),
                _ => Observation { register: rng.below(600) as usize, rank: rng.below(3) as u8 + 1 },
            };
            let raises = plain[seen.register] < seen.rank;
            plain[seen.register] = plain[seen.register].max(seen.rank);
            assert_eq!(hll.observe(seen), Ok(raises));
            assert!(hll.form == Form::Dense || hll.bytes.len() <= bytes_max.max(HEADER_BYTES + 2));
            if step % 1000 == 0 {
                assert_eq!(*registers_of(&hll), plain);
            }
        }
        assert_eq!(*registers_of(&hll), plain);
        assert_eq!(form(&hll.bytes), Ok(hll.form));
        assert_eq!(estimate(hll.form, &hll.bytes), Ok(estimate_registers(&plain)));
    }
}

/// The hint of ascending registers only saves time: the bytes are those of raising one register after the other.
#[test]
fn merging_gives_the_bytes_of_single_steps() {
    let mut rng = Rng::new(8);
    for round in (0..300).step_by(10) {
        let mut observation = |registers| {
            let register = rng.below(registers) as usize;
            Observation { register, rank: rng.below(3) as u8 + 1 }
        };
        let mut start = HyperLogLog::empty(1 << 20);
        let mut plain = [0; REGISTER_COUNT];
        for _ in 0..round {
            start.observe(observation(300)).unwrap();
            for seen in [observation(300), observation(REGISTER_COUNT as u64)] {
                plain[seen.register] = seen.rank;
            }
        }
        let mut merged = start.clone();
        merged.raise_to(&plain, false).unwrap();
        for (register, rank) in plain.into_iter().enumerate().filter(|(_, rank)| *rank > 0) {
            start.observe(Observation { register, rank }).unwrap();
        }
        assert_eq!(merged.bytes, start.bytes);
    }
}

/// A standard deviation of 0.81 % leaves three of them, at every order of magnitude.
#[test]
fn estimates_are_close() {
    let mut hll = HyperLogLog::empty(3000);
    let mut marks: BTreeMap<u64, u64> = (0..=5).map(|power| (10u64.pow(power), 0)).collect();
    for number in 1..=100_000 {
        hll.observe(element(number)).unwrap();
        if let Some(mark) = marks.get_mut(&number) {
            *mark = estimate(hll.form, &hll.bytes).unwrap();
        }
    }
    for (count, estimated) in marks {
        assert!((estimated as f64 / count as f64 - 1.0).abs() < 0.0243, "{estimated} for {count}");
    }
}

/// H2: whatever the bytes, every operation ends, and a broken one says so.
#[test]
fn broken_bytes_are_refused() {
    assert_eq!(form(b"HYLL"), Err(Invalid));
    assert_eq!(form(b"HYLL\x02\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"), Err(Invalid));
    assert_eq!(form(b"HYLL\0\0\0\0\0\0\0\0\0\0\0\0\x7f\xff"), Err(Invalid));
    let mut rng = Rng::new(9);
    let mut refused = 0;
    for _ in 0..3000 {
        let mut bytes = b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        bytes.extend((0..rng.below(40)).map(|_| rng.next_u64() as u8));
        assert_eq!(form(&bytes), Ok(Form::Sparse));
        let mut registers = [0; REGISTER_COUNT];
        let merged = merge_into(&mut registers, Form::Sparse, &bytes);
        assert_eq!(estimate(Form::Sparse, &bytes).is_ok(), merged.is_ok());
        refused += usize::from(merged.is_err());
        let mut hll = HyperLogLog::copy_of(Form::Sparse, &bytes, 3000);
        for number in 0..20 {
            let _ = hll.observe(element(number));
        }
        let _ = HyperLogLog::copy_of(Form::Sparse, &bytes, 3000).raise_to(&[1; REGISTER_COUNT], false);
        assert_eq!(HyperLogLog::copy_of(Form::Sparse, &bytes, 3000).raise_to(&registers, true).is_ok(), merged.is_ok());
    }
    assert!(refused > 2000, "{refused}");
}
