//! Landlock: the files that can be opened.

use crate::{Access, Place};
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
};
use std::path::{Path, PathBuf};

/// The newest version whose rights are handled here. An older kernel enforces those that it knows.
const VERSION: ABI = ABI::V5;

/// What the C library and the server read of the system: names of hosts, time zones, CAs, figures of the process and of
/// the machine. Missing ones are left out.
const SYSTEM: [&str; 9] =
    ["/etc", "/usr", "/lib", "/lib64", "/proc", "/sys", "/dev", "/run/systemd/resolve", "/run/resolvconf"];

/// Restricts this thread and those that it will start. The places that can be read, without links.
pub(crate) fn restrict(places: &[Place]) -> Result<Vec<PathBuf>, String> {
    let (mut readable, mut rules) = (Vec::new(), Vec::new());
    let system = SYSTEM.iter().map(|path| Place { path: PathBuf::from(path), access: Access::Read });
    for place in system.chain(places.iter().cloned()) {
        // One that does not exist has nothing to open.
        let Ok(path) = std::fs::canonicalize(&place.path) else { continue };
        let descriptor = PathFd::new(&path).map_err(|error| error.to_string())?;
        rules.push(PathBeneath::new(descriptor, rights(place.access, &path)));
        if place.access != Access::Remove {
            readable.push(path);
        }
    }
    match begin(rules).map_err(|error| error.to_string())? {
        (RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced, _) => Ok(readable),
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => {
            Err("this kernel has Landlock, and it is off (see the boot parameter lsm=)".to_owned())
        }
        (RulesetStatus::NotEnforced, LandlockStatus::NotImplemented) => {
            Err("this kernel has no Landlock (Linux 5.19 and later have what is needed)".to_owned())
        }
        (RulesetStatus::NotEnforced, _) => {
            Err("this kernel's Landlock forbids to move files between directories (before Linux 5.19)".to_owned())
        }
    }
}

fn begin(rules: Vec<PathBeneath<PathFd>>) -> Result<(RulesetStatus, LandlockStatus), RulesetError> {
    // Without this right a kernel forbids what checkpoints and backups do. Then nothing is restricted.
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::SoftRequirement).handle_access(AccessFs::Refer)?;
    let ruleset =
        ruleset.set_compatibility(CompatLevel::BestEffort).handle_access(AccessFs::from_all(VERSION))?.create()?;
    let status = ruleset.add_rules(rules.into_iter().map(Ok::<_, RulesetError>))?.restrict_self()?;
    Ok((status.ruleset, status.landlock))
}

/// What may be done with files there. Nothing can be executed, and no device made.
fn rights(access: Access, path: &Path) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let rights = match access {
        Access::Read => read,
        Access::Remove => AccessFs::RemoveFile.into(),
        Access::Write => {
            let never = AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
            AccessFs::from_all(VERSION) & !never
        }
    };
    if path.is_dir() { rights } else { rights & AccessFs::from_file(VERSION) }
}
