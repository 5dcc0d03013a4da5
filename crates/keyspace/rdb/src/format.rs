//! The numbers of the format: docs/formats/rdb.md.

/// The oldest readable version: that of Redis 2.6.
pub const VERSION_OLDEST: u32 = 6;

/// The newest readable version with Redis' magic: that of Redis 7.4 to 8.4.
pub const VERSION_REDIS: u32 = 12;

/// The version with Valkey's magic: that of Valkey 9.0 and 9.1. Versions between [`VERSION_REDIS`] and this one belong
/// to Redis, never to Valkey.
pub const VERSION_VALKEY: u32 = 80;

/// Magic and version at the beginning of a file, by server.
pub(crate) const MAGIC_REDIS: &[u8; 5] = b"REDIS";
pub(crate) const MAGIC_VALKEY: &[u8; 6] = b"VALKEY";
pub(crate) const HEADER_LEN: usize = 9;

/// The server whose types and opcodes apply, where the two gave one number to different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Redis, and Valkey up to 8.x.
    Redis,
    /// Valkey from 9.0 on.
    Valkey,
}

impl Dialect {
    /// The dialect of a payload that carries only its version; `None` if the version is unknown.
    pub fn of_version(version: u32) -> Option<Self> {
        match version {
            1..=VERSION_REDIS => Some(Self::Redis),
            VERSION_VALKEY => Some(Self::Valkey),
            _ => None,
        }
    }
}

/// First bytes of everything other than values.
pub mod opcode {
    pub const SLOT_IMPORT: u8 = 243;
    pub const SLOT_INFO: u8 = 244;
    pub const FUNCTION2: u8 = 245;
    pub const FUNCTION_PRE_GA: u8 = 246;
    pub const MODULE_AUX: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQ: u8 = 249;
    pub const AUX: u8 = 250;
    pub const RESIZEDB: u8 = 251;
    pub const EXPIRETIME_MS: u8 = 252;
    pub const EXPIRETIME: u8 = 253;
    pub const SELECTDB: u8 = 254;
    pub const EOF: u8 = 255;
}

/// First bytes of values.
pub mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET_2: u8 = 5;
    pub const MODULE_PRE_GA: u8 = 6;
    pub const MODULE_2: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_QUICKLIST: u8 = 14;
    pub const STREAM_LISTPACKS: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_LISTPACKS_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_LISTPACKS_3: u8 = 21;
    /// Valkey only.
    pub const HASH_2: u8 = 22;
    /// Redis only, release candidates of 7.4.
    pub const HASH_METADATA_PRE_GA: u8 = 22;
    /// Redis only, release candidates of 7.4.
    pub const HASH_LISTPACK_EX_PRE_GA: u8 = 23;
    /// Redis only.
    pub const HASH_METADATA: u8 = 24;
    /// Redis only.
    pub const HASH_LISTPACK_EX: u8 = 25;
}

/// The parts of a module's value, which can be distinguished without the module.
pub mod module_part {
    pub const EOF: u64 = 0;
    pub const SINT: u64 = 1;
    pub const UINT: u64 = 2;
    pub const FLOAT: u64 = 3;
    pub const DOUBLE: u64 = 4;
    pub const STRING: u64 = 5;
}

/// Special encodings of a string, after the two high bits that announce one.
pub mod string_encoding {
    pub const INT8: u8 = 0;
    pub const INT16: u8 = 1;
    pub const INT32: u8 = 2;
    pub const LZF: u8 = 3;
}

/// The form of a value in a file: a type number in a dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Form {
    number: u8,
    name: &'static str,
}

impl Form {
    /// The form of a number; `None` when the dialect has no such type.
    pub fn of(number: u8, dialect: Dialect) -> Option<Self> {
        let name = match (number, dialect) {
            (kind::STRING, _) => "string",
            (kind::LIST, _) => "list",
            (kind::SET, _) => "set",
            (kind::ZSET, _) => "zset, scores as text",
            (kind::HASH, _) => "hash",
            (kind::ZSET_2, _) => "zset",
            (kind::MODULE_PRE_GA, _) => "module of a pre-release of 4.0",
            (kind::MODULE_2, _) => "module",
            (kind::HASH_ZIPMAP, _) => "hash zipmap",
            (kind::LIST_ZIPLIST, _) => "list ziplist",
            (kind::SET_INTSET, _) => "set intset",
            (kind::ZSET_ZIPLIST, _) => "zset ziplist",
            (kind::HASH_ZIPLIST, _) => "hash ziplist",
            (kind::LIST_QUICKLIST, _) => "list quicklist of ziplists",
            (kind::STREAM_LISTPACKS, _) => "stream",
            (kind::HASH_LISTPACK, _) => "hash listpack",
            (kind::ZSET_LISTPACK, _) => "zset listpack",
            (kind::LIST_QUICKLIST_2, _) => "list quicklist of listpacks",
            (kind::STREAM_LISTPACKS_2, _) => "stream 2",
            (kind::SET_LISTPACK, _) => "set listpack",
            (kind::STREAM_LISTPACKS_3, _) => "stream 3",
            (kind::HASH_2, Dialect::Valkey) => "hash with field expirations",
            (kind::HASH_METADATA_PRE_GA, Dialect::Redis) => "hash with field expirations, pre-release of 7.4",
            (kind::HASH_LISTPACK_EX_PRE_GA, Dialect::Redis) => {
                "hash listpack with field expirations, pre-release of 7.4"
            }
            (kind::HASH_METADATA, Dialect::Redis) => "hash with field expirations",
            (kind::HASH_LISTPACK_EX, Dialect::Redis) => "hash listpack with field expirations",
            _ => return None,
        };
        Some(Self { number, name })
    }

    /// Its number in the file.
    pub fn number(self) -> u8 {
        self.number
    }

    /// A short description.
    pub fn name(self) -> &'static str {
        self.name
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "type {} ({})", self.number, self.name)
    }
}
