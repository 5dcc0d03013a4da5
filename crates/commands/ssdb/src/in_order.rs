//! Ranges of names in a database that keeps them in order: a walk takes as long as what it gives, and as the names of
//! other types that it passes over.
//!
//! ```text
//! command, locks in turn: what has changed lately --> another thread: rows, and these in between
//!        ^                                                 |
//!        '------------ it runs again, for more, or for the reply
//! ```
//!
//! A key that is there from the begin to the end is seen; one that comes or goes meanwhile may be.

use crate::range::Range;
use base::UnixMs;
use command::error::REPLY_TOO_LONG;
use command::limits::REPLY_BYTES_MAX;
use command::{Ctx, Stop};
use engine::{ChangedNames, Names, Type};

/// Changed names that a step takes of each shard, at most.
const CHANGED_MAX: usize = 64;

/// A walk under way.
struct Walk {
    /// What is still to be seen; `None` when all is.
    rest: Option<Names>,
    found: Vec<Vec<u8>>,
    name_bytes: usize,
    limit: usize,
    /// Why rows cannot be read.
    error: Option<String>,
}

impl Walk {
    /// One step. Reads rows.
    fn step(mut self, changed: ChangedNames, kind: Type, now: UnixMs) -> Self {
        let Some(rest) = self.rest.take() else { return self };
        let wanted = self.limit.saturating_sub(self.found.len());
        match changed.step(&rest, Some(kind), now, wanted) {
            Err(error) => self.error = Some(error.to_string()),
            Ok(step) => {
                self.name_bytes =
                    step.names.iter().fold(self.name_bytes, |sum, (name, _)| sum.saturating_add(name.len()));
                self.found.extend(step.names.into_iter().map(|(name, _)| name));
                let goes_on = self.found.len() < self.limit;
                self.rest = step.end.filter(|_| goes_on).map(|end| rest.behind(end));
            }
        }
        self
    }
}

/// The names of keys of this type in the range, in order; `None` where names are in no order.
pub fn names(ctx: &mut Ctx<'_>, kind: Type, range: &Range<'_>) -> Option<Result<Vec<Vec<u8>>, Stop>> {
    let (space, now) = (ctx.ks.space(), ctx.now());
    let begin =
        || Walk { rest: Some(range.names()), found: Vec::new(), name_bytes: 0, limit: range.limit, error: None };
    let walk = ctx.made_of_copies::<Walk>().unwrap_or_else(begin);
    if let Some(error) = walk.error {
        return Some(Err(Stop::error_with(format!("error IOERR names cannot be read: {error}"))));
    }
    if walk.name_bytes > REPLY_BYTES_MAX {
        return Some(Err(REPLY_TOO_LONG));
    }
    let Some(rest) = &walk.rest else { return Some(Ok(walk.found)) };
    let wanted = walk.limit.saturating_sub(walk.found.len());
    let changed = ctx.ks.changed_names(space, rest, wanted.clamp(1, CHANGED_MAX))?;
    let held = walk.name_bytes.saturating_add(changed.held_bytes());
    Some(Err(ctx.make_of_rows(held, move || walk.step(changed, kind, now))))
}
