//! Compares Valkey, Redis and Onggi: the scripts section by section, then rounds of random commands, then the table of
//! accepted differences for rows that nothing hit. Prints `ok - NAME`, `not ok - NAME: REASON` and `ok - NAME # SKIP
//! REASON`, one line per check.
//!
//! | Variable | Means | Unless set |
//! |---|---|---|
//! | `ONGGI_DIFF_TARGETS` | servers, the reference first | `valkey,redis,onggi` |
//! | `ONGGI_DIFF_COMMANDS` | random commands | 500000 |
//! | `ONGGI_DIFF_SEED` | seed of the rounds | `ONGGI_TEST_SEED`, or fresh |
//! | `ONGGI_DIFF_ROUND` | only this round | all |
//! | `ONGGI_DIFF_FAMILIES` | random commands only of these families, with commas | all |
//! | `ONGGI_DIFF_SCRIPTS` | only these scripts, with commas; `none` for none | all |
//! | `ONGGI_DIFF_BIG` | `1`: each round of random commands begins with large collections | not |
//! | `ONGGI_DIFF_DISK` | `all` or `most` of Onggi's databases are on disk, flushed and dropped meanwhile | none |
//! | `ONGGI_DIFF_OPTIONS` | directives for Onggi, `NAME=VALUE` with spaces between them | none |

use std::collections::BTreeMap;
use std::env;
use std::process::ExitCode;
use std::time::Instant;

use base::Entropy;
use base::random::OsEntropy;
use differential::grammar;
use differential::judge::Judge;
use differential::messages;
use differential::random::{Rounds, SETTINGS};
use differential::resp::Value;
use differential::scope::Scope;
use differential::script::{self, Protocol, Section};
use differential::session::{Mode, Session};
use differential::step::{Action, Step};
use differential::target::process::ProcessTarget;
use differential::target::{Kind, Target, peers};

/// After this many different failures the random part has shown enough.
const FAILURES_MAX: usize = 8;

/// What was checked so far.
#[derive(Default)]
struct Report {
    failed: usize,
}

impl Report {
    fn check(&mut self, name: &str, problems: &[String]) {
        if problems.is_empty() {
            println!("ok - {name}");
            return;
        }
        self.failed += 1;
        println!("not ok - {name}: {}", problems[0].lines().next().unwrap_or_default());
        for problem in problems {
            problem.lines().for_each(|line| println!("    {line}"));
        }
    }

    fn skip(&self, name: &str, reason: &str) {
        println!("ok - {name} # SKIP {reason}");
    }
}

fn main() -> ExitCode {
    let mut report = Report::default();
    if let Err(error) = compare(&mut report) {
        report.check("the comparison runs", &[error]);
    }
    ExitCode::from(u8::from(report.failed > 0))
}

fn compare(report: &mut Report) -> Result<(), String> {
    report.check("every command has a script and a rule", &uncovered()?);
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    for (number, kind) in peers::wanted()?.into_iter().enumerate() {
        match peers::find(kind) {
            Ok(program) => {
                let name = match targets.iter().any(|target| target.kind() == kind) {
                    true => format!("{}-{}", kind.name(), number + 1),
                    false => kind.name().to_owned(),
                };
                let target = ProcessTarget::start(program, &name).map_err(|error| error.to_string())?;
                targets.push(Box::new(target));
            }
            Err(reason) => report.skip(&format!("compare {}", kind.name()), &reason),
        }
    }
    let names: Vec<&str> = targets.iter().map(|target| target.name()).collect();
    println!("comparing {}", names.join(", "));
    if targets.len() < 2 || targets[0].kind() != Kind::Valkey {
        report.skip("compare servers", "fewer than two servers, or no reference");
        return Ok(());
    }
    let mut session = Session::new(targets, Judge::load()?);
    if peers::is_on_disk() {
        session = session.disturbing_rows(base::Rng::new(given_seed()?.unwrap_or_default()));
    }
    let all_scripts = run_scripts(&mut session, report)?;
    run_rounds(&mut session, report)?;
    run_messages(&mut session, report)?;
    check_compression(&mut session, report);
    if all_scripts && !peers::is_on_disk() {
        for kind in [Kind::Redis, Kind::Onggi].into_iter().filter(|kind| session.has(*kind)) {
            let unhit = session.judge().differences().unhit(kind);
            report.check(&format!("every accepted difference of {} is there", kind.name()), &unhit);
        }
    }
    Ok(())
}

/// With options that have Onggi compress what is stored, it has done so, and has trained a dictionary where it was to.
fn check_compression(session: &mut Session, report: &mut Report) {
    let options = env::var("ONGGI_DIFF_OPTIONS").unwrap_or_default();
    let Some(codec) = options.split_whitespace().find_map(|option| option.strip_prefix("compression=")) else { return };
    let said = match session.ask_one(Kind::Onggi, &["INFO", "compression"]) {
        Some(Value::Bulk(text)) => String::from_utf8_lossy(&text).into_owned(),
        _ => return,
    };
    let mut problems = Vec::new();
    let is_on_write = options.split_whitespace().any(|option| option == "compression-when=write");
    let mut wanted =
        vec![if is_on_write { "compression_compressed_by_writes" } else { "compression_compressed_in_background" }];
    if codec == "zstd" {
        wanted.push("compression_dictionaries_in_use");
    }
    for field in wanted {
        let value = said.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        if value.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0) == 0 {
            problems.push(format!("{field} is 0"));
        }
    }
    report.check("values were compressed", &problems);
}

/// Commands in scope that no script or no rule mentions. Subcommands and commands that end or stall a connection are
/// the scripts' alone.
fn uncovered() -> Result<Vec<String>, String> {
    let rules = grammar::load(&grammar::families())?;
    let mut lines = String::new();
    for (name, text) in script::all()? {
        let sections = script::parse(&text).map_err(|error| format!("scripts/{name}.txt: {error}"))?;
        sections.iter().flat_map(|section| &section.steps).for_each(|step| {
            let words: Vec<String> = step.arguments().unwrap_or_default().iter().map(ToString::to_string).collect();
            lines.push_str(&format!("\n{} ", words.join(" ").to_ascii_lowercase()));
        });
    }
    let in_scripts = |name: &str| lines.contains(&format!("\n{} ", name.replace('|', " ")));
    let in_rules = |name: &str| rules.iter().any(|rule| rule.command().eq_ignore_ascii_case(name));
    // Subscribers get messages, which belong to the part of their own. A server alone answers the others without a look
    // at its data, and READONLY would show in what CLIENT INFO says later.
    let scripts_only = [
        "acl",
        "cluster",
        "module",
        "monitor",
        "psubscribe",
        "punsubscribe",
        "readonly",
        "readwrite",
        "shutdown",
        "ssubscribe",
        "subscribe",
        "sunsubscribe",
        "unsubscribe",
    ];
    let uncovered = Scope::command_names()
        .filter(|name| !in_scripts(name) || !(in_rules(name) || name.contains('|') || scripts_only.contains(name)));
    Ok(uncovered.map(|name| format!("{name} lacks a script or a rule")).collect())
}

/// Runs the scripts; whether these were all of them.
fn run_scripts(session: &mut Session, report: &mut Report) -> Result<bool, String> {
    let only = env::var("ONGGI_DIFF_SCRIPTS").ok();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only.split(',').any(|wanted| wanted == name));
    for (name, text) in script::all()?.into_iter().filter(|(name, _)| wanted(name)) {
        let sections = script::parse(&text).map_err(|error| format!("scripts/{name}.txt: {error}"))?;
        let mut problems = Vec::new();
        for section in &sections {
            for protocol in &section.protocols {
                problems.extend(run_section(session, &name, section, *protocol)?);
            }
        }
        report.check(&format!("script {name}"), &problems);
    }
    Ok(only.is_none())
}

fn run_section(
    session: &mut Session,
    script: &str,
    section: &Section,
    protocol: Protocol,
) -> Result<Vec<String>, String> {
    let connections = section.connections();
    session.reset(&SETTINGS, connections).map_err(|error| error.to_string())?;
    // Connections that are opened within the section begin anew, as a client would.
    let hello = |connection| Step::words(connection, &["HELLO", "3"]);
    let (mut steps, mut lines) = (Vec::new(), Vec::new());
    if protocol == Protocol::Resp3 {
        steps.extend((1..=connections).map(hello));
        lines.resize(connections, 0);
    }
    for (step, line) in section.steps.iter().zip(&section.lines) {
        steps.push(step.clone());
        lines.push(*line);
        if protocol == Protocol::Resp3 && matches!(step.action, Action::Closed | Action::Reopen) {
            steps.push(hello(step.connection));
            lines.push(*line);
        }
    }
    let mismatches = session.run(&steps, Mode::AllMismatches);
    let stuck = mismatches.iter().any(|mismatch| mismatch.other.1.starts_with('('));
    if stuck {
        session.restart().map_err(|error| error.to_string())?;
    }
    let describe = |mismatch: &differential::session::Mismatch| {
        let (reference, other) = (&mismatch.reference, &mismatch.other);
        format!(
            "{script}.txt:{} ({}, {protocol:?}): {}\n  {}: {}\n  {}: {}",
            lines[mismatch.step], section.title, steps[mismatch.step], reference.0, reference.1, other.0, other.1
        )
    };
    Ok(mismatches.iter().map(describe).collect())
}

fn number(name: &str) -> Result<Option<u64>, String> {
    match env::var(name) {
        Ok(text) => text.parse().map(Some).map_err(|_| format!("{name} is no number: {text}")),
        Err(_) => Ok(None),
    }
}

fn given_seed() -> Result<Option<u64>, String> {
    Ok(number("ONGGI_DIFF_SEED")?.or(number("ONGGI_TEST_SEED")?))
}

fn run_rounds(session: &mut Session, report: &mut Report) -> Result<(), String> {
    let seed = given_seed()?.unwrap_or_else(|| OsEntropy.rng().next_u64());
    let commands = number("ONGGI_DIFF_COMMANDS")?.unwrap_or(500_000);
    let only = number("ONGGI_DIFF_ROUND")?;
    let families = env::var("ONGGI_DIFF_FAMILIES").unwrap_or_default();
    let families: Vec<String> = families.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let rounds = Rounds::new(seed, &grammar::load(&families)?);
    let rounds = if number("ONGGI_DIFF_BIG")? == Some(1) { rounds.beginning_big() } else { rounds };
    let rounds = if peers::is_on_disk() { rounds.on_disk() } else { rounds };
    println!("random commands with ONGGI_DIFF_SEED={seed}");
    let (started, judged_before) = (Instant::now(), session.judged());
    let scripts_before = session.scripts();
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let mut round = only.unwrap_or(0);
    while commands > 0 && session.judged() - judged_before < commands && failures.len() < FAILURES_MAX {
        if let Some(failure) = rounds.run(session, round).map_err(|error| error.to_string())? {
            failures.entry(failure.command).or_insert(failure.report);
        }
        if only.is_some() {
            break;
        }
        round += 1;
    }
    let judged = session.judged() - judged_before;
    let seconds = started.elapsed().as_secs_f64();
    println!("{judged} replies judged in {} rounds, {:.0} a second", round, judged as f64 / seconds);
    println!("{} of them of scripts and functions", session.scripts() - scripts_before);
    let reports: Vec<String> = failures.into_values().collect();
    report.check("random commands", &reports);
    Ok(())
}

/// Random rounds of messages, an eighth as many replies as of random commands, if the family `pubsub` is named. Not for
/// every run: a message for a connection of another worker may come a moment after a reply that Valkey sends after it.
fn run_messages(session: &mut Session, report: &mut Report) -> Result<(), String> {
    let families = env::var("ONGGI_DIFF_FAMILIES").unwrap_or_default();
    if !families.split(',').any(|family| family == "pubsub") {
        return Ok(());
    }
    let seed = given_seed()?.unwrap_or_else(|| OsEntropy.rng().next_u64());
    let replies = number("ONGGI_DIFF_COMMANDS")?.unwrap_or(500_000) / 8;
    println!("random messages with ONGGI_DIFF_SEED={seed}");
    let judged_before = session.judged();
    let mut failures: BTreeMap<String, String> = BTreeMap::new();
    let only = number("ONGGI_DIFF_ROUND")?;
    let mut round = only.unwrap_or(0);
    while session.judged() - judged_before < replies && failures.len() < FAILURES_MAX {
        if let Some(failure) = messages::run(session, seed, round).map_err(|error| error.to_string())? {
            failures.entry(failure.command).or_insert(failure.report);
        }
        if only.is_some() {
            break;
        }
        round += 1;
    }
    let reports: Vec<String> = failures.into_values().collect();
    report.check("random messages", &reports);
    Ok(())
}
