//! CONFIG SET reaches the parts of the server that follow settings.

use super::listeners::{backlog, places};
use crate::announce::classes_of;
use crate::client_memory::ClientMemory;
use crate::descriptors::raise_limit;
use crate::encryption;
use crate::executor::{ClientLimits, Shared};
use crate::http_tokens::{self, TokenFileError};
use crate::listen::AcceptorHandle;
use crate::store_settings::follow_settings;
use admin::Apply;
use config::{Directive, MemoryShare, Refused, RewriteError, Settings};
use durability::{Durability, Policy, Tell};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tls::TlsError;

/// How long CONFIG SET waits for all shard locks to change `appendfsync`. Commands hold them for microseconds; a worker
/// that the system does not run holds one for some tens of milliseconds.
const MODE_PATIENCE: Duration = Duration::from_millis(500);

/// The same inside EXEC. If EXEC holds a shard itself no wait helps, and meanwhile other clients wait for that shard.
const MODE_PATIENCE_IN_TRANSACTION: Duration = Duration::from_millis(5);

/// The least automatic limit of the memory of all clients.
const AUTOMATIC_CLIENT_BYTES_MIN: u64 = 256 << 20;

/// Puts changed settings into force.
pub(super) struct Applied {
    pub(super) shared: Arc<OnceLock<Weak<Shared>>>,
    pub(super) acceptor: AcceptorHandle,
    pub(super) memory: Arc<ClientMemory>,
    pub(super) file: Option<PathBuf>,
    /// The databases that the server keeps on disk, ascending.
    pub(super) on_disk: Vec<u32>,
    /// Those of them that keep their names in order, ascending.
    pub(super) ordered: Vec<u32>,
    pub(super) tls: Arc<tls::Contexts>,
    /// The log, which follows its settings; `None` without a data directory.
    pub(super) tell: Option<Arc<dyn Tell>>,
}

impl Apply for Applied {
    fn apply(&self, row: &'static Directive, settings: &Settings) -> Result<(), String> {
        let Some(shared) = self.shared.get().and_then(Weak::upgrade) else { return Ok(()) };
        *shared.limits.write() = ClientLimits::of(settings);
        follow_settings(&shared.store, settings);
        shared.store.notices.ask_for_events(classes_of(&settings.keyspace_events));
        let tracking = &shared.host.tracking;
        tracking.set_keys_max(usize::try_from(settings.tracked_keys_max).unwrap_or(usize::MAX));
        self.memory.set_limits(client_bytes_max(settings), settings.maxmemory_bytes);
        match row.name {
            "port" | "bind" | "tls-port" | "memcached-port" | "ssdb-port" => self
                .acceptor
                .move_to(&places(settings), backlog(settings))
                .map_err(|(address, error)| format!("cannot listen on {address}: {error}")),
            "database" if settings.per_database.on_disk().ne(self.on_disk.iter().copied()) => {
                Err("the engine of a database is fixed while the server runs, and once it has been written to. Give \
                               an empty database another engine at a start: --database '0 engine disk'"
                    .to_owned())
            }
            "database" if settings.per_database.ordered().ne(self.ordered.iter().copied()) => {
                Err("a database is put in order at a start: give --database '0 ordered yes', or write it into the file and \
                     restart"
                    .to_owned())
            }
            "loglevel" | "log-format" | "log-timestamp-format" => {
                self.tell.iter().for_each(|tell| tell.follow(settings));
                Ok(())
            }
            "maxclients" => raise_limit(settings.maxclients)
                .map_err(|possible| format!("the operating system allows descriptors for {possible} clients only")),
            _ => Ok(()),
        }
    }

    fn finish(&self, settings: &Settings, changed: &[&'static Directive], in_transaction: bool) -> Result<(), Refused> {
        let encryption = changed.iter().find(|row| encryption::concerns(row)).map(|row| {
            let refused = |error: TlsError| Refused { directive: row.name, reason: error.to_string() };
            encryption::load(settings).map_err(refused)
        });
        let encryption = encryption.transpose()?;
        let tokens = changed.iter().find(|row| row.name == http_tokens::DIRECTIVE).map(|row| {
            let refused = |error: TokenFileError| Refused { directive: row.name, reason: error.to_string() };
            http_tokens::load(settings).map_err(refused)
        });
        let tokens = tokens.transpose()?;
        self.set_durability(settings, in_transaction)?;
        // Last, since nothing fails after it.
        encryption.into_iter().for_each(|loaded| self.tls.put(loaded));
        if let Some((tokens, shared)) = tokens.zip(self.shared.get().and_then(Weak::upgrade)) {
            tokens.warn();
            shared.host.login.tokens.put(tokens.tokens);
        }
        Ok(())
    }

    fn note(&self, text: &str) {
        self.tell.iter().for_each(|tell| tell.say(text));
    }

    fn rewrite(&self, settings: &Settings) -> Result<(), RewriteError> {
        config::rewrite(settings, self.file.as_deref(), &vfs::RealFs)
    }
}

impl Applied {
    /// Has the log follow its settings.
    fn set_durability(&self, settings: &Settings, in_transaction: bool) -> Result<(), Refused> {
        let shared = self.shared.get().and_then(Weak::upgrade);
        let Some(durability) = shared.as_ref().and_then(|shared| shared.host.find::<Arc<Durability>>()) else {
            return Ok(());
        };
        let patience = if in_transaction { MODE_PATIENCE_IN_TRANSACTION } else { MODE_PATIENCE };
        durability.set_policy(Policy::of(settings), patience).map_err(|error| Refused {
            directive: "appendfsync",
            reason: match in_transaction {
                true => {
                    "a transaction that uses keys cannot change it, and nothing was changed: send CONFIG SET outside \
                         MULTI"
                        .to_owned()
                }
                false => format!("{error}, and nothing was changed: send it again"),
            },
        })
    }
}

/// How many bytes all clients may hold together.
pub(super) fn client_bytes_max(settings: &Settings) -> u64 {
    let share = |percent: u8| (u128::from(settings.maxmemory_bytes) * u128::from(percent) / 100) as u64;
    match settings.maxmemory_clients {
        MemoryShare::Bytes(0) => share(10).max(AUTOMATIC_CLIENT_BYTES_MIN),
        MemoryShare::Bytes(bytes) => bytes,
        // A share of no limit is no limit.
        MemoryShare::Percent(_) if settings.maxmemory_bytes == 0 => u64::MAX,
        MemoryShare::Percent(percent) => share(percent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_all_clients() {
        use MemoryShare::{Bytes, Percent};
        for (maxmemory_clients, maxmemory_bytes, expected) in [
            (Bytes(0), 0, 256 << 20),
            (Bytes(0), 10 << 30, 1 << 30),
            (Bytes(5), 10 << 30, 5),
            (Percent(50), 1000, 500),
            (Percent(50), 0, u64::MAX),
        ] {
            let settings = Settings { maxmemory_clients, maxmemory_bytes, ..Settings::default() };
            assert_eq!(client_bytes_max(&settings), expected);
        }
    }
}
