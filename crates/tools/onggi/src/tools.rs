//! `onggi inspect`, `onggi check` and `onggi repair`: the files of a data directory, without a server.

use crate::progress::Progress;
use crate::report::{JsonArg, Report};
use base::HistoryId;
use base::clock::SystemClock;
use base::random::{Entropy, OsEntropy};
use clap::Args;
use inspect::{Format, Level, RepairPlan, Show, ToolError, Verdict};
use serde_json::json;
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
    #[command(flatten)]
    json: JsonArg,
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
    #[command(flatten)]
    json: JsonArg,
}

/// `onggi inspect`
pub fn inspect(args: &InspectArgs) -> ExitCode {
    let report = Report::new("inspect", args.json);
    let show = Show { format: if args.json { Format::Json } else { Format::Text }, full: args.full };
    let mut out = BufWriter::new(io::stdout().lock());
    let fs: Arc<dyn FileSystem> = Arc::new(RealFs);
    match inspect::decode(&fs, given(&args.path, &args.dir), show, &mut out) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DAMAGED),
        // The reader has closed the pipe, as `head` does.
        Err(ToolError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // What was read before the error comes first.
            drop(out);
            report.failed(&error)
        }
    }
}

/// `onggi check`
pub fn check(args: &CheckArgs) -> ExitCode {
    let progress = Progress::over(args.json.report("check"), args.dir.path());
    let remedy = format!(
        "damaged: see above; run `onggi repair {}`: it says what can be kept and what is lost, and asks before it \
         changes anything",
        args.dir.path().display()
    );
    let found = inspect::check(progress.fs(), args.dir.path(), &mut |finding| match progress.is_json() {
        true => progress.message(finding.level.word(), finding.text),
        false => progress.say(&finding.to_string()),
    });
    let report = progress.ended();
    let (exit, verdict, last) = match found {
        Ok(Verdict::Good) => (0, Level::Good, "good: everything is whole, and a start finds it"),
        Ok(Verdict::Damaged) => (DAMAGED, Level::Damaged, &*remedy),
        Ok(Verdict::Unchecked) => (COULD_NOT, Level::Unknown, "not all of it could be checked: see above"),
        Err(error) => return report.failed(&error),
    };
    report.result(exit, &[last.to_owned()], json!({ "verdict": verdict.word() }))
}

/// `onggi repair`
pub fn repair(args: &RepairArgs) -> ExitCode {
    let (report, clock) = (args.json.report("repair"), SystemClock::new());
    // A relative path of one component has no parent that could be synced, and a link would be replaced instead of its
    // target.
    let dir = match args.dir.path().canonicalize() {
        Ok(dir) => dir,
        Err(error) => return report.failed(&error),
    };
    let plan = match inspect::plan_repair(Progress::over(report, &dir).fs(), &dir, args.salvage) {
        Ok(Some(plan)) => plan,
        Ok(None) => {
            let line = "good: nothing is damaged; there is nothing to repair".to_owned();
            return report.result(0, &[line], json!({ "is_damaged": false, "is_repaired": false }));
        }
        Err(error) => return report.failed(&error),
    };
    let mut fields = json!({ "is_damaged": true, "is_repaired": false, "damage": plan.damage, "kept": plan.kept,
        "lost": plan.lost, "unsure": plan.unsure, "hint": plan.hint });
    if !report.is_json() {
        lines(&plan).iter().for_each(|line| report.say(line));
    }
    // Nothing is asked with --json.
    if !args.yes && (report.is_json() || !confirmed()) {
        return report.result(DAMAGED, &["not repaired; nothing was changed".to_owned()], fields);
    }
    let history = HistoryId::random(&mut OsEntropy.rng());
    let progress = Progress::over(report, &dir);
    let done = inspect::repair(progress.fs(), &clock, &dir, &plan, history, &mut |line| progress.say(line));
    let report = progress.ended();
    match done {
        Ok(done) => {
            let damaged = done.damaged.display();
            fields["is_repaired"] = true.into();
            fields["damaged_files"] = damaged.to_string().into();
            let line = format!("repaired: {} begins with {}", dir.display(), plan.kept);
            report.result(0, &[line, format!("the damaged files are in {damaged}")], fields)
        }
        Err(error) => report.failed(&error),
    }
}

/// The plan, for people.
fn lines(plan: &RepairPlan) -> Vec<String> {
    let mut lines: Vec<_> = plan.damage.iter().map(|line| format!("damaged  {line}")).collect();
    lines.push(format!("kept     {}", plan.kept));
    lines.extend(plan.lost.iter().map(|line| format!("LOST     {line}")));
    lines.extend(plan.unsure.iter().map(|line| format!("UNSURE   {line}")));
    if plan.lost.is_empty() {
        let is_sure = plan.unsure.is_empty();
        let line =
            if is_sure { "nothing is lost: every durable change is kept" } else { "nothing is known to be lost" };
        lines.push(line.to_owned());
    }
    lines.extend(plan.hint.iter().map(|hint| format!("hint     {hint}")));
    lines
}

/// Whether the user confirms, with a line on standard input.
fn confirmed() -> bool {
    print!("repair it so? Type yes: ");
    // The answer counts even if the prompt could not be written.
    let _ = io::stdout().flush();
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && answer.trim() == "yes"
}
