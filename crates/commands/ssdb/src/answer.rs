//! Replies that several commands give.

use engine::Value;
use proto::ReplyBuffer;

/// Begins a reply of a command that has done what it was asked for.
#[inline]
pub fn begin(reply: &mut ReplyBuffer) {
    reply.block(b"ok");
}

/// `ok` alone.
pub fn done(reply: &mut ReplyBuffer) {
    begin(reply);
    reply.end_packet();
}

/// `ok` and a number.
#[inline]
pub fn number(reply: &mut ReplyBuffer, number: i64) {
    begin(reply);
    reply.block_integer(number);
    reply.end_packet();
}

/// `ok` and a count.
#[inline]
pub fn count(reply: &mut ReplyBuffer, count: u64) {
    number(reply, i64::try_from(count).unwrap_or(i64::MAX));
}

/// `ok` and 1 or 0.
#[inline]
pub fn boolean(reply: &mut ReplyBuffer, is_so: bool) {
    number(reply, i64::from(is_so));
}

/// `ok` and these bytes, or `not_found`.
#[inline]
pub fn bytes(reply: &mut ReplyBuffer, found: Option<&[u8]>) {
    match found {
        None => reply.block(b"not_found"),
        Some(bytes) => {
            begin(reply);
            reply.block(bytes);
        }
    }
    reply.end_packet();
}

/// `ok` and a string, or `not_found`.
#[inline]
pub fn value(reply: &mut ReplyBuffer, found: Option<Value<'_>>) {
    match found {
        Some(Value::Shared(shared)) => {
            begin(reply);
            reply.block_shared(shared.clone());
            reply.end_packet();
        }
        found => bytes(reply, found.map(Value::bytes)),
    }
}
