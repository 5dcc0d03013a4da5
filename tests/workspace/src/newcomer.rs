//! Questions of a newcomer, answered step by step: each step finds a file by a word, opens it, and reads the
//! answer or the next word there. The test repeats the steps on the tree and counts the files.
//!
//! Run it with `cargo test -p onggi-workspace-tests newcomer -- --nocapture` to see them.

use crate::tree::{self, SourceFile};
use std::collections::BTreeSet;

/// A search with more hits than this leaves a newcomer no wiser.
const HITS_MAX: usize = 4;

/// How a newcomer comes to a file.
#[derive(Debug)]
enum Finds {
    /// The repository's page for newcomers.
    First,
    /// The file before names it: its path, or its module.
    Named(&'static str),
    /// A search in program text, without tests, for a text.
    Search(&'static str),
}

/// A file opened, and a text that has to be there.
struct Step {
    finds: Finds,
    opens: &'static str,
    reads: &'static str,
}

const fn step(finds: Finds, opens: &'static str, reads: &'static str) -> Step {
    Step { finds, opens, reads }
}

/// Where does a write become durable?
const DURABLE: &[Step] = &[
    step(Finds::First, "CONTRIBUTING.md", "Where does it become durable?"),
    step(Finds::Named("crates/storage/store/src/commit.rs"), "crates/storage/store/src/commit.rs", "append"),
    step(Finds::First, "CONTRIBUTING.md", "Where does it become durable?"),
    step(
        Finds::Named("crates/storage/cmdlog/src/flush/sync.rs"),
        "crates/storage/cmdlog/src/flush/sync.rs",
        "part.file.sync_data()?",
    ),
];

/// How is a command added, with its test?
const TOY_COMMAND: &[Step] = &[
    step(Finds::First, "CONTRIBUTING.md", "## Add a command"),
    step(
        Finds::Named("crates/commands/command/src/redis/string.rs"),
        "crates/commands/command/src/redis/string.rs",
        "COMMANDS",
    ),
    step(Finds::First, "CONTRIBUTING.md", "## Add a command"),
    step(Finds::Named("crates/commands/command/testdata/"), "crates/commands/command/testdata/strings.txt", "GET"),
];

/// Why does a GET of a cold compressed value take two paths?
const COLD_GET: &[Step] = &[
    step(Finds::First, "CONTRIBUTING.md", "ARCHITECTURE.md"),
    step(Finds::Named("ARCHITECTURE.md"), "ARCHITECTURE.md", "A compressed value or a contended lock sends it"),
    step(Finds::Named("store::read"), "crates/storage/store/src/read.rs", "a compressed string or has to be fetched"),
    step(
        Finds::Search("pub fn read_as_it_is<"),
        "crates/keyspace/engine-mem/src/mem_engine.rs",
        "self.entries.is_compressed(handle)",
    ),
    step(Finds::Search("fn show_compressed"), "crates/storage/store/src/txn/reading.rs", "show_compressed(store"),
];

/// What does a SET pass, from its socket to the disk, and its reply back to the socket?
const SET: &[Step] = &[
    step(Finds::First, "ARCHITECTURE.md", "## The life of a SET"),
    step(Finds::Named("server::worker"), "crates/server/server/src/worker.rs", "self.executor.receive("),
    step(
        Finds::Search("pub fn receive<"),
        "crates/server/server/src/executor/requests.rs",
        "self.run_batch_keeping_input()",
    ),
    step(Finds::Search("fn run_batch_keeping_input"), "crates/server/server/src/executor/batch.rs", "turn.run("),
    step(Finds::Search("shared.store.commit_one("), "crates/server/server/src/turn.rs", "request.call(txn)"),
    step(Finds::Search("pub fn commit_one<"), "crates/storage/store/src/commit.rs", "sink.append(at.worker"),
    step(Finds::Search("pub fn call(ctx"), "crates/commands/command/src/call.rs", "Run::Call(run) => run(ctx)"),
    step(Finds::Search("static SET: "), "crates/commands/command/src/redis/string.rs", "types::string::set("),
    step(Finds::Named("types::string"), "crates/keyspace/types/src/string.rs", "ks.apply(&Effect::Set"),
    step(Finds::Search("fn apply_as_it_is"), "crates/storage/store/src/txn/effects.rs", "types::apply::apply(self"),
    step(Finds::Named("types::apply"), "crates/keyspace/types/src/apply.rs", ".write(key, &NewEntry"),
    step(Finds::Search("impl Engine for MemEngine"), "crates/keyspace/engine-mem/src/mem_engine.rs", "fn write("),
    step(Finds::Search("self.log.append_in_turn("), "crates/storage/durability/src/sink.rs", "fn append("),
    step(Finds::Search("shared.append_in_turn("), "crates/storage/cmdlog/src/log.rs", "flush.begin_sync("),
    step(Finds::Search("pub fn append_in_turn("), "crates/storage/cmdlog/src/shared.rs", "self.stream.reserve("),
    step(Finds::Search("pub fn reserve(&self, producer"), "crates/storage/cmdlog/src/stream.rs", "fetch_add("),
    step(Finds::Search("fn write_published"), "crates/storage/cmdlog/src/flush.rs", "fn write_up_to("),
    step(Finds::Search("pub fn begin_sync(&mut self, now"), "crates/storage/cmdlog/src/flush/sync.rs", "sync_data()?"),
    step(Finds::Search("pub fn sendable("), "crates/server/server/src/held_output.rs", "mark.lsn <= durable"),
];

/// Program text without tests.
fn program_text(files: &[SourceFile]) -> impl Iterator<Item = &SourceFile> {
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs") || path.starts_with("tests/");
    files.iter().filter(move |file| file.extension() == "rs" && !is_test(&file.path))
}

/// Takes the steps. Gives the files opened, or what went wrong.
fn take(steps: &[Step], files: &[SourceFile]) -> Result<BTreeSet<&'static str>, String> {
    let (mut opened, mut before) = (BTreeSet::new(), String::new());
    for Step { finds, opens, reads } in steps {
        let file = files.iter().find(|file| file.path == *opens).ok_or_else(|| format!("{opens} does not exist"))?;
        match finds {
            Finds::First => {}
            Finds::Named(name) if before.contains(name) => {}
            Finds::Named(name) => return Err(format!("the file before {opens} does not name {name}")),
            Finds::Search(text) => {
                let hits: Vec<&str> =
                    program_text(files).filter(|f| f.text.contains(text)).map(|f| f.path.as_str()).collect();
                if !hits.contains(opens) || hits.len() > HITS_MAX {
                    return Err(format!("a search for {text} finds {hits:?}, and should lead to {opens}"));
                }
            }
        }
        if !file.text.contains(reads) {
            return Err(format!("{opens} does not say \"{reads}\""));
        }
        println!("{finds:?}: {opens}: {reads}");
        opened.insert(*opens);
        before.clone_from(&file.text);
    }
    Ok(opened)
}

/// The most files are those that the best code bases of the field need for the same question; for the path of a SET,
/// those that it has now.
#[test]
fn a_newcomer_finds_the_answers_in_few_files() {
    let files = tree::text_files();
    let mut wrong = Vec::new();
    for (question, steps, files_max) in [
        ("where does a write become durable?", DURABLE, 5),
        ("how is a command added, with its test?", TOY_COMMAND, 3),
        ("why does a GET of a cold compressed value take two paths?", COLD_GET, 6),
        ("what does a SET pass, from its socket to the disk and back?", SET, 19),
    ] {
        println!("{question}");
        match take(steps, &files) {
            Ok(opened) if opened.len() <= files_max => println!("{} files, at most {files_max}\n", opened.len()),
            Ok(opened) => wrong.push(format!("{question} {} files, at most {files_max}", opened.len())),
            Err(why) => wrong.push(format!("{question} {why}")),
        }
    }
    tree::none(&wrong);
}

#[test]
fn steps_that_lead_nowhere_are_noticed() {
    let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
    let files = [file("A.md", "see b.rs"), file("crates/b.rs", "fn b() {}")];
    let first = || step(Finds::First, "A.md", "see");
    assert_eq!(take(&[first(), step(Finds::Named("b.rs"), "crates/b.rs", "fn b")], &files).unwrap().len(), 2);
    assert!(take(&[first(), step(Finds::Named("c.rs"), "crates/b.rs", "fn b")], &files).is_err());
    assert!(take(&[first(), step(Finds::Search("fn c"), "crates/b.rs", "fn b")], &files).is_err());
    assert!(take(&[first(), step(Finds::Named("b.rs"), "crates/b.rs", "fn d")], &files).is_err());
    assert!(take(&[step(Finds::First, "D.md", "")], &files).is_err());
}
