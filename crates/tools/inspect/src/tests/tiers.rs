//! Directories with values on a tier.

use super::*;
use crate::{
    Format, Point, Show, Source, ToolError, Verdict, When, backup, check, decode, plan_repair, repair, restore,
};
use engine::tier::{NewRecord, Origin};
use engine::{Fields, PackedFields, TaggedFields, ValueTier};
use tier::{Options, Tier, TierId, offline};

const TIER: &str = "/tier";
const INTO: &str = "/backup";
const ID: TierId = TierId([3; 16]);

/// Shorter values stay in the checkpoint.
pub(super) const VALUE_LEN_MIN: usize = 60;

/// The value of a key whose value cannot be read.
pub(super) const UNREADABLE: &[u8] = b"unreadable";

/// Puts a value on the tier, and gives the fields of its entry.
pub(super) fn append(tier: &Tier, key: &[u8], value: &[u8]) -> PackedFields {
    let record = NewRecord { key, kind: Type::String, encoding: encoding_of(value), value };
    let address = tier.append(&record, Origin::Memory).expect("there is room");
    tier.retain(key, address);
    Fields { tier: Some(address), ..Fields::default() }.pack()
}

/// The value of an entry of a set, as a server finds it.
pub(super) fn read(
    fs: &SimFs,
    dir: &Path,
    manifest: &ManifestFile,
    key: &[u8],
    fields: &TaggedFields<'_>,
) -> Option<Vec<u8>> {
    let (address, mut value) = (fields.get().tier.expect("it is on the tier"), Vec::new());
    let info = manifest.current().tier.as_ref().expect("the manifest names it");
    let dir = offline::directory(fs, dir, TierId(info.id), info.path()).expect("the disk works");
    assert_eq!(offline::id_of(fs, &dir).expect("it is whole"), Some(TierId(info.id)));
    Tier::read_in(fs, &dir, key, address, &mut value).ok().map(|_| value)
}

/// As [`two_sets`], with values on a tier in many segments.
fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    let value_len_min = VALUE_LEN_MIN;
    let options = Options {
        max_bytes: u64::MAX,
        value_len_min,
        takes_written: false,
        segment_bytes: 2048,
        medium: tier::Medium::File,
        delays: vfs::Delays::NONE,
    };
    let tier = Tier::open(shared(&world.fs), Path::new(TIER), None, ID, options, |_| ()).expect("it opens");
    world.tier = Some(tier);
    let mut next = world.manifest.current().clone();
    next.tier = Some(checkpoint::TierInfo { id: ID.0, dir: TIER.as_bytes().to_vec() });
    world.manifest.commit(&world.dir, next).expect("the disk works");
    world.changes(120);
    world.checkpoint();
    world.changes(150);
    world.checkpoint();
    world.changes(20);
    world
}

fn stopped(mut world: World) -> Stopped {
    world.tier = None;
    world.stop()
}

fn checked(fs: &SimFs, dir: &Path) -> (Verdict, String) {
    let mut said = String::new();
    let verdict = check(&shared(fs), dir, &mut |line| {
        said.push_str(&format!("{line}\n"));
    });
    (verdict.expect("it can be read"), said)
}

fn segments(fs: &SimFs) -> Vec<u32> {
    let all = offline::segments(fs, Path::new(TIER)).expect("the disk works");
    all.into_iter().map(|(number, _)| number).collect()
}

fn shown(fs: &SimFs, path: &Path) -> (bool, String) {
    let mut out = Vec::new();
    let show = Show { format: Format::Text, full: false };
    let whole = decode(&shared(fs), path, show, &mut out).expect("it can be read");
    (whole, String::from_utf8(out).expect("it is text"))
}

/// `inspect` shows the records of a segment, and where damage is.
#[test]
fn a_segment_is_shown() {
    let stopped = stopped(world(1));
    let path = offline::segment_path(Path::new(TIER), 1);
    let (whole, text) = shown(&stopped.fs, &path);
    assert!(whole && text.contains("segment 1 of tier 0303") && text.contains("  string at offset 48,"), "{text}");
    let (_, overview) = shown(&stopped.fs, Path::new(TIER));
    assert!(overview.contains("tier segment /tier/seg-0000000001") && overview.contains("TIER: names"), "{overview}");
    stopped.fs.flip_bit(&path, 70, 1).expect("the file is there");
    let (whole, damaged) = shown(&stopped.fs, &path);
    assert!(!whole && damaged.contains("at offset 48 are no record"), "{damaged}");
    assert_eq!(damaged.lines().count(), text.lines().count(), "one record is lost");
}

/// `check` finds damaged, torn and missing segments, another tier and none.
#[test]
fn damage_on_the_tier_is_found() {
    let stopped = stopped(world(2));
    let (verdict, said) = checked(&stopped.fs, Path::new(DIR));
    assert!(verdict == Verdict::Good && said.contains("good     tier /tier: "), "{said}");
    let last = *segments(&stopped.fs).last().expect("there are some");
    assert!(last > 3, "there are many segments");
    let path = offline::segment_path(Path::new(TIER), last);
    type Damage<'d> = &'d dyn Fn(&SimFs);
    let damages: [(&str, Damage<'_>); 5] = [
        ("1 value cannot be read, the first at offset 48: their records are damaged", &|fs| {
            fs.flip_bit(&path, 70, 1).expect("the file is there")
        }),
        ("the first at offset 48: the file is missing", &|fs| fs.remove_file(&path).expect("the file is there")),
        ("the header is damaged", &|fs| fs.flip_bit(&path, 3, 1).expect("the file is there")),
        ("/tier: no tier is there", &|fs| fs.remove_file(Path::new("/tier/TIER")).expect("the file is there")),
        ("TIER is damaged", &|fs| fs.flip_bit(Path::new("/tier/TIER"), 20, 1).expect("the file is there")),
    ];
    for (expected, damage) in damages {
        let fs = stopped.fs.recover(vfs::Outage::ProcessKill);
        damage(&fs);
        let (verdict, said) = checked(&fs, Path::new(DIR));
        assert!(verdict == Verdict::Damaged && said.contains(expected), "{expected}: {said}");
    }
}

/// A backup of a running server has the segments that its checkpoint names, and outlives the original.
#[test]
fn a_backup_has_its_segments() {
    let mut world = world(3);
    let (durable, clock) = (world.log.durable_lsn(), ManualClock::new(9_000_000));
    let expected =
        world.states.iter().rfind(|(after, _, _)| *after <= durable).expect("some state is durable").2.clone();
    world.changes(30);
    world.checkpoint();
    let newest = world.manifest.current().newest().map(|set| set.cut);
    let expected = if newest.is_some_and(|cut| cut > durable) { world.model.clone() } else { expected };
    let (fs, from) = (shared(&world.fs), Path::new(DIR));
    let mut said = String::new();
    let mut say = |line: &str| said.push_str(line);
    backup(&fs, &clock, from, Some(durable), Path::new(INTO), HistoryId([9; 20]), &mut say).expect("the disk works");
    assert!(said.contains("linked /backup/tier/seg-") && said.contains("--tier-dir /backup/tier"), "{said}");
    let stopped = stopped(world);
    for segment in segments(&stopped.fs) {
        stopped.fs.remove_file(&offline::segment_path(Path::new(TIER), segment)).expect("it is there");
    }
    let (verdict, said) = checked(&stopped.fs, Path::new(INTO));
    assert_eq!(verdict, Verdict::Good, "{said}");
    assert!(start(&stopped.fs, Path::new(INTO)).expect("it starts") == expected);
    // A copy of the copy, from another place.
    stopped.fs.rename(Path::new(INTO), Path::new("/moved")).expect("the disk works");
    let (to, into) = (When::At(Point::Time(UnixMs::MAX)), Path::new("/again"));
    let source = Source::Stopped(Path::new("/moved"));
    restore(&shared(&stopped.fs), &clock, &source, to, into, HistoryId([8; 20]), &mut |_| {}).expect("it is whole");
    assert!(start(&stopped.fs, into).expect("it starts") == expected);
}

/// A restore to a moment has the values of that moment.
#[test]
fn a_restore_to_a_moment() {
    let stopped = stopped(world(4));
    let clock = ManualClock::new(9_000_000);
    let sets = ManifestFile::load(&DataDir::open_to_look(shared(&stopped.fs), Path::new(DIR))).expect("it is whole");
    let first = sets.expect("there is one").current().sets[0].cut;
    let moments: Vec<_> = stopped.states.iter().filter(|(lsn, _, _)| *lsn >= first).step_by(23).collect();
    assert!(moments.len() > 3, "{} moments", moments.len());
    for (number, (lsn, _, expected)) in moments.into_iter().enumerate() {
        let into = PathBuf::from(format!("/restored-{number}"));
        let (fs, source, to) = (shared(&stopped.fs), Source::Stopped(Path::new(DIR)), When::At(Point::Lsn(*lsn)));
        restore(&fs, &clock, &source, to, &into, HistoryId([number as u8; 20]), &mut |_| {}).expect("it is reachable");
        assert!(start(&stopped.fs, &into).expect("it starts") == *expected, "LSN {lsn}");
    }
}

/// Damage on the tier costs its keys: a restore keeps them as they are. A repair finds them in an older checkpoint and
/// the log, or leaves them out and names them.
#[test]
fn damage_costs_its_keys() {
    let stopped = stopped(world(5));
    let clock = ManualClock::new(9_000_000);
    // A value that the log after the checkpoint does not change.
    let (fs, damaged, lost) = segments(&stopped.fs)
        .into_iter()
        .rev()
        .find_map(|segment| {
            let fs = stopped.fs.recover(vfs::Outage::ProcessKill);
            fs.flip_bit(&offline::segment_path(Path::new(TIER), segment), 50, 1).expect("the file is there");
            let model = start(&fs, Path::new(DIR)).expect("it starts");
            let lost = model.iter().find(|(_, value)| *value == UNREADABLE).map(|(key, _)| key.clone());
            lost.map(|lost| (fs, model, lost))
        })
        .expect("some value is not changed later");
    let mut said = String::new();
    let (source, to) = (Source::Stopped(Path::new(DIR)), When::At(Point::Time(UnixMs::MAX)));
    let mut say = |line: &str| said.push_str(line);
    restore(&shared(&fs), &clock, &source, to, Path::new(INTO), HistoryId([9; 20]), &mut say).expect("it is whole");
    assert!(said.contains("1 value cannot be read") && said.contains("answer an error"), "{said}");
    assert!(start(&fs, Path::new(INTO)).expect("it starts") == damaged);
    // The older checkpoint, and the log after it, have the value; the copy has one checkpoint.
    for (dir, is_lost) in [(DIR, false), (INTO, true)] {
        let plan = plan_repair(&shared(&fs), Path::new(dir), false).expect("it can be read").expect("it is damaged");
        let name = String::from_utf8_lossy(&lost.1);
        assert_eq!(plan.lost.iter().any(|line| line.contains(&*name)), is_lost, "{:?}", plan.lost);
        repair(&shared(&fs), &clock, Path::new(dir), &plan, HistoryId([7; 20]), &mut |_| {}).expect("it is possible");
        let left = start(&fs, Path::new(dir)).expect("it starts");
        let mut expected = stopped.model.clone();
        if is_lost {
            expected.remove(&lost);
        }
        assert!(left == expected, "{dir}");
        let (verdict, said) = checked(&fs, Path::new(dir));
        assert_eq!(verdict, Verdict::Good, "{said}");
        assert!(plan_repair(&shared(&fs), Path::new(dir), false).expect("it can be read").is_none());
    }
}

/// Without a manifest, the tier is not known: nothing is made that would lack its values.
#[test]
fn a_repair_needs_to_know_the_tier() {
    let stopped = stopped(world(6));
    stopped.fs.flip_bit(&Path::new(DIR).join("MANIFEST"), 20, 1).expect("the file is there");
    let refused = plan_repair(&shared(&stopped.fs), Path::new(DIR), false);
    assert!(matches!(&refused, Err(ToolError::NotRepairable { why, .. }) if why.contains("MANIFEST")), "{refused:?}");
}
