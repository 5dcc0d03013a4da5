//! Where the chunks of big collections are freed: a thread of its own, since a million of them take longer than any command
//! may (V4).

use std::any::Any;
use std::sync::OnceLock;
use std::sync::mpsc::{self, Sender};

/// Drops `garbage` on the reaper's thread, soon. On the caller's when the system grants no thread.
pub fn free(garbage: Box<dyn Any + Send>) {
    static REAPER: OnceLock<Option<Sender<Box<dyn Any + Send>>>> = OnceLock::new();
    let reaper = REAPER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Box<dyn Any + Send>>();
        let run = move || receiver.into_iter().for_each(drop);
        std::thread::Builder::new().name("reaper".to_owned()).spawn(run).ok().map(|_| sender)
    });
    if let Some(reaper) = reaper {
        // The thread ends with the process only.
        let _ = reaper.send(garbage);
    }
}
