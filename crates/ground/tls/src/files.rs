//! Certificates and keys in PEM files.

use crate::TlsError;
use crate::encrypted_key::{self, Undecrypted};
use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
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

/// A passphrase, and the directive that names it.
#[derive(Clone, Copy)]
pub(crate) struct Passphrase<'a> {
    pub(crate) directive: &'static str,
    pub(crate) text: &'a [u8],
}

/// The private key of a file. Tools take no passphrase: other users could see it in the list of processes.
pub(crate) fn private_key(
    directive: &'static str,
    path: &Path,
    passphrase: Option<Passphrase<'_>>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = zeroize::Zeroizing::new(read(directive, path)?);
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    if has(b"Proc-Type: 4,ENCRYPTED") {
        return Err(content(directive, path, format!("{OTHER_FORM} {REWRITE}")));
    }
    if has(ENCRYPTED) {
        return decrypted(directive, path, &bytes, passphrase);
    }
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => content(directive, path, "has no private key in PEM (BEGIN PRIVATE KEY)"),
        error => content(directive, path, format!("is not PEM: {}", described(&error))),
    })
}

const ENCRYPTED: &[u8] = b"ENCRYPTED PRIVATE KEY";
const OTHER_FORM: &str = "has a passphrase in a form that is not supported:";
const REWRITE: &str = "write it again with openssl pkcs8 -topk8 -v2 aes-256-cbc -in OLD -out NEW";

/// The key of a file that a passphrase protects.
fn decrypted(
    directive: &'static str,
    path: &Path,
    bytes: &[u8],
    passphrase: Option<Passphrase<'_>>,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    let Some(Passphrase { directive: pass_directive, text }) = passphrase.filter(|given| !given.text.is_empty()) else {
        let remedy = passphrase.map_or(String::new(), |missing| format!("give it to {}, or ", missing.directive));
        let reason = format!("has a passphrase: {remedy}write the key without one (openssl pkey -in OLD -out NEW)");
        return Err(content(directive, path, reason));
    };
    // The reader of PEM knows the kinds of keys that need no passphrase.
    let mut plain = zeroize::Zeroizing::new(Vec::with_capacity(bytes.len()));
    let mut rest = bytes;
    while let Some(at) = rest.windows(ENCRYPTED.len()).position(|window| window == ENCRYPTED) {
        plain.extend_from_slice(rest.get(..at).unwrap_or_default());
        plain.extend_from_slice(b"PRIVATE KEY");
        rest = rest.get(at + ENCRYPTED.len()..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    let encrypted = PrivatePkcs8KeyDer::from_pem_slice(&plain)
        .map_err(|error| content(directive, path, format!("is not PEM: {}", described(&error))))?;
    match encrypted_key::decrypt(encrypted.secret_pkcs8_der(), text) {
        Ok(key) => Ok(PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()))),
        Err(Undecrypted::Form) => Err(content(directive, path, format!("{OTHER_FORM} {REWRITE}"))),
        Err(Undecrypted::Passphrase) => {
            let reason =
                format!("cannot be read with the passphrase of {pass_directive}: it is wrong, or the key is damaged");
            Err(content(directive, path, reason))
        }
    }
}

/// A digest of the content of files, and of directories of files; what cannot be read counts as empty.
pub(crate) fn digest<'a>(paths: impl Iterator<Item = &'a Path>) -> [u8; 32] {
    let mut all = Sha256::new();
    let mut add = |path: &Path| {
        let bytes = zeroize::Zeroizing::new(read("", path).unwrap_or_default());
        all.update(path.as_os_str().as_encoded_bytes());
        all.update((bytes.len() as u64).to_le_bytes());
        all.update(&*bytes);
    };
    for path in paths {
        match files_in(path) {
            Ok(files) => files.iter().for_each(|file| add(file)),
            Err(_) => add(path),
        }
    }
    all.finalize().into()
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
