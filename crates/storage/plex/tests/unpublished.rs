//! Flushes while the log is being synced, with [`Wal::Sync`]: what is published next is kept, so that batches show
//! whole, and what was acknowledged is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use plex::{Background, Db, KeySpaceId, Options, Wal, WriteBatch};
use vfs::SimFs;

/// Longest wait; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Holds back syncs of log files until they are let through, one by one.
#[derive(Debug, Default)]
struct Gate {
    /// Whether it is closed, how many have come, and how many may pass.
    state: Mutex<(bool, u64, u64)>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock();
        if state.0 {
            state.1 += 1;
            let mine = state.1;
            self.changed.notify_all();
            let deadline = Instant::now() + PATIENCE;
            while state.0 && state.2 < mine && !self.changed.wait_until(&mut state, deadline).timed_out() {}
        }
    }

    fn change(&self, change: impl FnOnce(&mut (bool, u64, u64))) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }

    fn await_arrivals(&self, count: u64) {
        let mut state = self.state.lock();
        let deadline = Instant::now() + PATIENCE;
        while state.1 < count {
            assert!(!self.changed.wait_until(&mut state, deadline).timed_out(), "no sync came");
        }
    }
}

/// Two versions of a key wait for their syncs while a flush writes the memtable with both. The flush used to keep the
/// newer one alone: once the first sync had ended, its batch showed in half, and an acknowledged write was not read.
#[test]
fn a_flush_keeps_what_is_about_to_be_visible() {
    let (fs, gate) = (SimFs::new(1), Arc::new(Gate::default()));
    let options = Options::new().file_system(Arc::new(fs.clone())).seed(1).wal(Wal::Sync);
    let db = options.background(Background::Manual).open("/db").expect("it opens");
    db.put(b"K", b"v0").and_then(|()| db.put(b"J", b"w0")).expect("it writes");
    let held = gate.clone();
    fs.on_sync(move |call| {
        if call.path.extension().is_some_and(|extension| extension == "wal") {
            held.pass();
        }
    });
    gate.change(|state| state.0 = true);
    let write = |db: &Db, pairs: &[(&'static [u8], &'static [u8])]| {
        let (db, mut batch) = (db.clone(), WriteBatch::new());
        for (key, value) in pairs {
            batch.put(key, value);
        }
        std::thread::spawn(move || db.write(&batch).expect("it writes"))
    };
    let user_bytes = db.stats().user_bytes;
    let first = write(&db, &[(b"K", b"v1"), (b"J", b"w1")]);
    gate.await_arrivals(1);
    let second = write(&db, &[(b"K", b"v2")]);
    let deadline = Instant::now() + PATIENCE;
    // The second write is in the memtable once it is counted; its sync waits for the first.
    while db.stats().user_bytes < user_bytes + 9 {
        assert!(Instant::now() < deadline, "the second write does not come");
        std::thread::yield_now();
    }
    db.flush().expect("it flushes");
    assert_eq!(
        (db.get(b"K").expect("it reads"), db.get(b"J").expect("it reads")),
        (Some(b"v0".into()), Some(b"w0".into()))
    );
    gate.change(|state| state.2 = 1);
    first.join().expect("the first write is acknowledged");
    let view = db.view();
    assert_eq!(db.get(b"K").expect("it reads"), Some(b"v1".into()), "an acknowledged write is read");
    assert_eq!(db.get(b"J").expect("it reads"), Some(b"w1".into()));
    gate.change(|state| state.0 = false);
    second.join().expect("the second write is acknowledged");
    assert_eq!(db.get(b"K").expect("it reads"), Some(b"v2".into()));
    assert_eq!(view.get(b"K").expect("it reads"), Some(b"v1".into()), "a view stays as it is");
}

/// What one thread did to one key, with the moments before it began and after it had ended.
#[derive(Clone, Copy)]
struct Done {
    key: u8,
    value: u64,
    begun: u64,
    ended: u64,
}

/// A read is wrong if it shows a value that some later write had replaced for certain: that write began after the shown
/// one had ended, and ended before the read began. Values are unique.
fn check_history(writes: &[Done], reads: &[Done]) {
    for read in reads {
        let shown = writes.iter().find(|write| write.value == read.value);
        let of_key = writes.iter().filter(|write| write.key == read.key);
        let ended = shown.map_or(0, |shown| shown.ended);
        let stale = of_key.clone().find(|write| write.begun > ended && write.ended < read.begun);
        assert!(stale.is_none(), "key {} shows {} after {:?}", read.key, read.value, stale.map(|write| write.value));
        assert!(shown.is_none_or(|shown| shown.key == read.key && shown.begun < read.ended), "a value from nowhere");
    }
}

/// Sixteen threads write and read two hot keys while memtables of a few entries are flushed and merged: the history of
/// each key is one of a register, and two keys of one batch never differ.
#[test]
fn hot_keys_are_linearizable() {
    const ROUNDS: usize = 120;
    for wal in [Wal::Sync, Wal::Async] {
        let fs = SimFs::new(1);
        // A sync lets other threads run, as a device does.
        fs.on_sync(|_| std::thread::yield_now());
        let options = Options::new().file_system(Arc::new(fs)).wal(wal).memtable_bytes(2 << 10);
        let db = options.open("/db").expect("it opens");
        let (clock, values) = (AtomicU64::new(1), AtomicU64::new(1));
        let now = || clock.fetch_add(1, Ordering::SeqCst);
        let number = |value: Option<Vec<u8>>| value.map_or(0, |v| u64::from_be_bytes(v.try_into().expect("8 bytes")));
        let (writes, reads): (Mutex<Vec<Done>>, Mutex<Vec<Done>>) = Default::default();
        std::thread::scope(|scope| {
            for thread in 0..16u8 {
                let (db, values, now, number, writes, reads) = (&db, &values, &now, &number, &writes, &reads);
                scope.spawn(move || {
                    let (mut wrote, mut read) = (Vec::new(), Vec::new());
                    let key = thread % 2;
                    for _ in 0..ROUNDS {
                        if thread < 10 {
                            let (begun, value) = (now(), values.fetch_add(1, Ordering::SeqCst));
                            let mut batch = WriteBatch::new();
                            batch.put(&[key], &value.to_be_bytes()).put(&[key, 1], &value.to_be_bytes());
                            db.write(&batch).expect("it writes");
                            wrote.push(Done { key, value, begun, ended: now() });
                        }
                        let begun = now();
                        let value = number(db.get(&[key]).expect("it reads"));
                        read.push(Done { key, value, begun, ended: now() });
                        let pair = db.multi_get(KeySpaceId::DEFAULT, &[&[key][..], &[key, 1]]).expect("it reads");
                        assert_eq!(pair[0], pair[1], "half a batch");
                    }
                    writes.lock().extend(wrote);
                    reads.lock().extend(read);
                });
            }
        });
        check_history(&writes.lock(), &reads.lock());
        db.verify().expect("all tables are sound");
    }
}
