//! The sample file and the manual page in the repository are those of the table.
//! `ONGGI_REGENERATE=1 cargo test -p onggi-config --test generated` writes them.

use std::path::{Path, PathBuf};

fn check(file: &str, expected: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(file);
    if std::env::var_os("ONGGI_REGENERATE").is_some() {
        std::fs::write(&path, expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "{file} is out of date: run this test again with ONGGI_REGENERATE=1 and look at the change"
    );
}

#[test]
fn sample_file() {
    check("onggi.conf", &config::document::sample());
}

#[test]
fn manual_page() {
    check("docs/configuration.md", &config::document::manual());
}
