//! The collection commands of ARCUS: `lop`, `sop`, `mop` and `bop`.
//!
//! Each request has the same first arguments, so that a handler finds them without knowing the line:
//!
//! ```text
//!  lop insert k 0 5 create 1 0 0 noreply\r\nhello\r\n
//!  0 lop insert | 1 k | 2 hello (the block) | 3 noreply (or pipe, or nothing) | 4 0 | 5 create | 6 1 | 7 0 | 8 0
//! ```
//!
//! The words from the fifth argument on are those of the line after the key, without the length of the block. The
//! parser checks them with [`grammar`]; handlers read them with the same functions.
//!
//! A pipe is a run of requests of which all but the last end with `pipe`. The parser says where one begins
//! ([`Arcus::PipeBegin`], before its first request) and where it ends ([`Arcus::PipeEnd`], after its last).

mod family;
pub mod grammar;
mod line;
mod parser;
mod pipe;
mod tree;
pub mod tree_grammar;

pub use family::Family;
pub(super) use pipe::Pipe;

/// A request of the ARCUS dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arcus {
    /// The next requests are a pipe.
    PipeBegin,
    /// The pipe ends.
    PipeEnd,
    /// `getattr key [names]`
    GetAttr,
    /// `setattr key name=value ...`
    SetAttr,
    /// `lop create key attributes`
    LopCreate,
    /// `lop insert key index`
    LopInsert,
    /// `lop delete key range`
    LopDelete,
    /// `lop get key range`
    LopGet,
    /// `sop create key attributes`
    SopCreate,
    /// `sop insert key`
    SopInsert,
    /// `sop delete key`
    SopDelete,
    /// `sop exist key`
    SopExist,
    /// `sop get key count`
    SopGet,
    /// `mop create key attributes`
    MopCreate,
    /// `mop insert key field`
    MopInsert,
    /// `mop upsert key field`
    MopUpsert,
    /// `mop update key field`
    MopUpdate,
    /// `mop delete key lenfields numfields`
    MopDelete,
    /// `mop get key lenfields numfields`
    MopGet,
    /// `bop create key attributes`
    BopCreate,
    /// `bop insert key bkey [eflag]`
    BopInsert,
    /// `bop upsert key bkey [eflag]`
    BopUpsert,
    /// `bop insert` or `upsert` that shows what was dropped for it.
    BopInsertGetrim,
    /// See [`Self::BopInsertGetrim`].
    BopUpsertGetrim,
    /// `bop update key bkey [eflag update]` with data.
    BopUpdate,
    /// `bop update key bkey [eflag update]` that keeps the data.
    BopUpdateEflag,
    /// `bop delete key query`
    BopDelete,
    /// `bop get key query`
    BopGet,
    /// `bop count key range [filter]`
    BopCount,
    /// `bop incr key bkey delta [initial [eflag]]`
    BopIncr,
    /// `bop decr key bkey delta [initial [eflag]]`
    BopDecr,
    /// `bop position key bkey order`
    BopPosition,
    /// `bop gbp key order positions`
    BopGbp,
    /// `bop pwg key bkey order [count]`
    BopPwg,
    /// `bop mget numkeys keys query`: the keys follow their number, and the words of the line follow them.
    BopMget,
    /// `bop smget numkeys keys query [mode]`, in the same order.
    BopSmget,
    /// `scan key cursor [options]`: all words of the line, as they are.
    ScanKey,
    /// `ready`
    Ready,
    /// `zkensemble set list`, `get` or `rejoin`
    Ensemble,
    /// `cluster join how`
    Cluster,
    /// `scrub [stale]`
    Scrub,
    /// `config name [value]`
    Config,
    /// `dump start key [prefix] file`, or `dump stop`
    Dump,
    /// `cmdlog start [path]`, `stop` or `stats`
    CommandLog,
    /// `lqdetect start [count]`, `stop`, `show` or `stats`
    LongQueries,
    /// `flush_prefix prefix [delay] [noreply]`
    FlushPrefix,
    /// `scan prefix cursor [options]`: all words of the line, as they are.
    ScanPrefix,
    /// `help [family]`
    Help,
    /// `sasl mech`
    SaslMech,
    /// `sasl auth mechanism data`: the mechanism is empty where an exchange continues.
    SaslAuth,
    /// `shutdown [seconds]`
    Shutdown,
}

impl Arcus {
    /// All of them, each at its own number.
    pub const ALL: [Self; 51] = [
        Self::PipeBegin,
        Self::PipeEnd,
        Self::GetAttr,
        Self::SetAttr,
        Self::LopCreate,
        Self::LopInsert,
        Self::LopDelete,
        Self::LopGet,
        Self::SopCreate,
        Self::SopInsert,
        Self::SopDelete,
        Self::SopExist,
        Self::SopGet,
        Self::MopCreate,
        Self::MopInsert,
        Self::MopUpsert,
        Self::MopUpdate,
        Self::MopDelete,
        Self::MopGet,
        Self::BopCreate,
        Self::BopInsert,
        Self::BopUpsert,
        Self::BopInsertGetrim,
        Self::BopUpsertGetrim,
        Self::BopUpdate,
        Self::BopUpdateEflag,
        Self::BopDelete,
        Self::BopGet,
        Self::BopCount,
        Self::BopIncr,
        Self::BopDecr,
        Self::BopPosition,
        Self::BopGbp,
        Self::BopPwg,
        Self::BopMget,
        Self::BopSmget,
        Self::ScanKey,
        Self::Ready,
        Self::Ensemble,
        Self::Cluster,
        Self::Scrub,
        Self::Config,
        Self::Dump,
        Self::CommandLog,
        Self::LongQueries,
        Self::FlushPrefix,
        Self::ScanPrefix,
        Self::Help,
        Self::SaslMech,
        Self::SaslAuth,
        Self::Shutdown,
    ];
}
