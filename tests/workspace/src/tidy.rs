//! Tidiness: what a reader should never meet in the tree. The needles are put together at run time, so that this file
//! does not find itself.

use crate::tree::{self, SourceFile};

/// Longest Rust file, in lines. Past it a second idea is hiding.
const LINES_MAX: usize = 1200;

/// Largest file of the tree, in bytes; catalogues and golden files stay below it.
const BYTES_MAX: u64 = 1 << 20;

/// The files that people write, without lock files, which tools write, and inputs of fuzzing, which are any bytes.
fn written() -> Vec<SourceFile> {
    let tool_made = ["Cargo.lock", "package-lock.json", "go.sum"];
    let is_written = |f: &SourceFile| {
        !tool_made.iter().any(|name| f.path.ends_with(name))
            && f.path != "LICENSE"
            && !f.path.starts_with("fuzz/seeds/")
    };
    tree::text_files().into_iter().filter(is_written).collect()
}

/// Whether `word` stands in `line` with no letter, digit or underscore on either side.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(part_of_word)
            && !line[at + word.len()..].chars().next().is_some_and(part_of_word)
    })
}

/// What a comment that is disabled code looks like: a statement or item that would compile once uncommented.
fn is_disabled_code(comment: &str) -> bool {
    let text = comment.trim();
    let item = ["let ", "use ", "pub ", "fn ", "impl ", "struct ", "enum ", "mod ", "return ", "if ", "for ", "while "]
        .iter()
        .any(|start| text.starts_with(start));
    let ends_as_code = text.ends_with(';') || text.ends_with('{');
    let is_call = text.ends_with(");") || text.ends_with(")?;");
    let is_attribute = text.starts_with("#[") && text.ends_with(']');
    (item && ends_as_code) || is_call || is_attribute || text == "}"
}

/// Every line of the files for which `wrong` gives a reason.
fn offences(files: &[SourceFile], wrong: impl Fn(&SourceFile, &str) -> Option<&'static str>) -> Vec<String> {
    let mut found = Vec::new();
    for file in files {
        for (number, line) in file.lines() {
            if let Some(reason) = wrong(file, line) {
                found.push(format!("{}:{number}: {reason}: {}", file.path, line.trim()));
            }
        }
    }
    found
}

#[test]
fn no_leftover_markers() {
    let markers = [["TO", "DO"], ["FIX", "ME"], ["X", "XX"], ["HA", "CK"]].map(|parts| parts.concat());
    let found = offences(&written(), |_, line| markers.iter().any(|m| has_word(line, m)).then_some("leftover marker"));
    tree::none(&found);
}

/// A module with parts is `name.rs` next to `name/`, so that a list of open files shows names. What tests of one crate
/// share may be `tests/name/mod.rs`: cargo takes `tests/name.rs` for a test.
#[test]
fn modules_are_called_by_their_names() {
    let files = tree::text_files();
    let paths = files.iter().map(|file| &file.path);
    tree::none(&paths.filter(|path| path.contains("/src/") && path.ends_with("/mod.rs")).cloned().collect::<Vec<_>>());
}

#[test]
fn no_disabled_code() {
    let found = offences(&written(), |file, line| {
        let opening = match file.extension() {
            "rs" | "go" | "java" | "js" | "mjs" => "//",
            "py" => "# ",
            _ => return None,
        };
        let comment = line.trim_start().strip_prefix(opening)?;
        if opening == "//" && comment.starts_with(['/', '!']) {
            return None;
        }
        is_disabled_code(comment).then_some("code in a comment")
    });
    tree::none(&found);
}

#[test]
fn no_machine_paths() {
    let needles = [
        ["/wo", "rk/main"],
        ["/wo", "rk/shared"],
        ["/tmp/", "team"],
        ["/tmp/", "target"],
        ["/tmp/", "vk/"],
        ["/ro", "ot/"],
    ]
    .map(|parts| parts.concat());
    let home = ["/ho", "me/"].concat();
    let found = offences(&written(), |_, line| {
        let names_home = line.contains(&home) && !line.contains(&format!("{home}..."));
        (names_home || needles.iter().any(|n| line.contains(n))).then_some("path of one machine")
    });
    tree::none(&found);
}

#[test]
fn no_test_is_switched_off_without_a_reason() {
    let bare = ["#[igno", "re]"].concat();
    let found = offences(&written(), |_, line| line.trim().starts_with(&bare).then_some("ignored without a reason"));
    tree::none(&found);
}

/// Error words that replies begin with.
const ERROR_WORDS: &[&str] = &[
    "ERR",
    "MISCONF",
    "OOM",
    "LOADING",
    "WRONGTYPE",
    "NOPERM",
    "NOAUTH",
    "READONLY",
    "BUSY",
    "MASTERDOWN",
    "DENIED",
    "NOTREADY",
    "NOSCRIPT",
    "NOPROTO",
    "WRONGPASS",
    "EXECABORT",
    "IOERR",
    "ERROR",
    "CLIENT_ERROR",
    "SERVER_ERROR",
];

/// Whether a string of program text begins with an error word.
fn begins_reply(line: &str) -> bool {
    ERROR_WORDS.iter().any(|word| ["", "-"].iter().any(|sign| line.contains(&format!("\"{sign}{word} "))))
}

/// Storage and workers return typed errors; `command::error` and the families have the words.
#[test]
fn error_words_stand_in_the_commands_alone() {
    let floors = ["crates/keyspace/", "crates/storage/", "crates/server/"];
    let is_below = |path: &str| floors.iter().any(|floor| path.starts_with(floor));
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/examples/");
    let mut below: Vec<_> = written().into_iter().filter(|f| is_below(&f.path) && !is_test(&f.path)).collect();
    for file in &mut below {
        let end = file.text.find("#[cfg(test)]").unwrap_or(file.text.len());
        file.text.truncate(end);
    }
    assert!(below.len() > 100, "the floors have moved");
    tree::none(&offences(&below, |_, line| begins_reply(line).then_some("an error word outside of the commands")));
}

/// Whether blanks stand in a row within a sentence of a string, as a line that was joined by hand leaves them.
fn has_gap(line: &str) -> bool {
    let text = line.trim_start();
    let ends_word = |before: &str| before.ends_with(|c: char| c.is_ascii_lowercase() || ",.:;".contains(c));
    !text.starts_with("//")
        && text.contains('"')
        && text.match_indices("    ").any(|(at, _)| {
            ends_word(&text[..at]) && text[at..].trim_start().starts_with(|c: char| c.is_ascii_lowercase())
        })
}

#[test]
fn sentences_have_single_blanks() {
    let is_source = |path: &str| path.starts_with("crates/") && path.ends_with(".rs") && !path.contains("/tests");
    let sources: Vec<_> = written().into_iter().filter(|f| is_source(&f.path)).collect();
    assert!(sources.len() > 500, "the crates have moved");
    tree::none(&offences(&sources, |_, line| has_gap(line).then_some("blanks in a row within a sentence")));
    assert!(has_gap(r#"    "a flush has        succeeded""#) && !has_gap(r#"    "a flush has succeeded""#));
}

#[test]
fn files_end_in_a_newline_and_lines_in_text() {
    let mut found = offences(&written(), |file, line| {
        if file.path.contains("/testdata/") {
            return None;
        }
        if line.ends_with([' ', '\t']) {
            return Some("blank at the end");
        }
        (file.extension() == "rs" && line.starts_with('\t')).then_some("tab")
    });
    for file in written().iter().filter(|f| !f.path.contains("/testdata/")) {
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            found.push(format!("{}: no newline at the end", file.path));
        }
    }
    tree::none(&found);
}

#[test]
fn files_are_of_readable_size() {
    let mut found: Vec<String> = written()
        .iter()
        .filter(|f| f.extension() == "rs")
        .map(|f| (f, f.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(f, lines)| format!("{}: {lines} lines, at most {LINES_MAX}", f.path))
        .collect();
    for path in tree::all_paths() {
        let bytes = std::fs::metadata(tree::root().join(&path)).map_or(0, |m| m.len());
        if bytes > BYTES_MAX {
            found.push(format!("{path}: {bytes} bytes, at most {BYTES_MAX}"));
        }
    }
    tree::none(&found);
}

#[test]
fn the_detectors_detect() {
    assert!(has_word("a FOO b", "FOO") && has_word("FOO", "FOO"));
    assert!(!has_word("FOOT", "FOO") && !has_word("A_FOO", "FOO"));
    for code in ["let x = 1;", "foo(bar);", "if a {", "}", "#[test]", "use a::b;", "read(x)?;"] {
        assert!(is_disabled_code(code), "{code}");
    }
    for prose in ["The reply is sent;", "a `b` (c)", "if it fails, the log stops", "for each shard:", "x = y; z"] {
        assert!(!is_disabled_code(prose), "{prose}");
    }
    assert!(begins_reply("let a = \"ERR no\";") && begins_reply("b\"-OOM no\"") && !begins_reply("// ERR no"));
}
