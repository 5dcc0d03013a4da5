//! Throughput, latency, memory, durability and warnings.

use super::{block, text};
use crate::format::{bytes, count, micros};
use crate::state::State;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use web::Figures;

/// The bounds of a p99 that is shown in green, and in yellow; above, it is red. In microseconds.
const FAST: f64 = 1000.0;
const SLOW: f64 = 10_000.0;

/// Draws the page.
pub fn draw(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let warnings = state.warnings();
    let warned = if warnings.is_empty() { 0 } else { warnings.len() as u16 + 2 };
    let [curves, facts, below] =
        Layout::vertical([Constraint::Min(6), Constraint::Length(9), Constraint::Length(warned)]).areas(area);
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]);
    let [left, right] = halves.areas(curves);
    throughput(frame, left, state);
    latency(frame, right, state);
    let [left, right] = halves.areas(facts);
    let figures = state.figures();
    text(frame, left, " Memory ", memory(&figures, left.width.saturating_sub(2)));
    text(frame, right, " Durability and traffic ", durability(&figures, state));
    let lines = warnings.iter().map(|warning| {
        Line::from(vec![Span::from(warning.what.clone()).yellow(), Span::from(format!("  {}", warning.remedy)).dim()])
    });
    if warned > 0 {
        text(frame, below, " Look at ", lines.collect());
    }
}

fn throughput(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let newest = |field| state.history.newest().map_or(0.0, |sample| sample.get(field));
    let (hits, misses) = (newest("hits"), newest("misses"));
    let line = Line::from(format!(
        "{} commands/s  hits {}  in {}/s  out {}/s",
        count(newest("commands")),
        if hits + misses > 0.0 { format!("{:.1} %", 100.0 * hits / (hits + misses)) } else { "-".to_owned() },
        bytes(newest("input_bytes")),
        bytes(newest("output_bytes")),
    ));
    curve(frame, area, " Throughput ", line, state, "commands", Color::Cyan);
}

fn latency(frame: &mut Frame<'_>, area: Rect, state: &State) {
    let newest = |field| state.history.newest().map_or(0.0, |sample| sample.get(field));
    let color = match newest("p99_usec") {
        p99 if p99 <= FAST => Color::Green,
        p99 if p99 <= SLOW => Color::Yellow,
        _ => Color::Red,
    };
    let line = Line::from(format!(
        "p50 {}  p99 {}  p99.9 {}  processor {:.0} %",
        micros(newest("p50_usec")),
        micros(newest("p99_usec")),
        micros(newest("p999_usec")),
        newest("cpu_percent"),
    ));
    curve(frame, area, " Time of a command in the server, p99 ", line, state, "p99_usec", color);
}

/// A line of figures, and a curve whose newest value is at the right.
fn curve(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    line: Line<'static>,
    state: &State,
    field: &str,
    color: Color,
) {
    let framed = block(title);
    let [above, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(framed.inner(area));
    frame.render_widget(framed, area);
    frame.render_widget(Paragraph::new(line), above);
    let mut values: Vec<u64> = state
        .history
        .samples()
        .rev()
        .take(usize::from(below.width))
        .map(|sample| sample.get(field).max(0.0) as u64)
        .collect();
    values.resize(usize::from(below.width), 0);
    values.reverse();
    frame.render_widget(Sparkline::default().data(&values).style(Style::new().fg(color)), below);
}

/// Where bytes are: as the page says it.
fn memory(figures: &Figures<'_>, width: u16) -> Vec<Line<'static>> {
    let number = |field: &str| figures.number(field).unwrap_or(0.0);
    let (used, limit, resident) = (number("used_memory"), number("maxmemory"), number("used_memory_rss"));
    let compressed = number("compression_stored_bytes");
    let values = figures.number("used_memory_values").unwrap_or_else(|| number("used_memory_dataset"));
    let homes = [
        ("raw values", (values - compressed).max(0.0), Color::Blue),
        ("compressed values", compressed, Color::Green),
        ("tables and buffers", (used - values).max(0.0), Color::Magenta),
        ("on disk", number("disk_table_bytes"), Color::Yellow),
        ("on a tier", number("tier_bytes"), Color::Cyan),
    ];
    let of_limit =
        if limit > 0.0 { format!(" of {}, {:.0} %", bytes(limit), 100.0 * used / limit) } else { " used".to_owned() };
    let total: f64 = homes.iter().map(|(_, size, _)| size).sum();
    let bar = homes.iter().map(|(_, size, color)| {
        let cells = (f64::from(width) * size / total.max(1.0)).round() as usize;
        Span::from("█".repeat(cells)).fg(*color)
    });
    let mut lines = vec![Line::from(format!("{}{of_limit}, resident {}", bytes(used), bytes(resident))), bar.collect()];
    lines.extend(homes.iter().map(|(name, size, color)| {
        Line::from(vec![Span::from("■ ").fg(*color), Span::from(format!("{name} {}", bytes(*size)))])
    }));
    lines
}

/// The log, the last checkpoint, what can be restored, keys and their fate.
fn durability(figures: &Figures<'_>, state: &State) -> Vec<Line<'static>> {
    let number = |field: &str| figures.number(field).unwrap_or(0.0);
    let newest = |field| state.history.newest().map_or(0.0, |sample| sample.get(field));
    let keys = figures.lists("db").filter_map(|(_, parts)| parts.number("keys")).fold(0.0, |sum, keys| sum + keys);
    let mut lines = Vec::new();
    let mut say = |text: Option<String>| lines.extend(text.map(Line::from));
    say(figures.get("durability").map(str::to_owned));
    say(figures.get("log_unsynced_bytes").map(|_| {
        let ms = number("log_oldest_unsynced_ms");
        format!("not durable yet: {}, the oldest for {ms:.0} ms", bytes(number("log_unsynced_bytes")))
    }));
    say(figures.get("restorable").map(|span| format!("restorable: {span}")));
    let saved = if figures.get("rdb_last_bgsave_status") == Some("err") { "failed" } else { "succeeded" };
    let changes = count(number("rdb_changes_since_last_save"));
    say(Some(format!("last checkpoint {saved}, {changes} changes since then")));
    say(Some(format!("{} keys", count(keys))));
    say(Some(format!(
        "expired {}/s, evicted {}/s, error replies {}/s",
        count(newest("expired")),
        count(newest("evicted")),
        count(newest("errors")),
    )));
    lines
}
