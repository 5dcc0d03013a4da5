//! The settings of TLS: which directives they are, and what they ask of crate `tls`.

use config::{Directive, Settings, TlsAuthClients};
use std::io;
use tls::{ClientAuth, KeyPass, Loaded, Options, TlsError};

/// Whether a change of this directive makes new configurations.
pub(crate) fn concerns(row: &Directive) -> bool {
    let is_port = matches!(row.name, "memcached-port" | "ssdb-port");
    (row.name.starts_with("tls-") || is_port) && row.setting().is_some()
}

/// Reads the files that the settings name.
///
/// # Errors
/// The directive or file at fault. Nothing has changed.
pub(crate) fn load(settings: &Settings) -> Result<Loaded, TlsError> {
    tls::load(&options(settings)).map_err(|error| match error {
        TlsError::Read { directive, path, source }
            if source.kind() == io::ErrorKind::PermissionDenied && sandbox::excludes(&path) =>
        {
            TlsError::Read { directive, path, source: io::Error::other(OUTSIDE) }
        }
        error => error,
    })
}

/// Why a file cannot be read that the system would let the server's user read.
const OUTSIDE: &str =
    "it is outside of the directories of the start (sandbox yes); give its directory to sandbox-allow-path and restart";

/// Whether the files hold something else than what was loaded last.
pub(crate) fn has_changed(settings: &Settings, loaded: &Loaded) -> bool {
    tls::digest(&options(settings)) != loaded.digest
}

/// Whether a listener or a connection to another server uses TLS.
pub(crate) fn is_used(settings: &Settings) -> bool {
    let options = options(settings);
    options.serves || options.connects
}

fn options(settings: &Settings) -> Options {
    Options {
        serves: settings.tls_port != 0
            || settings.memcached_tls && settings.memcached_port != 0
            || settings.ssdb_tls && settings.ssdb_port != 0
            || settings.http_tls && settings.http_port != 0,
        connects: settings.tls_replication,
        certificate: settings.tls_cert_file.clone(),
        key: settings.tls_key_file.clone(),
        client_certificate: settings.tls_client_cert_file.clone(),
        client_key: settings.tls_client_key_file.clone(),
        key_pass: KeyPass::new(settings.tls_key_file_pass.expose()),
        client_key_pass: KeyPass::new(settings.tls_client_key_file_pass.expose()),
        ca_file: settings.tls_ca_cert_file.clone(),
        ca_dir: settings.tls_ca_cert_dir.clone(),
        clients: match settings.tls_auth_clients {
            TlsAuthClients::No => ClientAuth::No,
            TlsAuthClients::Yes => ClientAuth::Yes,
            TlsAuthClients::Optional => ClientAuth::Optional,
        },
        protocols: settings.tls_protocols.clone(),
        ciphers: settings.tls_ciphers.clone(),
        ciphersuites: settings.tls_ciphersuites.clone(),
        prefers_own_order: settings.tls_prefer_server_ciphers,
        resumes: settings.tls_session_caching,
    }
}
