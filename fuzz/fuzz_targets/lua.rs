//! Lua sources: scripts and, if the first byte is odd, libraries of functions. Every source ends within its memory and
//! steps, and what it has left behind changes nothing for the script after it.
#![no_main]

use command::Args;
use libfuzzer_sys::fuzz_target;
use proto::{Protocol, ReplyBuffer};
use script::lua::{Called, Engine, Failure, Host};
use std::cell::RefCell;

/// Memory of the state.
const BYTES_MAX: usize = 4 << 20;

/// A source ends after this many looks at the time.
const TICKS_MAX: u32 = 20;

/// Answers every command with its last argument.
struct Echo {
    answer: ReplyBuffer,
    reply: ReplyBuffer,
    ticks: u32,
}

impl Echo {
    fn new() -> Self {
        let [answer, reply] = [(); 2].map(|()| ReplyBuffer::new(Protocol::Resp2));
        Self { answer, reply, ticks: 0 }
    }
}

impl Host for Echo {
    fn call(&mut self, args: Args<'_>) -> Called {
        let len = self.answer.len();
        self.answer.advance(len);
        self.answer.bulk(&args[args.len() - 1]);
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

    fn log(&mut self, _: u8, _: &[u8]) {}

    fn tick(&mut self) -> Result<(), &'static str> {
        self.ticks += 1;
        if self.ticks < TICKS_MAX { Ok(()) } else { Err("too long") }
    }
}

/// Runs a script, and gives its reply.
fn run(engine: &mut Engine, text: &[u8]) -> Result<Vec<u8>, Failure> {
    let function = engine.compile(text)?;
    let mut host = Echo::new();
    let keys = [&b"key"[..]];
    let result = engine.run(function, &mut keys.into_iter(), &mut keys.into_iter(), &mut host);
    engine.forget(function);
    result.map(|()| host.reply.as_contiguous().unwrap_or_default().to_vec())
}

const PROBE: &[u8] = b"local n = 0 for _ in pairs(_G) do n = n + 1 end \
    return {n, redis.call('ECHO', KEYS[1]), ('x'):rep(3), cjson.encode({1}), tostring(getmetatable('').x)}";

fuzz_target!(|input: &[u8]| {
    // One state for all sources, as a worker has.
    thread_local! {
        static STATE: RefCell<Option<(Engine, Vec<u8>)>> = const { RefCell::new(None) };
    }
    let Some((first, text)) = input.split_first() else { return };
    STATE.with_borrow_mut(|state| {
        let (engine, expected) = state.get_or_insert_with(|| {
            let mut engine = Engine::new(BYTES_MAX).expect("4 MB are enough for a state");
            let expected = run(&mut engine, PROBE).expect("it needs little");
            (engine, expected)
        });
        if first % 2 == 0 {
            let _ = run(engine, text);
        } else if let Ok(Ok(registered)) = engine.load_library(text, &mut Echo::new()) {
            registered.into_iter().for_each(|registered| engine.forget(registered.function));
        }
        assert!(engine.used_bytes() <= BYTES_MAX);
        assert_eq!(run(engine, PROBE).as_ref(), Ok(&*expected));
    });
});
