//! Commands, clients, the slow log and hot keys, as tables.

use super::block;
use crate::format::{bytes, count, micros};
use crate::screen::Tab;
use crate::state::State;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::widgets::{Paragraph, Row, Table, Wrap};
use serde_json::Value;

/// A table: its columns with their widths, and its rows.
struct Shown {
    columns: Vec<(&'static str, Constraint)>,
    rows: Vec<Vec<String>>,
}

/// Draws the table of a tab, from its row `offset` on.
pub fn draw(frame: &mut Frame<'_>, area: Rect, state: &State, tab: Tab, offset: usize) {
    let title = format!(" {} ", tab.title());
    let shown = match tab {
        Tab::Overview | Tab::Commands => Ok(commands(state)),
        tab => match state.reading.as_ref().and_then(|reading| reading.listing.as_ref()) {
            None => Err("No answer yet.".to_owned()),
            Some(Err(error)) => Err(format!("The server answers: {error}")),
            Some(Ok(list)) => Ok(listed(tab, list, state.reading.as_ref().map_or(0, |reading| reading.at_ms))),
        },
    };
    match shown {
        Err(sentence) => {
            let text = Paragraph::new(sentence).wrap(Wrap { trim: true }).block(block(&title));
            frame.render_widget(text, area);
        }
        Ok(Shown { columns, rows }) => {
            let header = Row::new(columns.iter().map(|(name, _)| *name)).style(Style::new().bold());
            let offset = offset.min(rows.len().saturating_sub(1));
            let rows = rows.into_iter().skip(offset).map(Row::new);
            let widths = columns.iter().map(|(_, width)| *width);
            frame.render_widget(Table::new(rows, widths).header(header).block(block(&title)), area);
        }
    }
}

fn commands(state: &State) -> Shown {
    let width = Constraint::Length(12);
    let rows = state.uses.iter().map(|each| {
        let failed = if each.failed > 0.0 { count(each.failed) } else { String::new() };
        let time = format!("{:.2} ms", each.ms);
        vec![each.name.clone(), count(each.calls), micros(each.usec_per_call), time, failed]
    });
    Shown {
        columns: vec![
            ("command", Constraint::Fill(1)),
            ("calls/s", width),
            ("time of one", width),
            ("time/s", width),
            ("failed/s", width),
        ],
        rows: rows.collect(),
    }
}

fn listed(tab: Tab, list: &Value, now_ms: i64) -> Shown {
    let (short, name) = (Constraint::Length(10), Constraint::Fill(1));
    let columns = match tab {
        Tab::Clients => vec![
            ("id", short),
            ("address", Constraint::Length(24)),
            ("name", name),
            ("user", Constraint::Length(14)),
            ("db", Constraint::Length(4)),
            ("age", short),
            ("idle", short),
            ("memory", short),
            ("command", Constraint::Length(20)),
        ],
        Tab::SlowLog => vec![
            ("time", Constraint::Length(20)),
            ("took", short),
            ("command", name),
            ("arguments", short),
            ("client", Constraint::Length(24)),
        ],
        _ => vec![("key", name), ("uses", short), ("db", Constraint::Length(4))],
    };
    let rows = list.as_array().into_iter().flatten().map(|row| {
        let field = |name: &str| shown(&row[name]);
        let number = |name: &str| field(name).parse().unwrap_or(0.0);
        match tab {
            Tab::Clients => vec![
                field("id"),
                field("addr"),
                field("name"),
                field("user"),
                field("db"),
                format!("{} s", field("age")),
                format!("{} s", field("idle")),
                bytes(number("tot-mem")),
                field("cmd"),
            ],
            Tab::SlowLog => {
                vec![
                    calendar::ago((number("at") * 1000.0) as i64, now_ms),
                    micros(number("usec")),
                    field("command"),
                    field("arguments"),
                    field("client"),
                ]
            }
            _ => vec![field("key"), count(number("calls")), field("db")],
        }
    });
    Shown { columns, rows: rows.collect() }
}

/// A value as text without control characters, which a client may have put into a name.
fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if value.is_null() { String::new() } else { text.chars().map(|c| if c.is_control() { '?' } else { c }).collect() }
}
