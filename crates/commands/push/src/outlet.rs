//! Messages on their way to workers: one queue per worker, which the worker empties in its turns.
//!
//! O1. A delivery is queued before its worker is woken, and the worker looks before it sleeps: no delivery is left.
//! O2. Deliveries leave a queue in the order they came.

use crate::message::Message;
use crate::receivers::Receiver;
use crate::tracking::Invalidation;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A message and the connections of one worker that it goes to.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Its receivers.
    pub to: To,
    /// What they get.
    pub content: Content,
    /// Counts the deliveries of the worker.
    pub number: u64,
}

/// What is delivered.
#[derive(Clone, Debug)]
pub enum Content {
    /// A message to subscribers.
    Message(Arc<Message>),
    /// Keys to be forgotten.
    Invalidation {
        /// The keys.
        invalidation: Arc<Invalidation>,
        /// The client whose invalidations are redirected to this one.
        redirected_from: Option<Receiver>,
    },
    /// The client to which this one redirected its invalidations is gone.
    RedirectionBroken,
}

/// The receivers of a delivery, all of one worker.
#[derive(Clone, Debug)]
pub enum To {
    /// This one.
    One(Receiver),
    /// All of these.
    Several(Arc<Vec<Receiver>>),
}

impl To {
    /// The receivers.
    pub fn receivers(&self) -> &[Receiver] {
        match self {
            Self::One(receiver) => std::slice::from_ref(receiver),
            Self::Several(list) => list,
        }
    }
}

/// The queues of all workers.
pub struct Outlets {
    outlets: Box<[Outlet]>,
    /// How many of them hold too much.
    congested: AtomicUsize,
    /// Wakes a worker that has something to deliver.
    wake: Box<dyn Fn(usize) + Send + Sync>,
}

#[derive(Default)]
#[repr(align(128))]
struct Outlet {
    queue: Mutex<Queue>,
    /// The queue is not empty. Written under its lock.
    has_any: AtomicBool,
}

#[derive(Default)]
struct Queue {
    deliveries: VecDeque<Delivery>,
    /// What the deliveries will cost their receivers, in bytes.
    weight: usize,
    is_congested: bool,
    /// Deliveries so far.
    count: u64,
}

/// A queue is congested above this, until it is down to half. Receivers drain this much within milliseconds; it is far
/// below what `client-output-buffer-limit` allows a single subscriber.
const CONGESTED_BYTES: usize = 8 << 20;

/// What a receiver costs in addition to the message's bytes.
const RECEIVER_BYTES: usize = 64;

fn weight(delivery: &Delivery) -> usize {
    let bytes = match &delivery.content {
        Content::Message(message) => message.frame.sent_bytes(),
        Content::Invalidation { invalidation, .. } => invalidation.keys.iter().flatten().map(|key| key.len()).sum(),
        Content::RedirectionBroken => 0,
    };
    (bytes + RECEIVER_BYTES) * delivery.to.receivers().len()
}

impl Outlets {
    /// One queue per worker; `wake` wakes the worker of that number.
    pub fn new(workers: usize, wake: impl Fn(usize) + Send + Sync + 'static) -> Self {
        Self {
            outlets: (0..workers).map(|_| Outlet::default()).collect(),
            congested: AtomicUsize::new(0),
            wake: Box::new(wake),
        }
    }

    /// Whether some queue is congested, so that publishers must wait.
    #[inline]
    pub fn is_congested(&self) -> bool {
        self.congested.load(Ordering::Relaxed) > 0
    }

    /// Whether the worker has anything to deliver.
    #[inline]
    pub fn has_any(&self, worker: usize) -> bool {
        self.outlets.get(worker).is_some_and(|outlet| outlet.has_any.load(Ordering::Acquire))
    }

    /// Takes deliveries of the worker from the front: all, or as many as weigh about `weight_max` together.
    pub fn take(&self, worker: usize, weight_max: usize, into: &mut Vec<Delivery>) {
        let Some(outlet) = self.outlets.get(worker) else { return };
        let mut queue = outlet.queue.lock();
        let mut taken = 0;
        while taken < weight_max
            && let Some(delivery) = queue.deliveries.pop_front()
        {
            taken += weight(&delivery);
            into.push(delivery);
        }
        queue.weight -= taken;
        if queue.is_congested && queue.weight < CONGESTED_BYTES / 2 {
            queue.is_congested = false;
            self.congested.fetch_sub(1, Ordering::Relaxed);
        }
        if queue.deliveries.is_empty() {
            outlet.has_any.store(false, Ordering::Release);
            if queue.deliveries.capacity() > DELIVERIES_KEPT {
                queue.deliveries = VecDeque::new();
            }
        }
    }

    /// Queues content for a worker that serves all its receivers; `woken` collects the workers to wake.
    pub(crate) fn push(&self, worker: usize, to: To, content: Content, woken: &mut Vec<usize>) {
        let Some(outlet) = self.outlets.get(worker) else { return };
        let mut queue = outlet.queue.lock();
        let delivery = Delivery { to, content, number: queue.count };
        queue.count += 1;
        queue.weight += weight(&delivery);
        queue.deliveries.push_back(delivery);
        if !queue.is_congested && queue.weight > CONGESTED_BYTES {
            queue.is_congested = true;
            self.congested.fetch_add(1, Ordering::Relaxed);
        }
        if !outlet.has_any.swap(true, Ordering::AcqRel) {
            woken.push(worker);
        }
    }

    /// How many deliveries the worker has been given.
    pub(crate) fn count(&self, worker: usize) -> u64 {
        self.outlets.get(worker).map_or(0, |outlet| outlet.queue.lock().count)
    }

    /// Wakes workers that have something to deliver, except the calling one, which checks anyway.
    pub(crate) fn wake(&self, workers: &[usize], own: usize) {
        workers.iter().filter(|worker| **worker != own).for_each(|worker| (self.wake)(*worker));
    }
}

/// Places an empty queue keeps memory for.
const DELIVERIES_KEPT: usize = 1024;
