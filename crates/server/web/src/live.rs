//! What the page follows: a sample a second, for all pages at once.

use crate::figures::Figures;
use crate::history::History;
use crate::warnings::warnings;
use crate::{Facts, json};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Time between two samples.
const PERIOD: Duration = Duration::from_secs(1);

/// The history, and the newest event.
pub struct Live {
    history: Mutex<History>,
    /// An event as JSON; `null` while the server does not serve.
    newest: watch::Sender<Arc<str>>,
}

impl Live {
    /// Without samples.
    pub fn new() -> Self {
        Self { history: Mutex::default(), newest: watch::Sender::new("null".into()) }
    }

    /// Samples until it is dropped.
    pub async fn follow(&self, facts: &dyn Facts) {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.sample(facts);
        }
    }

    fn sample(&self, facts: &dyn Facts) {
        let text = facts.info();
        let event = text.as_deref().map_or(Value::Null, |text| {
            let figures = Figures::parse(text);
            let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
            let durations = facts.durations();
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            let sample = history.add(at_ms, &figures, &durations).map(|sample| sample.json());
            let warnings: Value = warnings(&figures).iter().map(|warning| warning.json()).collect();
            serde_json::json!({"info": json::object(&figures), "sample": sample, "warnings": warnings})
        });
        self.newest.send_replace(event.to_string().into());
    }

    /// Events from the newest on.
    pub fn events(&self) -> watch::Receiver<Arc<str>> {
        self.newest.subscribe()
    }

    /// The samples of the last seconds.
    pub fn history(&self, seconds: usize) -> Value {
        self.history.lock().unwrap_or_else(PoisonError::into_inner).json(seconds)
    }
}
