//! The terminal: reads keys between two readings, and draws after each of both.

use crate::reading::{Listing, Source};
use crate::state::State;
use crate::{Options, TopError, view};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time between two looks at signals.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// A page of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// Throughput, latency, memory, durability, warnings.
    Overview,
    /// Commands by the time they take.
    Commands,
    /// Connections.
    Clients,
    /// The slow log.
    SlowLog,
    /// Keys that are used most.
    HotKeys,
}

impl Tab {
    /// All, in their order.
    pub const ALL: [Self; 5] = [Self::Overview, Self::Commands, Self::Clients, Self::SlowLog, Self::HotKeys];

    /// Its title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Overview => "Overview",
            Self::Commands => "Commands",
            Self::Clients => "Clients",
            Self::SlowLog => "Slow log",
            Self::HotKeys => "Hot keys",
        }
    }

    /// The list that it needs.
    fn listing(self) -> Option<Listing> {
        match self {
            Self::Overview | Self::Commands => None,
            Self::Clients => Some(Listing::Clients),
            Self::SlowLog => Some(Listing::SlowLog),
            Self::HotKeys => Some(Listing::HotKeys),
        }
    }

    fn step(self, forward: bool) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        let step = if forward { 1 } else { Self::ALL.len() - 1 };
        Self::ALL[(at + step) % Self::ALL.len()]
    }
}

/// What the keys have chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The page.
    pub tab: Tab,
    /// Rows of its table above the first shown.
    pub offset: usize,
    /// No readings are taken.
    pub is_paused: bool,
}

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Reading,
    End,
}

impl Choice {
    /// The first page.
    pub fn new() -> Self {
        Self { tab: Tab::Overview, offset: 0, is_paused: false }
    }

    fn press(&mut self, key: KeyCode, modifiers: KeyModifiers) -> Asked {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => Asked::End,
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => Asked::End,
            KeyCode::Char(' ') => {
                self.is_paused = !self.is_paused;
                Asked::Nothing
            }
            KeyCode::Tab | KeyCode::Right => self.show(self.tab.step(true)),
            KeyCode::BackTab | KeyCode::Left => self.show(self.tab.step(false)),
            KeyCode::Char(digit @ '1'..='5') => self.show(Tab::ALL[digit as usize - '1' as usize]),
            KeyCode::Down => self.scroll(self.offset.saturating_add(1)),
            KeyCode::Up => self.scroll(self.offset.saturating_sub(1)),
            KeyCode::PageDown => self.scroll(self.offset.saturating_add(10)),
            KeyCode::PageUp => self.scroll(self.offset.saturating_sub(10)),
            KeyCode::Home => self.scroll(0),
            _ => Asked::Nothing,
        }
    }

    fn show(&mut self, tab: Tab) -> Asked {
        (self.tab, self.offset) = (tab, 0);
        Asked::Reading
    }

    fn scroll(&mut self, offset: usize) -> Asked {
        self.offset = offset.min(view::ROWS_MAX);
        Asked::Nothing
    }
}

/// Draws until a key or a signal ends it.
pub fn run(options: &Options, source: &mut Source, state: &mut State) -> Result<(), TopError> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    let mut terminal = ratatui::try_init()?;
    let done = turns(options, source, state, &mut terminal, &ended);
    ratatui::try_restore()?;
    done
}

fn turns(
    options: &Options,
    source: &mut Source,
    state: &mut State,
    terminal: &mut DefaultTerminal,
    ended: &AtomicBool,
) -> Result<(), TopError> {
    let mut choice = Choice::new();
    let mut next = Instant::now();
    let mut left = options.count;
    while !ended.load(Ordering::Relaxed) {
        if !choice.is_paused && Instant::now() >= next {
            match source.read(choice.tab.listing()) {
                Ok(reading) => state.add(reading),
                Err(error) => {
                    let causes = vfs::further_causes(&error);
                    state.problem = Some([vec![error.to_string()], causes].concat().join(": "));
                }
            }
            next = Instant::now() + options.interval;
            if left == Some(0) {
                return Ok(());
            }
            left = left.map(|left| left - 1);
        }
        terminal.draw(|frame| view::draw(frame, state, choice))?;
        match wait(next.saturating_duration_since(Instant::now()), &mut choice)? {
            Asked::Nothing => {}
            Asked::Reading => next = Instant::now(),
            Asked::End => return Ok(()),
        }
    }
    Ok(())
}

/// Waits for a key, a new size of the terminal, a signal, or the time.
fn wait(time: Duration, choice: &mut Choice) -> io::Result<Asked> {
    if !event::poll(time.clamp(Duration::from_millis(1), LOOK_AGAIN))? {
        return Ok(Asked::Nothing);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind == KeyEventKind::Press => choice.press(key.code, key.modifiers),
        _ => Asked::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(choice: &mut Choice, key: KeyCode) -> Asked {
        choice.press(key, KeyModifiers::NONE)
    }

    #[test]
    fn keys_choose_pages_and_rows() {
        let mut choice = Choice::new();
        assert_eq!(press(&mut choice, KeyCode::Tab), Asked::Reading);
        assert_eq!(choice.tab, Tab::Commands);
        press(&mut choice, KeyCode::PageDown);
        press(&mut choice, KeyCode::Up);
        assert_eq!(choice.offset, 9);
        press(&mut choice, KeyCode::Char('5'));
        assert_eq!((choice.tab, choice.offset), (Tab::HotKeys, 0));
        press(&mut choice, KeyCode::Right);
        assert_eq!(choice.tab, Tab::Overview);
        press(&mut choice, KeyCode::BackTab);
        assert_eq!(choice.tab, Tab::HotKeys);
        press(&mut choice, KeyCode::Char(' '));
        assert!(choice.is_paused);
        assert_eq!(press(&mut choice, KeyCode::Char('q')), Asked::End);
        assert_eq!(press(&mut choice, KeyCode::Char('c')), Asked::Nothing);
        assert_eq!(choice.press(KeyCode::Char('c'), KeyModifiers::CONTROL), Asked::End);
    }
}
