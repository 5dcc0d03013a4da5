//! A table with an index: rows and the index by city are two key spaces, which one batch changes together.
//!
//! ```text
//! cargo run --example index
//! ```

use plex::{Db, IterOptions, KeySpaceId, Options, WriteBatch};
use std::error::Error;

/// People by number, and their numbers by city.
struct People {
    db: Db,
    rows: KeySpaceId,
    by_city: KeySpaceId,
}

impl People {
    /// Opens the database in this directory, or makes one.
    fn open(dir: &std::path::Path) -> plex::Result<Self> {
        let db = Options::new().open(dir)?;
        // A key space that exists is found by its name.
        let (rows, by_city) = (db.key_space("people")?, db.key_space("people by city")?);
        Ok(Self { db, rows, by_city })
    }

    /// Adds a person, or moves one: the row, the new entry of the index and the old one change at once, or none does.
    fn put(&self, number: u32, name: &str, city: &str) -> plex::Result<()> {
        let mut batch = WriteBatch::new();
        if let Some(before) = self.db.get_in(self.rows, &number.to_be_bytes())?
            && let Some((_, city)) = split(&before)
        {
            batch.delete_in(self.by_city, &entry(city, number));
        }
        batch.put_in(self.rows, &number.to_be_bytes(), format!("{name}\0{city}").as_bytes());
        batch.put_in(self.by_city, &entry(city, number), b"");
        self.db.write(&batch)
    }

    /// The names of all people in a city, by their numbers.
    fn in_city(&self, city: &str) -> plex::Result<Vec<String>> {
        // The view does not change during the scan, whatever others write.
        let view = self.db.view();
        let mut names = Vec::new();
        for pair in view.iter_in(self.by_city, IterOptions::prefix(&[city.as_bytes(), b"\0"].concat()))? {
            let (key, _) = pair?;
            let number = &key[key.len() - 4..];
            if let Some(row) = view.get_in(self.rows, number)?
                && let Some((name, _)) = split(&row)
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

/// The key of an entry of the index: the city, and the number with its most significant byte first, which is also the
/// order of the keys.
fn entry(city: &str, number: u32) -> Vec<u8> {
    [city.as_bytes(), b"\0", &number.to_be_bytes()].concat()
}

/// Name and city of a row.
fn split(row: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(row).ok()?.split_once('\0')
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("plex-index-{}", std::process::id()));
    let people = People::open(&dir)?;
    people.put(1, "Ada", "London")?;
    people.put(2, "Grace", "New York")?;
    people.put(3, "Alan", "London")?;
    assert_eq!(people.in_city("London")?, ["Ada", "Alan"]);
    people.put(3, "Alan", "Manchester")?;
    assert_eq!(people.in_city("London")?, ["Ada"]);
    drop(people);

    // What was written is there after a start.
    let people = People::open(&dir)?;
    println!("in London: {:?}; in Manchester: {:?}", people.in_city("London")?, people.in_city("Manchester")?);
    drop(people);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
