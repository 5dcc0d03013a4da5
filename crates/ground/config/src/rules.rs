//! What settings have to keep together.

use crate::{Engine, EvictionPolicy, RuleError, Settings, SsdbNamespaces, TierMedium, TlsClientUser, Warning};
use std::collections::BTreeSet;

/// Whether a server may start with these, and what it should then say.
pub(crate) fn check(settings: &Settings, given: &BTreeSet<&str>) -> Result<Option<Warning>, RuleError> {
    let listens = has_port(settings) && !settings.bind.is_empty();
    if settings.memcached_database >= settings.databases {
        return Err(RuleError::NoSuchDatabase { number: settings.memcached_database, count: settings.databases });
    }
    check_ssdb(settings)?;
    check_cluster(settings)?;
    check_page(settings)?;
    check_otlp(settings, given)?;
    check_databases(settings)?;
    if settings.tier_read_delay_ns.max(settings.tier_write_delay_ns) > 0 && settings.tier_medium != TierMedium::Shared {
        return Err(RuleError::DelayWithoutShared { medium: settings.tier_medium });
    }
    if let Some(number) = settings.per_database.on_disk().next().filter(|_| settings.replicaof.is_some()) {
        return Err(RuleError::ReplicaWithDisk { number });
    }
    if !listens && settings.unixsocket.is_none() {
        return Err(RuleError::NowhereToListen);
    }
    Ok(exposure(settings))
}

/// A database that is named for clients of SSDB is on disk.
fn check_ssdb(settings: &Settings) -> Result<(), RuleError> {
    let is_on_disk = |number: u32| settings.per_database.on_disk().any(|on_disk| on_disk == number);
    let first = settings.database_of_ssdb();
    if settings.ssdb_database >= 0 {
        if first >= settings.databases {
            return Err(RuleError::NoSuchSsdbDatabase { number: first, count: settings.databases });
        }
        if !is_on_disk(first) {
            return Err(RuleError::SsdbInMemory { number: first });
        }
    }
    if settings.ssdb_namespaces == SsdbNamespaces::Shared {
        return Ok(());
    }
    let last = first.saturating_add(SSDB_TYPES - 1);
    if last >= settings.databases || !(first..=last).all(|number| is_on_disk(number) == is_on_disk(first)) {
        return Err(RuleError::SsdbNamespaces {
            first,
            last,
            engine: if is_on_disk(first) { "disk" } else { "memory" },
        });
    }
    Ok(())
}

/// Keys, hashes, zsets and queues.
const SSDB_TYPES: u32 = 4;

impl Settings {
    /// The database that clients of SSDB use.
    pub fn database_of_ssdb(&self) -> u32 {
        let first = || self.per_database.on_disk().next().unwrap_or(0);
        u32::try_from(self.ssdb_database).unwrap_or_else(|_| first())
    }
}

/// Other hosts reach the page with a login over TLS, or not at all.
fn check_page(settings: &Settings) -> Result<(), RuleError> {
    let mut addresses = settings.http_bind.iter().filter(|_| settings.http_port != 0);
    let Some(address) = addresses.find(|address| !address.is_loopback()).map(ToString::to_string) else {
        return Ok(());
    };
    let has_users = settings.acl_file.is_some() || !settings.users.is_empty();
    let has_proofs = settings.http_token_file.is_some() || settings.tls_auth_clients_user != TlsClientUser::Off;
    if settings.requirepass.is_empty() && !has_users && !has_proofs {
        return Err(RuleError::PageWithoutLogin { address });
    }
    if settings.http_tls { Ok(()) } else { Err(RuleError::PageWithoutTls { address }) }
}

/// Figures are sent by a program that can, to a URL.
fn check_otlp(settings: &Settings, given: &BTreeSet<&str>) -> Result<(), RuleError> {
    let differs = |name: &str| settings.get(&[name]) != Settings::default().get(&[name]);
    let asks = |name: &&&str| name.starts_with("otlp-") && differs(name);
    if let Some(directive) = given.iter().find(asks).filter(|_| !cfg!(feature = "otlp")) {
        return Err(RuleError::OtlpNotBuilt { directive: (*directive).to_owned() });
    }
    if let Some((number, _)) = (1..).zip(settings.otlp_headers()).find(|(_, header)| header.is_none()) {
        return Err(RuleError::OtlpHeader { number });
    }
    let url = &settings.otlp_endpoint;
    let place = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = place.and_then(|place| place.split('/').next()).unwrap_or_default();
    let is_url = !host.is_empty() && url.bytes().all(|byte| byte.is_ascii_graphic());
    if is_url || url.is_empty() { Ok(()) } else { Err(RuleError::OtlpEndpoint { url: url.clone() }) }
}

impl Settings {
    /// The names and values of `otlp-headers`; `None` for what is no header.
    pub fn otlp_headers(&self) -> Vec<Option<(String, String)>> {
        let text = String::from_utf8_lossy(self.otlp_headers.expose());
        let is_name = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        };
        let header = |text: &str| {
            let (name, value) = text.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            let is_value = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
            (is_name(name) && is_value).then(|| (name.to_owned(), value.to_owned()))
        };
        text.split(',').filter(|text| !text.is_empty()).map(header).collect()
    }
}

/// What ARCUS needs.
fn check_cluster(settings: &Settings) -> Result<(), RuleError> {
    let list = &settings.arcus_zookeeper;
    let is_server = |server: &str| {
        let parts = server.rsplit_once(':');
        parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port != 0))
    };
    match list.as_str() {
        "" => Ok(()),
        _ if !list.split(',').all(is_server) => Err(RuleError::ZookeeperServers { list: list.clone() }),
        _ if settings.memcached_port == 0 => Err(RuleError::ZookeeperWithoutPort),
        _ => Ok(()),
    }
}

/// The directives that [`check_databases`] depends on.
pub(crate) const DATABASES: [&str; 3] = ["database", "maxmemory-policy", "appendonly"];

/// Databases on disk are there, and have the log. So are databases with policies, and what these need of keys is known.
pub(crate) fn check_databases(settings: &Settings) -> Result<(), RuleError> {
    check_policies(settings)?;
    let is_in_memory = |number: &u32| settings.per_database.engine(*number) == Engine::Memory;
    if let Some(number) = settings.per_database.ordered().find(is_in_memory) {
        return Err(RuleError::OrderedInMemory { number });
    }
    let Some(last) = settings.per_database.on_disk().last() else { return Ok(()) };
    if last >= settings.databases {
        return Err(RuleError::NoSuchDiskDatabase { number: last, count: settings.databases });
    }
    if settings.appendonly { Ok(()) } else { Err(RuleError::DiskWithoutLog { number: last }) }
}

fn check_policies(settings: &Settings) -> Result<(), RuleError> {
    let databases = &settings.per_database;
    if let Some((number, _)) = databases.policies().find(|(number, _)| *number >= settings.databases) {
        return Err(RuleError::NoSuchEvictingDatabase { number, count: settings.databases });
    }
    let evicts = |number: &u32| databases.policy(*number).is_some_and(|policy| policy != EvictionPolicy::NoEviction);
    if let Some(number) = databases.on_disk().find(evicts) {
        let policy = databases.policy(number).unwrap_or_default();
        return Err(RuleError::DiskWithEviction { number, policy });
    }
    let global = ("maxmemory-policy".to_owned(), settings.maxmemory_policy);
    let own = databases.policies().map(|(number, policy)| (format!("database {number} maxmemory-policy"), policy));
    let all: Vec<(String, EvictionPolicy)> = std::iter::once(global).chain(own).collect();
    let first = |is: fn(EvictionPolicy) -> bool| {
        let found = all.iter().find(|(_, policy)| is(*policy));
        found.map(|(name, policy)| format!("{name} {policy}"))
    };
    match (first(EvictionPolicy::counts_uses), first(EvictionPolicy::needs_times)) {
        (Some(lfu), Some(lru)) => Err(RuleError::TimesAndCounts { lfu, lru }),
        _ => Ok(()),
    }
}

impl Settings {
    /// Whether `maxmemory-policy`, or that of a database, counts how often keys are used.
    pub fn counts_uses(&self) -> bool {
        let mut own = self.per_database.policies();
        self.maxmemory_policy.counts_uses() || own.any(|(_, policy)| policy.counts_uses())
    }

    /// The database that memcached clients have for themselves: any but 0, which other clients use unless they choose
    /// one. `None` without such clients, and where they share one.
    pub fn own_memcached_database(&self) -> Option<u32> {
        let has_port = self.memcached_port != 0;
        (has_port && self.memcached_database != 0).then_some(self.memcached_database)
    }

    /// What is evicted of a database. One that memcached clients have for themselves is a cache, unless `database` says
    /// otherwise.
    pub fn policy_of_database(&self, number: u32) -> EvictionPolicy {
        let cache = if self.counts_uses() { EvictionPolicy::AllkeysLfu } else { EvictionPolicy::AllkeysLru };
        let is_cache = self.own_memcached_database() == Some(number) && !self.is_on_disk(number);
        let otherwise = if is_cache { cache } else { self.maxmemory_policy };
        self.per_database.policy(number).unwrap_or(otherwise)
    }

    /// The databases whose policy need not be `maxmemory-policy`, each once, with it.
    pub fn policies_of_databases(&self) -> Vec<(u32, EvictionPolicy)> {
        let mut numbers: Vec<u32> = self.per_database.policies().map(|(number, _)| number).collect();
        numbers.extend(self.own_memcached_database().filter(|number| !numbers.contains(number)));
        numbers.into_iter().map(|number| (number, self.policy_of_database(number))).collect()
    }

    fn is_on_disk(&self, number: u32) -> bool {
        self.per_database.engine(number) == Engine::Disk
    }
}

fn has_port(settings: &Settings) -> bool {
    settings.port != 0 || settings.tls_port != 0 || settings.memcached_port != 0 || settings.ssdb_port != 0
}

/// What a server that listens beyond loopback without a password says. Users defined elsewhere may have one.
fn exposure(settings: &Settings) -> Option<Warning> {
    if !has_port(settings) || !settings.requirepass.is_empty() || settings.defines_default_user() {
        return None;
    }
    let address = settings.bind.iter().find(|address| !address.is_loopback())?.to_string();
    Some(if settings.protected_mode { Warning::Protected { address } } else { Warning::Exposed { address } })
}
