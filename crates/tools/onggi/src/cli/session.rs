//! One connection to a server, and the state that a new connection needs again: login and database.
//!
//! S1. A command is sent once. If the connection breaks, the error is shown, and the next command connects again.

use loadgen::client::{Address, Client, Login};
use proto::reply::Value;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest time between two looks at an interruption.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Wait for the news that the server has closed the connection.
const NEWS: Duration = Duration::from_millis(1);

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// With its reply.
    Answered,
    /// The server has closed the connection as it was asked to.
    Closed,
    /// By Ctrl-C before its reply, or while messages came.
    Interrupted,
}

/// A connection.
pub struct Session {
    address: Address,
    login: Login,
    client: Option<Client>,
    is_in_transaction: bool,
    interrupted: Option<Arc<AtomicBool>>,
}

impl Session {
    /// Connects and logs in.
    pub fn open(address: Address, login: Login) -> Result<Self, Box<dyn Error>> {
        let client = Client::connect(&address, &login)?;
        Ok(Self { address, login, client: Some(client), is_in_transaction: false, interrupted: None })
    }

    /// From now on, Ctrl-C ends a wait and not the process.
    pub fn catch_interrupts(&mut self) -> io::Result<()> {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&flag))?;
        self.interrupted = Some(flag);
        Ok(())
    }

    /// Sends a command and passes its reply to `show`; after a command that subscribes, every message. Messages of
    /// RESP3 that come before the reply are passed too.
    pub fn send(
        &mut self,
        command: &[Vec<u8>],
        show: &mut dyn FnMut(&Value) -> io::Result<()>,
    ) -> Result<Sent, Box<dyn Error>> {
        self.connect()?;
        let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        let is = |name: &str| words.first().is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
        let streams = ["subscribe", "psubscribe", "ssubscribe", "monitor"].into_iter().any(is);
        let sent = self.exchange(&words, streams, show);
        match sent {
            Err(_) if is("shutdown") => {
                self.reconnect_next_time();
                Ok(Sent::Closed)
            }
            Err(error) => {
                self.reconnect_next_time();
                Err(error)
            }
            Ok(sent) => Ok(sent),
        }
    }

    /// Sends a command, and gives its reply.
    pub fn ask(&mut self, command: &[Vec<u8>]) -> Result<Value, Box<dyn Error>> {
        Ok(self.ask_all(&[command.to_vec()])?.pop().unwrap_or(Value::Null))
    }

    /// Sends commands together, and gives their replies. The connection sends no messages: nothing has subscribed.
    pub fn ask_all(&mut self, commands: &[Vec<Vec<u8>>]) -> Result<Vec<Value>, Box<dyn Error>> {
        self.connect()?;
        let Some(client) = &mut self.client else { return Ok(Vec::new()) };
        Ok(client.ask_all(commands)?)
    }

    /// Sends bytes as they are; see [`Client::pipe`]. The connection can then be used for nothing else.
    pub fn pipe(
        &mut self,
        more: &mut dyn FnMut() -> io::Result<Vec<u8>>,
        patience: Option<Duration>,
        take: &mut dyn FnMut(&Value) -> io::Result<bool>,
    ) -> Result<(), Box<dyn Error>> {
        let Some(mut client) = self.client.take() else { return Ok(()) };
        Ok(client.pipe(more, patience, take)?)
    }

    fn exchange(
        &mut self,
        words: &[&[u8]],
        streams: bool,
        show: &mut dyn FnMut(&Value) -> io::Result<()>,
    ) -> Result<Sent, Box<dyn Error>> {
        let Some(client) = &mut self.client else { return Ok(Sent::Closed) };
        client.send_command(words)?;
        loop {
            let Some(client) = &mut self.client else { return Ok(Sent::Closed) };
            let Some(value) = client.next_within(LOOK_AGAIN)? else {
                if self.take_interrupt() {
                    return Ok(Sent::Interrupted);
                }
                continue;
            };
            show(&value)?;
            let is_message = matches!(value, Value::Push(_));
            if !is_message {
                self.note(words, &value);
            }
            if streams && value.as_error().is_none() {
                if self.take_interrupt() {
                    return Ok(Sent::Interrupted);
                }
            } else if !is_message {
                return Ok(Sent::Answered);
            }
        }
    }

    /// Remembers what a successful command has changed of the connection.
    fn note(&mut self, words: &[&[u8]], value: &Value) {
        if value.as_error().is_some() {
            return;
        }
        let text = |at: usize| words.get(at).map(|word| String::from_utf8_lossy(word).into_owned());
        match text(0).unwrap_or_default().to_ascii_lowercase().as_str() {
            "select" => self.login.database = text(1).and_then(|number| number.parse().ok()).unwrap_or_default(),
            "auth" if words.len() == 2 => (self.login.user, self.login.password) = (None, text(1)),
            "auth" => (self.login.user, self.login.password) = (text(1), text(2)),
            "hello" => {
                self.login.resp3 = text(1).as_deref().map_or(self.login.resp3, |version| version == "3");
                let auth = words.iter().position(|word| word.eq_ignore_ascii_case(b"auth"));
                if let Some(at) = auth {
                    (self.login.user, self.login.password) = (text(at + 1), text(at + 2));
                }
            }
            "reset" => {
                (self.login.database, self.login.resp3, self.is_in_transaction) = (0, false, false);
                (self.login.user, self.login.password) = (None, None);
            }
            "multi" => self.is_in_transaction = true,
            "exec" | "discard" => self.is_in_transaction = false,
            _ => {}
        }
    }

    /// Connects again if the connection is gone.
    fn connect(&mut self) -> Result<(), Box<dyn Error>> {
        if self.interrupted.is_some()
            && let Some(client) = &mut self.client
            && client.next_within(NEWS).is_err()
        {
            self.reconnect_next_time();
        }
        if self.client.is_none() {
            self.client = Some(Client::connect(&self.address, &self.login)?);
        }
        Ok(())
    }

    /// Gives the connection up, with its subscriptions and its transaction.
    pub fn reconnect_next_time(&mut self) {
        self.client = None;
        self.is_in_transaction = false;
    }

    /// Forgets a Ctrl-C that ended no wait.
    pub fn forget_interrupt(&self) {
        self.take_interrupt();
    }

    fn take_interrupt(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|flag| flag.swap(false, Ordering::Relaxed))
    }

    /// The text before the cursor.
    pub fn prompt(&self) -> String {
        let database = if self.login.database > 0 { format!("[{}]", self.login.database) } else { String::new() };
        let transaction = if self.is_in_transaction { "(TX)" } else { "" };
        let place = match &self.address {
            Address::Tcp(address) => address.clone(),
            Address::Unix(path) => path.display().to_string(),
        };
        match self.client {
            Some(_) => format!("{place}{database}{transaction}> "),
            None => "not connected> ".to_owned(),
        }
    }
}
