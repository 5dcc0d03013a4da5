//! CONFIG GET and CONFIG SET. The replies to the arguments below were taken from Valkey 9.1.2, where it has the
//! directive; what differs on purpose is in tests of its own.

use config::{AppendFsync, Change, Directive, Refused, SetError, Settings};

fn get(settings: &Settings, name: &str) -> String {
    let found = settings.get(&[name]);
    let [(_, value)] = found.as_slice() else { panic!("{name}: {found:?}") };
    String::from_utf8(value.clone()).unwrap()
}

fn change(settings: &Settings, pairs: &[&str]) -> Result<Change, SetError> {
    let pairs: Vec<_> = pairs.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    settings.change(&pairs)
}

fn set(settings: &mut Settings, pairs: &[&str]) -> Result<(), String> {
    let change = change(settings, pairs).map_err(|error| error.to_string())?;
    *settings = change.apply(|_, _| Ok(()), |_| Ok(())).map_err(|error| error.to_string())?;
    Ok(())
}

#[test]
fn replies_to_wrong_arguments() {
    let failed =
        |name: &str, reason: &str| format!("CONFIG SET failed (possibly related to argument '{name}') - {reason}");
    let unknown = |name: &str| format!("Unknown option or number of arguments for CONFIG SET - '{name}'");
    let policies = "argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, \
                    allkeys-lru, allkeys-lfu, allkeys-random, noeviction";
    let limits = "client-output-buffer-limit";
    let percentiles = "latency-tracking-info-percentiles";
    for (pairs, expected) in [
        (&["foo", "bar"][..], unknown("foo")),
        (&["maxmemory", "1mb", "foo", "bar"], unknown("foo")),
        (&["foo", "bar", "maxmemory", "xx"], unknown("foo")),
        (&["include", "x"], unknown("include")),
        (&["rename-command", "x"], unknown("rename-command")),
        (&["maxmemory", "1mb", "maxmemory", "2mb"], failed("maxmemory", "duplicate parameter")),
        (&["databases", "16"], failed("databases", "can't set immutable config")),
        (&["DATABASES", "4"], failed("DATABASES", "can't set immutable config")),
        (&["unixsocketperm", "9"], failed("unixsocketperm", "can't set immutable config")),
        (&["logfile", "x"], failed("logfile", "can't set immutable config")),
        (&["dir", "/tmp"], failed("dir", "can't set protected config")),
        (&["replicaof", "a 1"], failed("replicaof", "can't set immutable config")),
        (&["databases", "4", "foo", "1"], failed("databases", "can't set immutable config")),
        (&["MAXMEMORY", "x"], failed("maxmemory", "argument must be a memory value")),
        (&["maxmemory", "-1"], failed("maxmemory", "argument must be a memory value")),
        (&["maxmemory", "1.5gb"], failed("maxmemory", "argument must be a memory value")),
        (&["maxmemory", " 5"], failed("maxmemory", "argument must be a memory value")),
        (&["maxmemory", "18446744073709551616"], failed("maxmemory", "argument must be a memory value")),
        (&["database", "0 engine tape"], failed("database", "the engine of a database is memory or disk")),
        (
            &["database", "256 engine disk"],
            failed("database", "database takes the number of a database, from 0 to 255"),
        ),
        (
            &["database", "0 disk"],
            failed(
                "database",
                "database takes a number, then engine and memory or disk, ordered and yes or no, or maxmemory-policy and a \
                 policy: database 0 engine disk",
            ),
        ),
        (&["database", "0 ordered 1"], failed("database", "whether a database is ordered is yes or no")),
        (
            &["database", "3 ordered yes"],
            failed(
                "database",
                "database 3 is ordered yes and in memory: only the rows of a database on disk are in the order of their \
                 names. Set database 3 engine disk, or ordered no",
            ),
        ),
        (
            &["database", "0 maxmemory-policy lru"],
            failed(
                "database",
                "the maxmemory-policy of a database is one of those of maxmemory-policy, such as allkeys-lru or \
                 noeviction, or default",
            ),
        ),
        (
            &["database", "16 maxmemory-policy noeviction"],
            failed(
                "database",
                "database 16 has a maxmemory-policy, and databases is 16: give a number below that, or more databases",
            ),
        ),
        (
            &["database", "3 engine disk 3 maxmemory-policy allkeys-random"],
            failed(
                "database",
                "database 3 has engine disk and maxmemory-policy allkeys-random: no key of a database on disk is evicted. \
                 Leave out its policy, or set noeviction",
            ),
        ),
        (
            &["maxmemory-policy", "allkeys-lfu", "database", "3 maxmemory-policy volatile-lru"],
            failed(
                "maxmemory-policy",
                "maxmemory-policy allkeys-lfu counts how often keys are used, and database 3 maxmemory-policy \
                 volatile-lru needs the time they were used last: the server keeps one of these for all databases. Give \
                 all of them policies with lfu, or none",
            ),
        ),
        (
            &["database", "16 engine disk"],
            failed(
                "database",
                "database 16 has engine disk, and databases is 16: give a number below that, or more databases",
            ),
        ),
        (
            &["appendonly", "no", "database", "3 engine disk"],
            failed(
                "appendonly",
                "database 3 has engine disk, which needs the command log: changes that are not flushed yet are only there. \
                 Set appendonly yes, or database 3 engine memory",
            ),
        ),
        (
            &["maxclients-reserve", "65536"],
            failed("maxclients-reserve", "argument must be between 0 and 65535 inclusive"),
        ),
        (&["maxclients-reserve", "05"], failed("maxclients-reserve", "argument couldn't be parsed into an integer")),
        (&["maxclients-reserve", ""], failed("maxclients-reserve", "argument couldn't be parsed into an integer")),
        (
            &["proto-max-bulk-len", "10"],
            failed("proto-max-bulk-len", "argument must be between 1048576 and 9223372036854775807 inclusive"),
        ),
        (
            &["proto-max-bulk-len", "99999999999gb"],
            failed("proto-max-bulk-len", "argument must be between 1048576 and 9223372036854775807 inclusive"),
        ),
        (&["maxclients", "0"], failed("maxclients", "argument must be between 1 and 4294967295 inclusive")),
        (&["maxmemory-policy", "foo"], failed("maxmemory-policy", policies)),
        (&["latency-tracking", "maybe"], failed("latency-tracking", "argument must be 'yes' or 'no'")),
        (&["appendonly", "maybe"], failed("appendonly", "argument must be 'yes' or 'no'")),
        (
            &["maxmemory-clients", "101%"],
            failed("maxmemory-clients", "percentage argument must be less or equal to 100"),
        ),
        (&["maxmemory-clients", "-5"], failed("maxmemory-clients", "argument must be a memory or percent value")),
        (&["maxmemory-clients", "1mb%"], failed("maxmemory-clients", "argument must be a memory or percent value")),
        (&[limits, "normal 0 0"], failed(limits, "Wrong number of arguments in buffer limit configuration.")),
        (&[limits, "normal  0 0 0"], failed(limits, "Wrong number of arguments in buffer limit configuration.")),
        (&[limits, "master 0 0 0"], failed(limits, "Invalid client class specified in buffer limit configuration.")),
        (
            &[limits, "normal 0 0 5x"],
            failed(limits, "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ),
        (
            &[limits, "normal 0 0 -1"],
            failed(limits, "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ),
        (&[percentiles, "50  99"], failed(percentiles, "Invalid latency-tracking-info-percentiles parameters")),
        (&[percentiles, "nan"], failed(percentiles, "Invalid latency-tracking-info-percentiles parameters")),
        (
            &[percentiles, "-1"],
            failed(percentiles, "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"),
        ),
        (
            &["timeout", "1", "tcp-keepalive", "x"],
            failed("tcp-keepalive", "argument couldn't be parsed into an integer"),
        ),
        (
            &["slowlog-log-slower-than", "-2"],
            failed("slowlog-log-slower-than", "argument must be between -1 and 9223372036854775807 inclusive"),
        ),
        (
            &["COMMANDLOG-execution-slower-than", "x"],
            failed("commandlog-execution-slower-than", "argument couldn't be parsed into an integer"),
        ),
        (&["bind", "a b c d e f g h i j k l m n o p q r s"], failed("bind", "Too many bind addresses specified.")),
    ] {
        let mut settings = Settings::default();
        assert_eq!(set(&mut settings, pairs), Err(expected), "{pairs:?}");
    }
}

#[test]
fn values_as_they_are_answered() {
    for (name, value, answer) in [
        ("maxmemory", "100B", "100"),
        ("maxmemory", "1KB", "1024"),
        ("maxmemory", "18446744073709551615", "18446744073709551615"),
        ("maxmemory", "", "0"),
        ("maxmemory-policy", "ALLKEYS-LRU", "allkeys-lru"),
        ("latency-tracking", "YES", "yes"),
        ("maxmemory-clients", "5%", "5%"),
        ("maxmemory-clients", "0%", "0"),
        ("maxmemory-clients", "1mb", "1048576"),
        (
            "client-output-buffer-limit",
            "replica 1mb 2mb 3 NORMAL 1 2 3",
            "normal 1 2 3 slave 1048576 2097152 3 pubsub 33554432 8388608 60",
        ),
        (
            "client-output-buffer-limit",
            "normal 0 0 5 normal 1 1 +1",
            "normal 1 1 1 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
        ),
        ("latency-tracking-info-percentiles", "", ""),
        ("latency-tracking-info-percentiles", "50.0 99.123456 100 1e1", "50 99.123456 100 10"),
        ("latency-tracking-info-percentiles", "0.1 33.3333333333 -0", "0.1 33.333333 -0"),
        ("bind", "", ""),
        ("bind", "127.0.0.1 -::1", "127.0.0.1 -::1"),
        ("requirepass", "a b", "a b"),
        ("save", "", ""),
        ("save", "900 1 60 10000", "900 1 60 10000"),
        ("save", "5 0", "5 0"),
        ("appendonly", "NO", "no"),
        ("appendfsync", "ALWAYS", "always"),
        ("shutdown-on-sigterm", "FORCE now", "now force"),
        ("shutdown-on-sigint", "DEFAULT", "default"),
    ] {
        let mut settings = Settings::default();
        assert_eq!(set(&mut settings, &[name, value]), Ok(()), "{name} {value}");
        assert_eq!(get(&settings, name), answer, "{name} {value}");
    }
}

#[test]
fn names_and_patterns() {
    let settings = Settings::default();
    let names = |patterns: &[&str]| -> Vec<String> {
        settings.get(patterns).into_iter().map(|(name, _)| String::from_utf8(name).unwrap()).collect()
    };
    assert_eq!(names(&["PORT", "port", "p?rt"]), ["PORT"]);
    assert_eq!(names(&["nothing"]), [""; 0]);
    assert_eq!(names(&[""]), [""; 0]);
    assert_eq!(names(&["*y-policy", "maxmemory-policy"]), ["maxmemory-policy"]);
    assert_eq!(
        names(&["SLOWLOG-max-*", "commandlog-slow-*"]),
        ["commandlog-slow-execution-max-len", "slowlog-max-len"]
    );
    assert_eq!(names(&["slowlog-\\max-len"]), [""; 0], "without *, ? and [ it is a name");
    assert_eq!(names(&["slowlog-max-le[n]"]), ["slowlog-max-len"]);
    let all = names(&["*"]);
    assert!(all.is_sorted() && all.len() > 50);
    for (name, shown) in [("save", true), ("appendonly", true), ("hz", true), ("include", false), ("loadmodule", false)]
    {
        assert_eq!(all.iter().any(|other| other == name), shown, "{name}");
        assert_eq!(!names(&[name]).is_empty(), shown, "{name}");
    }
    assert_eq!(get(&settings, "slowlog-log-slower-than"), get(&settings, "commandlog-execution-slower-than"));
}

/// Both names of one directive may stand together; the later one wins.
#[test]
fn alias_and_name_in_one_command() {
    let mut settings = Settings::default();
    set(&mut settings, &["slowlog-log-slower-than", "5", "commandlog-execution-slower-than", "7"]).unwrap();
    assert_eq!(get(&settings, "slowlog-log-slower-than"), "7");
}

/// C4 for values: the first pair is fine, the second is not.
#[test]
fn all_or_nothing() {
    let mut settings = Settings::default();
    set(&mut settings, &["timeout", "1", "tcp-keepalive", "x"]).unwrap_err();
    assert_eq!(get(&settings, "timeout"), "0");
}

/// Tools and test suites set these on every server, and read what they have set.
#[test]
fn what_has_no_effect_can_be_set_and_read() {
    let mut settings = Settings::default();
    for (name, value, shown) in [
        ("hz", "20", "20"),
        ("maxmemory-samples", "10", "10"),
        ("list-compress-depth", "1", "1"),
        ("daemonize", "YES", "yes"),
        ("repl-backlog-size", "1mb", "1048576"),
        ("oom-score-adj-values", "1 2 3", "1 2 3"),
        ("slave-lazy-flush", "no", "no"),
        ("masterauth", "secret", "secret"),
    ] {
        set(&mut settings, &[name, value]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(get(&settings, name), shown, "{name}");
    }
    assert_eq!(get(&settings, "replica-lazy-flush"), "no", "the other name of it");
    for (name, value, reason) in [
        ("maxmemory-samples", "65", "argument must be between 1 and 64 inclusive"),
        ("activerehashing", "maybe", "argument must be 'yes' or 'no'"),
        ("loglevel", "loud", "argument(s) must be one of the following: debug, verbose, notice, warning, nothing"),
    ] {
        let error = set(&mut settings, &[name, value]).unwrap_err();
        assert_eq!(error, format!("CONFIG SET failed (possibly related to argument '{name}') - {reason}"));
    }
    assert_eq!(get(&settings, "maxmemory-samples"), "10", "as before");
    assert!(!format!("{settings:?}").contains("secret"), "C6");
    let said = |name: &str| config::find(name.as_bytes()).unwrap().without_effect(&settings);
    let reason = "this server has no replicas of its own yet, and receives every copy into a file first";
    assert_eq!(said("slave-lazy-flush"), Some(format!("CONFIG SET replica-lazy-flush no is without effect: {reason}")));
    assert_eq!(said("timeout"), None);
}

#[test]
fn what_is_refused_cannot_be_set() {
    let mut settings = Settings::default();
    for (name, value) in [("tls-cluster", "yes"), ("shutdown-on-sigterm", "save nosave"), ("log-segment-size", "1gb")] {
        let error = set(&mut settings, &[name, value]).unwrap_err();
        assert!(error.starts_with(&format!("CONFIG SET failed (possibly related to argument '{name}') - ")), "{error}");
    }
}

/// The password can go while others may connect: protected mode then refuses them.
#[test]
fn bind_and_password_change_on_their_own() {
    let mut settings = Settings::default();
    for pairs in [["bind", "0.0.0.0"], ["requirepass", "x"], ["requirepass", ""], ["protected-mode", "no"]] {
        set(&mut settings, &pairs).unwrap();
    }
}

/// C4 for parts of the server: what `apply` refuses is taken back, last first.
#[test]
fn a_refused_change_is_taken_back() {
    let settings = Settings::default();
    let pairs = ["timeout", "0", "port", "7000", "maxclients", "5", "maxmemory", "1gb"];
    let change = change(&settings, &pairs).unwrap();
    let names: Vec<_> = change.changed().iter().map(|row| row.name).collect();
    assert_eq!(names, ["port", "maxclients", "maxmemory"], "what stays the same is not applied");

    let mut calls = Vec::new();
    let apply = |row: &Directive, settings: &Settings| {
        calls.push((row.name, settings.port, settings.maxclients));
        if settings.maxclients == 5 && row.name == "maxclients" { Err("no descriptors".into()) } else { Ok(()) }
    };
    let result = change.apply(apply, |_| panic!("the last step waits until all rows are in force"));
    assert_eq!(
        result.unwrap_err().to_string(),
        "CONFIG SET failed (possibly related to argument 'maxclients') - no descriptors"
    );
    assert_eq!(calls, [("port", 7000, 5), ("maxclients", 7000, 5), ("maxclients", 6379, 10000), ("port", 6379, 10000)]);
}

/// The mode of the log is put into force by the last step, so nothing ever has to take it back. When that step is
/// refused, all rows are taken back.
#[test]
fn a_change_whose_last_step_is_refused_is_taken_back() {
    let settings = Settings::default();
    let change = change(&settings, &["port", "7000", "appendfsync", "always"]).unwrap();
    let (mut calls, mut finished) = (Vec::new(), Vec::new());
    let apply = |row: &Directive, settings: &Settings| {
        calls.push((row.name, settings.port));
        Ok(())
    };
    let result = change.apply(apply, |settings| {
        finished.push(settings.appendfsync);
        Err(Refused { directive: "appendfsync", reason: "keys are locked".into() })
    });
    assert_eq!(
        result.unwrap_err().to_string(),
        "CONFIG SET failed (possibly related to argument 'appendfsync') - keys are locked"
    );
    assert_eq!(calls, [("port", 7000), ("appendfsync", 7000), ("appendfsync", 6379), ("port", 6379)]);
    assert_eq!(finished, [AppendFsync::Always]);
}
