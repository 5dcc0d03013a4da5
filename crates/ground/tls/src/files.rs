//! Certificates and keys in PEM files.

use crate::TlsError;
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longest file. The bundle of all public CAs has a quarter of a megabyte.
const FILE_BYTES_MAX: u64 = 8 << 20;

fn content(directive: &'static str, path: &Path, reason: impl Into<String>) -> TlsError {
    TlsError::Content { directive, path: path.to_owned(), reason: reason.into() }
}

fn read(directive: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    let failed = |source| TlsError::Read { directive, path: path.to_owned(), source };
    // Before it is opened: opening a named pipe would wait for its writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(failed)?;
    match bytes.len() as u64 > FILE_BYTES_MAX {
        true => Err(content(directive, path, "is longer than 8 MiB")),
        false => Ok(bytes),
    }
}

/// The certificates of a file, in its order; at least one.
pub(crate) fn certificates(directive: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(directive, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| content(directive, path, format!("is not PEM: {}", described(&error))))?;
    match found.is_empty() {
        true => Err(content(directive, path, "has no certificate in PEM (BEGIN CERTIFICATE)")),
        false => Ok(found),
    }
}

/// The private key of a file.
pub(crate) fn private_key(directive: &'static str, path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = zeroize::Zeroizing::new(read(directive, path)?);
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    if has(b"BEGIN ENCRYPTED PRIVATE KEY") || has(b"Proc-Type: 4,ENCRYPTED") {
        return Err(content(
            directive,
            path,
            "has a passphrase, which is not supported: write the key without one (openssl pkey -in OLD -out NEW), and \
             let only the server's user read it",
        ));
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => content(directive, path, "has no private key in PEM (BEGIN PRIVATE KEY)"),
        error => content(directive, path, format!("is not PEM: {}", described(&error))),
    })
}

fn described(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no end".into(),
        pem::Error::IllegalSectionStart { .. } => "a section does not begin as it should".into(),
        pem::Error::Base64Decode(_) => "its base64 text is damaged".into(),
        other => other.to_string(),
    }
}

/// The trusted CAs of a file and of all files of a directory, and the first of them.
pub(crate) struct Authorities {
    pub(crate) roots: RootCertStore,
    pub(crate) first: CertificateDer<'static>,
}

/// The CAs that two directives name; `None` when both are empty.
pub(crate) fn authorities(
    (file_directive, file): (&'static str, Option<&Path>),
    (dir_directive, dir): (&'static str, Option<&Path>),
) -> Result<Option<Authorities>, TlsError> {
    let mut all = Vec::new();
    if let Some(path) = file {
        all.extend(certificates(file_directive, path)?.into_iter().map(|it| (file_directive, path.to_owned(), it)));
    }
    if let Some(path) = dir {
        let before = all.len();
        let failed = |source| TlsError::Read { directive: dir_directive, path: path.to_owned(), source };
        for file in files_in(path).map_err(failed)? {
            // Such directories also hold revocation lists and links to removed files.
            if let Ok(found) = certificates(dir_directive, &file) {
                all.extend(found.into_iter().map(|it| (dir_directive, file.clone(), it)));
            }
        }
        if all.len() == before {
            return Err(content(dir_directive, path, "has no file with a certificate in PEM"));
        }
    }
    let Some((_, _, first)) = all.first().cloned() else { return Ok(None) };
    let mut roots = RootCertStore::empty();
    for (directive, path, certificate) in all {
        roots.add(certificate).map_err(|error| content(directive, &path, format!("has a bad certificate: {error}")))?;
    }
    Ok(Some(Authorities { roots, first }))
}

fn files_in(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}
