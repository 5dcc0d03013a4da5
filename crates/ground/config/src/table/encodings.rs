//! Up to where a collection stays in its packed form.

use crate::directive::Directive;
use crate::field::{integer, size};
use crate::inert::Inert;

const INT_MIN: i64 = i32::MIN as i64;
const INT_MAX: i64 = i32::MAX as i64;

pub(super) static ENCODINGS: &[Directive] = &[
    Directive::supported(
        "hash-max-listpack-entries",
        integer!(hash_packed_entries: 0, i64::MAX),
        "512",
        "fields",
        "Hashes of at most this many fields are packed into one buffer (`listpack`).",
    )
    .alias(&["hash-max-ziplist-entries"]),
    Directive::supported(
        "hash-max-listpack-value",
        integer!(hash_packed_value: 0, i64::MAX),
        "64",
        "bytes",
        "A hash with a longer field or value is packed only while it has few bytes, and called a hashtable.",
    )
    .alias(&["hash-max-ziplist-value"]),
    Directive::supported(
        "list-max-listpack-size",
        integer!(list_packed_size: INT_MIN, INT_MAX),
        "-2",
        "",
        "Lists of at most this many elements are packed into one buffer; -1 to -5 mean at most 4, 8, 16, 32 or 64 KiB.",
    )
    .alias(&["list-max-ziplist-size"]),
    Directive::supported(
        "set-max-intset-entries",
        integer!(set_integer_entries: 0, i64::MAX),
        "512",
        "members",
        "Sets of at most this many integers are packed as numbers (`intset`).",
    ),
    Directive::supported(
        "set-max-listpack-entries",
        integer!(set_packed_entries: 0, i64::MAX),
        "128",
        "members",
        "Sets of at most this many members are packed into one buffer.",
    ),
    Directive::supported(
        "set-max-listpack-value",
        integer!(set_packed_value: 0, i64::MAX),
        "64",
        "bytes",
        "A set with a longer member is packed only while it has few bytes, and called a hashtable.",
    ),
    Directive::supported(
        "zset-max-listpack-entries",
        integer!(zset_packed_entries: 0, i64::MAX),
        "128",
        "members",
        "Sorted sets of at most this many members are packed into one buffer.",
    )
    .alias(&["zset-max-ziplist-entries"]),
    Directive::supported(
        "zset-max-listpack-value",
        integer!(zset_packed_value: 0, i64::MAX),
        "64",
        "bytes",
        "A sorted set with a longer member is packed only while it has few bytes, and called a skiplist.",
    )
    .alias(&["zset-max-ziplist-value"]),
    Directive::supported(
        "hll-sparse-max-bytes",
        size!(hll_sparse_bytes_max: 0, i64::MAX as u64),
        "3000",
        "bytes",
        "How long a HyperLogLog may be before it is made dense, which takes 12 KiB and less time to change.",
    ),
    Directive::supported(
        "stream-node-max-bytes",
        size!(stream_node_bytes: 0, i64::MAX as u64),
        "4096",
        "",
        "Bytes of a node of a stream; at most 1 MiB, which is also what 0 means.",
    ),
    Directive::supported(
        "stream-node-max-entries",
        integer!(stream_node_entries: 0, i64::MAX),
        "100",
        "entries",
        "Entries of a node of a stream, at most; 0 sets no limit.",
    ),
    Directive::not_needed(
        "list-compress-depth",
        Inert::integer("0", 0, INT_MAX),
        "which values are compressed does not depend on their place in a list",
    ),
    Directive::not_needed(
        "list-max-ziplist-entries",
        Inert::integer("512", 0, INT_MAX),
        "list-max-listpack-size took its place in Redis 3.2",
    ),
    Directive::not_needed(
        "list-max-ziplist-value",
        Inert::integer("64", 0, INT_MAX),
        "list-max-listpack-size took its place in Redis 3.2",
    ),
];
