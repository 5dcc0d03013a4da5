//! Options of commands that connect to a server with TLS. They have the names of the server's directives.

use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
use tls::{ClientConfig, ClientOptions, TlsError};

/// How to connect with TLS. The server's chain and name are checked.
#[derive(Args, Clone, Debug, Default)]
pub struct TlsArgs {
    /// With TLS: the CAs to trust, in PEM; those of the system if neither this nor --tls-ca-cert-dir is given.
    #[arg(long, value_name = "FILE")]
    tls_ca_cert_file: Option<PathBuf>,
    /// With TLS: a directory of such files.
    #[arg(long, value_name = "DIR")]
    tls_ca_cert_dir: Option<PathBuf>,
    /// With TLS: the certificate to show, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_client_key_file")]
    tls_client_cert_file: Option<PathBuf>,
    /// With TLS: the private key of that certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_client_cert_file")]
    tls_client_key_file: Option<PathBuf>,
}

impl TlsArgs {
    /// The configuration of connections.
    ///
    /// # Errors
    /// The file at fault, and why.
    pub fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let names_none = self.tls_ca_cert_file.is_none() && self.tls_ca_cert_dir.is_none();
        tls::client_config(&ClientOptions {
            ca_file: self.tls_ca_cert_file.clone().or_else(|| names_none.then(tls::system_ca_file).flatten()),
            ca_dir: self.tls_ca_cert_dir.clone(),
            certificate: self.tls_client_cert_file.clone(),
            key: self.tls_client_key_file.clone(),
            ..ClientOptions::default()
        })
    }
}
