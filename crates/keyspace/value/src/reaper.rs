//! Frees big collections and long strings on threads of their own, since that takes longer than any command may (V4).
//!
//! Chunks of a collection go back to the thread that allocated them, one by one, and wait there until it has time for
//! them (the program's allocator, crate `heap`). Without that allocator they go to the C library, whose `malloc` may
//! then stall a thread for a millisecond or more: it sorts up to ten thousand freed chunks in a call.

use std::any::Any;
use std::borrow::Borrow;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};

/// Bytes that are freed elsewhere: what goes back to the system takes time in proportion to it, 1.5 ms for 15 MB.
const BYTES_MIN: usize = 1 << 20;

/// What is dropped elsewhere.
type Garbage = Box<dyn Any + Send>;

/// What is on its way to a thread; `None` when the system grants none.
type Queue = OnceLock<Option<Sender<Garbage>>>;

/// Drops `garbage` on the thread of this name, begun by the first. On the caller's when the system grants none.
fn send(queue: &Queue, name: &str, garbage: Garbage) {
    let begin = || {
        let (sender, receiver) = mpsc::channel::<Garbage>();
        let run = move || receiver.into_iter().for_each(drop);
        std::thread::Builder::new().name(name.to_owned()).spawn(run).ok().map(|_| sender)
    };
    if let Some(sender) = queue.get_or_init(begin) {
        // The thread ends with the process only.
        drop(sender.send(garbage));
    }
}

/// Drops a value with few chunks, soon.
pub fn free(garbage: Garbage) {
    // Its own queue: long strings do not wait for millions of chunks.
    static LONG: Queue = OnceLock::new();
    send(&LONG, "reaper-long", garbage);
}

/// Drops bytes, shared or not: if they are many, by [`free`].
#[inline]
pub fn free_bytes<B: Borrow<Vec<u8>> + Send + 'static>(bytes: B) {
    if bytes.borrow().capacity() >= BYTES_MIN {
        free(Box::new(bytes));
    }
}

/// Drops a value with many chunks, one after the other.
pub fn free_chunks(garbage: Garbage) {
    static CHUNKS: Queue = OnceLock::new();
    send(&CHUNKS, "reaper", garbage);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    /// Long strings are freed while many chunks still are, and none of them by the caller.
    #[test]
    fn long_strings_do_not_wait_behind_chunks() {
        /// Is not freed until its other end is gone.
        struct Stuck(mpsc::Receiver<()>);
        impl Drop for Stuck {
            fn drop(&mut self) {
                // Until the test is over.
                let _ended = self.0.recv();
            }
        }
        let (held, told) = mpsc::channel();
        free_chunks(Box::new(Stuck(told)));
        let bytes = Arc::new(vec![1; BYTES_MIN]);
        let gone = Arc::downgrade(&bytes);
        free_bytes(bytes);
        let since = Instant::now();
        while gone.strong_count() > 0 {
            assert!(since.elapsed() < Duration::from_secs(60), "it is freed in the end");
            std::thread::yield_now();
        }
        drop(held);
    }
}
