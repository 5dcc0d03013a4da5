//! The filters of CLIENT LIST and CLIENT KILL. A connection passes when it passes every filter given; of a filter given
//! twice the later counts, but numbers of connections add up.

use super::client_line::flag_letters;
use crate::clients::{ClientFlags, ClientInfo};
use crate::error::{self, Stop, shown};
use crate::{Args, Ctx};
use base::{DbIndex, UnixMs};
use types::string::parse_integer;

/// What a connection is to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientType {
    Normal,
    Primary,
    Replica,
    PubSub,
}

impl ClientType {
    fn of(info: &ClientInfo) -> Self {
        if info.flags().contains(ClientFlags::SUBSCRIBER) { Self::PubSub } else { Self::Normal }
    }

    fn parse(word: &[u8]) -> Result<Self, Stop> {
        const NAMES: [(&str, ClientType); 6] = [
            ("normal", ClientType::Normal),
            ("slave", ClientType::Replica),
            ("replica", ClientType::Replica),
            ("pubsub", ClientType::PubSub),
            ("master", ClientType::Primary),
            ("primary", ClientType::Primary),
        ];
        let found = NAMES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        found.map(|it| it.1).ok_or_else(|| error::repeating("ERR Unknown client type '", word, "'"))
    }
}

/// The letters `flags` may have; those of features that a connection of this server never has match none.
const FLAG_LETTERS: &[u8] = b"ABEIMNOPRSTUbcdeirtux";

/// What a filter looks at.
#[derive(Debug, PartialEq, Eq)]
enum Test {
    Ids(Vec<u64>),
    Type(ClientType),
    User(Vec<u8>),
    Address(Vec<u8>),
    LocalAddress(Vec<u8>),
    Flags(Vec<u8>),
    Name(Vec<u8>),
    LibraryName(Vec<u8>),
    LibraryVersion(Vec<u8>),
    Db(DbIndex),
    Capabilities,
    NoCapabilities,
    Ip(Vec<u8>),
    Age(i64),
    Idle(i64),
}

impl Test {
    fn passes(&self, info: &ClientInfo, now: UnixMs) -> bool {
        match self {
            Self::Ids(ids) => ids.contains(&info.id),
            Self::Type(kind) => *kind == ClientType::of(info),
            Self::User(name) => *info.user_name() == **name,
            Self::NoCapabilities => true,
            Self::Address(text) => info.address.to_string().as_bytes() == text,
            Self::LocalAddress(text) => info.local_address.to_string().as_bytes() == text,
            Self::Flags(letters) => {
                let has = flag_letters(info).into_bytes();
                letters.iter().all(|letter| has.contains(letter))
            }
            Self::Name(name) => info.names().name.as_bytes() == name && !name.is_empty(),
            Self::LibraryName(name) => info.names().library_name.as_bytes() == name && !name.is_empty(),
            Self::LibraryVersion(version) => info.names().library_version.as_bytes() == version && !version.is_empty(),
            Self::Db(db) => info.db() == *db,
            Self::Capabilities => info.flags().contains(ClientFlags::CAN_REDIRECT),
            Self::Ip(ip) => info.address.host().as_bytes() == ip,
            Self::Age(seconds) => info.age_seconds(now) >= *seconds,
            Self::Idle(seconds) => info.idle_seconds(now) >= *seconds,
        }
    }

    fn is_same_kind(&self, other: &Self) -> bool {
        let kind = |test: &Self| match test {
            Self::NoCapabilities => std::mem::discriminant(&Self::Capabilities),
            other => std::mem::discriminant(other),
        };
        kind(self) == kind(other)
    }
}

/// The filters of one request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// What has to hold (true) or not to hold (false).
    tests: Vec<(Test, bool)>,
    /// SKIPME, when given.
    pub(super) skip_self: Option<bool>,
}

impl Filter {
    /// Reads the arguments from `at` on.
    pub(super) fn parse(ctx: &Ctx<'_>, mut at: usize) -> Result<Self, Stop> {
        let args = ctx.args;
        let mut filter = Self::default();
        while let Some(word) = args.bytes(at) {
            let name = word.to_ascii_lowercase();
            let (name, wanted) = match name.strip_prefix(b"not-") {
                Some(name) => (name, false),
                None => (name.as_slice(), true),
            };
            at = at.saturating_add(1);
            if name == b"id" {
                filter.add_ids(&args, &mut at, wanted)?;
                continue;
            }
            let Some(value) = args.bytes(at) else { return Err(error::SYNTAX) };
            let option = shown(word).to_ascii_uppercase();
            let test = match name {
                b"skipme" if wanted => {
                    filter.skip_self = Some(yes_or_no(value)?);
                    at = at.saturating_add(1);
                    continue;
                }
                b"maxage" if wanted => Test::Age(positive(value, "maxage")?),
                b"idle" if wanted => Test::Idle(positive(value, "idle")?),
                b"type" => Test::Type(ClientType::parse(value)?),
                b"user" if ctx.host.login.users.find(value).is_some() => Test::User(value.to_vec()),
                b"user" => return Err(error::repeating("ERR No such user '", value, "'")),
                b"addr" => Test::Address(value.to_vec()),
                b"laddr" => Test::LocalAddress(value.to_vec()),
                b"flags" => {
                    check_letters(value, FLAG_LETTERS, "flags", wanted)?;
                    Test::Flags(value.to_vec())
                }
                b"name" => Test::Name(value.to_vec()),
                b"lib-name" => Test::LibraryName(value.to_vec()),
                b"lib-ver" => Test::LibraryVersion(value.to_vec()),
                b"db" => Test::Db(database(ctx, value, &option)?),
                b"capa" => {
                    check_letters(value, b"r", "capa", wanted)?;
                    if value.is_empty() { Test::NoCapabilities } else { Test::Capabilities }
                }
                b"ip" => Test::Ip(value.to_vec()),
                _ => return Err(error::SYNTAX),
            };
            at = at.saturating_add(1);
            filter.set(test, wanted);
        }
        Ok(filter)
    }

    /// Whether the connection is meant.
    pub(super) fn passes(&self, info: &ClientInfo, now: UnixMs) -> bool {
        self.tests.iter().all(|(test, wanted)| test.passes(info, now) == *wanted)
    }

    fn set(&mut self, test: Test, wanted: bool) {
        match self.tests.iter_mut().find(|(other, same)| *same == wanted && other.is_same_kind(&test)) {
            Some((other, _)) => *other = test,
            None => self.tests.push((test, wanted)),
        }
    }

    /// Takes numbers for as long as there are any.
    fn add_ids(&mut self, args: &Args<'_>, at: &mut usize, wanted: bool) -> Result<(), Stop> {
        let mut ids = Vec::new();
        while let Some(id) = args.bytes(*at).and_then(parse_integer) {
            let id = u64::try_from(id).ok().filter(|id| *id > 0);
            ids.push(id.ok_or(Stop::error("ERR client-id should be greater than 0"))?);
            *at = at.saturating_add(1);
        }
        let earlier = self.tests.iter_mut().find_map(|(test, same)| match test {
            Test::Ids(ids) if *same == wanted => Some(ids),
            _ => None,
        });
        match earlier {
            Some(earlier) => earlier.extend(ids),
            None => self.tests.push((Test::Ids(ids), wanted)),
        }
        Ok(())
    }
}

fn yes_or_no(word: &[u8]) -> Result<bool, Stop> {
    match () {
        () if word.eq_ignore_ascii_case(b"yes") => Ok(true),
        () if word.eq_ignore_ascii_case(b"no") => Ok(false),
        () => Err(error::SYNTAX),
    }
}

fn positive(text: &[u8], name: &str) -> Result<i64, Stop> {
    let seconds =
        parse_integer(text).ok_or_else(|| Stop::error_with(format!("ERR {name} is not an integer or out of range")))?;
    if seconds > 0 { Ok(seconds) } else { Err(Stop::error_with(format!("ERR {name} should be greater than 0"))) }
}

fn check_letters(letters: &[u8], known: &[u8], name: &str, wanted: bool) -> Result<(), Stop> {
    if letters.iter().all(|letter| known.contains(letter)) {
        return Ok(());
    }
    let filter = if wanted { "provided".to_owned() } else { format!("NOT-{}", name.to_ascii_uppercase()) };
    Err(error::repeating(&format!("ERR Unknown {name} found in the {filter} filter: "), letters, ""))
}

fn database(ctx: &Ctx<'_>, text: &[u8], option: &str) -> Result<DbIndex, Stop> {
    let number = parse_integer(text).and_then(|number| i32::try_from(number).ok());
    let number = number.ok_or_else(|| Stop::error_with(format!("ERR {option} is not an integer or out of range")))?;
    let db = u32::try_from(number).ok().map(DbIndex).filter(|db| ctx.ks.space_of(*db).is_some());
    db.ok_or_else(|| {
        let last = (0..u32::MAX).take_while(|db| ctx.ks.space_of(DbIndex(*db)).is_some()).last().unwrap_or(0);
        Stop::error_with(format!("ERR DB number should be between 0 and {last}"))
    })
}
