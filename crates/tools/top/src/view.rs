//! What is drawn: a title, the tabs, and the page of one tab.

mod overview;
mod tables;
#[cfg(test)]
mod tests;

use crate::screen::{Choice, Tab};
use crate::state::State;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Tabs};

/// Most rows that a table scrolls.
pub const ROWS_MAX: usize = 10_000;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &State, choice: Choice) {
    let [title, tabs, page] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)]).areas(frame.area());
    frame.render_widget(heading(state), title);
    let [left, right] = Layout::horizontal([Constraint::Min(0), Constraint::Length(26)]).areas(tabs);
    let names = Tab::ALL.iter().enumerate().map(|(at, tab)| format!("{} {}", at + 1, tab.title()));
    let chosen = Tab::ALL.iter().position(|tab| *tab == choice.tab);
    frame.render_widget(Tabs::new(names).select(chosen).highlight_style(Style::new().reversed()), left);
    let keys = if choice.is_paused { "space goes on, q ends" } else { "space pauses, q ends" };
    frame.render_widget(Line::from(keys).right_aligned().dim(), right);
    match choice.tab {
        Tab::Overview => overview::draw(frame, page, state),
        tab => tables::draw(frame, page, state, tab, choice.offset),
    }
}

/// The server's name, version, address, role and uptime, or why it does not answer.
fn heading(state: &State) -> Line<'static> {
    let figures = state.figures();
    let name = match figures.get("server_name") {
        Some("onggi") => "Onggi",
        Some("valkey") => "Valkey",
        _ if figures.get("onggi_version").is_some() => "Onggi",
        _ => "Redis",
    };
    let of_name = ["onggi_version", "valkey_version", "redis_version"].into_iter().find_map(|field| figures.get(field));
    let mut spans = vec![
        Span::from(format!("{name} {}", of_name.unwrap_or("?"))).bold(),
        Span::from(format!(" at {}", state.address)),
    ];
    if let Some(problem) = &state.problem {
        spans.push(Span::from(format!("  {problem}")).red().bold());
        return Line::from(spans);
    }
    let role = if figures.get("role") == Some("slave") { "replica" } else { "primary" };
    let clients = figures.number("connected_clients").unwrap_or(0.0);
    let uptime = calendar::span((figures.number("uptime_in_seconds").unwrap_or(0.0) * 1000.0) as u64);
    spans.push(Span::from(format!("  {role}, {clients:.0} clients, up {uptime}")));
    Line::from(spans)
}

/// A frame with a title.
fn block(title: &str) -> Block<'_> {
    Block::bordered().title(title)
}

/// Text in a frame.
fn text(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>) {
    frame.render_widget(Paragraph::new(lines).block(block(title)), area);
}
