//! `http-token-file`: tokens for the page and the metrics.

use command::login::{Token, TokenError};
use config::Settings;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The directive.
pub(crate) const DIRECTIVE: &str = "http-token-file";

/// Longest file. [`command::login::TOKENS_MAX`] tokens of usual length are a tenth of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A file of tokens that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("{DIRECTIVE} {}: {}", path.display(), if source.kind() == ErrorKind::PermissionDenied && sandbox::excludes(path) {
        OUTSIDE.to_owned()
    } else {
        vfs::reason(source)
    })]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line of it is wrong.
    #[error("{DIRECTIVE} {}, {error}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, and why.
        error: TokenError,
    },
}

/// Why a file cannot be read that the system would let the server's user read.
const OUTSIDE: &str =
    "it is outside of the directories of the start (sandbox yes); give its directory to sandbox-allow-path and restart";

/// Whether there are tokens.
pub(crate) fn is_used(settings: &Settings) -> bool {
    settings.http_token_file.is_some() && settings.http_port != 0
}

/// What a file has, and what is odd about it, in sentences.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) tokens: Vec<Token>,
    warnings: Vec<String>,
}

impl Found {
    /// Says what is odd to the log.
    pub(crate) fn warn(&self) {
        self.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    }
}

/// The tokens of the file; none without one.
///
/// # Errors
/// The file cannot be read, or has a line that is no token.
pub(crate) fn load(settings: &Settings) -> Result<Found, TokenFileError> {
    let Some(path) = settings.http_token_file.as_deref().filter(|_| is_used(settings)) else {
        return Ok(Found::default());
    };
    let failed = |source| TokenFileError::Read { path: path.to_owned(), source };
    let (text, mode) = read(path).map_err(failed)?;
    let tokens = Token::parse_all(&text).map_err(|error| TokenFileError::Line { path: path.to_owned(), error })?;
    let (path, mut warnings) = (path.display(), Vec::new());
    if tokens.is_empty() {
        warnings.push(format!("{DIRECTIVE} {path} has no token, so none logs in: write lines of USER TOKEN"));
    }
    if mode & 0o004 != 0 {
        warnings.push(format!("every user of this host can read {DIRECTIVE} {path}: chmod o= {path}"));
    }
    Ok(Found { tokens, warnings })
}

/// The text of the file, and its permissions.
fn read(path: &Path) -> io::Result<(zeroize::Zeroizing<Vec<u8>>, u32)> {
    // Before it is opened: opening a named pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode();
    let mut text = zeroize::Zeroizing::new(Vec::new());
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(io::Error::other("it is longer than 1 MiB")),
        false => Ok((text, mode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens and warnings that come of a file with this text and these permissions.
    fn loaded(text: Option<&[u8]>, mode: u32) -> Result<(usize, String), String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tokens");
        if let Some(text) = text {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let settings = Settings { http_token_file: Some(path.clone()), ..Settings::default() };
        let shown = |text: String| text.replace(&path.display().to_string(), "FILE");
        load(&settings)
            .map(|found| (found.tokens.len(), shown(found.warnings.join("; "))))
            .map_err(|error| shown(error.to_string()))
    }

    #[test]
    fn files_are_read_or_named() {
        assert_eq!(loaded(Some(b"scraper 0123456789abcdef\n"), 0o640), Ok((1, String::new())));
        let open = "every user of this host can read http-token-file FILE: chmod o= FILE";
        assert_eq!(loaded(Some(b"scraper 0123456789abcdef\n"), 0o644), Ok((1, open.to_owned())));
        let empty = "http-token-file FILE has no token, so none logs in: write lines of USER TOKEN";
        assert_eq!(loaded(Some(b""), 0o600), Ok((0, empty.to_owned())));
        assert_eq!(loaded(None, 0), Err("http-token-file FILE: No such file or directory".to_owned()));
        let short = loaded(Some(b"scraper 0123\n"), 0o600).unwrap_err();
        assert!(short.starts_with("http-token-file FILE, line 1: the token has 4 characters"), "{short}");
        let long = loaded(Some(&vec![b'#'; (1 << 20) + 1]), 0o600);
        assert_eq!(long, Err("http-token-file FILE: it is longer than 1 MiB".to_owned()));
    }
}
