//! What a process can do inside the sandbox. The test starts itself again, since a sandbox is for ever.

use sandbox::{Access, Place, enforce, excludes};
use std::fs;
use std::io::ErrorKind::PermissionDenied;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Names the directory of the test for the second process.
const VARIABLE: &str = "ONGGI_TEST_SANDBOX";

/// Not by the harness of tests, which runs each in a thread of its own.
fn main() {
    if let Some(dir) = std::env::var_os(VARIABLE) {
        return inside(Path::new(&dir));
    }
    let dir = tempfile::tempdir().unwrap();
    for name in ["data", "elsewhere", "live", "archive", "read"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join("file"), name).unwrap();
    }
    let links = dir.path().join("live/link");
    std::os::unix::fs::symlink("../archive/file", links).unwrap();
    let done = Command::new(std::env::current_exe().unwrap()).env(VARIABLE, dir.path()).output().unwrap();
    let printed = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{printed}");
    assert!(printed.contains("all refusals seen"), "the second process has tested nothing: {printed}");
}

fn inside(dir: &Path) {
    let at = |name: &str| dir.join(name);
    assert!(Command::new("/bin/true").status().unwrap().success());
    let report = {
        let mut places = vec![
            Place::directory(&at("data"), Access::Write),
            Place::directory(&at("read"), Access::Read),
            Place::directory(&at("missing"), Access::Write),
        ];
        places.extend(Place::around(&at("live/link"), Access::Read));
        enforce(&places)
    };
    assert_eq!(report.programs, Ok(()));

    // No other program: neither in place of this one, nor next to it, in this thread or a new one.
    let refused = |error: std::io::Error| assert_eq!(error.kind(), PermissionDenied, "{error}");
    refused(Command::new("/bin/true").exec());
    refused(Command::new("/bin/true").status().unwrap_err());
    std::thread::spawn(move || refused(Command::new("/bin/true").exec())).join().unwrap();
    // A name that does not exist would fail without a sandbox too.
    assert!(Path::new("/bin/true").exists());

    if let Err(reason) = report.files {
        eprintln!("no part for files: {reason}; all refusals seen");
        return;
    }
    fs::write(at("data/new"), "x").unwrap();
    fs::rename(at("data/new"), at("data/newer")).unwrap();
    fs::remove_file(at("data/newer")).unwrap();
    assert_eq!(fs::read_to_string(at("live/link")).unwrap(), "archive");
    fs::read_to_string("/proc/self/status").unwrap();
    refused(fs::read_to_string(at("elsewhere/file")).unwrap_err());
    refused(fs::write(at("elsewhere/new"), "x").unwrap_err());
    refused(fs::write(at("read/new"), "x").unwrap_err());
    refused(fs::write(at("live/new"), "x").unwrap_err());
    refused(fs::remove_file(at("archive/file")).unwrap_err());
    // The system calls it a link between two disks.
    assert!(fs::hard_link(at("elsewhere/file"), at("data/link")).is_err());
    assert!(excludes(&at("elsewhere/file")) && excludes(dir));
    assert!(!excludes(&at("data/file")) && !excludes(&at("live/link")) && !excludes(&at("absent")));
    eprintln!("all refusals seen");
}
