//! What COMMAND DOCS says about a row: a map with only the pairs there is something to say about.

use command::spec::{Argument, ArgumentKind};
use command::{CommandSpec, Run};
use proto::ReplyBuffer;

/// Writes the map; `name` in full.
pub(super) fn reply(reply: &mut ReplyBuffer, name: &str, spec: &CommandSpec) {
    let docs = spec.docs;
    let open = reply.begin_map();
    let mut count = 0;
    for (key, text) in
        [("summary", docs.summary), ("since", docs.since), ("group", docs.group), ("complexity", docs.complexity)]
    {
        if !text.is_empty() {
            count += pair(reply, key, text);
        }
    }
    let flags = [("deprecated", docs.deprecated.is_some()), ("syscmd", docs.for_operators)];
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
    if flags.clone().count() > 0 {
        reply.bulk(b"doc_flags");
        reply.set(flags.clone().count());
        flags.for_each(|(name, _)| reply.simple(name));
        count += 1;
    }
    if let Some(deprecated) = &docs.deprecated {
        count += pair(reply, "deprecated_since", deprecated.since);
        count += pair(reply, "replaced_by", deprecated.replaced_by);
    }
    if !docs.history.is_empty() {
        reply.bulk(b"history");
        reply.set(docs.history.len());
        for (version, change) in docs.history {
            reply.array(2);
            reply.bulk(version.as_bytes());
            reply.bulk(change.as_bytes());
        }
        count += 1;
    }
    if !docs.arguments.is_empty() {
        reply.bulk(b"arguments");
        reply_arguments(reply, docs.arguments);
        count += 1;
    }
    if let Run::Container(rows) = spec.run {
        reply.bulk(b"subcommands");
        reply.map(rows.len());
        for row in rows {
            let full = format!("{name}|{}", row.name);
            reply.bulk(full.as_bytes());
            self::reply(reply, &full, row);
        }
        count += 1;
    }
    reply.end(open, count);
}

/// Writes a pair of texts; counts one.
fn pair(reply: &mut ReplyBuffer, key: &str, value: &str) -> usize {
    reply.bulk(key.as_bytes());
    reply.bulk(value.as_bytes());
    1
}

fn reply_arguments(reply: &mut ReplyBuffer, arguments: &[Argument]) {
    reply.array(arguments.len());
    arguments.iter().for_each(|argument| reply_argument(reply, argument));
}

fn reply_argument(reply: &mut ReplyBuffer, argument: &Argument) {
    let (kind, parts): (&str, &[Argument]) = match argument.kind {
        ArgumentKind::String => ("string", &[]),
        ArgumentKind::Integer | ArgumentKind::IntegerOf(_) => ("integer", &[]),
        ArgumentKind::Double => ("double", &[]),
        ArgumentKind::Key(_) => ("key", &[]),
        ArgumentKind::Pattern | ArgumentKind::KeyPattern(_) => ("pattern", &[]),
        ArgumentKind::UnixTime => ("unix-time", &[]),
        ArgumentKind::PureToken => ("pure-token", &[]),
        ArgumentKind::OneOf(parts) => ("oneof", parts),
        ArgumentKind::Block(parts) => ("block", parts),
    };
    let open = reply.begin_map();
    let mut count = pair(reply, "name", argument.name) + pair(reply, "type", kind);
    if parts.is_empty() {
        count += pair(reply, "display_text", argument.display.unwrap_or(argument.name));
    }
    if let ArgumentKind::Key(spec) | ArgumentKind::KeyPattern(spec) | ArgumentKind::IntegerOf(spec) = argument.kind {
        reply.bulk(b"key_spec_index");
        reply.integer(spec as i64);
        count += 1;
    }
    for (key, text) in [
        ("token", argument.token),
        ("summary", argument.summary),
        ("since", argument.since),
        ("deprecated_since", argument.deprecated_since),
    ] {
        if let Some(text) = text {
            count += pair(reply, key, text);
        }
    }
    if !argument.flags.is_empty() {
        reply.bulk(b"flags");
        reply.set(argument.flags.iter_names().count());
        argument.flags.iter_names().for_each(|(name, _)| reply.simple(name.to_ascii_lowercase()));
        count += 1;
    }
    if !parts.is_empty() {
        reply.bulk(b"arguments");
        reply_arguments(reply, parts);
        count += 1;
    }
    reply.end(open, count);
}
