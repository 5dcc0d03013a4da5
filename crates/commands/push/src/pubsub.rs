//! Subscriptions of clients, and publishing to them.

use crate::message::Message;
use crate::outlet::{Content, Outlets, To};
use crate::receivers::{Audience, Receiver};
use crate::subscriptions::{Kind, Subscriptions};
use base::{Lsn, glob, slot};
use parking_lot::{Mutex, RwLock};
use proto::PushFrame;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Slices of the names, each with its lock: many more than workers, so that they seldom meet.
const SLICE_COUNT: usize = 128;

/// All subscriptions of a server.
pub struct PubSub {
    outlets: Arc<Outlets>,
    channels: Names,
    shard_channels: Names,
    patterns: RwLock<BTreeMap<Box<[u8]>, Audience>>,
    /// How many patterns there are, so that publishing without any needs no lock.
    pattern_count: AtomicUsize,
}

/// The publisher, and when its message may be sent.
#[derive(Clone, Copy, Debug)]
pub struct From {
    /// The worker that does it.
    pub worker: usize,
    /// See [`Message::hold`].
    pub hold: Lsn,
}

impl PubSub {
    /// No subscriptions; messages will go by these outlets.
    pub fn new(outlets: Arc<Outlets>) -> Self {
        Self {
            outlets,
            channels: Names::default(),
            shard_channels: Names::default(),
            patterns: RwLock::default(),
            pattern_count: AtomicUsize::new(0),
        }
    }

    /// Subscribes a connection; false when it was subscribed already.
    pub fn subscribe(&self, subscriptions: &mut Subscriptions, receiver: Receiver, kind: Kind, name: &[u8]) -> bool {
        if !subscriptions.add(kind, name) {
            return false;
        }
        match kind {
            Kind::Channel => self.channels.add(name, receiver),
            Kind::ShardChannel => self.shard_channels.add(name, receiver),
            Kind::Pattern => {
                let mut patterns = self.patterns.write();
                patterns.entry(name.into()).or_default().add(receiver);
                self.pattern_count.store(patterns.len(), Ordering::Relaxed);
            }
        }
        true
    }

    /// Ends a subscription; false when there was none.
    pub fn unsubscribe(&self, subscriptions: &mut Subscriptions, receiver: Receiver, kind: Kind, name: &[u8]) -> bool {
        if !subscriptions.remove(kind, name) {
            return false;
        }
        match kind {
            Kind::Channel => self.channels.remove(name, receiver),
            Kind::ShardChannel => self.shard_channels.remove(name, receiver),
            Kind::Pattern => {
                let mut patterns = self.patterns.write();
                if let Some(audience) = patterns.get_mut(name) {
                    audience.remove(receiver);
                    if audience.is_empty() {
                        patterns.remove(name);
                    }
                }
                self.pattern_count.store(patterns.len(), Ordering::Relaxed);
            }
        }
        // After the client has left: later deliveries are not for it, or are for a later subscription.
        subscriptions.left_at = self.outlets.count(receiver.worker);
        true
    }

    /// Ends all subscriptions of a connection.
    pub fn leave(&self, subscriptions: &mut Subscriptions, receiver: Receiver) {
        for kind in Kind::ALL {
            for name in subscriptions.names(kind) {
                self.unsubscribe(subscriptions, receiver, kind, &name);
            }
        }
    }

    /// Sends a message to all subscribers of a channel, and of the patterns that match it. Returns the number of
    /// deliveries: a client that matches in several ways receives it, and counts, that often.
    pub fn publish(&self, channel: &[u8], text: &[u8], from: From) -> usize {
        let mut publication = Publication::new(&self.outlets, text, from);
        let slice = self.channels.slice(channel).lock();
        if let Some(audience) = slice.get(channel) {
            publication.send(Kind::Channel, channel, audience, &[b"message", channel]);
        }
        if self.pattern_count.load(Ordering::Relaxed) > 0 {
            // Under the lock of the channel (U1).
            for (pattern, audience) in &*self.patterns.read() {
                if glob::matches(pattern, channel) {
                    publication.send(Kind::Pattern, pattern, audience, &[b"pmessage", pattern, channel]);
                }
            }
        }
        drop(slice);
        publication.wake()
    }

    /// Sends a message to all subscribers of a shard channel. Gives how many get it.
    pub fn publish_to_shard(&self, channel: &[u8], text: &[u8], from: From) -> usize {
        let mut publication = Publication::new(&self.outlets, text, from);
        let slice = self.shard_channels.slice(channel).lock();
        if let Some(audience) = slice.get(channel) {
            publication.send(Kind::ShardChannel, channel, audience, &[b"smessage", channel]);
        }
        drop(slice);
        publication.wake()
    }

    /// How many would get a message.
    pub fn receivers(&self, kind: Kind, channel: &[u8]) -> usize {
        if kind == Kind::ShardChannel {
            return self.shard_channels.count_of(channel);
        }
        let patterns = self.patterns.read();
        let matching = patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel));
        self.channels.count_of(channel) + matching.map(|(_, audience)| audience.len()).sum::<usize>()
    }

    /// How many have subscribed to the channel itself.
    pub fn subscribers(&self, kind: Kind, channel: &[u8]) -> usize {
        self.names(kind).map_or(0, |names| names.count_of(channel))
    }

    /// The channels with subscribers whose names match.
    pub fn active(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        self.names(kind).map_or_else(Vec::new, |names| names.matching(pattern))
    }

    /// How many channels, patterns or shard channels have subscribers.
    pub fn count(&self, kind: Kind) -> usize {
        match self.names(kind) {
            Some(names) => names.count.load(Ordering::Relaxed),
            None => self.pattern_count.load(Ordering::Relaxed),
        }
    }

    fn names(&self, kind: Kind) -> Option<&Names> {
        match kind {
            Kind::Channel => Some(&self.channels),
            Kind::ShardChannel => Some(&self.shard_channels),
            Kind::Pattern => None,
        }
    }
}

/// One message on its way into the outlets. Its text is copied when the first receiver is found, and then shared.
struct Publication<'p> {
    outlets: &'p Outlets,
    text: &'p [u8],
    shared_text: Option<Arc<Vec<u8>>>,
    from: From,
    count: usize,
    woken: Vec<usize>,
}

impl<'p> Publication<'p> {
    fn new(outlets: &'p Outlets, text: &'p [u8], from: From) -> Self {
        Self { outlets, text, shared_text: None, from, count: 0, woken: Vec::new() }
    }

    /// Gives the message to one audience; `words` come before its text.
    fn send(&mut self, kind: Kind, name: &[u8], audience: &Audience, words: &[&[u8]]) {
        let text = self.shared_text.get_or_insert_with(|| Arc::new(self.text.to_vec()));
        let frame = PushFrame::with_text(words, text.clone());
        let message = Arc::new(Message { kind, name: name.into(), frame, hold: self.from.hold });
        for (worker, list) in audience.lists() {
            let content = Content::Message(message.clone());
            self.outlets.push(worker, To::Several(list.clone()), content, &mut self.woken);
        }
        self.count += audience.len();
    }

    /// Wakes the workers, without any lock. Returns the number of receivers.
    fn wake(self) -> usize {
        self.outlets.wake(&self.woken, self.from.worker);
        self.count
    }
}

/// A part of the names, each with its audience.
type Slice = HashMap<Box<[u8]>, Audience>;

/// Names with an audience each.
struct Names {
    slices: Box<[Mutex<Slice>]>,
    count: AtomicUsize,
}

impl Default for Names {
    fn default() -> Self {
        Self { slices: (0..SLICE_COUNT).map(|_| Mutex::default()).collect(), count: AtomicUsize::new(0) }
    }
}

impl Names {
    /// The slice of a name: by its cluster slot, which clients can choose. Colliding names only make their clients
    /// wait.
    fn slice(&self, name: &[u8]) -> &Mutex<Slice> {
        &self.slices[slot::slot_of(name).index() % SLICE_COUNT]
    }

    fn add(&self, name: &[u8], receiver: Receiver) {
        let mut slice = self.slice(name).lock();
        match slice.get_mut(name) {
            Some(audience) => {
                audience.add(receiver);
            }
            None => {
                slice.entry(name.into()).or_default().add(receiver);
                self.count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn remove(&self, name: &[u8], receiver: Receiver) {
        let mut slice = self.slice(name).lock();
        let Some(audience) = slice.get_mut(name) else { return };
        audience.remove(receiver);
        if audience.is_empty() {
            slice.remove(name);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn count_of(&self, name: &[u8]) -> usize {
        self.slice(name).lock().get(name).map_or(0, Audience::len)
    }

    fn matching(&self, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let mut names = Vec::new();
        for slice in &self.slices {
            let slice = slice.lock();
            names.extend(slice.keys().filter(|name| pattern.is_none_or(|it| glob::matches(it, name))).cloned());
        }
        names
    }
}

#[cfg(test)]
mod tests;
