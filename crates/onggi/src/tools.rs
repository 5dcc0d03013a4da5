//! `onggi inspect` and `onggi check`: the files of a data directory, looked at while no server runs.

use clap::Args;
use inspect::{Format, Show, ToolError, Verdict};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use vfs::{FileSystem, RealFs};

/// Something is damaged.
const DAMAGED: u8 = 1;
/// The work could not be done.
const COULD_NOT: u8 = 2;

/// Shows what is in a file of the data directory, or in the heads of all of them. Changes nothing.
///
/// Exit code: 0 whole, 1 damaged, 2 could not be read.
#[derive(Args)]
pub struct InspectArgs {
    /// MANIFEST, a snapshot file (prdb-*), a segment of the command log (log-*), or a directory.
    path: PathBuf,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
    /// Keys and values whole; else their first 64 bytes.
    #[arg(long)]
    full: bool,
}

/// Verifies all files of a data directory, and that a start would find everything. Changes nothing.
///
/// Exit code: 0 good, 1 damaged, 2 could not be checked.
#[derive(Args)]
pub struct CheckArgs {
    /// The data directory.
    dir: PathBuf,
}

fn real() -> Arc<dyn FileSystem> {
    Arc::new(RealFs)
}

/// `onggi inspect`
pub fn inspect(args: &InspectArgs) -> ExitCode {
    let show = Show { format: if args.json { Format::Json } else { Format::Text }, full: args.full };
    let mut out = BufWriter::new(io::stdout().lock());
    match inspect::decode(&real(), &args.path, show, &mut out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DAMAGED),
        // The reader has seen enough, as `head` does.
        Err(ToolError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => failed("inspect", &error),
    }
}

/// `onggi check`
pub fn check(args: &CheckArgs) -> ExitCode {
    let (verdict, last) = match inspect::check(&real(), &args.dir, &mut say) {
        Ok(Verdict::Good) => (ExitCode::SUCCESS, "good: everything is whole, and a start finds it"),
        Ok(Verdict::Damaged) => (ExitCode::from(DAMAGED), "damaged: see above"),
        Ok(Verdict::Unchecked) => (ExitCode::from(COULD_NOT), "not all of it could be checked: see above"),
        Err(error) => return failed("check", &error),
    };
    say(last);
    verdict
}

/// A line to standard output. A reader that has gone away changes nothing about the work.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

fn failed(tool: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("onggi {tool}: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprintln!("  because: {cause}");
        source = cause.source();
    }
    ExitCode::from(COULD_NOT)
}
