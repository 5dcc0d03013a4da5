//! Optional fields of an entry, as `onggi inspect` shows them.

use crate::shortened::Shortened;
use engine::TaggedFields;
use serde::Serialize;
use std::fmt;

/// The fields that an effect gives an entry; none if the effect removes all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ShownFields {
    /// Flags of a memcached item.
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u32>,
    /// The item is never evicted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sticky: bool,
    /// Attributes of an ARCUS item.
    #[serde(skip_serializing_if = "Option::is_none")]
    attributes: Option<Shortened>,
    /// Bytes of the value on a tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier_bytes: Option<u32>,
    /// Fields that only a later version knows, tagged.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<Shortened>,
}

impl ShownFields {
    pub(crate) fn new(fields: TaggedFields<'_>, full: bool) -> Self {
        let fields = fields.get();
        let shown = |bytes: &[u8]| (!bytes.is_empty()).then(|| Shortened::new(bytes, full));
        Self {
            flags: (fields.flags != 0).then_some(fields.flags),
            sticky: fields.is_sticky,
            attributes: shown(fields.attributes),
            tier_bytes: fields.tier.map(|address| address.len),
            unknown: shown(fields.unknown),
        }
    }
}

impl fmt::Display for ShownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.flags.map(|flags| format!("flags {flags}")),
            self.sticky.then(|| "sticky".to_owned()),
            self.attributes.as_ref().map(|attributes| format!("attributes {attributes}")),
            self.tier_bytes.map(|bytes| format!("{bytes} bytes on a tier")),
            self.unknown.as_ref().map(|unknown| format!("unknown fields {unknown}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(if parts.is_empty() { "none" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}
