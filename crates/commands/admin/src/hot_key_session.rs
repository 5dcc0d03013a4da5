//! The sessions of HOTKEYS in the grammar of Redis 8.6: START, STOP, GET and RESET.
//!
//! The table of hot keys is always on. START empties it, so that it holds the calls of the session alone. The end of
//! the session, by STOP or after DURATION, keeps its first keys and totals.

use crate::about;
use crate::figures::Figures;
use crate::hot_keys::{HotKey, HotKeys, Measure};
use base::UnixMs;
use parking_lot::Mutex;

/// What START asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Keys by time.
    pub by_cpu: bool,
    /// Keys by bytes.
    pub by_net: bool,
    /// How many of each.
    pub count: usize,
    /// As given. GET answers it; it does not change which calls the table samples.
    pub sample_ratio: i64,
    /// Milliseconds after which it ends automatically.
    pub duration_ms: Option<i64>,
}

/// Work of all commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Microseconds that commands took.
    pub command_us: u64,
    /// Bytes received and sent.
    pub bytes: u64,
    /// Processor time of the process in the program, in milliseconds.
    pub user_ms: u64,
    /// Processor time in the kernel, in milliseconds.
    pub system_ms: u64,
}

impl Totals {
    /// Since the start of the server, or CONFIG RESETSTAT.
    pub fn of(figures: &Figures, row_count: u32) -> Self {
        let cpu = about::cpu_seconds();
        let ms = |seconds: Option<f64>| (seconds.unwrap_or(0.0) * 1e3) as u64;
        let nanoseconds = figures.sum_stats(|stats| {
            (0..row_count).filter_map(|index| stats.command(index)).map(|command| command.nanoseconds.get()).sum()
        });
        Self {
            command_us: nanoseconds / 1000,
            bytes: figures.sum_stats(|stats| stats.input_bytes.get() + stats.output_bytes.get()),
            user_ms: ms(cpu.as_ref().map(|cpu| cpu.user)),
            system_ms: ms(cpu.as_ref().map(|cpu| cpu.system)),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            command_us: self.command_us.saturating_sub(before.command_us),
            bytes: self.bytes.saturating_sub(before.bytes),
            user_ms: self.user_ms.saturating_sub(before.user_ms),
            system_ms: self.system_ms.saturating_sub(before.system_ms),
        }
    }
}

/// What GET answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Whether the session is active.
    pub is_active: bool,
    /// What was asked for.
    pub wanted: Wanted,
    /// When it began.
    pub started_at: UnixMs,
    /// Milliseconds from its start until now, or until its end.
    pub duration_ms: i64,
    /// Work of all commands since the start.
    pub totals: Totals,
    /// Keys by time, nanoseconds.
    pub by_cpu: Vec<HotKey>,
    /// Keys by bytes.
    pub by_net: Vec<HotKey>,
}

struct Session {
    wanted: Wanted,
    started_at: UnixMs,
    before: Totals,
    /// What it found; `None` while it is active.
    report: Option<Report>,
}

impl Session {
    fn report(&self, now: UnixMs, totals: Totals, keys: &HotKeys) -> Report {
        let Wanted { by_cpu, by_net, count, .. } = self.wanted;
        let first = |is_wanted, measure| if is_wanted { keys.first(measure, count) } else { Vec::new() };
        Report {
            is_active: true,
            wanted: self.wanted,
            started_at: self.started_at,
            duration_ms: now.saturating_sub(self.started_at).max(0),
            totals: totals.since(self.before),
            by_cpu: first(by_cpu, Measure::Cpu),
            by_net: first(by_net, Measure::Bytes),
        }
    }

    fn end(&mut self, now: UnixMs, totals: Totals, keys: &HotKeys) {
        if self.report.is_none() {
            self.report = Some(Report { is_active: false, ..self.report(now, totals, keys) });
        }
    }

    fn is_due(&self, now: UnixMs) -> bool {
        self.wanted.duration_ms.is_some_and(|duration| now.saturating_sub(self.started_at) >= duration)
    }
}

/// The session, if there is one. Commands and one worker's upkeep take its lock.
#[derive(Default)]
pub struct HotKeySession(Mutex<Option<Session>>);

impl HotKeySession {
    /// Begins a session; false when one is active.
    pub fn start(&self, wanted: Wanted, now: UnixMs, totals: Totals, keys: &HotKeys) -> bool {
        let mut session = self.0.lock();
        if session.as_ref().is_some_and(|session| session.report.is_none()) {
            return false;
        }
        keys.reset();
        *session = Some(Session { wanted, started_at: now, before: totals, report: None });
        true
    }

    /// Ends the session and keeps its report; false when none is active.
    pub fn stop(&self, now: UnixMs, totals: Totals, keys: &HotKeys) -> bool {
        let mut session = self.0.lock();
        match session.as_mut().filter(|session| session.report.is_none()) {
            Some(session) => session.end(now, totals, keys),
            None => return false,
        }
        true
    }

    /// Ends a session whose DURATION has passed. Called ten times a second, and before each other operation.
    pub fn end_when_due(&self, now: UnixMs, totals: impl FnOnce() -> Totals, keys: &HotKeys) {
        let mut session = self.0.lock();
        if let Some(session) = session.as_mut().filter(|session| session.report.is_none() && session.is_due(now)) {
            session.end(now, totals(), keys);
        }
    }

    /// The report of the session; `None` without one.
    pub fn report(&self, now: UnixMs, totals: Totals, keys: &HotKeys) -> Option<Report> {
        let session = self.0.lock();
        let session = session.as_ref()?;
        Some(session.report.clone().unwrap_or_else(|| session.report(now, totals, keys)))
    }

    /// Forgets the session.
    pub fn reset(&self) {
        *self.0.lock() = None;
    }
}
