//! Addresses, sockets and transports.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::{flag, integer, optional_path, size};
use crate::inert::Inert;

const INT_MAX: i64 = i32::MAX as i64;

pub(super) static NETWORK: &[Directive] = &[
    Directive::supported(
        "bind",
        Field::Addresses { get: |s| &s.bind, set: |s, addresses| s.bind = addresses },
        "127.0.0.1 -::1",
        "",
        "The addresses that accept TCP connections. `*` stands for every IPv4 address and `::*` for every IPv6 address. \
         With a `-` before it, an address this machine does not have is skipped; otherwise it ends the start. Addresses \
         beyond loopback need a password, see `protected-mode`.",
    ),
    Directive::supported(
        "port",
        integer!(port: 0, 65535),
        "6379",
        "",
        "The TCP port of these addresses. 0 accepts no TCP connections.",
    ),
    Directive::supported(
        "protected-mode",
        flag!(protected_mode),
        "yes",
        "",
        "With `yes`, the server does not start, and CONFIG SET does not agree, when `bind` has an address beyond loopback \
         and no password is set. With `no` it warns and goes on.",
    ),
    Directive::supported(
        "unixsocket",
        optional_path!(unixsocket),
        "",
        "",
        "The path of a unix socket that accepts connections. Empty for none.",
    )
    .at_start(),
    Directive::supported(
        "unixsocketperm",
        Field::Permissions { get: |s| s.unixsocketperm, set: |s, bits| s.unixsocketperm = bits },
        "600",
        "",
        "The permission bits of the unix socket. The socket never has more than these, not even while it is created.",
    )
    .at_start(),
    Directive::refused(
        "unixsocketgroup",
        &[""],
        "",
        "the socket keeps the group of the server; run the server in that group and set unixsocketperm 660",
    )
    .at_start(),
    Directive::supported(
        "tcp-backlog",
        integer!(tcp_backlog: 0, INT_MAX),
        "511",
        "connections",
        "How many connections the kernel may complete before the server accepts them. The kernel lowers it to \
         `net.core.somaxconn`.",
    )
    .at_start(),
    Directive::supported(
        "tcp-keepalive",
        integer!(tcp_keepalive_seconds: 0, INT_MAX),
        "300",
        "seconds",
        "After this long without traffic the kernel asks whether the peer is still there, and closes the connection when \
         it is not. 0 never asks. Applies to connections accepted from then on.",
    ),
    Directive::supported(
        "timeout",
        integer!(timeout_seconds: 0, INT_MAX),
        "0",
        "seconds",
        "Closes a client that has sent nothing for this long. 0 never does. Subscribers and blocked clients are exempt.",
    ),
    Directive::not_needed(
        "bind-source-addr",
        Inert::text(""),
        "it is the address of outgoing connections, and the server opens none",
    ),
    Directive::refused(
        "socket-mark-id",
        &["0"],
        "0",
        "packets would leave without the mark that routing or firewall rules expect",
    )
    .at_start(),
    Directive::not_needed(
        "mptcp",
        Inert::flag("no"),
        "connections use plain TCP, which multipath clients fall back to",
    ),
    Directive::not_needed(
        "max-new-connections-per-cycle",
        Inert::integer("10", 1, 1000),
        "each worker accepts in bounded turns between the requests of its clients",
    ),
];

/// What an operator sees over HTTP.
pub(super) static HTTP: &[Directive] = &[Directive::supported(
    "http-port",
    integer!(http_port: 0, 65535),
    "0",
    "",
    "The TCP port of 127.0.0.1 that shows the server to a browser (`/`), its figures to Prometheus (`/metrics`), and whether it \
     works and serves (`/healthz`, `/readyz`), 9121 as a rule. There is no login, so other addresses are not offered. 0 shows \
     nothing.",
)
.at_start()];

/// What memcached clients get.
pub(super) static MEMCACHED: &[Directive] = &[
    Directive::supported(
        "memcached-port",
        integer!(memcached_port: 0, 65535),
        "0",
        "",
        "The TCP port of the addresses of `bind` that accepts memcached clients, 11211 as a rule. 0 accepts none.",
    ),
    Directive::supported(
        "memcached-database",
        integer!(memcached_database: 0, INT_MAX),
        "0",
        "",
        "The database that memcached clients use. RESP clients see the same entries there.",
    )
    .at_start(),
    Directive::supported(
        "memcached-flush",
        flag!(memcached_flush),
        "yes",
        "",
        "With `no`, `flush_all` answers an error. It removes the entries of `memcached-database` alone.",
    ),
    Directive::supported(
        "memcached-item-size-max",
        size!(memcached_item_bytes_max: 1024, MEMCACHED_ITEM_MAX),
        "1mb",
        "bytes",
        "The longest data of an item that a memcached client may store. Longer data is refused, and `set` then removes the \
         item that was there.",
    ),
];

/// As much as memcached allows.
const MEMCACHED_ITEM_MAX: u64 = 1 << 30;

const NO_TLS: &str = "TLS is not offered yet, and tls-port is refused";
const NO_RDMA: &str = "RDMA is not offered, and rdma-port is refused";
const PLAIN_TEXT: &str = "TLS is not offered yet, so that traffic would be readable; let a TLS proxy such as stunnel on \
                          this machine connect to port or unixsocket";

pub(super) static TRANSPORTS: &[Directive] = &[
    Directive::refused("tls-port", &["0"], "0", PLAIN_TEXT),
    Directive::refused("tls-replication", &["no"], "no", PLAIN_TEXT),
    Directive::refused("tls-cluster", &["no"], "no", PLAIN_TEXT),
    Directive::not_needed("tls-cert-file", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-key-file", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-key-file-pass", Inert::text(""), NO_TLS).sensitive(),
    Directive::not_needed("tls-client-cert-file", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-client-key-file", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-client-key-file-pass", Inert::text(""), NO_TLS).sensitive(),
    Directive::not_needed("tls-dh-params-file", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-ca-cert-file", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-ca-cert-dir", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-auth-clients", Inert::choice("yes", &["no", "yes", "optional"]), NO_TLS),
    Directive::not_needed("tls-auth-clients-user", Inert::choice("off", &["CN", "URI", "off"]), NO_TLS),
    Directive::not_needed("tls-protocols", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-ciphers", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-ciphersuites", Inert::text(""), NO_TLS),
    Directive::not_needed("tls-prefer-server-ciphers", Inert::flag("no"), NO_TLS),
    Directive::not_needed("tls-session-caching", Inert::flag("yes"), NO_TLS),
    Directive::not_needed("tls-session-cache-size", Inert::integer("20480", 0, INT_MAX), NO_TLS),
    Directive::not_needed("tls-session-cache-timeout", Inert::integer("300", 0, INT_MAX), NO_TLS),
    Directive::not_needed("tls-auto-reload-interval", Inert::integer("0", 0, INT_MAX), NO_TLS),
    Directive::not_needed("max-new-tls-connections-per-cycle", Inert::integer("1", 1, 1000), NO_TLS),
    Directive::refused("rdma-port", &["0"], "0", "RDMA is not offered; clients would find nothing there").at_start(),
    Directive::not_needed("rdma-bind", Inert::text(""), NO_RDMA),
    Directive::not_needed("rdma-rx-size", Inert::size("1048576", 65536, 16777216), NO_RDMA),
    Directive::not_needed("rdma-completion-vector", Inert::integer("-1", -1, INT_MAX), NO_RDMA),
];
