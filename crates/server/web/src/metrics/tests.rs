//! Metrics of an INFO that the test writes.

use super::*;
use std::collections::BTreeSet;

const INFO: &str = "# Server\r\nredis_version:9.1.0\r\nserver_time_usec:1700000010000000\r\nuptime_in_seconds:10\r\n\
    process_id:7\r\n\
    # Memory\r\nused_memory:1024\r\nused_memory_human:1.00K\r\nmaxmemory_policy:noeviction\r\nratio_percent:12.50%\r\n\
    # Persistence\r\naof_last_write_status:ok\r\nlog_last_sync_usec:250\r\nnew_figure:3\r\n\
    # Commandstats\r\ncmdstat_get:calls=4,usec=8,usec_per_call=2.00,rejected_calls=0,failed_calls=1\r\n\
    # Errorstats\r\nerrorstat_ERR:count=2\r\n\
    # Latencystats\r\nlatency_percentiles_usec_get:p50=1.003,p99.9=3.007\r\n\
    # Keyspace\r\ndb0:keys=5,expires=2,avg_ttl=1500\r\n";

#[test]
fn an_info_becomes_metrics() {
    let text = render(Some(&Figures::parse(INFO)), Format::Prometheus);
    for line in [
        "redis_up 1",
        "redis_instance_info{redis_version=\"9.1.0\",maxmemory_policy=\"noeviction\",process_id=\"7\"} 1",
        "redis_start_time_seconds 1700000000",
        "redis_memory_used_bytes 1024",
        "redis_aof_last_write_status 1",
        "onggi_log_last_sync_seconds 0.00025",
        "redis_commands_total{cmd=\"get\"} 4",
        "redis_commands_failed_calls_total{cmd=\"get\"} 1",
        "redis_errors_total{err=\"ERR\"} 2",
        "redis_latency_percentiles_usec{cmd=\"get\",quantile=\"0.5\"} 1.003",
        "redis_db_keys{db=\"db0\"} 5",
        "redis_db_avg_ttl_seconds{db=\"db0\"} 1.5",
        "onggi_new_figure 3",
        "onggi_ratio_percent 12.5",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("used_memory_human"), "{text}");
}

#[test]
fn a_server_that_does_not_serve_is_not_up() {
    assert!(render(None, Format::Prometheus).ends_with("\nredis_up 0\n"));
}

/// Each name has one head and one type, and is what Prometheus accepts.
#[test]
fn names_are_unique() {
    let text = render(Some(&Figures::parse(INFO)), Format::Prometheus);
    let heads: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let names: BTreeSet<_> = heads.iter().filter_map(|head| head.split(' ').next()).collect();
    assert_eq!(names.len(), heads.len());
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    assert!(names.iter().all(|name| is_name(name)), "{names:?}");
    let table: BTreeSet<_> = TABLE.iter().map(|metric| metric.name).collect();
    assert_eq!(table.len(), TABLE.len());
}

#[test]
fn labels_are_escaped() {
    let mut text = Text::default();
    text.sample("name", &[("label", "a\"b\\c\nd")], 1);
    assert_eq!(text.text, "name{label=\"a\\\"b\\\\c\\nd\"} 1\n");
}

/// docs/metrics.md has the table, row by row.
#[test]
fn the_page_of_metrics_is_the_table() {
    let page = include_str!("../../../../../docs/metrics.md");
    let row = |metric: &Metric| {
        let kind = if metric.kind == Kind::Counter { "counter" } else { "gauge" };
        format!("| `{}` | {kind} | `{}` | {} |", metric.name, metric.field, metric.help)
    };
    let wanted: Vec<_> = TABLE.iter().map(row).collect();
    let found = page.lines().skip_while(|line| *line != "| Metric | Kind | Field of INFO | Meaning |").skip(2);
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[test]
fn open_metrics_name_families_of_counters_without_their_suffix() {
    assert_eq!(Format::accepted("text/html, application/openmetrics-text;version=1.0.0;q=0.5"), Format::OpenMetrics);
    assert_eq!(Format::accepted("*/*"), Format::Prometheus);
    let text = render(Some(&Figures::parse(INFO)), Format::OpenMetrics);
    assert!(text.contains("# TYPE redis_commands counter\nredis_commands_total{cmd=\"get\"} 4\n"), "{text}");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
}
