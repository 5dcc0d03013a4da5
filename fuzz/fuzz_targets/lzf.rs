//! LZF: two bytes of length, then compressed bytes; and the same bytes as an input to compress.
#![no_main]

use codec::lzf::{self, Compressor};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((len, bytes)) = input.split_first_chunk() else { return };
    let len = usize::from(u16::from_le_bytes(*len));
    let mut out = Vec::new();
    match lzf::decompress(bytes, len, &mut out) {
        Ok(()) => assert_eq!(out.len(), len),
        Err(_) => assert!(out.is_empty()),
    }
    assert!(out.capacity() <= len.max(8), "no more memory than promised");

    let mut packed = Vec::new();
    let mut compressor = Compressor::new();
    if compressor.compress(bytes, len, &mut packed) {
        assert!(packed.len() <= len);
        out.clear();
        lzf::decompress(&packed, bytes.len(), &mut out).expect("what was compressed is good");
        assert_eq!(out, bytes);
    } else {
        assert!(packed.is_empty());
    }
});
