//! Sticky items: those with an expiration of -1, which are never evicted.
//!
//! `arcus-sticky-limit` says what they may take, and with 0, the default, there are none. Then -1 is memcached's: the
//! item has expired already. So the limit chooses between ARCUS and memcached.

use command::{Ctx, Stop};
use engine::Key;
use std::sync::Arc;
use store::Store;

/// The expiration of a sticky item.
pub const SECONDS: i64 = -1;

/// What an entry takes besides its key and data.
const ENTRY_BYTES: u64 = 32;

/// What sticky items may take; 0 for no such items.
pub fn bytes_max(ctx: &Ctx<'_>) -> u64 {
    ctx.host.configuration.current().arcus_sticky_bytes_max
}

/// Refuses a sticky item that takes this many bytes where there is no room for it.
pub fn check_room(ctx: &Ctx<'_>, bytes: usize, refusal: &'static str) -> Result<(), Stop> {
    let (_, used) = ctx.host.part::<crate::Needed, Arc<Store>>().memory.sticky();
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(ENTRY_BYTES);
    if used.saturating_add(bytes) > bytes_max(ctx) { Err(Stop::error(refusal)) } else { Ok(()) }
}

/// Refuses what adds this many bytes to an item that is sticky, where there is no room for it.
pub fn check_growth(ctx: &mut Ctx<'_>, key: &Key<'_>, bytes: usize, refusal: &'static str) -> Result<(), Stop> {
    if !is_any(ctx) || !is_sticky(ctx, key)? {
        return Ok(());
    }
    // Most often the item that grows is the one that was changed last.
    ctx.ks.settle_sticky(key);
    check_room(ctx, bytes, refusal)
}

/// Whether there may be sticky items: the count alone lacks the item of each shard that was changed last.
fn is_any(ctx: &Ctx<'_>) -> bool {
    bytes_max(ctx) > 0 || ctx.host.part::<crate::Needed, Arc<Store>>().memory.sticky().0 > 0
}

/// Whether the item under the key is sticky.
pub fn is_sticky(ctx: &mut Ctx<'_>, key: &Key<'_>) -> Result<bool, Stop> {
    Ok(ctx.ks.peek(key)?.is_some_and(|entry| entry.is_sticky()))
}
