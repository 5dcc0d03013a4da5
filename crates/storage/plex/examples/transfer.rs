//! Money between accounts: a transaction takes from one and gives to the other, and is tried again if another thread
//! changed either of them meanwhile.
//!
//! ```text
//! cargo run --example transfer
//! ```

use plex::{Db, Error, Options, Wal};
use std::thread;

const ACCOUNTS: u64 = 4;
const EACH: u64 = 1_000;
const TRANSFERS: u64 = 500;

fn key(account: u64) -> [u8; 8] {
    account.to_be_bytes()
}

fn amount(bytes: Option<Vec<u8>>) -> u64 {
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes)
}

/// Moves an amount. Gives how often it was tried.
fn transfer(db: &Db, from: u64, to: u64, moved: u64) -> plex::Result<u64> {
    for tries in 1.. {
        let mut transaction = db.transaction();
        let (have, has) = (amount(transaction.get(&key(from))?), amount(transaction.get(&key(to))?));
        let Some(left) = have.checked_sub(moved) else { return Ok(tries) };
        transaction.put(&key(from), &left.to_be_bytes());
        transaction.put(&key(to), &(has + moved).to_be_bytes());
        match transaction.commit() {
            Err(Error::Conflict { .. }) => {}
            done => return done.map(|()| tries),
        }
    }
    unreachable!("a transfer is tried until it is done")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("plex-transfer-{}", std::process::id()));
    // A power cut may take the last transfers, and then all of each: see the table in the README.
    let db = Options::new().wal(Wal::Async).open(&dir)?;
    for account in 0..ACCOUNTS {
        db.put(&key(account), &EACH.to_be_bytes())?;
    }
    let tries = thread::scope(|scope| {
        let threads: Vec<_> = (0..ACCOUNTS)
            .map(|from| {
                let db = &db;
                scope.spawn(move || {
                    (0..TRANSFERS).map(|n| transfer(db, from, (from + 1 + n % 3) % ACCOUNTS, n % 7)).sum()
                })
            })
            .collect();
        let of_thread = |thread: thread::ScopedJoinHandle<'_, plex::Result<u64>>| thread.join().expect("no panic");
        threads.into_iter().map(of_thread).sum::<plex::Result<u64>>()
    })?;
    let total: u64 = (0..ACCOUNTS).map(|account| db.get(&key(account)).map(amount)).sum::<plex::Result<u64>>()?;
    assert_eq!(total, ACCOUNTS * EACH, "no money came or went");
    println!("{} transfers in {tries} tries; the accounts still hold {total}", ACCOUNTS * TRANSFERS);
    drop(db);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
