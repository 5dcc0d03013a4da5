//! What COMMAND INFO says about a row: an array of ten.

use command::acl;
use command::spec::{Begin, Find};
use command::{CommandSpec, Flags, KeyFlags, KeySpec, Run};
use proto::ReplyBuffer;

/// Writes the ten elements; `name` in full.
pub(super) fn reply(reply: &mut ReplyBuffer, name: &str, spec: &CommandSpec) {
    reply.array(10);
    reply.bulk(name.as_bytes());
    reply.integer(i64::from(spec.arity));
    reply_words(reply, spec.flags.difference(Flags::HIDDEN).iter_names().map(|(name, _)| name.to_ascii_lowercase()));
    let (first, last, step) = legacy_range(spec.keys);
    [first, last, step].into_iter().for_each(|number| reply.integer(number));
    reply_words(reply, acl::categories(spec).map(|category| format!("@{}", category.name())));
    reply.set(spec.docs.tips.len());
    spec.docs.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    reply.set(spec.keys.len());
    spec.keys.iter().for_each(|key| reply_key_spec(reply, key));
    let subcommands = match spec.run {
        Run::Container(rows) => rows,
        Run::Call(_) | Run::Read(_) => &[],
    };
    reply.array(subcommands.len());
    for row in subcommands {
        self::reply(reply, &format!("{}|{}", spec.name, row.name), row);
    }
}

fn reply_words(reply: &mut ReplyBuffer, words: impl Iterator<Item = String>) {
    let words: Vec<String> = words.collect();
    reply.set(words.len());
    words.iter().for_each(|word| reply.simple(word));
}

/// Writes the flags of a key: those about access as a whole in capitals, as Redis does.
pub(super) fn reply_key_flags(reply: &mut ReplyBuffer, flags: KeyFlags) {
    let access = KeyFlags::RO | KeyFlags::RW | KeyFlags::OW | KeyFlags::RM;
    let shown = |(name, flag): (&str, KeyFlags)| match access.contains(flag) {
        true => name.to_owned(),
        false => name.to_ascii_lowercase(),
    };
    reply_words(reply, flags.iter_names().map(shown));
}

fn reply_key_spec(reply: &mut ReplyBuffer, spec: &KeySpec) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        reply.bulk(b"notes");
        reply.bulk(notes.as_bytes());
    }
    reply.bulk(b"flags");
    reply_key_flags(reply, spec.flags);
    reply.bulk(b"begin_search");
    match spec.begin {
        Begin::Index(index) => reply_typed(reply, "index", &[("index", index as i64)]),
        Begin::Keyword(keyword) => {
            reply.map(2);
            reply.bulk(b"type");
            reply.bulk(b"keyword");
            reply.bulk(b"spec");
            reply.map(2);
            reply.bulk(b"keyword");
            reply.bulk(keyword.word.as_bytes());
            reply.bulk(b"startfrom");
            reply.integer(i64::from(keyword.from));
        }
        Begin::Unknown => reply_typed(reply, "unknown", &[]),
    }
    reply.bulk(b"find_keys");
    match spec.find {
        Find::Range { last, step, limit } => {
            let numbers = [("lastkey", i64::from(last)), ("keystep", step as i64), ("limit", limit as i64)];
            reply_typed(reply, "range", &numbers);
        }
        Find::Count { count, first, step } => {
            let numbers = [("keynumidx", count as i64), ("firstkey", first as i64), ("keystep", step as i64)];
            reply_typed(reply, "keynum", &numbers);
        }
        Find::Rule(_) | Find::Derived(_) => reply_typed(reply, "unknown", &[]),
    }
}

fn reply_typed(reply: &mut ReplyBuffer, kind: &str, numbers: &[(&str, i64)]) {
    reply.map(2);
    reply.bulk(b"type");
    reply.bulk(kind.as_bytes());
    reply.bulk(b"spec");
    reply.map(numbers.len());
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(*number);
    }
}

/// First key, last key and step, as clients older than key specifications know them: one specification as it is, or
/// several that follow each other without a gap.
fn legacy_range(keys: &[KeySpec]) -> (i64, i64, i64) {
    let ranges = keys.iter().filter_map(|spec| match (spec.begin, spec.find) {
        (Begin::Index(first), Find::Range { last, step, .. }) => Some((first as i64, i64::from(last), step as i64)),
        _ => None,
    });
    let absolute = |first: i64, last: i64| if last >= 0 { first + last } else { last };
    let mut joined: Option<(i64, i64, i64)> = None;
    for (first, last, step) in ranges {
        let last = absolute(first, last);
        match joined {
            None => joined = Some((first, last, step)),
            Some((start, end, 1)) if step == 1 && end + 1 == first => joined = Some((start, last, 1)),
            Some(_) => {}
        }
    }
    joined.unwrap_or((0, 0, 0))
}
