//! The receivers of a message: connections, listed by the worker that serves them.

use std::sync::Arc;

/// A connection as messages find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// The number of its client, which is never used twice.
    pub client: u64,
    /// The worker that serves it.
    pub worker: usize,
    /// Its place among the connections of that worker, which another one may have taken meanwhile.
    pub slot: usize,
}

/// The receivers of one name. A list is shared with the deliveries that go to it, and copied if it changes meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    by_worker: Vec<(usize, Arc<Vec<Receiver>>)>,
}

impl Audience {
    /// Adds a receiver; false when it is there already.
    pub(crate) fn add(&mut self, receiver: Receiver) -> bool {
        let place = match self.by_worker.binary_search_by_key(&receiver.worker, |(worker, _)| *worker) {
            Ok(place) => place,
            Err(place) => {
                self.by_worker.insert(place, (receiver.worker, Arc::default()));
                place
            }
        };
        let list = &mut self.by_worker[place].1;
        match list.binary_search_by_key(&receiver.client, |other| other.client) {
            Ok(_) => false,
            Err(place) => {
                Arc::make_mut(list).insert(place, receiver);
                true
            }
        }
    }

    /// Removes a receiver; false when it is not there.
    pub(crate) fn remove(&mut self, receiver: Receiver) -> bool {
        let Ok(place) = self.by_worker.binary_search_by_key(&receiver.worker, |(worker, _)| *worker) else {
            return false;
        };
        let list = &mut self.by_worker[place].1;
        let Ok(index) = list.binary_search_by_key(&receiver.client, |other| other.client) else { return false };
        Arc::make_mut(list).remove(index);
        if list.is_empty() {
            self.by_worker.remove(place);
        }
        true
    }

    /// Whether no receiver is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_worker.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.by_worker.iter().map(|(_, list)| list.len()).sum()
    }

    /// The receivers of each worker that has any.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (usize, &Arc<Vec<Receiver>>)> {
        self.by_worker.iter().map(|(worker, list)| (*worker, list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(client: u64, worker: usize) -> Receiver {
        Receiver { client, worker, slot: client as usize }
    }

    #[test]
    fn a_list_on_its_way_stays_as_it_was() {
        let mut audience = Audience::default();
        assert!(audience.add(receiver(7, 1)) && audience.add(receiver(3, 1)) && audience.add(receiver(5, 0)));
        assert!(!audience.add(receiver(3, 1)), "once is enough");
        let on_its_way = audience.lists().nth(1).unwrap().1.clone();
        assert!(audience.remove(receiver(3, 1)) && !audience.remove(receiver(3, 1)));
        assert_eq!(on_its_way.iter().map(|it| it.client).collect::<Vec<_>>(), [3, 7]);
        assert_eq!(audience.len(), 2);
        assert!(audience.remove(receiver(7, 1)) && audience.remove(receiver(5, 0)) && audience.is_empty());
    }
}
