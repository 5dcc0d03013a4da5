//! Writes a file from its magic to its checksum.

use crate::encode::{Encoder, Target, WriteError, put_length, put_lzf};
use crate::format::{kind, opcode};
use crate::value::Value;
use base::UnixMs;
use base::checksum::Crc64Rdb;
use std::io::Write;

/// Writes a file.
pub struct Writer<W> {
    sink: W,
    checksum: Crc64Rdb,
    encoder: Encoder,
    /// Bytes to write next.
    buffer: Vec<u8>,
    db: Option<u32>,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// The sink fails, here and in all other methods.
    pub fn new(sink: W, target: Target) -> Result<Self, WriteError> {
        let encoder = Encoder::new(target).compressing();
        let mut writer = Self { sink, checksum: Crc64Rdb::new(), encoder, buffer: Vec::new(), db: None };
        writer.buffer.extend_from_slice(target.header());
        writer.flush()?;
        Ok(writer)
    }

    /// An aux field about the writer. Must precede the first key.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn aux(&mut self, name: &[u8], value: &[u8]) -> Result<(), WriteError> {
        self.buffer.push(opcode::AUX);
        self.encoder.put_string(name, &mut self.buffer);
        self.encoder.put_string(value, &mut self.buffer);
        self.flush()
    }

    /// The source text of a library of functions. Must precede the first key.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn function(&mut self, source: &[u8]) -> Result<(), WriteError> {
        self.buffer.push(opcode::FUNCTION2);
        self.encoder.put_string(source, &mut self.buffer);
        self.flush()
    }

    /// A key of a database, with its value. Write the keys of a database together, and each key once.
    ///
    /// # Errors
    /// [`WriteError::NeedsNewer`], [`WriteError::Module`]: then nothing was written, and other entries can follow.
    pub fn entry(&mut self, db: u32, key: &[u8], expire_at: Option<UnixMs>, value: &Value) -> Result<(), WriteError> {
        let kind = self.encoder.kind(value)?;
        self.put_head(db, key, expire_at, kind);
        self.encoder.put_value(value, &mut self.buffer);
        self.flush()
    }

    /// As [`Self::entry`], for a string of `len` bytes that is already compressed with LZF.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn lzf_entry(
        &mut self,
        db: u32,
        key: &[u8],
        expire_at: Option<UnixMs>,
        lzf: &[u8],
        len: usize,
    ) -> Result<(), WriteError> {
        self.put_head(db, key, expire_at, kind::STRING);
        put_lzf(lzf, len, &mut self.buffer);
        self.flush()
    }

    /// Everything before a value.
    fn put_head(&mut self, db: u32, key: &[u8], expire_at: Option<UnixMs>, kind: u8) {
        if self.db != Some(db) {
            self.buffer.push(opcode::SELECTDB);
            put_length(u64::from(db), &mut self.buffer);
            self.db = Some(db);
        }
        if let Some(expire_at) = expire_at {
            self.buffer.push(opcode::EXPIRETIME_MS);
            self.buffer.extend(expire_at.to_le_bytes());
        }
        self.buffer.push(kind);
        self.encoder.put_string(key, &mut self.buffer);
    }

    /// Ends the file. The owner of the sink is responsible for syncing it.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.buffer.push(opcode::EOF);
        self.flush()?;
        let checksum = self.checksum.finish();
        self.sink.write_all(&checksum.to_le_bytes())?;
        self.sink.flush()?;
        Ok(self.sink)
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.checksum.update(&self.buffer);
        self.sink.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
