//! The thread that receives: from the connection into the spool, with an acknowledgement a second.

use crate::error::LinkError;
use crate::link::{Acknowledger, Link};
use crate::primary::Primary;
use crate::spool::Spool;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A primary expects an acknowledgement a second.
const ACKNOWLEDGE_EVERY: Duration = Duration::from_secs(1);

/// Longest wait for bytes before the thread looks around.
const LOOK: Duration = Duration::from_millis(100);

const READ_LEN: usize = 256 << 10;

/// A running thread.
pub struct Pump {
    thread: JoinHandle<Result<(), LinkError>>,
    processed: Arc<AtomicU64>,
    acknowledger: Acknowledger,
    is_over: Arc<AtomicBool>,
}

impl Pump {
    /// Begins to receive. It ends when the connection does, after a silence of `silence_max`, or with `stop`. Calls
    /// `heard` after each read, with the number of bytes.
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn start(
        link: Link,
        primary: &Primary,
        spool: Arc<Spool>,
        stop: Arc<AtomicBool>,
        silence_max: Duration,
        heard: Box<dyn Fn(usize) + Send>,
    ) -> Result<Self, LinkError> {
        let acknowledger = link.acknowledger();
        link.set_patience(LOOK)?;
        let (processed, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let receiver = Receiver {
            link,
            primary: primary.to_string(),
            acknowledger: acknowledger.clone(),
            processed: Arc::clone(&processed),
            stop: [stop, Arc::clone(&is_over)],
            silence_max,
            heard,
        };
        let thread = thread::spawn(move || {
            let done = receiver.run(&spool);
            spool.end();
            done
        });
        Ok(Self { thread, processed, acknowledger, is_over })
    }

    /// Everything up to this offset is applied.
    pub fn processed(&self, offset: u64) {
        self.processed.store(offset, Ordering::Relaxed);
    }

    /// The primary has asked for an acknowledgement. A connection that has ended is the thread's to notice.
    pub fn acknowledge_now(&self) {
        let _ = self.acknowledger.acknowledge(self.processed.load(Ordering::Relaxed));
    }

    /// Ends it, and says why it ended, if not because it was asked to.
    ///
    /// # Errors
    /// The connection was lost.
    ///
    /// # Panics
    /// As its thread has.
    pub fn end(self) -> Result<(), LinkError> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Receiver {
    link: Link,
    primary: String,
    acknowledger: Acknowledger,
    processed: Arc<AtomicU64>,
    stop: [Arc<AtomicBool>; 2],
    silence_max: Duration,
    heard: Box<dyn Fn(usize) + Send>,
}

impl Receiver {
    fn run(mut self, spool: &Spool) -> Result<(), LinkError> {
        let mut buffer = vec![0; READ_LEN];
        let (mut heard, mut acknowledged) = (Instant::now(), None);
        while !self.stop.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            // The first one at once: a primary that sent its copy up to a mark waits for it.
            if acknowledged.is_none_or(|at: Instant| at.elapsed() >= ACKNOWLEDGE_EVERY) {
                acknowledged = Some(Instant::now());
                let offset = self.processed.load(Ordering::Relaxed);
                self.acknowledger.acknowledge(offset).map_err(|error| self.failed("acknowledging", error))?;
            }
            match self.link.read(&mut buffer) {
                Ok(0) => return Err(self.ended("following")),
                Ok(len) => {
                    heard = Instant::now();
                    (self.heard)(len);
                    let kept = spool.append(buffer.get(..len).unwrap_or_default());
                    kept.map_err(|source| LinkError::Spool { primary: self.primary.clone(), source })?;
                }
                Err(error) if is_patience(&error) && heard.elapsed() < self.silence_max => {}
                Err(error) if is_patience(&error) => return Err(self.ended("it was silent for too long")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed("following", error)),
            }
        }
        Ok(())
    }

    fn ended(&self, what: &'static str) -> LinkError {
        LinkError::Ended { primary: self.primary.clone(), what }
    }

    fn failed(&self, what: &'static str, source: io::Error) -> LinkError {
        LinkError::Io { primary: self.primary.clone(), what, source }
    }
}

fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
