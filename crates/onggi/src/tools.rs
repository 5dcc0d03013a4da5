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

/// Something is damaged.
pub const DAMAGED: u8 = 1;
/// The work could not be done.
const COULD_NOT: u8 = 2;

/// Shows what is in a file of the data directory, or in the heads of all of them. Changes nothing.
///
/// Exit code: 0 whole, 1 damaged, 2 could not be read.
#[derive(Args)]
pub struct InspectArgs {
    /// MANIFEST, a snapshot file (prdb-*), a segment of the command log (log-*), or a data directory.
    #[arg(value_name = "PATH", required_unless_present = "dir")]
    path: Option<PathBuf>,
    /// The same, named.
    #[arg(long, value_name = "DIR", conflicts_with = "path")]
    dir: Option<PathBuf>,
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
    #[command(flatten)]
    dir: DirArg,
}

/// The data directory that a tool works on: a word, or the value of --dir.
#[derive(Args)]
pub struct DirArg {
    /// The data directory.
    #[arg(value_name = "DIR", required_unless_present = "dir")]
    path: Option<PathBuf>,
    /// The same, named.
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

/// Makes the best of a damaged data directory: says what can be kept and what will be lost, asks, and then puts a whole
/// directory in its place. All files of the damaged one stay, under another name beside it.
///
/// Exit code: 0 nothing was damaged, or it is repaired; 1 damaged, and left as it is; 2 could not be done.
#[derive(Args)]
pub struct RepairArgs {
    #[command(flatten)]
    dir: DirArg,
    /// Keeps the whole blocks of a damaged checkpoint, where anything else would lose what came later. Says how many keys are
    /// kept and how many are lost.
    #[arg(long)]
    salvage: bool,
    /// Does not ask.
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
        // The reader has seen enough, as `head` does.
        Err(ToolError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => failed("inspect", &error),
    }
}

/// `onggi check`
pub fn check(args: &CheckArgs) -> ExitCode {
    let progress = Progress::new();
    let remedy = format!(
        "damaged: see above; run `onggi repair {}`: it says what can be kept and what is lost, and asks before it changes \
         anything",
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
    // A relative path of one word has no parent that could be synced; a link would be replaced instead of its target.
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

/// Whether whoever reads this agrees, in a word on a line of standard input.
fn confirmed() -> bool {
    print!("repair it so? Type yes: ");
    // Without a prompt the answer still counts.
    let _ = io::stdout().flush();
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}

/// A line to standard output. A reader that has gone away changes nothing about the work.
fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Says why a tool could not do its work.
pub fn failed(tool: &str, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("onggi {tool}: {error}");
    vfs::further_causes(error).iter().for_each(|cause| eprintln!("  because: {cause}"));
    ExitCode::from(COULD_NOT)
}
