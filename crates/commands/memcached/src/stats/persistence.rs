//! `stats persistence`, with the names of ARCUS, whose settings these directives stand for.

use super::line;
use calendar::{TimeZone, system_zone};
use command::Ctx;
use config::AppendFsync;
use durability::Durability;
use std::sync::Arc;

const MEGABYTE: u64 = 1 << 20;

/// `stats persistence`
pub fn lines(ctx: &mut Ctx<'_>) {
    let settings = ctx.host.configuration.current();
    let status = ctx.host.find::<Arc<Durability>>().map(|durability| durability.status());
    let is_on = status.as_ref().is_some_and(|status| status.log.is_some() && !status.is_switching_on);
    line(ctx, "use_persistence", if is_on { "on" } else { "off" });
    let directory = settings.dir.display().to_string();
    line(ctx, "data_path", &directory);
    line(ctx, "logs_path", &directory);
    line(ctx, "async_logging", settings.appendfsync != AppendFsync::Always);
    line(ctx, "chkpt_interval_pct_snapshot", settings.auto_aof_rewrite_percentage);
    line(ctx, "chkpt_interval_min_logsize", settings.auto_aof_rewrite_bytes_min.checked_div(MEGABYTE).unwrap_or(0));
    let Some(status) = status else { return };
    let last = [&status.saves, &status.rewrites].map(|figures| figures.last_seconds).into_iter().flatten().max();
    line(ctx, "recovery_elapsed_time_sec", status.load.ms.checked_div(1000).unwrap_or(0));
    line(ctx, "last_chkpt_in_progress", status.running.is_some());
    line(ctx, "last_chkpt_failure_count", status.saves.failures.saturating_add(status.rewrites.failures));
    line(ctx, "last_chkpt_start_time", stamp(status.last_save_ms, &system_zone()));
    line(ctx, "last_chkpt_elapsed_time_sec", last.unwrap_or(0));
    let log = status.log.as_ref();
    line(ctx, "last_chkpt_snapshot_filesize_bytes", log.map_or(status.set_bytes, |log| log.base_size));
    line(
        ctx,
        "current_command_log_filesize_bytes",
        log.map_or(0, |log| log.current_size.saturating_sub(log.base_size)),
    );
}

/// `YYYYMMDDhhmmss`
fn stamp(at: base::UnixMs, zone: &TimeZone) -> String {
    calendar::local(at, zone).chars().take(19).filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_digits_alone() {
        assert_eq!(stamp(1_790_000_000_000, &TimeZone::UTC), "20260921141320");
    }
}
