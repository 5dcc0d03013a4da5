//! Addresses, sockets and transports.

use crate::directive::Directive;
use crate::field::Field;
use crate::field::{choice, flag, integer, optional_path, size, text};
use crate::inert::Inert;

const INT_MAX: i64 = i32::MAX as i64;

pub(super) static NETWORK: &[Directive] = &[
    Directive::supported(
        "bind",
        Field::Addresses { get: |s| &s.bind, set: |s, addresses| s.bind = addresses },
        "127.0.0.1 -::1",
        "",
        "The addresses that accept TCP connections. `*` stands for every IPv4 address and `::*` for every IPv6 address. \
         With a `-` before it, an address this machine does not have is skipped; otherwise it ends the start. Clients \
         of other hosts need a password, see `protected-mode`.",
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
        "With `yes`, clients of other hosts are refused with `-DENIED` while no password is set. With `no` they are served, \
         and can read and change all data.",
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
pub(super) static HTTP: &[Directive] = &[
    Directive::supported(
        "http-port",
        integer!(http_port: 0, 65535),
        "9121",
        "",
        "The TCP port that shows the server to a browser (`/`), its figures to Prometheus (`/metrics`), and whether it works and \
         serves (`/healthz`, `/readyz`). If another program uses the port, the start fails; without a setting the server warns and \
         starts without the page. 0 opens no port.",
    )
    .at_start(),
    Directive::supported(
        "http-bind",
        Field::Addresses { get: |s| &s.http_bind, set: |s, addresses| s.http_bind = addresses },
        "127.0.0.1",
        "",
        "The addresses of `http-port`, in the words of `bind`. Clients of other hosts need a login for every path, as a user who \
         may run INFO: by a password (HTTP basic authentication), by a token of `http-token-file`, or by a certificate \
         (`tls-auth-clients-user`). So any address but loopback needs `http-tls yes` and one of `requirepass`, `aclfile`, `user` \
         lines, `http-token-file` and `tls-auth-clients-user`.",
    )
    .at_start(),
    Directive::supported(
        "http-tls",
        flag!(http_tls),
        "no",
        "",
        "Whether the page and the metrics are served by HTTPS. The certificates are those of `tls-port`, and `tls-auth-clients` \
         says whether clients need one. With `tls-auth-clients-user` a client's certificate is its login.",
    )
    .at_start(),
    Directive::supported(
        "http-token-file",
        optional_path!(http_token_file),
        "",
        "",
        "A file of tokens that log in to the page and the metrics, for `Authorization: Bearer TOKEN`: one a line as `USER \
         TOKEN`, or `USER #HASH` with the SHA-256 hash of a token. A token has 16 to 512 characters, and the rights of its \
         user. SIGHUP and CONFIG SET read the file again, and `tls-auto-reload-interval` looks at it; when it is bad, the \
         tokens in force stay. Empty for none.",
    )
    .names_file(),
    Directive::supported(
        "otlp-endpoint",
        text!(otlp_endpoint),
        "",
        "",
        "Where the server sends its figures by OTLP, as protobuf over HTTP: the URL for metrics of a collector of OpenTelemetry, \
         such as `http://127.0.0.1:4318/v1/metrics`. Empty sends nothing. Needs a program that was built with the cargo feature \
         `otlp`; any other refuses to start with it.",
    )
    .at_start(),
    Directive::supported(
        "otlp-interval",
        integer!(otlp_interval_seconds: 1, 3600),
        "15",
        "seconds",
        "The time from one sending to the next. A sending that takes longer than it, or than ten seconds, is given up.",
    )
    .at_start(),
    Directive::supported(
        "otlp-headers",
        Field::Secret { get: |s| &s.otlp_headers, set: |s, headers| s.otlp_headers = headers },
        "",
        "",
        "Headers of each sending, such as a token that the collector asks for: `NAME=VALUE`, separated by commas.",
    )
    .sensitive()
    .at_start(),
    Directive::supported(
        "otlp-ca-cert-file",
        optional_path!(otlp_ca_cert_file),
        "/etc/ssl/certs/ca-certificates.crt",
        "",
        "The CAs in PEM that sign the certificate of an `https` endpoint. The default has those that Debian trusts.",
    )
    .names_file()
    .at_start(),
];

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
        "memcached-tls",
        flag!(memcached_tls),
        "no",
        "",
        "Whether clients of `memcached-port` use TLS, as memcached's `-Z` has them do. The certificates are those of `tls-port`.",
    )
    .at_start(),
    Directive::supported(
        "memcached-database",
        integer!(memcached_database: 0, INT_MAX),
        "0",
        "",
        "The database that memcached clients use. RESP clients see the same entries there. A database other than 0 is a \
         cache: it has `maxmemory-policy allkeys-lru` (`allkeys-lfu` where keys are counted) unless `database` says \
         otherwise. In 0, `maxmemory-policy` holds.",
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
    Directive::supported(
        "memcached-key-size-max",
        integer!(memcached_key_bytes_max: 250, MEMCACHED_KEY_MAX),
        "250",
        "bytes",
        "The longest key that a memcached client may use: 250 as in memcached, up to 16000 as in ARCUS. Other values allow lines \
         of 24 KB in place of 2 KB. A change applies to new connections.",
    ),
    Directive::supported(
        "memcached-enable-shutdown",
        flag!(memcached_enable_shutdown),
        "no",
        "",
        "Whether `shutdown` of a memcached client ends the server, as memcached's `-A` allows. The client is on this host, or \
         has logged in as a user who may use `@admin` commands.",
    ),
];

/// What clients of SSDB get.
pub(super) static SSDB: &[Directive] = &[
    Directive::supported(
        "ssdb-port",
        integer!(ssdb_port: 0, 65535),
        "0",
        "",
        "The TCP port of the addresses of `bind` that accepts clients of SSDB in its own protocol, 8888 as a rule. 0 accepts none.",
    ),
    Directive::supported(
        "ssdb-tls",
        flag!(ssdb_tls),
        "no",
        "",
        "Whether clients of `ssdb-port` use TLS. SSDB has none of its own. The certificates are those of `tls-port`.",
    )
    .at_start(),
    Directive::supported(
        "ssdb-database",
        integer!(ssdb_database: -1, INT_MAX),
        "-1",
        "",
        "The database that clients of SSDB use: one with `database <n> engine disk`, since what SSDB keeps is larger than memory. \
         -1 is the first of these, or database 0 where there is none.",
    )
    .at_start(),
    Directive::supported(
        "ssdb-namespaces",
        choice!(ssdb_namespaces: SsdbNamespaces),
        "shared",
        "",
        "`separate` lets clients of SSDB use one name as a key, a hash, a zset and a queue at once: keys are in the database of \
         `ssdb-database`, and hashes, zsets and queues in the three after it. With `shared` all are in that one, and a name \
         has one type.",
    )
    .at_start(),
];

/// The node of an ARCUS cluster.
pub(super) static ARCUS: &[Directive] = &[
    Directive::supported(
        "arcus-zookeeper",
        text!(arcus_zookeeper),
        "",
        "",
        "The ZooKeeper servers of an ARCUS cluster, as `HOST:PORT,HOST:PORT`. The server joins the cluster when its data is \
         loaded: it finds its service under `/arcus/cache_server_mapping`, and is then on the list that ARCUS clients watch. \
         Needs `memcached-port`. Empty for none.",
    )
    .at_start(),
    Directive::supported(
        "arcus-zookeeper-timeout",
        integer!(arcus_zookeeper_timeout_seconds: 1, 2000),
        "30",
        "seconds",
        "After this long a silence ZooKeeper ends the session, and clients no longer find the server.",
    )
    .at_start(),
    Directive::supported(
        "arcus-zkfailstop",
        flag!(arcus_zkfailstop),
        "yes",
        "",
        "With `yes`, the server ends when ZooKeeper has ended its session: clients have used other nodes meanwhile, and its \
         values may be old. With `no` it stays, off the list, until `zkensemble rejoin`.",
    ),
    Directive::supported(
        "arcus-join",
        flag!(arcus_join),
        "yes",
        "",
        "With `no`, the server joins its cluster only when it gets the command `cluster join alone`.",
    )
    .at_start(),
    Directive::supported(
        "arcus-sticky-limit",
        size!(arcus_sticky_bytes_max: 0, u64::MAX),
        "0",
        "bytes",
        "What sticky items may take: items with an expiration of -1, which are never evicted. Beyond it such an item is \
         refused with an error. With 0 there are none, and -1 is what it is for memcached: expired at once.",
    ),
    Directive::supported(
        "arcus-max-list-size",
        integer!(arcus_list_size_max: ARCUS_SIZE_MIN, ARCUS_SIZE_MAX),
        "50000",
        "elements",
        "A list of an ARCUS client may ask for this many elements, and one that asks for -1 has this many. A longer one stays, \
         and is full. `config max_list_size` of a client raises it.",
    ),
    Directive::supported(
        "arcus-max-set-size",
        integer!(arcus_set_size_max: ARCUS_SIZE_MIN, ARCUS_SIZE_MAX),
        "50000",
        "elements",
        "The same for sets.",
    ),
    Directive::supported(
        "arcus-max-map-size",
        integer!(arcus_map_size_max: ARCUS_SIZE_MIN, ARCUS_SIZE_MAX),
        "50000",
        "elements",
        "The same for maps. One request names this many fields at most.",
    ),
    Directive::supported(
        "arcus-max-btree-size",
        integer!(arcus_btree_size_max: ARCUS_SIZE_MIN, ARCUS_SIZE_MAX),
        "50000",
        "elements",
        "The same for b+trees.",
    ),
    Directive::supported(
        "arcus-max-element-bytes",
        size!(arcus_element_bytes_max: 1024, 32 * 1024),
        "16384",
        "bytes",
        "The longest element that an ARCUS client may store, with two bytes for its line end.",
    ),
    Directive::supported(
        "arcus-public-ip",
        text!(arcus_public_ip),
        "",
        "",
        "The address that ARCUS clients are to use for this server. Empty for the one by which it reaches ZooKeeper.",
    )
    .at_start(),
];

/// The least that ARCUS allows as the most elements of a collection.
const ARCUS_SIZE_MIN: i64 = 10_000;
/// The most.
const ARCUS_SIZE_MAX: i64 = 1_000_000;

/// As much as ARCUS allows.
const MEMCACHED_KEY_MAX: i64 = 16_000;

/// As much as memcached allows.
const MEMCACHED_ITEM_MAX: u64 = 1 << 30;

const NO_RDMA: &str = "RDMA is not offered, and rdma-port is refused";
const BY_TICKETS: &str = "clients keep their sessions themselves, in tickets: the server has no cache of them";

/// What TLS clients get, and what the server shows to other servers.
pub(super) static TLS: &[Directive] = &[
    Directive::supported(
        "tls-port",
        integer!(tls_port: 0, 65535),
        "0",
        "",
        "The TCP port of the addresses of `bind` that accepts TLS connections. 0 accepts none. With `port 0` the server takes \
         TLS connections only. Needs `tls-cert-file` and `tls-key-file`, and a CA unless `tls-auth-clients` is `no`.",
    ),
    Directive::supported(
        "tls-cert-file",
        optional_path!(tls_cert_file),
        "",
        "",
        "The certificate of the server in PEM, followed by those of intermediate CAs. CONFIG SET reads all files of TLS again, \
         even when their names stay, and so does SIGHUP. When a file is bad, the certificates in force stay.",
    )
    .names_file(),
    Directive::supported(
        "tls-key-file",
        optional_path!(tls_key_file),
        "",
        "",
        "The private key of that certificate in PEM.",
    )
    .names_file(),
    Directive::supported(
        "tls-key-file-pass",
        Field::Secret { get: |s| &s.tls_key_file_pass, set: |s, secret| s.tls_key_file_pass = secret },
        "",
        "",
        "The passphrase of that key, if it has one. The key is in PKCS #8 with AES, as `openssl genpkey -aes256` writes it.",
    )
    .sensitive(),
    Directive::supported(
        "tls-ca-cert-file",
        optional_path!(tls_ca_cert_file),
        "",
        "",
        "The CAs in PEM that sign the certificates of clients and of other servers.",
    )
    .names_file(),
    Directive::supported(
        "tls-ca-cert-dir",
        optional_path!(tls_ca_cert_dir),
        "",
        "",
        "A directory of such files. Every file in it is read, whatever its name.",
    )
    .names_file(),
    Directive::supported(
        "tls-auth-clients",
        choice!(tls_auth_clients: TlsAuthClients),
        "yes",
        "",
        "Whether TLS clients need a certificate of a trusted CA. With `optional` they may show none, and one that they show must be \
         valid.",
    ),
    Directive::supported(
        "tls-auth-clients-user",
        choice!(tls_auth_clients_user: TlsClientUser),
        "off",
        "",
        "The name in a client's certificate that is its user, who is logged in by the handshake: `CN` the common name of \
         the subject, `URI` the first URI of the alternative names that is an enabled user. Without such a user the client \
         has to log in. Give such users no password and no `nopass`. On `http-port` it holds for each request without another \
         login.",
    ),
    Directive::supported(
        "tls-protocols",
        text!(tls_protocols),
        "",
        "",
        "The versions that are offered: `TLSv1.2`, `TLSv1.3` or both, separated by a space. Empty for both.",
    ),
    Directive::supported(
        "tls-ciphers",
        text!(tls_ciphers),
        "",
        "",
        "The cipher suites of TLS 1.2, as `openssl ciphers` takes them. All have forward secrecy and authenticated encryption. \
         Empty for all.",
    ),
    Directive::supported(
        "tls-ciphersuites",
        text!(tls_ciphersuites),
        "",
        "",
        "The cipher suites of TLS 1.3, separated by colons. Empty for all.",
    ),
    Directive::supported(
        "tls-prefer-server-ciphers",
        flag!(tls_prefer_server_ciphers),
        "no",
        "",
        "Whether the order of these lists counts. With `no` the client's order does.",
    ),
    Directive::supported(
        "tls-session-caching",
        flag!(tls_session_caching),
        "yes",
        "",
        "Whether clients may resume sessions, which makes reconnecting cheaper. The keys of the tickets change every six hours, and \
         whenever the files are read.",
    ),
    Directive::not_needed("tls-session-cache-size", Inert::integer("20480", 0, INT_MAX), BY_TICKETS),
    Directive::not_needed("tls-session-cache-timeout", Inert::integer("300", 0, INT_MAX), BY_TICKETS),
    Directive::refused(
        "tls-dh-params-file",
        &[""],
        "",
        "key exchange is by elliptic curves only (X25519, P-256, P-384), which need no parameters: remove the directive",
    ),
    Directive::supported(
        "tls-replication",
        flag!(tls_replication),
        "no",
        "",
        "Whether connections to other servers, of REPLICAOF and MIGRATE, use TLS. The other server needs a certificate of a trusted CA; \
         its name is not checked.",
    ),
    Directive::supported(
        "tls-client-cert-file",
        optional_path!(tls_client_cert_file),
        "",
        "",
        "The certificate in PEM that is shown to other servers. Empty for that of `tls-cert-file`.",
    )
    .names_file(),
    Directive::supported(
        "tls-client-key-file",
        optional_path!(tls_client_key_file),
        "",
        "",
        "The private key of that certificate in PEM.",
    )
    .names_file(),
    Directive::supported(
        "tls-client-key-file-pass",
        Field::Secret { get: |s| &s.tls_client_key_file_pass, set: |s, secret| s.tls_client_key_file_pass = secret },
        "",
        "",
        "The passphrase of that key, if it has one.",
    )
    .sensitive(),
    Directive::refused("tls-cluster", &["no"], "no", "there is no cluster bus"),
    Directive::supported(
        "tls-auto-reload-interval",
        integer!(tls_auto_reload_interval_seconds: 0, INT_MAX),
        "0",
        "seconds",
        "After this long the server looks at the files of TLS and at `http-token-file` again, and takes what has changed. When a \
         file is bad, what is in force stays, and the log says why. 0 never looks: send SIGHUP after a renewal.",
    ),
    Directive::not_needed(
        "max-new-tls-connections-per-cycle",
        Inert::integer("1", 1, 1000),
        "each worker bounds the time of handshakes in a turn",
    ),
];

pub(super) static TRANSPORTS: &[Directive] = &[
    Directive::refused("rdma-port", &["0"], "0", "RDMA is not offered; clients would find nothing there").at_start(),
    Directive::not_needed("rdma-bind", Inert::text(""), NO_RDMA),
    Directive::not_needed("rdma-rx-size", Inert::size("1048576", 65536, 16777216), NO_RDMA),
    Directive::not_needed("rdma-completion-vector", Inert::integer("-1", -1, INT_MAX), NO_RDMA),
];
