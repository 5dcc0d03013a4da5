//! The tier over a simulated disk: reads from memory and files, power cuts, failing writes and syncs, damage.

use crate::{HEADER_BYTES, Medium, Options, SEGMENT_BYTES, Tier, TierError, TierId};
use base::Rng;
use engine::tier::{NewRecord, Origin};
use engine::{Encoding, TierAddress, TierRefusal, Type, ValueTier};
use std::path::Path;
use std::sync::Arc;
use vfs::{Fault, FileSystem, Op, SimFs};

pub const DIR: &str = "/tier";
pub const ID: TierId = TierId([7; 16]);
const OPTIONS: Options = Options { segment_bytes: SEGMENT_BYTES, ..SMALL };
pub const SMALL: Options = Options {
    max_bytes: u64::MAX,
    value_len_min: 64,
    takes_written: false,
    segment_bytes: 64 << 10,
    medium: Medium::File,
    delays: vfs::Delays::NONE,
};

fn open(fs: &SimFs, expected: Option<TierId>) -> Result<Arc<Tier>, TierError> {
    let tier = Tier::open(Arc::new(fs.clone()), Path::new(DIR), expected, ID, OPTIONS, |_| ())?;
    tier.loaded(0);
    Ok(tier)
}

fn tier(fs: &SimFs) -> Arc<Tier> {
    open(fs, None).expect("the tier opens")
}

pub fn key(number: u64) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

pub fn value(number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::new(number).fill(&mut bytes);
    bytes
}

pub fn append(tier: &Tier, number: u64, len: usize) -> TierAddress {
    let address = try_append(tier, number, len).expect("there is room");
    tier.retain(&key(number), address);
    address
}

pub fn try_append(tier: &Tier, number: u64, len: usize) -> Result<TierAddress, TierRefusal> {
    let (key, value) = (key(number), value(number, len));
    let record = NewRecord { key: &key, kind: Type::String, encoding: Encoding::PLAIN, value: &value };
    tier.append(&record, Origin::Memory)
}

pub fn get(tier: &Tier, number: u64, address: TierAddress) -> std::io::Result<Vec<u8>> {
    let mut value = Vec::new();
    tier.get(&key(number), address, &mut value).map(|encoding| {
        assert_eq!(encoding, Encoding::PLAIN);
        value
    })
}

/// A value is read from the buffer, from a waiting chunk and from its file alike.
#[test]
fn a_value_is_read_wherever_it_is() {
    let fs = SimFs::new(1);
    let tier = tier(&fs);
    let addresses: Vec<_> = (0..3000).map(|number| append(&tier, number, 1000)).collect();
    let check = || {
        for (number, address) in (0..).zip(&addresses) {
            assert_eq!(get(&tier, number, *address).expect("it is there"), value(number, 1000));
        }
    };
    check();
    tier.write_waiting().expect("the disk works");
    check();
    tier.sync().expect("the disk works");
    assert_eq!(tier.try_get(&key(1), addresses[1], &mut Vec::new()), None, "it is in its file alone");
    check();
    let figures = tier.figures();
    assert_eq!((figures.segments, figures.waiting_bytes, figures.appended_values), (1, 0, 3000));
    assert_eq!(figures.live_bytes + HEADER_BYTES as u64, figures.bytes);
}

/// Segments are full at 64 MiB at most, and values lie in them at multiples of 16.
#[test]
fn segments_follow_each_other() {
    let fs = SimFs::new(2);
    let tier = tier(&fs);
    let mut addresses = Vec::new();
    for number in 0..20 {
        addresses.push(append(&tier, number, (8 << 20) - 100));
        tier.write_waiting().expect("the disk works");
    }
    tier.sync().expect("the disk works");
    let segments: Vec<u32> = addresses.iter().map(|address| address.segment).collect();
    assert!(segments.is_sorted() && *segments.last().expect("there are some") == 3, "{segments:?}");
    for (path, bytes) in fs.contents().iter().filter(|(path, _)| path.to_string_lossy().contains("seg-")) {
        assert!(bytes.len() <= 64 << 20, "{path:?} has {} bytes", bytes.len());
    }
    for (number, address) in (0..).zip(&addresses) {
        assert_eq!(get(&tier, number, *address).expect("it is there"), value(number, (8 << 20) - 100));
    }
}

/// Synced values survive a power cut at every later operation; what was not synced is there whole, or answers an error.
#[test]
fn no_power_cut_loses_what_was_synced() {
    for seed in 0..40 {
        let fs = SimFs::new(seed);
        let (synced, later) = {
            let tier = tier(&fs);
            let synced: Vec<_> = (0..300).map(|number| append(&tier, number, 100 + number as usize * 20)).collect();
            tier.sync().expect("the disk works");
            fs.crash_at(fs.operations() + 1 + seed % 4);
            let later: Vec<_> = (300..900).map(|number| append(&tier, number, 5000)).collect();
            let _ = tier.sync();
            (synced, later)
        };
        let fs = fs.crash_point().power_cut(seed);
        let tier = open(&fs, Some(ID)).expect("the identity was durable");
        (0..).zip(synced.iter().chain(&later)).for_each(|(number, address)| tier.retain(&key(number), *address));
        for (number, address) in (0..).zip(&synced) {
            let len = 100 + number as usize * 20;
            assert_eq!(get(&tier, number, *address).expect("it was synced"), value(number, len), "seed {seed}");
        }
        for (number, address) in (300..).zip(&later) {
            if let Ok(found) = get(&tier, number, *address) {
                assert_eq!(found, value(number, 5000), "seed {seed}");
            }
        }
        let fresh = append(&tier, 1000, 100);
        assert!(later.iter().all(|old| old.segment < fresh.segment), "T1");
    }
}

/// Where the disk is full the tier takes no more, reads what it has, and accepts values when there is room.
#[test]
fn a_full_disk_refuses_values_for_as_long_as_it_lasts() {
    let fs = SimFs::new(3);
    let tier = tier(&fs);
    let before = append(&tier, 1, 1000);
    tier.sync().expect("the disk works");
    fs.inject(Fault::fail(Op::Write, 28).forever());
    let waiting = append(&tier, 2, 1000);
    tier.sync().expect_err("the disk is full");
    let refused = try_append(&tier, 3, 100);
    assert_eq!(refused, Err(TierRefusal::Full));
    assert!(tier.figures().is_full);
    assert_eq!(get(&tier, 1, before).expect("it is on the disk"), value(1, 1000));
    assert_eq!(get(&tier, 2, waiting).expect("it is in memory"), value(2, 1000));
    fs.clear_faults();
    tier.sync().expect("there is room");
    append(&tier, 3, 100);
    assert!(!tier.figures().is_full);
}

/// What a failed sync lost is unknown: no checkpoint may follow.
#[test]
fn a_failed_sync_is_not_tried_again() {
    let fs = SimFs::new(4);
    let tier = tier(&fs);
    append(&tier, 1, 1000);
    fs.inject(Fault::fail(Op::SyncAll, 5));
    tier.sync().expect_err("the sync fails");
    fs.clear_faults();
    assert!(matches!(tier.sync(), Err(TierError::Unsynced { .. })), "a second sync would lie");
    assert_eq!(try_append(&tier, 2, 99), Err(TierRefusal::Full));
}

/// Damage costs the value it hits, and the error names segment and offset. So does a missing segment.
#[test]
fn damage_costs_one_value() {
    let fs = SimFs::new(5);
    let tier = tier(&fs);
    let addresses: Vec<_> = (0..5).map(|number| append(&tier, number, 100)).collect();
    tier.sync().expect("the disk works");
    let path = Path::new(DIR).join("seg-0000000001");
    let at = u64::from(addresses[2].offset) * 16;
    fs.flip_bit(&path, at + 50, 3).expect("the file is there");
    let error = get(&tier, 2, addresses[2]).expect_err("it is damaged").to_string();
    assert!(error.contains(&format!("segment 1, offset {at}")), "{error}");
    for number in [0, 1, 3, 4] {
        assert_eq!(get(&tier, number, addresses[number as usize]).expect("it is whole"), value(number, 100));
    }
    get(&tier, 1, addresses[0]).expect_err("another key's value");
    assert_eq!(tier.figures().failed_reads, 2);
    drop(tier);
    fs.remove_file(&path).expect("the file is there");
    let tier = open(&fs, Some(ID)).expect("the tier opens");
    tier.retain(&key(0), addresses[0]);
    let error = get(&tier, 0, addresses[0]).expect_err("it is missing").to_string();
    assert!(error.contains("segment 1, offset 48"), "{error}");
    assert_eq!(tier.figures().missing_segments, 1);
    assert_eq!(append(&tier, 9, 100).segment, 2, "the number is not given again");
}

/// A tier is full at its limit, and dead segments make room once no checkpoint can name them.
#[test]
fn dead_segments_are_removed_after_the_checkpoints_that_may_name_them() {
    let fs = SimFs::new(6);
    let tier = tier(&fs);
    let old: Vec<_> = (0..40)
        .map(|number| {
            let address = append(&tier, number, 4 << 20);
            tier.write_waiting().expect("the disk works");
            address
        })
        .collect();
    tier.begin_set(1);
    tier.sync().expect("the disk works");
    let held = tier.figures().bytes;
    tier.set_options(Options { max_bytes: held, ..OPTIONS });
    let refused = try_append(&tier, 99, 100);
    assert_eq!(refused, Err(TierRefusal::Full));
    (0..).zip(&old).for_each(|(number, address)| tier.release(&key(number), *address));
    tier.retire(Some(1)).expect("nothing is removed");
    assert_eq!(tier.figures().bytes, held, "checkpoint 1 names all of it");
    tier.begin_set(2);
    tier.sync().expect("the disk works");
    tier.retire(Some(2)).expect("the disk works");
    let left = tier.figures();
    assert_eq!((left.segments, left.live_bytes), (1, 0), "the open segment stays");
    assert_eq!(fs.contents().keys().filter(|path| path.to_string_lossy().contains("seg-")).count(), 1);
    append(&tier, 99, 100);
}

/// A start that demotes values before all entries are loaded removes no segment: what it has is not known yet.
#[test]
fn no_segment_goes_before_all_entries_are_loaded() {
    let fs = SimFs::new(10);
    let address = {
        let tier = tier(&fs);
        let address = append(&tier, 1, 1000);
        tier.sync().expect("the disk works");
        address
    };
    let tier = Tier::open(Arc::new(fs.clone()), Path::new(DIR), Some(ID), ID, OPTIONS, |_| ()).expect("it opens");
    append(&tier, 2, 1000);
    tier.write_waiting().expect("the disk works");
    tier.retire(None).expect("the disk works");
    tier.retain(&key(1), address);
    tier.loaded(0);
    assert_eq!(get(&tier, 1, address).expect("it is there"), value(1, 1000));
}

/// Another data directory's tier, and one whose device is not mounted, are refused.
#[test]
fn the_right_tier_or_none() {
    let fs = SimFs::new(7);
    assert!(matches!(open(&fs, Some(ID)), Err(TierError::Missing { .. })));
    assert!(!fs.exists(Path::new(DIR)).expect("the disk works"), "nothing was made");
    {
        let tier = tier(&fs);
        append(&tier, 1, 100);
        tier.sync().expect("the disk works");
        tier.named().expect("the disk works");
        assert!(open(&fs, Some(ID)).is_err(), "it is locked");
    }
    assert!(matches!(open(&fs, Some(TierId([8; 16]))), Err(TierError::Foreign { .. })));
    assert!(matches!(open(&fs, None), Err(TierError::Foreign { .. })), "it has segments of another directory");
    open(&fs, Some(ID)).expect("it is the right one");
}

/// Segments that were written before the data directory named the tier, as during the first replay, are leftovers.
#[test]
fn a_crash_before_the_tier_is_named_is_no_other_tier() {
    let fs = SimFs::new(9);
    let tier = tier(&fs);
    let before = append(&tier, 1, 100);
    tier.sync().expect("the disk works");
    let fs = fs.recover(vfs::Outage::PowerCut { seed: 1 });
    drop(tier);
    let tier = open(&fs, None).expect("the tier opens");
    assert_eq!(tier.figures().segments, 0);
    get(&tier, 1, before).expect_err("it is gone");
    tier.named().expect("the disk works");
    tier.named().expect("once is enough");
    append(&tier, 1, 100);
    tier.sync().expect("the disk works");
    drop(tier);
    assert!(matches!(open(&fs, None), Err(TierError::Foreign { .. })));
}

/// A scan gives the records of a segment in order, passes over damage, and says where it is.
#[test]
fn a_scan_passes_over_damage() {
    let fs = SimFs::new(8);
    let tier = tier(&fs);
    let addresses: Vec<_> = (0..3000).map(|number| append(&tier, number, 50 + number as usize % 900)).collect();
    tier.sync().expect("the disk works");
    let scan_all = || {
        let (mut scan, mut found) = (tier.scan(1).expect("the header is whole"), Vec::new());
        while let Some(record) = scan.next_record().expect("the disk works") {
            let number = record.record.key.strip_prefix(b"key:").and_then(|text| std::str::from_utf8(text).ok());
            let number: u64 = number.and_then(|number| number.parse().ok()).expect("it is a key");
            assert_eq!(record.record.value, value(number, 50 + number as usize % 900));
            assert_eq!(record.address, addresses[number as usize]);
            found.push(number);
        }
        (found, scan.damaged().to_vec())
    };
    assert_eq!(scan_all(), ((0..3000).collect(), Vec::new()));
    let path = Path::new(DIR).join("seg-0000000001");
    let at = |number: usize| u64::from(addresses[number].offset) * 16;
    // A length, the middle of a value, and the last record.
    fs.flip_bit(&path, at(100) + 2, 7).expect("the file is there");
    fs.flip_bit(&path, at(200) + 30, 0).expect("the file is there");
    fs.flip_bit(&path, at(2999) + 5, 0).expect("the file is there");
    let expected: Vec<u64> = (0..2999).filter(|number| ![100, 200].contains(number)).collect();
    let end = tier.figures().bytes;
    assert_eq!(scan_all(), (expected, vec![at(100)..at(101), at(200)..at(201), at(2999)..end]));
}
