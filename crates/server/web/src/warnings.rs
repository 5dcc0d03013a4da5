//! What an operator should look at, and what to do about it.

use crate::figures::Figures;
use serde_json::{Value, json};

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What is so, and its effect.
    pub what: String,
    /// What to do.
    pub remedy: &'static str,
}

impl Warning {
    /// As JSON for the page.
    pub fn json(&self) -> Value {
        json!({"what": self.what, "remedy": self.remedy})
    }
}

/// Looks at the figures of INFO.
pub fn warnings(figures: &Figures<'_>) -> Vec<Warning> {
    let number = |name: &str| figures.number(name).unwrap_or(0.0);
    let is_err = |name: &str| figures.get(name) == Some("err");
    let mut found = Vec::new();
    let mut warn = |when: bool, what: String, remedy: &'static str| {
        if when {
            found.push(Warning { what, remedy });
        }
    };
    warn(number("loading") > 0.0, "The data is being loaded; commands answer -LOADING.".to_owned(), "Wait.");
    warn(
        figures.get("aof_enabled") == Some("0"),
        "The command log is off. A crash loses every change since the last checkpoint.".to_owned(),
        "CONFIG SET appendonly yes",
    );
    warn(
        is_err("aof_last_write_status"),
        "The command log takes no changes, and writes answer an error.".to_owned(),
        "Free space on the disk of the data directory; the server's log has the error.",
    );
    warn(
        is_err("aof_last_bgrewrite_status") || is_err("rdb_last_bgsave_status"),
        "The last checkpoint failed. The log grows, and a restart takes longer.".to_owned(),
        "See the server's log for the error, then BGSAVE.",
    );
    warn(
        is_err("disk_last_flush_status"),
        "The last flush of a database on disk failed.".to_owned(),
        "Free space on the disk; the server's log has the error.",
    );
    let (used, budget) = (number("used_memory"), number("maxmemory"));
    let share = if budget > 0.0 { 100.0 * used / budget } else { 0.0 };
    let evicts = figures.get("maxmemory_policy") != Some("noeviction");
    warn(
        share >= 95.0 && !evicts,
        format!("Memory is at {share:.0} % of maxmemory. Writes soon answer -OOM."),
        "CONFIG SET maxmemory to more, set maxmemory-policy, or compress: CONFIG SET compression zstd",
    );
    warn(
        share >= 95.0 && evicts && number("evicted_keys") > 0.0,
        format!("Memory is at {share:.0} % of maxmemory, and keys are evicted."),
        "CONFIG SET maxmemory to more, or compress: CONFIG SET compression zstd",
    );
    let (clients, limit) = (number("connected_clients"), number("maxclients"));
    warn(
        limit > 0.0 && clients >= 0.9 * limit,
        format!("{clients:.0} of {limit:.0} connections are in use. Further clients are refused."),
        "CONFIG SET maxclients to more, or close idle clients: CONFIG SET timeout 300",
    );
    let refused = number("rejected_connections");
    warn(refused > 0.0, format!("{refused:.0} connections were refused."), "CONFIG SET maxclients to more.");
    let late_ms = number("log_oldest_unsynced_ms");
    warn(
        late_ms > 2000.0,
        format!("A change of {:.1} s ago is not durable yet: the disk is slow.", late_ms / 1000.0),
        "Look at the disk of the data directory; `onggi bench persistence` measures it.",
    );
    let resident = number("used_memory_rss");
    warn(
        resident > 2.0 * used && resident - used > f64::from(1 << 30),
        "More than half of the resident memory is not in use.".to_owned(),
        "MEMORY PURGE",
    );
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remedies(text: &str) -> Vec<&'static str> {
        warnings(&Figures::parse(text)).into_iter().map(|warning| warning.remedy).collect()
    }

    #[test]
    fn each_warning_has_its_remedy() {
        assert_eq!(remedies("aof_enabled:1\r\nused_memory:5\r\nmaxmemory:0\r\n"), [""; 0]);
        assert_eq!(remedies("aof_enabled:0\r\n"), ["CONFIG SET appendonly yes"]);
        assert!(remedies("aof_last_write_status:err\r\n")[0].starts_with("Free space"));
        let full = "used_memory:96\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n";
        assert!(warnings(&Figures::parse(full))[0].what.contains("96 % of maxmemory. Writes soon answer -OOM"));
        assert_eq!(remedies("used_memory:96\r\nmaxmemory:100\r\nmaxmemory_policy:allkeys-lru\r\n"), [""; 0]);
        assert!(remedies("connected_clients:90\r\nmaxclients:100\r\n")[0].contains("maxclients"));
    }
}
