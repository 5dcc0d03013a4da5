use super::*;
use std::sync::atomic::AtomicBool;

fn receiver(client: u64) -> Receiver {
    Receiver { client, worker: 0, slot: client as usize }
}

fn tracker(client: u64) -> Tracker {
    Tracker { client: receiver(client), redirect: None, is_noloop: false, is_broadcast: false }
}

fn tracking() -> (Tracking, Arc<Outlets>, Arc<AtomicBool>) {
    let (outlets, asked) = (Arc::new(Outlets::new(1, |_| {})), Arc::new(AtomicBool::new(false)));
    let ask = asked.clone();
    (Tracking::new(outlets.clone(), move |on| ask.store(on, Ordering::Relaxed)), outlets, asked)
}

/// What has been sent: the receiver, and the keys (none for all).
fn sent(outlets: &Outlets) -> Vec<(u64, Vec<String>)> {
    let mut deliveries = Vec::new();
    outlets.take(0, usize::MAX, &mut deliveries);
    let show = |delivery: &crate::outlet::Delivery| match &delivery.content {
        Content::Invalidation { invalidation, .. } => {
            let keys = invalidation.keys.iter().flatten().map(|key| String::from_utf8_lossy(key).into_owned());
            (delivery.to.receivers()[0].client, keys.collect())
        }
        other => panic!("{other:?}"),
    };
    deliveries.iter().map(show).collect()
}

/// What an announcer does with the changes of one command.
fn tell(tracking: &Tracking, changes: &[Change<'_>]) {
    changes.iter().for_each(|change| tracking.tell_maker(*change, 0));
    changes.iter().for_each(|change| tracking.tell_readers(*change, 0));
    tracking.broadcast(changes, 0);
}

fn change(key: &str, by: u64) -> Change<'_> {
    Change { key: key.as_bytes(), by }
}

#[test]
fn a_change_is_told_once_to_those_who_have_read_the_key() {
    let (tracking, outlets, asked) = tracking();
    tracking.enter(tracker(1), &[]);
    tracking.enter(Tracker { is_noloop: true, ..tracker(2) }, &[]);
    for client in [1, 2, 1] {
        tracking.remember(client, b"k", 0);
    }
    assert_eq!(tracking.counts(), (1, 2, 0));
    tell(&tracking, &[change("other", 1), change("k", 2)]);
    assert_eq!(sent(&outlets), [(1, vec!["k".to_owned()])], "2 has made the change itself");
    tell(&tracking, &[change("k", 0)]);
    assert!(sent(&outlets).is_empty());
    tracking.remember(2, b"k", 0);
    tracking.flushed(0);
    assert_eq!((sent(&outlets).len(), tracking.counts()), (2, (0, 0, 0)));
    assert!(asked.load(Ordering::Relaxed));
    tracking.leave(1, std::iter::empty());
    tracking.leave(2, std::iter::empty());
    assert!(!asked.load(Ordering::Relaxed) && tracking.client_count() == 0);
}

#[test]
fn prefixes_are_told_of_all_their_keys_together() {
    let (tracking, outlets, _) = tracking();
    tracking.enter(tracker(1), &[]);
    tracking.remember(1, b"x", 0);
    tracking.enter(Tracker { is_broadcast: true, ..tracker(1) }, &[b"u:", b"o:"]);
    tracking.enter(Tracker { is_noloop: true, ..tracker(2) }, &[b""]);
    let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    tell(&tracking, &[change("u:2", 2), change("x", 1), change("u:1", 2), change("u:2", 2), change("o:1", 3)]);
    assert_eq!(sent(&outlets), [(2, keys(&["o:1", "x"])), (1, keys(&["o:1"])), (1, keys(&["u:1", "u:2"]))]);
    tell(&tracking, &[change("x", 2)]);
    assert!(sent(&outlets).is_empty());
    tracking.leave(1, [&b"u:"[..], b"o:"].into_iter());
    assert_eq!(tracking.counts().2, 1);
}

#[test]
fn no_more_keys_are_remembered_than_allowed() {
    let (tracking, outlets, _) = tracking();
    tracking.set_keys_max(10);
    tracking.enter(tracker(1), &[]);
    for number in 0..100 {
        tracking.remember(1, format!("key {number}").as_bytes(), 0);
        assert!(tracking.counts().0 <= 10);
    }
    let mut told: Vec<String> = sent(&outlets).into_iter().flat_map(|(_, keys)| keys).collect();
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 90, "what is forgotten has been told, once each");
}

/// A lower limit is in force at once, without another read.
#[test]
fn a_lower_limit_forgets_keys_at_once() {
    let (tracking, outlets, _) = tracking();
    tracking.enter(tracker(1), &[]);
    (0..100).for_each(|number| tracking.remember(1, format!("key {number}").as_bytes(), 0));
    tracking.set_keys_max(10);
    assert_eq!(tracking.counts().0, 10);
    let told: usize = sent(&outlets).into_iter().map(|(_, keys)| keys.len()).sum();
    assert_eq!(told, 90, "clients are notified of what was forgotten");
}

/// Clients that are gone do not pile up in the lists of keys that are read and never changed.
#[test]
fn clients_that_are_gone_are_swept() {
    let (tracking, _, _) = tracking();
    tracking.enter(tracker(0), &[]);
    for client in 1..10_000 {
        tracking.enter(tracker(client), &[]);
        tracking.remember(client, b"k", 0);
        tracking.leave(client, std::iter::empty());
    }
    assert!(tracking.counts().1 <= CLIENTS_LEFT_MAX, "{:?}", tracking.counts());
}

/// Twice what sweeping begins at, less one.
const CLIENTS_LEFT_MAX: usize = 31;
