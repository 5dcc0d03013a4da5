//! Servers that ran before a comparison: what the comparison may do to them.
//!
//! ```text
//! check: holds keys?  -- refuse, unless the user has named its address to be emptied
//! clean: named        -- FLUSHALL
//!        else         -- removes the keys that begin with the generator's prefixes, and nothing else
//! ```

use crate::client::{Address, Client, Login};
use crate::error::{BenchError, Result};
use crate::server::{Server, ServerSpec};
use crate::template::KEY_PREFIX;
use proto::reply::Value;
use std::collections::BTreeSet;

/// Keys per SCAN.
const SCAN_COUNT: &str = "1000";

/// What a comparison may remove from servers that it did not start.
#[derive(Clone, Debug, Default)]
pub struct Guest {
    /// Servers to be emptied with FLUSHALL: the user has named them.
    pub flushed: Vec<Address>,
    /// The prefixes of the generator's keys.
    pub prefixes: BTreeSet<String>,
}

impl Guest {
    /// For keys with this prefix, and those of the named tests.
    pub fn new(flushed: Vec<Address>, key_prefix: &str) -> Self {
        Self { flushed, prefixes: [KEY_PREFIX.to_owned(), key_prefix.to_owned()].into() }
    }

    /// Refuses running servers that hold keys, unless the user has named them to be emptied. Changes nothing.
    ///
    /// # Errors
    /// [`BenchError::Usage`] with the number of keys; a server that does not answer.
    pub fn check(&self, servers: &[ServerSpec]) -> Result<()> {
        let running: Vec<_> = servers.iter().filter_map(|spec| Some((spec, spec.running()?))).collect();
        if let Some(address) = self.flushed.iter().find(|address| running.iter().all(|(_, other)| other != address)) {
            return Err(BenchError::Usage(format!(
                "--flush-the-data-of {address}: no --server NAME@{address} is given"
            )));
        }
        for (spec, address) in running.into_iter().filter(|(_, address)| !self.flushed.contains(address)) {
            let keys = keys_of(&mut Client::connect(address, &Login::default())?)?;
            if keys > 0 {
                return Err(BenchError::Usage(format!(
                    "server {}: {address} holds {keys} {}, and a comparison is for empty servers; nothing was changed. \
                     Name another server, or lose all its data with --flush-the-data-of {address}",
                    spec.name,
                    if keys == 1 { "key" } else { "keys" }
                )));
            }
        }
        Ok(())
    }

    /// Empties a server that was started here. On one that ran before, removes what is allowed.
    ///
    /// # Errors
    /// When it refuses.
    pub fn empty(&self, server: &Server) -> Result<()> {
        if server.is_echo {
            return Ok(());
        }
        if !server.is_own() {
            return self.clean(&server.target.address);
        }
        Client::connect(&server.target.address, &server.target.login)?.must(&["FLUSHALL"])?;
        Ok(())
    }

    /// Removes what was written to a server; everything, if the user has agreed to that.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn clean(&self, address: &Address) -> Result<()> {
        let mut client = Client::connect(address, &Login::default())?;
        if self.flushed.contains(address) {
            client.must(&["FLUSHALL"])?;
            return Ok(());
        }
        self.prefixes.iter().try_for_each(|prefix| remove(&mut client, prefix))
    }

    /// Cleans the running servers at the end, and reports what is left there, one line each.
    ///
    /// # Errors
    /// When a server refuses.
    pub fn leave(&self, servers: &[ServerSpec]) -> Result<Vec<String>> {
        let mut said = Vec::new();
        for (spec, address) in servers.iter().filter_map(|spec| Some((spec, spec.running()?))) {
            self.clean(address)?;
            let left = keys_of(&mut Client::connect(address, &Login::default())?)?;
            let removed = match self.flushed.contains(address) {
                true => "all data were removed (FLUSHALL)".to_owned(),
                false => format!("the keys that begin with {} were removed", self.named()),
            };
            said.push(format!("{} ({address}): {removed}; {left} keys are left", spec.name));
        }
        Ok(said)
    }

    fn named(&self) -> String {
        self.prefixes.iter().map(|prefix| format!("`{prefix}`")).collect::<Vec<_>>().join(" or ")
    }
}

/// What a load leaves in a server, and how to remove it.
pub fn left_behind(address: &Address, key_prefix: &str) -> String {
    let prefixes = Guest::new(Vec::new(), key_prefix);
    let named = prefixes.named();
    let patterns: Vec<_> = prefixes.prefixes.iter().map(|prefix| format!("\"{}*\"", escaped(prefix))).collect();
    let port = match address {
        Address::Tcp(text) => text.rsplit_once(':').map(|(host, port)| format!("-h {host} -p {port}")),
        Address::Unix(path) => Some(format!("-s {}", path.display())),
    };
    let cli = format!("redis-cli {}", port.unwrap_or_default());
    let remove = patterns.iter().map(|pattern| format!("{cli} --scan --pattern {pattern} | xargs -r {cli} unlink"));
    format!(
        "left behind in {address}: keys that begin with {named}, and those that commands of your own have written. To \
         remove the former: {}",
        remove.collect::<Vec<_>>().join("; ")
    )
}

/// Keys in all databases.
fn keys_of(client: &mut Client) -> Result<u64> {
    let fields = client.info_fields("keyspace")?;
    let counts = fields
        .iter()
        .filter(|(name, _)| name.starts_with("db"))
        .filter_map(|(_, text)| text.split(',').find_map(|part| part.strip_prefix("keys=")?.parse::<u64>().ok()));
    // A server that does not report its databases still reports the current one.
    Ok(counts.sum::<u64>().max(client.key_count()?))
}

fn remove(client: &mut Client, prefix: &str) -> Result<()> {
    let (pattern, mut cursor) = (format!("{}*", escaped(prefix)), "0".to_owned());
    loop {
        let reply = client.must(&["SCAN", &cursor, "MATCH", &pattern, "COUNT", SCAN_COUNT])?;
        let malformed = || BenchError::Refused {
            address: String::new(),
            command: "SCAN".to_owned(),
            reply: "a reply that is no cursor with keys".to_owned(),
        };
        let Value::Array(parts) = &reply else { return Err(malformed()) };
        let [next, Value::Array(keys)] = &parts[..] else { return Err(malformed()) };
        let keys: Vec<_> = keys.iter().filter_map(Value::as_bytes).map(String::from_utf8_lossy).collect();
        if !keys.is_empty() {
            let words: Vec<&str> = std::iter::once("UNLINK").chain(keys.iter().map(|key| &**key)).collect();
            client.must(&words)?;
        }
        cursor = String::from_utf8_lossy(next.as_bytes().unwrap_or_default()).into_owned();
        if cursor == "0" || cursor.is_empty() {
            return Ok(());
        }
    }
}

/// A prefix that SCAN's MATCH takes literally.
fn escaped(prefix: &str) -> String {
    let escape = |c: char| if "\\*?[]".contains(c) { vec!['\\', c] } else { vec![c] };
    prefix.chars().flat_map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_taken_literally() {
        assert_eq!(escaped("bench:"), "bench:");
        assert_eq!(escaped("a*[b]?\\"), "a\\*\\[b\\]\\?\\\\");
    }

    #[test]
    fn what_is_left_can_be_removed() {
        let address = "127.0.0.1:7".parse().unwrap();
        let text = left_behind(&address, "bench:");
        assert!(text.contains("redis-cli -h 127.0.0.1 -p 7 --scan --pattern \"bench:*\" | xargs"), "{text}");
        assert!(left_behind(&address, "own:").contains("`bench:` or `own:`"));
    }
}
