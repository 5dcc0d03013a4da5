//! Reads a file from its magic to its checksum, one item after another.
//!
//! ```text
//! REDIS0011 | aux ... | selectdb 0 | resizedb | [expiration] [idle, frequency] type key value | ... | eof | checksum
//! ```

use crate::error::{Place, RdbError};
use crate::format::{
    Dialect, Form, HEADER_LEN, MAGIC_REDIS, MAGIC_VALKEY, VERSION_OLDEST, VERSION_REDIS, VERSION_VALKEY, kind,
    module_part, opcode,
};
use crate::input::Input;
use crate::read::{read_module_id, read_value, skip_module_parts};
use crate::value::{Module, Value};
use base::UnixMs;
use std::io::Read;

/// Reads a file. Reading cannot continue after an error.
pub struct Reader<R> {
    input: Input<R>,
    version: u32,
    dialect: Dialect,
    db: u32,
    end: Option<End>,
    keeps_lzf: bool,
}

/// The end of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether it had a checksum, which was correct. Servers can be configured to write none.
    pub is_checked: bool,
    /// Its length; bytes of the source after it were not read.
    pub len: u64,
}

/// One item of a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Item {
    /// An aux field: the server's information about itself.
    Aux {
        /// Its name.
        name: Vec<u8>,
        /// Its value.
        value: Vec<u8>,
    },
    /// Number of keys in a database, and of those that expire: a hint.
    Sizes {
        /// The database.
        db: u32,
        /// Keys.
        keys: u64,
        /// Keys that expire.
        expiring: u64,
    },
    /// A key with its value.
    Entry(Box<FileEntry>),
    /// The source text of a library of functions.
    Function(Vec<u8>),
    /// A module's data outside keys; skipped.
    ModuleAux(Module),
    /// Slots that were being imported to the server when it wrote the file.
    SlotImport {
        /// The name of the job.
        job: Vec<u8>,
    },
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    /// Its offset in the file.
    pub offset: u64,
    /// Its database.
    pub db: u32,
    /// The key.
    pub key: Vec<u8>,
    /// Its expiration time, which may have passed.
    pub expire_at: Option<UnixMs>,
    /// Seconds since its last use.
    pub idle_s: Option<u64>,
    /// Its frequency of use, on the logarithmic scale of OBJECT FREQ.
    pub frequency: Option<u8>,
    /// Its form in the file.
    pub form: Form,
    /// The value.
    pub value: Value,
    /// The compressed bytes of a string, if requested: [`Reader::keeping_lzf`].
    pub lzf: Option<Vec<u8>>,
}

/// Everything before a value.
#[derive(Default)]
struct Attributes {
    expire_at: Option<UnixMs>,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

impl<R: Read> Reader<R> {
    /// Begins a file. With its length, lengths in it that lead beyond the end are refused immediately.
    ///
    /// # Errors
    /// The file does not begin as an RDB file, or has an unknown version.
    pub fn new(source: R, len: Option<u64>) -> Result<Self, RdbError> {
        let mut input = Input::new(source, len);
        let header: [u8; HEADER_LEN] = input.array("REDIS or VALKEY and a version")?;
        let (server, digits) = if let Some(digits) = header.strip_prefix(MAGIC_REDIS) {
            ("Redis", digits)
        } else if let Some(digits) = header.strip_prefix(MAGIC_VALKEY) {
            ("Valkey", digits)
        } else {
            return Err(input.damaged(0, "REDIS or VALKEY and a version"));
        };
        let version = digits.iter().try_fold(0, |version, digit| {
            digit.is_ascii_digit().then(|| version * 10 + u32::from(digit.wrapping_sub(b'0')))
        });
        let version = version.ok_or_else(|| input.damaged(0, "a version of digits"))?;
        let dialect = match (server, version) {
            ("Redis", VERSION_OLDEST..=VERSION_REDIS) => Dialect::Redis,
            ("Valkey", VERSION_VALKEY) => Dialect::Valkey,
            _ => return Err(RdbError::Version { server, version }),
        };
        Ok(Self { input, version, dialect, db: 0, end: None, keeps_lzf: false })
    }

    /// Returns strings with their compressed bytes too, so that the caller need not compress them again.
    #[must_use]
    pub fn keeping_lzf(self) -> Self {
        Self { keeps_lzf: true, ..self }
    }

    /// The version of the format.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The dialect of the file's types and opcodes.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// How the file ended, once [`Self::next_item`] has returned all of it.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// The next item; `None` after the last, when the checksum is correct.
    ///
    /// # Errors
    /// Damage, with its offset; a part that can be neither read nor skipped; a failing source.
    pub fn next_item(&mut self) -> Result<Option<Item>, RdbError> {
        if self.end.is_some() {
            return Ok(None);
        }
        let mut attributes = None;
        loop {
            self.input.place = Place::Next;
            let offset = self.input.offset();
            let number = self.input.byte("an opcode or a type")?;
            self.input.place = Place::Opcode(number);
            if let Some(form) = Form::of(number, self.dialect) {
                let attributes = attributes.unwrap_or_default();
                return self.entry(offset, form, attributes).map(|entry| Some(Item::Entry(Box::new(entry))));
            }
            if self.read_attribute(number, &mut attributes)? {
                continue;
            }
            if attributes.is_some() {
                return Err(self.input.damaged(offset, "the value that expires or was used"));
            }
            match number {
                opcode::EOF => {
                    self.finish()?;
                    return Ok(None);
                }
                opcode::SELECTDB => {
                    let db = self.input.length("a database")?;
                    self.db = u32::try_from(db).map_err(|_| self.input.damaged(offset, "a database"))?;
                }
                opcode::SLOT_INFO => {
                    for _ in 0..3 {
                        self.input.length("a slot and its sizes")?;
                    }
                }
                number => return self.other(offset, number).map(Some),
            }
        }
    }

    fn read_attribute(&mut self, number: u8, attributes: &mut Option<Attributes>) -> Result<bool, RdbError> {
        const EXPIRATION: &str = "a time of expiration";
        let input = &mut self.input;
        match number {
            opcode::EXPIRETIME => {
                let seconds = i32::from_le_bytes(input.array(EXPIRATION)?);
                attributes.get_or_insert_default().expire_at = Some(i64::from(seconds) * 1000);
            }
            opcode::EXPIRETIME_MS => {
                attributes.get_or_insert_default().expire_at = Some(input.time_ms(EXPIRATION)?);
            }
            opcode::IDLE => attributes.get_or_insert_default().idle_s = Some(input.length("an idle time")?),
            opcode::FREQ => attributes.get_or_insert_default().frequency = Some(input.byte("a frequency")?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn entry(&mut self, offset: u64, form: Form, attributes: Attributes) -> Result<FileEntry, RdbError> {
        let Attributes { expire_at, idle_s, frequency } = attributes;
        self.input.place = Place::Key(form);
        let key = self.input.own_string()?;
        self.input.place = Place::Value(form);
        self.input.lzf = (self.keeps_lzf && form.number() == kind::STRING).then(Vec::new);
        let value = read_value(&mut self.input, form, self.dialect)?;
        let lzf = self.input.lzf.take().filter(|lzf| !lzf.is_empty());
        Ok(FileEntry { offset, db: self.db, key, expire_at, idle_s, frequency, form, value, lzf })
    }

    fn other(&mut self, offset: u64, number: u8) -> Result<Item, RdbError> {
        let input = &mut self.input;
        Ok(match (number, self.dialect) {
            (opcode::AUX, _) => Item::Aux { name: input.own_string()?, value: input.own_string()? },
            (opcode::RESIZEDB, _) => Item::Sizes {
                db: self.db,
                keys: input.length("a number of keys")?,
                expiring: input.length("a number of expiring keys")?,
            },
            (opcode::FUNCTION2, _) => Item::Function(input.own_string()?),
            (opcode::MODULE_AUX, _) => {
                let module = read_module_id(input)?;
                let at = input.offset();
                if input.length("when a module saved")? != module_part::UINT {
                    return Err(input.damaged(at, "when a module saved"));
                }
                input.length("when a module saved")?;
                skip_module_parts(input)?;
                Item::ModuleAux(module)
            }
            (opcode::SLOT_IMPORT, Dialect::Valkey) => {
                let job = input.own_string()?;
                for _ in 0..input.count(2, "the number of ranges of slots")? {
                    input.length("the first slot of a range")?;
                    input.length("the last slot of a range")?;
                }
                Item::SlotImport { job }
            }
            (opcode::FUNCTION_PRE_GA, _) => {
                return Err(RdbError::Unsupported {
                    offset,
                    what: "functions as pre-releases of Redis 7.0 kept them; no released server reads them".to_owned(),
                });
            }
            (number, _) => {
                return Err(RdbError::Unsupported {
                    offset,
                    what: format!("type or opcode {number} is not known in version {}", self.version),
                });
            }
        })
    }

    fn finish(&mut self) -> Result<(), RdbError> {
        self.input.place = Place::Footer;
        let offset = self.input.offset();
        let computed = self.input.checksum();
        let stored = u64::from_le_bytes(self.input.array("a checksum")?);
        if stored != 0 && stored != computed {
            return Err(RdbError::Checksum { offset, stored, computed });
        }
        self.end = Some(End { is_checked: stored != 0, len: self.input.offset() });
        Ok(())
    }
}
