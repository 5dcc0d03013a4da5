//! The functions of the global `redis`, which is also `server`.

use crate::lua::install::register;
use crate::lua::number::{to_integer, write_argument};
use crate::lua::stack::{Kind, Native, Raise, Stack};
use crate::lua::{Called, replies};
use command::Args;
use proto::Protocol;

const FUNCTIONS: &[(&str, Native)] = &[
    ("call", |stack| run_command(stack, true)),
    ("pcall", |stack| run_command(stack, false)),
    ("error_reply", error_reply),
    ("status_reply", status_reply),
    ("sha1hex", sha1hex),
    ("log", log),
    ("setresp", set_protocol),
    ("set_repl", set_replication),
    ("replicate_commands", |stack| answer(stack, true)),
    ("breakpoint", |stack| answer(stack, false)),
    ("debug", |_| Ok(0)),
    ("acl_check_cmd", check_command),
];

/// Numbers that scripts compare with.
const NUMBERS: &[(&str, u32)] = &[
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
    ("REPL_NONE", 0),
    ("REPL_AOF", 1),
    ("REPL_SLAVE", 2),
    ("REPL_REPLICA", 2),
    ("REPL_ALL", 3),
    ("REDIS_VERSION_NUM", 0x0007_0204),
    ("VALKEY_VERSION_NUM", 0x0009_0102),
];

/// The versions whose scripts run here.
const TEXTS: &[(&str, &str)] = &[("REDIS_VERSION", "7.2.4"), ("VALKEY_VERSION", "9.1.2"), ("SERVER_NAME", "valkey")];

/// Pushes the table.
pub fn push(stack: &mut Stack) {
    stack.push_table(0, 32);
    register(stack, FUNCTIONS);
    for (name, number) in NUMBERS {
        stack.push_number(f64::from(*number));
        stack.raw_set_field(-2, name);
    }
    for (name, text) in TEXTS {
        stack.push_str(text);
        stack.raw_set_field(-2, name);
    }
}

fn answer(stack: &mut Stack, value: bool) -> Result<i32, Raise> {
    stack.push_boolean(value);
    Ok(1)
}

/// Pushes the table of an error.
fn push_error(stack: &mut Stack, text: &str) -> Raise {
    stack.push_table(0, 1);
    stack.push_str(text);
    stack.raw_set_field(-2, "err");
    Raise::Top
}

/// `redis.call`, and `redis.pcall`, which gives errors as values.
fn run_command(stack: &mut Stack, raises: bool) -> Result<i32, Raise> {
    if let Err(text) = gather(stack) {
        let raise = push_error(stack, text);
        return if raises { Err(raise) } else { Ok(1) };
    }
    stack.spend_bytes(stack.scratch_len())?;
    let called = stack.with_host(|home, host| host.call(Args::new(&home.scratch, &home.spans, &[])));
    stack.clear_scratch();
    if called != Some(Called::Answered) {
        stack.with_home(|home| home.is_over = true);
        return Err(Raise::Located(c"the script is over"));
    }
    let Some(reply) = stack.answer() else { return Ok(0) };
    replies::push_value(stack, reply, &mut 0);
    if raises && reply.first() == Some(&b'-') { Err(Raise::Top) } else { Ok(1) }
}

/// Copies the arguments of a command to the home, and removes them from the stack.
fn gather(stack: &mut Stack) -> Result<(), &'static str> {
    let count = stack.top();
    if count == 0 {
        return Err("ERR Please specify at least one argument for this call");
    }
    stack.with_home(|home| {
        home.scratch.clear();
        home.spans.clear();
    });
    let mut fits = true;
    for index in 1..=count {
        if let Some(bytes) = stack.string(index) {
            fits &= stack.with_home(|home| home.add_argument(bytes));
        } else if stack.kind(index) == Kind::Number {
            let start = stack.scratch_len();
            write_argument(stack.number(index), &mut |part| stack.write(part));
            fits &= stack.with_home(|home| home.end_argument(start));
        } else {
            stack.clear_scratch();
            return Err("ERR Command arguments must be strings or integers");
        }
    }
    stack.set_top(0);
    if fits { Ok(()) } else { Err("ERR Command arguments are longer than 2 GB") }
}

fn error_reply(stack: &mut Stack) -> Result<i32, Raise> {
    let Some(text) = only_string(stack) else { return wrong_arguments(stack) };
    // A text without a blank is no code and message, but a message.
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let (code, message) = match text.iter().position(|byte| *byte == b' ') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (&b"ERR"[..], text),
    };
    let message = message.trim_ascii_newlines();
    stack.write(code);
    stack.write(b" ");
    stack.write(message);
    stack.push_table(0, 1);
    stack.push_scratch();
    stack.raw_set_field(-2, "err");
    Ok(1)
}

trait TrimNewlines {
    fn trim_ascii_newlines(&self) -> &[u8];
}

impl TrimNewlines for [u8] {
    fn trim_ascii_newlines(&self) -> &[u8] {
        let is_newline = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let start = self.iter().position(|byte| !is_newline(byte)).unwrap_or(self.len());
        let end = self.iter().rposition(|byte| !is_newline(byte)).map_or(start, |last| last + 1);
        &self[start..end]
    }
}

fn status_reply(stack: &mut Stack) -> Result<i32, Raise> {
    if only_string(stack).is_none() {
        return wrong_arguments(stack);
    }
    stack.push_table(0, 1);
    stack.push_value(1);
    stack.raw_set_field(-2, "ok");
    Ok(1)
}

/// The argument, if it is a string and the only one.
fn only_string(stack: &Stack) -> Option<&[u8]> {
    if stack.top() == 1 { stack.string(1) } else { None }
}

fn wrong_arguments(stack: &mut Stack) -> Result<i32, Raise> {
    push_error(stack, "ERR wrong number or type of arguments");
    Ok(1)
}

fn sha1hex(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.top() != 1 {
        return Err(push_error(stack, "ERR wrong number of arguments"));
    }
    stack.spend_bytes(stack.len(1) * 4)?;
    let digest = crate::cache::sha1_hex(stack.text(1).unwrap_or_default());
    stack.push_bytes(&digest);
    Ok(1)
}

fn log(stack: &mut Stack) -> Result<i32, Raise> {
    let count = stack.top();
    if count < 2 {
        return Err(push_error(stack, "ERR server.log() requires two arguments or more."));
    }
    if !stack.is_numeric(1) {
        return Err(push_error(stack, "ERR First argument must be a number (log level)."));
    }
    let Some(level) = u8::try_from(to_integer(stack.number(1))).ok().filter(|level| *level <= 3) else {
        return Err(push_error(stack, "ERR Invalid log level."));
    };
    stack.clear_scratch();
    for index in 2..=count {
        if stack.text(index).is_some() {
            if index > 2 {
                stack.write(b" ");
            }
            stack.write(stack.string(index).unwrap_or_default());
        }
    }
    stack.with_host(|home, host| host.log(level, &home.scratch));
    stack.clear_scratch();
    Ok(0)
}

fn set_protocol(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.top() != 1 {
        return Err(push_error(stack, "ERR server.setresp() requires one argument."));
    }
    let protocol = match to_integer(stack.number(1)) {
        2 => Protocol::Resp2,
        3 => Protocol::Resp3,
        _ => return Err(push_error(stack, "ERR RESP version must be 2 or 3.")),
    };
    stack.with_host(|_, host| host.set_protocol(protocol));
    Ok(0)
}

/// Changes are always recorded: the flags are looked at, and nothing follows from them.
fn set_replication(stack: &mut Stack) -> Result<i32, Raise> {
    if stack.top() != 1 {
        return Err(push_error(stack, "ERR server.set_repl() requires one argument."));
    }
    if to_integer(stack.number(1)) & !3 != 0 {
        let text = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(push_error(stack, text));
    }
    Ok(0)
}

fn check_command(stack: &mut Stack) -> Result<i32, Raise> {
    if let Err(text) = gather(stack) {
        return Err(push_error(stack, text));
    }
    let may_run = stack.with_host(|home, host| host.may_run(Args::new(&home.scratch, &home.spans, &[])));
    stack.clear_scratch();
    match may_run.flatten() {
        Some(may_run) => answer(stack, may_run),
        None => Err(push_error(stack, "ERR Invalid command passed to server.acl_check_cmd()")),
    }
}
