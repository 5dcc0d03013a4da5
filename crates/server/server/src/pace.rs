//! How much of a worker's time the walk of a checkpoint and other chores get while clients wait: the walk a quarter
//! where there is time left, less the more of it clients need.
//!
//! Throughput during a checkpoint is what the walk leaves: with a quarter of a worker that is busy throughout, 0.75 of
//! what it was, with a sixteenth 0.94. The walk takes longer for it, and never stands still.

use std::time::{Duration, Instant};

/// Parts of the time that clients have for each one of a chore.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    /// Where half of it or less is enough for them.
    least: u32,
    /// Where they need all of it.
    most: u32,
}

impl Shares {
    /// For work that a client or thread waits for: the walk of a checkpoint, MEMORY EXPLAIN.
    pub(crate) const WAITED_FOR: Self = Self { least: 4, most: 16 };
    /// For what only makes things faster later.
    pub(crate) const AT_LEISURE: Self = Self { least: 8, most: 32 };

    /// From the least at half of the time to the most at all of it.
    fn at(self, needed_percent: u32) -> u32 {
        self.least + (self.most - self.least) * needed_percent.saturating_sub(50) / 50
    }
}

/// Time over which clients' need is measured.
const WINDOW: Duration = Duration::from_millis(10);

/// How much of a worker's time clients need: the part of it in which there were some.
pub(crate) struct Need {
    /// Where the window began, slices left out.
    since: Instant,
    /// The last look.
    seen: Instant,
    /// Time in the window before looks that found clients.
    needed: Duration,
    percent: u32,
}

impl Need {
    pub(crate) fn new(now: Instant) -> Self {
        Self { since: now, seen: now, needed: Duration::ZERO, percent: 0 }
    }

    /// Looks at the end of a turn, in which there were clients or not. Gives the percentage of the last whole window.
    pub(crate) fn look(&mut self, now: Instant, has_clients: bool) -> u32 {
        let turn = now.saturating_duration_since(self.seen);
        self.seen = now;
        if has_clients {
            self.needed += turn;
        }
        let window = now.saturating_duration_since(self.since);
        if window >= WINDOW {
            self.percent = (self.needed.as_nanos() * 100 / window.as_nanos().max(1)).min(100) as u32;
            (self.since, self.needed) = (now, Duration::ZERO);
        }
        self.percent
    }

    /// Excludes a slice from the window: it began at `begin` and took `spent`, and clients were not looked for in it.
    pub(crate) fn leave_out(&mut self, begin: Instant, spent: Duration) {
        self.seen = begin + spent;
        self.since += spent;
    }
}

/// What clients need of a worker, and what they get.
pub(crate) struct Pace {
    need: Need,
    shares: Shares,
    share: u32,
    /// When clients have had their share since the last slice.
    rest_until: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant, shares: Shares) -> Self {
        Self { need: Need::new(now), shares, share: shares.least, rest_until: now }
    }

    /// Looks at the end of a turn, in which there were clients or not. True when a slice may begin.
    pub(crate) fn may_begin(&mut self, now: Instant, has_clients: bool) -> bool {
        self.share = self.shares.at(self.need.look(now, has_clients));
        !has_clients || now >= self.rest_until
    }

    /// Notes a slice that began at `begin` and took `spent`.
    pub(crate) fn has_taken(&mut self, begin: Instant, spent: Duration) {
        self.rest_until = begin + spent * self.share;
        self.need.leave_out(begin, spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_micros(100);

    /// The walk's part of the time with turns of `clients_us` with clients, and `idle_us` without clients in between.
    fn walked(clients_us: u64, idle_us: u64) -> f64 {
        let begin = Instant::now();
        let (mut now, mut spent) = (begin, Duration::ZERO);
        let mut pace = Pace::new(begin, Shares::WAITED_FOR);
        while now < begin + Duration::from_secs(1) {
            for (has_clients, us) in [(true, clients_us), (false, idle_us)] {
                now += Duration::from_micros(us);
                if us > 0 && pace.may_begin(now, has_clients) {
                    pace.has_taken(now, SLICE);
                    now += SLICE;
                    spent += SLICE;
                }
            }
        }
        spent.as_secs_f64() / now.saturating_duration_since(begin).as_secs_f64()
    }

    /// A worker that clients keep busy gives a sixteenth; one that is busy for a third of its time gives more than a
    /// quarter.
    #[test]
    fn clients_come_first() {
        let busy = walked(50, 0);
        assert!((0.05..0.07).contains(&busy), "{busy}");
        let half = walked(50, 100);
        assert!(half > 0.25, "{half}");
        assert!(busy < walked(90, 10));
    }

    #[test]
    fn shares_follow_the_need() {
        assert_eq!([0, 50, 75, 100].map(|percent| Shares::WAITED_FOR.at(percent)), [4, 4, 10, 16]);
        assert_eq!([0, 50, 75, 100].map(|percent| Shares::AT_LEISURE.at(percent)), [8, 8, 20, 32]);
    }
}
