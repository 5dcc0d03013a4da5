//! `onggi inspect`, `onggi check` and `onggi repair`: the files of a data directory, without a server.

use crate::progress::Progress;
use base::HistoryId;
use base::clock::SystemClock;
use base::random::{Entropy, OsEntropy};
use clap::Args;
use inspect::{Format, Show, ToolError, Verdict};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use vfs::{FileSystem, RealFs};

/// Exit code: something is damaged.
pub const DAMAGED: u8 = 1;
/// Exit code: the tool failed.
const COULD_NOT: u8 = 2;

/// Shows the contents of a file of the data directory, or the headers of all of them. Changes nothing.
///
/// Exit code: 0 whole, 1 damaged, 2 failed.
#[derive(Args)]
pub struct InspectArgs {
    /// MANIFEST, a snapshot file (prdb-*), a segment of the command log (log-*), or a data directory.
    #[arg(value_name = "PATH", required_unless_present = "dir")]
    path: Option<PathBuf>,
    /// The same, as an option.
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    dir: Option<PathBuf>,
    /// Prints one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Prints keys and values whole, not only their first 64 bytes.
    #[arg(long)]
    full: bool,
}

/// Verifies all files of a data directory, and that a start would find everything. Changes nothing.
///
/// Exit code: 0 good, 1 damaged, 2 failed.
#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    dir: DirArg,
}

/// The data directory that a tool works on: an argument, or the value of --dir.
#[derive(Args)]
pub struct DirArg {
    /// The data directory.
    #[arg(value_name = "DIR", required_unless_present = "dir")]
    path: Option<PathBuf>,
    /// The same, as an option.
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    dir: Option<PathBuf>,
}

impl DirArg {
    fn path(&self) -> &Path {
        given(&self.path, &self.dir)
    }
}

/// The one of the two that was given.
fn given<'a>(word: &'a Option<PathBuf>, option: &'a Option<PathBuf>) -> &'a Path {
    word.as_deref().or(option.as_deref()).unwrap_or(Path::new("."))
}

/// Recovers as much as possible from a damaged data directory. Lists what can be kept and what will be lost, asks, and
/// then replaces the directory with a whole one. All files of the damaged one stay next to it, under another name.
///
/// Exit code: 0 nothing was damaged, or it is repaired; 1 damaged, and left unchanged; 2 failed.
#[derive(Args)]
pub struct RepairArgs {
    #[command(flatten)]
    dir: DirArg,
    /// Keeps the whole blocks of a damaged checkpoint where anything else would lose later changes. Reports how many
    /// keys are kept and how many are lost.
    #[arg(long)]
    salvage: bool,
    /// Repairs without asking.
    #[arg(long)]
    yes: bool,
}

/// `onggi inspect`
pub fn inspect(args: &InspectArgs) -> ExitCode {
    let show = Show { format: if args.json { Format::Json } else { Format::Text }, full: args.full };
    let mut out = BufWriter::new(io::stdout().lock());
    let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
    match inspect::decode(&fs, given(&args.path, &args.dir), show, &mut out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DAMAGED),
        // The reader has closed the pipe, as `head` does.
        Err(ToolError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => failed("inspect", &error),
    }
}

/// `onggi check`
pub fn check(args: &CheckArgs) -> ExitCode {
    let progress = Progress::new();
    let remedy = format!(
        "damaged: see above; run `onggi repair {}`: it says what can be kept and what is lost, and asks before it \
         changes anything",
        args.dir.path().display()
    );
    let (verdict, last) = match inspect::check(progress.fs(), args.dir.path(), &mut |line| progress.say(line)) {
        Ok(Verdict::Good) => (ExitCode::SUCCESS, "good: everything is whole, and a start finds it"),
        Ok(Verdict::Damaged) => (ExitCode::from(DAMAGED), &*remedy),
        Ok(Verdict::Unchecked) => (ExitCode::from(COULD_NOT), "not all of it could be checked: see above"),
        Err(error) => return failed("check", &error),
    };
    progress.say(last);
    verdict
}

/// `onggi repair`
pub fn repair(args: &RepairArgs) -> ExitCode {
    let clock = SystemClock::new();
    // A relative path of one component has no parent that could be synced, and a link would be replaced instead of its
    // target.
    let dir = match args.dir.path().canonicalize() {
        Ok(dir) => dir,
        Err(error) => return failed("repair", &error),
    };
    let plan = match inspect::plan_repair(Progress::new().fs(), &dir, args.salvage) {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            say("good: nothing is damaged; there is nothing to repair");
            return ExitCode::SUCCESS;
        }
        Err(error) => return failed("repair", &error),
    };
    plan.damage.iter().for_each(|line| say(&format!("damaged  {line}")));
    say(&format!("kept     {}", plan.kept));
    plan.lost.iter().for_each(|line| say(&format!("LOST     {line}")));
    plan.unsure.iter().for_each(|line| say(&format!("UNSURE   {line}")));
    if plan.lost.is_empty() {
        say(if plan.unsure.is_empty() {
            "nothing is lost: every durable change is kept"
        } else {
            "nothing is known to be lost"
        });
    }
    if let Some(hint) = &plan.hint {
        say(&format!("hint     {hint}"));
    }
    if !args.yes && !confirmed() {
        say("not repaired; nothing was changed");
        return ExitCode::from(DAMAGED);
    }
    let history = HistoryId::random(&mut OsEntropy.rng());
    let progress = Progress::new();
    match inspect::repair(progress.fs(), &clock, &dir, &plan, history, &mut |line| progress.say(line)) {
        Ok(done) => {
            progress.say(&format!("repaired: {} begins with {}", dir.display(), plan.kept));
            progress.say(&format!("the damaged files are in {}", done.damaged.display()));
            ExitCode::SUCCESS
        }
        Err(error) => failed("repair", &error),
    }
}

/// Whether the user confirms, with a line on standard input.
fn confirmed() -> bool {
    print!("repair it so? Type yes: ");
    // The answer counts even if the prompt could not be written.
    let _ = io::stdout().flush();
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}

/// Prints a line to standard output. A closed pipe does not affect the work.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Reports why a tool failed.
pub fn failed(tool: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("onggi {tool}: {error}");
    vfs::further_causes(error).iter().for_each(|cause| eprintln!("  because: {cause}"));
    ExitCode::from(COULD_NOT)
}
