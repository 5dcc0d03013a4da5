//! What the comparisons of all programs share: their usual servers, the place of their results, their last lines.

use super::{Finished, Outcome};
use crate::compare::{self, Plan, Suite};
use crate::error::Result;
use crate::machine;
use crate::process::Cores;
use crate::progress::Steps;
use crate::report::markdown;
use crate::results::Results;
use crate::server::ServerSpec;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The default place of results.
pub const DATED_RESULTS: &str = "bench/results/DATE-SUITE";

/// The servers named, or those that are compared when none is.
///
/// # Errors
/// The names of the usual servers are always understood; the error is that of parsing them.
pub fn usual_servers(named: Vec<ServerSpec>) -> Result<Vec<ServerSpec>> {
    if !named.is_empty() {
        return Ok(named);
    }
    ["onggi", "valkey", "redis"].iter().map(|name| name.parse()).collect()
}

/// The cores of the server and of the generator: those that were named; else the first one and the last one where both
/// may be pinned and there are two.
pub fn cores(may_pin: bool, server: Option<Cores>, generator: Option<Cores>) -> (Option<Cores>, Option<Cores>) {
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let one = |core| (may_pin && count > 1).then(|| Cores(vec![core]));
    (server.or_else(|| one(0)), generator.or_else(|| one(count.saturating_sub(1))))
}

/// The directory named, or today's of the suite; `parts` is added to its name.
pub fn results_directory(named: PathBuf, suite: &str, parts: &str) -> PathBuf {
    if named.to_str() != Some(DATED_RESULTS) {
        return named;
    }
    let date = machine::utc(SystemTime::now());
    PathBuf::from(format!("bench/results/{}-{suite}{parts}", &date[..10]))
}

/// Runs a suite, writes its results into a directory, and prints them.
///
/// # Errors
/// Those of [`compare::run`]; the directory cannot be written.
pub fn compare_and_write(plan: &Plan, suite: &dyn Suite, out: &Path) -> Result<Outcome> {
    let results = compare::run(plan, suite)?;
    crate::report::write(&results, out)?;
    let (tables, servers) = (markdown::tables(&results), markdown::servers(&results));
    println!("{}\n{servers}\nWritten to {}", tables.trim_start(), out.join("index.html").display());
    Ok(outcome(&results))
}

/// As [`compare_and_write`], and prints nothing.
pub(super) fn compare_quietly(plan: &Plan, suite: &dyn Suite, out: &Path) -> Result<Finished> {
    let (results, steps) = compare::run_with(plan, suite, Steps::quiet())?;
    crate::report::write(&results, out)?;
    let mut fields = fields(&results);
    fields["dir"] = out.display().to_string().into();
    fields["notes"] = steps.kept().into();
    Ok(Finished { outcome: outcome(&results), fields })
}

/// The results of a comparison, as in results.json.
pub(super) fn fields(results: &Results) -> Value {
    json!({ "all_met": results.all_met(), "results": serde_json::to_value(results).unwrap_or_default() })
}

fn outcome(results: &Results) -> Outcome {
    if results.all_met() { Outcome::Done } else { Outcome::TargetMissed }
}

/// The command line as a user would type it, with the program's name alone.
pub fn command_line(program: &str) -> String {
    let words = std::env::args().skip(1);
    shell_words::join(std::iter::once(program.to_owned()).chain(words))
}
