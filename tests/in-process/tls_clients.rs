//! Clients over TLS: what they may do, what certificates they and the server show, and that no byte is left over.

use crate::harness::request;
use crate::reply::Reply;
use crate::served::{Client, SILENCE_MAX, Served};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, HandshakeKind, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};
use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tempfile::TempDir;

/// Requests of the long pipelines. They are far longer than a record, and than what the server reads at once.
const PIPELINE_LEN: usize = 10_000;

/// A certificate and its key, in PEM.
struct Pair {
    certificate: String,
    key: String,
}

/// A CA.
struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let mut params = params();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate").pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}

fn params() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params
}

fn self_signed() -> Pair {
    let key = KeyPair::generate().expect("a key");
    Pair { certificate: params().self_signed(&key).expect("a certificate").pem(), key: key.serialize_pem() }
}

fn expired(params: &mut CertificateParams) {
    (params.not_before, params.not_after) = (date_time_ymd(2001, 1, 1), date_time_ymd(2001, 2, 1));
}

/// The files of a server.
struct Files {
    dir: TempDir,
    authority: Authority,
}

impl Files {
    fn new() -> Self {
        let files = Self { dir: TempDir::new().expect("a directory"), authority: Authority::new("the CA") };
        files.write("ca.pem", &files.authority.certificate);
        files.show(&files.authority.issue(|_| {}));
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    /// Puts the server's certificate and key into their files.
    fn show(&self, pair: &Pair) {
        self.write("server.pem", &pair.certificate);
        self.write("server.key", &pair.key);
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("a path in UTF-8").to_owned()
    }

    /// A server with these certificates, and more options.
    fn serve(&self, more: &[&str]) -> Served {
        let [certificate, key, ca] = ["server.pem", "server.key", "ca.pem"].map(|name| self.text(name));
        let mut options = vec!["--tls-port", "6380", "--tls-cert-file", &certificate, "--tls-key-file", &key];
        options.extend(["--tls-ca-cert-file", &ca]);
        options.extend(more);
        Served::start(&options)
    }
}

/// What a client brings.
struct ClientSide<'a> {
    trusts: &'a str,
    shows: Option<&'a Pair>,
    versions: &'a [&'static SupportedProtocolVersion],
    name: &'static str,
}

const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];

impl<'a> ClientSide<'a> {
    fn of(files: &'a Files) -> Self {
        Self { trusts: &files.authority.certificate, shows: None, versions: BOTH, name: "localhost" }
    }

    fn config(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.trusts.as_bytes()).expect("PEM")).expect("a CA");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(self.versions)
            .expect("versions")
            .with_root_certificates(roots);
        Arc::new(match self.shows {
            None => builder.with_no_client_auth(),
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_slice(pair.certificate.as_bytes()).expect("PEM")];
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("PEM");
                builder.with_client_auth_cert(chain, key).expect("a certificate and its key")
            }
        })
    }

    fn connect(&self, address: SocketAddr) -> TlsClient {
        self.connect_with(self.config(), address)
    }

    fn connect_with(&self, config: Arc<ClientConfig>, address: SocketAddr) -> TlsClient {
        let name = ServerName::try_from(self.name).expect("a name");
        let connection = ClientConnection::new(config, name).expect("a connection");
        TlsClient(BufReader::new(StreamOwned::new(connection, socket(address))))
    }
}

fn socket(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server accepts");
    stream.set_read_timeout(Some(SILENCE_MAX)).expect("a socket takes a time limit");
    stream.set_write_timeout(Some(SILENCE_MAX)).expect("a socket takes a time limit");
    stream.set_nodelay(true).expect("a socket sends at once");
    stream
}

struct TlsClient(BufReader<StreamOwned<ClientConnection, TcpStream>>);

impl TlsClient {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().write_all(bytes)?;
        self.0.get_mut().flush()
    }

    /// PING, and whether it was answered.
    fn ping(&mut self) -> Result<(), io::Error> {
        self.send(b"PING\r\n")?;
        let mut answer = [0; 7];
        self.0.read_exact(&mut answer)?;
        assert_eq!(&answer, b"+PONG\r\n");
        Ok(())
    }

    #[track_caller]
    fn run(&mut self, words: &[&str]) -> Reply {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.send(&request(&words)).expect("an open connection");
        Reply::read(&mut self.0).expect("an open connection")
    }

    /// The first certificate that the server has shown.
    fn certificate(&self) -> CertificateDer<'static> {
        self.0.get_ref().conn.peer_certificates().expect("a certificate")[0].clone().into_owned()
    }

    fn tls(&mut self) -> &mut ClientConnection {
        &mut self.0.get_mut().conn
    }

    fn socket(&mut self) -> &mut TcpStream {
        &mut self.0.get_mut().sock
    }

    /// Takes the ciphertext that waits to be sent.
    fn ciphertext(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.tls().wants_write() {
            self.tls().write_tls(&mut bytes).expect("a vector takes all");
        }
        bytes
    }
}

fn bulk(text: &str) -> Reply {
    Reply::Bulk(Some(text.to_owned()))
}

/// What rustls found wrong on the client's side.
fn fault(result: Result<(), io::Error>) -> Error {
    let error = result.expect_err("the handshake fails");
    error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).unwrap_or_else(|| panic!("{error}")).clone()
}

/// The other server's alert, or its close, which may come first.
#[track_caller]
fn assert_refused(result: Result<(), io::Error>) {
    result.expect_err("the server refuses the client");
}

#[test]
fn both_versions_are_served_and_each_can_be_the_only_one() {
    let files = Files::new();
    for (setting, versions) in [("TLSv1.2", [true, false]), ("TLSv1.3", [false, true]), ("", [true, true])] {
        let served = files.serve(&["--tls-auth-clients", "no", "--tls-protocols", setting]);
        for (version, is_served) in [&TLS12, &TLS13].into_iter().zip(versions) {
            let only = ClientSide { versions: &[version], ..ClientSide::of(&files) };
            let mut client = only.connect(served.tls_address);
            match is_served {
                true => {
                    client.ping().unwrap();
                    assert_eq!(client.run(&["SET", "k", setting]), Reply::Simple("OK".into()));
                }
                false => assert_refused(client.ping()),
            }
        }
        assert_eq!(served.connect().run(&["GET", "k"]), bulk(setting), "plain clients see the same data");
    }
}

/// The client refuses what it must not trust, and the server keeps serving.
#[test]
fn clients_see_bad_certificates() {
    let files = Files::new();
    let other = Authority::new("another CA");
    for (pair, expected) in [
        (files.authority.issue(expired), "Expired"),
        (other.issue(|_| {}), "UnknownIssuer"),
        (self_signed(), "UnknownIssuer"),
        (
            files.authority.issue(|params| *params = CertificateParams::new(vec!["elsewhere".to_owned()]).unwrap()),
            "NotValidForName",
        ),
    ] {
        files.show(&pair);
        let served = files.serve(&["--tls-auth-clients", "no"]);
        let found = fault(ClientSide::of(&files).connect(served.tls_address).ping());
        let Error::InvalidCertificate(found) = found else { panic!("{found}") };
        let name = match found {
            CertificateError::ExpiredContext { .. } | CertificateError::Expired => "Expired",
            CertificateError::UnknownIssuer => "UnknownIssuer",
            CertificateError::NotValidForNameContext { .. } | CertificateError::NotValidForName => "NotValidForName",
            other => panic!("{other}"),
        };
        assert_eq!(name, expected);
        assert_eq!(served.connect().run(&["PING"]), Reply::Simple("PONG".into()));
    }
}

#[test]
fn clients_show_certificates_as_the_setting_says() {
    let files = Files::new();
    let good = files.authority.issue(|_| {});
    let bad = [files.authority.issue(expired), Authority::new("another CA").issue(|_| {}), self_signed()];
    for (setting, none_will_do) in [("yes", false), ("optional", true)] {
        let served = files.serve(&["--tls-auth-clients", setting]);
        for versions in [&[&TLS12][..], &[&TLS13]] {
            let ping =
                |shows| ClientSide { shows, versions, ..ClientSide::of(&files) }.connect(served.tls_address).ping();
            ping(Some(&good)).unwrap();
            assert_eq!(ping(None).is_ok(), none_will_do, "{setting}");
            bad.iter().for_each(|pair| assert_refused(ping(Some(pair))));
        }
    }
    let served = files.serve(&["--tls-auth-clients", "no"]);
    ClientSide { shows: Some(&bad[0]), ..ClientSide::of(&files) }.connect(served.tls_address).ping().unwrap();
}

/// Plaintext that rustls holds when the worker's buffer is full is not forgotten: no event announces it.
#[test]
fn long_pipelines_complete() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no"]);
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let mut client = ClientSide { versions, ..ClientSide::of(&files) }.connect(served.tls_address);
        client.ping().unwrap();
        client.run(&["DEL", "n"]);
        // In one piece, before any reply is read.
        let pipeline = request(&[b"INCR", b"n"]).repeat(PIPELINE_LEN);
        client.send(&pipeline).unwrap();
        for number in 1..=PIPELINE_LEN {
            assert_eq!(Reply::read(&mut client.0), Some(Reply::Int(number as i64)));
        }
        let value = "x".repeat(1000);
        let pipeline = request(&[b"SET", b"k", value.as_bytes()]).repeat(PIPELINE_LEN);
        client.send(&pipeline).unwrap();
        (0..PIPELINE_LEN).for_each(|_| assert_eq!(Reply::read(&mut client.0), Some(Reply::Simple("OK".into()))));
    }
}

/// Ciphertext that the socket does not take is sent later, although no reply is left to send.
#[test]
fn big_replies_reach_a_client_that_reads_late() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no"]);
    let mut client = ClientSide::of(&files).connect(served.tls_address);
    let value: String = (0..1_000_000).map(|number| char::from(b'a' + (number % 26) as u8)).collect();
    assert_eq!(client.run(&["SET", "k", &value]), Reply::Simple("OK".into()));
    for count in [1, 2, 20] {
        client.send(&request(&[b"GET", b"k"]).repeat(count)).unwrap();
        // Another client's replies show that the server had its turn: the socket of this one is full.
        (0..100).for_each(|_| assert_eq!(served.connect().run(&["PING"]), Reply::Simple("PONG".into())));
        (0..count).for_each(|_| assert!(Reply::read(&mut client.0) == Some(bulk(&value))));
    }
    client.send(&[&request(&[b"GET", b"k"])[..], b"QUIT\r\n"].concat()).unwrap();
    (0..100).for_each(|_| assert_eq!(served.connect().run(&["PING"]), Reply::Simple("PONG".into())));
    assert!(Reply::read(&mut client.0) == Some(bulk(&value)), "the rest comes before the close");
    assert_eq!(Reply::read(&mut client.0), Some(Reply::Simple("OK".into())));
    assert_eq!(client.0.read(&mut [0; 1]).unwrap(), 0, "the end is announced: nothing was cut off");
}

#[test]
fn records_may_come_in_any_pieces() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no"]);
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let mut client = ClientSide { versions, ..ClientSide::of(&files) }.connect(served.tls_address);
        // The handshake, byte by byte.
        while client.tls().is_handshaking() {
            for byte in client.ciphertext() {
                client.socket().write_all(&[byte]).unwrap();
            }
            if client.tls().wants_read() && client.tls().is_handshaking() {
                let TlsClient(stream) = &mut client;
                let StreamOwned { conn, sock } = stream.get_mut();
                conn.read_tls(sock).unwrap();
                conn.process_new_packets().unwrap();
            }
        }
        // A request, in two pieces at every place.
        let mut at = 0;
        loop {
            client.tls().writer().write_all(b"PING\r\n").unwrap();
            let bytes = client.ciphertext();
            if at > bytes.len() {
                break;
            }
            client.socket().write_all(&bytes[..at]).unwrap();
            assert_eq!(served.connect().run(&["PING"]), Reply::Simple("PONG".into()));
            client.socket().write_all(&bytes[at..]).unwrap();
            assert_eq!(Reply::read(&mut client.0), Some(Reply::Simple("PONG".into())));
            at += 1;
        }
    }
}

/// A client that says that it sends nothing more is still answered.
#[test]
fn a_half_closed_client_gets_its_replies() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no"]);
    for closes_socket in [false, true] {
        let mut client = ClientSide::of(&files).connect(served.tls_address);
        client.ping().unwrap();
        client.tls().writer().write_all(&request(&[b"ECHO", b"x"]).repeat(1000)).unwrap();
        client.tls().send_close_notify();
        let bytes = client.ciphertext();
        client.socket().write_all(&bytes).unwrap();
        if closes_socket {
            client.socket().shutdown(Shutdown::Write).unwrap();
        }
        (0..1000).for_each(|_| assert_eq!(Reply::read(&mut client.0), Some(bulk("x"))));
        assert_eq!(client.0.read(&mut [0; 1]).unwrap(), 0, "the server says so, too");
    }
}

/// The server closes a client that does not speak TLS, and serves others.
#[test]
fn strangers_to_tls_are_closed() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no"]);
    let garbage: [&[u8]; 5] =
        [b"*1\r\n$4\r\nPING\r\n", b"GET / HTTP/1.1\r\n\r\n", &[0xff; 4096], &[0x16, 3, 1, 0xff, 0xff, 1], &[0x17; 300]];
    for bytes in garbage {
        let mut stream = socket(served.tls_address);
        stream.write_all(bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // It may be reset: the server has not read everything.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() < 16, "at most an alert: {answer:?}");
    }
    ClientSide::of(&files).connect(served.tls_address).ping().unwrap();
}

/// A handshake that makes no progress is given up after the time for the first command.
#[test]
fn slow_handshakes_end() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no", "--login-timeout", "10"]);
    let mut silent = socket(served.tls_address);
    let mut begun = socket(served.tls_address);
    begun.write_all(&[0x16, 3, 1]).unwrap();
    let mut client = ClientSide::of(&files).connect(served.tls_address);
    client.ping().unwrap();
    served.clock.advance_ms(11_000);
    for stream in [&mut silent, &mut begun] {
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
    client.ping().unwrap();
}

/// Handshakes count among the connections that have not logged in: the oldest makes room.
#[test]
fn handshakes_are_limited_in_number() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no", "--login-max-clients", "2"]);
    let mut first = socket(served.tls_address);
    let clients: Vec<_> = (0..3).map(|_| socket(served.tls_address)).collect();
    assert_eq!(first.read(&mut [0; 1]).unwrap(), 0);
    drop(clients);
    // Completed handshakes do not count.
    let through = (0..5).map(|_| {
        let mut client = ClientSide::of(&files).connect(served.tls_address);
        client.ping().unwrap();
        client
    });
    let mut through: Vec<_> = through.collect();
    through.iter_mut().for_each(|client| client.ping().unwrap());
}

/// New connections see the files that were read last, and a bad file changes nothing.
#[test]
fn certificates_change_while_the_server_runs() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no"]);
    let shown = || {
        let mut client = ClientSide::of(&files).connect(served.tls_address);
        client.ping().unwrap();
        client.certificate()
    };
    let (mut admin, first) = (served.connect(), shown());
    let second = files.authority.issue(|_| {});
    files.show(&second);
    assert_eq!(shown(), first, "files are read when that is asked for");
    let path = files.text("server.pem");
    let mut set = |pairs: &[&str]| admin.run(&[&["CONFIG", "SET"], pairs].concat());
    assert_eq!(set(&["tls-cert-file", &path]), Reply::Simple("OK".into()));
    let renewed = shown();
    assert_eq!(renewed, CertificateDer::from_pem_slice(second.certificate.as_bytes()).unwrap());

    let Reply::Bulk(Some(info)) = served.connect().run(&["INFO", "server", "tls"]) else { panic!("no INFO") };
    let facts = tls::certificate::facts(&renewed).unwrap();
    assert!(info.contains(&format!("\ntls_server_cert_serial:{}\r\n", facts.serial)), "{info}");
    assert!(info.contains("\ntls_client_cert_serial:none\r\ntls_client_cert_expires_in_seconds:0\r\n"), "{info}");
    assert!(info.contains("name=tls,bind=127.0.0.1,bind=-::1,port=6380\r\n"), "{info}");

    let stranger = self_signed();
    files.write("other.key", &stranger.key);
    files.write("no.pem", "nothing");
    let [other, no, gone] = ["other.key", "no.pem", "gone.pem"].map(|name| files.text(name));
    for (pairs, expected) in [
        (&["tls-key-file", &other][..], format!("{other} is not the key of the certificate in {path}")),
        (&["tls-cert-file", &no], format!("{no} has no certificate in PEM")),
        (&["tls-key-file", &no], format!("{no} has no private key in PEM")),
        (&["tls-ca-cert-file", &gone], format!("cannot read {gone}: No such file or directory")),
        (&["tls-auth-clients", "yes", "tls-ca-cert-file", ""], "tls-ca-cert-file is not set".into()),
        (&["tls-ciphers", "AES128-SHA"], "tls-ciphers: 'AES128-SHA' is not offered".into()),
        (&["timeout", "7", "tls-protocols", "TLSv1"], "tls-protocols: TLSv1 is not offered".into()),
    ] {
        let Reply::Error(error) = set(pairs) else { panic!("{pairs:?} was taken") };
        assert!(error.contains(&expected), "{error}");
        assert_eq!(shown(), renewed);
    }
    assert_eq!(admin.run(&["CONFIG", "GET", "timeout"]), Reply::List(vec![bulk("timeout"), bulk("0")]));
}

#[test]
fn memcached_clients_use_tls_too() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no"]);
    let mut client = ClientSide::of(&files).connect(served.memcached_tls_address);
    client.send(b"set k 0 0 5\r\nvalue\r\nget k\r\n").unwrap();
    let expected = b"STORED\r\nVALUE k 0 5\r\nvalue\r\nEND\r\n";
    let mut answer = vec![0; expected.len()];
    client.0.read_exact(&mut answer).unwrap();
    assert_eq!(answer, expected);
}

#[test]
fn clients_of_ssdb_use_tls_too() {
    let files = Files::new();
    let served = files.serve(&["--tls-auth-clients", "no", "--requirepass", "word"]);
    let mut client = ClientSide::of(&files).connect(served.ssdb_tls_address);
    client.send(b"3\nget\n1\nk\n\n4\nauth\n4\nword\n\n3\nset\n1\nk\n5\nvalue\n\n3\nget\n1\nk\n\n").unwrap();
    let expected = b"6\nnoauth\n24\nauthentication required.\n\n2\nok\n1\n1\n\n2\nok\n1\n1\n\n2\nok\n5\nvalue\n\n";
    let mut answer = vec![0; expected.len()];
    client.0.read_exact(&mut answer).unwrap();
    assert_eq!(answer, expected, "{}", String::from_utf8_lossy(&answer));
}

/// Two ports that no one listens on.
fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("it listens").port())
}

/// A port that opens while the server runs has its certificates, or does not open.
#[test]
fn a_port_with_tls_opens_only_with_certificates() {
    let files = Files::new();
    let (certificate, key) = (files.text("server.pem"), files.text("server.key"));
    for (flag, port) in [("--memcached-tls", "memcached-port"), ("--ssdb-tls", "ssdb-port")] {
        let [plain, free] = free_ports().map(|port| port.to_string());
        let served = Served::start(&[flag, "yes", "--tls-auth-clients", "no", "--port", &plain, "--bind", "127.0.0.1"]);
        let mut admin = served.connect();
        let Reply::Error(error) = admin.run(&["CONFIG", "SET", port, &free]) else { panic!("no certificate") };
        assert!(error.contains("tls-cert-file is not set"), "{error}");
        // Another thread closes what was opened for it.
        let give_up = Instant::now() + SILENCE_MAX;
        while TcpStream::connect(format!("127.0.0.1:{free}")).is_ok() {
            assert!(Instant::now() < give_up, "{port} is open without a certificate");
        }
        let set = ["CONFIG", "SET", "tls-cert-file", &certificate, "tls-key-file", &key, port, &free];
        assert_eq!(admin.run(&set), Reply::Simple("OK".into()));
        ClientSide::of(&files).connect(([127, 0, 0, 1], free.parse().unwrap()).into());
    }
}

/// MIGRATE connects with TLS when `tls-replication` says so, and checks the other server's certificate.
#[test]
fn keys_move_to_another_server_over_tls() {
    let (files, others) = (Files::new(), Files::new());
    let target = files.serve(&[]);
    let stranger = others.serve(&[]);
    let source = files.serve(&["--tls-replication", "yes"]);
    let mut client = source.connect();
    let value = "x".repeat(1_000_000);
    for key in ["a", "b"] {
        assert_eq!(client.run(&["SET", key, &value]), Reply::Simple("OK".into()));
    }
    let mut migrate =
        |port: u16, key: &str| client.run(&["MIGRATE", "127.0.0.1", &port.to_string(), key, "0", "60000"]);
    assert_eq!(migrate(target.tls_address.port(), "a"), Reply::Simple("OK".into()));
    assert_eq!(target.connect().run(&["GET", "a"]), bulk(&value));
    let Reply::Error(error) = migrate(stranger.tls_address.port(), "b") else { panic!("its CA is not trusted") };
    assert!(error.contains("invalid peer certificate"), "{error}");
    assert_eq!(client.run(&["CONFIG", "SET", "tls-replication", "no"]), Reply::Simple("OK".into()));
    let Reply::Error(_) =
        client.run(&["MIGRATE", "127.0.0.1", &target.tls_address.port().to_string(), "b", "0", "60000"])
    else {
        panic!("the other server expects TLS")
    };
    assert_eq!(client.run(&["EXISTS", "a", "b"]), Reply::Int(1), "what has not arrived stays");
}

/// A certificate logs its client in as the user that it names, and as no other.
#[test]
fn certificates_name_users() {
    let files = Files::new();
    let named = |name: &str| files.authority.issue(|params| params.distinguished_name.push(DnType::CommonName, name));
    let uris = |names: &[&str]| {
        files.authority.issue(|params| {
            params.subject_alt_names = names.iter().map(|name| SanType::URI((*name).try_into().unwrap())).collect();
        })
    };
    let served = files.serve(&["--requirepass", "secret", "--tls-auth-clients-user", "CN"]);
    let mut admin = served.connect();
    assert_eq!(admin.run(&["AUTH", "secret"]), Reply::Simple("OK".into()));
    for name in ["app", "urn:app"] {
        assert_eq!(
            admin.run(&["ACL", "SETUSER", name, "on", "~app:*", "+get", "+acl|whoami"]),
            Reply::Simple("OK".into())
        );
    }
    let connect = |pair| ClientSide { shows: Some(pair), ..ClientSide::of(&files) }.connect(served.tls_address);
    let whoami = |pair| connect(pair).run(&["ACL", "WHOAMI"]);
    let no_login = Reply::Error("NOAUTH Authentication required.".into());
    let (app, stranger) = (named("app"), named("stranger"));
    let (by_uri, by_no_uri) = (uris(&["urn:none", "urn:app", "urn:x"]), uris(&["urn:none"]));
    for versions in [&[&TLS12][..], &[&TLS13]] {
        let side = ClientSide { versions, shows: Some(&app), ..ClientSide::of(&files) };
        let config = side.config();
        let mut client = side.connect_with(config.clone(), served.tls_address);
        assert_eq!(client.run(&["ACL", "WHOAMI"]), bulk("app"));
        // A session that is resumed has the certificate of the first.
        let mut client = side.connect_with(config, served.tls_address);
        assert_eq!(client.run(&["ACL", "WHOAMI"]), bulk("app"));
        assert_eq!(client.tls().handshake_kind(), Some(HandshakeKind::Resumed));
        assert_eq!(client.run(&["GET", "app:1"]), Reply::Bulk(None));
        assert!(matches!(client.run(&["GET", "other"]), Reply::Error(text) if text.starts_with("NOPERM ")));
        assert_eq!(client.run(&["RESET"]), Reply::Simple("RESET".into()));
        assert_eq!(client.run(&["GET", "app:1"]), no_login, "RESET leaves the user");
    }
    let denied = |admin: &mut Client| {
        let Reply::Bulk(Some(info)) = admin.run(&["INFO", "stats"]) else { panic!("no INFO") };
        info.lines().find_map(|line| line.strip_prefix("acl_access_denied_tls_cert:")).unwrap().to_owned()
    };
    assert_eq!(whoami(&stranger), no_login);
    assert_eq!(denied(&mut admin), "1");
    let mut client = connect(&stranger);
    assert_eq!(client.run(&["AUTH", "secret"]), Reply::Simple("OK".into()), "a password still does");
    assert_eq!(admin.run(&["ACL", "SETUSER", "app", "off"]), Reply::Simple("OK".into()));
    assert_eq!(whoami(&app), no_login, "the user is off");

    assert_eq!(admin.run(&["CONFIG", "SET", "tls-auth-clients-user", "uri"]), Reply::Simple("OK".into()));
    assert_eq!(whoami(&by_uri), bulk("urn:app"));
    assert_eq!(whoami(&by_no_uri), no_login);
    assert_eq!(admin.run(&["CONFIG", "SET", "tls-auth-clients-user", "off"]), Reply::Simple("OK".into()));
    assert_eq!(whoami(&by_uri), no_login);
}

/// Over TLS as over plain TCP: clients of before and of meanwhile are answered, and continue.
#[test]
fn clients_are_answered_while_a_script_is_busy() {
    let files = Files::new();
    let server = files.serve(&["--workers", "1", "--busy-reply-threshold", "30", "--tls-auth-clients", "no"]);
    let side = ClientSide::of(&files);
    let [mut script, mut old, mut silent] = [(); 3].map(|()| side.connect(server.tls_address));
    for client in [&mut script, &mut old, &mut silent] {
        client.ping().expect("it is served");
    }
    // Connected, without a handshake.
    let mut late = side.connect(server.tls_address);
    let endless: [&[u8]; 3] = [b"EVAL", b"for i = 1, 5e9 do end", b"0"];
    script.send(&request(&endless)).expect("an open connection");
    let is_busy = |reply: Reply| matches!(reply, Reply::Error(text) if text.starts_with("BUSY "));
    let begun = Instant::now();
    while !is_busy(side.connect(server.tls_address).run(&["PING"])) {
        assert!(begun.elapsed() < SILENCE_MAX, "the script never gets busy");
    }
    for _ in 0..3 {
        assert!(is_busy(old.run(&["PING"])) && is_busy(late.run(&["GET", "key"])));
    }
    // A request of which the other half comes after the script.
    old.send(b"*1\r\n$4\r\nPI").expect("an open connection");
    assert_eq!(late.run(&["SCRIPT", "KILL"]), Reply::Simple("OK".into()));
    assert!(matches!(Reply::read(&mut script.0), Some(Reply::Error(text)) if text.starts_with("ERR Script killed")));
    old.send(b"NG\r\n").expect("an open connection");
    assert_eq!(Reply::read(&mut old.0), Some(Reply::Simple("PONG".into())));
    for client in [&mut script, &mut old, &mut silent, &mut late] {
        client.ping().expect("it is served");
    }
}
