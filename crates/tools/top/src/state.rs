//! What is known of the server: an hour of samples, and the newest reading.

use crate::commands::{self, Total, Use};
use crate::reading::Reading;
use serde_json::{Value, json};
use std::collections::HashMap;
use web::{Figures, History, Sample, Warning, warnings};

/// What the view shows.
pub struct State {
    /// The server's address.
    pub address: String,
    /// A sample for each reading after the first.
    pub history: History,
    /// The commands between the last two readings.
    pub uses: Vec<Use>,
    /// The newest reading.
    pub reading: Option<Reading>,
    /// Why there is no newer one.
    pub problem: Option<String>,
    totals: HashMap<String, Total>,
}

impl State {
    /// Nothing is known yet.
    pub fn new(address: String) -> Self {
        Self {
            address,
            history: History::default(),
            uses: Vec::new(),
            reading: None,
            problem: None,
            totals: HashMap::new(),
        }
    }

    /// Adds what the server said.
    pub fn add(&mut self, reading: Reading) {
        let figures = Figures::parse(&reading.info);
        self.history.add(reading.at_ms, &figures, &reading.durations);
        let totals = commands::totals(&figures);
        if let Some(last) = &self.reading {
            let seconds = (reading.at_ms - last.at_ms).max(1) as f64 / 1000.0;
            self.uses = commands::uses(&self.totals, &totals, seconds);
        }
        self.totals = totals;
        self.reading = Some(reading);
        self.problem = None;
    }

    /// The text of INFO, field by field; nothing before the first reading.
    pub fn figures(&self) -> Figures<'_> {
        Figures::parse(self.reading.as_ref().map_or("", |reading| &reading.info))
    }

    /// What an operator should look at.
    pub fn warnings(&self) -> Vec<Warning> {
        if self.reading.is_some() { warnings(&self.figures()) } else { Vec::new() }
    }

    /// The newest sample and the warnings as JSON.
    pub fn json(&self) -> Value {
        let newest = self.history.newest();
        let mut object = newest.map_or_else(|| json!({}), Sample::object);
        if let Some(object) = object.as_object_mut() {
            object.insert("address".to_owned(), self.address.clone().into());
            let commands = self.uses.iter().map(|each| {
                let Use { name, calls, usec_per_call, failed, .. } = each;
                json!({"command": name, "calls": rounded(*calls), "usec_per_call": rounded(*usec_per_call),
                    "failed": rounded(*failed)})
            });
            object.insert("commands_by_name".to_owned(), commands.collect());
            object.insert("warnings".to_owned(), self.warnings().iter().map(Warning::json).collect());
        }
        object
    }
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
