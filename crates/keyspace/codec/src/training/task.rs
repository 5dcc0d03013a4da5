//! One training: a dictionary from most of the samples, judged by the rest. It first looks at some of them, so that
//! values which nothing makes shorter (random, or compressed before) cost no training on all.

use super::class::ClassId;
use super::{HOPELESS_FROM, Permille, Settings};
use crate::dictionaries::Encoder;
use crate::stored::{Form, header_len};
use crate::workspace::{Method, Workspace};
use crate::zstd::{self, Contexts, Effort};
use std::sync::Arc;
use zstd_safe::CDict;

/// One sample in this many is not trained on.
const HELD_OUT: usize = 4;

/// A dictionary gets one byte for this many bytes of samples.
const BYTES_PER_BYTE: usize = 8;

/// Samples of the look that comes first, where there are twice as many.
const LOOK: usize = 256;

/// Below this, zstd trains none.
const DICTIONARY_LEN_MIN: usize = 512;

/// Samples in random order, and what to try on them. Training a dictionary takes 10 to 200 milliseconds of CPU.
pub struct Task {
    class: ClassId,
    samples: Vec<Vec<u8>>,
    current: Option<Arc<Encoder>>,
    plain: Method<'static>,
    dictionary_len_max: usize,
}

impl Task {
    pub(super) fn new(
        class: ClassId,
        samples: Vec<Vec<u8>>,
        current: Option<Arc<Encoder>>,
        settings: &Settings,
    ) -> Self {
        let Settings { plain, dictionary_len_max, .. } = *settings;
        Self { class, samples, current, plain, dictionary_len_max }
    }

    /// Which class it is for.
    pub fn class(&self) -> ClassId {
        self.class
    }

    /// Trains and compares.
    pub fn run(self) -> Trial {
        let some = self.samples.get(..LOOK).filter(|some| 2 * some.len() <= self.samples.len());
        let look = some.map(|some| self.try_on(some)).filter(Trial::is_hopeless);
        look.unwrap_or_else(|| self.try_on(&self.samples))
    }

    fn try_on(&self, samples: &[Vec<u8>]) -> Trial {
        let (held_out, trained_on) = samples.split_at(samples.len() / HELD_OUT);
        let mut scale = Scale { held_out, out: Vec::new() };
        let mut contexts = Contexts::new();
        let level = if let Method::Zstd(level) = self.plain { Some(level) } else { None };
        let dictionary = level.and_then(|level| {
            let content = self.train(trained_on)?;
            let prepared = CDict::try_create(&content, level)?;
            Some((scale.weigh_dictionary(&mut contexts, &prepared), content))
        });
        let current = self.current.as_ref().and_then(|encoder| encoder.prepared());
        let current = current.map(|prepared| scale.weigh_dictionary(&mut contexts, &prepared));
        let plain = scale.weigh_plain(self.plain);
        let (new, content) = dictionary.unzip();
        let (samples, content) = (samples.len(), content.unwrap_or_default());
        Trial { class: self.class, samples, plain, current, new, content }
    }

    /// Samples that have nothing in common give no dictionary, which is no failure.
    fn train(&self, samples: &[Vec<u8>]) -> Option<Vec<u8>> {
        let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
        let bytes: usize = samples.iter().map(|sample| sample.len()).sum();
        let len_max = self.dictionary_len_max.min(bytes / BYTES_PER_BYTE);
        (len_max >= DICTIONARY_LEN_MIN).then(|| zstd::train(&samples, len_max).ok()).flatten()
    }
}

/// Weighs what the values held out take when they are stored.
struct Scale<'a> {
    held_out: &'a [Vec<u8>],
    out: Vec<u8>,
}

impl Scale<'_> {
    fn weigh_plain(&mut self, method: Method<'_>) -> Permille {
        let mut workspace = Workspace::new();
        self.weigh(|value, out| workspace.encode(method, value, usize::MAX, out).then_some(0))
    }

    fn weigh_dictionary(&mut self, contexts: &mut Contexts, dictionary: &CDict<'static>) -> Permille {
        self.weigh(|value, out| {
            // One byte more than without a dictionary, for its number, which has one for long.
            let header = header_len(Form::Zstd, value.len()) + 1;
            let payload_max = value.len().checked_sub(header + 1)?;
            contexts.compress(&Effort::Dictionary(dictionary), value, payload_max, out).map(|_| header)
        })
    }

    /// `encode` returns how many bytes are stored in addition to those it appends; `None` when a value stays raw.
    fn weigh(&mut self, mut encode: impl FnMut(&[u8], &mut Vec<u8>) -> Option<usize>) -> Permille {
        let (mut bytes, mut stored) = (0, 0);
        for value in self.held_out {
            self.out.clear();
            let beside = encode(value, &mut self.out);
            bytes += value.len() as u64;
            stored += beside.map_or(value.len(), |beside| self.out.len() + beside) as u64;
        }
        stored * 1000 / bytes.max(1)
    }
}

/// What came of a task.
pub struct Trial {
    class: ClassId,
    samples: usize,
    plain: Permille,
    current: Option<Permille>,
    new: Option<Permille>,
    content: Vec<u8>,
}

impl Trial {
    /// Which class it is about.
    pub fn class(&self) -> ClassId {
        self.class
    }

    /// How many samples it was made on, those to train on and those held out.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// Nothing that was tried makes values shorter.
    fn is_hopeless(&self) -> bool {
        let tried = [Some(self.plain), self.current, self.new];
        tried.into_iter().flatten().all(|permille| permille >= HOPELESS_FROM)
    }

    /// Stored bytes per thousand, without a dictionary, of samples that were not trained on.
    pub fn plain(&self) -> u64 {
        self.plain
    }

    /// The same with the dictionary in use.
    pub fn current_dictionary(&self) -> Option<u64> {
        self.current
    }

    /// The same with the new dictionary, if there is one.
    pub fn new_dictionary(&self) -> Option<u64> {
        self.new
    }

    pub(super) fn into_dictionary(self) -> Vec<u8> {
        self.content
    }
}
