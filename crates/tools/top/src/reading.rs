//! What the server says, at one moment.

use crate::latency;
use loadgen::client::{Address, Client, Login};
use loadgen::error::{BenchError, Result};
use proto::reply::Value as Reply;
use serde_json::Value;
use std::time::{SystemTime, UNIX_EPOCH};
use web::replies;

/// A list that is read while it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// CLIENT LIST
    Clients,
    /// SLOWLOG GET
    SlowLog,
    /// HOTKEYS
    HotKeys,
}

/// What the server said.
#[derive(Debug)]
pub struct Reading {
    /// Unix time in milliseconds.
    pub at_ms: i64,
    /// The text of `INFO everything`.
    pub info: String,
    /// Calls by duration; empty if the server has no LATENCY HISTOGRAM.
    pub durations: Vec<(u64, u64)>,
    /// The list that was asked for, or the server's error.
    pub listing: Option<std::result::Result<Value, String>>,
}

/// A connection, made again when it is lost.
pub struct Source {
    address: Address,
    login: Login,
    client: Option<Client>,
}

impl Source {
    /// Connects and logs in.
    pub fn open(address: Address, login: Login) -> Result<Self> {
        let login = Login { resp3: true, ..login };
        let mut client = Client::connect(&address, &login)?;
        client.check_login()?;
        Ok(Self { address, login, client: Some(client) })
    }

    /// Asks for the figures, and for one list.
    ///
    /// # Errors
    /// No connection, or INFO is refused. The next call connects again.
    pub fn read(&mut self, listing: Option<Listing>) -> Result<Reading> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(&self.address, &self.login)?,
        };
        let reading = self.ask_all(&mut client, listing)?;
        self.client = Some(client);
        Ok(reading)
    }

    fn ask_all(&self, client: &mut Client, listing: Option<Listing>) -> Result<Reading> {
        let info = client.must(&["INFO", "everything"])?;
        let info = info.as_bytes().map(|text| String::from_utf8_lossy(text).into_owned()).ok_or_else(|| {
            let (address, command) = (self.address.to_string(), "INFO".to_owned());
            BenchError::Refused { address, command, reply: "the reply is not a text".to_owned() }
        })?;
        let durations = latency::durations(&client.ask(&["LATENCY", "HISTOGRAM"])?);
        let listing = match listing {
            Some(listing) => Some(list(client, listing)?),
            None => None,
        };
        let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        Ok(Reading { at_ms, info, durations, listing })
    }
}

fn list(client: &mut Client, listing: Listing) -> Result<std::result::Result<Value, String>> {
    let (words, rows): (&[&str], fn(&Reply) -> Value) = match listing {
        Listing::Clients => (&["CLIENT", "LIST"], replies::clients),
        Listing::SlowLog => (&["SLOWLOG", "GET", "50"], |reply| replies::slow_log(reply, false)),
        Listing::HotKeys => (&["HOTKEYS", "COUNT", "50"], replies::hot_keys),
    };
    Ok(match client.ask(words)? {
        Reply::Error(text) => Err(String::from_utf8_lossy(&text).into_owned()),
        reply => Ok(rows(&reply)),
    })
}
