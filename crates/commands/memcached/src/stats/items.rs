//! `stats items` and `stats slabs`: one class holds all items, since pages here hold entries of any size.
//! Its chunks are bytes.

use super::general::{calls, count, refused_for_memory};
use super::{line, zeros};
use crate::tally::{Op, Outcome};
use command::Ctx;
use std::sync::Arc;
use store::Store;

/// Bytes of what memcached calls a page.
const PAGE_BYTES: u64 = 1 << 20;

/// `stats items`; nothing but its end while there are none.
pub fn items(ctx: &mut Ctx<'_>) {
    let host = ctx.host;
    let store = host.part::<crate::Needed, Arc<Store>>();
    let (items, _) = store.len(ctx.session.db);
    if items == 0 {
        return;
    }
    let mut show = |name: &str, value: u64| line(ctx, &format!("items:1:{name}"), value);
    show("number", items);
    show("sticky", store.memory.sticky().0);
    show("mem_requested", store.used_bytes());
    show("evicted", host.figures.sum(|worker| worker.evicted_keys.get()));
    show("outofmemory", refused_for_memory(host));
    for name in [
        "age",
        "evicted_nonzero",
        "evicted_time",
        "tailrepairs",
        "reclaimed",
        "expired_unfetched",
        "evicted_unfetched",
        "evicted_active",
        "crawler_reclaimed",
        "crawler_items_checked",
        "lrutail_reflocked",
        "direct_reclaims",
    ] {
        show(name, 0);
    }
}

/// `stats slabs`
pub fn slabs(ctx: &mut Ctx<'_>) {
    let host = ctx.host;
    let (used, settings) = (host.part::<crate::Needed, Arc<Store>>().used_bytes(), host.configuration.current());
    let pages = used.div_ceil(PAGE_BYTES);
    let total = pages.saturating_mul(PAGE_BYTES);
    let hits = host.figures.sum_stats(|stats| stats.keyspace_hits.get());
    for (name, value) in [
        ("chunk_size", 1),
        ("chunks_per_page", PAGE_BYTES),
        ("total_pages", pages),
        ("total_chunks", total),
        ("used_chunks", used),
        ("free_chunks", total.saturating_sub(used)),
        ("mem_requested", used),
        ("get_hits", hits),
        ("cmd_set", calls(host, &["set", "add", "replace", "append", "prepend", "cas", "ms"])),
        ("delete_hits", count(host, Op::Delete, Outcome::Hit)),
        ("incr_hits", count(host, Op::Incr, Outcome::Hit)),
        ("decr_hits", count(host, Op::Decr, Outcome::Hit)),
        ("cas_hits", count(host, Op::Cas, Outcome::Hit)),
        ("cas_badval", count(host, Op::Cas, Outcome::None)),
        ("touch_hits", count(host, Op::Touch, Outcome::Hit)),
    ] {
        line(ctx, &format!("1:{name}"), value);
    }
    zeros(ctx, &["1:free_chunks_end"]);
    line(ctx, "active_slabs", 1);
    line(ctx, "memory_limit", settings.maxmemory_bytes);
    line(ctx, "total_malloced", total);
}
