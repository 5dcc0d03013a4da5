//! Which reads INFO counts as hits and misses.

#[expect(dead_code, reason = "transcripts and settings are for the other tests")]
mod support;

use proto::Protocol;
use support::{Connection, Fetching};

/// Every line of `testdata/hits.txt`.
#[test]
fn hits_and_misses_are_counted_as_in_valkey() {
    let mut connection = Connection::new(Protocol::Resp2, Fetching::Never);
    connection.run(&["SET", "a", "5"]);
    let text = include_str!("../testdata/hits.txt");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (command, counts) = line.split_once(" : ").expect("a command and its counts");
        let words: Vec<&str> = command.split(' ').map(|word| if word == "''" { "" } else { word }).collect();
        connection.take_counts();
        connection.run(&words);
        let (hits, misses) = connection.take_counts();
        assert_eq!(format!("{hits} {misses}"), counts, "{command}");
    }
}
