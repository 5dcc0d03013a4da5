//! The payload of DUMP and RESTORE: type, value, version (2 bytes), checksum of everything before it (8 bytes).

use crate::encode::{Encoder, Target, WriteError};
use crate::error::{Place, RdbError};
use crate::format::{Dialect, Form, opcode};
use crate::input::Input;
use crate::read::read_value;
use crate::value::Value;
use base::checksum::Crc64Rdb;

/// Bytes of the checksum.
const CHECKSUM_LEN: usize = 8;

/// The payload of a value.
///
/// # Errors
/// [`WriteError::NeedsNewer`], [`WriteError::Module`].
pub fn write(value: &Value, target: Target) -> Result<Vec<u8>, WriteError> {
    let mut payload = Vec::new();
    let encoder = &mut Encoder::new(target);
    payload.push(encoder.kind(value)?);
    encoder.put_value(value, &mut payload);
    payload.extend((target.version() as u16).to_le_bytes());
    let checksum = Crc64Rdb::new().update(&payload).finish();
    payload.extend(checksum.to_le_bytes());
    Ok(payload)
}

/// The payload of a value, for the oldest servers that load it without loss.
///
/// # Errors
/// [`WriteError::Module`].
pub fn write_for_oldest(value: &Value) -> Result<Vec<u8>, WriteError> {
    write(value, Target::oldest_for(value))
}

/// The value of a payload, and its form there.
///
/// # Errors
/// [`RdbError::Version`] for an unknown version; [`RdbError::Checksum`] if the payload was changed;
/// [`RdbError::Truncated`] in [`Place::Footer`] if it is too short for a footer; all others if its content is damaged.
pub fn read(payload: &[u8]) -> Result<(Form, Value), RdbError> {
    read_within(payload, u64::MAX)
}

/// As [`read`], with a limit on the expanded size of compressed strings: a few bytes can expand to a hundred times as
/// many.
///
/// # Errors
/// As [`read`], and [`RdbError::TooLong`].
pub fn read_within(payload: &[u8], expanded_bytes_max: u64) -> Result<(Form, Value), RdbError> {
    let (body, dialect) = check_footer(payload)?;
    let mut input = Input::new(body, Some(body.len() as u64));
    input.expanding = expanded_bytes_max;
    input.place = Place::Next;
    let number = input.byte("a type")?;
    let form = Form::of(number, dialect).ok_or_else(|| input.damaged(0, "a type"))?;
    input.place = Place::Value(form);
    let value = read_value(&mut input, form, dialect)?;
    if input.remaining() != 0 {
        return Err(input.damaged(input.offset(), "the end of the value"));
    }
    Ok((form, value))
}

/// Why a payload of FUNCTION RESTORE cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionsError {
    /// Its version is unknown, or its checksum is wrong.
    Footer,
    /// It has something that is no library.
    OtherType,
    /// A library in it is damaged or too long.
    Damaged,
}

/// The payload of libraries of functions, by their texts. Servers from Redis 7.0 on load it.
pub fn write_functions<'c>(codes: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut payload = Vec::new();
    let encoder = &mut Encoder::new(Target::V10).compressing();
    for code in codes {
        payload.push(opcode::FUNCTION2);
        encoder.put_string(code, &mut payload);
    }
    payload.extend((Target::V10.version() as u16).to_le_bytes());
    let checksum = Crc64Rdb::new().update(&payload).finish();
    payload.extend(checksum.to_le_bytes());
    payload
}

/// The texts of the libraries in a payload, with a limit on their expanded size.
///
/// # Errors
/// See [`FunctionsError`].
pub fn read_functions(payload: &[u8], expanded_bytes_max: u64) -> Result<Vec<Vec<u8>>, FunctionsError> {
    let (body, _) = check_footer(payload).map_err(|_| FunctionsError::Footer)?;
    let mut input = Input::new(body, Some(body.len() as u64));
    input.expanding = expanded_bytes_max;
    let mut codes = Vec::new();
    while input.remaining() != 0 {
        match input.byte("an opcode") {
            Ok(opcode::FUNCTION2) => codes.push(input.own_string().map_err(|_| FunctionsError::Damaged)?),
            _ => return Err(FunctionsError::OtherType),
        }
    }
    Ok(codes)
}

/// The payload without its footer.
fn check_footer(payload: &[u8]) -> Result<(&[u8], Dialect), RdbError> {
    let truncated = RdbError::Truncated {
        offset: payload.len() as u64,
        place: Place::Footer,
        expected: "a version and a checksum",
    };
    let Some((summed, stored)) = payload.split_last_chunk::<CHECKSUM_LEN>() else { return Err(truncated) };
    let Some((body, version)) = summed.split_last_chunk() else { return Err(truncated) };
    let version = u32::from(u16::from_le_bytes(*version));
    let dialect = Dialect::of_version(version).ok_or(RdbError::Version { server: "DUMP", version })?;
    let (stored, computed) = (u64::from_le_bytes(*stored), Crc64Rdb::new().update(summed).finish());
    if stored != computed {
        return Err(RdbError::Checksum { offset: summed.len() as u64, stored, computed });
    }
    Ok((body, dialect))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_come_back() {
        let long = "x".repeat(1000).into_bytes();
        for codes in [vec![], vec![b"#!lua name=a\n".to_vec()], vec![b"".to_vec(), long]] {
            let payload = write_functions(codes.iter().map(Vec::as_slice));
            assert_eq!(read_functions(&payload, u64::MAX), Ok(codes));
        }
        // What Valkey 9.1 dumps without a library.
        assert_eq!(read_functions(b"P\0\x92\xb1\x95\xd1\x91-\xc5.", u64::MAX), Ok(vec![]));
    }

    #[test]
    fn damaged_functions_are_refused() {
        let codes = [&b"#!lua name=a\n"[..], &[b'y'; 500]];
        let payload = write_functions(codes.into_iter());
        for end in 0..payload.len() {
            assert_eq!(read_functions(&payload[..end], u64::MAX), Err(FunctionsError::Footer), "{end}");
        }
        let sealed = |body: &[u8]| {
            let mut payload = [body, &[10, 0]].concat();
            payload.extend(Crc64Rdb::new().update(&payload).finish().to_le_bytes());
            payload
        };
        assert_eq!(read_functions(&sealed(b"\0\x01k"), u64::MAX), Err(FunctionsError::OtherType));
        assert_eq!(read_functions(&sealed(b"\xf5\x05k"), u64::MAX), Err(FunctionsError::Damaged));
        assert_eq!(read_functions(&payload, 400), Err(FunctionsError::Damaged), "a bomb");
    }
}
