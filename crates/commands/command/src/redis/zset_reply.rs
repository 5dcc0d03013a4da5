//! How members and scores are written.

use crate::error::{Stop, check_reply};
use proto::{Protocol, ReplyBuffer};
use types::zset::Entry;

/// Members in a row. With scores, RESP3 has a pair for each, and RESP2 has the score after the member.
///
/// # Errors
/// The reply has grown too long.
pub(super) fn entries<'e>(
    reply: &mut ReplyBuffer,
    count: u64,
    with_scores: bool,
    entries: impl Iterator<Item = Entry<'e>>,
) -> Result<(), Stop> {
    header(reply, count, with_scores);
    rows(reply, with_scores, entries)
}

/// The header of `count` [`rows`].
pub(super) fn header(reply: &mut ReplyBuffer, count: u64, with_scores: bool) {
    let parts = if with_scores && reply.protocol() != Protocol::Resp3 { 2 } else { 1 };
    reply.array(count.saturating_mul(parts) as usize);
}

/// The members after a [`header`].
///
/// # Errors
/// The reply has grown too long.
pub(super) fn rows<'e>(
    reply: &mut ReplyBuffer,
    with_scores: bool,
    mut entries: impl Iterator<Item = Entry<'e>>,
) -> Result<(), Stop> {
    entries.try_for_each(|entry| {
        row(reply, with_scores, &entry);
        check_reply(reply)
    })
}

/// One member.
pub(super) fn row(reply: &mut ReplyBuffer, with_scores: bool, entry: &Entry<'_>) {
    if !with_scores {
        return reply.bulk(entry.member);
    }
    if reply.protocol() == Protocol::Resp3 {
        return pair(reply, entry);
    }
    reply.bulk(entry.member);
    reply.double(entry.score);
}

/// A pair for each member.
///
/// # Errors
/// The reply has grown too long.
pub(super) fn pairs<'e>(
    reply: &mut ReplyBuffer,
    count: u64,
    mut entries: impl Iterator<Item = Entry<'e>>,
) -> Result<(), Stop> {
    reply.array(count as usize);
    entries.try_for_each(|entry| {
        pair(reply, &entry);
        check_reply(reply)
    })
}

/// A pair.
pub(super) fn pair(reply: &mut ReplyBuffer, entry: &Entry<'_>) {
    reply.array(2);
    reply.bulk(entry.member);
    reply.double(entry.score);
}
