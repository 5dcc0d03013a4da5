//! The longest common subsequence of two strings.

use crate::error::{self, Stop};
use crate::spec::{Argument, Docs};
use crate::{Categories, CommandSpec, Ctx, Flags, KeyFlags, KeySpec, Locks, Run};
use proto::ReplyBuffer;
use types::lcs::{Match, Subsequence};
use types::{Kept, TypeError};

/// The rows of this family.
pub const COMMANDS: &[&CommandSpec] = &[&LCS];

static LCS: CommandSpec = CommandSpec {
    name: "lcs",
    arity: -3,
    flags: Flags::READONLY,
    categories: Categories::STRING,
    keys: &[KeySpec::range(1, 1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    locks: Locks::Keys,
    docs: &Docs {
        summary: "Gives the longest common subsequence of two strings.",
        since: "7.0.0",
        group: "string",
        complexity: "O(N*M) where N and M are the lengths of s1 and s2, respectively",
        arguments: &[
            Argument::key("key1", 0),
            Argument::key("key2", 0),
            Argument::word("len", "LEN").optional(),
            Argument::word("idx", "IDX").optional(),
            Argument::integer("min-match-len").after("MINMATCHLEN").optional(),
            Argument::word("withmatchlen", "WITHMATCHLEN").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(lcs),
};

/// What is asked about the subsequence.
#[derive(Default)]
struct Wanted {
    len: bool,
    matches: bool,
    match_len_min: usize,
    match_lens: bool,
}

fn lcs(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let (a, b) = (string(ctx, 1)?, string(ctx, 2)?);
    let (a, b) = (a.value().bytes(), b.value().bytes());
    let wanted = Wanted::parse(ctx)?;
    let limit = ctx.host.string_limit.bytes();
    if wanted.len {
        ctx.reply.integer(types::lcs::length(a, b, limit)? as i64);
        return Ok(());
    }
    let found = types::lcs::subsequence(a, b, limit)?;
    if wanted.matches {
        wanted.reply_matches(ctx.reply, &found);
    } else {
        ctx.reply.bulk(&found.bytes);
    }
    Ok(())
}

/// The string under the key, empty when absent. Small ones are copied, since the other key is read next.
fn string(ctx: &mut Ctx<'_>, index: usize) -> Result<Kept, Stop> {
    let key = ctx.key(index);
    match types::string::get(ctx.ks, &key) {
        Ok(value) => Ok(value.map_or_else(Kept::empty, Kept::new)),
        Err(TypeError::WrongType) => Err(Stop::error("ERR The specified keys must contain string values")),
        Err(error) => Err(error.into()),
    }
}

impl Wanted {
    fn parse(ctx: &Ctx<'_>) -> Result<Self, Stop> {
        let mut wanted = Self::default();
        let mut at = 3;
        while at < ctx.args.len() {
            if ctx.is_word(at, "idx") {
                wanted.matches = true;
            } else if ctx.is_word(at, "len") {
                wanted.len = true;
            } else if ctx.is_word(at, "withmatchlen") {
                wanted.match_lens = true;
            } else if ctx.is_word(at, "minmatchlen") && at.saturating_add(1) < ctx.args.len() {
                at = at.saturating_add(1);
                wanted.match_len_min = usize::try_from(ctx.integer(at)?.max(0)).unwrap_or(usize::MAX);
            } else {
                return Err(error::SYNTAX);
            }
            at = at.saturating_add(1);
        }
        if wanted.len && wanted.matches {
            return Err(Stop::error("ERR If you want both the length and indexes, please just use IDX."));
        }
        Ok(wanted)
    }

    fn reply_matches(&self, reply: &mut ReplyBuffer, found: &Subsequence) {
        let shown = || found.matches.iter().filter(|part| part.len() >= self.match_len_min);
        reply.map(2);
        reply.bulk(b"matches");
        reply.array(shown().count());
        shown().for_each(|part| self.reply_match(reply, part));
        reply.bulk(b"len");
        reply.integer(found.bytes.len() as i64);
    }

    fn reply_match(&self, reply: &mut ReplyBuffer, part: &Match) {
        reply.array(if self.match_lens { 3 } else { 2 });
        for (first, last) in [part.a, part.b] {
            reply.array(2);
            reply.integer(first as i64);
            reply.integer(last as i64);
        }
        if self.match_lens {
            reply.integer(part.len() as i64);
        }
    }
}
