use super::*;
use crate::reading::Reading;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;

const INFO: &str = "server_name:onggi\r\nonggi_version:0.1.0\r\nrole:master\r\nuptime_in_seconds:7300\r\n\
    connected_clients:3\r\nused_memory:104857600\r\nmaxmemory:209715200\r\nused_memory_values:62914560\r\n\
    compression_stored_bytes:20971520\r\nused_memory_rss:120000000\r\ndurability:log, synced within 1000 ms\r\n\
    log_unsynced_bytes:2048\r\nlog_oldest_unsynced_ms:12\r\nrestorable:every moment since noon\r\n\
    aof_enabled:1\r\ndb0:keys=1500,expires=0,avg_ttl=0\r\ndb3:keys=500,expires=0,avg_ttl=0\r\n";

fn reading(second: i64, more: &str, durations: &[(u64, u64)]) -> Reading {
    let durations = durations.to_vec();
    Reading { at_ms: second * 1000, info: format!("{INFO}{more}"), durations, listing: None }
}

fn state() -> State {
    let mut state = State::new("127.0.0.1:6379".to_owned());
    state.add(reading(1, "total_commands_processed:0\r\ncmdstat_get:calls=0,usec=0\r\n", &[(1000, 0), (64_000, 0)]));
    let more = "total_commands_processed:25000\r\nkeyspace_hits:30\r\nkeyspace_misses:10\r\n\
        cmdstat_get:calls=25000,usec=50000,rejected_calls=0,failed_calls=5\r\n";
    state.add(reading(2, more, &[(1000, 24_000), (64_000, 1000)]));
    state
}

/// The screen as lines of text.
fn screen(state: &State, choice: Choice) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(110, 30)).unwrap();
    terminal.draw(|frame| draw(frame, state, choice)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = buffer.content().chunks(110);
    lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}

fn on(tab: Tab) -> Choice {
    Choice { tab, ..Choice::new() }
}

fn assert_shows(screen: &[String], texts: &[&str]) {
    for text in texts {
        assert!(screen.iter().any(|line| line.contains(text)), "no {text:?} in\n{}", screen.join("\n"));
    }
}

#[test]
fn the_overview_has_the_figures_of_the_page() {
    let screen = screen(&state(), on(Tab::Overview));
    assert_eq!(screen[0], "Onggi 0.1.0 at 127.0.0.1:6379  primary, 3 clients, up 2 h 1 min");
    assert_shows(
        &screen,
        &[
            "25.0 k commands/s",
            "hits 75.0 %",
            "p50 1 us  p99 64 us",
            "100.0 MiB of 200.0 MiB, 50 %, resident 114.4 MiB",
            "raw values 40.0 MiB",
            "compressed values 20.0 MiB",
            "tables and buffers 40.0 MiB",
            "log, synced within 1000 ms",
            "not durable yet: 2.0 KiB, the oldest for 12 ms",
            "restorable: every moment since noon",
            "2.0 k keys",
        ],
    );
}

#[test]
fn warnings_stand_below_with_their_remedies() {
    let mut state = state();
    state.add(reading(3, "aof_last_write_status:err\r\n", &[]));
    assert_shows(&screen(&state, on(Tab::Overview)), &["Look at", "takes no changes", "Free space"]);
}

#[test]
fn commands_are_listed_with_their_rates() {
    let screen = screen(&state(), on(Tab::Commands));
    assert_shows(&screen, &["command", "calls/s", "get"]);
    let row = screen.iter().find(|line| line.contains("│get")).unwrap();
    let words: Vec<_> = row.trim_matches('│').split_whitespace().collect();
    assert_eq!(words, ["get", "25.0", "k", "2", "us", "50.00", "ms", "5"]);
}

#[test]
fn lists_are_shown_and_scroll() {
    let mut state = state();
    let mut newest = reading(3, "", &[]);
    newest.listing = Some(Ok(json!([{"key": "first", "calls": 12_000, "db": 0}, {"key": "a\u{1b}[2J", "calls": 3}])));
    state.add(newest);
    let shown = screen(&state, on(Tab::HotKeys));
    assert_shows(&shown, &["first", "12.0 k", "a?[2J"]);
    let scrolled = screen(&state, Choice { offset: 1, ..on(Tab::HotKeys) });
    assert!(!scrolled.iter().any(|line| line.contains("first")));
    assert_shows(&scrolled, &["a?[2J"]);
}

#[test]
fn a_refused_list_and_a_lost_server_are_named() {
    let mut state = state();
    let mut newest = reading(3, "", &[]);
    newest.listing = Some(Err("NOPERM User x has no permissions to run the 'client|list' command".to_owned()));
    state.add(newest);
    assert_shows(&screen(&state, on(Tab::Clients)), &["The server answers: NOPERM User x"]);
    state.problem = Some("127.0.0.1:6379: cannot connect: Connection refused".to_owned());
    assert!(screen(&state, on(Tab::Overview))[0].ends_with("Connection refused"));
}

#[test]
fn a_small_terminal_is_no_fault() {
    for (width, height) in [(1, 1), (20, 3), (40, 10)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        for tab in Tab::ALL {
            terminal.draw(|frame| draw(frame, &state(), on(tab))).unwrap();
        }
    }
}
