//! What LevelDB's and RocksDB's C interfaces have in common.

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use super::Failure;

/// A path as the C interfaces take it.
pub fn path(path: &Path) -> Result<CString, Failure> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Makes a call that reports failure through its last argument, a message to be freed with `free`.
///
/// # Safety
/// `free` frees what `call` leaves in its argument, which is null or a string.
pub unsafe fn checked<T>(
    free: unsafe extern "C" fn(*mut c_void),
    call: impl FnOnce(*mut *mut c_char) -> T,
) -> Result<T, Failure> {
    let mut message: *mut c_char = ptr::null_mut();
    let value = call(&mut message);
    if message.is_null() {
        return Ok(value);
    }
    // SAFETY: the message is a string of the library, freed once and not used after.
    let text = unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        free(message.cast());
        text
    };
    Err(text.into())
}
