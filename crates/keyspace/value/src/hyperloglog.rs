//! HyperLogLogs: how many different elements there were, within 0.81 %, in at most 12 KiB. They are strings, and their
//! bytes are those of Redis and Valkey, so that either server reads what the other wrote.
//!
//! ```text
//! "HYLL" | form: 1 | unused: 3 | cardinality: 8, little-endian, its top bit set when it is stale | registers
//! ```
//!
//! An element's hash chooses one of 16,384 registers by 14 bits; the register keeps the highest *rank*: the length of
//! the run of zeros in the other 50 bits, plus one. Registers are [`dense`] (six bits each) or [`sparse`] (runs of
//! equal ones).
//!
//! H1. The bytes are the ones that Valkey 9.1 has after the same commands: not only the registers, but also where runs
//!     are split and joined, and when a sparse one becomes dense.
//! H2. Clients may store any bytes as a string, so nothing here trusts them: what is not a HyperLogLog is [`Invalid`],
//!     and one with broken runs is [`Corrupt`].
//!
//! P. Flajolet et al.: HyperLogLog, AofA 2007. S. Heule et al.: HyperLogLog in Practice, EDBT 2013 (64-bit hashes,
//! sparse form). O. Ertl: New Cardinality Estimation Algorithms for HyperLogLog Sketches, 2017, section 4 (the
//! estimator).

pub mod dense;
mod estimate;
mod murmur;
pub mod sparse;

use estimate::Histogram;
use murmur::murmur64a;

/// Bits of the hash that choose the register.
const INDEX_BITS: u32 = 14;
/// Registers of one HyperLogLog.
pub const REGISTER_COUNT: usize = 1 << INDEX_BITS;
/// The highest rank that a hash can have: all other bits are zero.
const RANK_MAX: u8 = (u64::BITS - INDEX_BITS + 1) as u8;

const MAGIC: &[u8; 4] = b"HYLL";
/// Where the byte that names the form stands.
const FORM_AT: usize = 4;
/// Where the cardinality stands.
pub const CARDINALITY_AT: usize = 8;
/// Bytes before the registers.
pub const HEADER_BYTES: usize = 16;
/// Set in the last byte of the cardinality when it is stale.
const STALE: u8 = 0x80;

/// Every register in a byte of its own, for merging.
pub type Registers = [u8; REGISTER_COUNT];

/// How the registers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Six bits each.
    Dense,
    /// Runs of equal ones.
    Sparse,
}

/// The string is not a HyperLogLog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

/// The runs of a sparse HyperLogLog do not cover its registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// What an element says: the register and the rank it has at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Which register.
    pub register: usize,
    /// From 1 to 51.
    pub rank: u8,
}

impl Observation {
    /// What this element says.
    pub fn of(element: &[u8]) -> Self {
        let hash = murmur64a(element);
        // A bit after the last one ends the run.
        let rest = hash >> INDEX_BITS | 1 << (u64::BITS - INDEX_BITS);
        Self { register: hash as usize % REGISTER_COUNT, rank: rest.trailing_zeros() as u8 + 1 }
    }
}

/// The form of a HyperLogLog.
///
/// # Errors
/// [`Invalid`]: wrong beginning, form or, of a dense one, length. Runs are not looked at.
pub fn form(bytes: &[u8]) -> Result<Form, Invalid> {
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
        return Err(Invalid);
    }
    match bytes[FORM_AT] {
        0 if bytes.len() == dense::BYTES => Ok(Form::Dense),
        1 => Ok(Form::Sparse),
        _ => Err(Invalid),
    }
}

/// The cardinality that was stored with the registers; `None` when these have changed since. The bytes have a [`Form`].
pub fn stored_cardinality(bytes: &[u8]) -> Option<u64> {
    let field = bytes.get(CARDINALITY_AT..HEADER_BYTES)?.try_into().ok()?;
    let number = u64::from_le_bytes(field);
    (number >> 63 == 0).then_some(number)
}

/// Estimates the cardinality from the registers. The bytes have this form.
///
/// # Errors
/// [`Corrupt`].
pub fn estimate(form: Form, bytes: &[u8]) -> Result<u64, Corrupt> {
    let mut histogram = Histogram::new();
    match form {
        Form::Dense => dense::ranks(bytes, |ranks| histogram.count(ranks)),
        Form::Sparse => sparse::runs(bytes, |run| histogram.add(run.rank, run.length))?,
    }
    Ok(histogram.cardinality())
}

/// Estimates the cardinality from registers.
pub fn estimate_registers(registers: &Registers) -> u64 {
    let mut histogram = Histogram::new();
    registers.as_chunks::<8>().0.iter().for_each(|ranks| histogram.count(*ranks));
    histogram.cardinality()
}

/// Raises each register to that of the HyperLogLog, whose bytes have this form.
///
/// # Errors
/// [`Corrupt`]: some may have been raised.
pub fn merge_into(registers: &mut Registers, form: Form, bytes: &[u8]) -> Result<(), Corrupt> {
    match form {
        Form::Dense => {
            let mut groups = registers.as_chunks_mut::<8>().0.iter_mut();
            dense::ranks(bytes, |ranks| {
                if let Some(group) = groups.next() {
                    *group = highest(*group, ranks);
                }
            });
            Ok(())
        }
        Form::Sparse => {
            let mut at = 0;
            sparse::runs(bytes, |run| {
                let end = at + run.length;
                registers[at..end].iter_mut().for_each(|register| *register = (*register).max(run.rank));
                at = end;
            })
        }
    }
}

/// The higher one of each two.
fn highest(a: [u8; 8], b: [u8; 8]) -> [u8; 8] {
    std::array::from_fn(|at| a[at].max(b[at]))
}

/// A HyperLogLog being changed.
#[derive(Clone, Debug)]
pub struct HyperLogLog {
    bytes: Vec<u8>,
    form: Form,
    /// The longest that a sparse one may become: `hll-sparse-max-bytes`.
    sparse_bytes_max: usize,
}

impl HyperLogLog {
    /// One without elements.
    pub fn empty(sparse_bytes_max: usize) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[FORM_AT] = 1;
        sparse::push_zeros(&mut bytes, REGISTER_COUNT);
        Self { bytes, form: Form::Sparse, sparse_bytes_max }
    }

    /// A copy of the bytes, which have this form.
    pub fn copy_of(form: Form, bytes: &[u8], sparse_bytes_max: usize) -> Self {
        Self { bytes: bytes.to_vec(), form, sparse_bytes_max }
    }

    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Marks the stored cardinality as stale.
    pub fn invalidate(&mut self) {
        self.bytes[HEADER_BYTES - 1] |= STALE;
    }

    /// Takes in what an element says. False when nothing changed.
    ///
    /// # Errors
    /// [`Corrupt`].
    pub fn observe(&mut self, seen: Observation) -> Result<bool, Corrupt> {
        self.observe_from(&mut sparse::Hint::default(), seen)
    }

    fn observe_from(&mut self, hint: &mut sparse::Hint, seen: Observation) -> Result<bool, Corrupt> {
        if self.form == Form::Sparse {
            match sparse::raise(&mut self.bytes, hint, seen, self.sparse_bytes_max)? {
                sparse::Raise::Kept => return Ok(false),
                sparse::Raise::Raised => return Ok(true),
                sparse::Raise::Outgrown => self.make_dense()?,
            }
        }
        Ok(dense::raise(&mut self.bytes, seen))
    }

    /// Raises its registers to these; dense from now on if asked for.
    ///
    /// # Errors
    /// [`Corrupt`].
    pub fn raise_to(&mut self, registers: &Registers, make_dense: bool) -> Result<(), Corrupt> {
        if make_dense && self.form == Form::Sparse {
            self.make_dense()?;
        }
        if self.form == Form::Dense {
            dense::merge(&mut self.bytes, registers);
            return Ok(());
        }
        let mut hint = sparse::Hint::default();
        for (register, &rank) in registers.iter().enumerate().filter(|(_, rank)| **rank > 0) {
            self.observe_from(&mut hint, Observation { register, rank })?;
        }
        Ok(())
    }

    fn make_dense(&mut self) -> Result<(), Corrupt> {
        let mut bytes = vec![0; dense::BYTES];
        bytes[..HEADER_BYTES].copy_from_slice(&self.bytes[..HEADER_BYTES]);
        bytes[FORM_AT] = 0;
        let mut register = 0;
        sparse::runs(&self.bytes, |run| {
            if run.rank > 0 {
                (register..register + run.length).for_each(|at| dense::set(&mut bytes, at, run.rank));
            }
            register += run.length;
        })?;
        (self.bytes, self.form) = (bytes, Form::Dense);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
