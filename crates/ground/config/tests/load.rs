//! Starting from files and options, over a simulated file system.

use config::{CommandLine, EvictionPolicy, LoadErrors, Loaded, OutputLimit, load};
use std::ffi::OsString;
use std::path::Path;
use vfs::{FileSystem, SimFs, replace_file};

fn files(contents: &[(&str, &str)]) -> SimFs {
    let fs = SimFs::new(1);
    for (path, text) in contents {
        let path = Path::new(path);
        fs.create_dir_all(path.parent().unwrap()).unwrap();
        replace_file(&fs, path, text.as_bytes()).unwrap();
    }
    fs
}

fn start(fs: &SimFs, arguments: &[&str]) -> Result<Loaded, LoadErrors> {
    load(&CommandLine::parse(arguments.iter().map(OsString::from))?, fs, &mut &b"port 7001\ntimeout 9\n"[..])
}

fn start_text(text: &str) -> Result<Loaded, String> {
    start(&files(&[("/c.conf", text)]), &["/c.conf"]).map_err(|error| error.to_string())
}

#[track_caller]
fn assert_refused(text: &str, expected: &str) {
    assert_eq!(start_text(text).map(|loaded| format!("{:?}", loaded.settings)), Err(expected.to_owned()));
}

#[test]
fn nothing_has_to_be_configured() {
    let loaded = start(&files(&[]), &[]).unwrap();
    assert!(loaded.warnings.is_empty() && loaded.file.is_none());
    let settings = loaded.settings;
    assert_eq!(settings.port, 6379);
    assert!(settings.bind.iter().all(config::Address::is_loopback));
    assert_eq!((settings.shards, settings.databases, settings.workers), (0, 16, 0));
    assert_eq!(settings.unixsocketperm, 0o600);
}

/// The lines of the file that Debian 12 installs, without their comments; and the file itself where it is installed.
#[test]
fn the_unchanged_file_of_debian_starts() {
    let mut texts = vec![include_str!("../testdata/debian-redis-7.0.conf").to_owned()];
    texts.extend(std::fs::read_to_string("/etc/redis/redis.conf"));
    for text in texts {
        let loaded = start_text(&text).unwrap();
        assert_eq!(loaded.file.as_deref(), Some(Path::new("/c.conf")));
        assert_eq!(loaded.settings.dir, Path::new("/var/lib/redis"));
        assert_eq!(loaded.settings.logfile.as_deref(), Some(Path::new("/var/log/redis/redis-server.log")));
        let normal = loaded.settings.client_output_limits.normal;
        assert_eq!(normal, OutputLimit { hard_bytes: 0, soft_bytes: 0, soft_seconds: 0 });
        let warnings: Vec<_> = loaded.warnings.iter().map(|warning| warning.to_string()).collect();
        assert!(
            warnings.iter().any(|warning| warning.starts_with("not needed here: daemonize (line ")),
            "{warnings:#?}"
        );
        assert!(warnings.len() < 25, "one for each reason: {warnings:#?}");
    }
}

#[test]
fn options_are_in_force_over_the_file_and_later_lines_over_earlier_ones() {
    let fs = files(&[("/c.conf", "port 1\nport 7000\nmaxmemory 1gb\nappendonly yes\nsave 900 1\nsave 300 10\n")]);
    let loaded = start(&fs, &["/c.conf", "--MaxMemory", "2mb", "--appendonly", "no", "--save", ""]).unwrap();
    assert_eq!(loaded.settings.port, 7000);
    assert_eq!(loaded.settings.maxmemory_bytes, 2 << 20);
    assert!(!loaded.settings.appendonly && loaded.settings.save.points.is_empty());

    // Lines of `save` add up, and the first takes the place of the defaults.
    let loaded = start(&fs, &["/c.conf"]).unwrap();
    let points: Vec<_> = loaded.settings.save.points.iter().map(|point| (point.seconds, point.changes)).collect();
    assert!(loaded.settings.appendonly && points == [(900, 1), (300, 10)], "{points:?}");
    for line in ["save 900", "save 0 1", "save 1 -1", "save a 1"] {
        let error = start_text(line).unwrap_err();
        assert!(error.contains("Invalid save parameters"), "{line}: {error}");
    }
}

#[test]
fn standard_input_is_a_file_without_a_path() {
    let loaded = start(&files(&[]), &["-", "--port", "7002"]).unwrap();
    assert_eq!((loaded.settings.port, loaded.file), (7002, None));
    assert_eq!(loaded.settings.timeout_seconds, 9);
}

#[test]
fn values_of_every_shape() {
    let settings = start_text(
        "bind 127.0.0.1 -::1\nmaxmemory-policy ALLKEYS-lfu\ncommandlog-slow-execution-max-len 7\nmaxmemory-clients 5%\n\
         client-output-buffer-limit \"slave 1mb 2mb 3\"\nclient-output-buffer-limit normal 1 2 3 pubsub 4 5 6\n\
         latency-tracking-info-percentiles \"\"\nunixsocketperm 770\n  UNIXSOCKET '/run/a b.sock'  \n# comment\n\r\n\
         slowlog-log-slower-than -1\nrequirepass \"a \\\"b\\\" \\x01\"\n",
    )
    .unwrap()
    .settings;
    assert_eq!(settings.maxmemory_policy, EvictionPolicy::AllkeysLfu);
    assert_eq!(settings.slowlog_length_max, 7);
    assert_eq!(settings.maxmemory_clients, config::MemoryShare::Percent(5));
    let limit = |hard_bytes, soft_bytes, soft_seconds| OutputLimit { hard_bytes, soft_bytes, soft_seconds };
    assert_eq!(settings.client_output_limits.replica, limit(1 << 20, 2 << 20, 3));
    assert_eq!(settings.client_output_limits.normal, limit(1, 2, 3));
    assert_eq!(settings.client_output_limits.pubsub, limit(4, 5, 6));
    assert!(settings.latency_tracking_percentiles.is_empty());
    assert_eq!(settings.unixsocketperm, 0o770);
    assert_eq!(settings.unixsocket.as_deref(), Some(Path::new("/run/a b.sock")));
    assert_eq!(settings.requirepass.expose(), b"a \"b\" \x01");
}

#[test]
fn mistakes_name_place_text_and_nearest_name() {
    assert_refused(
        "port 1\n\nmaxmemroy 1gb\n",
        "/c.conf:3: unknown directive 'maxmemroy', did you mean 'maxmemory'? (in: maxmemroy 1gb)",
    );
    assert_refused("xyzzy 1", "/c.conf:1: unknown directive 'xyzzy' (in: xyzzy 1)");
    assert_refused("port 99999", "/c.conf:1: port: argument must be between 0 and 65535 inclusive (in: port 99999)");
    assert_refused("port", "/c.conf:1: port: wrong number of arguments (in: port)");
    assert_refused("port 1 2", "/c.conf:1: port: wrong number of arguments (in: port 1 2)");
    assert_refused("bind", "/c.conf:1: bind: wrong number of arguments (in: bind)");
    assert_refused("shards 3", "/c.conf:1: shards: argument must be a power of two (in: shards 3)");
    assert_refused("dir \"/a", "/c.conf:1: unbalanced quotes (in: dir \"/a)");
    assert_refused("port 1\0", "/c.conf:1: the line contains a NUL byte (in: port 1\u{fffd})");
    assert_refused(
        "unixsocketperm 1000",
        "/c.conf:1: unixsocketperm: argument must be between 0 and 777 inclusive (in: unixsocketperm 1000)",
    );
    let error = start(&files(&[]), &["--prot", "1"]).unwrap_err().to_string();
    assert_eq!(error, "command line: unknown directive 'prot', did you mean 'port'? (in: prot 1)");
    let error = start(&files(&[]), &["/missing.conf"]).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the configuration: ") && error.contains("/missing.conf"), "{error}");
}

/// One look at the message is enough to mend the file.
#[test]
fn all_mistakes_are_reported() {
    assert_refused(
        "port x\ntimeout 1\nfoo 1\n",
        "/c.conf:1: port: argument couldn't be parsed into an integer (in: port x)\n/c.conf:3: unknown directive 'foo' (in: foo 1)",
    );
    assert_eq!(start_text(&"foo\n".repeat(10_000)).unwrap_err().lines().count(), 50);
}

/// C6, also for a directive that is misspelt.
#[test]
fn secrets_are_not_shown() {
    for text in [
        "requirepass s3cret x\n",
        "requirpass s3cret\n",
        "requirepass \"s3cret\n",
        "REQUIREPASS s3cret\0\n",
        "masterauht s3cret\n",
        "user alice on >s3cret\nuser alice >s3cret\n",
    ] {
        let error = start_text(text).unwrap_err();
        assert!(error.contains("(redacted)") && !error.contains("s3cret"), "{error}");
    }
    let loaded = start_text("requirepass s3cret\nmasterauth s3cret\nuser alice >s3cret\n").unwrap();
    assert!(!format!("{loaded:?}").contains("s3cret"));
}

/// Lines of users add up, and each user has one. The rules are another crate's.
#[test]
fn users_are_read_with_their_rules() {
    let settings = start_text("user alice on \">a b\" (+get ~a)\nuser default off\n").unwrap().settings;
    let words =
        |index: usize| settings.users[index].words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>();
    assert_eq!(words(0), ["alice", "on", ">a b", "(+get", "~a)"]);
    assert_eq!(words(1), ["default", "off"]);
    assert!(settings.defines_default_user());
    let error = start_text("user alice on\nuser alice off\n").unwrap_err();
    assert_eq!(error, "/c.conf:2: this user has a line already; a user can only be defined once (in: user (redacted))");
    assert!(start_text("user\n").is_err());
}

/// Other hosts reach the page with a login and over TLS, or the server does not start.
#[test]
fn a_page_for_other_hosts_has_a_login_and_tls() {
    for (text, reason) in [
        ("http-bind *", "http-bind has *, which other hosts may reach, and there is no login: set requirepass"),
        (
            "http-bind 127.0.0.1 ::*\nhttp-tls yes",
            "http-bind has ::*, which other hosts may reach, and there is no login",
        ),
        ("http-bind 10.0.0.1\nrequirepass x", "their passwords would be readable on the way: set http-tls yes"),
    ] {
        let error = start_text(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    for text in [
        "http-bind *\nhttp-port 0",
        "http-bind 127.0.0.1 -::1",
        "http-bind \"\"",
        "http-bind *\nhttp-tls yes\nrequirepass x",
        "http-bind *\nhttp-tls yes\nuser scraper on >x +info",
        "http-bind *\nhttp-tls yes\nhttp-token-file tokens",
        "http-bind *\nhttp-tls yes\ntls-auth-clients-user CN",
    ] {
        start_text(text).unwrap();
    }
}

/// A program that cannot send figures does not take the settings for it.
#[test]
fn figures_are_sent_by_a_program_that_can() {
    for line in ["otlp-endpoint http://127.0.0.1:4318/v1/metrics", "otlp-interval 5", "otlp-headers token=x"] {
        let started = start_text(line);
        if cfg!(feature = "otlp") {
            started.unwrap();
            continue;
        }
        let name = line.split(' ').next().unwrap();
        let error = started.unwrap_err();
        let reason = "this program was built without OTLP: build it with cargo build --release --features otlp";
        assert!(error.contains(name) && error.contains(reason), "{error}");
    }
    start_text("otlp-endpoint \"\"").unwrap();
}

#[cfg(feature = "otlp")]
#[test]
fn figures_are_sent_to_a_url_with_headers() {
    for (line, reason) in [
        ("otlp-endpoint 127.0.0.1:4318", "otlp-endpoint 127.0.0.1:4318 is not a URL of HTTP"),
        ("otlp-endpoint http:///v1/metrics", "is not a URL of HTTP"),
        ("otlp-headers \"a=b,secret\"", "otlp-headers: the text number 2 between commas is not NAME=VALUE"),
        ("otlp-headers \"a b=c\"", "otlp-headers: the text number 1"),
    ] {
        let error = start_text(line).unwrap_err();
        assert!(error.contains(reason) && !error.contains("secret"), "{line}: {error}");
    }
    let settings = start_text("otlp-headers \"Authorization=Bearer a=b, x-scope = 1\"").unwrap().settings;
    let header = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
    assert_eq!(settings.otlp_headers(), [header("Authorization", "Bearer a=b"), header("x-scope", "1")]);
}

#[test]
fn what_would_break_a_promise_is_refused() {
    for (line, reason) in [
        ("tls-dh-params-file dh.pem", "tls-dh-params-file is refused: key exchange is by elliptic curves"),
        ("cluster-enabled yes", "cluster-enabled is refused"),
        ("rename-command CONFIG \"\"", "rename-command is refused"),
        ("loadmodule /x.so", "loadmodule is refused"),
        ("min-slaves-to-write 1", "min-replicas-to-write is refused"),
        ("unixsocketgroup redis", "unixsocketgroup is refused"),
    ] {
        let error = start_text(line).unwrap_err();
        assert!(error.starts_with(&format!("/c.conf:1: {reason}")), "{line}: {error}");
    }
    let asking_for_nothing = "appendonly no\nsave \"\"\nreplicaof no one\nslaveof 10.0.0.1 6379\ntls-port 0\ntls-dh-params-file \"\"\ncluster-enabled no\nsupervised no\n";
    assert!(start_text(asking_for_nothing).unwrap().warnings.is_empty());
}

/// CONFIG GET answers what the file says, and the default where the file says nothing that could be read.
#[test]
fn what_is_not_needed_keeps_its_value() {
    let settings = start_text("hz 20\nmaxmemory-samples 999\npidfile /run/x.pid\n").unwrap().settings;
    let get = |name: &str| String::from_utf8(settings.get(&[name]).remove(0).1).unwrap();
    assert_eq!((get("hz"), get("maxmemory-samples"), get("pidfile")), ("20".into(), "5".into(), "/run/x.pid".into()));
}

/// One warning for each reason, with the last mention of each name.
#[test]
fn what_is_not_needed_is_warned_about() {
    let loaded = start_text("hz 10\nhz 20\nDynamic-HZ yes\nio-threads 4\n").unwrap();
    let warnings: Vec<_> = loaded.warnings.iter().map(|warning| warning.to_string()).collect();
    assert_eq!(
        warnings,
        [
            "not needed here: hz (line 2), dynamic-hz (line 3): timers fire when they are due; there is no periodic tick \
             whose rate could be chosen",
            "not needed here: io-threads (line 4): workers sets the number of threads that serve clients",
        ]
    );
}

#[test]
fn a_server_without_a_password_warns_about_other_hosts() {
    for bind in ["0.0.0.0", "127.0.0.1 10.0.0.1", "* -::*", "::", "-10.0.0.1"] {
        let loaded = start_text(&format!("bind {bind}")).unwrap();
        let [warning] = loaded.warnings.as_slice() else { panic!("{:?}", loaded.warnings) };
        assert!(warning.to_string().contains("clients of other hosts are refused; set requirepass"), "{warning}");
        assert!(start_text(&format!("bind {bind}\nrequirepass x")).unwrap().warnings.is_empty());
        assert!(start_text(&format!("bind {bind}\nport 0\nunixsocket /s")).unwrap().warnings.is_empty());
        let loaded = start_text(&format!("bind {bind}\nprotected-mode no")).unwrap();
        let [warning] = loaded.warnings.as_slice() else { panic!("{:?}", loaded.warnings) };
        assert!(warning.to_string().contains("everybody who reaches this host"), "{warning}");
    }
    assert!(start_text("bind 127.0.0.2 ::1 localhost").unwrap().warnings.is_empty());
}

#[test]
fn a_tier_is_slower_than_its_medium_only_where_it_is_shared() {
    let sentence = "tier-read-delay-ns and tier-write-delay-ns are for experiments with tier-medium shared, and it is \
                    auto. Set tier-medium shared, or both delays to 0";
    assert_refused("tier-dir /tier\ntier-read-delay-ns 200", sentence);
    assert_refused("tier-dir /tier\ntier-write-delay-ns 80\ntier-medium dax", &sentence.replace("auto", "dax"));
    assert!(start_text("tier-dir /tier\ntier-medium shared\ntier-read-delay-ns 200\ntier-write-delay-ns 80").is_ok());
    // A tier and a database on disk may be in one server.
    assert!(start_text("tier-dir /tier\ndatabase 3 engine disk").is_ok());
}

#[test]
fn a_replica_with_a_database_on_disk_does_not_start() {
    let sentence = "replicaof is set and database 3 has engine disk: a replica cannot have databases on disk yet. Set \
                    database 3 engine memory, or replicaof no one";
    assert_refused("replicaof 127.0.0.1 6379\ndatabase 3 engine disk", sentence);
    assert!(start_text("replicaof no one\ndatabase 3 engine disk").is_ok());
    assert!(start_text("replicaof 127.0.0.1 6379").is_ok());
}

#[test]
fn a_server_that_listens_nowhere_does_not_start() {
    let sentence = "there is nothing to listen on: set port and bind, or unixsocket";
    assert_refused("port 0", sentence);
    assert_refused("bind \"\"", sentence);
    assert!(start_text("port 0\nunixsocket /s").is_ok());
    assert!(start_text("port 0\nmemcached-port 11211").is_ok());
    assert!(start_text("port 0\ntls-port 6380").is_ok());
}

#[test]
fn memcached_clients_need_a_database_that_is_there() {
    assert!(start_text("databases 4\nmemcached-database 3").is_ok());
    assert_refused(
        "databases 4\nmemcached-database 4",
        "memcached-database is 4, and databases is 4: give a number below that, or more databases",
    );
}

/// A database that memcached clients have for themselves is a cache, unless its line says otherwise; one that they
/// share is evicted as all are.
#[test]
fn the_database_of_memcached_clients_is_a_cache() {
    use EvictionPolicy::{AllkeysLfu, AllkeysLru, NoEviction, VolatileTtl};
    for (text, own, of_0, of_3) in [
        ("", None, NoEviction, NoEviction),
        ("memcached-database 3", None, NoEviction, NoEviction),
        ("memcached-port 1\nmemcached-database 3", Some(3), NoEviction, AllkeysLru),
        ("memcached-port 1\nmaxmemory-policy volatile-ttl", None, VolatileTtl, VolatileTtl),
        ("memcached-port 1\nmemcached-database 3\nmaxmemory-policy volatile-ttl", Some(3), VolatileTtl, AllkeysLru),
        ("memcached-port 1\nmemcached-database 3\nmaxmemory-policy allkeys-lfu", Some(3), AllkeysLfu, AllkeysLfu),
        (
            "memcached-port 1\nmemcached-database 3\ndatabase 3 maxmemory-policy noeviction",
            Some(3),
            NoEviction,
            NoEviction,
        ),
        ("memcached-port 1\nmemcached-database 3\ndatabase 3 engine disk", Some(3), NoEviction, NoEviction),
        ("database 0 maxmemory-policy allkeys-lru", None, AllkeysLru, NoEviction),
    ] {
        let settings = start_text(text).unwrap().settings;
        let found = (settings.own_memcached_database(), settings.policy_of_database(0), settings.policy_of_database(3));
        assert_eq!(found, (own, of_0, of_3), "{text}");
        let listed: Vec<u32> = settings.policies_of_databases().into_iter().map(|(number, _)| number).collect();
        assert!([0, 3].iter().all(|number| {
            listed.contains(number) || settings.policy_of_database(*number) == settings.maxmemory_policy
        }));
    }
}

#[test]
fn clients_of_ssdb_use_a_database_on_disk() {
    let database = |text: &str| start_text(text).unwrap().settings.database_of_ssdb();
    assert_eq!(database("port 0\nssdb-port 8888"), 0);
    assert_eq!(database("database 3 engine disk\ndatabase 5 engine disk\nappendonly yes"), 3);
    assert_eq!(database("database 3 engine disk\ndatabase 5 engine disk\nappendonly yes\nssdb-database 5"), 5);
    assert_refused(
        "ssdb-database 2",
        "ssdb-database is 2, which is a database in memory: give it --database '2 engine disk', or leave ssdb-database out",
    );
    assert_refused(
        "databases 4\nssdb-database 4",
        "ssdb-database is 4, and databases is 4: give a number below that, or more databases",
    );
}

#[test]
fn types_of_ssdb_have_four_databases_of_one_engine() {
    assert!(start_text("ssdb-namespaces separate\ndatabases 4").is_ok());
    let on_disk = "appendonly yes\ndatabase 1 engine disk\ndatabase 2 engine disk\ndatabase 3 engine disk";
    assert!(start_text(&format!("ssdb-namespaces separate\n{on_disk}\ndatabase 4 engine disk")).is_ok());
    let lacks = |first: u32, engine: &str| {
        let last = first + 3;
        format!(
            "ssdb-namespaces separate uses the databases {first} to {last}, for keys, hashes, zsets and queues: give each of \
             them engine {engine} (--database '{last} engine {engine}'), and databases above {last}"
        )
    };
    assert_refused("ssdb-namespaces separate\ndatabases 3", &lacks(0, "memory"));
    assert_refused(&format!("ssdb-namespaces separate\n{on_disk}"), &lacks(1, "disk"));
    assert!(start_text(&format!("ssdb-namespaces shared\n{on_disk}")).is_ok());
}

#[test]
fn a_node_of_a_cluster_needs_servers_of_zookeeper_and_a_port() {
    assert!(start_text("memcached-port 11211\narcus-zookeeper a:2181,[::1]:2182").is_ok());
    for list in ["a", "a:", ":1", "a:0", "a:1,", "a:1,,b:2"] {
        assert_refused(
            &format!("memcached-port 11211\narcus-zookeeper {list}"),
            &format!("arcus-zookeeper is {list:?}: give a list such as 10.0.0.1:2181,10.0.0.2:2181"),
        );
    }
    assert_refused(
        "arcus-zookeeper a:2181",
        "arcus-zookeeper needs memcached-port: the clients that find this server by ZooKeeper use it",
    );
}

#[test]
fn a_memcached_port_beyond_loopback_warns_too() {
    let text = "port 0\nmemcached-port 11211\nbind 10.0.0.1";
    assert_eq!(start_text(text).unwrap().warnings.len(), 1);
    assert!(start_text(&format!("{text}\nrequirepass secret")).unwrap().warnings.is_empty());
}

#[test]
fn includes() {
    let fs = files(&[
        ("/etc/main.conf", "port 1\ninclude /etc/conf.d/*.conf\ninclude /etc/none/*.conf\ntimeout 9\n"),
        ("/etc/conf.d/b.conf", "port 3\ninclude \"/etc/more/last file\"\n"),
        ("/etc/conf.d/a.conf", "port 2\ntimeout 5"),
        ("/etc/conf.d/.hidden.conf", "port 66\n"),
        ("/etc/conf.d/c.conf.bak", "port 67\n"),
        ("/etc/more/last file", "databases 5\n"),
        ("/etc/loop.conf", "include /etc/loop2.conf\n"),
        ("/etc/loop2.conf", "port 2\ninclude /etc/l[o]op.conf\n"),
        ("/etc/bad.conf", "include /etc/bad2.conf\ninclude /etc/missing.conf\ninclude\n"),
        ("/etc/bad2.conf", "\nfoo 1\n"),
        ("/etc/wide.conf", "include /*/*\n"),
        // Each includes the next twice: without a limit, 2^40 files.
        ("/twice.conf", "include /t0.conf\n"),
    ]);
    for depth in 0..40 {
        let next = format!("include /t{}.conf\n", depth + 1).repeat(2);
        replace_file(&fs, Path::new(&format!("/t{depth}.conf")), next.as_bytes()).unwrap();
    }

    let settings = start(&fs, &["/etc/main.conf"]).unwrap().settings;
    assert_eq!((settings.port, settings.timeout_seconds, settings.databases), (3, 9, 5));

    let error = |file: &str| start(&fs, &[file]).unwrap_err().to_string();
    assert_eq!(
        error("/etc/loop.conf"),
        "/etc/loop2.conf:2: /etc/loop.conf would include itself (in: include /etc/l[o]op.conf)"
    );
    let bad = error("/etc/bad.conf");
    let bad: Vec<_> = bad.lines().collect();
    assert_eq!(bad[0], "/etc/bad2.conf:2: unknown directive 'foo' (in: foo 1)");
    assert!(
        bad[1].starts_with("/etc/bad.conf:2: cannot include it: ") && bad[1].contains("/etc/missing.conf"),
        "{bad:?}"
    );
    assert_eq!(bad[2], "/etc/bad.conf:3: include: wrong number of arguments (in: include)");
    assert!(error("/twice.conf").contains("too much is included"));
}

/// Removing the comment sign of every directive of the sample changes nothing, and its names are all there is.
#[test]
fn the_sample_file_shows_the_defaults() {
    let sample = config::document::sample();
    assert!(start_text(&sample).unwrap().warnings.is_empty());
    let uncommented: String =
        sample.lines().map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect();
    let loaded = start_text(&uncommented).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let defaults = start_text("").unwrap();
    assert_eq!(loaded.settings.get(&["*"]), defaults.settings.get(&["*"]));
    for row in config::directives().filter(|row| row.setting().is_some()) {
        assert!(uncommented.lines().any(|line| line.split(' ').next() == Some(row.name)), "{}", row.name);
    }
}
