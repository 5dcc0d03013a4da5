//! Rules of users: the first line of the input is rules of ACL SETUSER, the rest is an ACL file. What is accepted is
//! described in a form that makes a user with the same description.
#![no_main]

use command::acl::{Defaults, Rules, Users, read_users, write_users};
use command::{CommandTable, redis};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

fuzz_target!(|input: &[u8]| {
    static TABLE: OnceLock<CommandTable> = OnceLock::new();
    let table = TABLE.get_or_init(|| CommandTable::new(redis::FAMILIES));
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (line, file) = (&input[..end], input.get(end + 1..).unwrap_or_default());

    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    if let Ok(rules) = Rules::new(false).with(&words, table, Defaults::default()) {
        let text = rules.describe();
        let words: Vec<&[u8]> = text.split(|byte| *byte == b' ').collect();
        let again = Rules::new(false).with(&words, table, Defaults::default()).map(|again| again.describe());
        assert_eq!(again.as_deref(), Ok(&*text), "{:?}", String::from_utf8_lossy(&text));
    }

    if let Ok(read) = read_users(file, "f", table, Defaults::default()) {
        let users = Users::default();
        users.replace_all(read);
        let text = write_users(&users.all());
        let again = read_users(&text, "f", table, Defaults::default());
        let again = again.unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&text)));
        users.replace_all(again);
        assert_eq!(write_users(&users.all()), text);
    }
});
