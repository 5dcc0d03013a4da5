//! Module values: identified and skipped.

use crate::error::RdbError;
use crate::format::module_part;
use crate::input::Input;
use crate::value::Module;
use std::io::Read;

/// Reads a module's number.
pub(crate) fn read_id(input: &mut Input<impl Read>) -> Result<Module, RdbError> {
    input.length("the number of a module").map(Module::of_id)
}

/// Skips a value, and returns the module of its number.
pub(super) fn skip_value(input: &mut Input<impl Read>) -> Result<Module, RdbError> {
    let module = read_id(input)?;
    skip_parts(input)?;
    Ok(module)
}

/// Skips the parts of a value, up to the end marker.
pub(crate) fn skip_parts(input: &mut Input<impl Read>) -> Result<(), RdbError> {
    const EXPECTED: &str = "a part of a module's value";
    loop {
        let offset = input.offset();
        match input.length(EXPECTED)? {
            module_part::EOF => return Ok(()),
            module_part::SINT | module_part::UINT => drop(input.length(EXPECTED)?),
            module_part::FLOAT => drop(input.array::<4>(EXPECTED)?),
            module_part::DOUBLE => drop(input.array::<8>(EXPECTED)?),
            module_part::STRING => input.skip_string()?,
            _ => return Err(input.damaged(offset, EXPECTED)),
        }
    }
}
