//! `onggi config`: examines configurations without starting a server.

mod arcus;

use crate::report::{JsonArg, Report};
use clap::{Args, Subcommand};
use config::{CommandLine, FileArgument, Given, LoadErrors, Loaded, document, load};
use serde_json::json;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// The name in what it prints as JSON.
const TOOL: &str = "config";

/// Checks a configuration file, or prints the sample file and the manual page.
#[derive(Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Reads a configuration as `onggi serve` would, and lists errors and directives without effect. Of a
    /// `default_engine.conf` of ARCUS it prints the directives that stand for its settings.
    Check {
        /// The file, or - for standard input; then options as for `onggi serve`, such as --port 7000.
        #[arg(value_name = "FILE|OPTION", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
        #[command(flatten)]
        json: JsonArg,
    },
    /// Prints a file with every directive, commented out at its default.
    Sample,
    /// Prints the manual page of all directives, in Markdown.
    Docs,
}

/// Runs the subcommand. Exits with status 1 for a configuration that no server would start with.
pub fn run(args: ConfigArgs) -> ExitCode {
    match args.action {
        Action::Check { arguments, json } => check(arguments, json),
        Action::Sample => print(&document::sample()),
        Action::Docs => print(&document::manual()),
    }
}

/// What a look at a configuration has found.
#[derive(Default)]
struct Found {
    warnings: Vec<String>,
    errors: Vec<String>,
    /// The directives for a file of ARCUS.
    directives: Option<Vec<(&'static str, String)>>,
}

impl Found {
    fn take(&mut self, loaded: Result<Loaded, LoadErrors>) {
        match loaded {
            Ok(loaded) => self.warnings.extend(loaded.warnings.iter().map(ToString::to_string)),
            Err(errors) => self.errors.extend(errors.0.iter().map(ToString::to_string)),
        }
    }

    /// Tells it all. The exit code is 1 if no server would start.
    fn tell(self, name: &str, report: Report) -> ExitCode {
        let Self { warnings, errors, directives } = self;
        if report.is_json() {
            warnings.iter().for_each(|warning| report.message("warning", warning));
            let directives: Option<Vec<_>> =
                directives.map(|all| all.iter().map(|(name, value)| json!([name, value])).collect());
            let fields = json!({ "is_valid": errors.is_empty(), "errors": errors, "directives": directives });
            return report.result(u8::from(!errors.is_empty()), &[], fields);
        }
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
        if !errors.is_empty() {
            errors.iter().for_each(|error| eprintln!("{error}"));
            return ExitCode::FAILURE;
        }
        let Some(directives) = directives else { return print(&format!("{name}: a server would start with this\n")) };
        let lines: String = directives.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
        print(&format!("# {name} is a configuration of ARCUS; a server would start with these:\n{lines}"))
    }
}

fn check(mut arguments: Vec<OsString>, json: JsonArg) -> ExitCode {
    // After the file it is read as an option of the server, which has none of that name.
    let count = arguments.len();
    arguments.retain(|argument| argument != "--json");
    let report = if arguments.len() < count { Report::new(TOOL, true) } else { json.report(TOOL) };
    let (line, mut found) = (CommandLine::parse(arguments), Found::default());
    let line = match line {
        Ok(line) => line,
        Err(errors) => {
            found.take(Err(errors));
            return found.tell("command line", report);
        }
    };
    let name = match &line.file {
        Some(FileArgument::Path(path)) => path.display().to_string(),
        Some(FileArgument::Stdin) => "standard input".to_owned(),
        None => "command line".to_owned(),
    };
    if let Some(FileArgument::Path(path)) = &line.file
        && let Ok(bytes) = vfs::read_file(&vfs::RealFs, path, arcus::FILE_BYTES_MAX)
        && let Ok(text) = String::from_utf8(bytes)
        && arcus::is_one(&text)
    {
        return check_arcus(&name, &text, &line).tell(&name, report);
    }
    found.take(load(&line, &vfs::RealFs, &mut std::io::stdin().lock()));
    found.tell(&name, report)
}

/// The directives for a file of ARCUS, after a look at whether a server starts with them and the options.
fn check_arcus(name: &str, text: &str, line: &CommandLine) -> Found {
    let translated = arcus::translate(text);
    let named = |texts: Vec<String>| texts.iter().map(|text| format!("{name}: {text}")).collect();
    let (warnings, errors) = (named(translated.warnings), named(translated.errors));
    let mut found = Found { warnings, errors, directives: None };
    if !found.errors.is_empty() {
        return found;
    }
    let given = |name: &str, value: &str| {
        let words = if value == "\"\"" { vec![Vec::new()] } else { vec![value.as_bytes().to_vec()] };
        Given { name: name.as_bytes().to_vec(), words }
    };
    let directives = translated.directives.iter().map(|(name, value)| given(name, value));
    let others = line.options.iter().map(|option| Given { name: option.name.clone(), words: option.words.clone() });
    let options = CommandLine { file: None, options: directives.chain(others).collect() };
    found.take(load(&options, &vfs::RealFs, &mut std::io::empty()));
    found.directives = Some(translated.directives);
    found
}

/// Writes to standard output; a closed pipe, as `head` leaves it, causes no panic.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
