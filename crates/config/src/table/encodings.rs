//! Up to where a collection stays in its packed form.

use crate::directive::Directive;
use crate::field::{integer, size};

const COUNT_MAX: i64 = i64::MAX;
const SIZE_MAX: u64 = i64::MAX as u64;

pub(super) static ENCODINGS: &[Directive] = &[
    Directive::supported(
        "hash-max-listpack-entries",
        integer!(hash_listpack_entries_max: 0, COUNT_MAX),
        "512",
        "fields",
        "A hash with at most so many fields is one packed buffer, which OBJECT ENCODING calls `listpack`; with more it is \
         a `hashtable`.",
    )
    .alias(&["hash-max-ziplist-entries"]),
    Directive::supported(
        "hash-max-listpack-value",
        size!(hash_listpack_value_bytes_max: 0, SIZE_MAX),
        "64",
        "bytes",
        "The longest field or value in a packed hash.",
    )
    .alias(&["hash-max-ziplist-value"]),
    Directive::supported(
        "list-max-listpack-size",
        integer!(list_listpack_size_max: i32::MIN as i64, i32::MAX as i64),
        "-2",
        "elements",
        "How large one packed chunk of a list grows, and the whole list while it is one chunk: so many elements, or, from \
         -1 to -5, 4, 8, 16, 32 or 64 KiB.",
    )
    .alias(&["list-max-ziplist-size"]),
    Directive::supported(
        "set-max-intset-entries",
        integer!(set_intset_entries_max: 0, COUNT_MAX),
        "512",
        "members",
        "A set with at most so many members, all of them integers, is one sorted array, an `intset`.",
    ),
    Directive::supported(
        "set-max-listpack-entries",
        integer!(set_listpack_entries_max: 0, COUNT_MAX),
        "128",
        "members",
        "Another set with at most so many members is one packed buffer.",
    ),
    Directive::supported(
        "set-max-listpack-value",
        size!(set_listpack_value_bytes_max: 0, SIZE_MAX),
        "64",
        "bytes",
        "The longest member of a packed set.",
    ),
    Directive::supported(
        "zset-max-listpack-entries",
        integer!(zset_listpack_entries_max: 0, COUNT_MAX),
        "128",
        "members",
        "A sorted set with at most so many members is one packed buffer; with more it is a `skiplist`, as OBJECT ENCODING \
         calls it.",
    )
    .alias(&["zset-max-ziplist-entries"]),
    Directive::supported(
        "zset-max-listpack-value",
        size!(zset_listpack_value_bytes_max: 0, SIZE_MAX),
        "64",
        "bytes",
        "The longest member of a packed sorted set.",
    )
    .alias(&["zset-max-ziplist-value"]),
    Directive::supported(
        "hll-sparse-max-bytes",
        size!(hll_sparse_bytes_max: 0, SIZE_MAX),
        "3000",
        "bytes",
        "A HyperLogLog stays in its sparse form up to this size.",
    ),
    Directive::supported(
        "stream-node-max-bytes",
        size!(stream_node_bytes_max: 0, SIZE_MAX),
        "4096",
        "bytes",
        "How large one packed chunk of a stream grows. 0 is no limit.",
    ),
    Directive::supported(
        "stream-node-max-entries",
        integer!(stream_node_entries_max: 0, COUNT_MAX),
        "100",
        "entries",
        "How many entries one packed chunk of a stream holds. 0 is no limit.",
    ),
    Directive::not_needed(
        "list-compress-depth",
        "which values are compressed does not depend on their place in a list",
    ),
    Directive::not_needed("list-max-ziplist-entries", "list-max-listpack-size took its place in Redis 3.2"),
    Directive::not_needed("list-max-ziplist-value", "list-max-listpack-size took its place in Redis 3.2"),
];
