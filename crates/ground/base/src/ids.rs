//! Ids that more than one layer names. They live here so that no layer has to import another for a number.

/// Declares a newtype over an unsigned integer with the conversions every id needs.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The id as an index into a slice.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A slice of the keyspace with its own table and lock; `0..shard_count`, ascending in lock order.
    ShardId(u16)
}
id! {
    /// One of the 16384 hash slots of the Redis Cluster specification.
    #[doc(alias = "hash slot")]
    SlotId(u16)
}
id! {
    /// The number a client gives to SELECT; a map that SWAPDB changes leads from it to a [`KeyspaceId`].
    #[doc(alias = "db")]
    DbIndex(u32)
}
id! {
    /// The stable identity of one logical database. Records of the command log name this, never a [`DbIndex`].
    KeyspaceId(u32)
}
id! {
    /// A byte position in the command log stream. A record's LSN is the position after its last byte.
    #[doc(alias = "offset")]
    Lsn(u64)
}

/// Names one line of history; changes at promotion, after a point-in-time restore and after an unclean stop.
/// Printed as 40 hexadecimal digits, as Redis' replication id is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HistoryId(pub [u8; 20]);

impl HistoryId {
    /// A fresh id.
    pub fn random(rng: &mut crate::Rng) -> Self {
        let mut bytes = [0; 20];
        rng.fill(&mut bytes);
        Self(bytes)
    }
}

impl std::fmt::Display for HistoryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
