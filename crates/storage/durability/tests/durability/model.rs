//! Random commands, and the states they make.

use crate::life::Life;
use base::{DbIndex, KeyspaceId, Lsn, Rng, ShardId, UnixMs};
use engine::{Effect, Encoding, Fetch, Fields, Keyspace, PackedFields, SharedBytes, Type, Value};
use store::{At, Blocked, Digest, LockSet, Store, Txn, WriteClass};
use vfs::SimFs;

/// Keys of each database.
const KEYS: u64 = 24;

/// What commands have made, and what of it was known to be durable when.
pub struct Model {
    /// The state before the first command, and after each that changed something.
    states: Vec<(Digest, Option<Lsn>)>,
    /// Operations of the disk begun, and the number of the last state that was durable by then. Ascending.
    durable: Vec<(u64, usize)>,
}

impl Model {
    /// From what a life has begun with.
    pub fn new(life: &Life) -> Self {
        Self { states: vec![(Self::digest(&life.store), None)], durable: Vec::new() }
    }

    /// The digest of a store's entries, expired or not.
    pub fn digest(store: &Store) -> Digest {
        store.digest(UnixMs::MIN)
    }

    /// The number of the last state.
    pub fn last(&self) -> usize {
        self.states.len() - 1
    }

    /// The last state.
    pub fn now(&self) -> Digest {
        self.states[self.last()].0
    }

    /// Everything up to the state is durable.
    pub fn is_durable(&mut self, fs: &SimFs, state: usize) {
        let known = self.durable.last().map_or(0, |(_, known)| *known);
        self.durable.push((fs.operations(), state.max(known)));
    }

    /// Looks at what the log says.
    pub fn look(&mut self, life: &Life) {
        let Some(log) = life.store.log() else { return };
        // Before the operations are counted: it was durable by then.
        let durable = log.durable();
        let state = self.states.iter().rposition(|(_, lsn)| lsn.is_some_and(|lsn| lsn <= durable));
        self.is_durable(&life.fs, state.unwrap_or(0));
    }

    /// Number of the last state that was durable before the operation began.
    fn durable_before(&self, operation: u64) -> usize {
        let known = self.durable.iter().rev().find(|(operations, _)| *operations < operation);
        known.map_or(0, |(_, state)| *state)
    }

    /// A start after a crash at this operation has found this.
    pub fn judge(&self, found: Digest, operation: u64) -> Result<(), String> {
        let floor = self.durable_before(operation);
        if self.states[floor..].iter().any(|(state, _)| *state == found) {
            return Ok(());
        }
        let any = self.states.iter().rposition(|(state, _)| *state == found);
        Err(match any {
            Some(state) => format!("state {state} of {}, though {floor} was durable", self.last()),
            None => format!("no state that ever was; {floor} of {} was durable", self.last()),
        })
    }

    /// A command changed something.
    pub fn push(&mut self, life: &Life) {
        self.states.push((Self::digest(&life.store), life.scratch.wrote()));
    }

    /// Runs `count` random commands.
    pub fn commands(&mut self, life: &mut Life, rng: &mut Rng, count: usize) {
        for _ in 0..count {
            self.command(life, rng);
            self.look(life);
        }
    }

    /// One random command. One that the log refuses does nothing.
    pub fn command(&mut self, life: &mut Life, rng: &mut Rng) {
        let before = life.scratch.changes;
        // One on disk and one in memory change numbers with no other.
        let may_swap = life.durability.disk_databases().len() != 1;
        match rng.below(24) {
            0 => self.expire_some(life, rng),
            1 => _ = run(life, rng, &LockSet::All, transaction),
            2 if may_swap && rng.one_in(3) => _ = run(life, rng, &LockSet::All, swap),
            3 if rng.one_in(4) => _ = run(life, rng, &LockSet::All, clear),
            4 => _ = run(life, rng, &LockSet::All, rename),
            _ => {
                let name = name(rng);
                let locks = LockSet::One(life.store.shard_of_bytes(name.as_bytes()));
                _ = run(life, rng, &locks, |txn, rng| one_key(txn, rng, &name));
            }
        }
        life.end_turn();
        if life.scratch.changes != before {
            life.changes.fetch_add(life.scratch.changes - before, std::sync::atomic::Ordering::Relaxed);
            self.push(life);
        }
        // Sometimes as a client that waits for its reply.
        if rng.one_in(3)
            && let (Some(hold), Some(log)) = (life.scratch.hold(), life.store.log())
        {
            life.wait_until(|| {
                log.durable() >= hold
                    || life.fs.has_crashed()
                    || life.durability.status().log.is_none_or(|log| log.failure.is_some())
            });
        }
    }

    /// Time passes, and what has expired is removed: a record for each shard.
    fn expire_some(&mut self, life: &mut Life, rng: &mut Rng) {
        life.clock.advance_ms(rng.below(2_000));
        let shard = ShardId(rng.below(8) as u16);
        let before = life.scratch.changes;
        life.store.upkeep(shard, 0, &mut life.scratch);
        debug_assert!(life.scratch.changes >= before);
    }
}

fn name(rng: &mut Rng) -> String {
    format!("key:{}", rng.below(KEYS))
}

fn space(txn: &Txn<'_>, rng: &mut Rng) -> KeyspaceId {
    txn.space_of(DbIndex(rng.below(2) as u32)).expect("there are so many databases")
}

/// Commits as worker 0, in one of two databases.
fn run(
    life: &mut Life,
    rng: &mut Rng,
    locks: &LockSet,
    command: impl Fn(&mut Txn<'_>, &mut Rng) -> Result<(), Fetch>,
) -> Result<(), Blocked> {
    use base::Clock as _;
    let at = At {
        now: life.clock.now_ms(),
        db: DbIndex(rng.below(2) as u32),
        touch: false,
        worker: 0,
        writes: WriteClass::Any,
    };
    let mut wants = Vec::new();
    let done = loop {
        if load_all(life, &at, &mut wants).is_err() {
            break Err(Blocked::Log);
        }
        match life.store.commit(&mut life.scratch, locks, &at, |txn| command(txn, rng)) {
            Err(Blocked::Refused) => break Err(Blocked::Refused),
            // A crashed disk makes nothing durable any more: no command waits for it.
            Err(Blocked::Log) if life.fs.has_crashed() => break Err(Blocked::Log),
            Err(_) => std::thread::yield_now(),
            Ok(()) => break Ok(()),
        }
    };
    life.store.release(&wants);
    done
}

/// Has every key of databases on disk, and every value on a tier, in memory, until the wants are released: these
/// commands read after their first change.
fn load_all(life: &mut Life, at: &At, wants: &mut Vec<store::Want>) -> std::io::Result<()> {
    if life.durability.disk_databases().is_empty() && life.durability.tier().is_none() {
        return Ok(());
    }
    let peek_all = |txn: &mut Txn<'_>| {
        let mut result = Ok(());
        for (db, key) in (0..2).flat_map(|db| (0..KEYS).map(move |key| (db, key))) {
            txn.select(DbIndex(db));
            let name = format!("key:{key}");
            result = result.and(txn.peek(&txn.key(name.as_bytes())).map(|_| ()));
        }
        result
    };
    let at = At { writes: WriteClass::Nothing, ..*at };
    while let Err(Blocked::Fetch | Blocked::Shard) = life.store.commit(&mut life.scratch, &LockSet::All, &at, peek_all)
    {
        for want in life.scratch.take_wants() {
            let mut row = Vec::new();
            let is_there = want.rows.as_ref().map(|rows| rows.get(&want.key, &mut row));
            match is_there.expect("there are rows") {
                Ok(is_there) => life.store.install(&want, is_there.then_some(&row[..])),
                Err(error) => return Err(error),
            }
            wants.push(want);
        }
    }
    Ok(())
}

/// What a command on one key does.
fn one_key(txn: &mut Txn<'_>, rng: &mut Rng, name: &str) -> Result<(), Fetch> {
    let key = txn.key(name.as_bytes());
    let now = txn.now();
    let stored = txn.peek(&key)?.map(|entry| (entry.value.len() as u64, entry.expire_at));
    match (rng.below(8), stored) {
        (0, Some((len, _))) if len < 2_000 => {
            let bytes = rng.next_u64().to_le_bytes();
            txn.apply(&Effect::Splice { key, offset: rng.below(len + 20), bytes: &bytes });
        }
        (1, Some(_)) => txn.apply(&Effect::Delete { key }),
        (2, Some(_)) => txn.apply(&Effect::Expire { key, at: now + rng.below(5_000) as i64 + 1 }),
        (3, Some((_, Some(_)))) => txn.apply(&Effect::Persist { key }),
        (4, Some(_)) => {
            let fields = some_fields(rng);
            txn.apply(&Effect::Meta { key, fields: fields.get().tagged(&mut Vec::new()) });
        }
        _ => set(txn, rng, name),
    }
    Ok(())
}

/// A value that no other has.
fn set(txn: &mut Txn<'_>, rng: &mut Rng, name: &str) {
    let key = txn.key(name.as_bytes());
    let len = match rng.below(40) {
        0 => 17_000 + rng.below(60_000),
        1..8 => rng.below(1_000),
        _ => rng.below(60),
    };
    let mut bytes = vec![0; 8 + len as usize];
    rng.fill(&mut bytes);
    let expire_at = rng.one_in(4).then(|| txn.now() + rng.below(5_000) as i64 + 1);
    let shared = SharedBytes::new(bytes);
    let value = if shared.len() > 16_000 { Value::Shared(&shared) } else { Value::Bytes(&shared) };
    let (encoding, kind, mut buffer) = (Encoding::PLAIN, Type::String, Vec::new());
    let fields = some_fields(rng);
    let fields = fields.get().tagged(&mut buffer);
    txn.apply(&match fields.is_none() {
        true => Effect::Set { key, value, encoding, expire_at },
        false => Effect::StoreWith { key, kind, encoding, value, expire_at, fields },
    });
}

/// Optional fields; half of the time none.
fn some_fields(rng: &mut Rng) -> PackedFields {
    let flags = rng.next_u64() as u32;
    let (flags, is_sticky) = if rng.one_in(2) { (flags, rng.one_in(2)) } else { (0, false) };
    // A field of a later version, which is carried.
    let unknown: &[u8] = if is_sticky { b"\xfe\x01x" } else { b"" };
    Fields { flags, is_sticky, unknown, ..Fields::default() }.pack()
}

/// Several changes that are one: in several shards and databases.
fn transaction(txn: &mut Txn<'_>, rng: &mut Rng) -> Result<(), Fetch> {
    for number in 0..2 + rng.below(6) {
        txn.select(DbIndex(rng.below(2) as u32));
        let name = name(rng);
        while let Err(fetch) = one_key(txn, rng, &name) {
            if number == 0 {
                return Err(fetch);
            }
            // As EXEC: what was changed before cannot run again.
            txn.load_lacking().expect("the disk works");
        }
    }
    Ok(())
}

fn swap(txn: &mut Txn<'_>, rng: &mut Rng) -> Result<(), Fetch> {
    let (a, b) = (space(txn, rng), space(txn, rng));
    if a != b {
        txn.apply(&Effect::Swap { a, b });
    }
    Ok(())
}

fn clear(txn: &mut Txn<'_>, rng: &mut Rng) -> Result<(), Fetch> {
    let space = space(txn, rng);
    txn.apply(&Effect::Clear { space });
    Ok(())
}

/// Renames a key, or copies its entry into either database.
fn rename(txn: &mut Txn<'_>, rng: &mut Rng) -> Result<(), Fetch> {
    let (from, to) = (name(rng), name(rng));
    let (from, to) = (txn.key(from.as_bytes()), txn.key(to.as_bytes()));
    if from.bytes != to.bytes && txn.peek(&from)?.is_some() {
        txn.apply(&match rng.one_in(3) {
            true => Effect::Copy { from, to: to.in_space(space(txn, rng)) },
            false => Effect::Rename { from, to },
        });
    }
    Ok(())
}

/// How many times as many seeds as usual.
pub fn rounds() -> u64 {
    number("ONGGI_CRASH_ROUNDS").unwrap_or(1)
}

/// `usual` seeds, multiplied by the rounds asked for.
pub fn seeds(usual: u64) -> impl Iterator<Item = u64> {
    let first = number("ONGGI_TEST_SEED").unwrap_or(1).wrapping_mul(1_000);
    (0..usual * rounds()).map(move |n| first.wrapping_add(n))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name}: a number, not {value:?}")))
}
