//! What a tool says: lines for people, or with `--json` one object per line.
//!
//! ```text
//! {"event":"message", "tool":"check", "level":"good", "text":"MANIFEST: 2 checkpoints, ..."}
//! {"event":"result",  "tool":"check", "exit":0, "verdict":"good"}
//! {"event":"error",   "tool":"check", "exit":2, "error":"data: in use by process 4711; ...", "causes":[]}
//! ```
//!
//! J1. Every line of standard output is one object with `event` and `tool`.
//! J2. The last line is the only `result` or `error`, and its `exit` is the exit code. A tool that was killed prints
//!     none.
//! J3. Nothing is drawn or asked.
//!
//! Reference: docs/tools.md.

use clap::Args;
use serde_json::{Value, json};
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// Exit code: the tool failed.
const COULD_NOT: u8 = 2;

/// `--json` of a tool.
#[derive(Args, Clone, Copy, Debug)]
pub struct JsonArg {
    /// Prints one JSON object per line; the last one has the result or the error.
    #[arg(long)]
    json: bool,
}

impl JsonArg {
    /// How the tool of this name reports.
    pub fn report(self, tool: &'static str) -> Report {
        Report::new(tool, self.json)
    }
}

/// How a tool reports.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    tool: &'static str,
    is_json: bool,
}

impl Report {
    /// How the tool of this name reports.
    pub fn new(tool: &'static str, is_json: bool) -> Self {
        Self { tool, is_json }
    }

    /// Whether it reports in JSON.
    pub fn is_json(self) -> bool {
        self.is_json
    }

    /// Says a line.
    pub fn say(self, line: &str) {
        match self.is_json {
            true => self.message("info", line),
            false => print(line),
        }
    }

    /// Says something of a level, such as `note`. For people, the level is part of the line.
    pub fn message(self, level: &str, text: &str) {
        match self.is_json {
            true => self.event("message", json!({ "level": level, "text": text })),
            false => print(text),
        }
    }

    /// Prints an event with these fields, in JSON alone.
    pub fn event(self, event: &str, fields: Value) {
        if self.is_json {
            print(&line(self.tool, event, fields));
        }
    }

    /// Prints the result: these lines, or these fields. Gives the exit code.
    pub fn result(self, exit: u8, lines: &[String], fields: Value) -> ExitCode {
        if self.is_json {
            print(&result(self.tool, exit, fields));
        } else {
            lines.iter().for_each(|line| print(line));
        }
        ExitCode::from(exit)
    }

    /// Reports why the tool failed.
    pub fn failed(self, error: &dyn Error) -> ExitCode {
        self.failed_with(COULD_NOT, error)
    }

    /// Reports why the tool failed, with an exit code of its own.
    pub fn failed_with(self, exit: u8, error: &dyn Error) -> ExitCode {
        let causes = vfs::further_causes(error);
        if self.is_json {
            print(&failure(self.tool, exit, &error.to_string(), &causes));
        } else {
            eprintln!("onggi {}: {error}", self.tool);
            causes.iter().for_each(|cause| eprintln!("  because: {cause}"));
        }
        ExitCode::from(exit)
    }
}

/// Reports why a tool without `--json` failed.
pub fn failed(tool: &'static str, error: &dyn Error) -> ExitCode {
    Report::new(tool, false).failed(error)
}

/// Reports an error of the command line as the tool would report it, if the command line has `--json`. `None` if it has
/// not, or asks for help.
pub fn refused(words: &[std::ffi::OsString], error: &clap::Error) -> Option<ExitCode> {
    // The replies of a server are what `cli` prints as JSON.
    let tool = words.get(1)?.to_str().filter(|tool| *tool != "cli" && *tool != "serve")?;
    let is_json = words.iter().any(|word| word == "--json");
    (is_json && error.use_stderr()).then(|| {
        let text = error.to_string();
        let text = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        print(&failure(tool, COULD_NOT, text, &[]));
        ExitCode::from(COULD_NOT)
    })
}

fn result(tool: &str, exit: u8, mut fields: Value) -> String {
    if let Value::Object(fields) = &mut fields {
        fields.insert("exit".to_owned(), exit.into());
    }
    line(tool, "result", fields)
}

fn failure(tool: &str, exit: u8, error: &str, causes: &[String]) -> String {
    line(tool, "error", json!({ "exit": exit, "error": error, "causes": causes }))
}

fn line(tool: &str, event: &str, fields: Value) -> String {
    let mut object = json!({ "event": event, "tool": tool });
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    object.to_string()
}

/// Prints a line to standard output. A closed pipe does not affect the work.
fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_objects_with_the_exit_code() {
        let parsed = |text: String| serde_json::from_str::<Value>(&text).expect("an object");
        let done = parsed(result("check", 1, json!({ "verdict": "damaged" })));
        assert_eq!(done, json!({ "event": "result", "tool": "check", "exit": 1, "verdict": "damaged" }));
        let failed = parsed(failure("backup", 2, "a \"b\"\nc", &["d".to_owned()]));
        let wanted = json!({ "event": "error", "tool": "backup", "exit": 2, "error": "a \"b\"\nc", "causes": ["d"] });
        assert_eq!(failed, wanted);
    }
}
