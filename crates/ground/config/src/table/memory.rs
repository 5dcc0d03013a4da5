//! The memory budget, and how memory is given back.

use crate::directive::Directive;
use crate::field::{choice, integer, size};
use crate::inert::Inert;

const INT_MAX: i64 = i32::MAX as i64;
const CONSTANT_TIME: &str =
    "removing a key takes the same short time whatever asks for it, so there is nothing to defer";
const CLEANING: &str = "pages with much free space are always cleaned, in small steps, by the workers; there is nothing to \
                        switch on";

pub(super) static MEMORY: &[Directive] = &[
    Directive::supported(
        "maxmemory",
        size!(maxmemory_bytes: 0, u64::MAX),
        "0",
        "bytes",
        "The memory budget for data, tables and buffers. 0 is no limit. The resident memory of the process stays below \
         1.15 times this plus 64 MB.",
    ),
    Directive::supported(
        "maxmemory-policy",
        choice!(maxmemory_policy: EvictionPolicy),
        "noeviction",
        "",
        "What makes room when the budget is used up: `allkeys-` policies evict any key, `volatile-` policies only keys \
         with an expiration; `lru` the least recently used, `lfu` the least frequently used, `ttl` the one that expires \
         first. `noeviction` refuses commands that need memory. `database` gives one database another \
         policy, and one that memcached clients have for themselves (`memcached-database` other than 0) has `allkeys-lru` \
         unless it is given one.",
    ),
    Directive::not_needed(
        "maxmemory-samples",
        Inert::integer("5", 1, 64),
        "each eviction samples a bucket of keys into a pool of the best candidates; there is no number of samples to choose",
    ),
    Directive::supported(
        "lfu-log-factor",
        integer!(lfu_log_factor: 0, INT_MAX),
        "10",
        "",
        "How slowly the frequency counter of a key grows: at 10 it is full after about a million accesses, at 100 after \
         ten million.",
    ),
    Directive::supported(
        "lfu-decay-time",
        integer!(lfu_decay_minutes: 0, INT_MAX),
        "1",
        "minutes",
        "The frequency counter of a key that is not used loses one in this time. 0 keeps it.",
    ),
    Directive::not_needed(
        "maxmemory-eviction-tenacity",
        Inert::integer("10", 0, 100),
        "a command that needs memory waits until eviction has made room for it, and for no more",
    ),
];

pub(super) static FREEING: &[Directive] = &[
    Directive::not_needed(
        "lazyfree-lazy-user-flush",
        Inert::flag("yes"),
        "a flush always detaches the data at once and frees it in small steps",
    ),
    Directive::not_needed("lazyfree-lazy-eviction", Inert::flag("yes"), CONSTANT_TIME),
    Directive::not_needed("lazyfree-lazy-expire", Inert::flag("yes"), CONSTANT_TIME),
    Directive::not_needed("lazyfree-lazy-server-del", Inert::flag("yes"), CONSTANT_TIME),
    Directive::not_needed("lazyfree-lazy-user-del", Inert::flag("yes"), CONSTANT_TIME),
    Directive::not_needed(
        "active-expire-effort",
        Inert::integer("1", 1, 10),
        "an index finds each key when it is due, so there is no search whose effort could be chosen",
    ),
    Directive::not_needed(
        "activerehashing",
        Inert::flag("yes"),
        "the table grows in small extents and is never rehashed as a whole",
    ),
    Directive::not_needed("activedefrag", Inert::flag("no"), CLEANING),
    Directive::not_needed("active-defrag-ignore-bytes", Inert::size("104857600", 0, i64::MAX), CLEANING),
    Directive::not_needed("active-defrag-threshold-lower", Inert::integer("10", 0, 1000), CLEANING),
    Directive::not_needed("active-defrag-threshold-upper", Inert::integer("100", 0, 1000), CLEANING),
    Directive::not_needed("active-defrag-cycle-min", Inert::integer("1", 1, 99), CLEANING),
    Directive::not_needed("active-defrag-cycle-max", Inert::integer("25", 1, 99), CLEANING),
    Directive::not_needed("active-defrag-cycle-us", Inert::integer("500", 0, 100000), CLEANING),
    Directive::not_needed("active-defrag-max-scan-fields", Inert::integer("1000", 1, i64::MAX), CLEANING),
    Directive::not_needed(
        "jemalloc-bg-thread",
        Inert::flag("yes"),
        "values lie in pages of the server's own, which need no such thread",
    ),
];
