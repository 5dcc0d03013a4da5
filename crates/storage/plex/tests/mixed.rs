//! Values of very different lengths: what is updated often is small, so hardly anything is garbage.

use std::sync::Arc;

use base::Rng;
use plex::{Background, IterOptions, Options, Policy, Stats};
use vfs::SimFs;

const USERS: u64 = 2000;
const PROFILE_LEN: usize = 10_000;

/// Each user has a profile of 10 KB and a counter of 10 bytes; only counters are updated.
fn counters(policy: Policy) -> (Stats, Stats) {
    let options = Options::new().file_system(Arc::new(SimFs::new(1))).seed(1).background(Background::Inline);
    let db = options.policy(policy).memtable_bytes(80 << 10).table_bytes(160 << 10).open("/db").expect("it opens");
    let key = |user: u64, what: u8| [&user.to_be_bytes()[..], &[what]].concat();
    for i in 0..USERS {
        let user = i * 7919 % USERS;
        db.put(&key(user, b'p'), &vec![i as u8; PROFILE_LEN]).expect("it writes");
        db.put(&key(user, b'c'), &[0; 10]).expect("it writes");
    }
    db.flush().and_then(|()| db.settle()).expect("it merges");
    let before = db.stats();
    let mut rng = Rng::new(3);
    for i in 0..120 * USERS {
        db.put(&key(rng.below(USERS), b'c'), &[i as u8; 10]).expect("it writes");
    }
    assert_eq!(db.iter(IterOptions::default()).expect("it iterates").count() as u64, 2 * USERS);
    (before, db.stats())
}

fn written((before, after): &(Stats, Stats)) -> f64 {
    let tables = |stats: &Stats| stats.flush_bytes + stats.compaction_bytes_written;
    (tables(after) - tables(before)) as f64 / (after.user_bytes - before.user_bytes) as f64
}

/// Garbage was counted in entries: an updated counter passed for as much garbage as a mean entry of 5 KB, everything
/// was merged again and again, and ranges, whose live bytes were underestimated as much, split without end.
#[test]
fn small_updates_beside_large_values_cost_what_leveled_costs() {
    let ranged = counters(Policy::ldc_ranged());
    let leveled = counters(Policy::Leveled { level0_runs_max: 4, level1_bytes: 200 << 10 });
    let (written_ranged, written_leveled) = (written(&ranged), written(&leveled));
    let space = ranged.1.table_bytes as f64 / (USERS * (PROFILE_LEN as u64 + 28)) as f64;
    println!("ranged {written_ranged:.2}, leveled {written_leveled:.2}, SA {space:.2}");
    println!("{} tables became {}", ranged.0.tables, ranged.1.tables);
    assert!(written_ranged <= written_leveled, "{written_ranged} {written_leveled}");
    // Up to 20 runs over some 16 ranges.
    assert!(ranged.1.tables <= 400, "{} tables became {}", ranged.0.tables, ranged.1.tables);
    assert!(space < 1.5, "{space}");
}

/// Large values that are replaced by small ones, or deleted next to small ones that stay, are garbage by their own
/// length.
#[test]
fn large_values_that_go_give_their_space_back() {
    let options = Options::new().file_system(Arc::new(SimFs::new(1))).seed(1).background(Background::Inline);
    let db = options.memtable_bytes(80 << 10).open("/db").expect("it opens");
    let key = |user: u64, what: u8| [&user.to_be_bytes()[..], &[what]].concat();
    for user in 0..USERS {
        db.put(&key(user, b'p'), &[1; PROFILE_LEN]).expect("it writes");
        db.put(&key(user, b'c'), &[0; 10]).expect("it writes");
    }
    for user in 0..USERS {
        match user % 2 {
            0 => db.delete(&key(user, b'p')).expect("it writes"),
            _ => db.put(&key(user, b'p'), &[2; 10]).expect("it writes"),
        }
    }
    db.flush().and_then(|()| db.settle()).expect("it merges");
    let stats = db.stats();
    assert!(stats.table_bytes < 2_000_000, "20 MB were there, {} are left", stats.table_bytes);
}
