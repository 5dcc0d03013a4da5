//! How long a turn of a worker takes at most: what a request waits for that arrives when a turn has just begun.
//!
//! There are two figures. That of the wall is what clients wait; other programs on the worker's core add to it. That of
//! the thread's own clock is the server's part alone. Reading the latter is a call of the system, so it is read now and
//! then and not in every turn: a turn is charged with what came before it since, which is [`CPU_READ_NS`] at most.

use admin::WorkerFigures;
use rustix::time::{ClockId, clock_gettime};

/// Time between two readings of the thread's clock: a quarter of a microsecond in each is no cost.
const CPU_READ_NS: u64 = 100_000;

/// One worker's clocks.
#[derive(Default)]
pub(crate) struct TurnClock {
    began_ns: u64,
    /// The thread's clock when it was last read, and when that was.
    cpu_ns: u64,
    cpu_read_ns: u64,
}

impl TurnClock {
    /// A turn begins now, by [`command::stats::WorkerStats::now`].
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
        if now_ns.saturating_sub(self.cpu_read_ns) >= CPU_READ_NS {
            (self.cpu_ns, self.cpu_read_ns) = (thread_ns(), now_ns);
        }
    }

    /// It ends now.
    pub(crate) fn end(&self, now_ns: u64, figures: &WorkerFigures) {
        let turn_ns = now_ns.saturating_sub(self.began_ns);
        figures.longest_turn_ns.raise(turn_ns);
        // No turn takes more of the processor than of the time.
        if turn_ns.saturating_add(CPU_READ_NS) > figures.longest_turn_cpu_ns.get() {
            figures.longest_turn_cpu_ns.raise(thread_ns().saturating_sub(self.cpu_ns));
        }
    }
}

/// Time this thread has run.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    (time.tv_sec.unsigned_abs()).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use command::stats::WorkerStats;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    /// A turn that sleeps is long by the wall and short by the processor; one that works is long by both.
    #[test]
    fn sleep_is_no_work() {
        let stats = Arc::new(WorkerStats::new(0));
        let (mut clock, figures) = (TurnClock::default(), WorkerFigures::new(stats.clone()));
        clock.begin(stats.now());
        std::thread::sleep(Duration::from_millis(30));
        clock.end(stats.now(), &figures);
        assert!(figures.longest_turn_ns.get() >= 30_000_000);
        assert!(figures.longest_turn_cpu_ns.get() < 10_000_000);
        clock.begin(stats.now());
        let begin = thread_ns();
        let deadline = Instant::now() + Duration::from_secs(60);
        while thread_ns() - begin < 20_000_000 && Instant::now() < deadline {}
        clock.end(stats.now(), &figures);
        assert!(figures.longest_turn_cpu_ns.get() >= 20_000_000);
    }
}
