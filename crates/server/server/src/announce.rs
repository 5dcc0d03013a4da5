//! Notices of commands, as messages to clients.

use base::Lsn;
use engine::NotifyClass;
use push::pubsub::From;
use push::tracking::Change;
use push::{PubSub, Tracking};
use std::sync::Arc;
use store::{Announce, Notice};

/// Publishes the notices of the store.
pub(crate) struct Announcer {
    pub(crate) pubsub: Arc<PubSub>,
    pub(crate) tracking: Arc<Tracking>,
}

impl Announce for Announcer {
    fn announce(&self, notices: &[Notice], classes: NotifyClass, hold: Lsn, worker: usize) {
        let from = From { worker, hold };
        // First of all, as in Valkey: the invalidations of a client's own changes all follow its reply.
        let changes: Vec<Change<'_>> = notices.iter().filter_map(change_of).collect();
        changes.iter().filter(|change| change.by > 0).for_each(|change| self.tracking.tell_maker(*change, worker));
        for notice in notices {
            match notice {
                Notice::Event { event, db, key } => {
                    if classes.contains(NotifyClass::KEYSPACE) {
                        let channel = [format!("__keyspace@{}__:", db.0).as_bytes(), key].concat();
                        self.pubsub.publish(&channel, event.as_bytes(), from);
                    }
                    if classes.contains(NotifyClass::KEYEVENT) {
                        let channel = format!("__keyevent@{}__:{event}", db.0);
                        self.pubsub.publish(channel.as_bytes(), key, from);
                    }
                }
                Notice::Message { channel, text, is_sharded: false } => {
                    self.pubsub.publish(channel, text, from);
                }
                Notice::Message { channel, text, is_sharded: true } => {
                    self.pubsub.publish_to_shard(channel, text, from);
                }
                Notice::Changed { key, by } => self.tracking.tell_readers(Change { key, by: *by }, worker),
                Notice::Flushed => self.tracking.flushed(worker),
            }
        }
        if !changes.is_empty() {
            self.tracking.broadcast(&changes, worker);
        }
    }
}

fn change_of(notice: &Notice) -> Option<Change<'_>> {
    match notice {
        Notice::Changed { key, by } => Some(Change { key, by: *by }),
        _ => None,
    }
}

/// The classes that `notify-keyspace-events` names.
pub(crate) fn classes_of(letters: &str) -> NotifyClass {
    letters.chars().filter_map(NotifyClass::of_letter).fold(NotifyClass::empty(), NotifyClass::union)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_of_the_setting_is_a_class() {
        for letter in "Ag$lshzxetdnKEm".chars() {
            assert!(!classes_of(&letter.to_string()).is_empty(), "{letter}");
        }
        assert_eq!(classes_of("AnKEm"), NotifyClass::all());
    }
}
