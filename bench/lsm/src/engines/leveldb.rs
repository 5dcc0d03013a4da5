//! LevelDB through its C interface.

use std::ffi::{c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use super::c::checked;
use super::{BLOCK_CACHE_BYTES, Engine, FILTER_BITS_PER_KEY, Failure, Settings, TableBytes};

/// `leveldb_no_compression`.
const NO_COMPRESSION: c_int = 0;

#[link(name = "leveldb")]
unsafe extern "C" {
    fn leveldb_open(options: *const c_void, name: *const c_char, error: *mut *mut c_char) -> *mut c_void;
    fn leveldb_close(db: *mut c_void);
    fn leveldb_put(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_delete(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_create_snapshot(db: *mut c_void) -> *const c_void;
    fn leveldb_get(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    fn leveldb_create_iterator(db: *mut c_void, options: *const c_void) -> *mut c_void;
    fn leveldb_iter_destroy(iterator: *mut c_void);
    fn leveldb_iter_seek(iterator: *mut c_void, key: *const c_char, key_len: usize);
    fn leveldb_iter_next(iterator: *mut c_void);
    fn leveldb_iter_valid(iterator: *const c_void) -> u8;
    fn leveldb_iter_key(iterator: *const c_void, len: *mut usize) -> *const c_char;
    fn leveldb_iter_value(iterator: *const c_void, len: *mut usize) -> *const c_char;
    fn leveldb_iter_get_error(iterator: *const c_void, error: *mut *mut c_char);
    fn leveldb_options_create() -> *mut c_void;
    fn leveldb_options_set_create_if_missing(options: *mut c_void, value: u8);
    fn leveldb_options_set_write_buffer_size(options: *mut c_void, bytes: usize);
    fn leveldb_options_set_compression(options: *mut c_void, kind: c_int);
    fn leveldb_options_set_filter_policy(options: *mut c_void, policy: *mut c_void);
    fn leveldb_options_set_cache(options: *mut c_void, cache: *mut c_void);
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut c_void;
    fn leveldb_cache_create_lru(bytes: usize) -> *mut c_void;
    fn leveldb_writeoptions_create() -> *mut c_void;
    fn leveldb_readoptions_create() -> *mut c_void;
    fn leveldb_free(pointer: *mut c_void);
}

/// An open LevelDB. Options, filter policy and cache live as long as the process, which opens one.
pub struct LevelDb {
    db: *mut c_void,
    read: *mut c_void,
    write: *mut c_void,
    dir: PathBuf,
}

// SAFETY: LevelDB's database may be used from several threads at once, and options are only read.
unsafe impl Send for LevelDb {}
// SAFETY: as above.
unsafe impl Sync for LevelDb {}

impl LevelDb {
    pub fn open(dir: &Path, settings: &Settings) -> Result<Self, Failure> {
        let name = super::c::path(dir)?;
        // SAFETY: all pointers come from the calls that make them and are never freed; the name ends with a zero.
        unsafe {
            let options = leveldb_options_create();
            leveldb_options_set_create_if_missing(options, 1);
            leveldb_options_set_write_buffer_size(options, settings.memtable_bytes);
            leveldb_options_set_compression(options, NO_COMPRESSION);
            leveldb_options_set_filter_policy(options, leveldb_filterpolicy_create_bloom(FILTER_BITS_PER_KEY as c_int));
            leveldb_options_set_cache(options, leveldb_cache_create_lru(BLOCK_CACHE_BYTES));
            let db = checked(leveldb_free, |error| leveldb_open(options, name.as_ptr(), error))?;
            Ok(Self { db, read: leveldb_readoptions_create(), write: leveldb_writeoptions_create(), dir: dir.into() })
        }
    }
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        // SAFETY: the database is open, and no thread uses it any more.
        unsafe { leveldb_close(self.db) }
    }
}

impl Engine for LevelDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (key_at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the database is open; lengths are those of the slices.
        unsafe {
            checked(leveldb_free, |error| {
                leveldb_put(self.db, self.write, key_at, key.len(), value_at, value.len(), error);
            })
        }
    }

    fn delete(&self, key: &[u8]) -> Result<(), Failure> {
        // SAFETY: the database is open; the length is that of the slice.
        unsafe {
            checked(leveldb_free, |error| {
                leveldb_delete(self.db, self.write, key.as_ptr().cast(), key.len(), error);
            })
        }
    }

    fn hold_view(&self) -> Result<Box<dyn std::any::Any>, Failure> {
        // SAFETY: the database is open. The snapshot is never released: the process ends with its pattern.
        let snapshot = unsafe { leveldb_create_snapshot(self.db) };
        Ok(Box::new(snapshot))
    }

    /// It has none: their keys have prefixes.
    fn make_spaces(&self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn put_in(&self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        self.put(&[&(space as u16).to_be_bytes(), key].concat(), value)
    }
    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let mut len = 0;
        // SAFETY: the database is open; the value is `len` bytes of our own until it is freed.
        unsafe {
            let value = checked(leveldb_free, |error| {
                leveldb_get(self.db, self.read, key.as_ptr().cast(), key.len(), &mut len, error)
            })?;
            if value.is_null() {
                return Ok(false);
            }
            see(std::slice::from_raw_parts(value.cast(), len));
            leveldb_free(value.cast());
        }
        Ok(true)
    }

    fn scan(&self, from: &[u8], count: usize) -> Result<usize, Failure> {
        let (mut pairs, mut len) = (0, 0);
        // SAFETY: the database is open and the iterator lives until the end; keys and values are only pointed at.
        unsafe {
            let iterator = leveldb_create_iterator(self.db, self.read);
            leveldb_iter_seek(iterator, from.as_ptr().cast(), from.len());
            while pairs < count && leveldb_iter_valid(iterator) != 0 {
                std::hint::black_box((leveldb_iter_key(iterator, &mut len), leveldb_iter_value(iterator, &mut len)));
                pairs += 1;
                leveldb_iter_next(iterator);
            }
            let outcome = checked(leveldb_free, |error| leveldb_iter_get_error(iterator, error));
            leveldb_iter_destroy(iterator);
            outcome.map(|()| pairs)
        }
    }

    /// There is no call for it.
    fn flush(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// From its own log of events, which a process begins anew.
    fn table_bytes(&self) -> Result<Option<TableBytes>, Failure> {
        let mut bytes = TableBytes { flush: 0, compaction: 0 };
        for line in std::fs::read_to_string(self.dir.join("LOG"))?.lines() {
            // "Level-0 table #7: 4194304 bytes OK" and "Compacted 4@0 + 0@1 files => 16777216 bytes".
            let number = |text: &str| text.split(' ').next().and_then(|n| n.parse::<u64>().ok());
            if let Some((_, rest)) = line.split_once("Level-0 table #") {
                bytes.flush += rest.split_once(": ").and_then(|(_, size)| number(size)).unwrap_or(0);
            } else if let Some((_, rest)) = line.split_once(" files => ") {
                bytes.compaction += number(rest).unwrap_or(0);
            }
        }
        Ok(Some(bytes))
    }
}
