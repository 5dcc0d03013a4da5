//! Options of TLS, with the names of redis-cli: for `onggi bench` and `onggi cli`.

use crate::client::{Address, Security};
use crate::error::{BenchError, Result};
use clap::Args;
use std::path::PathBuf;
use tls::{ClientNames, ClientOptions};

/// How to connect with TLS.
#[derive(Args, Clone, Debug, Default)]
pub struct SecurityArgs {
    /// Connects with TLS. The server's chain and name are checked
    #[arg(long)]
    tls: bool,
    /// With TLS: the CAs to trust, in PEM; those of the system if neither this nor --cacertdir is given
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// With TLS: a directory of such files
    #[arg(long, value_name = "DIR")]
    cacertdir: Option<PathBuf>,
    /// With TLS: the certificate to show, in PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// With TLS: the private key of that certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// With TLS: the name to ask for, which the certificate has to carry, instead of the host
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// With TLS: accepts any certificate. An attacker who redirects the connection reads all of it
    #[arg(long, conflicts_with_all = ["cacert", "cacertdir"])]
    insecure: bool,
    /// With TLS: the suites of TLS 1.2, by OpenSSL's names
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    tls_ciphers: String,
    /// With TLS: the suites of TLS 1.3, by OpenSSL's names
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    tls_ciphersuites: String,
}

/// What errors call these options.
const NAMES: ClientNames =
    ClientNames { ca_file: "--cacert", ca_dir: "--cacertdir", certificate: "--cert", key: "--key" };

impl SecurityArgs {
    /// The security of connections to a server, or `None` for plain ones. An address such as `rediss://` asks for TLS
    /// without --tls.
    ///
    /// # Errors
    /// Options that need TLS without it, a unix socket, and a file that cannot be used.
    pub fn security(&self, address: &Address, is_asked_by_address: bool) -> Result<Option<Security>> {
        if !self.tls && !is_asked_by_address {
            return match self.first_given() {
                Some(option) => Err(BenchError::Usage(format!("{option} is for connections with TLS: add --tls"))),
                None => Ok(None),
            };
        }
        let host = address.host().ok_or_else(|| {
            BenchError::Usage(format!("{address}: TLS is for TCP: give a host and a port, or leave --tls out"))
        })?;
        let names_none = self.cacert.is_none() && self.cacertdir.is_none();
        let options = ClientOptions {
            ca_file: self.cacert.clone().or_else(|| names_none.then(tls::system_ca_file).flatten()),
            ca_dir: self.cacertdir.clone(),
            certificate: self.cert.clone(),
            key: self.key.clone(),
            ciphers: self.tls_ciphers.clone(),
            ciphersuites: self.tls_ciphersuites.clone(),
            is_insecure: self.insecure,
            names: NAMES,
        };
        let config = tls::client_config(&options)?;
        Ok(Some(Security { config, name: self.sni.as_deref().unwrap_or(host).to_owned() }))
    }

    /// An option that is of no use without TLS.
    fn first_given(&self) -> Option<&'static str> {
        let given = [
            ("--cacert", self.cacert.is_some()),
            ("--cacertdir", self.cacertdir.is_some()),
            ("--cert", self.cert.is_some()),
            ("--sni", self.sni.is_some()),
            ("--insecure", self.insecure),
            ("--tls-ciphers", !self.tls_ciphers.is_empty()),
            ("--tls-ciphersuites", !self.tls_ciphersuites.is_empty()),
        ];
        given.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}
