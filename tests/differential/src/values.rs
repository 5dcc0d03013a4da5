//! The classes of values that rules name, and the pools they are drawn from.
//!
//! V1. Keys come from a small pool, so that commands meet the same keys.
//! V2. Relative times to live that pass during a run, or that could be equal on one server and a millisecond apart on
//!     the other, are never drawn: deadlines lie in 2001, beyond 2100, or where no number may be.
//! V3. Offsets that a server must allocate for are small, or beyond its limit.

use base::Rng;
use std::fmt::Write as _;

/// What a word of a rule in small letters stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A key, mostly of a few.
    Key,
    /// A string value.
    Value,
    /// A short text, as for PING.
    Message,
    /// An integer to add.
    Int,
    /// A floating point number.
    Float,
    /// A place in a string, from either end.
    Index,
    /// A place in a string to write at.
    Offset,
    /// A place in a bitmap.
    BitOffset,
    /// 0, 1 and what is neither.
    Bit,
    /// The type of a BITFIELD field.
    Encoding,
    /// The place of a BITFIELD field, `#` forms included.
    FieldOffset,
    /// Seconds to live.
    Ttl,
    /// Milliseconds to live.
    Pttl,
    /// A time in seconds.
    At,
    /// A time in milliseconds.
    Pat,
    /// A database.
    Db,
    /// A glob.
    Pattern,
    /// A cursor of SCAN.
    Cursor,
    /// How many.
    Count,
    /// An element of a HyperLogLog.
    Element,
    /// A member of a set.
    Member,
    /// How many random elements.
    RandomCount,
    /// A number of a few, or one that is no number.
    Small,
    /// The id of an entry of a stream.
    StreamId,
    /// The id of a new entry: the later ones are drawn more rarely, so that streams grow.
    NewId,
    /// An end of a range of ids.
    RangeId,
    /// The id that a stream is read from.
    ReadId,
    /// The name of a field.
    Field,
    /// The name of a group.
    Group,
    /// The name of a consumer.
    Consumer,
    /// Milliseconds that an entry has been pending, far from those that pass during a run.
    MinIdle,
    /// Degrees east.
    Longitude,
    /// Degrees north.
    Latitude,
    /// A member of an index of places.
    Place,
    /// A length on earth.
    Length,
    /// A unit of length.
    Unit,
    /// The name of a type.
    Type,
    /// The name of a client.
    ClientName,
    /// The id of a client that does not exist.
    ClientId,
    /// The name of a command, for COMMAND.
    CommandName,
    /// A section of INFO.
    Section,
    /// A parameter's value.
    Setting,
    /// The score of a member of a sorted set; zero has no sign.
    Score,
    /// An end of a range of scores.
    ScoreEnd,
    /// An end of a range of members by bytes.
    LexEnd,
    /// The key of a sorted set all of whose members have one score.
    LexKey,
    /// What Redis 7.0 answered to DUMP; sometimes damaged.
    Payload,
    /// A user of ACL commands.
    User,
    /// A password of one.
    Password,
    /// A rule of ACL SETUSER.
    AclRule,
}

/// The names of the classes in rules.
const NAMES: [(&str, Class); 50] = [
    ("key", Class::Key),
    ("value", Class::Value),
    ("message", Class::Message),
    ("int", Class::Int),
    ("float", Class::Float),
    ("index", Class::Index),
    ("offset", Class::Offset),
    ("bitoffset", Class::BitOffset),
    ("bit", Class::Bit),
    ("encoding", Class::Encoding),
    ("fieldoffset", Class::FieldOffset),
    ("ttl", Class::Ttl),
    ("pttl", Class::Pttl),
    ("at", Class::At),
    ("pat", Class::Pat),
    ("db", Class::Db),
    ("pattern", Class::Pattern),
    ("cursor", Class::Cursor),
    ("count", Class::Count),
    ("element", Class::Element),
    ("member", Class::Member),
    ("randomcount", Class::RandomCount),
    ("small", Class::Small),
    ("streamid", Class::StreamId),
    ("newid", Class::NewId),
    ("rangeid", Class::RangeId),
    ("readid", Class::ReadId),
    ("field", Class::Field),
    ("group", Class::Group),
    ("consumer", Class::Consumer),
    ("minidle", Class::MinIdle),
    ("longitude", Class::Longitude),
    ("latitude", Class::Latitude),
    ("place", Class::Place),
    ("length", Class::Length),
    ("unit", Class::Unit),
    ("type", Class::Type),
    ("clientname", Class::ClientName),
    ("clientid", Class::ClientId),
    ("commandname", Class::CommandName),
    ("section", Class::Section),
    ("setting", Class::Setting),
    ("score", Class::Score),
    ("scoreend", Class::ScoreEnd),
    ("lexend", Class::LexEnd),
    ("lexkey", Class::LexKey),
    ("payload", Class::Payload),
    ("user", Class::User),
    ("password", Class::Password),
    ("aclrule", Class::AclRule),
];

const KEYS: [&[u8]; 12] =
    [b"a", b"b", b"c", b"d", b"e", b"{t}1", b"{t}2", b"key:0001", b"", b"\x00\xff\r\n", b"two words", b"f"];

const SMALL_INTS: [&[u8]; 12] = [b"0", b"1", b"-1", b"2", b"3", b"5", b"7", b"10", b"-10", b"100", b"255", b"1000"];

/// Where ranges end, and one beyond.
const EDGE_INTS: [&[u8]; 19] = [
    b"127",
    b"-128",
    b"32767",
    b"65536",
    b"2147483647",
    b"-2147483648",
    b"2147483648",
    b"4294967295",
    b"4294967296",
    b"-4294967297",
    b"9007199254740992",
    b"9007199254740993",
    b"9223372036854775806",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775807",
    b"-9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
];

/// What looks like a number to some parsers.
const ODD_INTS: [&[u8]; 18] = [
    b"",
    b"-0",
    b"+1",
    b" 1",
    b"1 ",
    b"0x10",
    b"01",
    b"1.0",
    b"1e3",
    b"--1",
    b"-",
    b"+",
    b"one",
    b"1\x00",
    b"\x00",
    b"1\n",
    b"nan",
    b"\xff\xfe",
];

const FLOATS: [&[u8]; 30] = [
    b"0",
    b"1",
    b"-1",
    b"0.1",
    b"-0.5",
    b"3.0",
    b"3.14159",
    b"1e3",
    b"1E-3",
    b"5.0e3",
    b"-2.5e-5",
    b"0.000000001",
    b"1e17",
    b"123456789.123456789",
    b"0.30000000000000004",
    b"1e308",
    b"-1e308",
    b"1.7976931348623157e308",
    b"1e400",
    b"-1e400",
    b"1e4932",
    b"1e5000",
    b"5e-324",
    b"1e-5000",
    b"inf",
    b"-inf",
    b"+inf",
    b"nan",
    b"infinity",
    b".5",
];

const ODD_FLOATS: [&[u8]; 12] =
    [b"", b" 1.5", b"1.5 ", b"1,5", b"0x1p3", b"1.", b"+1.5", b"-0.0", b"1e", b"e5", b"1..5", b"1.5\x00"];

/// Long enough to meet every limit on the length of a number's text.
const LONG_DIGITS: &[u8] = b"3.141592653589793238462643383279502884197169399375105820974944592307816406286208998628034\
    82534\
    2117067982148086513282306647093844609550582231725359408128481117450284102701938521105559644622948954930381964428810\
    975665933446128475648233786783165271201909145648566923460348610454326648213393607260249141273724587006606315588174\
    8";

const ENCODINGS: [&[u8]; 20] = [
    b"u1", b"i1", b"u2", b"i5", b"u7", b"u8", b"i8", b"i13", b"u16", b"i16", b"u31", b"i32", b"u32", b"u63", b"i63",
    b"i64", b"u64", b"i65", b"u0", b"x8",
];

const PATTERNS: [&[u8]; 16] = [
    b"*",
    b"?",
    b"a*",
    b"*1",
    b"{t}*",
    b"[a-c]",
    b"[^a]",
    b"[abc]*",
    b"\\*",
    b"[",
    b"[a-",
    b"\\",
    b"**",
    b"key:????",
    b"",
    b"*[",
];

const TYPES: [&[u8]; 8] = [b"string", b"list", b"set", b"zset", b"hash", b"stream", b"STRING", b"nosuchtype"];

/// A string, an integer, a list, two sets, a sorted set, a hash, a stream; a string with another checksum.
const PAYLOADS: [&[u8]; 9] = [
    b"\0\x05hello\n\0cr\xdfve4 \n",
    b"\0\xc190\n\0\x9d\x94\xea'\x93\xfc\x08\xb9",
    b"\x12\x01\x02\x0f\x0f\0\0\0\x03\0\x81a\x02\x81b\x02\x01\x01\xff\n\0\xe0\x1b\xabJG\xceY\"",
    b"\x0b\x0e\x02\0\0\0\x03\0\0\0\x01\0\x02\0\x03\0\n\0\xa5\x02\\\xe2mnM\x1b",
    b"\x02\x03\x01b\x01a\xc0\x01\n\0\x17\xa8\x9f4\x071\xc3\xde",
    b"\x11\x1c\x1c\0\0\0\x06\0\x81a\x02\x01\x01\x81b\x02\x832.5\x04\x81c\x02\x83inf\x04\xff\n\0k\x1d\xde\xdc\xe8\xe2\
      \xc3\x99",
    b"\x10\x17\x17\0\0\0\x04\0\x82f1\x03\x82v1\x03\x82f2\x03\x82v2\x03\xff\n\0\x03\xf8L\x0c\x15\xd4\xa2\xbc",
    b"\x13\x01\x10\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01--\0\0\0\x12\0\x01\x01\x01\x01\x02\x01\x81a\x02\x81b\x02\0\x01\
      \x03\x01\0\x01\0\x01\x01\x01\x02\x01\x05\x01\x02\x01\x01\x01\0\x01\x03\x01\x04\x01\x05\x01\xff\x01\x06\x01\x06\
      \x01\x05\x01\x02\0\n\0UP\xc5\x9b\x83\x8eSV",
    b"\0\x05hello\n\0cr\xdfve4 x",
];

const COMMAND_NAMES: [&[u8]; 24] = [
    b"get",
    b"set",
    b"SET",
    b"mget",
    b"mset",
    b"msetnx",
    b"append",
    b"bitop",
    b"bitfield",
    b"lcs",
    b"getex",
    b"copy",
    b"del",
    b"rename",
    b"object",
    b"object|encoding",
    b"config|get",
    b"client|kill",
    b"ping",
    b"multi",
    b"eXeC",
    b"expire",
    b"nosuch",
    b"config|nosuch",
];

const SECTIONS: [&[u8]; 12] = [
    b"server",
    b"clients",
    b"memory",
    b"persistence",
    b"stats",
    b"replication",
    b"cpu",
    b"cluster",
    b"keyspace",
    b"nosuch",
    b"DEFAULT",
    b"all",
];

const SETTINGS: [&[u8]; 16] = [
    b"0",
    b"1",
    b"128",
    b"1000000",
    b"-1",
    b"yes",
    b"no",
    b"100mb",
    b"1gb",
    b"",
    b"abc",
    b"noeviction",
    b"10",
    b"9223372036854775808",
    b"-2",
    b"5%",
];

/// Ids at the borders, and what is none to some parsers.
const ODD_IDS: [&[u8]; 24] = [
    b"0-0",
    b"0-*",
    b"5-*",
    b"18446744073709551615-18446744073709551615",
    b"18446744073709551615",
    b"18446744073709551616",
    b"1-18446744073709551615",
    b"1-18446744073709551616",
    b"+1",
    b" 1",
    b"1 ",
    b"01-01",
    b"1-",
    b"-1",
    b"1--1",
    b"1--01",
    b"1-1-1",
    b"1\x00-1",
    b"(",
    b"((1",
    b"-",
    b"+",
    b"",
    b"x",
];

/// The first millisecond of 2100: deadlines from here on do not pass.
pub const YEAR_2100_MS: u64 = 4_102_444_800_000;

impl Class {
    /// The class that rules call by this name.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, class)| *class)
    }

    /// A value of this class.
    pub fn draw(self, rng: &mut Rng) -> Vec<u8> {
        match self {
            Class::Key => key(rng),
            Class::Value => value(rng),
            Class::Message => from(rng, &[b"hello", b"", b"\x00\r\n\xff", b"two words", b"5"]),
            Class::Int => int(rng),
            Class::Float => float(rng),
            Class::Index => mostly(rng, 12, |rng| (rng.below(40) as i64 - 20).to_string().into_bytes(), int),
            Class::Offset => mostly(rng, 12, |rng| decimal(rng.below(300)), offset_beyond),
            Class::BitOffset => mostly(rng, 12, |rng| decimal(rng.below(600)), offset_beyond),
            Class::Bit => mostly(rng, 10, |rng| decimal(rng.below(2)), int),
            Class::Encoding => mostly(rng, 30, |rng| from(rng, &ENCODINGS), odd),
            Class::FieldOffset => mostly(
                rng,
                14,
                |rng| {
                    let at = decimal(rng.below(120));
                    if rng.one_in(3) { [b"#", &at[..]].concat() } else { at }
                },
                offset_beyond,
            ),
            Class::Ttl => mostly(rng, 8, |rng| decimal(100_000 + 20 * rng.below(1 << 40)), no_ttl),
            Class::Pttl => mostly(rng, 8, |rng| decimal(100_000_000 + 20_000 * rng.below(1 << 32)), no_ttl),
            Class::At => mostly(rng, 8, |rng| moment(rng, 1), no_moment),
            Class::Pat => mostly(rng, 8, |rng| moment(rng, 1000), no_moment),
            Class::Db => {
                mostly(rng, 8, |rng| decimal(rng.below(3)), |rng| from(rng, &[b"15", b"16", b"-1", b"1 ", b"x"]))
            }
            Class::Pattern => mostly(rng, 20, |rng| from(rng, &PATTERNS), odd),
            Class::Cursor => {
                mostly(rng, 8, |_| b"0".to_vec(), |rng| from(rng, &[b"1x", b"-1", b"", b"18446744073709551616"]))
            }
            Class::Count => mostly(rng, 8, |rng| decimal(1 + rng.below(2000)), no_count),
            Class::Element => mostly(rng, 20, |rng| decimal(rng.below(10_000)), value),
            Class::Member => mostly(rng, 8, |rng| decimal(rng.below(30)), value),
            Class::RandomCount => mostly(rng, 8, |rng| (rng.below(40) as i64 - 20).to_string().into_bytes(), odd),
            Class::Small => mostly(rng, 20, |rng| decimal(rng.below(8)), int),
            Class::StreamId => mostly(rng, 30, stream_id, |rng| from(rng, &ODD_IDS)),
            Class::NewId => mostly(rng, 12, new_id, |rng| from(rng, &ODD_IDS)),
            Class::RangeId => mostly(rng, 30, range_id, |rng| from(rng, &ODD_IDS)),
            Class::ReadId => mostly(rng, 4, stream_id, |rng| from(rng, &[b"$", b">", b"0", b"-", b"x"])),
            Class::Field => from(rng, &[b"f", b"f", b"f", b"g", b""]),
            Class::Group => from(rng, &[b"g", b"g", b"g", b"h", b""]),
            Class::Consumer => from(rng, &[b"alice", b"bob", b"carol", b""]),
            Class::MinIdle => mostly(rng, 20, |rng| from(rng, &[b"0", b"0", b"100000", b"-1"]), odd),
            Class::Longitude => mostly(rng, 60, |rng| degrees(rng, 180), float),
            Class::Latitude => mostly(rng, 60, |rng| degrees(rng, 85), float),
            Class::Place => decimal(rng.below(30)),
            Class::Length => mostly(rng, 40, |rng| decimal(1 << rng.below(24)), float),
            Class::Unit => mostly(rng, 40, |rng| from(rng, &[b"m", b"km", b"ft", b"MI"]), odd),
            Class::Type => mostly(rng, 20, |rng| from(rng, &TYPES), odd),
            Class::ClientName => from(rng, &[b"alice", b"bob", b"", b"two words", b"\x01", b"tab\t", b"name-1"]),
            Class::ClientId => from(rng, &[b"123456789", b"0", b"-1", b"abc", b"", b"9223372036854775807"]),
            Class::CommandName => mostly(rng, 30, |rng| from(rng, &COMMAND_NAMES), odd),
            Class::User => from(rng, &USERS),
            Class::Password => from(rng, &[b"secret", b"other", b"wrong"]),
            Class::AclRule => acl_rule(rng),
            Class::Section => from(rng, &SECTIONS),
            Class::Setting => from(rng, &SETTINGS),
            Class::Score => score(rng),
            Class::ScoreEnd => score_end(rng),
            Class::LexEnd => lex_end(rng),
            Class::LexKey => from(rng, &[b"lex:1", b"lex:2"]),
            Class::Payload => mostly(rng, 40, |rng| from(rng, &PAYLOADS), odd),
        }
    }
}

/// Degrees up to a limit either way, in a few places more often than in others.
fn degrees(rng: &mut Rng, limit: u64) -> Vec<u8> {
    let spread = if rng.one_in(2) { limit } else { 5 };
    let whole = rng.below(2 * spread) as i64 - spread as i64;
    format!("{whole}.{:06}", rng.below(1_000_000)).into_bytes()
}

/// A value that is wrong in most places.
pub fn odd(rng: &mut Rng) -> Vec<u8> {
    match rng.below(4) {
        0 => from(rng, &ODD_INTS),
        1 => from(rng, &EDGE_INTS),
        2 => from(rng, &ODD_FLOATS),
        _ => bytes(rng, 12),
    }
}

fn from(rng: &mut Rng, pool: &[&[u8]]) -> Vec<u8> {
    pool[rng.below(pool.len() as u64) as usize].to_vec()
}

const USERS: [&[u8]; 3] = [b"alice", b"bob", b"carol"];

/// Mostly a rule that is right.
fn acl_rule(rng: &mut Rng) -> Vec<u8> {
    const PLAIN: [&[u8]; 24] = [
        b"on",
        b"on",
        b"off",
        b"nopass",
        b"resetpass",
        b">secret",
        b">other",
        b"<secret",
        b"allkeys",
        b"~*",
        b"resetkeys",
        b"allchannels",
        b"&*",
        b"resetchannels",
        b"allcommands",
        b"+@all",
        b"nocommands",
        b"-@all",
        b"alldbs",
        b"resetdbs",
        b"clearselectors",
        b"reset",
        b"sanitize-payload",
        b"nosuch",
    ];
    match rng.below(12) {
        0..=2 => from(rng, &PLAIN),
        3 => [b"(", &*(0..rng.below(4)).map(|_| part_of_selector(rng)).collect::<Vec<_>>().join(&b' '), b")"].concat(),
        _ => part_of_selector(rng),
    }
}

fn part_of_selector(rng: &mut Rng) -> Vec<u8> {
    const COMMANDS: [&[u8]; 26] = [
        b"get",
        b"set",
        b"GET",
        b"del",
        b"mget",
        b"copy",
        b"rename",
        b"move",
        b"select",
        b"select|0",
        b"select|1",
        b"config",
        b"config|get",
        b"config|set",
        b"client",
        b"client|id",
        b"acl",
        b"acl|whoami",
        b"multi",
        b"exec",
        b"eval",
        b"publish",
        b"subscribe",
        b"object|encoding",
        b"nosuch",
        b"config|nosuch",
    ];
    const CATEGORIES: [&[u8]; 14] = [
        b"read",
        b"write",
        b"string",
        b"hash",
        b"list",
        b"fast",
        b"slow",
        b"keyspace",
        b"dangerous",
        b"admin",
        b"connection",
        b"transaction",
        b"pubsub",
        b"NoSuch",
    ];
    const PATTERNS: [&[u8]; 9] = [b"a", b"b", b"c", b"*", b"[ab]", b"k*", b"{t}*", b"?", b"a*"];
    const DATABASES: [&[u8]; 8] = [b"db=0", b"db=0,1", b"db=1,0,1", b"db=15", b"db=", b"db=x", b"alldbs", b"resetdbs"];
    let sign: &[u8] = if rng.one_in(3) { b"-" } else { b"+" };
    match rng.below(12) {
        0..=3 => [sign, &from(rng, &COMMANDS)].concat(),
        4..=6 => [sign, b"@", &from(rng, &CATEGORIES)].concat(),
        7..=9 => {
            let prefix = from(rng, &[b"~", b"~", b"%R~", b"%W~", b"%RW~", b"%X~"]);
            [&*prefix, &from(rng, &PATTERNS)].concat()
        }
        10 => [b"&", &*from(rng, &PATTERNS)].concat(),
        _ => from(rng, &DATABASES),
    }
}

fn decimal(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// `usual`, and once in `n` draws `unusual`.
fn mostly(rng: &mut Rng, n: u64, usual: fn(&mut Rng) -> Vec<u8>, unusual: fn(&mut Rng) -> Vec<u8>) -> Vec<u8> {
    if rng.one_in(n) { unusual(rng) } else { usual(rng) }
}

fn bytes(rng: &mut Rng, length_max: u64) -> Vec<u8> {
    let mut bytes = vec![0; rng.below(length_max + 1) as usize];
    rng.fill(&mut bytes);
    bytes
}

fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(100) {
        0 => vec![b'k'; 300],
        1 => bytes(rng, 6),
        _ => from(rng, &KEYS),
    }
}

fn value(rng: &mut Rng) -> Vec<u8> {
    match rng.below(18) {
        0 => Vec::new(),
        1..=4 => int(rng),
        5..=6 => float(rng),
        7..=8 => bytes(rng, 40),
        // The lengths around which encodings of strings change, and some KB.
        9 => vec![b'x'; [43, 44, 45, 63, 64, 65, 127, 128][rng.below(8) as usize]],
        10 => vec![[0x00, 0xff, 0xaa, 0x0f][rng.below(4) as usize]; rng.below(80) as usize],
        11 if rng.one_in(4) => bytes(rng, 6000),
        11..=13 => from(rng, &[b"ohmytext", b"mynewtext", b"abcdefg", b"aaaaaaaaaa", b"abababab", b"hello world"]),
        14..=15 => decimal(rng.below(100_000)),
        _ => record(rng),
    }
}

/// Records that have much in common, so that a dictionary pays.
fn record(rng: &mut Rng) -> Vec<u8> {
    const FIELDS: [&str; 8] = [
        "customer-name",
        "delivery-street",
        "last-modified-at",
        "number-of-items",
        "payment-reference",
        "preferred-language",
        "shipping-state",
        "total-amount",
    ];
    let mut text = String::from("{");
    for _ in 0..1 + rng.below(20) {
        let field = FIELDS[rng.below(8) as usize];
        let _ = write!(text, "\"{field}\":\"value {}\",", rng.below(1 << 20));
    }
    text.into_bytes()
}

fn int(rng: &mut Rng) -> Vec<u8> {
    match rng.below(20) {
        0..=2 => from(rng, &EDGE_INTS),
        3 => from(rng, &ODD_INTS),
        4..=6 => (rng.next_u64() as i64 >> rng.below(64)).to_string().into_bytes(),
        _ => from(rng, &SMALL_INTS),
    }
}

fn stream_id(rng: &mut Rng) -> Vec<u8> {
    match rng.below(4) {
        0 => decimal(rng.below(12)),
        _ => format!("{}-{}", rng.below(12), rng.below(3)).into_bytes(),
    }
}

fn new_id(rng: &mut Rng) -> Vec<u8> {
    let ms = rng.below(12).min(rng.below(12));
    match rng.below(4) {
        0 => format!("{ms}-*").into_bytes(),
        1 => decimal(ms),
        _ => format!("{ms}-{}", rng.below(3)).into_bytes(),
    }
}

fn range_id(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0..=1 => b"-".to_vec(),
        2..=3 => b"+".to_vec(),
        4 => [b"(", &stream_id(rng)[..]].concat(),
        _ => stream_id(rng),
    }
}

fn float(rng: &mut Rng) -> Vec<u8> {
    match rng.below(20) {
        0 => from(rng, &ODD_FLOATS),
        1 => LONG_DIGITS[..rng.below(LONG_DIGITS.len() as u64 + 1) as usize].to_vec(),
        2..=4 => format!("{}", (rng.unit() - 0.5) * 10f64.powi(rng.below(20) as i32 - 8)).into_bytes(),
        5..=6 => int(rng),
        _ => from(rng, &FLOATS),
    }
}

/// Mostly small numbers, so that members meet at one score.
fn score(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => {
            from(rng, &[b"inf", b"-inf", b"+inf", b"1e17", b"-1e300", b"0.1", b"1e-7", b"12345678901234567890", b"3.5"])
        }
        1 => (rng.next_u64() as i64 >> rng.below(64)).to_string().into_bytes(),
        2 if rng.one_in(3) => {
            from(rng, &[b"", b" 1", b"1 ", b"nan", b"0x10", b"1e400", b"1e-400", b"(1", b"one", b"1..5"])
        }
        _ => (rng.below(21) as i64 - 10).to_string().into_bytes(),
    }
}

fn score_end(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 => from(rng, &[b"-inf", b"+inf", b"inf", b"(inf", b"(-inf"]),
        1..=2 => [b"(", &score(rng)[..]].concat(),
        _ => score(rng),
    }
}

fn lex_end(rng: &mut Rng) -> Vec<u8> {
    match rng.below(8) {
        0 => b"-".to_vec(),
        1 => b"+".to_vec(),
        2 if rng.one_in(4) => from(rng, &[b"", b"a", b"--", b"]a", b"inf"]),
        3..=4 => [b"(", &Class::Member.draw(rng)[..]].concat(),
        _ => [b"[", &Class::Member.draw(rng)[..]].concat(),
    }
}

/// Offsets that nothing is allocated for: beyond every limit, below zero, or no number.
fn offset_beyond(rng: &mut Rng) -> Vec<u8> {
    let pool: [&[u8]; 9] = [
        b"4294967296",
        b"8589934592",
        b"-1",
        b"9223372036854775807",
        b"-9223372036854775808",
        b"9223372036854775808",
        b"18446744073709551615",
        b"#-1",
        b"#9223372036854775807",
    ];
    if rng.one_in(3) { from(rng, &ODD_INTS) } else { from(rng, &pool) }
}

/// Times to live that are refused, delete at once, or overflow.
fn no_ttl(rng: &mut Rng) -> Vec<u8> {
    let pool: [&[u8]; 6] =
        [b"0", b"-1", b"-1000", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775808"];
    if rng.one_in(3) { from(rng, &ODD_INTS) } else { from(rng, &pool) }
}

/// A moment in 2001, or beyond 2100 (one of few, so that GT and LT meet equal deadlines).
fn moment(rng: &mut Rng, per_second: u64) -> Vec<u8> {
    let seconds = if rng.one_in(8) { 1_000_000_000 } else { YEAR_2100_MS / 1000 + rng.below(6) * 86_400 };
    decimal(seconds * per_second + if per_second == 1 { 0 } else { rng.below(3) })
}

fn no_moment(rng: &mut Rng) -> Vec<u8> {
    let pool: [&[u8]; 7] =
        [b"0", b"1", b"-1", b"9223372036854775807", b"-9223372036854775808", b"9223372036854775", b"9223372036854776"];
    if rng.one_in(3) { from(rng, &ODD_INTS) } else { from(rng, &pool) }
}

fn no_count(rng: &mut Rng) -> Vec<u8> {
    if rng.one_in(2) { from(rng, &[b"0", b"-1", b"9223372036854775807"]) } else { from(rng, &ODD_INTS) }
}

/// Whether `argument` is a time to live that could pass, or nearly tie with another, while a sequence runs.
pub fn passes_soon(argument: &[u8], unit_ms: u64) -> bool {
    let number = std::str::from_utf8(argument).ok().and_then(|text| text.trim().parse::<u64>().ok());
    number.is_some_and(|number| number > 0 && number < 100_000_000 / unit_ms)
}

/// Whether `argument` is a deadline before the ones that rules draw for the future.
pub fn lies_past(argument: &[u8], unit_ms: u64) -> bool {
    let number = std::str::from_utf8(argument).ok().and_then(|text| text.parse::<u64>().ok());
    number.is_some_and(|number| number > 0 && number < YEAR_2100_MS / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V2 for every class of times, in the form a server reads them.
    #[test]
    fn no_time_to_live_passes_soon() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let ttl = Class::Ttl.draw(&mut rng);
            let pttl = Class::Pttl.draw(&mut rng);
            // Only this check takes a few odd texts such as " 1" for numbers.
            let odd = |text: &[u8]| ODD_INTS.contains(&text);
            assert!(odd(&ttl) || !passes_soon(&ttl, 1000), "{ttl:?}");
            assert!(odd(&pttl) || !passes_soon(&pttl, 1), "{pttl:?}");
        }
    }

    #[test]
    fn every_class_has_a_name_and_draws_the_same_from_the_same_seed() {
        for (name, class) in NAMES {
            assert_eq!(Class::from_name(name), Some(class));
            let draw = |seed| class.draw(&mut Rng::new(seed));
            assert_eq!(draw(5), draw(5));
        }
    }
}
