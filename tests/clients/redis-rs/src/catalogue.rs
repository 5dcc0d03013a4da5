//! Loads the catalogues, reads them back byte for byte, and meets every key in a SCAN.

use crate::harness::{Harness, Problem, equal};
use redis::{Commands, Connection};
use std::collections::{HashMap, HashSet};
use std::fs;

const WORDS: &str = "/usr/share/dict/american-english-insane";
const CHARACTERS: &str = "/usr/share/unicode/UnicodeData.txt";
const REGISTERS: &str = "/usr/share/iso-codes/json";

/// Commands of one pipeline.
pub const BATCH: usize = 10_000;

/// The words of the dictionary, each once, in its order.
pub fn words() -> Result<Vec<String>, Problem> {
    let text = fs::read_to_string(WORDS)?;
    let mut seen = HashSet::new();
    Ok(text.lines().filter(|word| seen.insert(*word)).map(str::to_string).collect())
}

/// Every catalogue as key and value.
fn rows() -> Result<Vec<(String, Vec<u8>)>, Problem> {
    let mut rows: Vec<(String, Vec<u8>)> = words()?
        .into_iter()
        .map(|word| {
            let reversed: String = word.chars().rev().collect();
            (format!("word:{word}"), reversed.into_bytes())
        })
        .collect();
    for line in fs::read_to_string(CHARACTERS)?.lines() {
        let (code, rest) = line.split_once(';').ok_or("a line without a code point")?;
        rows.push((format!("unicode:{code}"), rest.as_bytes().to_vec()));
    }
    for register in ["639-3", "3166-1", "3166-2", "4217", "15924"] {
        let text = fs::read_to_string(format!("{REGISTERS}/iso_{register}.json"))?;
        let whole: serde_json::Value = serde_json::from_str(&text)?;
        for (number, entry) in whole[register].as_array().ok_or("a register without entries")?.iter().enumerate() {
            rows.push((format!("iso:{register}:{number}"), serde_json::to_vec(entry)?));
        }
    }
    Ok(rows)
}

pub fn run(h: &Harness) {
    let rows = match rows() {
        Ok(rows) => rows,
        Err(problem) => return h.check("catalogue: the files are read", || Err(problem)),
    };
    let mut r = h.connection();
    h.check(&format!("catalogue: {} rows are stored", rows.len()), || {
        for batch in rows.chunks(BATCH) {
            let mut pipe = redis::pipe();
            for (key, value) in batch {
                pipe.set(key, value);
            }
            let replies: Vec<String> = pipe.query(&mut r)?;
            equal(replies.iter().filter(|reply| *reply == "OK").count(), batch.len())?;
        }
        equal(rows.len() > 600_000, true)?;
        equal(redis::cmd("DBSIZE").query::<usize>(&mut r)?, rows.len())
    });
    h.check("catalogue: pipelined GET gives every row back", || {
        for batch in rows.chunks(BATCH) {
            let mut pipe = redis::pipe();
            for (key, _) in batch {
                pipe.get(key);
            }
            let values: Vec<Vec<u8>> = pipe.query(&mut r)?;
            for ((key, expected), got) in batch.iter().zip(values) {
                if got != *expected {
                    return Err(format!("{key} differs").into());
                }
            }
        }
        Ok(())
    });
    h.check("catalogue: MGET in RESP2 gives every row back", || {
        let mut old = h.connection_resp2();
        for batch in rows.chunks(1000) {
            let keys: Vec<&str> = batch.iter().map(|(key, _)| key.as_str()).collect();
            let values: Vec<Vec<u8>> = old.mget(keys)?;
            equal(batch.iter().zip(&values).all(|((_, expected), got)| expected == got), true)?;
        }
        Ok(())
    });
    h.check("catalogue: SCAN meets every key", || {
        let seen = scan(&mut r, "*")?;
        equal(seen.len(), rows.len())?;
        equal(rows.iter().all(|(key, _)| seen.contains(key)), true)
    });
    h.check("catalogue: SCAN with MATCH", || {
        let expected: HashSet<String> =
            rows.iter().map(|(key, _)| key).filter(|key| key.starts_with("iso:3166-2:")).cloned().collect();
        equal(scan(&mut r, "iso:3166-2:*")?, expected)
    });
    h.check("catalogue: a row changed, copied and removed", || {
        let values: HashMap<&str, &[u8]> = rows.iter().map(|(k, v)| (k.as_str(), v.as_slice())).collect();
        let () = r.append("unicode:0041", "!")?;
        let got: Vec<u8> = r.get("unicode:0041")?;
        equal(got, [values["unicode:0041"], b"!"].concat())?;
        equal(r.copy::<_, _, _, bool>("unicode:0041", "letter A", redis::CopyOptions::default())?, true)?;
        equal(r.strlen::<_, usize>("letter A")?, values["unicode:0041"].len() + 1)?;
        equal(r.unlink::<_, usize>(&["letter A", "nothing"])?, 1)
    });
}

fn scan(r: &mut Connection, pattern: &str) -> Result<HashSet<String>, Problem> {
    let options = redis::ScanOptions::default().with_pattern(pattern).with_count(2000);
    let mut seen = HashSet::new();
    for key in r.scan_options::<String>(options)? {
        seen.insert(key?);
    }
    Ok(seen)
}
