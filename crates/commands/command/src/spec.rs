//! The command table's rows: everything about a command except what it does.
//!
//! A command is one `static` in its family's file: its name, arity, flags, where its keys stand, its documentation, and
//! the function that runs it. `COMMAND`, `COMMAND DOCS`, key extraction, locking, access control and the reference
//! pages all come from the row; nothing about a command is written down twice.
//!
//! What runs a command is a parameter of its row, `R`. So sessions, users and the parts of the host know rows, although
//! a function is given all of these ([`Ctx`](crate::Ctx)): only [`context`](crate::context) says what `R` is.

use crate::{Args, Stop};
use base::UnixMs;
use engine::Entry;
use proto::ReplyBuffer;

/// One row of the command table.
pub struct Spec<R> {
    /// Lower case; of a subcommand only its own word (`get` of `config|get`).
    pub name: &'static str,
    /// Number of arguments with the name (and, for a subcommand, with its container); negative means "at least".
    pub arity: i16,
    /// How it behaves, as COMMAND INFO reports it.
    pub flags: Flags,
    /// Access control categories beyond those that follow from the flags.
    pub categories: Categories,
    /// Where its keys stand. The only way a command may reach a key.
    pub keys: &'static [KeySpec],
    /// Which shards it needs locked while it runs.
    pub locks: Locks,
    /// What COMMAND DOCS says.
    pub docs: &'static Docs,
    /// What it does.
    pub run: R,
}

/// What runs a command when its name and arity are right.
pub trait Runs: Copy + 'static {
    /// The subcommands of what has some; alone it is only the first word.
    fn subcommands(&self) -> Option<&'static [&'static Spec<Self>]>;
}

/// The function of a command that answers from one entry. An error becomes the reply.
pub type Answer = fn(&Look<'_>, &mut ReplyBuffer) -> Result<(), Stop>;

/// What such a function is given.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// The entry under the first key; `None` when that is absent.
    pub entry: Option<&'a Entry<'a>>,
    /// The arguments, name first; arity is right.
    pub args: Args<'a>,
    /// Wall time of this command.
    pub now: UnixMs,
}

/// The shards a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// None: it touches no entry.
    None,
    /// Those of its keys; all shards when some of its keys follow from what is stored ([`Find::Derived`]).
    Keys,
    /// All: it touches whole keyspaces.
    All,
    /// Those of its keys, as long as it uses no others: a script. All shards once it does, and inside a transaction.
    Declared,
    /// Each shard's, one after the other, while it is looked at: it reads whole keyspaces and promises no one moment
    /// for all of them. Inside a transaction all of them.
    Each,
    /// The one that the scan cursor in this argument names.
    Cursor(usize),
    /// Those of every command queued since MULTI, and of the keys watched.
    Queue,
}

bitflags::bitflags! {
    /// How a command behaves. The order is the order COMMAND INFO prints.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u32 {
        /// May change entries.
        const WRITE = 1 << 0;
        /// Never changes entries.
        const READONLY = 1 << 1;
        /// May need more memory; refused when over `maxmemory` and nothing can be evicted.
        const DENYOOM = 1 << 2;
        /// For administrators.
        const ADMIN = 1 << 3;
        /// About publish/subscribe.
        const PUBSUB = 1 << 4;
        /// Not from scripts.
        const NOSCRIPT = 1 << 5;
        /// May wait.
        const BLOCKING = 1 << 6;
        /// Allowed while loading.
        const LOADING = 1 << 7;
        /// Allowed on a replica with stale data.
        const STALE = 1 << 8;
        /// Not shown to MONITOR.
        const SKIP_MONITOR = 1 << 9;
        /// Not in the slow log.
        const SKIP_COMMANDLOG = 1 << 10;
        /// Allowed after ASKING.
        const ASKING = 1 << 11;
        /// Constant or logarithmic time.
        const FAST = 1 << 12;
        /// Allowed before login.
        const NO_AUTH = 1 << 13;
        /// May run while a script blocks the server.
        const ALLOW_BUSY = 1 << 14;
        /// Not inside MULTI.
        const NO_MULTI = 1 << 15;
        /// Its key positions depend on its arguments.
        const MOVABLEKEYS = 1 << 16;
        /// Its keys may all be left out.
        const NO_MANDATORY_KEYS = 1 << 17;
        /// Not while loading asynchronously.
        const NO_ASYNC_LOADING = 1 << 18;
        /// Changes nothing that clients see, but something that replicas receive. COMMAND INFO does not show it.
        const MAY_REPLICATE = 1 << 19;
        /// Needs no right, but a login. COMMAND INFO does not show it.
        const NO_RIGHT = 1 << 20;
        /// A part of a request whose last part answers a denial. COMMAND INFO does not show it.
        const PART = 1 << 21;
        /// In the audit log, although no [`Self::ADMIN`] command. COMMAND INFO does not show it.
        const AUDITED = 1 << 22;
        /// Runs inside MULTI, since it acts on the transaction or ends it. COMMAND INFO does not show it.
        const NOT_QUEUED = 1 << 23;
        /// A RESP2 connection with subscriptions may run it. COMMAND INFO does not show it.
        const FOR_SUBSCRIBERS = 1 << 24;
        /// CLIENT CACHING stays in force after it. COMMAND INFO does not show it.
        const KEEPS_CACHING = 1 << 25;
        /// A write that frees memory more than it takes: it runs when others are refused. COMMAND INFO does not show
        /// it.
        const FREES = 1 << 26;

        /// Answers with the string under its first key as it is. COMMAND INFO does not show it.
        const SENDS_STRING = 1 << 27;

        /// What COMMAND INFO does not show.
        const HIDDEN = Self::MAY_REPLICATE.bits() | Self::NO_RIGHT.bits() | Self::PART.bits() | Self::AUDITED.bits()
            | Self::NOT_QUEUED.bits() | Self::FOR_SUBSCRIBERS.bits() | Self::KEEPS_CACHING.bits() | Self::FREES.bits()
            | Self::SENDS_STRING.bits();
    }
}

bitflags::bitflags! {
    /// Access control categories that do not follow from [`Flags`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Categories: u32 {
        /// Keys of any type.
        const KEYSPACE = 1 << 0;
        /// Strings.
        const STRING = 1 << 1;
        /// Strings as bits.
        const BITMAP = 1 << 2;
        /// The connection itself.
        const CONNECTION = 1 << 3;
        /// Transactions.
        const TRANSACTION = 1 << 4;
        /// Can stall or reveal much.
        const DANGEROUS = 1 << 5;
        /// Lists.
        const LIST = 1 << 6;
        /// Sets.
        const SET = 1 << 7;
        /// Sorted sets.
        const SORTED_SET = 1 << 8;
        /// Hashes.
        const HASH = 1 << 9;
        /// Strings that count different elements.
        const HYPERLOGLOG = 1 << 10;
        /// Places on Earth.
        const GEO = 1 << 11;
        /// Streams.
        const STREAM = 1 << 12;
        /// Scripts.
        const SCRIPTING = 1 << 13;
    }
}

impl<R> Spec<R> {
    /// Whether a request of `count` arguments, name included, can be right.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { count >= arity } else { count == arity }
    }

    /// Where the first key stands, when its place does not depend on the arguments.
    #[inline]
    pub fn first_key(&self) -> Option<usize> {
        match self.keys.first()? {
            KeySpec { begin: Begin::Index(first), find: Find::Range { .. }, condition: None, .. } => Some(*first),
            KeySpec { .. } => None,
        }
    }

    /// Whether it always has exactly one key.
    #[inline]
    pub fn has_one_key(&self) -> bool {
        KeySpec::are_one(self.keys)
    }

    /// The shards that this request needs.
    pub fn locks_in(&self, args: &Args<'_>) -> Locks {
        let has_derived_keys = self.keys.iter().any(|spec| match spec.find {
            Find::Derived(is_used) => is_used(args),
            _ => false,
        });
        if self.locks == Locks::Keys && has_derived_keys { Locks::All } else { self.locks }
    }

    /// Visits the argument index of every key of a request, in the order of the key specifications. False when the
    /// arguments do not fit them (a wrong key count, for one); the command itself will say what is wrong.
    #[inline]
    pub fn visit_keys(&self, args: &Args<'_>, visit: impl FnMut(usize, &'static KeySpec)) -> bool {
        KeySpec::visit_all(self.keys, args, visit)
    }
}

impl<R: Runs> Spec<R> {
    /// The subcommand of this name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Self> {
        self.run.subcommands()?.iter().find(|row| name.eq_ignore_ascii_case(row.name.as_bytes())).copied()
    }
}

/// Where keys stand in a request, after Redis' key specifications.
pub struct KeySpec {
    /// What happens to these keys.
    pub flags: KeyFlags,
    /// Where to begin.
    pub begin: Begin,
    /// How to find the others from there.
    pub find: Find,
    /// What COMMAND DOCS adds.
    pub notes: Option<&'static str>,
    /// What happens to the keys of one request, where that depends on its arguments ([`KeyFlags::VARIABLE_FLAGS`]).
    pub varying: Option<fn(&Args<'_>) -> KeyFlags>,
    /// Whether a request has these keys, where not every one does. Clients do not see it.
    pub condition: Option<fn(&Args<'_>) -> bool>,
}

/// Where the search for keys begins.
#[derive(Clone, Copy, Debug)]
pub enum Begin {
    /// At this argument.
    Index(usize),
    /// After this word.
    Keyword(&'static Keyword),
    /// At a place that no specification for clients can express.
    Unknown,
}

/// A word that precedes keys.
#[derive(Debug)]
pub struct Keyword {
    /// The word, in capitals.
    pub word: &'static str,
    /// The first argument that may be it, counted from the end when negative: what COMMAND INFO shows to clients.
    pub from: i32,
    /// Whether it may be missing, and with it the keys.
    pub is_optional: bool,
    /// Where it stands in a request, also where it could be taken for the value of an option; `None` when it is
    /// missing.
    pub find: fn(&Args<'_>) -> Option<usize>,
}

/// How to find keys from the beginning.
#[derive(Clone, Copy, Debug)]
pub enum Find {
    /// Every `step`-th argument up to the `last`: relative to the beginning when not negative, else counted from the
    /// end (-1 is the last argument); `limit` of 2 or more stops after that fraction of the arguments.
    Range {
        /// Last key.
        last: i32,
        /// Distance between keys.
        step: usize,
        /// Fraction of the arguments, when 2 or more.
        limit: usize,
    },
    /// A count at `count` and then that many keys from `first` on, `step` apart, all relative to the beginning.
    Count {
        /// Where the number of keys stands.
        count: usize,
        /// The first key.
        first: usize,
        /// Distance between keys.
        step: usize,
    },
    /// By a rule that no specification for clients can express. It gives the place of the key, if the request has it.
    Rule(fn(&Args<'_>) -> Option<usize>),
    /// Not in the request: they follow from what is stored, if this says of a request that it has such keys.
    Derived(fn(&Args<'_>) -> bool),
}

bitflags::bitflags! {
    /// What happens to the keys of a specification. The order is the order COMMAND INFO prints.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct KeyFlags: u32 {
        /// Reads the value.
        const RO = 1 << 0;
        /// Reads and changes it.
        const RW = 1 << 1;
        /// Overwrites it without reading.
        const OW = 1 << 2;
        /// Removes it without reading.
        const RM = 1 << 3;
        /// Gives the value, or what follows from it, to the client.
        const ACCESS = 1 << 4;
        /// Changes the value.
        const UPDATE = 1 << 5;
        /// Adds to it.
        const INSERT = 1 << 6;
        /// Removes from it.
        const DELETE = 1 << 7;
        /// Not a key, but routed like one.
        const NOT_KEY = 1 << 8;
        /// There may be more keys than the specification finds.
        const INCOMPLETE = 1 << 9;
        /// What happens depends on the arguments.
        const VARIABLE_FLAGS = 1 << 10;
    }
}

impl KeySpec {
    /// Whether these always are exactly one key.
    #[inline]
    pub fn are_one(keys: &[Self]) -> bool {
        matches!(keys, [Self { find: Find::Range { last: 0, .. }, condition: None, .. }])
    }

    /// [`Spec::visit_keys`] of a command with these.
    #[inline]
    pub fn visit_all(keys: &'static [Self], args: &Args<'_>, mut visit: impl FnMut(usize, &'static Self)) -> bool {
        keys.iter().all(|spec| spec.visit(args, |index| visit(index, spec)))
    }

    /// One key at this argument.
    pub const fn one(index: usize, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Index(index),
            find: Find::Range { last: 0, step: 1, limit: 0 },
            notes: None,
            varying: None,
            condition: None,
        }
    }

    /// Keys from `first` to `last` (see [`Find::Range`]), `step` apart.
    pub const fn range(first: usize, last: i32, step: usize, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Index(first),
            find: Find::Range { last, step, limit: 0 },
            notes: None,
            varying: None,
            condition: None,
        }
    }

    /// One key after a word.
    pub const fn behind(keyword: &'static Keyword, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Keyword(keyword),
            find: Find::Range { last: 0, step: 1, limit: 0 },
            notes: None,
            varying: None,
            condition: None,
        }
    }

    /// Everything after a word.
    pub const fn all_behind(keyword: &'static Keyword, flags: KeyFlags) -> Self {
        Self {
            flags: flags.union(KeyFlags::INCOMPLETE),
            find: Find::Range { last: -1, step: 1, limit: 0 },
            ..Self::behind(keyword, flags)
        }
    }

    /// The first half of what follows a word.
    pub const fn half_behind(keyword: &'static Keyword, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Keyword(keyword),
            find: Find::Range { last: -1, step: 1, limit: 2 },
            notes: None,
            varying: None,
            condition: None,
        }
    }

    /// As many keys as the argument `count` says, the first at `first`, `step` apart; both relative to `begin`.
    pub const fn counted(begin: usize, count: usize, first: usize, step: usize, flags: KeyFlags) -> Self {
        Self {
            flags,
            begin: Begin::Index(begin),
            find: Find::Count { count, first, step },
            notes: None,
            varying: None,
            condition: None,
        }
    }

    /// Keys that clients cannot find: [`Find::Rule`], [`Find::Derived`].
    pub const fn unknown(find: Find, flags: KeyFlags) -> Self {
        Self { flags, begin: Begin::Unknown, find, notes: None, varying: None, condition: None }
    }

    /// The same with a note for COMMAND DOCS.
    pub const fn noting(self, notes: &'static str) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// The same in requests of which this holds; others do not have these keys.
    pub const fn only_if(self, condition: fn(&Args<'_>) -> bool) -> Self {
        Self { condition: Some(condition), ..self }
    }

    /// The same with flags that follow from the arguments.
    pub const fn varying(self, flags: fn(&Args<'_>) -> KeyFlags) -> Self {
        Self { varying: Some(flags), flags: self.flags.union(KeyFlags::VARIABLE_FLAGS), ..self }
    }

    /// What happens to the keys in this request, all of which are found.
    pub fn flags_in(&self, args: &Args<'_>) -> KeyFlags {
        self.varying.map_or(self.flags.difference(KeyFlags::INCOMPLETE), |flags| flags(args))
    }

    #[inline]
    fn visit(&self, args: &Args<'_>, mut visit: impl FnMut(usize)) -> bool {
        if self.condition.is_some_and(|holds| !holds(args)) {
            return true;
        }
        let first = match self.begin {
            Begin::Index(first) => first,
            Begin::Keyword(keyword) => match (keyword.find)(args) {
                Some(at) if at.saturating_add(1) < args.len() => at.saturating_add(1),
                _ => return keyword.is_optional,
            },
            Begin::Unknown => 0,
        };
        if first >= args.len() {
            return true;
        }
        match self.find {
            Find::Range { last: 0, .. } => visit(first),
            Find::Range { last, step, limit } => {
                let end = if last >= 0 {
                    first.saturating_add(last.unsigned_abs() as usize)
                } else if limit >= 2 {
                    let span = args.len().saturating_sub(first).checked_div(limit).unwrap_or(0);
                    first.saturating_add(span).saturating_sub(1)
                } else {
                    args.len().saturating_sub(last.unsigned_abs() as usize)
                };
                (first..=end.min(args.len().saturating_sub(1))).step_by(step.max(1)).for_each(visit);
            }
            Find::Count { count, first: offset, step } => {
                let keys = first
                    .checked_add(count)
                    .and_then(|at| args.bytes(at))
                    .and_then(types::string::parse_integer)
                    .and_then(|keys| usize::try_from(keys).ok());
                let Some(keys) = keys else { return false };
                let from = first.saturating_add(offset);
                let span = keys.saturating_sub(1).saturating_mul(step);
                if keys == 0 || from.saturating_add(span) >= args.len() {
                    return false;
                }
                (0..keys).for_each(|index| visit(from.saturating_add(index.saturating_mul(step))));
            }
            Find::Rule(rule) => rule(args).into_iter().for_each(visit),
            Find::Derived(_) => {}
        }
        true
    }
}

/// What COMMAND DOCS answers about a command.
pub struct Docs {
    /// One sentence.
    pub summary: &'static str,
    /// First version of Redis or Valkey that had it; of Onggi, for a command of Onggi alone.
    pub since: &'static str,
    /// The family, as COMMAND DOCS names it.
    pub group: &'static str,
    /// Cost in terms of its input.
    pub complexity: &'static str,
    /// Changes by version.
    pub history: &'static [(&'static str, &'static str)],
    /// For client libraries and proxies, as COMMAND INFO reports them.
    pub tips: &'static [&'static str],
    /// What it takes.
    pub arguments: &'static [Argument],
    /// Set when newer commands replace it.
    pub deprecated: Option<Deprecated>,
    /// Not for applications: `syscmd` in COMMAND DOCS.
    pub for_operators: bool,
}

impl Docs {
    /// Nothing said: what rows complete themselves with.
    pub const NONE: Self = Self {
        summary: "",
        since: "",
        group: "",
        complexity: "",
        history: &[],
        tips: &[],
        arguments: &[],
        deprecated: None,
        for_operators: false,
    };
}

/// Why not to use a command any more.
pub struct Deprecated {
    /// Since this version.
    pub since: &'static str,
    /// What to use in its place.
    pub replaced_by: &'static str,
}

/// One argument of a command, for COMMAND DOCS and the hints of redis-cli.
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: ArgumentKind,
    /// What clients display; usually the name.
    pub display: Option<&'static str>,
    /// The word before it.
    pub token: Option<&'static str>,
    /// What it is for, where the name does not say it.
    pub summary: Option<&'static str>,
    /// First version that had it, when later than the command.
    pub since: Option<&'static str>,
    /// Last version before it was deprecated.
    pub deprecated_since: Option<&'static str>,
    /// May be left out, repeated, repeated with its token.
    pub flags: ArgumentFlags,
}

/// What an argument holds.
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// A 64-bit integer.
    Integer,
    /// A 64-bit integer that belongs to the key specification with this index.
    IntegerOf(usize),
    /// A number.
    Double,
    /// A key of the key specification with this index.
    Key(usize),
    /// A glob pattern.
    Pattern,
    /// A pattern that leads to keys, of the key specification with this index.
    KeyPattern(usize),
    /// A time as seconds or milliseconds since 1970.
    UnixTime,
    /// Only its token.
    PureToken,
    /// One of these.
    OneOf(&'static [Argument]),
    /// These in a row.
    Block(&'static [Argument]),
}

/// Arguments are written as a chain: what it holds, then what is special about it.
impl Argument {
    const fn of(name: &'static str, kind: ArgumentKind) -> Self {
        Self {
            name,
            kind,
            display: None,
            token: None,
            summary: None,
            since: None,
            deprecated_since: None,
            flags: ArgumentFlags::empty(),
        }
    }

    /// A key of the key specification with this index.
    pub const fn key(name: &'static str, spec: usize) -> Self {
        Self::of(name, ArgumentKind::Key(spec))
    }

    /// Any bytes.
    pub const fn string(name: &'static str) -> Self {
        Self::of(name, ArgumentKind::String)
    }

    /// A 64-bit integer.
    pub const fn integer(name: &'static str) -> Self {
        Self::of(name, ArgumentKind::Integer)
    }

    /// A 64-bit integer that belongs to the key specification with this index.
    pub const fn integer_of(name: &'static str, spec: usize) -> Self {
        Self::of(name, ArgumentKind::IntegerOf(spec))
    }

    /// A number.
    pub const fn double(name: &'static str) -> Self {
        Self::of(name, ArgumentKind::Double)
    }

    /// A glob pattern.
    pub const fn pattern(name: &'static str) -> Self {
        Self::of(name, ArgumentKind::Pattern)
    }

    /// A pattern that leads to keys, of the key specification with this index.
    pub const fn key_pattern(name: &'static str, spec: usize) -> Self {
        Self::of(name, ArgumentKind::KeyPattern(spec))
    }

    /// A time since 1970.
    pub const fn unix_time(name: &'static str) -> Self {
        Self::of(name, ArgumentKind::UnixTime)
    }

    /// This word and nothing more.
    pub const fn word(name: &'static str, token: &'static str) -> Self {
        Self::of(name, ArgumentKind::PureToken).after(token)
    }

    /// One of these.
    pub const fn one_of(name: &'static str, choices: &'static [Argument]) -> Self {
        Self::of(name, ArgumentKind::OneOf(choices))
    }

    /// These in a row.
    pub const fn block(name: &'static str, parts: &'static [Argument]) -> Self {
        Self::of(name, ArgumentKind::Block(parts))
    }

    /// After this word.
    pub const fn after(self, token: &'static str) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Displayed under another name.
    pub const fn displayed(self, display: &'static str) -> Self {
        Self { display: Some(display), ..self }
    }

    /// With a sentence about it.
    pub const fn meaning(self, summary: &'static str) -> Self {
        Self { summary: Some(summary), ..self }
    }

    /// There since this version.
    pub const fn since(self, version: &'static str) -> Self {
        Self { since: Some(version), ..self }
    }

    /// Not to be used since this version.
    pub const fn deprecated_since(self, version: &'static str) -> Self {
        Self { deprecated_since: Some(version), ..self }
    }

    /// May be left out.
    pub const fn optional(self) -> Self {
        self.with(ArgumentFlags::OPTIONAL)
    }

    /// May be repeated.
    pub const fn repeated(self) -> Self {
        self.with(ArgumentFlags::MULTIPLE)
    }

    /// May be repeated, with its word each time.
    pub const fn repeated_with_token(self) -> Self {
        self.with(ArgumentFlags::MULTIPLE.union(ArgumentFlags::MULTIPLE_TOKEN))
    }

    const fn with(self, flags: ArgumentFlags) -> Self {
        Self { flags: self.flags.union(flags), ..self }
    }
}

bitflags::bitflags! {
    /// How often an argument may occur. The order is the order COMMAND DOCS prints.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ArgumentFlags: u8 {
        /// May be left out.
        const OPTIONAL = 1 << 0;
        /// May be repeated.
        const MULTIPLE = 1 << 1;
        /// Repeated with its token each time.
        const MULTIPLE_TOKEN = 1 << 2;
    }
}
