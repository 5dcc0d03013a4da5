//! The files of the source tree, as a fresh clone has them.

use std::fs;
use std::path::{Path, PathBuf};

/// Directories that hold what was built, downloaded or stored, at any depth.
const NOT_SOURCE: [&str; 8] =
    [".git", "target", ".tools", "node_modules", "__pycache__", "data", "corpus", "artifacts"];

/// A text file of the tree.
pub struct SourceFile {
    /// Path from the root, with `/` between the parts.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// Lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The part of the name after the last dot, or nothing.
    pub fn extension(&self) -> &str {
        Path::new(&self.path).extension().and_then(|e| e.to_str()).unwrap_or("")
    }

    /// Whether the file is program text (and not prose or data).
    pub fn is_code(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or("");
        matches!(self.extension(), "rs" | "py" | "sh" | "js" | "mjs" | "go" | "java" | "toml")
            || matches!(name, "Makefile" | "run")
    }
}

/// The root of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("this crate lies two levels below the root").to_path_buf()
}

/// Every file of the tree that is valid UTF-8, sorted by path.
pub fn text_files() -> Vec<SourceFile> {
    all_paths()
        .into_iter()
        .filter_map(|path| {
            let text = String::from_utf8(fs::read(root().join(&path)).ok()?).ok()?;
            Some(SourceFile { path, text })
        })
        .collect()
}

/// The path of every file of the tree, sorted.
pub fn all_paths() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for item in fs::read_dir(&directory).expect("a directory of the tree is readable").flatten() {
            let path = item.path();
            let name = item.file_name().to_string_lossy().into_owned();
            if item.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !NOT_SOURCE.contains(&name.as_str()) {
                    open.push(path);
                }
            } else if name != ".git" {
                // Of a worktree it is a file.
                let relative = path.strip_prefix(&root).expect("a file below the root");
                found.push(relative.to_string_lossy().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

/// Fails the calling test with every problem at once.
#[track_caller]
pub fn none(problems: &[String]) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}
