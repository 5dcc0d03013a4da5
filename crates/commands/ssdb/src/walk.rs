//! Ranges of names. Unless a database keeps its names in order ([`crate::in_order`]), a walk looks at every key of it
//! and keeps the first.
//!
//! ```text
//! command -> a slice of the walk -> leaves what it has found in its session -> ... -> all seen -> the reply
//! ```
//!
//! W1. A request runs for a slice at a time, and the worker serves others in between. Only `scan` and `rscan` lock all
//!     shards for their slices, since they give values.
//! W2. A key that is there from the first slice to the last is seen; one that comes or goes meanwhile may be.
//! W3. Memory follows the names that are given, never those that are seen.

use crate::answer;
use crate::in_order;
use crate::pieces::{put_block, reply_packet};
use crate::range::{First, Range};
use command::acl::may_read_all_keys;
use command::error::REPLY_TOO_LONG;
use command::limits::REPLY_BYTES_MAX;
use command::work::steps::Work;
use command::{Ctx, Stop};
use engine::{Fetch, Type};

/// How long a slice runs, about.
const SLICE_NS: u64 = 100_000;

/// Values that are read in a slice.
const VALUES_MAX: usize = 64;

/// What a user needs in order to read values by a range.
const ALL_KEYS: Stop =
    Stop::error("error NOPERM a range of keys with their values needs the right to read all keys (~*)");

/// A walk under way.
struct Walk {
    /// Where to continue; `None` when all keys were seen.
    cursor: Option<u64>,
    first: First<Vec<u8>>,
    name_bytes: usize,
    /// The reply as far as it is written, once names are in order.
    packet: Vec<u8>,
    names: Vec<Vec<u8>>,
    /// How many of them are written.
    written: usize,
}

impl Work for Walk {
    /// Each run of the request is a step.
    fn step(&mut self) -> bool {
        false
    }

    fn held_bytes(&self) -> usize {
        self.name_bytes.saturating_add(self.packet.capacity())
    }
}

impl Walk {
    fn new(range: &Range<'_>) -> Self {
        let first = First::new(range.limit, range.is_reversed);
        Self { cursor: Some(0), first, name_bytes: 0, packet: Vec::new(), names: Vec::new(), written: 0 }
    }

    /// One whose names are known, in order.
    fn of(range: &Range<'_>, names: Vec<Vec<u8>>) -> Self {
        let mut walk = Self { cursor: None, names, ..Self::new(range) };
        put_block(&mut walk.packet, b"ok");
        walk
    }

    /// One slice. True when all keys were seen.
    fn look(&mut self, ctx: &mut Ctx<'_>, kind: Type, range: &Range<'_>) -> Result<bool, Stop> {
        let (space, now) = (ctx.ks.space(), ctx.now());
        let until = ctx.stats.now().saturating_add(SLICE_NS);
        while let Some(cursor) = self.cursor {
            let step = ctx.ks.scan(space, cursor, &mut |entry| {
                let is_meant = entry.kind == kind && !entry.is_expired(now) && range.contains(entry.key);
                if is_meant && self.first.wants(entry.key) {
                    self.name_bytes = self.name_bytes.saturating_add(entry.key.len());
                    self.first.push(entry.key.to_vec());
                }
            });
            let is_stuck = step.next == Some(cursor);
            self.cursor = step.next;
            // What was pushed out of the first counts until it is counted again.
            if self.name_bytes > REPLY_BYTES_MAX {
                self.first.cut();
                self.name_bytes = self.first.items().iter().fold(0, |sum: usize, name| sum.saturating_add(name.len()));
                if self.name_bytes > REPLY_BYTES_MAX {
                    return Err(REPLY_TOO_LONG);
                }
            }
            if is_stuck || ctx.stats.now() >= until {
                break;
            }
        }
        Ok(self.cursor.is_none())
    }

    /// Puts the names that were found in order.
    fn order(&mut self) {
        let first = std::mem::replace(&mut self.first, First::new(0, false));
        self.names = first.into_first();
        put_block(&mut self.packet, b"ok");
    }
}

/// Answers the names of keys of this type in the range.
pub fn names(ctx: &mut Ctx<'_>, kind: Type, range: &Range<'_>) -> Result<(), Stop> {
    if range.limit == 0 {
        answer::done(ctx.reply);
        return Ok(());
    }
    let mut walk = match in_order::names(ctx, kind, range) {
        Some(names) => Walk::of(range, names?),
        None => {
            let mut walk = ctx.take_work::<Walk>().map_or_else(|| Walk::new(range), |walk| *walk);
            if !walk.look(ctx, kind, range)? {
                return Err(ctx.begin_work(walk));
            }
            walk.order();
            walk
        }
    };
    for name in &walk.names {
        put_block(&mut walk.packet, name);
    }
    reply_packet(ctx, walk.packet)
}

/// Answers the strings of the range with their names.
pub fn values(ctx: &mut Ctx<'_>, range: &Range<'_>) -> Result<(), Stop> {
    if !may_read_all(ctx) {
        return Err(ALL_KEYS);
    }
    if range.limit == 0 {
        answer::done(ctx.reply);
        return Ok(());
    }
    let mut walk = match ctx.take_work::<Walk>() {
        Some(walk) => *walk,
        None => match in_order::names(ctx, Type::String, range) {
            Some(names) => Walk::of(range, names?),
            None => Walk::new(range),
        },
    };
    if walk.cursor.is_some() {
        if walk.look(ctx, Type::String, range)? {
            walk.order();
        }
        return Err(ctx.begin_work(walk));
    }
    match walk.write_values(ctx) {
        Err(Fetch) => return Err(ctx.keep_work(walk)),
        Ok(()) if walk.packet.len() > REPLY_BYTES_MAX => return Err(REPLY_TOO_LONG),
        Ok(()) if walk.written < walk.names.len() => return Err(ctx.begin_work(walk)),
        Ok(()) => {}
    }
    reply_packet(ctx, walk.packet)
}

impl Walk {
    /// Writes the next names with their values. A name that is no string any more is left out.
    ///
    /// # Errors
    /// Rows that have to be fetched first, all of which were asked for.
    fn write_values(&mut self, ctx: &mut Ctx<'_>) -> Result<(), Fetch> {
        let end = self.names.len().min(self.written.saturating_add(VALUES_MAX));
        let names = self.names.get(self.written..end).unwrap_or_default();
        let mut lacking = Ok(());
        for name in names {
            let key = ctx.ks.key(name);
            match ctx.ks.peek_value(&key) {
                Err(fetch) => lacking = Err(fetch),
                // Those after one that lacks are asked for, and written when it is there.
                Ok(_) if lacking.is_err() => {}
                Ok(entry) => {
                    if let Some(entry) = entry.filter(|entry| entry.kind == Type::String) {
                        put_block(&mut self.packet, name);
                        put_block(&mut self.packet, entry.value.bytes());
                    }
                    self.written = self.written.saturating_add(1);
                }
            }
            if self.packet.len() > REPLY_BYTES_MAX {
                break;
            }
        }
        lacking
    }
}

/// Whether the user may read every key.
fn may_read_all(ctx: &Ctx<'_>) -> bool {
    let session = &*ctx.session;
    session.is_unrestricted()
        || ctx.host.table.row_of(ctx.spec).is_some_and(|row| {
            may_read_all_keys(&session.user.rules(), &row, &ctx.args, ctx.host.login.users.scope(session.db))
        })
}
