//! Lines of a configuration without their secrets.

use crate::syntax::printable;
use crate::table::{find, nearest_name};

/// A line as a message may show it.
pub(crate) fn redacted(line: &[u8]) -> String {
    let name = line.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    // A misspelt directive is as secret as the one that was meant.
    let row = find(name).or_else(|| nearest_name(name).and_then(|near| find(near.as_bytes())));
    match row {
        Some(row) if row.sensitive => format!("{} (redacted)", printable(name)),
        _ => printable(line),
    }
}
