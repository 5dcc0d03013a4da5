//! Results as files.

use super::{html, markdown, picture};
use crate::error::{BenchError, Result};
use crate::results::Results;
use std::path::Path;

/// Writes `results.json`, `README.md`, `index.html` and an SVG file for each picture into a directory, creating it
/// if necessary.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn write(results: &Results, directory: &Path) -> Result<()> {
    let file_error = |op| move |source| BenchError::File { path: directory.to_owned(), op, source };
    std::fs::create_dir_all(directory).map_err(file_error("create the results' directory"))?;
    let json = serde_json::to_string(results).expect("results are plain data") + "\n";
    let mut files = vec![
        ("results.json".to_owned(), json),
        ("README.md".to_owned(), markdown::render(results)),
        ("index.html".to_owned(), html::render(results)),
    ];
    files.extend(picture::files(results));
    for (name, text) in files {
        std::fs::write(directory.join(name), text).map_err(file_error("write results"))?;
    }
    Ok(())
}
