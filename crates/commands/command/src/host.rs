//! The parts of the server that commands about the server need: configuration, clients, slow log and the like.
//!
//! Each part is a type of its own, in the crate it belongs to; a command asks for the part it needs and sees no other.
//! Upper crates add parts (and rows) of theirs without this crate knowing them.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes the ids of types, which are hashes themselves.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Ids of a compiler that gives them in another form; slower, and as good.
        bytes.iter().for_each(|byte| self.0 = self.0.wrapping_mul(0x100_0000_01B3) ^ u64::from(*byte));
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = id;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The parts, by type. Assembled once at startup, then only read.
#[derive(Default)]
pub struct Host {
    parts: HashMap<TypeId, Box<dyn Any + Send + Sync>, BuildHasherDefault<IdHasher>>,
}

impl Host {
    /// Adds a part, replacing one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, part: T) -> Self {
        self.parts.insert(TypeId::of::<T>(), Box::new(part));
        self
    }

    /// The part of this type.
    ///
    /// # Panics
    /// When startup has not added it: a row needs a part that its server does not have.
    pub fn part<T: 'static>(&self) -> &T {
        self.find().unwrap_or_else(|| panic!("no part {} in this server", type_name::<T>()))
    }

    /// The part of this type, if this server has one.
    pub fn find<T: 'static>(&self) -> Option<&T> {
        self.parts.get(&TypeId::of::<T>()).and_then(|part| part.downcast_ref())
    }
}
