//! `onggi config`: examines configurations without starting a server.

mod arcus;

use clap::{Args, Subcommand};
use config::{CommandLine, FileArgument, Given, document, load};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

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
    },
    /// Prints a file with every directive, commented out at its default.
    Sample,
    /// Prints the manual page of all directives, in Markdown.
    Docs,
}

/// Runs the subcommand. Exits with status 1 for a configuration that no server would start with.
pub fn run(args: ConfigArgs) -> ExitCode {
    match args.action {
        Action::Check { arguments } => check(arguments),
        Action::Sample => print(&document::sample()),
        Action::Docs => print(&document::manual()),
    }
}

fn check(arguments: Vec<OsString>) -> ExitCode {
    let line = CommandLine::parse(arguments);
    if let Ok(line) = &line
        && let Some(FileArgument::Path(path)) = &line.file
        && let Ok(bytes) = vfs::read_file(&vfs::RealFs, path, arcus::FILE_BYTES_MAX)
        && let Ok(text) = String::from_utf8(bytes)
        && arcus::is_one(&text)
    {
        return check_arcus(&path.display().to_string(), &text, line);
    }
    let loaded = line.and_then(|line| {
        let name = match &line.file {
            Some(FileArgument::Path(path)) => path.display().to_string(),
            Some(FileArgument::Stdin) => "standard input".to_owned(),
            None => "command line".to_owned(),
        };
        load(&line, &vfs::RealFs, &mut std::io::stdin().lock()).map(|loaded| (name, loaded))
    });
    match loaded {
        Ok((name, loaded)) => {
            for warning in loaded.warnings {
                eprintln!("warning: {warning}");
            }
            print(&format!("{name}: a server would start with this\n"))
        }
        Err(errors) => {
            eprintln!("{errors}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the directives for a file of ARCUS, after a look at whether a server starts with them and the options.
fn check_arcus(name: &str, text: &str, line: &CommandLine) -> ExitCode {
    let found = arcus::translate(text);
    found.warnings.iter().for_each(|warning| eprintln!("warning: {name}: {warning}"));
    if !found.errors.is_empty() {
        found.errors.iter().for_each(|error| eprintln!("{name}: {error}"));
        return ExitCode::FAILURE;
    }
    let given = |name: &str, value: &str| {
        let words = if value == "\"\"" { vec![Vec::new()] } else { vec![value.as_bytes().to_vec()] };
        Given { name: name.as_bytes().to_vec(), words }
    };
    let translated = found.directives.iter().map(|(name, value)| given(name, value));
    let others = line.options.iter().map(|option| Given { name: option.name.clone(), words: option.words.clone() });
    let options = CommandLine { file: None, options: translated.chain(others).collect() };
    match load(&options, &vfs::RealFs, &mut std::io::empty()) {
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
            let lines: String = found.directives.iter().map(|(name, value)| format!("{name} {value}\n")).collect();
            print(&format!("# {name} is a configuration of ARCUS; a server would start with these:\n{lines}"))
        }
        Err(errors) => {
            eprintln!("{errors}");
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output; a closed pipe, as `head` leaves it, causes no panic.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
