//! Faults that were found in the field, and guarantees of security: each row of their tables names a test that exists.

use crate::tree;
use std::collections::BTreeSet;

/// Pages, the titles of their tables, and the rows that these have at least.
const TABLES: [(&str, &str, usize); 2] =
    [("docs/reliability.md", "## Found in the field", 20), ("SECURITY.md", "### Guarantees", 12)];

/// The test cells of the table's rows, with the numbers of their lines.
fn test_cells<'a>(page: &'a str, title: &str) -> Vec<(usize, &'a str)> {
    let lines = (1..).zip(page.lines()).skip_while(|(_, line)| *line != title).skip(1);
    let rows = lines.take_while(|(_, line)| !line.starts_with("##")).filter(|(_, line)| line.starts_with('|'));
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
fn every_row_has_a_test() {
    let files = tree::text_files();
    let functions = functions(&files);
    let mut wrong = Vec::new();
    for (path, title, rows_min) in TABLES {
        let page = &files.iter().find(|file| file.path == path).expect("the page is there").text;
        let cells = test_cells(page, title);
        assert!(cells.len() > rows_min, "{title} has {} rows", cells.len());
        for (number, cell) in cells {
            let names = names(cell);
            if names.is_empty() {
                wrong.push(format!("{path}:{number}: no test is named"));
            }
            let missing = names.iter().filter(|name| !functions.contains(**name));
            wrong.extend(missing.map(|name| format!("{path}:{number}: no function is named {name}")));
        }
    }
    tree::none(&wrong);
}

#[test]
fn names_are_those_of_functions() {
    assert_eq!(names("`a_b`, stage `tools`, `signals.py`; `c_2`"), ["a_b", "c_2"]);
    let page = "## Title\n\n| A | Test |\n|---|---|\n| x | `a_b` |\n## Next\n| y | `n_o` |\n";
    assert_eq!(test_cells(page, "## Title"), [(5, "`a_b`")]);
}
