//! A b+tree outside its keyspace, to be read by another thread.

use super::{Query, Tree};
use crate::{Kept, TypeError};
use engine::{Encoding, Entry, NewEntry, PackedFields, Type};

/// An entry as it was: shared, or copied if it is small.
pub struct Snapshot {
    kind: Type,
    encoding: Encoding,
    value: Kept,
    fields: PackedFields,
}

impl Snapshot {
    /// Takes one.
    pub fn of(entry: &Entry<'_>) -> Self {
        let Entry { kind, encoding, value, fields, .. } = *entry;
        Self { kind, encoding, value: Kept::new(value), fields: fields.to_owned() }
    }

    /// The tree.
    ///
    /// # Errors
    /// [`TypeError::WrongType`].
    pub fn tree(&self) -> Result<Tree<'_>, TypeError> {
        let Self { kind, encoding, ref value, ref fields } = *self;
        let (value, fields) = (value.value(), fields.get());
        Tree::of_entry(&NewEntry { kind, encoding, value, expire_at: None, fields }.as_entry(&[]))
    }

    /// Bytes that it copied, or shares.
    pub fn bytes(&self) -> usize {
        match &self.value {
            Kept::Big(tree) => tree.content_bytes(),
            value => value.value().len(),
        }
    }
}

impl Tree<'_> {
    /// How many elements an answer to the query looks at, or a little more.
    pub fn cost(&self, query: &Query) -> u64 {
        let in_range = self.count(&Query { filter: None, ..query.clone() });
        query.elements_max().map_or(in_range, |max| in_range.min(max))
    }
}
