//! What pages and pictures share: text that is safe in HTML, and the colours of the servers.

use crate::results::Results;

/// Text that may stand in HTML, in an attribute too.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            _ => safe.push(c),
        }
    }
    safe
}

/// The colour of each server: one for the subject, the others in order.
pub(crate) struct Hues(Vec<(String, String)>);

const HUES: usize = 5;

impl Hues {
    pub(crate) fn new(results: &Results) -> Self {
        let others = results.servers.iter().filter(|server| server.name != results.subject);
        let mut named = vec![(results.subject.clone(), "subject".to_owned())];
        named.extend(others.enumerate().map(|(at, server)| (server.name.clone(), format!("hue{}", at % HUES + 1))));
        Self(named)
    }

    pub(crate) fn class(&self, server: &str) -> String {
        self.0.iter().find(|(name, _)| name == server).map_or_else(String::new, |(_, class)| class.clone())
    }
}
