//! One connection: from where, since when, and whether it has logged in.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// A connection without traffic for this long is closed.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// What a connection and its requests know of each other.
#[derive(Debug)]
pub struct Visit {
    /// The client.
    pub address: SocketAddr,
    /// Whether it is on this host. It then needs no login, and has no limits.
    pub is_near: bool,
    began: Instant,
    has_entered: AtomicBool,
    certificate: OnceLock<Vec<u8>>,
    is_over: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Visit {
    /// One that begins.
    pub fn new(address: SocketAddr, is_near: bool) -> Self {
        let (has_entered, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (certificate, waker) = (OnceLock::new(), Mutex::default());
        Self { address, is_near, began: Instant::now(), has_entered, certificate, is_over, waker }
    }

    /// Whether it has logged in.
    pub fn has_entered(&self) -> bool {
        self.has_entered.load(Ordering::Relaxed)
    }

    /// It has logged in.
    pub fn enter(&self) {
        self.has_entered.store(true, Ordering::Relaxed);
    }

    /// The certificate that the client has shown in the handshake, in DER.
    pub fn certificate(&self) -> Option<&[u8]> {
        self.certificate.get().map(Vec::as_slice)
    }

    /// Notes that certificate.
    pub fn show(&self, certificate: &[u8]) {
        self.certificate.get_or_init(|| certificate.to_vec());
    }

    /// Closes it.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Whether it was closed. If not, its end wakes this.
    pub fn is_over(&self, waker: &Waker) -> bool {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        self.is_over.load(Ordering::Relaxed)
    }

    /// When it is closed unless there is traffic after `last`; `None` for never. Without a login no traffic helps.
    pub fn deadline(&self, last: Instant, login_within: Duration) -> Option<Instant> {
        match (self.is_near, self.has_entered()) {
            (true, _) => None,
            (false, true) => Some(last + IDLE_MAX),
            (false, false) => Some(self.began + login_within),
        }
    }
}
