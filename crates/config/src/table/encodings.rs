//! Up to where a collection stays in its packed form.

use crate::directive::Directive;

const NO_COLLECTIONS: &str = "this version has no collections, whose packed forms it would bound";
const NO_HYPERLOGLOGS: &str = "this version has no HyperLogLogs, whose sparse form it would bound";

pub(super) static ENCODINGS: &[Directive] = &[
    Directive::not_needed("hash-max-listpack-entries", NO_COLLECTIONS).alias(&["hash-max-ziplist-entries"]),
    Directive::not_needed("hash-max-listpack-value", NO_COLLECTIONS).alias(&["hash-max-ziplist-value"]),
    Directive::not_needed("list-max-listpack-size", NO_COLLECTIONS).alias(&["list-max-ziplist-size"]),
    Directive::not_needed("set-max-intset-entries", NO_COLLECTIONS),
    Directive::not_needed("set-max-listpack-entries", NO_COLLECTIONS),
    Directive::not_needed("set-max-listpack-value", NO_COLLECTIONS),
    Directive::not_needed("zset-max-listpack-entries", NO_COLLECTIONS).alias(&["zset-max-ziplist-entries"]),
    Directive::not_needed("zset-max-listpack-value", NO_COLLECTIONS).alias(&["zset-max-ziplist-value"]),
    Directive::not_needed("hll-sparse-max-bytes", NO_HYPERLOGLOGS),
    Directive::not_needed("stream-node-max-bytes", NO_COLLECTIONS),
    Directive::not_needed("stream-node-max-entries", NO_COLLECTIONS),
    Directive::not_needed(
        "list-compress-depth",
        "which values are compressed does not depend on their place in a list",
    ),
    Directive::not_needed("list-max-ziplist-entries", "list-max-listpack-size took its place in Redis 3.2"),
    Directive::not_needed("list-max-ziplist-value", "list-max-listpack-size took its place in Redis 3.2"),
];
