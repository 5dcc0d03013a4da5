//! Chooses how to compress values: learned by class of keys, from samples, for any codec.
//!
//! ```text
//!               enough samples            not worth it: raw, or without dictionary
//!  Sampling ---------------> Training ----------------------------------------> Resting --time--> Sampling
//!     ^                          |  a dictionary that pays, durable                                   |
//!     |                          '------------------------------> In use --values shrink less--> -----'
//! ```
//!
//! A *class* is a keyspace and the first part of a key, up to its separator: `user:1` and `user:2` are of one class.
//! Values of one class look alike, and a dictionary holds what they have in common. Classes with too few values give
//! their samples to the class of keys without a separator, and share its dictionary.
//!
//! T1. Samples take at most [`Settings::bytes_max`] for all classes together; there are at most
//!     [`Settings::classes_max`].
//! T2. A dictionary is judged by samples that it was not trained on, against zstd without one and against the
//!     dictionary in use. For codecs without dictionaries, samples only decide whether they pay.
//! T3. The same calls with the same seed and clock lead to the same decisions.
//! T4. A class that does not compress is tried again after a pause that doubles each time.
//! T5. When some hundred values of an unjudged class in a row did not shrink, only a sixteenth of the next are tried
//!     until it is judged. All are offered as samples.
//!
//! Nothing here blocks or reads a file: the owner runs [`Task`]s on its own thread, and makes dictionaries durable.

mod class;
mod reservoir;
mod task;

pub use class::{ClassId, key_prefix, parse_name};
pub use task::{Task, Trial};

use crate::dictionaries::Encoder;
use crate::error::CodecError;
use crate::workspace::Method;
use base::{Clock, KeyspaceId, Rng};
use class::ClassTable;
use reservoir::Reservoir;
use std::sync::Arc;
use std::time::Duration;

/// When to train, and on how much.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How values without a dictionary are compressed. Dictionaries are trained for zstd only, and judged at its level.
    pub plain: Method<'static>,
    /// Most classes; keys of further ones share the class of keys without a separator.
    pub classes_max: usize,
    /// Most samples of a class.
    pub samples_max: usize,
    /// Samples from which a class is trained.
    pub samples_min: usize,
    /// Longer values are cut to this many bytes.
    pub sample_len_max: usize,
    /// Most bytes of samples, of all classes together.
    pub bytes_max: usize,
    /// Longest dictionary, in bytes.
    pub dictionary_len_max: usize,
    /// First pause before a class that does not compress is tried again.
    pub pause_first: Duration,
    /// Longest pause.
    pub pause_max: Duration,
    /// Time without a new sample after which classes that have too few give them away.
    pub pool_after: Duration,
    /// Values after which it is judged whether a class still shrinks as it did.
    pub window: u64,
}

impl Default for Settings {
    /// 16 KiB were as good as 64 for documents of 100 bytes to 10 KB, and zstd asks for many times as much to train on.
    fn default() -> Self {
        Self {
            plain: Method::Zstd(3),
            classes_max: 256,
            samples_max: 4096,
            samples_min: 256,
            sample_len_max: 8 << 10,
            bytes_max: 16 << 20,
            dictionary_len_max: 16 << 10,
            pause_first: Duration::from_secs(60),
            pause_max: Duration::from_secs(4 * 3600),
            pool_after: Duration::from_secs(5),
            window: 4096,
        }
    }
}

/// How values of a class are to be compressed.
#[derive(Clone, Debug)]
pub enum Choice {
    /// Not at all: it does not pay.
    Raw,
    /// Without a dictionary.
    Plain,
    /// With a dictionary.
    Dictionary(Arc<Encoder>),
}

/// What a trial led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Values of the class stay raw.
    Raw,
    /// To compress without a dictionary is as good.
    Plain,
    /// What is in use is as good as anything new.
    Keep,
    /// A dictionary pays. Make it durable, then call [`Trainer::adopt`], or [`Trainer::give_up`] if that fails.
    Train {
        /// The class, as it stands in the dictionary's file.
        class: Vec<u8>,
        /// The dictionary.
        content: Vec<u8>,
    },
}

/// Stored bytes per thousand bytes of values.
type Permille = u64;

/// From here on, compressing is not worth the time of reading.
const RAW_FROM: Permille = 930;

/// From here on, more values of the kind promise nothing. Far from [`RAW_FROM`], since a dictionary trained on few
/// samples saves less than one trained on many.
const HOPELESS_FROM: Permille = 985;

/// After this many values of each window, a class that was not judged may be doubted.
const DOUBTED_AFTER: u64 = 256;

/// A dictionary must take at least this part off what is stored without it.
const DICTIONARY_GAIN: Permille = 60;

/// Values that take by this part more than they once did have changed.
const DRIFT: Permille = 150;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Sampling,
    Training,
    /// Nothing is sampled until then; `None` while only drift can bring a change.
    Resting {
        until_ns: Option<u64>,
    },
}

struct Class {
    choice: Choice,
    phase: Phase,
    samples: Reservoir,
    /// What the choice in use achieved when it was made; `None` until the first window has passed.
    expected: Option<Permille>,
    /// Values, their bytes and their stored bytes since the last judgement.
    noted: Noted,
    /// What the last window achieved.
    last: Option<Permille>,
    /// Trials in a row that led to nothing.
    failures: u32,
    /// Time spent on compressing its values.
    spent_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Noted {
    values: u64,
    bytes: u64,
    stored: u64,
}

impl Class {
    fn new() -> Self {
        Self {
            choice: Choice::Plain,
            phase: Phase::Sampling,
            samples: Reservoir::default(),
            expected: None,
            noted: Noted::default(),
            last: None,
            failures: 0,
            spent_ns: 0,
        }
    }

    /// Whether there was never a trial for it.
    fn is_unjudged(&self) -> bool {
        matches!(self.choice, Choice::Plain) && self.failures == 0
    }

    /// Whether the values of this window promise nothing.
    fn is_doubted(&self) -> bool {
        let Noted { values, bytes, stored } = self.noted;
        self.is_unjudged() && values >= DOUBTED_AFTER && stored * 1000 >= bytes * HOPELESS_FROM
    }

    fn use_dictionary(&mut self, encoder: Arc<Encoder>) {
        self.choice = Choice::Dictionary(encoder);
        self.phase = Phase::Resting { until_ns: None };
        self.noted = Noted::default();
        self.failures = 0;
    }
}

/// What is shown of a class.
#[derive(Clone, Debug)]
pub struct ClassReport {
    /// Keyspace and first part of the keys.
    pub keyspace: KeyspaceId,
    /// First part of the keys, separator included; empty for keys without one.
    pub prefix: Vec<u8>,
    /// How its values are compressed.
    pub choice: Choice,
    /// Samples held.
    pub samples: usize,
    /// Stored bytes per thousand bytes of values, in the last full window.
    pub stored_permille: Option<u64>,
    /// Time spent on compressing its values, whatever came of it, in nanoseconds.
    pub spent_ns: u64,
}

/// Learns from passing values how to compress their like. One for a server, guarded by a lock, or one for each worker.
pub struct Trainer {
    settings: Settings,
    clock: Arc<dyn Clock>,
    rng: Rng,
    table: ClassTable,
    /// By class.
    classes: Vec<Class>,
    /// Bytes of all samples.
    bytes: usize,
    /// When a value was offered as a sample last.
    sampled_ns: u64,
}

impl Trainer {
    /// Knows nothing yet: all classes are compressed without a dictionary.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>, rng: Rng) -> Self {
        let table = ClassTable::new(settings.classes_max);
        Self { table, settings, clock, rng, classes: Vec::new(), bytes: 0, sampled_ns: 0 }
    }

    /// The class of a key. Allocates when the class is new.
    pub fn class(&mut self, keyspace: KeyspaceId, key: &[u8]) -> ClassId {
        let id = self.table.class(keyspace, key);
        self.classes.resize_with(self.table.len().max(self.classes.len()), Class::new);
        id
    }

    /// Starts over with other settings: it keeps the classes it has seen and the time they took, and nothing else.
    /// Results of running tasks are dropped.
    pub fn restart(&mut self, settings: Settings) {
        self.settings = settings;
        self.bytes = 0;
        self.classes.iter_mut().for_each(|class| *class = Class { spent_ns: class.spent_ns, ..Class::new() });
    }

    /// How to compress a value of this class. An unjudged class uses the dictionary of keys without a separator, if
    /// there is one, and stays raw while it is doubted.
    pub fn choice(&self, class: ClassId) -> &Choice {
        let Some(own) = self.classes.get(class.index()) else { return &Choice::Plain };
        let common = self.table.common(class).filter(|_| own.is_unjudged());
        let common = common.and_then(|common| self.classes.get(common.index())).map(|common| &common.choice);
        let otherwise = if own.is_doubted() { &Choice::Raw } else { &own.choice };
        common.filter(|choice| matches!(choice, Choice::Dictionary(_))).unwrap_or(otherwise)
    }

    /// Whether values of this unjudged class stay raw because earlier ones did not shrink.
    pub fn is_doubted(&self, class: ClassId) -> bool {
        self.classes.get(class.index()).is_some_and(Class::is_doubted)
    }

    /// Until when values of this class stay raw and are not sampled, in nanoseconds of the clock; `None` if they may be
    /// compressed, or sampled.
    pub fn raw_until(&self, class: ClassId) -> Option<u64> {
        let class = self.classes.get(class.index()).filter(|class| matches!(class.choice, Choice::Raw))?;
        if let Phase::Resting { until_ns } = class.phase { until_ns } else { None }
    }

    /// Takes a value as a sample, if the class is to be trained and chance wills it.
    pub fn observe(&mut self, class: ClassId, value: &[u8]) {
        let Some(class) = self.classes.get_mut(class.index()) else { return };
        let now_ns = self.clock.monotonic_ns();
        if let Phase::Resting { until_ns: Some(until) } = class.phase
            && now_ns >= until
        {
            class.phase = Phase::Sampling;
        }
        if class.phase == Phase::Sampling && !value.is_empty() {
            self.sampled_ns = now_ns;
            let value = value.get(..self.settings.sample_len_max).unwrap_or(value);
            let held = class.samples.bytes();
            let room = self.settings.bytes_max.saturating_sub(self.bytes - held);
            class.samples.offer(value, self.settings.samples_max, room, &mut self.rng);
            self.bytes = self.bytes - held + class.samples.bytes();
        }
    }

    /// Notes the result for a value: its bytes, and those stored for it (as many, if it stayed raw). A class that
    /// shrinks less than it did is sampled again.
    pub fn note(&mut self, class: ClassId, value_bytes: usize, stored_bytes: usize) {
        let Some(class) = self.classes.get_mut(class.index()) else { return };
        let noted = &mut class.noted;
        noted.values += 1;
        noted.bytes += value_bytes as u64;
        noted.stored += stored_bytes as u64;
        if noted.values < self.settings.window {
            return;
        }
        let permille = noted.stored * 1000 / noted.bytes.max(1);
        *noted = Noted::default();
        class.last = Some(permille);
        let expected = *class.expected.get_or_insert(permille);
        if matches!(class.phase, Phase::Resting { .. }) && permille > expected + expected * DRIFT / 1000 {
            class.phase = Phase::Sampling;
        }
    }

    /// Notes the time that compressing a value has taken.
    pub fn spend(&mut self, class: ClassId, spent_ns: u64) {
        if let Some(class) = self.classes.get_mut(class.index()) {
            class.spent_ns = class.spent_ns.saturating_add(spent_ns);
        }
    }

    /// The next class that has samples enough, if any. Hand the trial to [`Trainer::settle`].
    pub fn next_task(&mut self) -> Option<Task> {
        self.pool();
        let samples_min = self.settings.samples_min;
        let ready = |class: &Class| class.phase == Phase::Sampling && class.samples.len() >= samples_min;
        let (index, class) = self.classes.iter_mut().enumerate().find(|(_, class)| ready(class))?;
        class.phase = Phase::Training;
        let mut samples = class.samples.take();
        self.bytes -= samples.iter().map(Vec::len).sum::<usize>();
        let current = match &class.choice {
            Choice::Dictionary(encoder) => Some(Arc::clone(encoder)),
            _ => None,
        };
        reservoir::shuffle(&mut samples, &mut self.rng);
        let id = ClassId::from_index(index);
        Some(Task::new(id, samples, current, &self.settings))
    }

    /// Moves the samples of classes with too few to the class of keys without a separator, when none has come for a
    /// while.
    fn pool(&mut self) {
        let quiet_ns = u128::from(self.clock.monotonic_ns().saturating_sub(self.sampled_ns));
        if self.bytes == 0 || quiet_ns < self.settings.pool_after.as_nanos() {
            return;
        }
        for index in 0..self.classes.len() {
            let id = ClassId::from_index(index);
            let Some(class) = self.classes.get_mut(index) else { return };
            let has_few =
                class.phase == Phase::Sampling && (1..self.settings.samples_min).contains(&class.samples.len());
            if !has_few || self.table.is_common(id) {
                continue;
            }
            let samples = class.samples.take();
            self.bytes -= samples.iter().map(Vec::len).sum::<usize>();
            let common = self.table.make_common(id);
            self.classes.resize_with(self.table.len().max(self.classes.len()), Class::new);
            samples.iter().for_each(|sample| self.observe(common, sample));
        }
    }

    /// Judges a trial.
    pub fn settle(&mut self, trial: Trial) -> Verdict {
        let rest = self.pause(trial.class());
        let name = self.table.name(trial.class());
        let class = self.classes.get_mut(trial.class().index());
        let Some(class) = class.filter(|class| class.phase == Phase::Training) else { return Verdict::Keep };
        let (plain, new) = (trial.plain(), trial.new_dictionary());
        let in_use = trial.current_dictionary();
        let other = in_use.map_or(plain, |current| current.min(plain));
        if let Some(new) = new.filter(|new| *new < RAW_FROM && *new <= other - other * DICTIONARY_GAIN / 1000) {
            class.expected = Some(new);
            return Verdict::Train { class: name, content: trial.into_dictionary() };
        }
        class.failures = class.failures.saturating_add(1);
        class.phase = Phase::Resting { until_ns: Some(rest) };
        let keep = in_use.is_some_and(|current| current < RAW_FROM && current <= plain);
        if keep {
            // What came of it last is what to expect from now on, or the next window would drift again.
            class.expected = class.last;
            return Verdict::Keep;
        }
        class.expected = Some(plain);
        let (choice, verdict) =
            if plain < RAW_FROM { (Choice::Plain, Verdict::Plain) } else { (Choice::Raw, Verdict::Raw) };
        class.choice = choice;
        verdict
    }

    /// Puts the dictionary of [`Verdict::Train`] to use, after it has become durable. False if the trainer was started
    /// over meanwhile; the dictionary then stays unused.
    pub fn adopt(&mut self, class: ClassId, encoder: Arc<Encoder>) -> bool {
        let class = self.classes.get_mut(class.index()).filter(|class| class.phase == Phase::Training);
        class.map(|class| class.use_dictionary(encoder)).is_some()
    }

    /// The dictionary of [`Verdict::Train`] could not be made durable, or a task did not end: what was in use stays in
    /// use, and the class is tried again after a pause.
    pub fn give_up(&mut self, class: ClassId) {
        let rest = self.pause(class);
        let class = self.classes.get_mut(class.index());
        if let Some(class) = class.filter(|class| class.phase == Phase::Training) {
            class.failures = class.failures.saturating_add(1);
            class.phase = Phase::Resting { until_ns: Some(rest) };
            class.expected = class.last;
        }
    }

    /// Puts a dictionary of an earlier run to use for the class that its file names; of several, the one given last.
    /// Returns the class.
    ///
    /// # Errors
    /// `NotADictionary` when the file names no class of this trainer's.
    pub fn resume(&mut self, encoder: Arc<Encoder>) -> Result<ClassId, CodecError> {
        let wrong = CodecError::NotADictionary("its class is not one of keys");
        let (keyspace, prefix) = class::parse_name(encoder.dictionary().class()).ok_or(wrong)?;
        let id = self.table.class_of_prefix(keyspace, prefix);
        self.classes.resize_with(self.table.len().max(self.classes.len()), Class::new);
        if let Some(class) = self.classes.get_mut(id.index()) {
            class.use_dictionary(encoder);
        }
        Ok(id)
    }

    /// All classes, in order of their first sight.
    pub fn report(&self) -> Vec<ClassReport> {
        let rows = self.table.rows().zip(&self.classes);
        rows.map(|((keyspace, prefix), class)| ClassReport {
            keyspace,
            prefix: prefix.to_vec(),
            choice: class.choice.clone(),
            samples: class.samples.len(),
            stored_permille: class.last,
            spent_ns: class.spent_ns,
        })
        .collect()
    }

    /// Frees the compression state of dictionaries that were not used since the last call; returns whether there was
    /// any.
    pub fn rest(&self) -> bool {
        let encoders = self.classes.iter().filter_map(|class| match &class.choice {
            Choice::Dictionary(encoder) => Some(encoder),
            Choice::Raw | Choice::Plain => None,
        });
        // All of them are asked.
        encoders.filter(|encoder| encoder.rest()).count() > 0
    }

    /// Bytes of samples held.
    pub fn sample_bytes(&self) -> usize {
        self.bytes
    }

    /// When a class whose trial leads to nothing is tried again.
    fn pause(&self, class: ClassId) -> u64 {
        let failures = self.classes.get(class.index()).map_or(0, |class| class.failures);
        let pause = self.settings.pause_first.saturating_mul(1 << failures.min(20)).min(self.settings.pause_max);
        self.clock.monotonic_ns().saturating_add(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
