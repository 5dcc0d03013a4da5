//! From settings and files to configurations of `rustls`.

use crate::TlsError;
use crate::certificate::{self, Facts};
use crate::files::{self, Authorities, Passphrase};
use crate::suites::Offer;
use crate::verifier::{ChainOnly, Unchecked};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::Ticketer;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Whether clients show a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// They need none, and are not asked.
    No,
    /// They need one.
    #[default]
    Yes,
    /// They are asked, and one that they show must be valid.
    Optional,
}

/// The passphrase of a key. It is wiped from memory when dropped, and `Debug` does not show it.
#[derive(Clone, Default)]
pub struct KeyPass(Zeroizing<Vec<u8>>);

impl KeyPass {
    /// Takes the bytes of a passphrase; empty means none.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(bytes.to_vec()))
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyPass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "(none)" } else { "(redacted)" })
    }
}

/// The settings, as their directives name them.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A listener uses TLS.
    pub serves: bool,
    /// Connections to other servers use TLS.
    pub connects: bool,
    /// `tls-cert-file`.
    pub certificate: Option<PathBuf>,
    /// `tls-key-file`.
    pub key: Option<PathBuf>,
    /// `tls-client-cert-file`: shown to other servers; without it, that of the server.
    pub client_certificate: Option<PathBuf>,
    /// `tls-client-key-file`.
    pub client_key: Option<PathBuf>,
    /// `tls-key-file-pass`; empty for none.
    pub key_pass: KeyPass,
    /// `tls-client-key-file-pass`; empty for none.
    pub client_key_pass: KeyPass,
    /// `tls-ca-cert-file`.
    pub ca_file: Option<PathBuf>,
    /// `tls-ca-cert-dir`.
    pub ca_dir: Option<PathBuf>,
    /// `tls-auth-clients`.
    pub clients: ClientAuth,
    /// `tls-protocols`.
    pub protocols: String,
    /// `tls-ciphers`.
    pub ciphers: String,
    /// `tls-ciphersuites`.
    pub ciphersuites: String,
    /// `tls-prefer-server-ciphers`.
    pub prefers_own_order: bool,
    /// `tls-session-caching`.
    pub resumes: bool,
}

/// Configurations that belong together.
#[derive(Default)]
pub struct Loaded {
    /// For listeners.
    pub server: Option<Arc<ServerConfig>>,
    /// For connections to other servers.
    pub client: Option<Arc<ClientConfig>>,
    /// The certificate that the server shows.
    pub server_certificate: Option<Facts>,
    /// The certificate that it shows to other servers.
    pub client_certificate: Option<Facts>,
    /// The first trusted CA.
    pub ca_certificate: Option<Facts>,
    /// What the files held.
    pub digest: [u8; 32],
}

/// What the files hold that a load would read. Passphrases and other settings are no part of it.
pub fn digest(options: &Options) -> [u8; 32] {
    let all = [
        &options.certificate,
        &options.key,
        &options.client_certificate,
        &options.client_key,
        &options.ca_file,
        &options.ca_dir,
    ];
    files::digest(all.into_iter().flatten().map(PathBuf::as_path))
}

/// A certificate with its chain, and its key.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// Reads both files, and checks that they belong together.
    fn read(
        (cert_directive, cert): (&'static str, &Path),
        (key_directive, key_path): (&'static str, &Path),
        passphrase: Option<Passphrase<'_>>,
        provider: &CryptoProvider,
    ) -> Result<Self, TlsError> {
        let chain = files::certificates(cert_directive, cert)?;
        let key = files::private_key(key_directive, key_path, passphrase)?;
        let rejected =
            |reason: String| TlsError::Content { directive: key_directive, path: key_path.to_owned(), reason };
        CertifiedKey::from_der(chain.clone(), key.clone_key(), provider).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                rejected(format!("is not the key of the certificate in {}", cert.display()))
            }
            rustls::Error::InvalidCertificate(error) => TlsError::Content {
                directive: cert_directive,
                path: cert.to_owned(),
                reason: format!("cannot be used: {error}"),
            },
            error => rejected(format!("cannot be used: {error}")),
        })?;
        Ok(Self { chain, key })
    }

    fn facts(&self) -> Option<Facts> {
        self.chain.first().and_then(|certificate| certificate::facts(certificate))
    }
}

/// Reads all files and makes the configurations that the settings ask for.
///
/// # Errors
/// The first directive or file at fault, and why.
pub fn load(options: &Options) -> Result<Loaded, TlsError> {
    if !options.serves && !options.connects {
        return Ok(Loaded::default());
    }
    let offer = Offer::of(&options.protocols, &options.ciphers, &options.ciphersuites)?;
    // Before the files are read: what changes meanwhile is found by the next look.
    let digest = digest(options);
    let authorities = files::authorities(
        ("tls-ca-cert-file", options.ca_file.as_deref()),
        ("tls-ca-cert-dir", options.ca_dir.as_deref()),
    )?;
    let own = own_identity(options, &offer.provider)?;
    let other = client_identity(options, &offer.provider)?;
    let mut loaded = Loaded {
        ca_certificate: authorities.as_ref().and_then(|all| certificate::facts(&all.first)),
        server_certificate: own.as_ref().and_then(Identity::facts),
        client_certificate: other.as_ref().and_then(Identity::facts),
        digest,
        ..Loaded::default()
    };
    if options.connects {
        let all = authorities.as_ref().ok_or(TlsError::Missing {
            directive: "tls-ca-cert-file",
            why: "tls-replication has to know which CA signs the certificates of other servers",
        })?;
        let identity = other.as_ref().or(own.as_ref());
        let verifier = ChainOnly::new(all.roots.clone(), offer.provider.clone()).map_err(refused)?;
        loaded.client = Some(Arc::new(connecting(&offer, Arc::new(verifier), identity)?));
    }
    if options.serves {
        let own = own
            .ok_or(TlsError::Missing { directive: "tls-cert-file", why: "a listener with TLS needs a certificate" })?;
        loaded.server = Some(Arc::new(serving(options, &offer, authorities, own)?));
    }
    Ok(loaded)
}

/// What the server shows to its clients; `None` when neither file is set.
fn own_identity(options: &Options, provider: &CryptoProvider) -> Result<Option<Identity>, TlsError> {
    let passphrase = Passphrase { directive: "tls-key-file-pass", text: options.key_pass.bytes() };
    let certificate = ("tls-cert-file", options.certificate.as_deref());
    pair(certificate, ("tls-key-file", options.key.as_deref()), Some(passphrase), provider)
}

fn client_identity(options: &Options, provider: &CryptoProvider) -> Result<Option<Identity>, TlsError> {
    let certificate = ("tls-client-cert-file", options.client_certificate.as_deref());
    let passphrase = Passphrase { directive: "tls-client-key-file-pass", text: options.client_key_pass.bytes() };
    pair(certificate, ("tls-client-key-file", options.client_key.as_deref()), Some(passphrase), provider)
}

fn pair(
    (cert_directive, cert): (&'static str, Option<&Path>),
    (key_directive, key): (&'static str, Option<&Path>),
    passphrase: Option<Passphrase<'_>>,
    provider: &CryptoProvider,
) -> Result<Option<Identity>, TlsError> {
    match (cert, key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => {
            Identity::read((cert_directive, cert), (key_directive, key), passphrase, provider).map(Some)
        }
        (None, _) => Err(TlsError::Missing { directive: cert_directive, why: "its key is set, and useless alone" }),
        (_, None) => Err(TlsError::Missing { directive: key_directive, why: "a certificate needs its key" }),
    }
}

fn serving(
    options: &Options,
    offer: &Offer,
    authorities: Option<Authorities>,
    own: Identity,
) -> Result<ServerConfig, TlsError> {
    let builder =
        ServerConfig::builder_with_provider(offer.provider.clone()).with_protocol_versions(&offer.versions)?;
    let builder = match options.clients {
        ClientAuth::No => builder.with_no_client_auth(),
        clients => builder.with_client_cert_verifier(client_verifier(clients, offer, authorities)?),
    };
    let mut config = builder.with_single_cert(own.chain, own.key)?;
    config.ignore_client_order = options.prefers_own_order;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    if options.resumes {
        // New keys with each load (T2), and again every six hours.
        config.ticketer = Ticketer::new()?;
    } else {
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

fn client_verifier(
    clients: ClientAuth,
    offer: &Offer,
    authorities: Option<Authorities>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let all = authorities.ok_or(TlsError::Missing {
        directive: "tls-ca-cert-file",
        why: "tls-auth-clients has to know which CA signs the certificates of clients. Set it or tls-ca-cert-dir, or \
              tls-auth-clients no",
    })?;
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(all.roots), offer.provider.clone());
    let builder = if clients == ClientAuth::Optional { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(refused)
}

fn refused(error: VerifierBuilderError) -> TlsError {
    TlsError::Rejected(rustls::Error::General(error.to_string()))
}

fn connecting(
    offer: &Offer,
    verifier: Arc<dyn ServerCertVerifier>,
    identity: Option<&Identity>,
) -> Result<ClientConfig, TlsError> {
    let builder =
        ClientConfig::builder_with_provider(offer.provider.clone()).with_protocol_versions(&offer.versions)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some(identity) => builder.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?,
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::in_memory_sessions(32);
    Ok(config)
}

/// How a tool connects to a server with TLS.
#[derive(Clone, Debug, Default)]
pub struct ClientOptions {
    /// The CAs to trust.
    pub ca_file: Option<PathBuf>,
    /// A directory of such files.
    pub ca_dir: Option<PathBuf>,
    /// The certificate to show, if the server asks.
    pub certificate: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// Suites of TLS 1.2, by OpenSSL's names; all if empty.
    pub ciphers: String,
    /// Suites of TLS 1.3; all if empty.
    pub ciphersuites: String,
    /// Accepts any certificate: which server answers is not known.
    pub is_insecure: bool,
    /// What errors call these options.
    pub names: ClientNames,
}

/// The names of a tool's options.
#[derive(Clone, Copy, Debug)]
pub struct ClientNames {
    /// Of the CAs.
    pub ca_file: &'static str,
    /// Of the directory of CAs.
    pub ca_dir: &'static str,
    /// Of the certificate.
    pub certificate: &'static str,
    /// Of its key.
    pub key: &'static str,
}

impl Default for ClientNames {
    /// Those of the server's directives.
    fn default() -> Self {
        Self {
            ca_file: "tls-ca-cert-file",
            ca_dir: "tls-ca-cert-dir",
            certificate: "tls-client-cert-file",
            key: "tls-client-key-file",
        }
    }
}

/// Where the CAs of a system are: Debian's place, and Fedora's.
const SYSTEM_CAS: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The CAs of this system, for a tool whose user names none.
pub fn system_ca_file() -> Option<PathBuf> {
    SYSTEM_CAS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// The configuration of a tool. It checks the server's chain and name, unless it accepts any certificate.
///
/// # Errors
/// The first file at fault, and why.
pub fn client_config(options: &ClientOptions) -> Result<Arc<ClientConfig>, TlsError> {
    let names = options.names;
    let offer = Offer::of("", &options.ciphers, &options.ciphersuites)?;
    let (certificate, key) = (options.certificate.as_deref(), options.key.as_deref());
    let identity = pair((names.certificate, certificate), (names.key, key), None, &offer.provider)?;
    if options.is_insecure {
        return connecting(&offer, Arc::new(Unchecked(offer.provider.clone())), identity.as_ref()).map(Arc::new);
    }
    let (ca_file, ca_dir) = (options.ca_file.as_deref(), options.ca_dir.as_deref());
    let all = files::authorities((names.ca_file, ca_file), (names.ca_dir, ca_dir))?.ok_or(TlsError::Missing {
        directive: names.ca_file,
        why: "name the file of the CA that signs the server's certificate",
    })?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(all.roots), offer.provider.clone())
        .build()
        .map_err(refused)?;
    connecting(&offer, verifier, identity.as_ref()).map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use std::fs;

    /// Each fault names its directive and file, and nothing is made of the rest.
    #[test]
    fn faults_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let certificate = CertificateParams::default().self_signed(&key).unwrap().pem();
        fs::write(path("c.pem"), &certificate).unwrap();
        fs::write(path("k.pem"), key.serialize_pem()).unwrap();
        fs::write(path("other.pem"), other.serialize_pem()).unwrap();
        fs::write(
            path("secret.pem"),
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n",
        )
        .unwrap();
        fs::write(path("cut.pem"), &certificate[..certificate.len() / 2]).unwrap();
        fs::create_dir(path("empty")).unwrap();
        let some = |name: &str| Some(path(name));
        let good = Options {
            serves: true,
            certificate: some("c.pem"),
            key: some("k.pem"),
            ca_file: some("c.pem"),
            ..Options::default()
        };
        assert!(load(&good).unwrap().server.is_some());
        assert!(load(&Options { connects: true, ..good.clone() }).unwrap().client.is_some());
        assert!(load(&Options { ca_file: None, ca_dir: some(""), ..good.clone() }).unwrap().ca_certificate.is_some());
        for (options, directive, reason) in [
            (Options { certificate: None, key: None, ..good.clone() }, "tls-cert-file", "is not set"),
            (Options { key: None, ..good.clone() }, "tls-key-file", "is not set"),
            (Options { certificate: None, ..good.clone() }, "tls-cert-file", "is not set"),
            (Options { ca_file: None, ..good.clone() }, "tls-ca-cert-file", "is not set"),
            (Options { key: some("other.pem"), ..good.clone() }, "tls-key-file", "other.pem is not the key of"),
            (Options { key: some("secret.pem"), ..good.clone() }, "tls-key-file", "secret.pem has a passphrase"),
            (Options { key: some("c.pem"), ..good.clone() }, "tls-key-file", "c.pem has no private key"),
            (Options { certificate: some("cut.pem"), ..good.clone() }, "tls-cert-file", "cut.pem is not PEM"),
            (Options { certificate: some("gone"), ..good.clone() }, "tls-cert-file", "gone: No such file"),
            (
                Options { certificate: some("empty"), ..good.clone() },
                "tls-cert-file",
                "empty: it is not a regular file",
            ),
            (Options { ca_dir: some("empty"), ..good.clone() }, "tls-ca-cert-dir", "empty has no file with"),
            (Options { client_key: some("k.pem"), ..good.clone() }, "tls-client-cert-file", "is not set"),
        ] {
            let error = load(&options).err().unwrap();
            assert_eq!(error.directive(), Some(directive), "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
