//! Values of a megabyte and of 64, and pipelines of ten thousand commands and more.

use crate::harness::{Harness, equal};
use redis::Commands;

/// Bytes that no compressor shortens: a xorshift sequence.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub fn run(h: &Harness) {
    let mut r = h.connection();
    for megabytes in [1, 64] {
        h.check(&format!("large: a value of {megabytes} MB"), || {
            let value = noise(megabytes << 20);
            let () = r.set("large", &value)?;
            equal(r.strlen::<_, usize>("large")?, value.len())?;
            equal(r.get::<_, Vec<u8>>("large")? == value, true)?;
            equal(r.getrange::<_, Vec<u8>>("large", -1000, -1)? == value[value.len() - 1000..], true)?;
            equal(r.unlink::<_, i64>("large")?, 1)
        });
    }
    h.check("pipelines: 40000 commands, replies in order", || {
        let mut pipe = redis::pipe();
        for number in 0..20_000 {
            pipe.set(format!("p:{number}"), number).ignore().get_del(format!("p:{number}"));
        }
        let got: Vec<i64> = pipe.query(&mut r)?;
        equal(got, (0..20_000).collect())
    });
    h.check("pipelines: keys and values of any bytes", || {
        let bytes: Vec<u8> = (0..=255).collect();
        let () = r.set(&bytes, &bytes)?;
        equal(r.get_del::<_, Vec<u8>>(&bytes)?, bytes)
    });
}
