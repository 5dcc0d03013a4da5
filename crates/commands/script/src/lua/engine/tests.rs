//! Scripts over a host that answers commands without a server: what they return, what they may not do, what they may
//! not use up.

use super::*;
use crate::lua::Called;
use command::Args;
use proto::{Protocol, ReplyBuffer};

/// Answers ECHO with its argument, PANIC with a panic, LACK with the end of the script, and everything else with an
/// error.
pub struct Echo {
    answer: ReplyBuffer,
    pub reply: ReplyBuffer,
    logged: Vec<u8>,
    ticks: u32,
    pub ticks_max: u32,
}

impl Echo {
    pub fn new() -> Self {
        let [answer, reply] = [(); 2].map(|()| ReplyBuffer::new(Protocol::Resp2));
        Self { answer, reply, logged: Vec::new(), ticks: 0, ticks_max: u32::MAX }
    }
}

impl Host for Echo {
    fn call(&mut self, args: Args<'_>) -> Called {
        let len = self.answer.len();
        self.answer.advance(len);
        match &args[0] {
            b"ECHO" => self.answer.bulk(&args[1]),
            b"PANIC" => panic!("a bug in a command"),
            b"LACK" => return Called::Over,
            _ => self.answer.error("ERR unknown"),
        }
        Called::Answered
    }

    fn answer(&mut self) -> &[u8] {
        self.answer.as_contiguous().unwrap_or_default()
    }

    fn set_protocol(&mut self, protocol: Protocol) {
        self.answer.set_protocol(protocol);
    }

    fn protocol(&self) -> Protocol {
        self.answer.protocol()
    }

    fn reply(&mut self) -> &mut ReplyBuffer {
        &mut self.reply
    }

    fn may_run(&mut self, _: Args<'_>) -> Option<bool> {
        Some(true)
    }

    fn log(&mut self, _: u8, text: &[u8]) {
        self.logged = text.to_vec();
    }

    fn tick(&mut self) -> Result<(), &'static str> {
        self.ticks += 1;
        if self.ticks < self.ticks_max { Ok(()) } else { Err("too long") }
    }
}

pub fn run_with(engine: &mut Engine, host: &mut Echo, text: &str) -> Result<String, Failure> {
    let function = engine.compile(text.as_bytes())?;
    let result = engine.run(function, &mut [&b"k1"[..]].into_iter(), &mut [&b"a1"[..], b"a2"].into_iter(), host);
    engine.forget(function);
    result.map(|()| String::from_utf8_lossy(host.reply.as_contiguous().unwrap_or_default()).into_owned())
}

pub fn run(text: &str) -> Result<String, Failure> {
    run_with(&mut engine(), &mut Echo::new(), text)
}

fn engine() -> Engine {
    Engine::new(16 << 20).expect("16 MB are enough for a state")
}

pub fn raised(text: &str) -> String {
    match run(text) {
        Err(Failure::Raised(text) | Failure::Answered(text)) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("{text} gave {other:?}"),
    }
}

#[test]
fn keys_and_arguments_are_globals() {
    let reply = run("return {KEYS[1], ARGV[2], #KEYS, #ARGV}").unwrap();
    assert_eq!(reply, "*4\r\n$2\r\nk1\r\n$2\r\na2\r\n:1\r\n:2\r\n");
}

/// They are made when a script asks for them, whichever way, and are its own.
#[test]
fn keys_and_arguments_are_there_when_a_script_looks() {
    const TEXTS: &[(&str, &str)] = &[
        ("return", "$-1\r\n"),
        ("return #ARGV", ":2\r\n"),
        ("KEYS[1], KEYS.more = 'changed', 1 return #KEYS", ":1\r\n"),
        ("return KEYS[1]", "$2\r\nk1\r\n"),
        ("setmetatable(KEYS, {__index = function() return 7 end}) return KEYS[9]", ":7\r\n"),
        ("return KEYS[9]", "$-1\r\n"),
        ("return rawget(_G, 'KEYS')", "*1\r\n$2\r\nk1\r\n"),
        ("local n = 0 for k in pairs(_G) do if k == 'KEYS' or k == 'ARGV' then n = n + 1 end end return n", ":2\r\n"),
        ("local k, n = nil, 0 repeat k = next(_G, k) if k == 'ARGV' then n = n + 1 end until not k return n", ":1\r\n"),
        (
            "return {KEYS == KEYS and 1, _G.ARGV == ARGV and 1, loadstring('return #ARGV')()}",
            "*3\r\n:1\r\n:1\r\n:2\r\n",
        ),
        ("return pcall(function() KEYS = 1 end) and 1 or #KEYS", ":1\r\n"),
        ("return select(2, pcall(function() return keys end)):match('nonexistent') and 1", ":1\r\n"),
        ("return coroutine.wrap(function() return ARGV[1] end)()", "$2\r\na1\r\n"),
    ];
    let (mut engine, mut host) = (engine(), Echo::new());
    let functions: Vec<Function> =
        TEXTS.iter().map(|(text, _)| engine.compile(text.as_bytes()).expect("it compiles")).collect();
    // The second time it is known what each asks for.
    for _ in 0..2 {
        for ((text, expected), function) in TEXTS.iter().zip(&functions) {
            let (mut keys, mut args) = ([&b"k1"[..]].into_iter(), [&b"a1"[..], b"a2"].into_iter());
            assert!(engine.run(*function, &mut keys, &mut args, &mut host).is_ok(), "{text}");
            let reply = String::from_utf8_lossy(host.reply.as_contiguous().unwrap_or_default()).into_owned();
            assert_eq!(reply, *expected, "{text}");
            host.reply.advance(reply.len());
        }
    }
}

#[test]
fn commands_answer_and_raise() {
    assert_eq!(run("return redis.call('ECHO', 'x')").unwrap(), "$1\r\nx\r\n");
    assert_eq!(run("return server.call('ECHO', 1.5)").unwrap(), "$3\r\n1.5\r\n");
    assert_eq!(run("return redis.pcall('NO')").unwrap(), "-ERR unknown\r\n");
    let Err(Failure::Answered(text)) = run("\n\nredis.call('NO')") else {
        panic!("an error of a command is counted already")
    };
    assert_eq!(String::from_utf8_lossy(&text), "ERR unknown script: on @user_script:3.");
    assert_eq!(run("local _, text = pcall(redis.call, 'NO') return text").unwrap(), "$11\r\nERR unknown\r\n");
}

/// Published escapes from this sandbox, and what each gives here.
#[test]
fn escapes_end_in_errors() {
    // CVE-2022-0543: libraries that reach the machine.
    for name in
        ["package", "io", "debug", "require", "dofile", "loadfile", "module", "getfenv", "setfenv", "newproxy", "print"]
    {
        let text = raised(&format!("return {name}"));
        assert!(text.contains(&format!("nonexistent global variable '{name}'")), "{name}: {text}");
    }
    assert_eq!(run("local n = 0 for _ in pairs(os) do n = n + 1 end return n").unwrap(), ":1\r\n");
    // CVE-2022-24735: what a script leaves for scripts of others.
    for text in [
        "redis.call = 1",
        "rawset(redis, 'call', 1)",
        "string.rep = 1",
        "_G.x = 1",
        "x = 1",
        "rawset(_G, 'x', 1)",
        "table.insert(redis, 1)",
        "table.remove(redis)",
        "table.sort(redis)",
        "setmetatable(_G, nil)",
        "setmetatable(redis, {})",
        "getmetatable(_G).__index = 1",
        "KEYS = 1",
    ] {
        assert!(raised(text).contains("Attempt to modify a readonly table"), "{text}");
    }
    // CVE-2025-46818: metatables of basic types.
    for text in ["getmetatable('').__index = 1", "getmetatable('').x = 1", "rawset(getmetatable(''), '__index', 1)"] {
        assert!(raised(text).contains("Attempt to modify a readonly table"), "{text}");
    }
    // Compiled code.
    let text = "local f, why = loadstring(string.dump(function() return 1 end)) return {tostring(f), why}";
    assert!(run(text).unwrap().contains("unexpected symbol"));
    let text = "local d = string.dump(function() return 1 end) local n = 0 \
                local f, why = load(function() n = n + 1 if n == 1 then return d end end) return why";
    assert!(run(text).unwrap().contains("unexpected symbol"));
}

/// CVE-2025-46817: a count that overflows.
#[test]
fn unpack_refuses_counts_that_do_not_fit() {
    for text in [
        "unpack({1}, 1, 2147483647)",
        "unpack({}, -2147483648, 2147483647)",
        "unpack({}, 0, 2147483647)",
        "unpack({}, 1, 1e8)",
    ] {
        assert!(raised(text).contains("too many results to unpack"), "{text}");
    }
    assert_eq!(run("return {unpack({1, 2, 3}, 2, 3)}").unwrap(), "*2\r\n:2\r\n:3\r\n");
}

/// CVE-2025-49844: the parser's name of a chunk is collected while it parses.
#[test]
fn names_of_chunks_outlive_the_parser() {
    let text = "local t = 'local a = {' .. string.rep('{1},', 500) .. '} return a' \
                for i = 1, 300 do loadstring(t, 'n' .. i .. '\\0x') \
                collectgarbage() end return 1";
    assert_eq!(run(text).unwrap(), ":1\r\n");
}

/// CVE-2021-32626, CVE-2022-24834 and their relatives: depth and size.
#[test]
fn depth_and_size_end_in_errors() {
    assert!(raised("local function f() return 1 + f() end return f()").contains("stack overflow"));
    assert!(raised("return cjson.decode(string.rep('[', 100000))").contains("too many nested"));
    assert!(raised("local t = {} for _ = 1, 5000 do t = {t} end return cjson.encode(t)").contains("excessive nesting"));
    assert!(run("local t = {} t[1] = t return t").unwrap().contains("-ERR reached lua stack limit"));
    assert!(run("local t = {} t[1] = t return #cmsgpack.pack(t)").unwrap().starts_with(':'));
    assert!(raised("return cmsgpack.unpack(string.rep('\\145', 100000))").contains("stack overflow"));
    assert!(raised("return string.rep('x', 1e10)").contains("not enough memory"));
}

#[test]
fn memory_is_limited_and_comes_back() {
    let mut engine = engine();
    for text in [
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local s = 'x' while true do s = s .. s end",
        "return table.concat({string.rep('x', 9e6), string.rep('y', 9e6)})",
    ] {
        assert_eq!(run_with(&mut engine, &mut Echo::new(), text), Err(Failure::Memory), "{text}");
        assert_eq!(run_with(&mut engine, &mut Echo::new(), "return 1"), Ok(":1\r\n".to_owned()), "after {text}");
    }
}

#[test]
fn an_ended_script_catches_nothing() {
    for text in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "local function f() while true do pcall(f) end end f()",
        "while true do coroutine.wrap(function() while true do end end)() end",
        "while true do pcall(coroutine.wrap(function() while true do end end)) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
    ] {
        let mut host = Echo { ticks_max: 3, ..Echo::new() };
        assert_eq!(run_with(&mut engine(), &mut host, text), Err(Failure::Over), "{text}");
    }
}

#[test]
fn a_command_that_lacks_a_row_ends_the_script() {
    for text in ["redis.call('LACK')", "pcall(redis.call, 'LACK') return 1", "while true do redis.pcall('LACK') end"] {
        assert_eq!(run(text), Err(Failure::Over), "{text}");
    }
}

#[test]
fn a_panic_of_a_command_is_not_caught_by_the_script() {
    let result = std::panic::catch_unwind(|| run("pcall(redis.call, 'PANIC') return 1"));
    let payload = result.expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"a bug in a command"));
}

#[test]
fn settings_of_cjson_end_with_their_script() {
    let mut engine = engine();
    let mut both = |text: &str| run_with(&mut engine, &mut Echo::new(), text);
    assert_eq!(both("cjson.encode_number_precision(3) return cjson.encode(3.14159)"), Ok("$4\r\n3.14\r\n".to_owned()));
    assert_eq!(both("return cjson.encode(3.14159)"), Ok("$7\r\n3.14159\r\n".to_owned()));
}

#[test]
fn lines_are_logged() {
    let mut host = Echo::new();
    run_with(&mut engine(), &mut host, "redis.log(redis.LOG_WARNING, 'a', 1, {}, 'b')").unwrap();
    assert_eq!(host.logged, b"a 1 b");
}
