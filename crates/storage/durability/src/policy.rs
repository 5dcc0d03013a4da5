//! What the settings ask of durability, and when a checkpoint is due automatically.

use base::UnixMs;
use checkpoint::{Retention, Space};
use cmdlog::{LogMode, OnSyncError};
use config::{AppendFsync, LogErrorAction, SavePoint, Settings};
use rdb::Target;

/// Milliseconds after a failed checkpoint in which none is begun automatically.
const RETRY_MS: i64 = 5_000;

/// Memory of entries on their way into a checkpoint, unless the budget is small.
const FEED_BYTES: u64 = 32 << 20;

/// The parts of `maxmemory` that the log's memory may be, and that of a checkpoint: more, on top of a small budget,
/// would not fit into the machine it was made for. With a sixteenth for the checkpoint too, writes waited for it where
/// the disk was busy.
const LOG_SHARE: u64 = 16;
const FEED_SHARE: u64 = 8;

/// However small the budget is, they have this much.
const BESIDE_BUDGET_BYTES_MIN: u64 = 2 << 20;

/// Bytes of log that may be unflushed, and memory for blocks of tables, without a budget and as parts of one.
const FLUSH_BYTES: u64 = 256 << 20;
const FLUSH_SHARE: u64 = 4;
const FLUSH_BYTES_MIN: u64 = 1 << 20;
const BLOCK_CACHE_BYTES: u64 = 64 << 20;
const BLOCK_CACHE_SHARE: u64 = 16;

/// `bytes`, or a part of the budget if that is less (0: there is none).
fn share(bytes: u64, maxmemory_bytes: u64, share: u64) -> u64 {
    match maxmemory_bytes {
        0 => bytes,
        budget => bytes.min(budget / share),
    }
}

/// `bytes`, or fewer with a small budget (0: there is none).
fn beside_budget(bytes: u64, maxmemory_bytes: u64, share: u64) -> u64 {
    match maxmemory_bytes {
        0 => bytes,
        budget => bytes.min((budget / share).max(BESIDE_BUDGET_BYTES_MIN)),
    }
}

/// The settings of a tier.
#[derive(Clone, Debug)]
pub struct TierPolicy {
    /// Its directory.
    pub dir: std::path::PathBuf,
    /// How it is used.
    pub options: tier::Options,
    /// Bytes of dead segments that old checkpoints may keep.
    pub retain_max_bytes: u64,
    /// Whether a thread cleans it, and another one scrubs it.
    pub has_cleaner: bool,
    /// Seconds between two scrubs; 0 for none.
    pub scrub_seconds: u64,
}

/// The settings that steer log and checkpoints. Replaced as a whole when one changes.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether changes are to be logged.
    pub log_wanted: bool,
    /// When the log is made durable. What is in force stands in [`LogTiming`](cmdlog::LogTiming), as for the window.
    pub mode: LogMode,
    /// The window of the asynchronous mode, in milliseconds.
    pub window_ms: u64,
    /// What a failed sync leads to.
    pub on_sync_error: OnSyncError,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Bytes of records in memory, all workers together.
    pub buffer_bytes: u64,
    /// Bytes of entries on their way into a checkpoint at which writes wait.
    pub feed_bytes: u64,
    /// When checkpoints are taken by time.
    pub save_points: Vec<SavePoint>,
    /// Growth of the log, in hundredths of the last checkpoint, that asks for one; 0 for none.
    pub growth_percent: u64,
    /// Bytes of log below which growth does not matter.
    pub growth_bytes_min: u64,
    /// Whether writes are refused while checkpoints by time fail.
    pub stop_writes_on_error: bool,
    /// Files of a checkpoint, a thread each.
    pub threads: usize,
    /// Which checkpoints are kept.
    pub retention: Retention,
    /// The numbers of databases on disk.
    pub disk_databases: Vec<u32>,
    /// Those of them that keep their names in order.
    pub ordered_databases: Vec<u32>,
    /// The tier, if there is one.
    pub tier: Option<TierPolicy>,
    /// Bytes of log that are not flushed to rows at which writes to databases on disk wait. From half of that on they
    /// are flushed.
    pub flush_bytes: u64,
    /// How long writes to databases on disk wait when flushes fail, in milliseconds.
    pub flush_error_wait_ms: u64,
    /// Memory for blocks of the rows' tables.
    pub block_cache_bytes: usize,
    /// Bytes from which on a row is stored in parts.
    pub parts_from: usize,
}

impl Policy {
    /// What the settings ask for.
    pub fn of(settings: &Settings) -> Self {
        let limit = |number: u64| (number > 0).then_some(number);
        let tier_max_bytes = limit(settings.tier_max_bytes).unwrap_or(u64::MAX);
        Self {
            log_wanted: settings.appendonly,
            mode: match settings.appendfsync {
                AppendFsync::Always => LogMode::Sync,
                AppendFsync::Everysec => LogMode::Async,
                AppendFsync::No => LogMode::WrittenOnly,
            },
            window_ms: settings.log_window_ms,
            on_sync_error: match settings.log_on_error {
                LogErrorAction::Rotate => OnSyncError::Rotate,
                LogErrorAction::Stop => OnSyncError::Stop,
            },
            segment_bytes: settings.log_segment_bytes,
            buffer_bytes: beside_budget(settings.log_buffer_bytes, settings.maxmemory_bytes, LOG_SHARE),
            feed_bytes: beside_budget(FEED_BYTES, settings.maxmemory_bytes, FEED_SHARE),
            save_points: settings.save.points.clone(),
            growth_percent: settings.auto_aof_rewrite_percentage,
            growth_bytes_min: settings.auto_aof_rewrite_bytes_min,
            stop_writes_on_error: settings.stop_writes_on_bgsave_error,
            threads: settings.checkpoint_threads as usize,
            retention: Retention {
                sets: settings.checkpoint_retain_sets as usize,
                age_ms: limit(settings.checkpoint_retain_seconds).map(|seconds| seconds.saturating_mul(1000)),
                space: limit(settings.checkpoint_retain_bytes).map_or(Space::Automatic, Space::Bytes),
            },
            disk_databases: settings.per_database.on_disk().collect(),
            ordered_databases: settings.per_database.ordered().collect(),
            tier: settings.tier_dir.as_ref().map(|dir| TierPolicy {
                dir: dir.clone(),
                options: tier::Options {
                    max_bytes: tier_max_bytes,
                    value_len_min: usize::try_from(settings.tier_value_bytes_min).unwrap_or(usize::MAX),
                    takes_written: settings.tier_policy == config::TierPolicy::Write,
                    segment_bytes: tier::segment_bytes_for(tier_max_bytes),
                    medium: match settings.tier_medium {
                        config::TierMedium::Auto => tier::Medium::Auto,
                        config::TierMedium::Dax => tier::Medium::Dax,
                        config::TierMedium::Shared => tier::Medium::Shared,
                        config::TierMedium::File => tier::Medium::File,
                    },
                    delays: vfs::Delays {
                        read_ns: settings.tier_read_delay_ns,
                        write_ns: settings.tier_write_delay_ns,
                    },
                },
                retain_max_bytes: limit(settings.tier_retain_bytes_max).unwrap_or(u64::MAX),
                has_cleaner: true,
                scrub_seconds: settings.tier_scrub_seconds,
            }),
            flush_bytes: share(FLUSH_BYTES, settings.maxmemory_bytes, FLUSH_SHARE).max(FLUSH_BYTES_MIN),
            flush_error_wait_ms: settings.flush_error_wait_ms,
            block_cache_bytes: share(BLOCK_CACHE_BYTES, settings.maxmemory_bytes, BLOCK_CACHE_SHARE) as usize,
            parts_from: disk::PARTS_FROM,
        }
    }

    /// Why a checkpoint is due now, if one is.
    pub fn due(&self, since: &SinceLast) -> Option<Cause> {
        if since.failed_at.is_some_and(|at| since.now.saturating_sub(at) < RETRY_MS) {
            return None;
        }
        let seconds = u64::try_from(since.now.saturating_sub(since.taken_at) / 1000).unwrap_or(0);
        // As in Redis: at least `changes`, and more than `seconds`.
        let is_reached =
            |point: &&SavePoint| since.changes > 0 && since.changes >= point.changes && seconds > point.seconds;
        if let Some(point) = self.save_points.iter().find(is_reached) {
            return Some(Cause::SavePoint(*point));
        }
        if let Some(bytes) = since.tier_bytes {
            return Some(Cause::TierSpace { bytes });
        }
        let grown = u128::from(since.log_bytes) * 100 >= u128::from(since.set_bytes) * u128::from(self.growth_percent);
        (self.growth_percent > 0 && since.log_bytes > 0 && since.log_bytes >= self.growth_bytes_min && grown)
            .then_some(Cause::LogGrowth { bytes: since.log_bytes })
    }
}

/// What has happened since the last checkpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinceLast {
    /// Now.
    pub now: UnixMs,
    /// When the last checkpoint's cut was made, or the server was started.
    pub taken_at: UnixMs,
    /// When a checkpoint failed last, if none has succeeded since.
    pub failed_at: Option<UnixMs>,
    /// Changes since the cut.
    pub changes: u64,
    /// Bytes of log since the cut.
    pub log_bytes: u64,
    /// Bytes of the last checkpoint.
    pub set_bytes: u64,
    /// Bytes that it would free on the tier, when they are worth it.
    pub tier_bytes: Option<u64>,
}

/// Why a checkpoint is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// BGSAVE or SAVE.
    Asked,
    /// BGSAVE RDB: an RDB file is made of it for servers of this kind.
    Rdb(Target),
    /// BGREWRITEAOF.
    Rewrite,
    /// A point of `save`.
    SavePoint(SavePoint),
    /// The log has grown.
    LogGrowth {
        /// To this many bytes since the last checkpoint.
        bytes: u64,
    },
    /// Dead segments of the tier go only with a new checkpoint.
    TierSpace {
        /// Their bytes.
        bytes: u64,
    },
    /// The log is being switched on or off.
    LogSwitch,
    /// The server ends.
    Shutdown,
}

impl Cause {
    /// Whether INFO and BGSAVE see it as a save; the others count as rewrites of the append-only file.
    pub fn is_save(self) -> bool {
        matches!(self, Self::Asked | Self::Rdb(_) | Self::SavePoint(_) | Self::Shutdown)
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Asked => write!(f, "asked for by a client"),
            Self::Rdb(target) => write!(f, "asked for by BGSAVE RDB, version {}", target.version()),
            Self::Rewrite => write!(f, "asked for by BGREWRITEAOF"),
            Self::SavePoint(SavePoint { seconds, changes }) => write!(f, "{changes} changes in {seconds} seconds"),
            Self::LogGrowth { bytes } => write!(f, "the log has grown by {bytes} bytes"),
            Self::TierSpace { bytes } => write!(f, "it frees {bytes} bytes of the tier"),
            Self::LogSwitch => write!(f, "the log is switched on or off"),
            Self::Shutdown => write!(f, "the server ends"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy::of(&Settings::default())
    }

    /// The default points: one change in an hour, 100 in five minutes, 10,000 in one.
    #[test]
    fn save_points_need_changes_and_time() {
        let policy = Policy { growth_percent: 0, ..policy() };
        for (seconds, changes, due) in [
            (3_601, 1, true),
            (3_600, 1, false),
            (1_000_000, 0, false),
            (301, 100, true),
            (301, 99, false),
            (61, 10_000, true),
            (60, 1_000_000, false),
        ] {
            let since = SinceLast { now: 7_000 + seconds * 1_000, taken_at: 7_000, changes, ..SinceLast::default() };
            assert_eq!(policy.due(&since).is_some(), due, "{seconds} s, {changes} changes");
        }
    }

    #[test]
    fn what_stands_beside_a_small_budget_is_small() {
        for (maxmemory_mb, log_mb, feed_mb) in [(0, 16, 32), (256, 16, 32), (200, 12, 25), (64, 4, 8), (1, 2, 2)] {
            let settings = Settings { maxmemory_bytes: maxmemory_mb << 20, ..Settings::default() };
            let policy = Policy::of(&settings);
            assert_eq!((policy.buffer_bytes >> 20, policy.feed_bytes >> 20), (log_mb, feed_mb), "{maxmemory_mb} MiB");
        }
    }

    #[test]
    fn a_failure_is_not_tried_again_at_once() {
        let since = SinceLast { now: 10_000_000, changes: 1, failed_at: Some(9_996_000), ..SinceLast::default() };
        assert_eq!(policy().due(&since), None);
        assert!(policy().due(&SinceLast { now: 10_001_000, ..since }).is_some());
        // A clock that went back does not keep checkpoints away once it has caught up.
        assert_eq!(policy().due(&SinceLast { now: 0, taken_at: 5_000, ..since }), None);
    }

    #[test]
    fn a_log_that_has_grown_asks_for_a_checkpoint() {
        let policy = Policy { save_points: Vec::new(), ..policy() };
        for (log_mb, set_mb, due) in [(63, 0, false), (64, 0, true), (64, 64, true), (64, 65, false), (0, 0, false)] {
            let since = SinceLast { log_bytes: log_mb << 20, set_bytes: set_mb << 20, ..SinceLast::default() };
            assert_eq!(policy.due(&since).is_some(), due, "{log_mb} MiB of log, {set_mb} MiB of checkpoint");
        }
    }
}
