//! The tier on mapped media: persistent memory and the page cache, simulated and real.

use crate::tests::{DIR, ID, SMALL, append, get, key, try_append, value};
use crate::{HEADER_BYTES, Medium, MediumInUse, Options, Tier, TierError, offline};
use engine::{TierAddress, TierRefusal, ValueTier};
use std::path::Path;
use std::sync::Arc;
use vfs::{CrashPoint, Fault, FileSystem, Op, RealFs, SimFs, SimOptions, errno};

fn machine(seed: u64, is_dax: bool) -> SimFs {
    SimFs::with_options(SimOptions { seed, is_dax, ..SimOptions::default() })
}

fn open_in(fs: Arc<dyn FileSystem>, dir: &Path, options: Options) -> Result<Arc<Tier>, TierError> {
    let expected = offline::id_of(&*fs, dir)?;
    let tier = Tier::open(fs, dir, expected, ID, options, |_| ())?;
    tier.relieve();
    tier.loaded(0);
    Ok(tier)
}

fn open(fs: &SimFs, medium: Medium) -> Result<Arc<Tier>, TierError> {
    open_in(Arc::new(fs.clone()), Path::new(DIR), Options { medium, ..SMALL })
}

fn shared(fs: &SimFs) -> Arc<Tier> {
    open(fs, Medium::Shared).expect("the tier opens")
}

/// Appends, with a segment made when one is needed.
fn add(tier: &Tier, number: u64, len: usize) -> TierAddress {
    for _ in 0..3 {
        match try_append(tier, number, len) {
            Ok(address) => {
                tier.retain(&key(number), address);
                return address;
            }
            Err(TierRefusal::Busy) => tier.relieve(),
            Err(TierRefusal::Full) => break,
        }
    }
    panic!("there is no room")
}

/// A value without a thread and without a file; `None` when it needs one.
fn at_once(tier: &Tier, number: u64, address: TierAddress) -> Option<Vec<u8>> {
    let mut value = b"before".to_vec();
    tier.try_get(&key(number), address, &mut value)?;
    Some(value.split_off(6))
}

fn paths(fs: &SimFs) -> Vec<(u32, u64)> {
    offline::segments(fs, Path::new(DIR)).expect("the disk works")
}

/// Values are read where they lie, also after a restart, from segments that have no more bytes than their records.
#[test]
fn values_are_read_in_place() {
    let temp = tempfile::tempdir().expect("a directory for the test");
    let machines: [(Arc<dyn FileSystem>, &Path); 3] = [
        (Arc::new(machine(1, false)), Path::new(DIR)),
        (Arc::new(machine(1, true)), Path::new(DIR)),
        (Arc::new(RealFs), temp.path()),
    ];
    for (fs, dir) in machines {
        let options = Options { medium: Medium::Shared, ..SMALL };
        let tier = open_in(fs.clone(), dir, options).expect("the tier opens");
        let addresses: Vec<_> = (0..300).map(|number| add(&tier, number, 64 + number as usize * 7)).collect();
        let check = |tier: &Tier, number: u64| {
            let found = at_once(tier, number, addresses[number as usize]).expect("it is mapped");
            assert_eq!(found, value(number, 64 + number as usize * 7));
        };
        (0..300).for_each(|number| check(&tier, number));
        tier.sync().expect("the disk works");
        let figures = tier.figures();
        assert!(figures.segments > 4 && figures.waiting_bytes == 0, "{figures:?}");
        assert_eq!((figures.appended_values, figures.read_values), (300, 300));
        drop(tier);
        let held: u64 = offline::segments(&*fs, dir).expect("the disk works").iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(held, figures.live_bytes + figures.segments * HEADER_BYTES as u64, "P2");
        let tier = open_in(fs, dir, options).expect("the tier opens");
        for number in 0..300 {
            tier.retain(&key(number), addresses[number as usize]);
            assert_eq!(
                get(&tier, number, addresses[number as usize]).expect("it is there").len(),
                64 + number as usize * 7
            );
            check(&tier, number);
        }
        assert!(addresses.iter().all(|old| old.segment < add(&tier, 999, 100).segment), "T1");
    }
}

/// What is asked for, and what there is.
#[test]
fn the_medium_is_what_the_file_system_grants() {
    for (medium, on_disk, on_dax) in [
        (Medium::File, Some(MediumInUse::File), MediumInUse::File),
        (Medium::Auto, Some(MediumInUse::File), MediumInUse::Dax),
        (Medium::Shared, Some(MediumInUse::Shared), MediumInUse::Dax),
        (Medium::Dax, None, MediumInUse::Dax),
    ] {
        let found = open(&machine(2, false), medium).map(|tier| tier.medium());
        match (found, on_disk) {
            (Ok(found), Some(expected)) => assert_eq!(found, expected, "{medium:?}"),
            (Err(error), None) => {
                assert!(error.to_string().contains("tier-medium dax: the file system of /tier"), "{error}")
            }
            (found, _) => panic!("{medium:?}: {found:?}"),
        }
        let fs = machine(2, true);
        assert_eq!(open(&fs, medium).expect("it opens").medium(), on_dax, "{medium:?}");
        assert!(!fs.exists(&Path::new(DIR).join("PROBE")).expect("the disk works"));
    }
    let shm = Path::new("/dev/shm");
    if RealFs.is_volatile(shm).unwrap_or(false) {
        let temp = tempfile::tempdir_in(shm).expect("a directory for the test");
        let tier =
            open_in(Arc::new(RealFs), temp.path(), Options { medium: Medium::Shared, ..SMALL }).expect("it opens");
        assert_eq!(tier.medium(), MediumInUse::Volatile);
        assert!(tier.medium().to_string().contains("VOLATILE"));
    }
}

/// Damage is found at the first read after a start; it costs its value, and the error names segment and offset.
#[test]
fn damage_is_found_at_the_first_read_after_a_start() {
    let fs = machine(3, true);
    let addresses: Vec<_> = {
        let tier = shared(&fs);
        (0..5).map(|number| add(&tier, number, 100)).collect()
    };
    let at = u64::from(addresses[2].offset) * 16;
    let path = Path::new(DIR).join("seg-0000000001");
    fs.flip_bit(&path, at + 50, 3).expect("the file is there");
    fs.make_unreadable(&path, at + 256..at + 257, None).expect("the file is there");
    let tier = shared(&fs);
    (0..).zip(&addresses).for_each(|(number, address)| tier.retain(&key(number), *address));
    for _ in 0..2 {
        let error = get(&tier, 2, addresses[2]).expect_err("it is damaged").to_string();
        assert!(error.contains(&format!("segment 1, offset {at}: the checksum is wrong")), "{error}");
        let error = get(&tier, 4, addresses[4]).expect_err("its page cannot be read").to_string();
        assert!(error.contains("segment 1, offset") && error.contains("load"), "{error}");
        for number in [0, 1, 3] {
            assert_eq!(get(&tier, number, addresses[number as usize]).expect("it is whole"), value(number, 100));
        }
        get(&tier, 1, addresses[0]).expect_err("another key's value");
    }
    assert_eq!(at_once(&tier, 2, addresses[2]), None);
    drop(tier);
    fs.remove_file(&path).expect("the file is there");
    let tier = shared(&fs);
    tier.retain(&key(0), addresses[0]);
    let error = get(&tier, 0, addresses[0]).expect_err("it is missing").to_string();
    assert!(error.contains("segment 1, offset 48"), "{error}");
}

/// A device without room, and one that fails, refuse values for as long as they do.
#[test]
fn a_failing_medium_takes_no_values() {
    let fs = machine(4, true);
    let tier = shared(&fs);
    let before = add(&tier, 1, 1000);
    fs.inject(Fault::fail(Op::Store, errno::EIO));
    assert_eq!(try_append(&tier, 2, 1000), Err(TierRefusal::Full), "the store fails");
    assert_eq!(try_append(&tier, 2, 1000), Err(TierRefusal::Full), "until the writer has looked");
    fs.inject(Fault::fail(Op::Allocate, errno::ENOSPC).forever());
    tier.write_waiting().expect_err("there is no room for a segment");
    assert!(tier.figures().is_full);
    assert_eq!(get(&tier, 1, before).expect("it is there"), value(1, 1000));
    fs.clear_faults();
    tier.write_waiting().expect("there is room");
    let after = add(&tier, 2, 1000);
    assert!(after.segment > before.segment, "a segment that failed takes no more");
    assert_eq!(get(&tier, 2, after).expect("it is there"), value(2, 1000));
    assert!(!tier.figures().is_full);
}

/// The limit counts whole segments, cleaning has a share of it, and dead segments make room.
#[test]
fn the_limit_counts_whole_segments() {
    let fs = machine(5, true);
    let max_bytes = 8 * SMALL.segment_bytes;
    let options = Options { medium: Medium::Dax, max_bytes, ..SMALL };
    let tier = open_in(Arc::new(fs.clone()), Path::new(DIR), options).expect("it opens");
    let mut addresses = Vec::new();
    loop {
        match try_append(&tier, addresses.len() as u64, 1000) {
            Ok(address) => {
                tier.retain(&key(addresses.len() as u64), address);
                addresses.push(address);
            }
            Err(TierRefusal::Busy) => tier.relieve(),
            Err(TierRefusal::Full) => break,
        }
        let held: u64 = paths(&fs).iter().map(|(_, bytes)| bytes).sum();
        assert!(held <= max_bytes, "{held}");
    }
    assert!(addresses.len() > 5 * 62, "{}", addresses.len());
    let free = tier.figures();
    assert!(free.is_full && free.bytes <= max_bytes, "{free:?}");
    for (number, address) in (0..).zip(&addresses).filter(|(_, address)| address.segment == 1) {
        tier.release(&key(number), *address);
    }
    tier.retire(None).expect("the disk works");
    tier.relieve();
    add(&tier, 9999, 1000);
}

/// The scan of a segment that was not cut sees its records, and no damage in the zeros after them.
#[test]
fn unused_space_is_no_damage() {
    let fs = machine(6, true);
    let tier = shared(&fs);
    let addresses: Vec<_> = (0..20).map(|number| add(&tier, number, 100 + number as usize)).collect();
    let fs = fs.recover(vfs::Outage::ProcessKill);
    drop(tier);
    assert_eq!(paths(&fs)[0], (1, SMALL.segment_bytes));
    let scan_all = |fs: &SimFs| {
        let mut scan = offline::scan(fs, &offline::segment_path(Path::new(DIR), 1)).expect("the header is whole");
        let mut found = Vec::new();
        while let Some(record) = scan.next_record().expect("the disk works") {
            found.push(record.address);
        }
        (found, scan.damaged().to_vec())
    };
    assert_eq!(scan_all(&fs), (addresses.clone(), Vec::new()));
    let path = offline::segment_path(Path::new(DIR), 1);
    fs.damage(&path, 40_000, b"noise").expect("the file is there");
    let (found, damaged) = scan_all(&fs);
    assert_eq!(found, addresses);
    assert_eq!(damaged.last().map(|range| range.end), Some(40_016), "what follows the noise is unused");
}

/// What was appended when: the operation after which the address was known, and that of a sync after it.
struct Told {
    number: u64,
    len: usize,
    address: TierAddress,
    appended_at: u64,
    synced_at: Option<u64>,
}

/// A run on a fresh machine, with its crash points.
fn run(seed: u64, is_dax: bool, values: u64) -> (Vec<CrashPoint>, Vec<Told>) {
    let fs = machine(seed, is_dax);
    let tier = shared(&fs);
    let mut told: Vec<Told> = Vec::new();
    fs.record_crash_points();
    for number in 0..values {
        let len = 64 + (seed as usize * 131 + number as usize * 977) % 6000;
        let address = add(&tier, number, len);
        told.push(Told { number, len, address, appended_at: fs.operations(), synced_at: None });
        if (number + seed).is_multiple_of(7) {
            tier.sync().expect("the disk works");
            let now = Some(fs.operations());
            told.iter_mut().filter(|told| told.synced_at.is_none()).for_each(|told| told.synced_at = now);
        }
    }
    let points = fs.take_crash_points();
    fs.crash();
    (points, told)
}

/// Checks the machine after a crash at an operation. Values are whole, or lost as a sync or a fence allows. None is
/// wrong.
fn judge(fs: &SimFs, told: &[Told], operation: u64, is_dax: bool, what: &str) {
    let tier = open(fs, Medium::Shared).unwrap_or_else(|error| panic!("{what}: {error}"));
    for Told { number, len, address, appended_at, synced_at } in told {
        let durable_at = if is_dax { Some(*appended_at) } else { *synced_at };
        tier.retain(&key(*number), *address);
        match get(&tier, *number, *address) {
            Ok(found) => assert!(found == value(*number, *len), "{what}: value {number} is wrong"),
            Err(error) => {
                let may_be_lost = durable_at.is_none_or(|durable_at| durable_at > operation);
                assert!(may_be_lost, "{what}: value {number} at {address:?} is lost: {error}");
            }
        }
    }
    let fresh = add(&tier, 5000, 100);
    let known = told.iter().filter(|told| told.appended_at <= operation);
    assert!(known.into_iter().all(|told| told.address.segment < fresh.segment), "{what}: T1");
}

/// On persistent memory a value is durable when its address is known, in the page cache after a sync; in every crash
/// that is drawn.
#[test]
fn power_cuts_lose_what_no_fence_covered() {
    let rounds = std::env::var("ONGGI_CRASH_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"));
    let mut checked = 0;
    for seed in 0..4 * rounds {
        let is_dax = seed % 2 == 0;
        let (points, told) = run(seed, is_dax, 40);
        for point in &points {
            let (operation, what) = (point.operation(), format!("seed {seed}, operation {}", point.operation()));
            judge(&point.power_cut(seed), &told, operation, is_dax, &what);
            checked += 1;
        }
    }
    println!("{checked} crash points");
    assert!(checked >= 300 * rounds, "{checked}");
}

/// Every subset of the words of a record that is not fenced, at every operation of two appends.
#[test]
fn every_subset_of_words_is_survived() {
    let fs = machine(9, true);
    let tier = shared(&fs);
    let mut told = Vec::new();
    let mut tell = |tier: &Tier, number| {
        let address = add(tier, number, 64);
        told.push(Told { number, len: 64, address, appended_at: fs.operations(), synced_at: None });
    };
    tell(&tier, 1);
    fs.record_crash_points();
    (2..4).for_each(|number| tell(&tier, number));
    let mut states = 0;
    for point in fs.take_crash_points() {
        for state in 0..point.word_states().expect("few words") {
            let what = format!("operation {}, state {state}", point.operation());
            judge(&point.with_word_state(state), &told, point.operation(), true, &what);
            states += 1;
        }
    }
    assert!(states > 2 * 1024, "{states}");
    append(&tier, 4, 64);
}
