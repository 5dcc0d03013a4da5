//! Decisions of the trainer on values of known nature, over time.

use super::*;
use crate::samples::{dictionary, document};
use crate::{Dictionaries, Workspace};
use base::clock::ManualClock;

const KEYSPACE: KeyspaceId = KeyspaceId(0);

/// A trainer with what its owner has around it.
struct Owner {
    all: Arc<Dictionaries>,
    clock: Arc<ManualClock>,
    trainer: Trainer,
    workspace: Workspace,
    rng: Rng,
    verdicts: Vec<&'static str>,
}

impl Owner {
    fn new(settings: Settings) -> Self {
        let clock = Arc::new(ManualClock::new(0));
        let trainer = Trainer::new(settings, Arc::clone(&clock) as Arc<dyn Clock>, Rng::new(1));
        let all = Arc::<Dictionaries>::default();
        Self { all, clock, trainer, workspace: Workspace::new(), rng: Rng::new(2), verdicts: Vec::new() }
    }

    /// Stores values under keys of this prefix as a server would, and trains when there is something to train.
    fn store(&mut self, prefix: &str, count: usize, make: impl Fn(&mut Rng) -> Vec<u8>) -> (usize, usize) {
        let (mut bytes, mut stored) = (0, 0);
        for n in 0..count {
            let value = make(&mut self.rng);
            let class = self.trainer.class(KEYSPACE, format!("{prefix}{n}").as_bytes());
            self.trainer.observe(class, &value);
            let mut out = Vec::new();
            let fitted = match self.trainer.choice(class) {
                Choice::Raw => false,
                Choice::Plain => self.workspace.encode(Method::Zstd(1), &value, usize::MAX, &mut out),
                Choice::Dictionary(encoder) => {
                    self.workspace.encode(Method::Dictionary(encoder), &value, usize::MAX, &mut out)
                }
            };
            let len = if fitted { out.len() } else { value.len() };
            self.trainer.note(class, value.len(), len);
            (bytes, stored) = (bytes + value.len(), stored + len);
            self.train();
        }
        (bytes, stored)
    }

    fn train(&mut self) {
        while let Some(task) = self.trainer.next_task() {
            let class = task.class();
            let verdict = self.trainer.settle(task.run());
            self.verdicts.push(match verdict {
                Verdict::Raw => "raw",
                Verdict::Plain => "plain",
                Verdict::Keep => "keep",
                Verdict::Train { class: name, content } => {
                    let lease = self.all.insert(dictionary(1 + self.all.list().len() as u32, &name, content));
                    assert!(self.trainer.adopt(class, Arc::new(lease.into_encoder(1).expect("prepared"))));
                    "train"
                }
            });
        }
    }
}

fn small() -> Settings {
    Settings { window: 500, ..Settings::default() }
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let mut value = vec![0; 200];
    rng.fill(&mut value);
    value
}

/// Other words in another form than [`document`].
fn reading(rng: &mut Rng) -> Vec<u8> {
    let row = |rng: &mut Rng| format!("<reading sensor='{}' celsius='{}'/>", rng.below(50), rng.below(400));
    (0..4).map(|_| row(rng)).collect::<String>().into_bytes()
}

/// Documents get a dictionary and shrink by it; noise is left alone; each by its class.
#[test]
fn each_class_gets_its_due() {
    let mut owner = Owner::new(small());
    owner.store("doc:", 600, document);
    owner.store("noise:", 600, noise);
    assert_eq!(owner.verdicts, ["train", "raw"]);
    let (bytes, stored) = owner.store("doc:", 1000, document);
    assert!(stored * 2 < bytes, "{stored} of {bytes}");
    let (bytes, stored) = owner.store("noise:", 1000, noise);
    assert_eq!(stored, bytes);
    assert_eq!(owner.verdicts.len(), 2, "no trial without a reason");
    let report = owner.trainer.report();
    assert!(matches!(report[0].choice, Choice::Dictionary(_)) && matches!(report[1].choice, Choice::Raw));
    assert_eq!((&report[0].prefix[..], report[1].stored_permille), (&b"doc:"[..], Some(1000)));
}

/// A trial of many samples that nothing makes shorter ends after some of them. If anything promises a gain, be it only
/// a dictionary, the trial uses all.
#[test]
fn hopeless_trials_end_early() {
    let mut owner = Owner::new(small());
    let mut tried = |prefix: &str, make: &dyn Fn(&mut Rng) -> Vec<u8>| {
        let class = owner.trainer.class(KEYSPACE, prefix.as_bytes());
        (0..1000).for_each(|_| owner.trainer.observe(class, &make(&mut owner.rng)));
        let trial = owner.trainer.next_task().expect("samples enough").run();
        let samples = trial.samples();
        (samples, owner.trainer.settle(trial))
    };
    assert_eq!(tried("noise:", &noise), (256, Verdict::Raw));
    let shared = noise(&mut Rng::new(7));
    let (samples, verdict) = tried("alike:", &|rng: &mut Rng| [noise(rng), shared[..50].to_vec()].concat());
    assert!(samples == 1000 && matches!(verdict, Verdict::Train { .. }), "{samples}, {verdict:?}");
}

/// Before the first trial few values of a class are tried that does not compress; values of one that does all are.
#[test]
fn hopeless_values_are_doubted_before_the_trial() {
    let mut owner = Owner::new(small());
    let mut doubts = |prefix: &str, stored: usize| {
        let class = owner.trainer.class(KEYSPACE, prefix.as_bytes());
        let raw = (0..4096).filter(|_| {
            let is_raw = matches!(owner.trainer.choice(class), Choice::Raw);
            assert_eq!(owner.trainer.is_doubted(class), is_raw);
            owner.trainer.note(class, 100, if is_raw { 100 } else { stored });
            is_raw
        });
        raw.count()
    };
    // Eight windows of 500 and one begun.
    assert_eq!((doubts("noise:", 100), doubts("doc:", 98)), (8 * (500 - 256), 0));
}

/// Values that compress well without a dictionary get none.
#[test]
fn no_dictionary_where_it_gains_nothing() {
    let mut owner = Owner::new(small());
    let repeated = |rng: &mut Rng| noise(rng).repeat(10);
    owner.store("long:", 400, repeated);
    assert_eq!(owner.verdicts, ["plain"]);
}

/// When values change, a new dictionary comes, once; when they do not, none does.
#[test]
fn drift_brings_a_new_dictionary() {
    let mut owner = Owner::new(small());
    owner.store("doc:", 3000, document);
    assert_eq!(owner.verdicts, ["train"]);
    owner.store("doc:", 3000, reading);
    assert_eq!(owner.verdicts, ["train", "train"]);
    let (bytes, stored) = owner.store("doc:", 3000, reading);
    assert!(stored * 2 < bytes, "{stored} of {bytes}");
    assert_eq!(owner.verdicts.len(), 2);
    assert_eq!(owner.all.list().len(), 2);
}

/// What changed into noise is left alone.
#[test]
fn drift_into_noise_ends_compression() {
    let mut owner = Owner::new(small());
    owner.store("doc:", 1000, document);
    owner.store("doc:", 1500, noise);
    assert_eq!(owner.verdicts, ["train", "raw"]);
}

/// A class that did not compress is tried again after pauses that double, and found when it does.
#[test]
fn incompressible_classes_are_tried_again() {
    let mut owner = Owner::new(small());
    owner.store("x:", 300, noise);
    assert_eq!(owner.verdicts, ["raw"]);
    let class = owner.trainer.class(KEYSPACE, b"x:");
    let (until_ns, now_ns) = (owner.trainer.raw_until(class), owner.clock.monotonic_ns());
    assert_eq!(until_ns, Some(now_ns + 60_000_000_000), "none is wanted before");
    for (pause_ms, trials) in [(59_000, 1), (2_000, 2), (100_000, 2), (30_000, 3)] {
        owner.clock.advance_ms(pause_ms);
        owner.store("x:", 300, noise);
        assert_eq!(owner.verdicts.len(), trials, "after {pause_ms} ms more");
    }
    owner.clock.advance_ms(4 * 3_600_000);
    owner.store("x:", 300, document);
    assert_eq!(owner.verdicts.last(), Some(&"train"));
    assert_eq!(owner.trainer.raw_until(class), None);
}

/// The same calls, seed and clock make the same dictionaries; another seed chooses other samples.
#[test]
fn decisions_repeat() {
    let names = |seed| {
        let mut owner = Owner::new(Settings { samples_max: 300, samples_min: 300, ..small() });
        owner.trainer.rng = Rng::new(seed);
        owner.store("doc:", 800, document);
        owner.all.list().iter().map(|found| found.hash()).collect::<Vec<_>>()
    };
    assert_eq!(names(1), names(1));
    assert_ne!(names(1), names(2));
}

/// Samples of many classes never take more than allowed, and a class that comes late is still trained.
#[test]
fn samples_are_bounded() {
    let mut owner = Owner::new(Settings { bytes_max: 100_000, samples_min: 200, classes_max: 20, ..small() });
    for n in 0..40_000 {
        let class = owner.trainer.class(KEYSPACE, format!("{}:x", n % 50).as_bytes());
        let value = vec![b'x'; owner.rng.below(20_000) as usize];
        owner.trainer.observe(class, &value);
        assert!(owner.trainer.sample_bytes() <= 100_000);
    }
    assert!(owner.trainer.report().len() <= 21);
}

/// A dictionary of an earlier run is used again for its class, and a failure to save one changes nothing.
#[test]
fn runs_continue() {
    let mut owner = Owner::new(small());
    owner.store("doc:", 600, document);
    let dictionary = owner.all.list()[0].number();
    let lease = owner.all.lease(dictionary).expect("it is there");

    let mut next = Owner::new(small());
    let class = next.trainer.resume(Arc::new(lease.into_encoder(3).expect("prepared"))).expect("a class of keys");
    assert_eq!(class, next.trainer.class(KEYSPACE, b"doc:77"));
    assert!(matches!(next.trainer.choice(class), Choice::Dictionary(encoder) if encoder.level() == 3));
    let (bytes, stored) = next.store("doc:", 600, document);
    assert!(stored * 2 < bytes && next.verdicts.is_empty(), "{stored} of {bytes}");

    let class = next.trainer.class(KEYSPACE, b"other:1");
    for value in (0..300).map(|_| document(&mut owner.rng)) {
        next.trainer.observe(class, &value);
    }
    let task = next.trainer.next_task().expect("samples enough");
    assert!(matches!(next.trainer.settle(task.run()), Verdict::Train { .. }));
    next.trainer.give_up(class);
    assert!(matches!(next.trainer.choice(class), Choice::Plain));
    assert!(next.trainer.next_task().is_none());
}

/// Other codecs learn, too, which classes do not compress, and get no dictionaries.
#[test]
fn other_codecs_learn_what_does_not_pay() {
    let mut owner = Owner::new(Settings { plain: Method::Lzf, ..small() });
    owner.store("doc:", 300, |rng| document(rng).repeat(4));
    owner.store("noise:", 300, noise);
    assert_eq!(owner.verdicts, ["plain", "raw"]);
    assert!(owner.all.list().is_empty());
}

/// A trainer that was begun anew takes nothing from tasks of before, and learns again.
#[test]
fn a_restart_forgets() {
    let mut owner = Owner::new(small());
    owner.store("doc:", 255, document);
    let class = owner.trainer.class(KEYSPACE, b"doc:1");
    owner.trainer.observe(class, &document(&mut owner.rng));
    let task = owner.trainer.next_task().expect("samples enough");
    owner.trainer.restart(small());
    assert_eq!(owner.trainer.settle(task.run()), Verdict::Keep);
    assert_eq!(owner.trainer.sample_bytes(), 0);
    owner.store("doc:", 300, document);
    assert_eq!(owner.verdicts, ["train"]);
    owner.trainer.restart(small());
    assert!(matches!(owner.trainer.choice(class), Choice::Plain));
}

/// Classes with too few values to train on share a dictionary once no more come, and keep no samples; a class that gets
/// enough then gets its own.
#[test]
fn small_classes_share_a_dictionary() {
    let mut owner = Owner::new(small());
    for class in 0..20 {
        owner.store(&format!("kind{class}:"), 30, document);
    }
    let held = owner.trainer.sample_bytes();
    assert!(owner.verdicts.is_empty() && held > 0);
    owner.clock.advance_ms(4000);
    owner.train();
    assert!(owner.verdicts.is_empty() && owner.trainer.sample_bytes() == held, "more may come");
    owner.clock.advance_ms(1000);
    owner.train();
    assert_eq!((&owner.verdicts[..], owner.trainer.sample_bytes()), (&["train"][..], 0));
    let number = |owner: &mut Owner, key: &[u8]| {
        let class = owner.trainer.class(KEYSPACE, key);
        match owner.trainer.choice(class) {
            Choice::Dictionary(encoder) => Some(encoder.dictionary().number().0.get()),
            Choice::Raw | Choice::Plain => None,
        }
    };
    let shared = number(&mut owner, b"no separator");
    assert!(shared.is_some() && number(&mut owner, b"kind7:1") == shared && number(&mut owner, b"new:1") == shared);
    let class = owner.trainer.class(KeyspaceId(1), b"kind7:1");
    assert!(matches!(owner.trainer.choice(class), Choice::Plain), "another keyspace");

    owner.store("kind7:", 300, document);
    assert_eq!(owner.verdicts, ["train", "train"]);
    assert!(number(&mut owner, b"kind7:1") != shared && number(&mut owner, b"kind8:1") == shared);
    owner.store("noise:", 300, noise);
    assert_eq!(number(&mut owner, b"noise:1"), None);
    assert_eq!(owner.verdicts, ["train", "train", "raw"]);
}
