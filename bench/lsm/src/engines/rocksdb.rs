//! RocksDB through its C interface.

use std::ffi::{c_char, c_double, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::RwLock;

use super::c::checked;
use super::{BLOCK_CACHE_BYTES, Engine, FILTER_BITS_PER_KEY, Failure, Settings, TableBytes};

/// `rocksdb_no_compression`.
const NO_COMPRESSION: c_int = 0;
/// `rocksdb_universal_compaction`.
const UNIVERSAL_COMPACTION: c_int = 1;
/// Runs at which universal compaction begins: the measured peer of the targets.
const UNIVERSAL_RUNS: c_int = 12;
/// Memtables in level 0 at which it is merged, by default; the first level is as large, as its tuning guide says.
const LEVEL0_RUNS: u64 = 4;
/// The default size of a table.
const TABLE_BYTES_MAX: u64 = 64 << 20;

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_open(options: *const c_void, name: *const c_char, error: *mut *mut c_char) -> *mut c_void;
    fn rocksdb_close(db: *mut c_void);
    fn rocksdb_put(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_delete(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_writebatch_create() -> *mut c_void;
    fn rocksdb_writebatch_destroy(batch: *mut c_void);
    fn rocksdb_writebatch_delete_range(
        batch: *mut c_void,
        start: *const c_char,
        start_len: usize,
        end: *const c_char,
        end_len: usize,
    );
    fn rocksdb_write(db: *mut c_void, options: *const c_void, batch: *mut c_void, error: *mut *mut c_char);
    fn rocksdb_create_column_family(
        db: *mut c_void,
        options: *const c_void,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut c_void;
    fn rocksdb_column_family_handle_destroy(family: *mut c_void);
    fn rocksdb_put_cf(
        db: *mut c_void,
        options: *const c_void,
        family: *mut c_void,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_create_snapshot(db: *mut c_void) -> *const c_void;
    fn rocksdb_get(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    fn rocksdb_flush(db: *mut c_void, options: *const c_void, error: *mut *mut c_char);
    fn rocksdb_flushoptions_create() -> *mut c_void;
    fn rocksdb_create_iterator(db: *mut c_void, options: *const c_void) -> *mut c_void;
    fn rocksdb_iter_destroy(iterator: *mut c_void);
    fn rocksdb_iter_seek(iterator: *mut c_void, key: *const c_char, key_len: usize);
    fn rocksdb_iter_next(iterator: *mut c_void);
    fn rocksdb_iter_valid(iterator: *const c_void) -> u8;
    fn rocksdb_iter_key(iterator: *const c_void, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_value(iterator: *const c_void, len: *mut usize) -> *const c_char;
    fn rocksdb_iter_get_error(iterator: *const c_void, error: *mut *mut c_char);
    fn rocksdb_options_create() -> *mut c_void;
    fn rocksdb_options_set_create_if_missing(options: *mut c_void, value: u8);
    fn rocksdb_options_set_write_buffer_size(options: *mut c_void, bytes: usize);
    fn rocksdb_options_set_compression(options: *mut c_void, kind: c_int);
    fn rocksdb_options_set_compaction_style(options: *mut c_void, style: c_int);
    fn rocksdb_options_set_level0_file_num_compaction_trigger(options: *mut c_void, count: c_int);
    fn rocksdb_options_set_max_bytes_for_level_base(options: *mut c_void, bytes: u64);
    fn rocksdb_options_set_target_file_size_base(options: *mut c_void, bytes: u64);
    fn rocksdb_options_set_block_based_table_factory(options: *mut c_void, table_options: *mut c_void);
    fn rocksdb_block_based_options_create() -> *mut c_void;
    fn rocksdb_block_based_options_set_filter_policy(options: *mut c_void, policy: *mut c_void);
    fn rocksdb_block_based_options_set_block_cache(options: *mut c_void, cache: *mut c_void);
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: c_double) -> *mut c_void;
    fn rocksdb_cache_create_lru(bytes: usize) -> *mut c_void;
    fn rocksdb_writeoptions_create() -> *mut c_void;
    fn rocksdb_readoptions_create() -> *mut c_void;
    fn rocksdb_free(pointer: *mut c_void);
}

/// How it compacts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Leveled,
    Universal,
}

/// An open RocksDB. Options, filter policy and cache live as long as the process, which opens one.
pub struct RocksDb {
    db: *mut c_void,
    read: *mut c_void,
    write: *mut c_void,
    options: *mut c_void,
    /// Addresses of column families.
    families: RwLock<Vec<usize>>,
    dir: PathBuf,
}

// SAFETY: RocksDB's database may be used from several threads at once, and options are only read.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

impl RocksDb {
    pub fn open(dir: &Path, settings: &Settings, style: Style) -> Result<Self, Failure> {
        let name = super::c::path(dir)?;
        let memtable = settings.memtable_bytes as u64;
        // SAFETY: all pointers come from the calls that make them and are never freed; the name ends with a zero.
        unsafe {
            let tables = rocksdb_block_based_options_create();
            let filter = rocksdb_filterpolicy_create_bloom_full(c_double::from(FILTER_BITS_PER_KEY));
            rocksdb_block_based_options_set_filter_policy(tables, filter);
            rocksdb_block_based_options_set_block_cache(tables, rocksdb_cache_create_lru(BLOCK_CACHE_BYTES));
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_set_write_buffer_size(options, settings.memtable_bytes);
            rocksdb_options_set_compression(options, NO_COMPRESSION);
            rocksdb_options_set_block_based_table_factory(options, tables);
            match style {
                Style::Leveled => {
                    rocksdb_options_set_max_bytes_for_level_base(options, LEVEL0_RUNS * memtable);
                    rocksdb_options_set_target_file_size_base(options, memtable.min(TABLE_BYTES_MAX));
                }
                Style::Universal => {
                    rocksdb_options_set_compaction_style(options, UNIVERSAL_COMPACTION);
                    rocksdb_options_set_level0_file_num_compaction_trigger(options, UNIVERSAL_RUNS);
                }
            }
            let db = checked(rocksdb_free, |error| rocksdb_open(options, name.as_ptr(), error))?;
            let (read, write) = (rocksdb_readoptions_create(), rocksdb_writeoptions_create());
            Ok(Self { db, read, write, options, families: RwLock::default(), dir: dir.into() })
        }
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        let families = std::mem::take(self.families.get_mut().expect("no thread panics"));
        // SAFETY: the database is open, and no thread uses it any more, nor its column families, which go first.
        unsafe {
            families.into_iter().for_each(|family| rocksdb_column_family_handle_destroy(family as *mut c_void));
            rocksdb_close(self.db)
        }
    }
}

impl Engine for RocksDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let (key_at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the database is open; lengths are those of the slices.
        unsafe {
            checked(rocksdb_free, |error| {
                rocksdb_put(self.db, self.write, key_at, key.len(), value_at, value.len(), error);
            })
        }
    }

    fn delete(&self, key: &[u8]) -> Result<(), Failure> {
        // SAFETY: the database is open; the length is that of the slice.
        unsafe {
            checked(rocksdb_free, |error| {
                rocksdb_delete(self.db, self.write, key.as_ptr().cast(), key.len(), error);
            })
        }
    }

    fn hold_view(&self) -> Result<Box<dyn std::any::Any>, Failure> {
        // SAFETY: the database is open. The snapshot is never released: the process ends with its pattern.
        let snapshot = unsafe { rocksdb_create_snapshot(self.db) };
        Ok(Box::new(snapshot))
    }

    fn delete_range(&self, from: &[u8], to: &[u8]) -> Result<bool, Failure> {
        let (from_at, to_at) = (from.as_ptr().cast(), to.as_ptr().cast());
        // SAFETY: the database is open; lengths are those of the slices, and the batch is freed once.
        unsafe {
            let batch = rocksdb_writebatch_create();
            rocksdb_writebatch_delete_range(batch, from_at, from.len(), to_at, to.len());
            let outcome = checked(rocksdb_free, |error| rocksdb_write(self.db, self.write, batch, error));
            rocksdb_writebatch_destroy(batch);
            outcome?;
        }
        Ok(true)
    }

    /// Column families.
    fn make_spaces(&self, count: usize) -> Result<(), Failure> {
        let make = |number: usize| {
            let name = std::ffi::CString::new(number.to_string())?;
            // SAFETY: the database is open, options live as long as the process, the name ends with a zero.
            let family = unsafe {
                checked(rocksdb_free, |error| rocksdb_create_column_family(self.db, self.options, name.as_ptr(), error))
            };
            Ok(family? as usize)
        };
        *self.families.write().expect("no thread panics") = (0..count).map(make).collect::<Result<_, Failure>>()?;
        Ok(())
    }

    fn put_in(&self, space: usize, key: &[u8], value: &[u8]) -> Result<(), Failure> {
        let family = self.families.read().expect("no thread panics")[space] as *mut c_void;
        let (key_at, value_at) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the database is open, the family was made by it; lengths are those of the slices.
        unsafe {
            checked(rocksdb_free, |error| {
                rocksdb_put_cf(self.db, self.write, family, key_at, key.len(), value_at, value.len(), error);
            })
        }
    }
    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let mut len = 0;
        // SAFETY: the database is open; the value is `len` bytes of our own until it is freed.
        unsafe {
            let value = checked(rocksdb_free, |error| {
                rocksdb_get(self.db, self.read, key.as_ptr().cast(), key.len(), &mut len, error)
            })?;
            if value.is_null() {
                return Ok(false);
            }
            see(std::slice::from_raw_parts(value.cast(), len));
            rocksdb_free(value.cast());
        }
        Ok(true)
    }

    fn scan(&self, from: &[u8], count: usize) -> Result<usize, Failure> {
        let (mut pairs, mut len) = (0, 0);
        // SAFETY: the database is open and the iterator lives until the end; keys and values are only pointed at.
        unsafe {
            let iterator = rocksdb_create_iterator(self.db, self.read);
            rocksdb_iter_seek(iterator, from.as_ptr().cast(), from.len());
            while pairs < count && rocksdb_iter_valid(iterator) != 0 {
                std::hint::black_box((rocksdb_iter_key(iterator, &mut len), rocksdb_iter_value(iterator, &mut len)));
                pairs += 1;
                rocksdb_iter_next(iterator);
            }
            let outcome = checked(rocksdb_free, |error| rocksdb_iter_get_error(iterator, error));
            rocksdb_iter_destroy(iterator);
            outcome.map(|()| pairs)
        }
    }

    fn flush(&self) -> Result<(), Failure> {
        // SAFETY: the database is open; the options wait by default.
        unsafe { checked(rocksdb_free, |error| rocksdb_flush(self.db, rocksdb_flushoptions_create(), error)) }
    }

    /// From its own log of events, which a process begins anew.
    fn table_bytes(&self) -> Result<Option<TableBytes>, Failure> {
        let (mut all, mut compaction) = (0, 0);
        for line in std::fs::read_to_string(self.dir.join("LOG"))?.lines() {
            let Some((_, json)) = line.split_once("EVENT_LOG_v1 ") else { continue };
            let event: serde_json::Value = serde_json::from_str(json)?;
            match event["event"].as_str() {
                Some("table_file_creation") => all += event["file_size"].as_u64().unwrap_or(0),
                Some("compaction_finished") => compaction += event["total_output_size"].as_u64().unwrap_or(0),
                _ => {}
            }
        }
        Ok(Some(TableBytes { flush: all - compaction, compaction }))
    }
}
