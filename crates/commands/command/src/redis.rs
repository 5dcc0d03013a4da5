//! Redis' commands, one file per family.

pub mod bitfield;
pub mod bitmap;
pub mod client;
mod client_filter;
pub(crate) mod client_line;
mod client_list;
mod client_pause;
pub mod client_tracking;
pub mod connection;
pub mod dump;
pub mod expiration;
pub mod generic;
pub mod geo;
mod geo_radius;
mod geo_search;
pub mod hash;
mod hash_fields;
pub mod hash_numbers;
pub mod hash_times;
pub mod hash_until;
pub mod hash_walks;
pub mod hyperloglog;
pub mod lcs;
pub mod list;
pub mod list_blocking;
mod list_long;
pub mod list_moving;
pub mod migrate;
pub mod object;
mod options;
pub mod pubsub;
pub mod pubsub_list;
pub mod scan;
mod scan_in_order;
mod scanning;
pub mod set;
pub mod set_algebra;
pub mod sort;
pub mod stream;
pub mod stream_groups;
mod stream_ids;
pub mod stream_info;
pub mod stream_pending;
mod stream_pieces;
pub mod stream_read;
mod stream_trim;
pub mod string;
pub mod string_numbers;
pub mod string_ranges;
pub mod string_several;
pub mod transactions;
pub mod zset;
pub mod zset_combine;
pub mod zset_pop;
pub mod zset_ranges;
mod zset_reply;

use crate::CommandSpec;

/// The families that need nothing but keyspaces and connections.
pub const FAMILIES: &[&[&CommandSpec]] = &[
    string::COMMANDS,
    string_several::COMMANDS,
    string_numbers::COMMANDS,
    string_ranges::COMMANDS,
    lcs::COMMANDS,
    bitmap::COMMANDS,
    bitfield::COMMANDS,
    hash::COMMANDS,
    hash_numbers::COMMANDS,
    hash_times::COMMANDS,
    hash_until::COMMANDS,
    hash_walks::COMMANDS,
    zset::COMMANDS,
    zset_ranges::COMMANDS,
    zset_pop::COMMANDS,
    zset_combine::COMMANDS,
    hyperloglog::COMMANDS,
    geo::COMMANDS,
    geo_search::COMMANDS,
    geo_radius::COMMANDS,
    list::COMMANDS,
    list_moving::COMMANDS,
    list_blocking::COMMANDS,
    stream::COMMANDS,
    stream_read::COMMANDS,
    stream_groups::COMMANDS,
    stream_pending::COMMANDS,
    stream_info::COMMANDS,
    generic::COMMANDS,
    dump::COMMANDS,
    migrate::COMMANDS,
    expiration::COMMANDS,
    scan::COMMANDS,
    object::COMMANDS,
    set::COMMANDS,
    set_algebra::COMMANDS,
    sort::COMMANDS,
    transactions::COMMANDS,
    connection::COMMANDS,
    client::COMMANDS,
    pubsub::COMMANDS,
    pubsub_list::COMMANDS,
];
