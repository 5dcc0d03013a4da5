//! With the feature `tracing`, what takes long is a span of the target `plex`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use plex::{Background, Options};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use vfs::SimFs;

/// Names of spans with their fields, as often as they were entered and ended.
#[derive(Default)]
struct Seen {
    next: AtomicU64,
    spans: Mutex<BTreeMap<u64, (&'static str, String)>>,
    ended: Mutex<Vec<(&'static str, String)>>,
}

struct Collector(Arc<Seen>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "plex"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        self.0.spans.lock().expect("no panic").insert(id, (span.metadata().name(), fields.0));
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, id: &Id) {
        let span = self.0.spans.lock().expect("no panic").remove(&id.into_u64());
        self.0.ended.lock().expect("no panic").extend(span);
    }
}

/// An open, a recovery, flushes and merges, each with what it worked on.
#[test]
fn long_work_has_spans() {
    let (seen, fs) = (Arc::new(Seen::default()), Arc::new(SimFs::new(1)));
    tracing::subscriber::with_default(Collector(seen.clone()), || {
        let options = || Options::new().file_system(fs.clone()).seed(1).background(Background::Inline);
        let db = options().memtable_bytes(16 << 10).open("/db").expect("it opens");
        (0..5000u64).for_each(|i| db.put(&(i % 500).to_be_bytes(), &[1; 40]).expect("it writes"));
        drop(db);
        options().open("/db").expect("it opens");
    });
    let ended = seen.ended.lock().expect("no panic");
    let fields_of = |name: &str| ended.iter().filter(|span| span.0 == name).map(|span| &span.1[..]).collect::<Vec<_>>();
    assert_eq!(fields_of("open"), ["dir=/db ", "dir=/db "]);
    assert_eq!(fields_of("recover").len(), 2);
    assert!(fields_of("flush").len() > 3 && fields_of("flush")[0].starts_with("bytes=16"), "{ended:?}");
    let merges = fields_of("merge");
    assert!(merges.iter().any(|fields| fields.starts_with("key_space=0 reason=\"garbage\"")), "{ended:?}");
    assert!(seen.spans.lock().expect("no panic").is_empty(), "all have ended");
}
