//! Up to where collections are packed: the `*-max-listpack-*` settings and their relatives.

use std::sync::atomic::{AtomicI64, Ordering};

/// The longest packed buffer with an element longer than `*-max-listpack-value`. Valkey uses a table for such
/// collections, however small. Here a tree would cost some hundred bytes more, while searching a short buffer takes no
/// longer than a descent.
pub const PACKED_LONG_BYTES_MAX: usize = 4096;

/// The settings, shared by all shards of a server and changed by CONFIG SET. A change concerns later edits; what is
/// stored keeps its form until then.
#[derive(Debug)]
pub struct Limits {
    hash_entries: AtomicI64,
    hash_value: AtomicI64,
    list_size: AtomicI64,
    set_intset_entries: AtomicI64,
    set_entries: AtomicI64,
    set_value: AtomicI64,
    zset_entries: AtomicI64,
    zset_value: AtomicI64,
    stream_node_bytes: AtomicI64,
    stream_node_entries: AtomicI64,
}

macro_rules! settings {
    ($($name:ident $set:ident $directive:literal $default:literal $what:literal;)*) => {
        impl Limits {
            $(
                #[doc = concat!("`", $directive, "`: ", $what)]
                #[inline]
                pub fn $name(&self) -> i64 {
                    self.$name.load(Ordering::Relaxed)
                }

                #[doc = concat!("Sets `", $directive, "`.")]
                pub fn $set(&self, value: i64) {
                    self.$name.store(value, Ordering::Relaxed);
                }
            )*
        }

        impl Default for Limits {
            /// Valkey 9.1's defaults.
            fn default() -> Self {
                Self { $($name: AtomicI64::new($default),)* }
            }
        }
    };
}

settings! {
    hash_entries set_hash_entries "hash-max-listpack-entries" 512 "fields of a packed hash.";
    hash_value set_hash_value "hash-max-listpack-value" 64 "bytes of a field or value in a packed hash.";
    list_size set_list_size "list-max-listpack-size" -2
        "elements of a packed list if positive; -1 to -5 are 4 to 64 KiB.";
    set_intset_entries set_set_intset_entries "set-max-intset-entries" 512 "members of a set packed as integers.";
    set_entries set_set_entries "set-max-listpack-entries" 128 "members of a packed set.";
    set_value set_set_value "set-max-listpack-value" 64 "bytes of a member of a packed set.";
    zset_entries set_zset_entries "zset-max-listpack-entries" 128 "members of a packed sorted set.";
    zset_value set_zset_value "zset-max-listpack-value" 64 "bytes of a member of a packed sorted set.";
    stream_node_bytes set_stream_node_bytes "stream-node-max-bytes" 4096
        "bytes of a node of a stream; at most 1 MiB, as for 0.";
    stream_node_entries set_stream_node_entries "stream-node-max-entries" 100
        "entries of a node of a stream; 0 is no limit.";
}
