//! How much a collection may hold: directives that `config` raises.

use command::Host;
use config::Settings;
use engine::Type;

/// The most elements of a collection of this type, by the settings.
fn of(settings: &Settings, kind: Type) -> u32 {
    match kind {
        Type::List => settings.arcus_list_size_max,
        Type::Set => settings.arcus_set_size_max,
        Type::Btree => settings.arcus_btree_size_max,
        _ => settings.arcus_map_size_max,
    }
}

/// What gives the most elements of a collection that names no number. Most collections name one, so the settings are
/// read only when they are asked for.
pub fn allowed(host: &Host, kind: Type) -> impl Fn() -> u32 {
    move || of(&host.configuration.current(), kind)
}

/// The most elements that a number asks for: 0 for the default, negative ones for as many as the server allows.
pub fn count_max_of(count: i64, allowed: impl FnOnce() -> u32) -> Option<u32> {
    match count {
        ..0 => None,
        0 => Some(types::attributed::COUNT_DEFAULT),
        _ => Some(u32::try_from(count).unwrap_or(u32::MAX).min(allowed())),
    }
}
