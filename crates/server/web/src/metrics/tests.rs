//! Metrics of an INFO that the test writes.

use super::*;
use std::collections::BTreeSet;

const INFO: &str = "# Server\r\nredis_version:9.1.0\r\nserver_time_usec:1700000010000000\r\nuptime_in_seconds:10\r\n\
    process_id:7\r\n\
    # Memory\r\nused_memory:1024\r\nused_memory_human:1.00K\r\nmaxmemory_policy:noeviction\r\nexpired_stale_perc:12.50%\r\n\
    # Persistence\r\naof_last_write_status:ok\r\nlog_last_sync_usec:250\r\nnew_figure:3\r\nmaster_replid2:0000000000000000000000000000000000000000\r\n\
    # Commandstats\r\ncmdstat_get:calls=4,usec=8,usec_per_call=2.00,rejected_calls=0,failed_calls=1\r\n\
    # Errorstats\r\nerrorstat_ERR:count=2\r\n\
    # Latencystats\r\nlatency_percentiles_usec_get:p50=1.003,p99.9=3.007\r\n\
    # Keyspace\r\ndb0:keys=5,expires=2,avg_ttl=1500\r\n";

#[test]
fn an_info_becomes_metrics() {
    let text = render(Some(&Figures::parse(INFO)), None, Format::Prometheus);
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
        "redis_expired_stale_percentage 12.5",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("used_memory_human") && !text.contains("new_figure"), "{text}");
    // A name of 40 digits that looks like a number is none.
    assert!(!text.contains("master_replid2"), "{text}");
}

#[test]
fn a_server_that_does_not_serve_is_not_up() {
    assert!(render(None, None, Format::Prometheus).ends_with("\nredis_up 0\n"));
}

/// Each name has one head and one type, and is what Prometheus accepts.
#[test]
fn names_are_unique() {
    let text = render(Some(&Figures::parse(INFO)), None, Format::Prometheus);
    let heads: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let names: BTreeSet<_> = heads.iter().filter_map(|head| head.split(' ').next()).collect();
    assert_eq!(names.len(), heads.len());
    let is_name =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    assert!(names.iter().all(|name| is_name(name)), "{names:?}");
}

#[test]
fn labels_are_escaped() {
    let mut text = Text::default();
    text.sample("name", &[("label", "a\"b\\c\nd")], 1.0);
    assert_eq!(text.text, "name{label=\"a\\\"b\\\\c\\nd\"} 1\n");
}

/// Where the tables begin.
const TABLES: &str = "## With labels\n";

/// The tables of the manual.
fn tables() -> String {
    let mut text = format!(
        "{TABLES}\nThese tables are generated from that of the program (`base::figures`); a test keeps them up to date.\n\n\
        | Metric | Kind | Labels | Field of INFO | Meaning |\n|---|---|---|---|---|\n\
        | `redis_instance_info` | gauge | {} | of the same names | Facts about the server, as labels. |\n\
        | `redis_start_time_seconds` | gauge | | `server_time_usec`, `uptime_in_seconds` | When the server was started. |\n",
        INSTANCE.map(|name| format!("`{name}`")).join(", ")
    );
    for row in FAMILIES {
        let field = if row.beginning == "db" { "dbN".to_owned() } else { format!("{}NAME", row.beginning) };
        let part = row.part.map_or(String::new(), |part| format!(", `{part}`"));
        let labels =
            if row.part.is_some() { format!("`{}`", row.label) } else { format!("`{}`, `quantile`", row.label) };
        let _ = writeln!(
            text,
            "| `{}` | {} | {labels} | `{field}`{part} | {} |",
            row.metric,
            kind_word(row.kind),
            row.help
        );
    }
    let _ = write!(
        text,
        "| `{HISTOGRAM}` | histogram | `cmd`, `le` | LATENCY HISTOGRAM | {HISTOGRAM_HELP} |\n\n## Without labels\n\n\
        INFO has these fields in this order, some of them only where they apply. A metric named in seconds is so, \
        whatever the\nunit of its field. A field without a metric is no measurement.\n"
    );
    let mut section = "";
    for row in TABLE {
        if row.section != section {
            section = row.section;
            let _ = write!(
                text,
                "\n### INFO {section}\n\n| Field | Unit | Metric | Kind | Meaning |\n|---|---|---|---|---|\n"
            );
        }
        let metric = if row.metric.is_empty() { String::new() } else { format!("`{}`", row.metric) };
        let unit = row.unit.word();
        let _ = writeln!(text, "| `{}` | {unit} | {metric} | {} | {} |", row.field, kind_word(row.kind), row.help);
    }
    text
}

/// `ONGGI_REGENERATE=1 cargo test -p onggi-web` writes the tables into docs/metrics.md.
#[test]
fn the_page_of_metrics_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/metrics.md");
    let page = std::fs::read_to_string(path).unwrap();
    let before = page.split(TABLES).next().unwrap();
    let wanted = format!("{before}{}", tables());
    if std::env::var_os("ONGGI_REGENERATE").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page == wanted, "docs/metrics.md is out of date: run this test again with ONGGI_REGENERATE=1");
}

/// What scripts of the page call `info.NAME` is a field.
#[test]
fn the_page_shows_fields_of_the_table() {
    let script = include_str!("../page/page.js");
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named: BTreeSet<_> =
        script.split("info.").skip(1).filter_map(|rest| rest.split(|c| !is_word(c)).next()).collect();
    assert!(named.len() > 30, "{named:?}");
    for field in named {
        assert!(TABLE.iter().any(|row| row.field == field), "{field} is no field of INFO");
    }
}

#[test]
fn durations_become_histograms() {
    let reply = replies::parse(
        b"%1\r\n$3\r\nget\r\n%2\r\n$5\r\ncalls\r\n:4\r\n$14\r\nhistogram_usec\r\n%2\r\n:1\r\n:3\r\n:4\r\n:4\r\n",
    );
    let text = render(Some(&Figures::parse(INFO)), reply.as_ref(), Format::Prometheus);
    let wanted = "# TYPE redis_commands_latencies_usec histogram\n\
        redis_commands_latencies_usec_bucket{cmd=\"get\",le=\"1.0\"} 3\n\
        redis_commands_latencies_usec_bucket{cmd=\"get\",le=\"4.0\"} 4\n\
        redis_commands_latencies_usec_bucket{cmd=\"get\",le=\"+Inf\"} 4\n\
        redis_commands_latencies_usec_count{cmd=\"get\"} 4\n\
        redis_commands_latencies_usec_sum{cmd=\"get\"} 8\n";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn open_metrics_name_families_of_counters_without_their_suffix() {
    assert_eq!(Format::accepted("text/html, application/openmetrics-text;version=1.0.0;q=0.5"), Format::OpenMetrics);
    assert_eq!(Format::accepted("*/*"), Format::Prometheus);
    let text = render(Some(&Figures::parse(INFO)), None, Format::OpenMetrics);
    assert!(text.contains("# TYPE redis_commands counter\nredis_commands_total{cmd=\"get\"} 4\n"), "{text}");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
}
