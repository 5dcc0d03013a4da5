//! The connections of a worker by id.

use crate::connection::Connection;
use slab::Slab;
use std::ops::{Index, IndexMut};

/// The connections. One that is away keeps its place, which then looks empty.
#[derive(Default)]
pub(crate) struct Connections(Slab<Option<Box<Connection>>>);

impl Connections {
    /// The id that the next one gets.
    pub(crate) fn vacant_id(&self) -> usize {
        self.0.vacant_key()
    }

    pub(crate) fn insert(&mut self, connection: Box<Connection>) -> usize {
        self.0.insert(Some(connection))
    }

    #[inline]
    pub(crate) fn get(&self, id: usize) -> Option<&Connection> {
        self.0.get(id)?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: usize) -> Option<&mut Connection> {
        self.0.get_mut(id)?.as_deref_mut()
    }

    /// Takes one away; its place stays its own.
    #[inline]
    pub(crate) fn take(&mut self, id: usize) -> Option<Box<Connection>> {
        self.0.get_mut(id)?.take()
    }

    /// Puts it back.
    #[inline]
    pub(crate) fn put(&mut self, id: usize, connection: Box<Connection>) {
        if let Some(place) = self.0.get_mut(id) {
            *place = Some(connection);
        }
    }

    /// Gives its place up.
    pub(crate) fn remove(&mut self, id: usize) -> Option<Box<Connection>> {
        self.0.try_remove(id).flatten()
    }

    /// Whether there is none but one that is away.
    #[inline]
    pub(crate) fn has_others(&self) -> bool {
        self.0.len() > 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Connection)> {
        self.0.iter().filter_map(|(id, place)| Some((id, place.as_deref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut Connection)> {
        self.0.iter_mut().filter_map(|(id, place)| Some((id, place.as_deref_mut()?)))
    }

    /// Takes away those that `is_meant` names.
    pub(crate) fn take_those(
        &mut self,
        mut is_meant: impl FnMut(usize, &mut Connection) -> bool,
    ) -> Vec<(usize, Box<Connection>)> {
        let places = self.0.iter_mut();
        places.filter_map(|(id, place)| Some((id, place.take_if(|connection| is_meant(id, connection))?))).collect()
    }
}

impl Index<usize> for Connections {
    type Output = Connection;

    fn index(&self, id: usize) -> &Connection {
        self.get(id).expect("the connection is here")
    }
}

impl IndexMut<usize> for Connections {
    fn index_mut(&mut self, id: usize) -> &mut Connection {
        self.get_mut(id).expect("the connection is here")
    }
}
