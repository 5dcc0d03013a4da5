//! Values on a tier.

use crate::directive::Directive;
use crate::field::{choice, integer, optional_path, size};

const INT_MAX: i64 = i32::MAX as i64;

/// The longest delay of an experiment: as slow as a disk.
const DELAY_NS_MAX: i64 = 1_000_000;

/// The longest value of a tier.
const VALUE_MAX: u64 = 16 << 20;

pub(super) static TIER: &[Directive] = &[
    Directive::supported(
        "tier-dir",
        optional_path!(tier_dir),
        "",
        "",
        "The directory for values that memory has no room for. Keys stay in memory. Empty for no tier. A data directory that \
         has values on a tier needs it at every start.",
    )
    .at_start(),
    Directive::supported(
        "tier-max-bytes",
        size!(tier_max_bytes: 0, u64::MAX),
        "0",
        "bytes",
        "How many bytes the files of the tier may take. A full tier takes no further values: they stay in memory, and \
         `maxmemory-policy` applies. 0 is no limit.",
    ),
    Directive::supported(
        "tier-retain-max-bytes",
        size!(tier_retain_bytes_max: 0, u64::MAX),
        "0",
        "bytes",
        "How many bytes of the tier old checkpoints may keep, in files that hold no value of now. With more, the oldest \
         checkpoint is given up, and a restore begins at a later moment. 0 is no limit.",
    ),
    Directive::supported(
        "tier-scrub-interval",
        integer!(tier_scrub_seconds: 0, INT_MAX),
        "604800",
        "seconds",
        "Time between two scrubs: a scrub reads all values of the tier and compares checksums, to find damage before a \
         client does. It takes a tenth of a core and of the device at most. The first one begins an hour after a start. 0 \
         is never.",
    ),
    Directive::supported(
        "tier-min-value-size",
        size!(tier_value_bytes_min: 64, VALUE_MAX),
        "64",
        "bytes",
        "Shorter values stay in memory. A value takes about 40 bytes of memory when it is on the tier, and values above 16 MB \
         never go there.",
    ),
    Directive::supported(
        "tier-policy",
        choice!(tier_policy: TierPolicy),
        "pressure",
        "",
        "When values go to the tier. `pressure`: when less than a sixteenth of `maxmemory` is left, those first that \
         were not used lately. `write`: all values from `tier-min-value-size` on, within a tenth of a second after they \
         are written.",
    ),
    Directive::supported(
        "tier-medium",
        choice!(tier_medium: TierMedium),
        "auto",
        "",
        "What the tier is made of. `dax`: persistent memory, mapped (MAP_SYNC); the start is refused where the file system does \
         not grant it. `shared`: mapped files, on persistent memory or in the page cache; on tmpfs a reboot loses them, so \
         use that for experiments. `file`: files that a thread reads. `auto`: `dax` where it is granted, else `file`.",
    )
    .at_start(),
    Directive::supported(
        "tier-read-delay-ns",
        integer!(tier_read_delay_ns: 0, DELAY_NS_MAX),
        "0",
        "nanoseconds",
        "How much longer each read of a value takes on `tier-medium shared`: a model of slower memory, for experiments.",
    )
    .at_start(),
    Directive::supported(
        "tier-write-delay-ns",
        integer!(tier_write_delay_ns: 0, DELAY_NS_MAX),
        "0",
        "nanoseconds",
        "The same for each 256 bytes that are written.",
    )
    .at_start(),
];
