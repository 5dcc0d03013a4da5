//! Faults that were found in the field: each row of the table names a regression test that exists.

use crate::tree;
use std::collections::BTreeSet;

const PAGE: &str = "docs/reliability.md";
const TITLE: &str = "## Found in the field";

/// The test cells of the table's rows, with the numbers of their lines.
fn test_cells(page: &str) -> Vec<(usize, &str)> {
    let lines = (1..).zip(page.lines()).skip_while(|(_, line)| *line != TITLE).skip(1);
    let rows = lines.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with('|'));
    let cells = rows.filter_map(|(number, row)| Some((number, row.trim_end_matches(" |").rsplit(" | ").next()?)));
    // The head and the line below it.
    cells.skip(2).collect()
}

/// Names in code marks that a test can have.
fn names(cell: &str) -> Vec<&str> {
    let marked = cell.split('`').skip(1).step_by(2);
    marked
        .filter(|name| {
            name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit())
        })
        .collect()
}

/// The functions of the tree.
fn functions(files: &[tree::SourceFile]) -> BTreeSet<&str> {
    let lines = files.iter().filter(|file| file.is_code()).flat_map(tree::SourceFile::lines);
    let heads = lines.filter_map(|(_, line)| {
        let line = line.trim_start();
        line.strip_prefix("fn ").or_else(|| line.strip_prefix("def "))
    });
    heads.filter_map(|rest| rest.split('(').next()).collect()
}

#[test]
fn every_fault_has_a_test() {
    let files = tree::text_files();
    let page = &files.iter().find(|file| file.path == PAGE).expect("the page is there").text;
    let (cells, functions) = (test_cells(page), functions(&files));
    assert!(cells.len() > 20, "{TITLE} has {} rows", cells.len());
    let mut wrong = Vec::new();
    for (number, cell) in cells {
        let names = names(cell);
        if names.is_empty() {
            wrong.push(format!("{PAGE}:{number}: no test is named"));
        }
        let missing = names.iter().filter(|name| !functions.contains(**name));
        wrong.extend(missing.map(|name| format!("{PAGE}:{number}: no function is named {name}")));
    }
    tree::none(&wrong);
}

#[test]
fn names_are_those_of_functions() {
    assert_eq!(names("`a_b`, stage `tools`, `signals.py`; `c_2`"), ["a_b", "c_2"]);
    let page = format!("{TITLE}\n\n| A | Test |\n|---|---|\n| x | `a_b` |\n## Next\n| y | `n_o` |\n");
    assert_eq!(test_cells(&page), [(5, "`a_b`")]);
}
