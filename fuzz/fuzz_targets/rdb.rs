//! RDB files and, if the first byte is even, payloads of DUMP and FUNCTION DUMP. Every input gets an answer, and every
//! value that is read is well-formed: written again, it reads as the same value. The fuzzer's memory limit detects
//! lengths that are trusted.
#![no_main]

use base::checksum::Crc64Rdb;
use libfuzzer_sys::fuzz_target;
use rdb::{Item, Reader, Target, Value, dump};

/// Bytes of the libraries of a payload of FUNCTION RESTORE.
const EXPANDED_BYTES_MAX: u64 = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let values = if first % 2 == 0 { read_payload(bytes, first / 2) } else { read_file(bytes) };
    for value in values {
        let Ok(payload) = dump::write(&value, Target::Valkey9) else { continue };
        assert_eq!(dump::read(&payload).expect("what was written").1, value);
    }
});

/// The value of a payload with a version and a valid checksum.
fn read_payload(bytes: &[u8], version: u8) -> Vec<Value> {
    let version: u16 = if version % 2 == 0 { 12 } else { 80 };
    let mut payload = [bytes, &version.to_le_bytes()].concat();
    let checksum = Crc64Rdb::new().update(&payload).finish();
    payload.extend(checksum.to_le_bytes());
    if let Ok(codes) = dump::read_functions(&payload, EXPANDED_BYTES_MAX) {
        let again = dump::write_functions(codes.iter().map(Vec::as_slice));
        assert_eq!(dump::read_functions(&again, u64::MAX).expect("what was written"), codes);
    }
    dump::read(&payload).map(|(_, value)| value).into_iter().collect()
}

/// The values of a file, up to the first fault.
fn read_file(bytes: &[u8]) -> Vec<Value> {
    let mut values = Vec::new();
    let Ok(mut reader) = Reader::new(bytes, Some(bytes.len() as u64)) else { return values };
    while let Ok(Some(item)) = reader.next_item() {
        if let Item::Entry(entry) = item {
            values.push(entry.value);
        }
    }
    values
}
