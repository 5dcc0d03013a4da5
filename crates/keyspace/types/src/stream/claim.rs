//! XCLAIM and XAUTOCLAIM.

use super::{Change, Id, change, notify, read_to_edit};
use crate::TypeError;
use base::UnixMs;
use engine::{Key, Keyspace};
use std::collections::BTreeMap;
use value::stream::{Claim, Claims, Ids};

/// A consumer that takes over pending entries of others.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// The group, which exists.
    pub group: &'a [u8],
    /// The consumer; made when it is not there.
    pub consumer: &'a [u8],
    /// Only entries that were delivered at least this many milliseconds ago.
    pub min_idle_ms: i64,
    /// It wants the ids only, and that is no delivery (JUSTID).
    pub just_ids: bool,
}

/// What XCLAIM sets besides the owner.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimOptions {
    /// When the entries count as delivered; now if not given, or not in the past.
    pub delivered: Option<UnixMs>,
    /// How often they count as delivered; once more than before if not given.
    pub deliveries: Option<u64>,
    /// Also claims entries that are pending for no consumer.
    pub force: bool,
    /// The group has delivered at least up to here.
    pub last: Id,
}

/// Claims entries by id, and gives the ids of those that were claimed.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn claim(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    claimant: &Claimant<'_>,
    ids: &[Id],
    options: &ClaimOptions,
) -> Result<Vec<Id>, TypeError> {
    let now = ks.now();
    let Some(stream) = read_to_edit(ks, key)? else { return Ok(Vec::new()) };
    let Some(group) = stream.group(claimant.group) else { return Ok(Vec::new()) };
    let delivered = options.delivered.filter(|time| (0..=now).contains(time)).unwrap_or(now);
    let mut given = Vec::new();
    // An id may be named twice, and then is claimed from the claimant.
    let mut outcome = Outcome::default();
    for &id in ids {
        let pending = outcome.claims.get(&id).copied().or_else(|| group.pending_entry(id).map(|entry| entry.claim()));
        if stream.entry(id).is_none() {
            if pending.is_some() {
                outcome.gone.push(id);
            }
            continue;
        }
        let old = match pending {
            None if options.force => Claim { id, delivered, deliveries: 1 },
            Some(pending) if claimant.may_take(&pending, now) => pending,
            _ => continue,
        };
        let deliveries = options.deliveries.unwrap_or(claimant.deliveries_after(&old));
        outcome.claims.insert(id, Claim { id, delivered, deliveries });
        given.push(id);
    }
    let last = Some(options.last).filter(|last| *last > group.last_delivered());
    let read = group.entries_read();
    let active = group.consumer(claimant.consumer).map(|consumer| consumer.active());
    if let Some(last) = last {
        change(ks, key, |out| Change::SetGroup { group: claimant.group, last, read }.put(out));
    }
    settle(ks, key, claimant, active, outcome);
    Ok(given)
}

/// Where XAUTOCLAIM looks.
#[derive(Clone, Copy, Debug)]
pub struct AutoClaim {
    /// From this id on.
    pub start: Id,
    /// Entries to claim at most.
    pub count: u64,
}

/// What came of XAUTOCLAIM.
#[derive(Clone, Debug)]
pub struct AutoClaimed {
    /// Where the next call starts; 0-0 at the end.
    pub next: Id,
    /// What was claimed.
    pub claimed: Vec<Id>,
    /// What was pending and had been removed from the stream. It is not pending any more.
    pub gone: Vec<Id>,
}

/// Pending entries that XAUTOCLAIM looks at for each that it may claim.
const ATTEMPTS_PER_CLAIM: u64 = 10;

/// Claims the entries that have been pending for long.
///
/// # Errors
/// [`TypeError::WrongType`], [`TypeError::Fetch`].
pub fn auto_claim(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    claimant: &Claimant<'_>,
    search: AutoClaim,
) -> Result<AutoClaimed, TypeError> {
    let now = ks.now();
    let mut claimed = AutoClaimed { next: Id::MIN, claimed: Vec::new(), gone: Vec::new() };
    let Some(stream) = read_to_edit(ks, key)? else { return Ok(claimed) };
    let Some(group) = stream.group(claimant.group) else { return Ok(claimed) };
    let mut outcome = Outcome::default();
    let (mut count, mut attempts) = (search.count, search.count.saturating_mul(ATTEMPTS_PER_CLAIM));
    for pending in group.pending(search.start) {
        let id = pending.id();
        if count == 0 || attempts == 0 {
            claimed.next = id;
            break;
        }
        attempts = attempts.saturating_sub(1);
        if stream.entry(id).is_none() {
            outcome.gone.push(id);
        } else if claimant.may_take(&pending.claim(), now) {
            let deliveries = claimant.deliveries_after(&pending.claim());
            outcome.claims.insert(id, Claim { id, delivered: now, deliveries });
        } else {
            continue;
        }
        count = count.saturating_sub(1);
    }
    let active = group.consumer(claimant.consumer).map(|consumer| consumer.active());
    claimed.claimed = outcome.claims.keys().copied().collect();
    claimed.gone.clone_from(&outcome.gone);
    settle(ks, key, claimant, active, outcome);
    Ok(claimed)
}

impl Claimant<'_> {
    fn may_take(&self, pending: &Claim, now: UnixMs) -> bool {
        self.min_idle_ms <= 0 || now.saturating_sub(pending.delivered) >= self.min_idle_ms
    }

    fn deliveries_after(&self, pending: &Claim) -> u64 {
        if self.just_ids { pending.deliveries } else { pending.deliveries.wrapping_add(1) }
    }
}

/// What claiming changes.
#[derive(Default)]
struct Outcome {
    claims: BTreeMap<Id, Claim>,
    gone: Vec<Id>,
}

/// Makes the changes. `active` is when the claimant was given an entry last; `None` when it is new.
fn settle(
    ks: &mut dyn Keyspace,
    key: &Key<'_>,
    claimant: &Claimant<'_>,
    active: Option<Option<UnixMs>>,
    outcome: Outcome,
) {
    let Claimant { group, consumer, .. } = *claimant;
    let seen = ks.now();
    let has_claimed = !outcome.claims.is_empty();
    change(ks, key, |out| {
        let active = if has_claimed { Some(seen) } else { active.flatten() };
        Change::SetConsumer { group, consumer, seen, active }.put(out);
        let mut buffer = Vec::new();
        if !outcome.gone.is_empty() {
            Change::Acknowledge { group, ids: Ids::collect(outcome.gone, &mut buffer) }.put(out);
        }
        let mut buffer = Vec::new();
        if has_claimed {
            let claims = Claims::collect(outcome.claims.into_values(), &mut buffer);
            Change::Deliver { group, consumer, claims }.put(out);
        }
    });
    if active.is_none() {
        notify(ks, key, "xgroup-createconsumer");
    }
}
