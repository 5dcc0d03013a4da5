//! Documents out of files: JSON files and parts of large ones, texts and sections of long ones.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// JSON or text, never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Json,
    Text,
}

/// One document.
#[derive(Clone)]
pub struct Document {
    pub kind: Kind,
    /// The name of its file: files of one name are alike, as keys of one prefix are.
    pub class: String,
    pub bytes: Vec<u8>,
}

/// Documents have lengths within this range.
const LEN: std::ops::RangeInclusive<usize> = 64..=20_479;

/// Longer texts are cut at empty lines.
const SECTION: usize = 1500;

/// Files beyond this are left out.
const FILE_MAX: u64 = 32 << 20;

/// All documents below these directories, none twice, in a fixed order.
pub fn find(mut open: Vec<PathBuf>) -> Vec<Document> {
    let mut files = BTreeSet::new();
    while let Some(path) = open.pop() {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => {
                open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            }
            Ok(meta) if meta.is_file() && meta.len() <= FILE_MAX => drop(files.insert(path)),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    files.iter().flat_map(|path| documents(path)).filter(|document| seen.insert(document.bytes.clone())).collect()
}

fn documents(path: &Path) -> Vec<Document> {
    let class = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let texts = match (extension, &class[..]) {
        ("json", _) => {
            let Some(value) = fs::read(path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) else {
                return vec![];
            };
            let mut out = Vec::new();
            parts(&value, &mut out);
            return out.into_iter().map(|bytes| Document { kind: Kind::Json, class: class.clone(), bytes }).collect();
        }
        ("md" | "rst" | "txt", _) | (_, "METADATA" | "copyright" | "status") => {
            fs::read_to_string(path).unwrap_or_default()
        }
        _ => return vec![],
    };
    // One class for prose, whatever the file is called.
    let class = if matches!(extension, "md" | "rst" | "txt") { extension.to_owned() } else { class };
    let text = |bytes: String| Document { kind: Kind::Text, class: class.clone(), bytes: bytes.into_bytes() };
    sections(&texts).into_iter().filter(|section| LEN.contains(&section.len())).map(text).collect()
}

/// The value as one document, or its members, if it is too long for one.
fn parts(value: &Value, out: &mut Vec<Vec<u8>>) {
    let bytes = value.to_string().into_bytes();
    match value {
        Value::Object(_) | Value::Array(_) if LEN.contains(&bytes.len()) => out.push(bytes),
        Value::Array(elements) if bytes.len() > *LEN.end() => elements.iter().for_each(|element| parts(element, out)),
        Value::Object(members) if bytes.len() > *LEN.end() => members.values().for_each(|member| parts(member, out)),
        _ => {}
    }
}

/// The paragraphs of a text, joined to sections.
fn sections(text: &str) -> Vec<String> {
    let mut sections = vec![String::new()];
    for paragraph in text.split("\n\n") {
        if sections.last().is_some_and(|section| section.len() + paragraph.len() > SECTION) {
            sections.push(String::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push_str(paragraph);
            section.push_str("\n\n");
        }
    }
    sections
}
