//! `plex check|dump|repair`: looks at a closed database, and makes a damaged one open again.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use plex::Options;

const USAGE: &str = "\
usage: plex check DIR     read every file of a closed database and name all damage
       plex dump PATH     print a table, a log, a manifest, or the manifest of a database
       plex repair DIR    make a damaged database open again, and say what is lost

The exit code is 0 if all is sound, 1 if there is damage, 2 if the work could not be done.";

/// What the exit code says.
enum Outcome {
    Sound,
    Damaged,
}

fn main() -> ExitCode {
    let arguments: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    let outcome = match &arguments[..] {
        [command, path] if command == "check" => check(path.as_ref()),
        [command, path] if command == "dump" => dump(path.as_ref()),
        [command, path] if command == "repair" => repair(path.as_ref()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(Outcome::Sound) => ExitCode::SUCCESS,
        Ok(Outcome::Damaged) => ExitCode::from(1),
        Err(error) => {
            eprintln!("plex: {error}");
            error.hint().into_iter().for_each(|hint| eprintln!("{hint}"));
            ExitCode::from(if error.is_corruption() { 1 } else { 2 })
        }
    }
}

fn check(dir: &Path) -> plex::Result<Outcome> {
    let damages = plex::check(dir, &Options::new())?;
    damages.iter().for_each(|damage| say(&damage.to_string()));
    say(if damages.is_empty() { "sound" } else { "damaged" });
    Ok(if damages.is_empty() { Outcome::Sound } else { Outcome::Damaged })
}

fn dump(path: &Path) -> plex::Result<Outcome> {
    plex::dump(path, &Options::new(), |line| say(&line))?;
    Ok(Outcome::Sound)
}

fn repair(dir: &Path) -> plex::Result<Outcome> {
    let repair = plex::repair(dir, &Options::new())?;
    repair.losses.iter().for_each(|loss| say(&loss.to_string()));
    if repair.is_rebuilt {
        say("the manifest was damaged: all tables were merged anew");
    }
    say(&format!("the database has {} tables with {} entries", repair.tables, repair.entries));
    Ok(if repair.losses.is_empty() { Outcome::Sound } else { Outcome::Damaged })
}

/// Prints a line; ends the program when the reader is gone.
fn say(line: &str) {
    if writeln!(std::io::stdout(), "{line}").is_err() {
        std::process::exit(2);
    }
}
