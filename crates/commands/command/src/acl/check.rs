//! Whether a user may run a request.

use super::rules::Rules;
use super::selector::Selector;
use crate::Args;
use crate::databases::databases_in;
use crate::spec::{Categories, Flags, KeyFlags, KeySpec, Runs};
use crate::table::Row;
use base::integer::parse_integer;
use base::{DbIndex, glob};

/// Why a request is denied. In ascending order of what is reported when selectors deny it for several reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A database.
    Database,
    /// No selector permits the command.
    Command,
    /// A key.
    Key,
    /// Login failed: for [`super::Log`] alone.
    Login,
    /// A channel.
    Channel,
    /// The certificate of a client names no user that may log in: for [`super::Log`] alone.
    Certificate,
}

impl Reason {
    /// Its word in ACL LOG.
    pub fn word(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Key => "key",
            Self::Login => "auth",
            Self::Certificate => "tls-cert",
            Self::Channel => "channel",
            Self::Database => "database",
        }
    }

    /// The words with which EXEC denies a request that it had queued.
    pub fn at_exec(self) -> &'static str {
        match self {
            Self::Command => "no permission to execute the command or subcommand",
            Self::Key => "no permission to touch the specified keys",
            Self::Channel => "no permission to access one of the channels used as arguments",
            Self::Login | Self::Certificate | Self::Database => "no permission",
        }
    }
}

/// A request that is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// Why.
    pub reason: Reason,
    /// The argument that is denied; 0 for the command as a whole.
    pub argument: usize,
}

impl Denied {
    /// What is denied, as ACL LOG shows it; `name` is the full name of the command.
    pub fn object<'a>(&self, name: &'a str, args: &Args<'a>) -> &'a [u8] {
        if self.argument == 0 { name.as_bytes() } else { args.bytes(self.argument).unwrap_or_default() }
    }

    /// What is denied, as ACL DRYRUN words it: of a database, the argument as it was typed.
    pub fn object_typed<'a>(&self, name: &'a str, args: &Args<'a>) -> &'a [u8] {
        match self.reason {
            Reason::Database => args.bytes(self.argument).unwrap_or_default(),
            _ => self.object(name, args),
        }
    }

    /// The text without its code word. It names keys and channels only for administrators (`is_for_admin`).
    pub fn text(&self, user: &[u8], object: &[u8], is_for_admin: bool) -> Vec<u8> {
        let (before, after) = match self.reason {
            Reason::Command => (" has no permissions to run the '", "' command"),
            Reason::Key if is_for_admin => (" has no permissions to access the '", "' key"),
            Reason::Channel if is_for_admin => (" has no permissions to access the '", "' channel"),
            Reason::Database if is_for_admin => (" has no permissions to access database ", ""),
            Reason::Key => return b"No permissions to access a key".to_vec(),
            Reason::Channel => return b"No permissions to access a channel".to_vec(),
            Reason::Database | Reason::Login | Reason::Certificate => {
                return b"No permissions to access database".to_vec();
            }
        };
        [b"User ", user, before.as_bytes(), object, after.as_bytes()].concat()
    }
}

/// Where a request runs.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// The selected database.
    pub db: DbIndex,
    /// How many databases there are.
    pub database_count: u32,
}

/// Whether these rules permit a request in this database.
///
/// # Errors
/// [`Denied`]: with several selectors, the reason of the one that came closest.
pub fn check(rules: &Rules, row: &Row<impl Runs>, args: &Args<'_>, scope: Scope) -> Result<(), Denied> {
    let mut closest: Option<Denied> = None;
    for selector in rules.all_selectors() {
        let Err(denied) = check_selector(selector, row, args, scope) else { return Ok(()) };
        let is_closer = |before: Denied| (denied.reason, denied.argument) > (before.reason, before.argument);
        if closest.is_none_or(is_closer) {
            closest = Some(denied);
        }
    }
    closest.map_or(Ok(()), Err)
}

/// Whether a request may read every key: what SORT with patterns that lead to other keys needs.
pub fn may_read_all_keys(rules: &Rules, row: &Row<impl Runs>, args: &Args<'_>, scope: Scope) -> bool {
    let reads_all = |selector: &Selector| {
        selector.has_all_keys || selector.keys.iter().any(|known| known.read && *known.pattern == *b"*")
    };
    rules.all_selectors().any(|selector| reads_all(selector) && check_selector(selector, row, args, scope).is_ok())
}

/// Whether these rules permit a channel; a pattern only if a rule is the same pattern.
pub fn permits_channel(rules: &Rules, channel: &[u8], is_pattern: bool) -> bool {
    rules.all_selectors().any(|selector| selector_permits_channel(selector, channel, is_pattern))
}

fn check_selector(selector: &Selector, row: &Row<impl Runs>, args: &Args<'_>, scope: Scope) -> Result<(), Denied> {
    check_databases(selector, row, args, scope)?;
    let is_always_permitted = selector.has_all_commands || row.spec.flags.intersects(Flags::NO_AUTH | Flags::NO_RIGHT);
    if !is_always_permitted && !selector.permits(row.index, args.bytes(1)) {
        return Err(Denied { reason: Reason::Command, argument: 0 });
    }
    check_keys(selector, row, args)?;
    check_channels(selector, row, args)
}

fn check_databases(selector: &Selector, row: &Row<impl Runs>, args: &Args<'_>, scope: Scope) -> Result<(), Denied> {
    let Some(permitted) = &selector.databases else { return Ok(()) };
    let denied = |argument| Denied { reason: Reason::Database, argument };
    let name = row.spec.name;
    if name == "flushall" {
        return Err(denied(0));
    }
    let named = databases_in(name, args);
    let number = |argument: &usize| {
        let number = args.bytes(*argument).and_then(parse_integer).and_then(|number| u32::try_from(number).ok());
        number.filter(|number| *number < scope.database_count)
    };
    // The command itself refuses a database that is not there.
    let numbers: Option<Vec<u32>> = named.iter().map(number).collect();
    for (argument, number) in named.into_iter().zip(numbers.unwrap_or_default()) {
        if !permitted.contains(&number) {
            return Err(denied(argument));
        }
    }
    if is_in_selected(row) && !permitted.contains(&scope.db.0) { Err(denied(0)) } else { Ok(()) }
}

/// Whether a command looks at the selected database.
fn is_in_selected(row: &Row<impl Runs>) -> bool {
    let spec = row.spec;
    let is_in_any = spec.flags.intersects(Flags::READONLY | Flags::WRITE)
        || spec.categories.contains(Categories::KEYSPACE)
        || spec.keys.iter().any(|keys| !keys.flags.contains(KeyFlags::NOT_KEY));
    is_in_any && spec.name != "swapdb"
}

fn check_keys(selector: &Selector, row: &Row<impl Runs>, args: &Args<'_>) -> Result<(), Denied> {
    if selector.has_all_keys {
        return Ok(());
    }
    let mut denied = None;
    // Where the arguments do not fit the specifications, the command refuses to run.
    row.spec.visit_keys(args, |argument, spec| {
        let key = args.bytes(argument).unwrap_or_default();
        if denied.is_none() && !spec.flags.contains(KeyFlags::NOT_KEY) && !permits_key(selector, key, spec, args) {
            denied = Some(Denied { reason: Reason::Key, argument });
        }
    });
    denied.map_or(Ok(()), Err)
}

fn permits_key(selector: &Selector, key: &[u8], spec: &KeySpec, args: &Args<'_>) -> bool {
    let flags = spec.flags_in(args);
    let reads = flags.contains(KeyFlags::ACCESS);
    let writes = flags.intersects(KeyFlags::INSERT | KeyFlags::DELETE | KeyFlags::UPDATE);
    selector
        .keys
        .iter()
        .filter(|known| (known.read || !reads) && (known.write || !writes))
        .any(|known| matches(&known.pattern, key))
}

/// Whether a pattern permits a key or a channel. As in Valkey, `*` does not match an empty name here: only
/// `allkeys`, `allchannels` and an empty pattern permit it.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if name.is_empty() { pattern.is_empty() } else { glob::matches(pattern, name) }
}

fn check_channels(selector: &Selector, row: &Row<impl Runs>, args: &Args<'_>) -> Result<(), Denied> {
    if selector.has_all_channels {
        return Ok(());
    }
    let (channels, is_pattern) = match row.spec.name {
        "publish" | "spublish" => (1..2, false),
        "subscribe" | "ssubscribe" => (1..args.len(), false),
        "psubscribe" => (1..args.len(), true),
        _ => return Ok(()),
    };
    for argument in channels {
        if !selector_permits_channel(selector, args.bytes(argument).unwrap_or_default(), is_pattern) {
            return Err(Denied { reason: Reason::Channel, argument });
        }
    }
    Ok(())
}

fn selector_permits_channel(selector: &Selector, channel: &[u8], is_pattern: bool) -> bool {
    selector.has_all_channels
        || selector.channels.iter().any(|known| match is_pattern {
            true => **known == *channel,
            false => matches(known, channel),
        })
}
