//! `decode` shows everything that was written, and accepts any bytes.

use super::*;
use crate::{Format, Show, ToolError, decode};
use vfs::OpenOptions;

fn show(fs: &SimFs, path: &Path, format: Format) -> Result<(bool, String), ToolError> {
    let mut out = Vec::new();
    let whole = decode(&shared(fs), path, Show { format, full: false }, &mut out)?;
    Ok((whole, String::from_utf8(out).expect("text")))
}

/// Every appended record, every entry of every set, and every file appears, as text and as JSON.
#[test]
fn all_of_it_is_shown() {
    let world = two_sets(1);
    let (records, entries) = (world.states.len() - 1, world.model.len());
    let stopped = world.stop();
    let (whole, text) = show(&stopped.fs, Path::new(DIR), Format::Text).unwrap();
    assert!(whole && text.contains("command log on") && text.contains("held while a server"), "{text}");
    let mut shown = 0;
    for path in stopped.files("log-") {
        let (whole, text) = show(&stopped.fs, &path, Format::Text).unwrap();
        assert!(whole, "{text}");
        shown += text.matches(": record of ").count();
    }
    assert_eq!(shown, records);
    let newest = stopped.files("prdb-00000002");
    assert_eq!(newest.len(), 2);
    let (mut sets, mut claimed) = (0, 0);
    for path in &newest {
        let (whole, json) = show(&stopped.fs, path, Format::Json).unwrap();
        assert!(whole);
        for line in json.lines() {
            let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
            match object["item"].as_str() {
                Some("snapshot") => claimed += object["entries"].as_u64().unwrap(),
                Some("effect") => {
                    sets += 1;
                    let (text, bytes) = (object["value"]["text"].as_str().unwrap(), &object["value"]["bytes"]);
                    assert!(bytes.as_u64() > Some(64) || object["value"]["shortened"] == false, "{text}");
                }
                _ => assert_eq!(object["item"], "block"),
            }
        }
    }
    assert!(sets == claimed && sets > 0 && sets <= 80 && entries <= 80);
}

/// A bit flipped anywhere in a file of any kind is reported, or is in an unused place; nothing panics.
#[test]
fn flips_are_shown() {
    let stopped = two_sets(2).stop();
    let mut rng = Rng::new(3);
    for prefix in ["MANIFEST", "prdb-00000001", "prdb-00000002"] {
        let path = stopped.files(prefix).remove(0);
        let len = stopped.fs.metadata(&path).unwrap().len;
        for _ in 0..60 {
            let (offset, bit) = (rng.below(len), rng.below(8) as u8);
            stopped.fs.flip_bit(&path, offset, bit).unwrap();
            match show(&stopped.fs, &path, Format::Text) {
                Ok((whole, text)) => assert!(!whole && text.contains("DAMAGED"), "{prefix}, {offset}.{bit}: {text}"),
                Err(error) => panic!("{prefix}, {offset}.{bit}: {error}"),
            }
            stopped.fs.flip_bit(&path, offset, bit).unwrap();
        }
        assert!(show(&stopped.fs, &path, Format::Text).unwrap().0);
    }
    // In a segment, frames end at the flipped bit.
    let path = stopped.files("log-").remove(0);
    let whole = show(&stopped.fs, &path, Format::Text).unwrap().1;
    stopped.fs.flip_bit(&path, 4096 + 500, 1).unwrap();
    let (_, cut) = show(&stopped.fs, &path, Format::Text).unwrap();
    assert!(cut.lines().count() < whole.lines().count() && cut.contains("durable up to LSN"), "{cut}");
}

/// Random bytes, alone and after a valid beginning, under every name.
#[test]
fn any_bytes_are_borne() {
    let stopped = two_sets(4).stop();
    let mut rng = Rng::new(5);
    let sources =
        [stopped.files("MANIFEST"), stopped.files("prdb-"), stopped.files("log-")].map(|mut files| files.remove(0));
    for round in 0..300 {
        let source = &sources[round % sources.len()];
        let mut bytes = vfs::read_file(&stopped.fs, source, 1 << 20).unwrap();
        let keep = rng.below(bytes.len() as u64 + 1) as usize;
        bytes.truncate(keep);
        let mut tail = vec![0; rng.below(300) as usize];
        rng.fill(&mut tail);
        bytes.extend(tail);
        for name in ["MANIFEST", "prdb-00000009-00", "log-00000000000000ff", "dump.rdb"] {
            let path = Path::new("/").join(name);
            let file = stopped.fs.open(&path, OpenOptions::write().create().truncate()).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            match show(&stopped.fs, &path, Format::Json) {
                Ok(_) | Err(ToolError::NotOurs { .. }) => {}
                Err(error) => panic!("round {round}, {name}: {error}"),
            }
        }
    }
}
