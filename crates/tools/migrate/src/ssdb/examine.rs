//! What an SSDB has, and what of it cannot be taken: reads all rows, writes nothing.
//!
//! SSDB keeps the names of each type in order. So names of several types are found by reading those of all types side
//! by side, in constant memory.

use super::row::Row;
use super::session::{ROWS_END, SCORE_MAX, dump, next_row, score};
use super::wire::Wire;
use super::{Ssdb, SsdbRows};
use crate::MigrateError;
use inspect::text::escape;
use std::sync::atomic::{AtomicBool, Ordering};

/// Names and scores that are shown.
const SHOWN_MAX: usize = 5;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SsdbFound {
    /// Rows, without those of keys that expire.
    pub rows: SsdbRows,
    /// Names that have several types.
    pub shared_names: u64,
    /// The first of them, as printable text.
    pub first_names: Vec<String>,
    /// Scores that are not exact here.
    pub scores: u64,
    /// The members of the first of them, as printable text.
    pub first_scores: Vec<String>,
}

/// Names of one type, in order.
struct Names {
    wire: Wire,
    /// The first byte of their rows.
    kind: u8,
    next: Option<(Vec<u8>, Vec<u8>)>,
}

impl Names {
    fn open(ssdb: &Ssdb, kind: u8) -> Result<Self, MigrateError> {
        let wire = dump(ssdb, &[kind], &[kind + 1])?;
        let mut names = Self { wire, kind, next: None };
        names.advance()?;
        Ok(names)
    }

    fn advance(&mut self) -> Result<(), MigrateError> {
        self.next = next_row(&mut self.wire)?;
        // The end of a range belongs to it.
        if self.next.as_ref().is_some_and(|(key, _)| key.first() != Some(&self.kind)) {
            self.next = None;
        }
        Ok(())
    }

    fn name(&self) -> Option<&[u8]> {
        self.next.as_ref().and_then(|(key, _)| key.get(1..))
    }
}

/// Examines an SSDB. Calls `read` with the rows so far.
///
/// # Errors
/// The connection, or what it says.
pub fn examine_ssdb(
    ssdb: &Ssdb,
    stop: &AtomicBool,
    read: &mut dyn FnMut(&SsdbRows),
) -> Result<SsdbFound, MigrateError> {
    let mut found = SsdbFound::default();
    let mut types =
        [b'k', b'H', b'Z', b'Q'].map(|kind| Names::open(ssdb, kind)).into_iter().collect::<Result<Vec<_>, _>>()?;
    while let Some(least) = types.iter().filter_map(Names::name).min().map(<[u8]>::to_vec) {
        let mut count = 0;
        for names in &mut types {
            if names.name() != Some(&least) {
                continue;
            }
            let value = names.next.take().map_or(Vec::new(), |(_, value)| value);
            let size = || value.as_slice().try_into().map_or(0, u64::from_le_bytes);
            let is_expiry = names.kind == b'Z' && least == super::row::EXPIRE_LIST;
            let rows = &mut found.rows;
            match names.kind {
                b'k' => {
                    rows.keys += 1;
                    rows.bytes += (least.len() + value.len()) as u64;
                }
                b'H' => rows.fields += size(),
                b'Q' => rows.items += size(),
                _ if is_expiry => rows.expiring += size(),
                _ => rows.members += size(),
            }
            count += u64::from(!is_expiry);
            names.advance()?;
        }
        if count > 1 {
            found.shared_names += 1;
            show(&mut found.first_names, &least);
        }
        look(&found.rows, stop, read)?;
    }
    let mut wire = dump(ssdb, b"s", ROWS_END)?;
    while let Some((key, value)) = next_row(&mut wire)? {
        if let Some(Row::Member { name, member }) = Row::parse(&key)
            && score(&value).is_none_or(|score| score.unsigned_abs() > SCORE_MAX)
        {
            found.scores += 1;
            show(&mut found.first_scores, &[name, b" ", member].concat());
        }
        look(&found.rows, stop, read)?;
    }
    Ok(found)
}

fn show(shown: &mut Vec<String>, name: &[u8]) {
    if shown.len() < SHOWN_MAX {
        shown.push(escape(name));
    }
}

fn look(rows: &SsdbRows, stop: &AtomicBool, read: &mut dyn FnMut(&SsdbRows)) -> Result<(), MigrateError> {
    if rows.all().is_multiple_of(1024) {
        read(rows);
    }
    match stop.load(Ordering::Relaxed) {
        true => Err(MigrateError::SsdbUnread),
        false => Ok(()),
    }
}
