//! Copies of single files, in words.

use crate::error::ToolError;
use std::path::Path;
use vfs::FileSystem;

/// Copies or links one file, and returns which of the two. A copy is synced.
pub(crate) fn copy(fs: &dyn FileSystem, from: &Path, to: &Path, links: bool) -> Result<&'static str, ToolError> {
    Ok(if vfs::link_or_copy(fs, from, to, links)? { "linked" } else { "copied" })
}
