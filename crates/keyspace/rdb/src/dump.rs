//! The payload of DUMP and RESTORE: type, value, version (2 bytes), checksum of everything before it (8 bytes).

use crate::encode::{Encoder, Target, WriteError};
use crate::error::{Place, RdbError};
use crate::format::{Dialect, Form};
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
