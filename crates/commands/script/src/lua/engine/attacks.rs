//! Published attacks on scripts of Redis and Valkey that the other tests of the engine do not make: what each of them
//! gives here.

use super::tests::{raised, run};
use super::*;

/// Attacks that end in an error: the number of each, the script, and what the error says.
const REFUSED: &[(&str, &str, &str)] = &[
    ("CVE-2024-46981", "local p = newproxy(true)", "nonexistent global variable 'newproxy'"),
    ("CVE-2022-24736", "error(nil)", "nil"),
    ("CVE-2022-24736", "redis.call({})", "Command arguments must be strings or integers"),
    ("CVE-2020-14147", "return struct.pack('>I2147483648', '10')", "integral size overflow"),
    ("CVE-2018-11219", "return struct.unpack('f', '1234', 2147483647)", "data string too short"),
    ("CVE-2018-11218", "return cmsgpack.unpack((string.char(0x91)):rep(100000))", "stack overflow"),
];

/// Attacks that end in a reply: the number of each, the script, and the reply.
const ANSWERED: &[(&str, &str, &str)] = &[
    ("CVE-2024-31449", "return bit.tohex(65535, -2147483648)", "$8\r\n0000FFFF\r\n"),
    ("CVE-2025-67733", r#"return redis.error_reply("x\r\n+OK\r\n$1\r\na")"#, "-ERR x  +OK  $1  a\r\n"),
    ("CVE-2025-67733", r#"return redis.status_reply("x\r\n-ERR")"#, "+x  -ERR\r\n"),
    ("CVE-2015-4335", r#"return tostring(loadstring("\27Lua"))"#, "$3\r\nnil\r\n"),
];

#[test]
fn attacks_end_in_errors_and_replies() {
    for (number, text, error) in REFUSED {
        let raised = raised(text);
        assert!(raised.contains(error), "{number}: {raised}");
    }
    for (number, text, reply) in ANSWERED {
        assert_eq!(run(text).as_deref(), Ok(*reply), "{number}");
    }
}

/// CVE-2025-46819: the level of a long bracket is counted without a limit.
#[test]
fn long_brackets_end_in_errors() {
    for text in [format!("return [{}", "=".repeat(1 << 20)), format!("return [==[]{}", "=".repeat(1 << 20))] {
        assert!(matches!(run(&text), Err(Failure::Raised(_))));
    }
}
