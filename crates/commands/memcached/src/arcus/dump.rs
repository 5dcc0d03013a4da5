//! `dump`: the keys of a database in a file.

use super::for_administrators;
use crate::dumps::{Dump, Dumps, Wanted, write};
use crate::files;
use crate::prefixes::NULL;
use crate::sweep::{Busy, Purpose, Sweep, Sweeps, silence};
use command::{Ctx, Stop};
use std::sync::Arc;
use store::Store;

const BAD_FORMAT: Stop = Stop::error("CLIENT_ERROR bad command line format");
const TOO_LONG: Stop = Stop::error("CLIENT_ERROR too long prefix name");
const FAILED: &str = "SERVER_ERROR failed. refer to the reason in server log.";

const PREFIX_BYTES_MAX: usize = 250;

/// `dump start key [prefix] file`, or `dump stop`
pub fn dump(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    for_administrators(ctx)?;
    let words: Vec<&[u8]> = ctx.args.from(1).collect();
    let (mode, prefix, name) = match *words.as_slice() {
        [b"stop"] => {
            ctx.host.part::<crate::Needed, Arc<Dumps>>().stop();
            ctx.reply.text_line("OK");
            return Ok(());
        }
        [b"start", mode, name] => (mode, None, name),
        [b"start", mode, prefix, name] => (mode, Some(prefix), name),
        _ => return Err(BAD_FORMAT),
    };
    if prefix.is_some_and(|prefix| prefix.len() > PREFIX_BYTES_MAX) {
        return Err(TOO_LONG);
    }
    if mode != b"key" {
        ctx.reply.text_line("NOT_SUPPORTED");
        return Ok(());
    }
    let (fs, path) = files::named(ctx, "dump", name)?;
    let wanted: Wanted = prefix.map(|prefix| (prefix != NULL).then(|| Box::from(prefix)));
    let Some(run) = ctx.host.part::<crate::Needed, Arc<Dumps>>().start(&wanted, &path, ctx.now()) else {
        tracing::info!("no dump begins: one is running");
        ctx.reply.text_line(FAILED);
        return Ok(());
    };
    let (store, clock) =
        (ctx.host.part::<crate::Needed, Arc<Store>>(), ctx.host.part::<crate::Needed, Arc<Store>>().clock.clone());
    let (dump, chunks) = Dump::new(wanted, run.clone());
    let sweep = Sweep::new(store, ctx.session.db, Purpose::Dump(dump), 0, silence);
    if let Err(Busy) = ctx.host.part::<crate::Needed, Arc<Sweeps>>().add(sweep) {
        run.lock().give_up();
        tracing::info!("no dump begins: too many walks over the database wait");
        ctx.reply.text_line(FAILED);
        return Ok(());
    }
    files::begin(ctx, "dump", ("OK", FAILED), move |opening| write((fs, path, run), &*clock, &chunks, opening));
    Ok(())
}
