//! Clients of other hosts: what they see without a login and with one, over TLS, and how long they may take. The other
//! host is 127.0.0.2, from where a client may connect as well.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use web::{Access, Asked, Client, Facts, Limits, Login, Web};

/// Longest wait of a test.
const PATIENCE: Duration = Duration::from_secs(20);
const NEAR: Ipv4Addr = Ipv4Addr::LOCALHOST;
const FAR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A server with the users `admin`, `watcher` without rights but PING, and an open one for this host.
#[derive(Default)]
struct Fake {
    tls: Mutex<Option<Arc<ServerConfig>>>,
    logins: AtomicUsize,
    /// The certificate that logs `admin` in.
    certificate: Mutex<Option<CertificateDer<'static>>>,
    /// What the next answers wait for.
    delay: Mutex<Duration>,
}

impl Facts for Fake {
    fn info(&self) -> Option<String> {
        Some("# Server\r\nredis_version:9.1.0\r\nprocess_id:7\r\n".to_owned())
    }

    fn durations(&self) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn ask(&self, _: &[&str]) -> Option<Asked> {
        Some(Asked::Reply(b"*0\r\n".to_vec()))
    }

    fn access(&self, client: &Client, login: Option<Login<'_>>, words: &[&str]) -> (Access, Duration) {
        let access = match login {
            None if client.is_near => Access::Granted,
            Some(Login::Password("admin", "secret") | Login::Token(TOKEN)) => Access::Granted,
            Some(Login::Password("watcher", "secret")) if words == ["PING"] => Access::Granted,
            Some(Login::Password("watcher", "secret")) => Access::Forbidden,
            Some(Login::Certificate(shown)) if self.certificate.lock().unwrap().as_deref() == Some(shown) => {
                Access::Granted
            }
            _ => Access::NoLogin,
        };
        if login.is_some() && client.is_new && access != Access::NoLogin {
            self.logins.fetch_add(1, Ordering::Relaxed);
        }
        (access, if login.is_some() { *self.delay.lock().unwrap() } else { Duration::ZERO })
    }

    fn tls(&self) -> Option<Arc<ServerConfig>> {
        self.tls.lock().unwrap().clone()
    }

    fn health(&self) -> Result<(), String> {
        Ok(())
    }

    fn readiness(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A listener, and where it is.
fn open(fake: &Arc<Fake>, is_tls: bool, login_within: Duration) -> (SocketAddr, Web) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let limits = Limits { is_tls, login_within, is_near: |address| address.ip() == IpAddr::V4(NEAR) };
    (address, Web::start(vec![listener], limits, fake.clone()).unwrap())
}

fn connect(to: SocketAddr, from: Ipv4Addr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((from, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request; the status and all text of the answer. A login is what the header Authorization says.
fn get(stream: &mut (impl Read + Write), path: &str, login: Option<&str>) -> (u16, String) {
    let login = login.map(|login| format!("Authorization: {login}\r\n")).unwrap_or_default();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: onggi.example\r\n{login}\r\n").unwrap();
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0].into());
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).map(|it| it.parse().unwrap());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).unwrap();
    text.push_str(&String::from_utf8_lossy(&body));
    (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
}

/// `admin:secret`, `watcher:secret`, `admin:wrong`.
const ADMIN: &str = "Basic YWRtaW46c2VjcmV0";
const WATCHER: &str = "Basic d2F0Y2hlcjpzZWNyZXQ=";
const WRONG: &str = "Basic YWRtaW46d3Jvbmc=";
const TOKEN: &str = "mF_9.B5f-4.1JqM";

#[test]
fn other_hosts_see_nothing_without_a_login() {
    let fake = Arc::new(Fake::default());
    let (address, _web) = open(&fake, false, PATIENCE);
    let paths = ["/", "/page.js", "/metrics", "/healthz", "/readyz", "/api/info", "/api/history", "/api/live", "/no"];
    for path in paths {
        for login in [None, Some(WRONG), Some("Bearer mF_9.B5f-4.1Jq"), Some("Bearer"), Some("Digest admin")] {
            let (status, text) = get(&mut connect(address, FAR), path, login);
            assert_eq!(status, 401, "{path}: {text}");
            assert!(
                text.contains("www-authenticate: Basic realm=\"onggi\"")
                    && text.contains("Bearer realm=")
                    && !text.contains("9.1.0"),
                "{text}"
            );
        }
    }
    assert_eq!(fake.logins.load(Ordering::Relaxed), 0);
    let mut stream = connect(address, FAR);
    for path in ["/", "/metrics", "/healthz", "/api/info", "/api/clients"] {
        assert_eq!(get(&mut stream, path, Some(ADMIN)).0, 200, "{path}");
    }
    assert_eq!(fake.logins.load(Ordering::Relaxed), 1, "one for a connection");
    assert_eq!(get(&mut stream, "/metrics", None).0, 401, "each request carries its login");
    assert_eq!(get(&mut stream, "/metrics", Some(WATCHER)).0, 403);
    assert_eq!(get(&mut stream, "/healthz", Some(WATCHER)).0, 200);
    // This host needs none, but a name that no other site can have.
    assert_eq!(get(&mut connect(address, NEAR), "/metrics", None).0, 421);
}

#[test]
fn a_token_is_a_login() {
    let fake = Arc::new(Fake::default());
    let (address, _web) = open(&fake, false, PATIENCE);
    let mut stream = connect(address, FAR);
    for path in ["/", "/metrics", "/healthz", "/api/clients"] {
        assert_eq!(get(&mut stream, path, Some(&format!("Bearer {TOKEN}"))).0, 200, "{path}");
    }
    assert_eq!(fake.logins.load(Ordering::Relaxed), 1);
    // Longer than any token, and then without an end.
    let long = format!("Bearer {}", "x".repeat(100_000));
    assert_eq!(get(&mut connect(address, FAR), "/metrics", Some(&long)).0, 401);
    let mut endless = connect(address, FAR);
    endless.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ").unwrap();
    let sent = (0..1 << 10).take_while(|_| endless.write_all(&[b'x'; 1 << 14]).is_ok()).count();
    assert!(sent < 1 << 10, "16 MB of a header are not taken");
}

/// The server says how long.
#[test]
fn answers_to_logins_wait() {
    let fake = Arc::new(Fake::default());
    *fake.delay.lock().unwrap() = Duration::from_millis(400);
    let (address, _web) = open(&fake, false, PATIENCE);
    let began = Instant::now();
    for login in [WRONG, ADMIN] {
        get(&mut connect(address, FAR), "/metrics", Some(login));
    }
    assert!(began.elapsed() >= Duration::from_millis(800), "{:?}", began.elapsed());
}

fn certificates() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(server), Arc::new(client))
}

fn over_tls(config: &Arc<ClientConfig>, address: SocketAddr) -> StreamOwned<ClientConnection, TcpStream> {
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(config.clone(), name).unwrap(), connect(address, FAR))
}

/// A CA, for a server that asks for certificates of it, and clients with one and without.
struct Authority {
    key: KeyPair,
    params: CertificateParams,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { key: KeyPair::generate().unwrap(), params }
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.params.self_signed(&self.key).unwrap().der().clone()).unwrap();
        roots
    }

    fn issue(&self) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::from_params(&self.params, &self.key);
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
        (certificate, PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())))
    }

    fn server(&self) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()), provider.clone());
        let (certificate, key) = self.issue();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
            .with_single_cert(vec![certificate], key);
        Arc::new(config.unwrap())
    }

    fn client(&self, shown: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>) -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots());
        Arc::new(match shown {
            Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).unwrap(),
            None => builder.with_no_client_auth(),
        })
    }
}

#[test]
fn a_certificate_is_a_login() {
    let (fake, authority) = (Arc::new(Fake::default()), Authority::new());
    *fake.tls.lock().unwrap() = Some(authority.server());
    let (address, _web) = open(&fake, true, PATIENCE);
    let (mine, other) = (authority.issue(), authority.issue());
    *fake.certificate.lock().unwrap() = Some(mine.0.clone());
    let mine = authority.client(Some(mine));
    let mut stream = over_tls(&mine, address);
    for path in ["/", "/metrics", "/api/clients"] {
        assert_eq!(get(&mut stream, path, None).0, 200, "{path}");
    }
    assert_eq!(fake.logins.load(Ordering::Relaxed), 1);
    assert_eq!(get(&mut stream, "/metrics", Some(WRONG)).0, 401, "the header is asked, if there is one");
    // A session that is resumed has the certificate that it began with.
    let mut again = over_tls(&mine, address);
    assert_eq!(get(&mut again, "/metrics", None).0, 200);
    for shown in [Some(other), None] {
        let mut stream = over_tls(&authority.client(shown), address);
        assert_eq!(get(&mut stream, "/metrics", None).0, 401);
        assert_eq!(get(&mut stream, "/metrics", Some(ADMIN)).0, 200);
    }
    let mut refused = over_tls(&authority.client(Some(Authority::new().issue())), address);
    let _ = refused.write_all(b"GET / HTTP/1.1\r\n\r\n");
    assert!(refused.read(&mut [0]).is_err(), "a certificate of another CA");
}

#[test]
fn tls_serves_each_certificate_in_turn() {
    let fake = Arc::new(Fake::default());
    let (address, _web) = open(&fake, true, PATIENCE);
    assert_eq!(connect(address, FAR).read(&mut [0]).unwrap_or(0), 0, "no certificate yet: closed");
    let (first, trusts_first) = certificates();
    *fake.tls.lock().unwrap() = Some(first);
    let mut stream = over_tls(&trusts_first, address);
    assert_eq!(get(&mut stream, "/metrics", Some(ADMIN)).0, 200);
    assert!(get(&mut stream, "/charts.js", Some(ADMIN)).1.len() > 1000);
    let (second, trusts_second) = certificates();
    *fake.tls.lock().unwrap() = Some(second);
    assert_eq!(get(&mut stream, "/metrics", Some(ADMIN)).0, 200, "a connection keeps its own");
    assert_eq!(get(&mut over_tls(&trusts_second, address), "/metrics", Some(ADMIN)).0, 200);
    let mut plain = connect(address, FAR);
    plain.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP") && answer.len() < 100, "an alert, and nothing else");
}

/// Neither silence nor a request without end, a handshake that stops, or refused logins keep a connection.
#[test]
fn strangers_are_closed_in_time() {
    let fake = Arc::new(Fake::default());
    *fake.tls.lock().unwrap() = Some(certificates().0);
    let within = Duration::from_millis(300);
    for (is_tls, sent) in [(false, ""), (false, "GET / HT"), (true, ""), (true, "\u{16}\u{3}\u{1}")] {
        let (address, _web) = open(&fake, is_tls, within);
        let (mut far, mut near) = (connect(address, FAR), connect(address, NEAR));
        far.write_all(sent.as_bytes()).unwrap();
        near.write_all(sent.as_bytes()).unwrap();
        let began = Instant::now();
        assert_eq!(far.read(&mut [0]).unwrap_or(0), 0, "{is_tls} {sent:?}");
        assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
        near.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(near.read(&mut [0]).is_err(), "one of this host stays");
    }
    let (address, _web) = open(&fake, false, within);
    let mut far = connect(address, FAR);
    assert_eq!(get(&mut far, "/metrics", None).0, 401);
    assert_eq!(far.read(&mut [0]).unwrap_or(0), 0);
    let mut entered = connect(address, FAR);
    assert_eq!(get(&mut entered, "/metrics", Some(ADMIN)).0, 200);
    std::thread::sleep(within * 2);
    assert_eq!(get(&mut entered, "/metrics", Some(ADMIN)).0, 200, "one that logged in stays");
}
