//! Requests by the prefixes of their keys: `stats detail on|off|dump`.
//!
//! ```text
//! stats detail on --> Outcomes::is_detailed of each worker --> items: rows of this module, which note a request
//!                                                         '--> collections: Request::answer notes it
//! ```
//!
//! While it is off, commands that get and store items have rows without a trace of this.

use crate::key_prefix::{has_good_prefix, prefix_of};
use crate::prefixes::NULL;
use crate::tally::{OPS, Op, Outcome};
use crate::{delta, get, meta, storage, touch};
use command::{Ctx, Stop};
use engine::Type;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Prefixes that are counted, ARCUS' number. Requests for others are not.
const PREFIXES_MAX: usize = 10_000;

/// The longest prefix that is counted.
const PREFIX_BYTES_MAX: usize = 250;

/// What `stats detail dump` calls requests and those that were hits, in ARCUS' order.
const NAMES: [(Op, &str, &str); 32] = [
    (Op::Get, "get", "hit"),
    (Op::Set, "set", ""),
    (Op::Delete, "del", ""),
    (Op::Incr, "inc", ""),
    (Op::Decr, "dec", ""),
    (Op::LopCreate, "lcs", ""),
    (Op::LopInsert, "lis", "lih"),
    (Op::LopDelete, "lds", "ldh"),
    (Op::LopGet, "lgs", "lgh"),
    (Op::SopCreate, "scs", ""),
    (Op::SopInsert, "sis", "sih"),
    (Op::SopDelete, "sds", "sdh"),
    (Op::SopGet, "sgs", "sgh"),
    (Op::SopExist, "ses", "seh"),
    (Op::MopCreate, "mcs", ""),
    (Op::MopInsert, "mis", "mih"),
    (Op::MopUpdate, "mus", "muh"),
    (Op::MopDelete, "mds", "mdh"),
    (Op::MopGet, "mgs", "mgh"),
    (Op::BopCreate, "bcs", ""),
    (Op::BopInsert, "bis", "bih"),
    (Op::BopUpdate, "bus", "buh"),
    (Op::BopDelete, "bds", "bdh"),
    (Op::BopIncr, "bps", "bph"),
    (Op::BopDecr, "bms", "bmh"),
    (Op::BopGet, "bgs", "bgh"),
    (Op::BopCount, "bns", "bnh"),
    (Op::BopPosition, "pfs", "pfh"),
    (Op::BopPwg, "pgs", "pgh"),
    (Op::BopGbp, "gps", "gph"),
    (Op::GetAttr, "gas", ""),
    (Op::SetAttr, "sas", ""),
];

/// Requests of one prefix, and those of them that were hits, by command.
type Counts = [(u64, u64); OPS];

/// Those of all prefixes; `None` is for keys without one.
type ByPrefix = BTreeMap<Option<Box<[u8]>>, Box<Counts>>;

/// The counts of a server.
#[derive(Default)]
pub struct Details {
    prefixes: Mutex<ByPrefix>,
}

impl Details {
    /// Notes a request for this key.
    fn note(&self, op: Op, key: &[u8], is_hit: bool) {
        let prefix = prefix_of(key);
        if prefix.is_some_and(|prefix| prefix.len() > PREFIX_BYTES_MAX) || !has_good_prefix(key) {
            return;
        }
        let (mut prefixes, prefix) = (self.prefixes.lock(), prefix.map(Box::from));
        if prefixes.len() >= PREFIXES_MAX && !prefixes.contains_key(&prefix) {
            return;
        }
        let counts = prefixes.entry(prefix).or_insert_with(|| Box::new([(0, 0); OPS]));
        if let Some((all, hits)) = counts.get_mut(op as usize) {
            (*all, *hits) = (all.saturating_add(1), hits.saturating_add(u64::from(is_hit)));
        }
    }

    /// How many prefixes have counts.
    pub fn prefix_count(&self) -> usize {
        self.prefixes.lock().len()
    }

    /// Forgets all counts.
    pub fn clear(&self) {
        self.prefixes.lock().clear();
    }

    /// Forgets the counts of one prefix.
    pub fn forget(&self, prefix: Option<&[u8]>) {
        self.prefixes.lock().remove(&prefix.map(Box::from));
    }

    /// The lines of `stats detail dump`, or of those of these prefixes.
    pub fn lines(&self, wanted: Option<&[&[u8]]>) -> Vec<Vec<u8>> {
        let prefixes = self.prefixes.lock();
        let name = |prefix: &Option<Box<[u8]>>| prefix.as_deref().unwrap_or(NULL).to_vec();
        let line = |(name, counts): (Vec<u8>, &Counts)| [&b"PREFIX "[..], &name, words(counts).as_bytes()].concat();
        let is_wanted = |name: &[u8]| wanted.is_none_or(|wanted| wanted.contains(&name));
        prefixes
            .iter()
            .map(|(prefix, counts)| (name(prefix), &**counts))
            .filter(|(name, _)| is_wanted(name))
            .map(line)
            .collect()
    }
}

fn words(counts: &Counts) -> String {
    let mut words = String::new();
    let mut word = |name: &str, count: u64| {
        if !name.is_empty() {
            words.push_str(&format!(" {name} {count}"));
        }
    };
    for (op, of_all, of_hits) in NAMES {
        let (all, hits) = counts.get(op as usize).copied().unwrap_or_default();
        word(of_all, all);
        word(of_hits, hits);
    }
    words
}

/// Notes a request, if that is on.
pub fn note(ctx: &Ctx<'_>, op: Op, key: &[u8], outcome: Option<Outcome>) {
    if ctx.stats.outcomes.is_detailed() {
        ctx.host.part::<crate::Needed, Arc<Details>>().note(op, key, outcome == Some(Outcome::Hit));
    }
}

/// Switches it on or off. What was counted stays.
pub fn switch(ctx: &Ctx<'_>, is_on: bool) {
    ctx.host.figures.each_stats(|stats| stats.outcomes.set_detailed(is_on));
}

/// Carries a request out and notes it.
fn noted(ctx: &mut Ctx<'_>, op: Op, run: fn(&mut Ctx<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
    run(ctx)?;
    ctx.host.part::<crate::Needed, Arc<Details>>().note(op, ctx.args.bytes(1).unwrap_or_default(), false);
    Ok(())
}

/// Carries out a request that gets an item, and notes it.
fn noted_get(ctx: &mut Ctx<'_>, run: fn(&mut Ctx<'_>) -> Result<(), Stop>) -> Result<(), Stop> {
    let key = ctx.key(1);
    let is_hit = ctx.ks.peek_head(&key)?.is_some_and(|entry| entry.kind == Type::String);
    run(ctx)?;
    ctx.host.part::<crate::Needed, Arc<Details>>().note(Op::Get, key.bytes, is_hit);
    Ok(())
}

pub fn get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, get::get_by_call)
}

pub fn get_more(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, get::get_more_by_call)
}

pub fn gets(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, get::gets)
}

pub fn gets_more(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, get::gets_more)
}

pub fn gat(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, touch::gat)
}

pub fn gat_more(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, touch::gat_more)
}

pub fn gats(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, touch::gats)
}

pub fn gats_more(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, touch::gats_more)
}

pub fn set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Set, storage::set)
}

pub fn add(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Set, storage::add)
}

pub fn replace(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Set, storage::replace)
}

pub fn append(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Set, storage::append)
}

pub fn prepend(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Set, storage::prepend)
}

pub fn cas(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Set, storage::cas)
}

pub fn delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Delete, touch::delete)
}

pub fn incr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Incr, delta::incr)
}

pub fn decr(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Decr, delta::decr)
}

pub fn meta_get(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted_get(ctx, meta::get)
}

pub fn meta_set(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Set, meta::set)
}

pub fn meta_delete(ctx: &mut Ctx<'_>) -> Result<(), Stop> {
    noted(ctx, Op::Delete, meta::delete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_bounded_and_bad_ones_left_out() {
        let details = Details::default();
        details.note(Op::Get, b"a:1", true);
        details.note(Op::Get, b"a:2", false);
        details.note(Op::LopInsert, b"k", true);
        details.note(Op::Get, b"b d:2", false);
        details.note(Op::Get, &[&[b'x'; 251][..], b":1"].concat(), false);
        let lines = details.lines(None);
        assert_eq!(lines.len(), 2);
        let line = |index: usize| String::from_utf8_lossy(&lines[index]).into_owned();
        assert!(
            line(0).starts_with("PREFIX <null> get 0 hit 0 set 0 del 0 inc 0 dec 0 lcs 0 lis 1 lih 1 "),
            "{}",
            line(0)
        );
        assert!(line(1).starts_with("PREFIX a get 2 hit 1 ") && line(1).ends_with(" gas 0 sas 0"), "{}", line(1));
        assert_eq!(details.lines(Some(&[b"a"])).len(), 1);
        (0..20_000).for_each(|number| details.note(Op::Set, format!("{number}:1").as_bytes(), false));
        assert_eq!(details.prefix_count(), PREFIXES_MAX);
        details.forget(None);
        assert_eq!(details.prefix_count(), PREFIXES_MAX - 1);
    }

    #[test]
    fn every_command_has_its_names() {
        let mut ops: Vec<usize> = NAMES.iter().map(|(op, ..)| *op as usize).collect();
        ops.sort_unstable();
        let unnamed = [Op::Cas, Op::Touch, Op::BopMget, Op::BopSmget, Op::Auth].map(|op| op as usize);
        let expected: Vec<usize> = (0..OPS).filter(|op| !unnamed.contains(op)).collect();
        assert_eq!(ops, expected);
    }
}
