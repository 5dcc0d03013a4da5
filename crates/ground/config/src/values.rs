//! The types of values that are more than a number or a flag.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use zeroize::Zeroizing;

/// Declares an enumeration whose variants have the words of the configuration file.
macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every choice, in the order of [`Self::WORDS`].
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// The words, as `CONFIG GET` answers them.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// The word of this choice.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

choices! {
    /// The channels of a new user.
    ChannelDefault {
        /// All.
        All = "allchannels",
        /// None.
        #[default]
        None = "resetchannels",
    }
}

choices! {
    /// How new passwords of users are kept.
    PasswordHash {
        /// As Redis and Valkey keep them.
        #[default]
        Sha256 = "sha256",
        /// Salted, and slow to guess.
        Argon2id = "argon2id",
    }
}

choices! {
    /// When values go to the tier.
    TierPolicy {
        /// When memory is short.
        #[default]
        Pressure = "pressure",
        /// Soon after they are written.
        Write = "write",
    }
}

choices! {
    /// What the tier is made of.
    TierMedium {
        /// Persistent memory where the file system grants it, else files.
        #[default]
        Auto = "auto",
        /// Mapped persistent memory.
        Dax = "dax",
        /// Mapped files: persistent memory, or the page cache.
        Shared = "shared",
        /// Files that are read and written by system calls.
        File = "file",
    }
}

choices! {
    /// How strings are compressed.
    CompressionCodec {
        /// Not at all.
        #[default]
        Off = "off",
        /// By LZF.
        Lzf = "lzf",
        /// By LZ4.
        Lz4 = "lz4",
        /// By zstd.
        Zstd = "zstd",
    }
}

choices! {
    /// When strings are compressed.
    CompressionTime {
        /// As they are written.
        Write = "write",
        /// When they are cold.
        #[default]
        Idle = "idle",
    }
}

choices! {
    /// Which key goes first when memory is full. The order of the words is that of Valkey's error text.
    EvictionPolicy {
        /// The least recently used among keys with an expiration.
        VolatileLru = "volatile-lru",
        /// The least frequently used among keys with an expiration.
        VolatileLfu = "volatile-lfu",
        /// Any key with an expiration.
        VolatileRandom = "volatile-random",
        /// The key whose expiration is nearest.
        VolatileTtl = "volatile-ttl",
        /// The least recently used key.
        AllkeysLru = "allkeys-lru",
        /// The least frequently used key.
        AllkeysLfu = "allkeys-lfu",
        /// Any key.
        AllkeysRandom = "allkeys-random",
        /// None: commands that need memory are refused.
        #[default]
        NoEviction = "noeviction",
    }
}

impl EvictionPolicy {
    /// Whether it needs to know how often keys are used, and not when they were last.
    pub fn counts_uses(self) -> bool {
        matches!(self, Self::VolatileLfu | Self::AllkeysLfu)
    }

    /// Whether it needs to know when keys were last used.
    pub fn needs_times(self) -> bool {
        matches!(self, Self::VolatileLru | Self::AllkeysLru)
    }
}

choices! {
    /// Which clients may use the `DEBUG` command.
    DebugCommand {
        /// No client.
        #[default]
        No = "no",
        /// Every client.
        Yes = "yes",
        /// Clients over loopback or the unix socket.
        Local = "local",
    }
}

choices! {
    /// Whether TLS clients need a certificate.
    TlsAuthClients {
        /// They are not asked.
        No = "no",
        /// They need one.
        #[default]
        Yes = "yes",
        /// They are asked, and one that they show must be valid.
        Optional = "optional",
    }
}

choices! {
    /// Which name in a client's certificate is its user.
    TlsClientUser {
        /// None: clients log in.
        #[default]
        Off = "off",
        /// The common name of the subject.
        CommonName = "CN",
        /// A URI among the alternative names of the subject.
        Uri = "URI",
    }
}

choices! {
    /// When the command log is made durable.
    AppendFsync {
        /// Before a write is acknowledged.
        Always = "always",
        /// In the background, within the window of the log.
        #[default]
        Everysec = "everysec",
        /// Whenever the operating system does it.
        No = "no",
    }
}

choices! {
    /// What a failed write or sync of the command log leads to.
    LogErrorAction {
        /// Writes are refused until a new segment holds everything that is not known to be durable.
        #[default]
        Rotate = "rotate",
        /// The process ends.
        Stop = "stop",
    }
}

/// When a checkpoint is taken automatically: after `seconds`, if there were at least `changes` changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavePoint {
    /// Seconds since the last checkpoint.
    pub seconds: u64,
    /// Changes since the last checkpoint.
    pub changes: u64,
}

/// The points of `save`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavePoints {
    /// In the order they were given.
    pub points: Vec<SavePoint>,
    /// They are the defaults: the first point that is given takes the place of all of them.
    pub(crate) replaceable: bool,
}

/// Where to listen: one word of `bind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub host: Host,
    /// Whether the start continues when this host has no such address (a `-` before it in the file).
    pub optional: bool,
}

/// The address part of one word of `bind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// `*`: every IPv4 address of this host.
    AnyV4,
    /// `::*`: every IPv6 address of this host.
    AnyV6,
    /// `localhost`: loopback, by IPv4.
    Localhost,
    /// One address.
    Ip(IpAddr),
}

impl Address {
    /// Parses one word: `-` for optional, then `*`, `::*`, `localhost` or an address. Host names are not taken: what a
    /// server listens on should not depend on a name service.
    pub fn parse(word: &[u8]) -> Option<Self> {
        let (optional, rest) = match word.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        let host = match rest {
            b"*" => Host::AnyV4,
            b"::*" => Host::AnyV6,
            name if name.eq_ignore_ascii_case(b"localhost") => Host::Localhost,
            address => Host::Ip(std::str::from_utf8(address).ok()?.parse().ok()?),
        };
        Some(Self { host, optional })
    }

    /// The address to give to `bind(2)`.
    pub fn ip(&self) -> IpAddr {
        match self.host {
            Host::AnyV4 => Ipv4Addr::UNSPECIFIED.into(),
            Host::AnyV6 => Ipv6Addr::UNSPECIFIED.into(),
            Host::Localhost => Ipv4Addr::LOCALHOST.into(),
            Host::Ip(ip) => ip,
        }
    }

    /// Whether only this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        self.ip().to_canonical().is_loopback()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.optional {
            f.write_str("-")?;
        }
        match self.host {
            Host::AnyV4 => f.write_str("*"),
            Host::AnyV6 => f.write_str("::*"),
            Host::Localhost => f.write_str("localhost"),
            Host::Ip(ip) => ip.fmt(f),
        }
    }
}

/// When a client that does not read its replies is closed. Zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Closed at once above this many unsent bytes.
    pub hard_bytes: u64,
    /// Closed when above this many unsent bytes for [`Self::soft_seconds`].
    pub soft_bytes: u64,
    /// How long the soft limit is tolerated.
    pub soft_seconds: u64,
}

/// The three classes of `client-output-buffer-limit`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimits {
    /// Ordinary clients, MONITOR included.
    pub normal: OutputLimit,
    /// Replicas.
    pub replica: OutputLimit,
    /// Clients with subscriptions.
    pub pubsub: OutputLimit,
}

impl OutputLimits {
    /// The limits with the word of their class in the file.
    pub(crate) fn classes(&self) -> [(&'static str, OutputLimit); 3] {
        [("normal", self.normal), ("replica", self.replica), ("pubsub", self.pubsub)]
    }

    /// The limit of a class by its word, `slave` and any case included.
    pub(crate) fn class_mut(&mut self, word: &[u8]) -> Option<&mut OutputLimit> {
        if word.eq_ignore_ascii_case(b"normal") {
            Some(&mut self.normal)
        } else if word.eq_ignore_ascii_case(b"replica") || word.eq_ignore_ascii_case(b"slave") {
            Some(&mut self.replica)
        } else if word.eq_ignore_ascii_case(b"pubsub") {
            Some(&mut self.pubsub)
        } else {
            None
        }
    }
}

/// Where a database keeps its entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// All in memory.
    #[default]
    Memory,
    /// In files; memory is their cache.
    Disk,
}

impl Engine {
    /// The word for it in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }

    pub(crate) fn parse(word: &[u8]) -> Option<Self> {
        [Self::Memory, Self::Disk].into_iter().find(|engine| engine.word().as_bytes().eq_ignore_ascii_case(word))
    }
}

/// What `database` says of each database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Databases {
    /// A bit for each database on disk, by number.
    on_disk: [u64; 4],
    /// A bit for each database that keeps its names in order, by number.
    ordered: [u64; 4],
    /// Those with a policy of their own.
    policies: BTreeMap<u32, EvictionPolicy>,
}

impl Databases {
    /// Databases that it can say something of: those with lower numbers.
    pub const COUNT_MAX: u32 = 256;

    /// The engine of a database.
    pub fn engine(&self, number: u32) -> Engine {
        if bit_of(&self.on_disk, number) { Engine::Disk } else { Engine::Memory }
    }

    /// The numbers of databases on disk, ascending.
    pub fn on_disk(&self) -> impl Iterator<Item = u32> + '_ {
        (0..Self::COUNT_MAX).filter(move |number| self.engine(*number) == Engine::Disk)
    }

    /// Gives a database an engine; without effect from [`Self::COUNT_MAX`] on.
    pub fn set_engine(&mut self, number: u32, engine: Engine) {
        set_bit(&mut self.on_disk, number, engine == Engine::Disk);
    }

    /// Whether a database keeps its names in order.
    pub fn is_ordered(&self, number: u32) -> bool {
        bit_of(&self.ordered, number)
    }

    /// The numbers of databases that keep their names in order, ascending.
    pub fn ordered(&self) -> impl Iterator<Item = u32> + '_ {
        (0..Self::COUNT_MAX).filter(move |number| self.is_ordered(*number))
    }

    /// Says whether a database keeps its names in order; without effect from [`Self::COUNT_MAX`] on.
    pub fn set_ordered(&mut self, number: u32, is_ordered: bool) {
        set_bit(&mut self.ordered, number, is_ordered);
    }

    /// The policy that a database was given; `None` when it was given none.
    pub fn policy(&self, number: u32) -> Option<EvictionPolicy> {
        self.policies.get(&number).copied()
    }

    /// The databases that were given a policy, ascending, with it.
    pub fn policies(&self) -> impl Iterator<Item = (u32, EvictionPolicy)> + '_ {
        self.policies.iter().map(|(number, policy)| (*number, *policy))
    }

    /// Gives a database a policy, or takes it away.
    pub fn set_policy(&mut self, number: u32, policy: Option<EvictionPolicy>) {
        match policy {
            Some(policy) => _ = self.policies.insert(number, policy),
            None => _ = self.policies.remove(&number),
        }
    }
}

const _: () = assert!(Databases::COUNT_MAX == u64::BITS * 4);

fn bit_of(words: &[u64; 4], number: u32) -> bool {
    let word = words.get((number / 64) as usize).copied().unwrap_or(0);
    word >> (number % 64) & 1 == 1
}

fn set_bit(words: &mut [u64; 4], number: u32, is_set: bool) {
    let bit = 1 << (number % 64);
    if let Some(word) = words.get_mut((number / 64) as usize) {
        if is_set { *word |= bit } else { *word &= !bit }
    }
}

/// Where a primary listens. Printed as `replicaof` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryAddress {
    /// Name or address.
    pub host: String,
    /// TCP port, not 0.
    pub port: u16,
}

impl fmt::Display for PrimaryAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.port)
    }
}

/// An amount of memory: in bytes, or as a share of `maxmemory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryShare {
    /// This many bytes.
    Bytes(u64),
    /// This many hundredths of `maxmemory`, 1 to 100.
    Percent(u8),
}

impl Default for MemoryShare {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// A password. It is wiped from memory when dropped, and `Debug` does not show it.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    /// Takes the bytes of a password; empty means none.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(bytes.to_vec()))
    }

    /// The bytes. Compare them in constant time only.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether no password is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "(none)" } else { "(redacted)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What counts as loopback decides whether a server without a password may start.
    #[test]
    fn loopback() {
        for (word, loopback) in [
            ("127.0.0.1", true),
            ("-127.8.9.1", true),
            ("::1", true),
            ("-::1", true),
            ("::ffff:127.0.0.1", true),
            ("localhost", true),
            ("*", false),
            ("-::*", false),
            ("0.0.0.0", false),
            ("::", false),
            ("10.0.0.1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            let address = Address::parse(word.as_bytes()).unwrap();
            assert_eq!(address.is_loopback(), loopback, "{word}");
            assert_eq!(address.to_string(), word);
        }
        for word in ["", "-", "--1.2.3.4", "example.org", "1.2.3", "127.0.0.1:6379", "[::1]"] {
            assert_eq!(Address::parse(word.as_bytes()), None, "{word}");
        }
    }

    /// `Debug` of settings goes into logs.
    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?} {:?}", Secret::new(b"abc"), Secret::default()), "(redacted) (none)");
    }
}

choices! {
    /// The lowest level of messages that the log has.
    LogLevel {
        /// Everything.
        Debug = "debug",
        /// More than an operator needs.
        Verbose = "verbose",
        /// What happens.
        #[default]
        Notice = "notice",
        /// What an operator has to look at.
        Warning = "warning",
        /// No messages.
        Nothing = "nothing",
    }
}

choices! {
    /// The form of a line of the log.
    LogFormat {
        /// As Redis and Valkey write it.
        #[default]
        Legacy = "legacy",
        /// `key=value` pairs.
        Logfmt = "logfmt",
        /// A JSON object.
        Json = "json",
    }
}

choices! {
    /// The form of times in the log, which are in UTC.
    LogTime {
        /// `22 Nov 2026 06:07:35.120`
        #[default]
        Legacy = "legacy",
        /// `2026-11-22T06:07:35.120Z`
        Iso8601 = "iso8601",
        /// Milliseconds since 1970.
        Milliseconds = "milliseconds",
    }
}

choices! {
    /// Where a replica loads a copy that replaces its data.
    CopyLoad {
        /// In place of the old data.
        #[default]
        Disabled = "disabled",
        /// The same: every copy is received into a file first.
        OnEmptyDb = "on-empty-db",
        /// Next to the old data, which is served meanwhile.
        SwapDb = "swapdb",
        /// As `Disabled`.
        FlushBeforeLoad = "flush-before-load",
    }
}

choices! {
    /// Where clients of SSDB find hashes, zsets and queues.
    SsdbNamespaces {
        /// In the database of keys: a name has one type.
        #[default]
        Shared = "shared",
        /// In the three databases after that of keys: a name may be of each type at once.
        Separate = "separate",
    }
}

choices! {
    /// What waits for word that the server is ready.
    Supervision {
        /// Nothing.
        #[default]
        No = "no",
        /// systemd.
        Systemd = "systemd",
        /// systemd, if it has started the server.
        Auto = "auto",
    }
}

/// How the server is to end: the words of SHUTDOWN, `shutdown-on-sigterm` and `shutdown-on-sigint`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndFlags {
    /// `save` or `nosave`; `None` leaves it to the save points.
    pub save: Option<bool>,
    /// `force`: ends although what is to be saved cannot be.
    pub force: bool,
    /// `now`: replicas are not waited for. There are none.
    pub now: bool,
    /// `safe`: not while the server owns slots of a cluster. It never does.
    pub safe: bool,
    /// `failover`: hands over to a replica first. There is none.
    pub failover: bool,
}

impl EndFlags {
    /// Adds a word; false when it is unknown, or contradicts an earlier one.
    pub fn add(&mut self, word: &[u8]) -> bool {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        match self.save {
            _ if is("force") => self.force = true,
            _ if is("now") => self.now = true,
            _ if is("safe") => self.safe = true,
            _ if is("failover") => self.failover = true,
            None | Some(true) if is("save") => self.save = Some(true),
            None | Some(false) if is("nosave") => self.save = Some(false),
            _ => return false,
        }
        true
    }
}

impl fmt::Display for EndFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            (self.save == Some(true), "save"),
            (self.save == Some(false), "nosave"),
            (self.now, "now"),
            (self.force, "force"),
            (self.safe, "safe"),
            (self.failover, "failover"),
        ];
        let words: Vec<_> = words.into_iter().filter_map(|(is_set, word)| is_set.then_some(word)).collect();
        f.write_str(if words.is_empty() { "default".to_owned() } else { words.join(" ") }.as_str())
    }
}
