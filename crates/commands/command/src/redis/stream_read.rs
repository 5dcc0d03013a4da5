//! XREAD and XREADGROUP: what is new in several streams at once.

use super::stream::reply_entries;
use super::stream_ids::reply_entry;
use super::stream_ids::{self, INVALID_ID, IdText, reply_id};
use super::stream_pieces::{Asked, Name, Parts, reply_short};
use crate::args::OwnedArgs;
use crate::attempt::Attempt;
use crate::error::{self, Stop, up_to_zero};
use crate::limits::REPLY_BYTES_MAX;
use crate::spec::{Argument, Docs, Keyword};
use crate::waiting::KeyWait;
use crate::{Args, Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use base::UnixMs;
use engine::Type;
use proto::{OpenReply, Protocol, ReplyBuffer};
use types::stream::{Delivery, Id, Position, Reader};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&XREAD, &XREADGROUP];

static XREAD: CommandSpec = CommandSpec {
    name: "xread",
    arity: -4,
    flags: Flags::READONLY.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    categories: Categories::STREAM,
    keys: &[KeySpec::half_behind(
        &Keyword { word: "STREAMS", from: 1, is_optional: false, find: find_streams },
        KeyFlags::RO.union(KeyFlags::ACCESS),
    )],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the entries after given ids, of several streams; waits for one if there is none.",
        since: "5.0.0",
        group: "stream",
        arguments: &[
            Argument::integer("count").after("COUNT").optional(),
            Argument::integer("milliseconds").after("BLOCK").optional(),
            Argument::block("streams", &[Argument::key("key", 0).repeated(), Argument::string("id").repeated()])
                .after("STREAMS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xread),
};

static XREADGROUP: CommandSpec = CommandSpec {
    name: "xreadgroup",
    arity: -7,
    flags: Flags::WRITE.union(Flags::BLOCKING).union(Flags::MOVABLEKEYS),
    categories: Categories::STREAM,
    keys: &[KeySpec::half_behind(
        &Keyword { word: "STREAMS", from: 4, is_optional: false, find: find_streams },
        KeyFlags::RO.union(KeyFlags::ACCESS),
    )],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives a consumer of a group entries that are new to the group, or pending for it; waits for one if there is none.",
        since: "5.0.0",
        group: "stream",
        complexity: "For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to serve the N clients blocked on the stream getting new data.",
        arguments: &[
            Argument::block("group-block", &[Argument::string("group"), Argument::string("consumer")]).after("GROUP"),
            Argument::integer("count").after("COUNT").optional(),
            Argument::integer("milliseconds").after("BLOCK").optional(),
            Argument::word("noack", "NOACK").optional(),
            Argument::block("streams", &[Argument::key("key", 0).repeated(), Argument::string("id").repeated()])
                .after("STREAMS"),
        ],
        ..Docs::NONE
    },
    run: Run::Call(xreadgroup),
};

/// The place of STREAMS, after options whatever their values look like. Both commands list their options here, so that
/// a name is never taken for an option: the keys after it are the ones that are locked.
fn find_streams(args: &Args<'_>) -> Option<usize> {
    let mut at = 1;
    while let Some(word) = args.bytes(at) {
        let is = |option: &str| word.eq_ignore_ascii_case(option.as_bytes());
        let values = match () {
            () if is("streams") => return Some(at),
            () if is("group") => 2,
            () if is("count") || is("block") => 1,
            () if is("noack") => 0,
            () => return None,
        };
        at = at.saturating_add(values).saturating_add(1);
    }
    None
}

/// What both commands are asked for.
struct Request<'a> {
    /// COUNT; as many as there are without it.
    count: usize,
    /// GROUP and NOACK.
    reader: Option<Reader<'a>>,
    /// BLOCK, and when the wait is over.
    block: Option<Option<UnixMs>>,
    /// The first key; the ids follow the keys.
    keys: usize,
    /// How many streams.
    streams: usize,
}

impl<'a> Request<'a> {
    /// Reads all but the ids.
    fn parse(ctx: &Ctx<'a>, of_group: bool) -> Result<Self, Stop> {
        let mut request = Self { count: usize::MAX, reader: None, block: None, keys: 0, streams: 0 };
        let mut acknowledges = false;
        let mut at = 1usize;
        while at < ctx.args.len() {
            let value = at.saturating_add(1);
            let left = ctx.args.len().saturating_sub(value);
            let values = if ctx.is_word(at, "count") && left > 0 {
                // 0, and what is negative, is no limit.
                let count = usize::try_from(ctx.integer(value)?).ok().filter(|count| *count > 0);
                request.count = count.unwrap_or(usize::MAX);
                1
            } else if ctx.is_word(at, "block") && left > 0 {
                request.block = Some(ctx.timeout_ms(value)?);
                1
            } else if ctx.is_word(at, "streams") && left > 0 {
                if left % 2 == 1 {
                    return Err(unbalanced(of_group));
                }
                (request.keys, request.streams) = (value, left / 2);
                break;
            } else if ctx.is_word(at, "group") && left >= 2 {
                if !of_group {
                    return Err(Stop::error(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                let name = |index| ctx.args.bytes(index).unwrap_or_default();
                request.reader =
                    Some(Reader { group: name(value), consumer: name(value.saturating_add(1)), acknowledges: false });
                2
            } else if ctx.is_word(at, "noack") {
                if !of_group {
                    return Err(Stop::error(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                acknowledges = true;
                0
            } else {
                return Err(error::SYNTAX);
            };
            at = value.saturating_add(values);
        }
        if request.streams == 0 {
            return Err(error::SYNTAX);
        }
        if let Some(reader) = &mut request.reader {
            reader.acknowledges = acknowledges;
        } else if of_group {
            return Err(Stop::error("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(request)
    }

    /// Waits for the streams, if that is asked for; else there is nothing to be given.
    fn wait(&self, ctx: &mut Ctx<'_>, args: Option<OwnedArgs>) {
        let Some(until) = self.block else { return ctx.reply.null_array() };
        ctx.wait_for_keys(KeyWait {
            keys: self.keys..self.keys.saturating_add(self.streams),
            kind: Type::Stream,
            until,
            timed_out: ReplyBuffer::null_array,
            // The group goes with the stream.
            when_gone: self.reader.is_some(),
            args,
        });
    }

    /// The arguments of each stream: key and id.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (keys, streams) = (self.keys, self.streams);
        (0..streams).map(move |index| {
            let key = keys.saturating_add(index);
            (key, key.saturating_add(streams))
        })
    }
}

fn unbalanced(of_group: bool) -> Stop {
    Stop::error(match of_group {
        false => "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified.",
        true => "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified.",
    })
}

fn xread(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let request = Request::parse(ctx, false)?;
    let mut after = Vec::with_capacity(request.streams);
    for (key, id) in request.pairs() {
        after.push(read_after(ctx, key, id)?);
    }
    // The command that changed the key answers one that has waited, and with a whole reply.
    let may_be_long = ctx.session.attempt == Attempt::First;
    let mark = ctx.reply.mark();
    let mut streams = Streams::default();
    for ((index, _), &behind) in request.pairs().zip(&after) {
        let key = ctx.key(index);
        let Some(stream) = types::stream::read(ctx.ks, &key)? else { continue };
        if stream.last_entry().is_some_and(|entry| entry.id > behind) {
            streams.begin(ctx.reply, key.bytes);
            let entries = stream.range(behind.next().unwrap_or(Id::MAX), Id::MAX);
            if !may_be_long {
                reply_entries(ctx.reply, entries, Some(request.count))?;
            } else if !reply_short(ctx.reply, entries, Some(request.count)) {
                ctx.reply.rewind(mark);
                return reply_in_pieces(ctx, &request, &after);
            }
        }
    }
    if streams.count == 0 {
        let args = from_now_on(ctx, &request, &after);
        request.wait(ctx, args);
    } else {
        streams.end(ctx.reply);
    }
    Ok(())
}

/// What XREAD finds after these ids; at least one part is long.
fn reply_in_pieces(ctx: &mut Ctx<'_>, request: &Request<'_>, after: &[Id]) -> Result<(), Stop> {
    let is_map = ctx.reply.protocol() == Protocol::Resp3;
    let mut parts = Parts::default();
    for ((index, _), &after) in request.pairs().zip(after) {
        let key = ctx.key(index);
        let Some(stream) = types::stream::read_again(ctx.ks, &key)? else { continue };
        if stream.last_entry().is_some_and(|entry| entry.id > after) {
            let start = after.next().unwrap_or(Id::MAX);
            let asked = Asked { start, end: Id::MAX, is_reversed: false, count: Some(request.count) };
            parts.add(ctx, &key, asked, Some(Name { name: key.bytes.into(), is_paired: !is_map }))?;
        }
    }
    match is_map {
        true => ctx.reply.map(parts.len()),
        false => ctx.reply.array(parts.len()),
    }
    ctx.reply_long(parts)
}

/// The arguments of a wait that begins, where they mean something else later on: `$` is the last id of now.
fn from_now_on(ctx: &Ctx<'_>, request: &Request<'_>, after: &[Id]) -> Option<OwnedArgs> {
    let mut args = None;
    for ((_, index), id) in request.pairs().zip(after) {
        if request.block.is_some() && &ctx.args[index] == b"$" {
            let args = args.get_or_insert_with(|| ctx.args.to_owned());
            args.replace(index, IdText::of(*id).as_bytes());
        }
    }
    args
}

/// The id after which a stream is read.
fn read_after(ctx: &mut Ctx<'_>, key: usize, id: usize) -> Result<Id, Stop> {
    let key = ctx.key(key);
    let last = types::stream::read(ctx.ks, &key)?.map_or(Id::MIN, |stream| stream.last_id());
    match &ctx.args[id] {
        b"$" => Ok(last),
        b"+" => Ok(last.previous().unwrap_or(Id::MIN)),
        b">" => Err(Stop::error(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        )),
        text => stream_ids::parse(text, 0).ok_or(INVALID_ID),
    }
}

fn xreadgroup(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let request = Request::parse(ctx, true)?;
    let Some(reader) = request.reader else { return Err(error::SYNTAX) };
    let mut positions = Vec::with_capacity(request.streams);
    for (key, id) in request.pairs() {
        positions.push(read_position(ctx, key, id, &reader)?);
    }
    let mut streams = Streams::default();
    for ((index, _), position) in request.pairs().zip(positions) {
        let key = ctx.key(index);
        let group = types::stream::read(ctx.ks, &key)?.and_then(|stream| Some((stream, stream.group(reader.group)?)));
        let has_more = group.is_some_and(|(stream, group)| types::stream::has_more(stream, group));
        let is_served = position != Position::New || has_more;
        if !is_served && ctx.session.attempt != Attempt::First {
            // That the consumer was there is known from when it began to wait.
            continue;
        }
        let open = is_served.then(|| {
            streams.begin(ctx.reply, key.bytes);
            ctx.reply.begin_array()
        });
        let reply = &mut *ctx.reply;
        let given = types::stream::deliver(ctx.ks, &key, &reader, position, request.count, &mut |delivery| {
            reply_delivery(reply, delivery);
            // What finds no room is delivered another time.
            reply.copied_len() < REPLY_BYTES_MAX
        })?;
        if let Some(open) = open {
            ctx.reply.end(open, given);
        }
    }
    if streams.count == 0 {
        request.wait(ctx, None);
    } else {
        streams.end(ctx.reply);
    }
    Ok(())
}

/// From where a reader reads a stream.
fn read_position(ctx: &mut Ctx<'_>, key: usize, id: usize, reader: &Reader<'_>) -> Result<Position, Stop> {
    let key = ctx.key(key);
    if !types::stream::has_group(ctx.ks, &key, reader.group)? {
        let words: [&[u8]; 5] = [
            b"NOGROUP No such key '",
            up_to_zero(key.bytes),
            b"' or consumer group '",
            up_to_zero(reader.group),
            b"' in XREADGROUP with GROUP option",
        ];
        return Err(Stop::error_with(words.concat()));
    }
    match &ctx.args[id] {
        b">" => Ok(Position::New),
        b"$" => Err(Stop::error(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
        )),
        b"+" => Err(Stop::error(
            "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.",
        )),
        text => match stream_ids::parse(text, 0).ok_or(INVALID_ID)? {
            // After the last id nothing can be pending: Valkey takes it for `>`.
            Id::MAX => Ok(Position::New),
            id => Ok(Position::Pending(id)),
        },
    }
}

fn reply_delivery(reply: &mut ReplyBuffer, delivery: Delivery<'_>) {
    match delivery {
        Delivery::Entry(entry) => reply_entry(reply, &entry),
        Delivery::Gone(id) => {
            reply.array(2);
            reply_id(reply, id);
            reply.null_array();
        }
    }
}

/// The reply by stream: a map in RESP3, in RESP2 pairs.
#[derive(Default)]
struct Streams {
    open: Option<OpenReply>,
    count: usize,
}

impl Streams {
    fn begin(&mut self, reply: &mut ReplyBuffer, key: &[u8]) {
        let is_map = reply.protocol() == Protocol::Resp3;
        self.open.get_or_insert_with(|| if is_map { reply.begin_map() } else { reply.begin_array() });
        if !is_map {
            reply.array(2);
        }
        reply.bulk(key);
        self.count = self.count.saturating_add(1);
    }

    fn end(self, reply: &mut ReplyBuffer) {
        if let Some(open) = self.open {
            reply.end(open, self.count);
        }
    }
}
