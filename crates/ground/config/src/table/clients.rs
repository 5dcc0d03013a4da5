//! Limits that keep one client, or all of them, from taking the server down.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::{integer, size};

const MB: u64 = 1 << 20;
const SIGNED_MAX: u64 = i64::MAX as u64;

pub(super) static CLIENTS: &[Directive] = &[
    Directive::supported(
        "maxclients",
        integer!(maxclients: 1, u32::MAX as i64),
        "10000",
        "connections",
        "How many clients may be connected at once; further ones get an error and are closed. The server raises its \
         limit of file descriptors at start and lowers this number, with a warning, when it cannot.",
    ),
    Directive::supported(
        "maxclients-reserve",
        integer!(maxclients_reserve: 0, 65535),
        "32",
        "connections",
        "How many of the connections of `maxclients`, but at most half of them, are kept for loopback and the unix socket, \
         so that an operator gets in when other hosts have taken the rest.",
    ),
    Directive::supported(
        "login-timeout",
        integer!(login_timeout_seconds: 0, 3600),
        "10",
        "seconds",
        "Closes a connection that has not completed its first command, or with a password set has not authenticated, \
         within this time. 0 never does.",
    ),
    Directive::supported(
        "login-max-clients",
        integer!(login_clients_max: 1, u32::MAX as i64),
        "1024",
        "connections",
        "How many connections there may be that have not authenticated, with a password set. One more closes the one that \
         has waited longest.",
    ),
    Directive::supported(
        "login-max-arguments",
        integer!(login_arguments_max: 3, 1024),
        "10",
        "arguments",
        "The most arguments a request may have before the client has authenticated.",
    ),
    Directive::supported(
        "login-max-bulk-len",
        size!(login_bulk_bytes_max: 1024, MB),
        "16kb",
        "bytes",
        "The longest argument a request may have before the client has authenticated.",
    ),
    Directive::supported(
        "proto-max-arguments",
        integer!(proto_arguments_max: 1024, i32::MAX as i64),
        "1048576",
        "arguments",
        "The most arguments a request may have.",
    ),
    Directive::supported(
        "proto-max-bulk-len",
        size!(proto_bulk_bytes_max: MB, SIGNED_MAX),
        "512mb",
        "bytes",
        "The longest argument a request may have, and the longest string a key may hold. More than 4 GB means 4 GB.",
    ),
    Directive::supported(
        "proto-max-inline-len",
        size!(proto_inline_bytes_max: 1024, MB),
        "64kb",
        "bytes",
        "The longest inline command, that is one typed without the lengths of the protocol.",
    ),
    Directive::supported(
        "client-query-buffer-limit",
        size!(client_query_buffer_bytes_max: MB, SIGNED_MAX),
        "64mb",
        "bytes",
        "Closes a client whose received but not yet executed requests exceed this. The one long argument being received \
         is not counted; it counts against `maxmemory`.",
    ),
    Directive::supported(
        "client-transaction-limit",
        size!(client_transaction_bytes_max: MB, SIGNED_MAX),
        "64mb",
        "bytes",
        "The most bytes of commands that a client may queue between MULTI and EXEC. The command beyond it gets an error, \
         and the connection is closed.",
    ),
    Directive::supported(
        "client-output-buffer-pause",
        size!(client_output_pause_bytes: 64 << 10, SIGNED_MAX),
        "32mb",
        "bytes",
        "The server runs no further requests of a client with more unsent replies than this, until the client has read them. \
         It still receives requests, up to `client-query-buffer-limit`: many clients send a whole pipeline before they read. \
         The more all clients hold, the lower both limits are.",
    ),
    Directive::supported(
        "client-output-buffer-limit",
        Field::OutputLimits { get: |s| s.client_output_limits, set: |s, limits| s.client_output_limits = limits },
        "normal 256mb 32mb 60 replica 256mb 64mb 60 pubsub 32mb 8mb 60",
        "bytes and seconds",
        "Closes a client of the class when its unsent replies exceed the hard limit, or when they have exceeded the soft \
         limit for that many seconds. 0 is no limit. A client that reads nothing for that time (60 seconds without a soft \
         limit) is closed too when the server can receive nothing more of it. The classes are `normal`, `replica` and \
         `pubsub`; each line changes the classes it names.",
    ),
    Directive::supported(
        "maxmemory-clients",
        Field::Share { get: |s| s.maxmemory_clients, set: |s, share| s.maxmemory_clients = share },
        "0",
        "bytes",
        "The memory of all clients together, in bytes or as a percentage of `maxmemory`. Above it the clients that hold \
         most are closed. 0 stands for the larger of 256 MB and 10 % of `maxmemory`. With `maxmemory` set, clients may hold \
         three quarters of what data leaves of it, and in any case 10 % of it and 32 MB.",
    ),
    Directive::supported(
        "tracking-table-max-keys",
        integer!(tracked_keys_max: 0, i64::MAX),
        "1000000",
        "keys",
        "The most keys that are remembered for clients which cache what they read (CLIENT TRACKING). Beyond it some are \
         forgotten, as if they had changed. 0 is no limit.",
    ),
    Directive::supported(
        "notify-keyspace-events",
        Field::Events { get: |s| &s.keyspace_events, set: |s, letters| s.keyspace_events = letters },
        "",
        "",
        "Publishes what happens to keys: on `__keyspace@<db>__:<key>` with `K`, on `__keyevent@<db>__:<event>` with `E`. One of \
         these is needed. The classes are `g` commands for any type, `$` strings, `l` lists, `s` sets, `h` hashes, `z` sorted \
         sets, `t` streams, `d` types of modules, `x` expired keys, `e` evicted keys, `n` new keys, `m` reads of absent \
         keys, and `A`, which stands for all but the last two.",
    ),
];
