//! Values kept compressed.

use crate::directive::Directive;
use crate::field::{choice, integer, size};

const INT_MAX: i64 = i32::MAX as i64;

pub(super) static COMPRESSION: &[Directive] = &[
    Directive::supported(
        "compression",
        choice!(compression: CompressionCodec),
        "zstd",
        "",
        "How strings and collections are kept compressed in memory, in the command log and in checkpoints. \
         `lzf` is that of Redis' files, `lz4` the fastest to read, `zstd` the shortest. Keys, fields that have a time, and \
         what does not get shorter stay as they are. A change is in force for writes at once; what is stored already follows \
         in the background.",
    ),
    Directive::supported(
        "compression-level",
        integer!(compression_level: -7, 19),
        "3",
        "",
        "How hard `zstd` tries: a higher level takes longer to write and is read as fast.",
    ),
    Directive::supported(
        "compression-min-bytes",
        size!(compression_bytes_min: 0, u64::MAX),
        "0",
        "bytes",
        "What is shorter stays as it is. 0 leaves it to the codec: 5 for `lzf`, 32 for `lz4`, 64 for `zstd`.",
    ),
    Directive::supported(
        "compression-when",
        choice!(compression_when: CompressionTime),
        "idle",
        "",
        "`write` compresses strings as they are written, whatever their length. `idle` compresses those of up to 64 MiB \
         in the background, once no client has used them for `compression-idle-time`. A compressed one that is then used \
         twice within that time is stored decompressed again. Collections are always compressed as with `idle`.",
    ),
    Directive::supported(
        "compression-idle-time",
        integer!(compression_idle_seconds: 0, INT_MAX),
        "60",
        "seconds",
        "A value without access for this long counts as cold.",
    ),
    Directive::supported(
        "compression-cpu-percent",
        integer!(compression_cpu_percent: 1, 100),
        "20",
        "percent",
        "How much of each worker's time compressing in the background may take, in slices of a tenth of a millisecond; down to an \
         eighth of that where clients need all of the time, unless less than a sixteenth of maxmemory is left.",
    ),
];
