//! The reply to MEMORY EXPLAIN.

use crate::prefixes::{Explained, Sums};
use proto::ReplyBuffer;
use store::compression::{TRIED, Tried};

/// What compression costs the keys of a prefix, and what codecs would make of some of their values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compression {
    /// Time spent on compressing values of their class.
    pub spent_ns: u64,
    /// The sample.
    pub tried: Tried,
}

/// The number of fields of a sample.
const SAMPLE_FIELDS: usize = 3 + TRIED.len();

/// What keys are listed under whose prefix is not.
const OTHER: &[u8] = b"(other)";

/// Writes the reply: all keys, and a map for each prefix.
pub(crate) fn reply(explained: &Explained, compression: &[Compression], duration_ms: u64, reply: &mut ReplyBuffer) {
    let Explained { total, groups, others } = explained;
    reply.map(8);
    integer(reply, "duration.ms", duration_ms);
    sums(reply, total);
    reply.bulk(b"prefixes");
    let has_others = others.keys > 0;
    reply.array(groups.len().saturating_add(usize::from(has_others)));
    for ((name, group), compression) in groups.iter().zip(compression) {
        prefix(reply, name, &group.sums, group.missed_bytes, compression);
    }
    if has_others {
        prefix(reply, OTHER, others, 0, &Compression::default());
    }
}

fn prefix(reply: &mut ReplyBuffer, name: &[u8], of: &Sums, missed_bytes: u64, compression: &Compression) {
    reply.map(11);
    reply.bulk(b"prefix");
    reply.bulk(name);
    sums(reply, of);
    integer(reply, "missed.bytes", missed_bytes);
    reply.bulk(b"largest");
    reply.array(of.largest.len());
    for (key, stored_bytes) in &of.largest {
        reply.array(2);
        reply.bulk(key);
        reply.integer(*stored_bytes as i64);
    }
    integer(reply, "compression.usec", compression.spent_ns / 1000);
    let Tried { values, bytes, stored_bytes, by_codec } = compression.tried;
    reply.bulk(b"sample");
    reply.map(SAMPLE_FIELDS);
    integer(reply, "keys", values);
    integer(reply, "logical.bytes", bytes);
    integer(reply, "stored.bytes", stored_bytes);
    for (codec, bytes) in TRIED.into_iter().zip(by_codec) {
        integer(reply, &format!("{codec}.bytes"), bytes);
    }
}

/// Six fields.
fn sums(reply: &mut ReplyBuffer, sums: &Sums) {
    integer(reply, "keys", sums.keys);
    integer(reply, "logical.bytes", sums.logical_bytes);
    integer(reply, "stored.bytes", sums.stored_bytes);
    integer(reply, "overhead.bytes", sums.overhead_bytes());
    integer(reply, "compressed.keys", sums.compressed);
    let percent = sums.ratio_percent();
    reply.bulk(b"ratio");
    reply.bulk(format!("{}.{:02}", percent / 100, percent % 100).as_bytes());
}

fn integer(reply: &mut ReplyBuffer, name: &str, value: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(value as i64);
}
