//! Which databases a request reaches, besides the one that its client has selected.

use crate::databases::databases_in;
use crate::{Args, Row, Session};
use base::DbIndex;
use base::integer::parse_integer;
use engine::WriteClass;

/// The database by which a request is admitted, of EXEC and what it runs: one of those that get more to hold, and among
/// them one on disk, whose flushes may keep writes waiting. `is_on_disk` knows of each database; `None` for one that
/// there is not.
pub fn admitting_database(
    session: &Session,
    (row, args): (&Row, &Args<'_>),
    is_on_disk: impl Fn(DbIndex) -> Option<bool>,
) -> DbIndex {
    let (mut selected, mut first) = (session.db, None);
    let queued = session.queue_of(row).map(|queued| (queued.row, queued.args.as_args()));
    for (row, args) in queued.chain([(*row, *args)]) {
        let name = row.spec.name;
        let number = |at: usize| Some(DbIndex(u32::try_from(parse_integer(args.bytes(at)?)?).ok()?));
        let named = databases_in(name, &args).into_iter().filter_map(number);
        let named = named.filter(|db| is_on_disk(*db).is_some()).last().unwrap_or(selected);
        if name == "select" {
            selected = named;
        } else if row.writes == WriteClass::Any {
            if is_on_disk(named) == Some(true) {
                return named;
            }
            first.get_or_insert(named);
        }
    }
    first.unwrap_or(session.db)
}
