//! The conversations in `testdata/`. Their replies are those of Valkey 9.1.2, to which they were spoken once.

#[expect(dead_code, reason = "counts are for another test")]
mod support;

use support::transcript::play;

#[test]
fn strings() {
    play("strings.txt");
}

#[test]
fn string_numbers() {
    play("string_numbers.txt");
}

#[test]
fn string_parts() {
    play("string_parts.txt");
}

#[test]
fn subsequences() {
    play("lcs.txt");
}

#[test]
fn bitmaps() {
    play("bitmaps.txt");
}

#[test]
fn hyperloglogs() {
    play("hyperloglogs.txt");
}

#[test]
fn sorted_sets() {
    play("sorted_sets.txt");
}

#[test]
fn bit_fields() {
    play("bit_fields.txt");
}

#[test]
fn lists() {
    play("lists.txt");
}

#[test]
fn sets() {
    play("sets.txt");
}

#[test]
fn sorts() {
    play("sorts.txt");
}

#[test]
fn hashes() {
    play("hashes.txt");
}

#[test]
fn streams() {
    play("streams.txt");
}

#[test]
fn keys() {
    play("keys.txt");
}

#[test]
fn expirations() {
    play("expirations.txt");
}

#[test]
fn walks_over_keys() {
    play("walks.txt");
}

#[test]
fn objects() {
    play("objects.txt");
}

#[test]
fn connections() {
    play("connection.txt");
}
