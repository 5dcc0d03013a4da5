//! A whole server in this process: listener, workers and sockets, with a clock that moves only when a test moves it.

use crate::harness::{START_MS, request};
use crate::reply::Reply;
use admin::EndOrder;
use admin::ending::EndTask;
use base::clock::{ManualClock, Slew};
use base::random::SeededEntropy;
use base::{Clock, UnixMs};
use config::{CommandLine, load};
use server::dialect::Language;
use server::listen::{Acceptor, AcceptorHandle, Endpoint, Entrance, Kind, Listener, listen_tcp};
use server::serve::{Control, Keeping, Recover, ServeError, serve};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest wait for a reply. It is no measure of speed: a server that has not answered by then never will.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The product's clock over a manual one in place of the machine's.
struct SlewedClock {
    manual: Arc<ManualClock>,
    slew: Slew,
}

impl Clock for SlewedClock {
    fn now_ms(&self) -> UnixMs {
        let monotonic_ms = i64::try_from(self.monotonic_ns() / 1_000_000).expect("tests end before that");
        self.slew.now_ms(monotonic_ms, || self.manual.now_ms())
    }

    fn monotonic_ns(&self) -> u64 {
        self.manual.monotonic_ns()
    }

    fn wall_us(&self) -> i64 {
        self.manual.wall_us()
    }
}

/// A listener on a free port, and its address.
fn entrance(kind: Kind) -> (SocketAddr, Entrance) {
    let Ok(Listener::Tcp(listener)) = listen_tcp((Ipv4Addr::LOCALHOST, 0).into(), 128) else {
        panic!("no port is free")
    };
    let address = listener.local_addr().expect("it listens");
    (address, Entrance { endpoint: Endpoint::Tcp(address), kind, listener: Listener::Tcp(listener) })
}

/// A running server. It ends with this value.
pub struct Served {
    pub clock: Arc<ManualClock>,
    address: SocketAddr,
    /// Where clients of TLS connect, if the options configure it.
    pub tls_address: SocketAddr,
    pub memcached_tls_address: SocketAddr,
    pub ssdb_tls_address: SocketAddr,
    handle: AcceptorHandle,
    control: Control,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    /// Starts a server with options of its command line.
    pub fn start(options: &[&str]) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        Self::start_by(clock.clone(), clock, options, Keeping::Memory(None))
    }

    /// Starts one that keeps its data in a directory.
    pub fn start_keeping(options: &[&str], keeping: Keeping) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        let served = Self::start_by(clock.clone(), clock, options, keeping);
        let mut client = served.connect();
        while matches!(client.run(&["DBSIZE"]), Reply::Error(_)) {}
        served
    }

    /// Starts one that brings its data back first.
    pub fn start_recovering(options: &[&str], recover: Recover) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        Self::start_by(clock.clone(), clock, options, Keeping::Memory(Some(recover)))
    }

    /// Starts one whose clock follows the manual clock's wall time as that of the product follows the machine's.
    pub fn start_slewed(options: &[&str]) -> Self {
        let clock = Arc::new(ManualClock::new(START_MS));
        Self::start_by(
            clock.clone(),
            Arc::new(SlewedClock { manual: clock, slew: Slew::new(START_MS) }),
            options,
            Keeping::Memory(None),
        )
    }

    fn start_by(clock: Arc<ManualClock>, of_server: Arc<dyn Clock>, options: &[&str], keeping: Keeping) -> Self {
        let line = CommandLine::parse(options.iter().map(Into::into)).expect("good options");
        let loaded = load(&line, &vfs::RealFs, &mut std::io::empty()).expect("good options");
        let (address, plain) = entrance(Kind::plain(Language::Resp));
        let (tls_address, tls) = entrance(Kind::tls(Language::Resp));
        let (memcached_tls_address, memcached_tls) = entrance(Kind::tls(Language::Memcached));
        let (ssdb_tls_address, ssdb_tls) = entrance(Kind::tls(Language::Ssdb));
        let acceptor = Acceptor::new(vec![plain, tls, memcached_tls, ssdb_tls]).expect("an event queue");
        let handle = acceptor.handle();
        let control = Control::default();
        let reached = control.clone();
        let thread = std::thread::spawn(move || {
            serve(loaded, acceptor, Arc::new(SeededEntropy::new(7)), of_server, keeping, reached)
        });
        let thread = Some(thread);
        Self { clock, address, tls_address, memcached_tls_address, ssdb_tls_address, handle, control, thread }
    }

    /// Asks the server to end, as a signal does.
    pub fn ask_to_end(&self, order: EndOrder) -> EndTask {
        self.control.shutdown.ask(order)
    }

    /// Waits until the server has ended.
    pub fn ended(mut self) -> Result<(), ServeError> {
        let thread = self.thread.take().expect("it was not waited for before");
        thread.join().expect("the server ended by a panic")
    }

    /// A new connection.
    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).expect("the server accepts");
        stream.set_read_timeout(Some(SILENCE_MAX)).expect("a socket takes a time limit");
        stream.set_write_timeout(Some(SILENCE_MAX)).expect("a socket takes a time limit");
        stream.set_nodelay(true).expect("a socket sends at once");
        Client(BufReader::with_capacity(64 * 1024, stream))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.handle.stop();
        let result = thread.join();
        if !std::thread::panicking() {
            result.expect("the server ended by a panic").expect("the server runs");
        }
    }
}

/// A connection of a test.
pub struct Client(BufReader<TcpStream>);

impl Client {
    /// One request, and its reply.
    #[track_caller]
    pub fn run(&mut self, words: &[&str]) -> Reply {
        self.send(&[words]);
        self.reply().expect("an open connection")
    }

    /// Sends requests in one piece.
    pub fn send(&mut self, requests: &[&[&str]]) {
        let bytes: Vec<u8> = requests
            .iter()
            .flat_map(|words| request(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()))
            .collect();
        self.send_bytes(&bytes);
    }

    /// Sends bytes.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("a connection that takes what is sent");
    }

    /// Sends bytes, and returns how many were taken before the server took no more for a while.
    pub fn send_what_fits(&mut self, bytes: &[u8]) -> usize {
        let stream = self.0.get_mut();
        stream.set_write_timeout(Some(Duration::from_millis(200))).expect("a socket takes a time limit");
        let mut sent = 0;
        while let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty()) {
            match stream.write(rest) {
                Ok(count) => sent += count,
                Err(_) => break,
            }
        }
        sent
    }

    /// Sends nothing more.
    pub fn end(&mut self) {
        self.0.get_mut().shutdown(Shutdown::Write).expect("an open connection");
    }

    /// Whether the next reply begins within this time.
    pub fn has_reply_within(&mut self, time: Duration) -> bool {
        self.0.get_ref().set_read_timeout(Some(time)).expect("a socket takes a time limit");
        let has_reply = self.0.fill_buf().is_ok_and(|bytes| !bytes.is_empty());
        self.0.get_ref().set_read_timeout(Some(SILENCE_MAX)).expect("a socket takes a time limit");
        has_reply
    }

    /// The next reply; `None` when the server has closed the connection.
    pub fn reply(&mut self) -> Option<Reply> {
        Reply::read(&mut self.0)
    }
}
