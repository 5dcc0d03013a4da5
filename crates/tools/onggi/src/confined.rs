//! `sandbox`: which files the settings need, and what the log says about it.

use config::{Loaded, Settings};
use sandbox::{Access, Place, Report};
use std::io;
use std::path::{Path, PathBuf};

/// Restricts the process as the settings say. What the log says about it.
///
/// # Errors
/// A path of `sandbox-allow-path` that does not exist.
pub fn begin(loaded: &Loaded) -> io::Result<String> {
    let settings = &loaded.settings;
    if !settings.sandbox {
        return Ok("off (sandbox no)".to_owned());
    }
    let allowed = allowed(&settings.sandbox_allow_path)?;
    let own = [Some(&settings.dir), settings.tier_dir.as_ref()].into_iter().flatten();
    own.clone().try_for_each(|dir| made(dir))?;
    let mut places: Vec<_> = own.map(|dir| Place::directory(dir, Access::Write)).collect();
    places.extend(allowed.iter().map(|path| Place::directory(path, Access::Write)));
    places.extend(files(settings, loaded.file.as_deref()));
    Ok(described(&sandbox::enforce(&places)))
}

/// Makes a directory, since the kernel takes no name of a missing one, and makes its own name durable: inside the
/// sandbox the directory that holds it cannot be synced.
fn made(dir: &Path) -> io::Result<()> {
    match vfs::create_dirs_synced(&vfs::RealFs, dir) {
        Err(error) if dir.is_dir() => Err(io::Error::other(error)),
        // If there is none, what opens it says why.
        _ => Ok(()),
    }
}

/// The paths of `sandbox-allow-path`.
fn allowed(words: &str) -> io::Result<Vec<PathBuf>> {
    words.split_ascii_whitespace().map(PathBuf::from).map(checked).collect()
}

fn checked(path: PathBuf) -> io::Result<PathBuf> {
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(error) => {
            let text = format!("sandbox-allow-path {}: {}; name what exists", path.display(), vfs::reason(&error));
            Err(io::Error::new(error.kind(), text))
        }
    }
}

/// The directories of files that are replaced while the server runs: by its commands, or by those who renew
/// certificates and rotate logs.
fn files(settings: &Settings, config: Option<&Path>) -> Vec<Place> {
    let written =
        [config, settings.acl_file.as_deref(), settings.logfile.as_deref(), settings.audit_log_file.as_deref()];
    let read = [
        &settings.tls_cert_file,
        &settings.tls_key_file,
        &settings.tls_client_cert_file,
        &settings.tls_client_key_file,
        &settings.tls_ca_cert_file,
        &settings.http_token_file,
    ];
    let written = written.into_iter().flatten().flat_map(|file| Place::around(file, Access::Write));
    let read = read.into_iter().flatten().flat_map(|file| Place::around(file, Access::Read));
    // The socket is made already, and removed at the end.
    let socket = settings.unixsocket.iter().flat_map(|file| Place::around(file, Access::Remove));
    let authorities = settings.tls_ca_cert_dir.iter().map(|dir| Place::directory(dir, Access::Read));
    written.chain(read).chain(socket).chain(authorities).collect()
}

/// A line for the log.
fn described(report: &Report) -> String {
    let programs = match &report.programs {
        Ok(()) => "no other programs (seccomp)".to_owned(),
        Err(why) => format!("other programs are not forbidden: {why}"),
    };
    let files = match &report.files {
        Ok(()) => "only files of its directories (Landlock)".to_owned(),
        Err(why) => format!("files are not restricted: {why}"),
    };
    format!("{programs}; {files}")
}
