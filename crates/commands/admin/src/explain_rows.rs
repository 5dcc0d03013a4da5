//! MEMORY EXPLAIN: what keys cost, by their prefixes. Not a command of Redis or Valkey.

use crate::explanations::{Caller, Explanation, Explanations};
use crate::prefixes::Grouping;
use command::blocking::{Awaited, Block};
use command::spec::{Argument, Docs};
use command::{Categories, CommandSpec, Ctx, Flags, Locks, Run, Stop, error};
use std::sync::Arc;
use store::Store;

/// Bytes of PREFIX.
const PREFIX_BYTES_MAX: usize = 512;
/// Parts of a key.
const DEPTH_MAX: i64 = 32;
/// What ends a part unless SEPARATOR says otherwise.
const SEPARATOR: u8 = b':';

pub(crate) static MEMORY_EXPLAIN: CommandSpec = CommandSpec {
    name: "explain",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_MULTI),
    categories: Categories::empty(),
    keys: &[],
    locks: Locks::None,
    docs: &Docs {
        summary: "Gives what the keys of the database cost, by their prefixes. A command of Onggi alone.",
        since: "0.1.0",
        group: "server",
        complexity: "O(N) where N is the number of keys in the database, in steps between other commands.",
        tips: &["nondeterministic_output", "request_policy:all_shards", "response_policy:special"],
        arguments: &[
            Argument::string("prefix").after("PREFIX").optional(),
            Argument::integer("depth").after("DEPTH").optional(),
            Argument::string("separator").after("SEPARATOR").optional(),
        ],
        ..Docs::NONE
    },
    run: Run::Call(explain),
};

fn explain(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    let grouping = grouping(ctx)?;
    let info = ctx.session.info.clone();
    let closer = ctx.host.clients.closer();
    let caller = Caller { worker: info.worker(), client: info.id, closer };
    let store = ctx.host.part::<crate::Needed, Arc<Store>>().clone();
    let explanation = Arc::new(Explanation::new(ctx.ks.space(), grouping, store, caller));
    ctx.host.part::<crate::Needed, Arc<Explanations>>().add(&explanation);
    ctx.session.block = Some(Block::begin(&info, Awaited::Task(explanation), None));
    Ok(())
}

fn grouping(ctx: &Ctx<'_>) -> Result<Grouping, Stop> {
    let mut grouping = Grouping { prefix: Box::default(), depth: 1, separator: SEPARATOR };
    for at in (2..ctx.args.len()).step_by(2) {
        if at + 1 >= ctx.args.len() {
            return Err(error::SYNTAX);
        }
        let value = &ctx.args[at + 1];
        if ctx.is_word(at, "prefix") {
            if value.len() > PREFIX_BYTES_MAX {
                return Err(Stop::error("ERR PREFIX must not be longer than 512 bytes"));
            }
            grouping.prefix = value.into();
        } else if ctx.is_word(at, "depth") {
            let depth = Some(ctx.integer(at + 1)?).filter(|depth| (1..=DEPTH_MAX).contains(depth));
            let depth = depth.and_then(|depth| usize::try_from(depth).ok());
            grouping.depth = depth.ok_or(Stop::error("ERR DEPTH must be between 1 and 32"))?;
        } else if ctx.is_word(at, "separator") {
            let [separator] = value else { return Err(Stop::error("ERR SEPARATOR must be one byte")) };
            grouping.separator = *separator;
        } else {
            return Err(error::SYNTAX);
        }
    }
    Ok(grouping)
}
