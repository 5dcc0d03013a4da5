use super::*;
use crate::outlet::Delivery;
use std::thread;

const WORKERS: usize = 3;

fn receiver(client: u64) -> Receiver {
    Receiver { client, worker: client as usize % WORKERS, slot: client as usize }
}

fn hub() -> (PubSub, Arc<Outlets>) {
    let outlets = Arc::new(Outlets::new(WORKERS, |_| {}));
    (PubSub::new(outlets.clone()), outlets)
}

fn from(worker: usize) -> From {
    From { worker, hold: Lsn(0) }
}

fn take(outlets: &Outlets, worker: usize) -> Vec<Delivery> {
    let mut deliveries = Vec::new();
    outlets.take(worker, usize::MAX, &mut deliveries);
    deliveries
}

fn message(delivery: &Delivery) -> &Message {
    match &delivery.content {
        Content::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_reaches_its_channel_and_the_patterns_that_match() {
    let (hub, outlets) = hub();
    let mut subscriptions: Vec<Subscriptions> = (0..3).map(|_| Subscriptions::default()).collect();
    assert!(hub.subscribe(&mut subscriptions[0], receiver(0), Kind::Channel, b"news"));
    assert!(!hub.subscribe(&mut subscriptions[0], receiver(0), Kind::Channel, b"news"));
    assert!(hub.subscribe(&mut subscriptions[1], receiver(1), Kind::Pattern, b"n*"));
    assert!(hub.subscribe(&mut subscriptions[2], receiver(2), Kind::ShardChannel, b"news"));
    assert_eq!((hub.publish(b"news", b"a", from(0)), hub.publish(b"new", b"b", from(0))), (2, 1));
    assert_eq!((hub.publish(b"olds", b"c", from(0)), hub.publish_to_shard(b"news", b"d", from(0))), (0, 1));
    let kinds = |worker| take(&outlets, worker).iter().map(|it| message(it).kind).collect::<Vec<_>>();
    assert_eq!(kinds(0), [Kind::Channel]);
    assert_eq!(kinds(1), [Kind::Pattern, Kind::Pattern]);
    assert_eq!(kinds(2), [Kind::ShardChannel]);
    assert_eq!(Kind::ALL.map(|kind| hub.count(kind)), [1, 1, 1]);
    for (all, client) in subscriptions.iter_mut().zip(0..) {
        hub.leave(all, receiver(client));
        assert_eq!(all.held_bytes(), 0);
    }
    assert_eq!(Kind::ALL.map(|kind| hub.count(kind)), [0, 0, 0]);
    assert_eq!(hub.publish(b"news", b"e", from(0)), 0);
}

/// What was on its way when a name was left is not wanted any more; what a later subscription brings is.
#[test]
fn a_message_that_comes_after_leaving_is_not_wanted() {
    let (hub, outlets) = hub();
    let mut subscriptions = Subscriptions::default();
    let wanted = |subscriptions: &Subscriptions| {
        take(&outlets, 0)
            .iter()
            .map(|it| subscriptions.wants(message(it).kind, &message(it).name, it.number))
            .collect::<Vec<_>>()
    };
    for name in [b"a", b"b"] {
        hub.subscribe(&mut subscriptions, receiver(0), Kind::Channel, name);
        hub.publish(name, b"1", from(1));
    }
    hub.unsubscribe(&mut subscriptions, receiver(0), Kind::Channel, b"a");
    hub.publish(b"a", b"2", from(1));
    hub.publish(b"b", b"2", from(1));
    assert_eq!(wanted(&subscriptions), [false, true, true]);
    hub.subscribe(&mut subscriptions, receiver(0), Kind::Channel, b"a");
    hub.publish(b"a", b"3", from(1));
    assert_eq!(wanted(&subscriptions), [true]);
}

/// All subscribers see one order of a channel's messages (U1), and each publisher's own order is kept in it.
#[test]
fn a_channel_has_one_order() {
    const MESSAGES: usize = 2_000;
    let (hub, outlets) = hub();
    let mut subscriptions: Vec<Subscriptions> = (0..WORKERS).map(|_| Subscriptions::default()).collect();
    for (all, client) in subscriptions.iter_mut().zip(0..) {
        let kind = if client == 1 { Kind::Pattern } else { Kind::Channel };
        hub.subscribe(all, receiver(client), kind, b"channel");
    }
    let seen: Vec<Vec<String>> = thread::scope(|scope| {
        let hub = &hub;
        let publishers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                scope.spawn(move || {
                    for number in 0..MESSAGES {
                        assert_eq!(
                            hub.publish(b"channel", format!("{worker} {number}").as_bytes(), from(worker)),
                            WORKERS
                        );
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let outlets = &outlets;
                scope.spawn(move || {
                    let mut texts = Vec::new();
                    while texts.len() < WORKERS * MESSAGES {
                        let mut deliveries = Vec::new();
                        outlets.take(worker, 1000, &mut deliveries);
                        texts.extend(deliveries.iter().map(|it| text(message(it))));
                    }
                    texts
                })
            })
            .collect();
        publishers.into_iter().for_each(|publisher| publisher.join().unwrap());
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert!(seen.iter().all(|texts| *texts == seen[0]));
    for worker in 0..WORKERS {
        let own = seen[0].iter().filter_map(|text| text.strip_prefix(&format!("{worker} ")));
        assert!(own.map(|number| number.parse::<usize>().unwrap()).eq(0..MESSAGES));
    }
    assert!(!outlets.is_congested() && (0..WORKERS).all(|worker| !outlets.has_any(worker)));
}

fn text(message: &Message) -> String {
    let mut reply = proto::ReplyBuffer::new(proto::Protocol::Resp2);
    reply.push_frame(&message.frame);
    let bytes = String::from_utf8(reply.as_contiguous().unwrap().to_vec()).unwrap();
    bytes.trim_end().rsplit("\r\n").next().unwrap().to_owned()
}

/// A worker that does not take its deliveries holds publishers back until it has.
#[test]
fn a_full_outlet_is_congested_until_it_is_half_empty() {
    let (hub, outlets) = hub();
    let mut subscriptions = Subscriptions::default();
    hub.subscribe(&mut subscriptions, receiver(0), Kind::Channel, b"c");
    let text = vec![b'x'; 100_000];
    let mut count = 0;
    while !outlets.is_congested() {
        hub.publish(b"c", &text, from(1));
        count += 1;
    }
    assert!((80..100).contains(&count), "{count}");
    let mut deliveries = Vec::new();
    outlets.take(0, 1_000_000, &mut deliveries);
    assert!(outlets.is_congested());
    outlets.take(0, 4_000_000, &mut deliveries);
    assert!(!outlets.is_congested());
}
