//! The worked examples of pages about formats show the bytes of golden files.

use crate::tree;
use std::fs;

/// Pages with an example whose rows begin with an offset, and the golden files that they take apart.
const PAGES: [(&str, &str); 5] = [
    ("docs/formats/dictionary-file.md", "crates/keyspace/codec/testdata/v1/dict-a9d98217e8f4fa8ec6b1566b0c940f59"),
    ("docs/formats/plex-manifest.md", "crates/storage/plex/testdata/plex-manifest-5.hex"),
    ("docs/formats/plex-wal.md", "crates/storage/plex/testdata/plex-wal-1.hex"),
    ("docs/formats/snapshot-file.md", "crates/storage/checkpoint/testdata/v2/prdb-00000002-00"),
    ("docs/formats/sstable.md", "crates/storage/plex/testdata/sstable-1.hex"),
];

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

/// The bytes of a golden file, which is text if its name ends in `.hex`.
fn golden(path: &str) -> Vec<u8> {
    let bytes = fs::read(tree::root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    match path.ends_with(".hex") {
        false => bytes,
        true => {
            let text = String::from_utf8(bytes).expect("hexadecimal text");
            from_hex(&text.split_whitespace().collect::<String>()).expect("hexadecimal digits")
        }
    }
}

/// The rows of an example: offset, and the bytes there. Bytes after `..` in a row are not compared.
fn rows(page: &str) -> impl Iterator<Item = (usize, Vec<u8>, &str)> {
    let example = page.split("## Example\n").nth(1).unwrap_or_default();
    example.lines().filter_map(|line| {
        let (offset, rest) = line.split_once("  ")?;
        let offset = usize::from_str_radix(offset, 16).ok()?;
        let digits: String = rest.split("    ").next()?.split("..").next()?.split(' ').collect();
        Some((offset, from_hex(&digits)?, line))
    })
}

/// Every row whose bytes are not at its offset, and a page of no rows.
fn wrong_rows(name: &str, page: &str, golden: &[u8]) -> Vec<String> {
    let rows: Vec<_> = rows(page).collect();
    let wrong =
        rows.iter().filter(|(offset, bytes, _)| golden.get(*offset..offset + bytes.len()) != Some(bytes.as_slice()));
    let wrong = wrong.map(|(_, _, line)| format!("{name}: the golden file has other bytes than: {line}"));
    wrong.chain(rows.is_empty().then(|| format!("{name}: no rows in its example"))).collect()
}

#[test]
fn examples_show_golden_files() {
    let wrong = PAGES.iter().flat_map(|(page, file)| {
        let text = fs::read_to_string(tree::root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"));
        wrong_rows(page, &text, &golden(file))
    });
    tree::none(&wrong.collect::<Vec<_>>());
}

#[test]
fn other_bytes_are_noticed() {
    let page = "## Example\n\n00  01 0203    three\n02  03 04..05 (many)    cut\n";
    assert_eq!(wrong_rows("x", page, &[1, 2, 3, 4, 9]), Vec::<String>::new());
    assert_eq!(wrong_rows("x", page, &[1, 2, 4, 4]).len(), 2);
    assert_eq!(wrong_rows("x", page, &[1]).len(), 2, "beyond its end");
    assert_eq!(wrong_rows("x", "## Example\n", &[1]).len(), 1);
}
