//! What a connection shows of itself to others: its worker writes it where they see it.

use crate::Session;
use crate::caching::CachingMode;
use crate::clients::{Activity, ClientFlags};
use base::UnixMs;
use proto::Protocol;
use push::Kind;
use std::sync::atomic::Ordering;

impl Session {
    /// Publishes where the connection stands. Called by its worker, once a turn and connection.
    pub fn publish(&self, activity: &Activity) {
        let info = &self.info;
        info.last_command.store(activity.command, Ordering::Relaxed);
        info.input_bytes.store(activity.input_bytes, Ordering::Relaxed);
        info.unsent_bytes.store(activity.unsent_bytes, Ordering::Relaxed);
        info.reply_buffer_bytes.store(activity.reply_buffer_bytes, Ordering::Relaxed);
        self.publish_state(activity.protocol, activity.now);
    }

    /// Publishes what the session says, when a command is about to show it.
    pub fn publish_state(&self, protocol: Protocol, now: UnixMs) {
        let (info, transaction) = (&self.info, self.transaction.as_ref());
        let queued = transaction.map(|transaction| transaction.queue.len()).or(self.running);
        let none = if self.knows_transactions { 0 } else { -1 };
        let queued = queued.map_or(none, |count| i64::try_from(count).unwrap_or(i64::MAX));
        info.last_used_at.store(now, Ordering::Relaxed);
        info.db.store(self.db.0, Ordering::Relaxed);
        info.flags.store(flags_of(self).bits(), Ordering::Relaxed);
        info.protocol.store(if protocol == Protocol::Resp3 { 3 } else { 2 }, Ordering::Relaxed);
        info.queued.store(queued, Ordering::Relaxed);
        let queued_bytes = transaction.map_or(0, |transaction| transaction.bytes).saturating_add(self.watch.bytes);
        info.queued_bytes.store(queued_bytes, Ordering::Relaxed);
        if self.watch.changed.is_some() || info.watched.load(Ordering::Relaxed) > 0 {
            self.publish_watch();
        }
    }

    #[cold]
    fn publish_watch(&self) {
        *self.info.watch_broken.lock() = self.watch.changed.clone();
        self.info.watched.store(self.watch.keys.len(), Ordering::Relaxed);
    }

    /// Publishes what the session has subscribed to.
    pub fn publish_subscriptions(&self) {
        let subscriptions = self.subscriptions.as_deref();
        for (kind, count) in Kind::ALL.into_iter().zip(&self.info.subscribed) {
            count.store(subscriptions.map_or(0, |all| all.count(kind)), Ordering::Relaxed);
        }
        let bytes = subscriptions.map_or(0, |all| all.held_bytes());
        self.info.subscription_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Publishes how the keys it reads are tracked.
    pub fn publish_tracking(&self) {
        let redirect = self.tracking.as_ref().map_or(-1, |caching| caching.redirect.cast_signed());
        self.info.redirect.store(redirect, Ordering::Relaxed);
        self.info.flags.store(flags_of(self).bits(), Ordering::Relaxed);
    }
}

fn flags_of(session: &Session) -> ClientFlags {
    let mut flags = ClientFlags::empty();
    flags.set(ClientFlags::MONITOR, session.monitor);
    flags.set(ClientFlags::TRANSACTION, session.transaction.is_some() || session.running.is_some());
    flags.set(ClientFlags::CLOSING, session.close_after_replies);
    flags.set(ClientFlags::NO_EVICT, session.no_evict);
    flags.set(ClientFlags::READ_ONLY, session.read_only);
    flags.set(ClientFlags::NO_TOUCH, session.no_touch);
    flags.set(ClientFlags::CAN_REDIRECT, session.can_redirect);
    if let Some(caching) = &session.tracking {
        flags |= ClientFlags::TRACKING;
        flags.set(ClientFlags::REDIRECTION_BROKEN, caching.is_broken);
        flags.set(ClientFlags::BROADCAST, caching.mode == CachingMode::Broadcast);
    }
    flags
}
