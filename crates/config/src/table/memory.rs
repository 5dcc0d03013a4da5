//! The memory budget, and how memory is given back.

use crate::directive::Directive;
use crate::field::{choice, integer, size};

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
         first. `noeviction` refuses commands that need memory.",
    ),
    Directive::not_needed(
        "maxmemory-samples",
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
        "a command that needs memory waits until eviction has made room for it, and for no more",
    ),
];

pub(super) static FREEING: &[Directive] = &[
    Directive::not_needed(
        "lazyfree-lazy-user-flush",
        "a flush always detaches the data at once and frees it in small steps",
    ),
    Directive::not_needed("lazyfree-lazy-eviction", CONSTANT_TIME),
    Directive::not_needed("lazyfree-lazy-expire", CONSTANT_TIME),
    Directive::not_needed("lazyfree-lazy-server-del", CONSTANT_TIME),
    Directive::not_needed("lazyfree-lazy-user-del", CONSTANT_TIME),
    Directive::not_needed(
        "active-expire-effort",
        "an index finds each key when it is due, so there is no search whose effort could be chosen",
    ),
    Directive::not_needed("activerehashing", "the table grows in small extents and is never rehashed as a whole"),
    Directive::not_needed("activedefrag", CLEANING),
    Directive::not_needed("active-defrag-ignore-bytes", CLEANING),
    Directive::not_needed("active-defrag-threshold-lower", CLEANING),
    Directive::not_needed("active-defrag-threshold-upper", CLEANING),
    Directive::not_needed("active-defrag-cycle-min", CLEANING),
    Directive::not_needed("active-defrag-cycle-max", CLEANING),
    Directive::not_needed("active-defrag-cycle-us", CLEANING),
    Directive::not_needed("active-defrag-max-scan-fields", CLEANING),
    Directive::not_needed("jemalloc-bg-thread", "values lie in pages of the server's own, which need no such thread"),
];
