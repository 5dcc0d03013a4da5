//! How members and scores are written.

use crate::error::{Stop, check_reply};
use proto::{Protocol, ReplyBuffer};
use types::zset::Entry;

/// Members in a row. With scores, RESP3 has a pair for each, and RESP2 has the score behind the member.
///
/// # Errors
/// The reply has grown too long.
pub(super) fn entries<'e>(
    reply: &mut ReplyBuffer,
    count: u64,
    with_scores: bool,
    entries: impl Iterator<Item = Entry<'e>>,
) -> Result<(), Stop> {
    if with_scores && reply.protocol() == Protocol::Resp3 {
        return pairs(reply, count, entries);
    }
    let parts = if with_scores { 2 } else { 1 };
    reply.array(count.saturating_mul(parts) as usize);
    for entry in entries {
        reply.bulk(entry.member);
        if with_scores {
            reply.double(entry.score);
        }
        check_reply(reply)?;
    }
    Ok(())
}

/// A pair for each member.
///
/// # Errors
/// The reply has grown too long.
pub(super) fn pairs<'e>(
    reply: &mut ReplyBuffer,
    count: u64,
    entries: impl Iterator<Item = Entry<'e>>,
) -> Result<(), Stop> {
    reply.array(count as usize);
    for entry in entries {
        reply.array(2);
        reply.bulk(entry.member);
        reply.double(entry.score);
        check_reply(reply)?;
    }
    Ok(())
}
