//! `onggi config`: examines configurations without starting a server.

use clap::{Args, Subcommand};
use config::{CommandLine, FileArgument, document, load};
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
    /// Reads a configuration as `onggi serve` would, and lists errors and directives without effect.
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
    let loaded = CommandLine::parse(arguments).and_then(|line| {
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

/// Writes to standard output; a closed pipe, as `head` leaves it, causes no panic.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
