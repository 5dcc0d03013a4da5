//! Golden files: the bytes of every format, as hexadecimal text in `testdata/`. A difference is a change of format,
//! which needs a new version number; `PLEX_WRITE_GOLDEN=1` writes the files anew.

/// Compares with `testdata/NAME.hex`.
pub(crate) fn compare(name: &str, bytes: &[u8]) {
    let path = format!("{}/testdata/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&hex.join(" "));
        text.push('\n');
    }
    if std::env::var_os("PLEX_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &text).expect("testdata is writable");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file is there");
    assert!(golden == text, "{path} differs from what is written now:\n{text}");
}

/// The bytes of `testdata/NAME.hex`.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let path = format!("{}/testdata/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the golden file is there");
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two digits")).collect()
}
