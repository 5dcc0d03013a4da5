//! RDB files and DUMP payloads between this project's reader and writer and real servers, both ways: files with random
//! values of all types, and the committed ones, are written again, loaded by the server, and asked for by DUMP; what
//! comes back is the same, and RESTORE of our payload gives the value that has the same digest. Then each value goes
//! into Onggi, from there into the server, and back again, by DUMP and RESTORE alone. Prints two lines for each server.
//!
//! `ONGGI_DIFF_SEED` is the seed, `ONGGI_DIFF_RDB_FILES` the number of random files (20 unless set).

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use base::random::OsEntropy;
use base::{Entropy, Rng};
use differential::payload::{in_order, without_active_times};
use differential::request::encode;
use differential::resp::{self, Value as Reply};
use differential::target::process::ProcessTarget;
use differential::target::{Kind, Outcome, Target, peers};
use rdb::{
    Hash, Item, Reader, Stream, StreamConsumer, StreamGroup, StreamId, StreamPending, Strings, Target as Version,
    Value, Writer, Zset,
};

/// A moment that no test reaches.
const LATER: i64 = 4_102_444_800_000;

/// Values by key.
type Keys = BTreeMap<Vec<u8>, (Option<i64>, Value)>;

fn main() -> ExitCode {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed =
        number("ONGGI_DIFF_SEED").or_else(|| number("ONGGI_TEST_SEED")).unwrap_or_else(|| OsEntropy.rng().next_u64());
    let files = number("ONGGI_DIFF_RDB_FILES").unwrap_or(20);
    let mut is_good = true;
    for (kind, versions) in
        [(Kind::Redis, &[Version::V10][..]), (Kind::Valkey, &[Version::V10, Version::V11, Version::Valkey9])]
    {
        let name = format!("RDB files and DUMP, with {}", kind.name());
        is_good &= report(&name, seed, &[kind], |servers| match servers {
            [server] => server.compare(versions, &mut Rng::new(seed), files),
            _ => Err("one server is needed".to_owned()),
        });
        let name = format!("values from Onggi to {} and back", kind.name());
        is_good &= report(&name, seed, &[Kind::Onggi, kind], |servers| match servers {
            [onggi, other] => exchange(onggi, other, versions, &mut Rng::new(seed), files),
            _ => Err("two servers are needed".to_owned()),
        });
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs a test with these servers and prints how it went. False when it failed.
fn report(name: &str, seed: u64, kinds: &[Kind], test: impl FnOnce(&mut [Server]) -> Result<(), String>) -> bool {
    let programs: Result<Vec<_>, _> = kinds.iter().map(|kind| peers::find(*kind)).collect();
    let programs = match programs {
        Ok(programs) => programs,
        Err(reason) => {
            println!("ok - {name} # SKIP {reason}");
            return true;
        }
    };
    let start = |(program, kind): (_, &Kind)| {
        Server::open(ProcessTarget::start(program, kind.name()).map_err(|error| error.to_string())?)
    };
    let servers: Result<Vec<_>, String> = programs.into_iter().zip(kinds).map(start).collect();
    let done = servers.and_then(|mut servers| test(&mut servers));
    match &done {
        Ok(()) => println!("ok - {name}"),
        Err(problem) => println!("not ok - {name}: seed {seed}: {problem}"),
    }
    done.is_ok()
}

/// Values go into Onggi in each version of the format, from there by DUMP into the other server, and from there back.
fn exchange(
    onggi: &mut Server,
    other: &mut Server,
    versions: &[Version],
    rng: &mut Rng,
    files: u64,
) -> Result<(), String> {
    for version in versions {
        for file in 0..files {
            for (key, (_, value)) in draw_keys(rng, *version) {
                exchange_value(onggi, other, *version, &key, &value)
                    .map_err(|error| format!("{version:?}, file {file}, key {}: {error}", key.escape_ascii()))?;
            }
        }
    }
    Ok(())
}

fn exchange_value(
    onggi: &mut Server,
    other: &mut Server,
    version: Version,
    key: &[u8],
    value: &Value,
) -> Result<(), String> {
    let place = |name: &'static str| move |error: String| format!("{name}: {error}");
    onggi.restore(key, &rdb::dump::write(value, version).map_err(|error| error.to_string())?)?;
    onggi.compare_dump(version, key, value).map_err(place("in Onggi"))?;
    other.restore(key, &onggi.dump(key)?)?;
    other.compare_dump(version, key, value).map_err(place("in the other"))?;
    onggi.restore(key, &other.dump(key)?)?;
    onggi.compare_dump(version, key, value).map_err(place("back in Onggi"))
}

struct Server {
    process: ProcessTarget,
    /// The file that it loads.
    file: PathBuf,
}

impl Server {
    fn open(mut process: ProcessTarget) -> Result<Self, String> {
        process.open(0).map_err(|error| error.to_string())?;
        let mut server = Self { process, file: PathBuf::new() };
        let Reply::Array(dir) = server.ask(&[b"CONFIG", b"GET", b"dir"])? else { return Err("no CONFIG".to_owned()) };
        let dir = dir.get(1).and_then(Reply::text).ok_or("no directory")?;
        server.file = Path::new(str::from_utf8(dir).map_err(|error| error.to_string())?).join("dump.rdb");
        Ok(server)
    }

    fn compare(&mut self, versions: &[Version], rng: &mut Rng, files: u64) -> Result<(), String> {
        for version in versions {
            for path in committed() {
                let keys = read_file(&path)?;
                let has_expirations =
                    keys.values().any(|(_, value)| matches!(value, Value::Hash(hash) if hash.has_expirations()));
                if *version == Version::Valkey9 || !has_expirations {
                    self.load(*version, &keys).map_err(|error| format!("{}: {error}", path.display()))?;
                }
            }
            for file in 0..files {
                let keys = draw_keys(rng, *version);
                self.load(*version, &keys).map_err(|error| format!("{version:?}, file {file}: {error}"))?;
            }
        }
        Ok(())
    }

    /// Writes a file, has it loaded, and compares each key.
    fn load(&mut self, version: Version, keys: &Keys) -> Result<(), String> {
        let mut writer = Writer::new(Vec::new(), version).map_err(|error| error.to_string())?;
        for (key, (expire_at, value)) in keys {
            writer.entry(0, key, *expire_at, value).map_err(|error| error.to_string())?;
        }
        let bytes = writer.finish().map_err(|error| error.to_string())?;
        fs::write(&self.file, bytes).map_err(|error| error.to_string())?;
        self.expect(&[b"DEBUG", b"RELOAD", b"NOSAVE"], &Reply::Simple(b"OK".to_vec()))?;
        self.expect(&[b"DBSIZE"], &Reply::Int(keys.len() as i64))?;
        for (key, (expire_at, value)) in keys {
            self.compare_key(version, key, *expire_at, value)
                .map_err(|error| format!("key {}: {error}", key.escape_ascii()))?;
        }
        Ok(())
    }

    fn compare_key(&mut self, version: Version, key: &[u8], at: Option<i64>, value: &Value) -> Result<(), String> {
        self.expect(&[b"PEXPIRETIME", key], &Reply::Int(at.unwrap_or(-1)))?;
        self.compare_dump(version, key, value).map_err(|error| format!("loaded: {error}"))?;
        let digest = self.ask(&[b"DEBUG", b"DIGEST-VALUE", key])?;
        let payload = rdb::dump::write(value, version).map_err(|error| error.to_string())?;
        let time = at.unwrap_or(0).to_string();
        self.expect(
            &[b"RESTORE", key, time.as_bytes(), &payload, b"REPLACE", b"ABSTTL"],
            &Reply::Simple(b"OK".to_vec()),
        )?;
        self.compare_dump(version, key, value).map_err(|error| format!("restored: {error}"))?;
        self.expect(&[b"DEBUG", b"DIGEST-VALUE", key], &digest)
    }

    fn compare_dump(&mut self, version: Version, key: &[u8], value: &Value) -> Result<(), String> {
        let (form, found) = rdb::dump::read(&self.dump(key)?).map_err(|error| error.to_string())?;
        let ordered = |value| match version {
            Version::V10 => without_active_times(in_order(value)),
            Version::V11 | Version::Valkey9 => in_order(value),
        };
        let (expected, found) = (ordered(value.clone()), ordered(found));
        if expected == found { Ok(()) } else { Err(format!("{form}: {found:?} for {expected:?}")) }
    }

    fn dump(&mut self, key: &[u8]) -> Result<Vec<u8>, String> {
        match self.ask(&[b"DUMP", key])? {
            Reply::Bulk(payload) => Ok(payload),
            other => Err(format!("DUMP: {other:?}")),
        }
    }

    fn restore(&mut self, key: &[u8], payload: &[u8]) -> Result<(), String> {
        self.expect(&[b"RESTORE", key, b"0", payload, b"REPLACE"], &Reply::Simple(b"OK".to_vec()))
    }

    fn expect(&mut self, request: &[&[u8]], expected: &Reply) -> Result<(), String> {
        let reply = self.ask(request)?;
        let name = request.iter().take(2).map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ");
        if reply == *expected { Ok(()) } else { Err(format!("{name}: {reply:?} for {expected:?}")) }
    }

    fn ask(&mut self, request: &[&[u8]]) -> Result<Reply, String> {
        self.process.send(0, &encode(request));
        match self.process.receive(0, 1).pop() {
            Some(Outcome::Reply(bytes)) => {
                resp::parse(&bytes).map(|(value, _)| value).map_err(|error| format!("{error:?}"))
            }
            other => Err(format!("{other:?}")),
        }
    }
}

fn committed() -> Vec<PathBuf> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/keyspace/rdb/testdata");
    let mut paths: Vec<_> = fs::read_dir(testdata)
        .expect("testdata of crate rdb")
        .map(|file| file.expect("a file of testdata").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rdb"))
        .collect();
    paths.sort();
    paths
}

/// What a file has in database 0, but values of modules.
fn read_file(path: &Path) -> Result<Keys, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let mut reader = Reader::new(&*bytes, Some(bytes.len() as u64)).map_err(|error| error.to_string())?;
    let mut keys = Keys::new();
    while let Some(item) = reader.next_item().map_err(|error| format!("{}: {error}", path.display()))? {
        if let Item::Entry(entry) = item
            && entry.db == 0
            && !matches!(entry.value, Value::Module(_))
        {
            keys.insert(entry.key, (entry.expire_at, entry.value));
        }
    }
    Ok(keys)
}

fn draw_keys(rng: &mut Rng, version: Version) -> Keys {
    let mut keys = Keys::new();
    for _ in 0..1 + rng.below(30) {
        let expire_at = rng.one_in(4).then(|| LATER + rng.below(1000) as i64);
        keys.insert(draw_string(rng), (expire_at, draw_value(rng, version)));
    }
    keys
}

fn draw_value(rng: &mut Rng, version: Version) -> Value {
    let count = 1 + (1u64 << rng.below(11)) + rng.below(10);
    match rng.below(6) {
        0 => Value::String(draw_string(rng)),
        1 => Value::List((0..count).map(|_| draw_string(rng)).collect()),
        2 => Value::Set(draw_members(rng, count).iter().collect()),
        3 => {
            let mut zset = Zset::default();
            draw_members(rng, count).iter().for_each(|member| zset.push(member, draw_score(rng)));
            Value::Zset(zset)
        }
        4 => {
            let mut hash = Hash::default();
            let expires = version == Version::Valkey9 && rng.one_in(2);
            for field in draw_members(rng, count).iter() {
                let expire_at = (expires && rng.one_in(3)).then(|| LATER + rng.below(1000) as i64);
                hash.push(field, &draw_string(rng), expire_at);
            }
            Value::Hash(hash)
        }
        _ => Value::Stream(draw_stream(rng, count).into()),
    }
}

fn draw_string(rng: &mut Rng) -> Vec<u8> {
    match rng.below(6) {
        0 => rng.below(300).to_string().into_bytes(),
        1 => ((rng.next_u64() >> rng.below(64)) as i64).wrapping_neg().to_string().into_bytes(),
        2 => format!("{:x}", rng.next_u64() >> rng.below(64)).into_bytes(),
        3 => "abcdefg".repeat(rng.below(40) as usize).into_bytes(),
        4 if rng.one_in(50) => vec![rng.below(256) as u8; 1 << (10 + rng.below(8))],
        _ => (0..rng.below(80)).map(|_| rng.below(256) as u8).collect(),
    }
}

/// Distinct strings, at least one.
fn draw_members(rng: &mut Rng, count: u64) -> Strings {
    let are_numbers = rng.one_in(3);
    let members = (0..count).map(|_| {
        if are_numbers { ((rng.next_u64() >> rng.below(60)) as i64).to_string().into_bytes() } else { draw_string(rng) }
    });
    let members: std::collections::BTreeSet<_> = members.collect();
    members.into_iter().collect()
}

fn draw_score(rng: &mut Rng) -> f64 {
    match rng.below(4) {
        0 => rng.below(100) as f64 - 50.0,
        1 => [f64::INFINITY, f64::NEG_INFINITY, 0.5, 1e300, 5e-324][rng.below(5) as usize],
        _ => loop {
            let score = f64::from_bits(rng.next_u64());
            if score.is_finite() {
                return score;
            }
        },
    }
}

fn draw_stream(rng: &mut Rng, count: u64) -> Stream {
    let mut stream = Stream::default();
    let mut id = StreamId { ms: rng.below(1000), seq: 1 };
    for _ in 0..count {
        let names = 1 + rng.below(3);
        let fields = (0..names).flat_map(|name| [vec![b'a' + name as u8; 1 + rng.below(2) as usize], draw_string(rng)]);
        stream.push(id, fields.collect::<Vec<_>>());
        if rng.one_in(2) {
            id = StreamId { ms: id.ms + 1 + rng.below(1 << 40), seq: rng.below(5) };
        } else {
            id.seq += 1 + rng.below(1 << 40);
        }
    }
    stream.entries_added = count + rng.below(3);
    stream.last_id.seq += rng.below(3);
    let ids: Vec<_> = stream.entries().map(|entry| entry.id()).collect();
    for name in 0..rng.below(4) {
        let consumers: Vec<_> = (0..1 + rng.below(3))
            .map(|name| StreamConsumer {
                name: vec![b'A' + name as u8],
                seen_at: LATER - 10,
                active_at: rng.one_in(2).then_some(LATER - 20),
            })
            .collect();
        let pending = ids.iter().filter(|_| rng.one_in(3)).copied().collect::<Vec<_>>();
        let pending = pending.into_iter().map(|id| StreamPending {
            id,
            delivered_at: LATER - 20,
            deliveries: rng.below(1 << 20),
            consumer: rng.below(consumers.len() as u64) as usize,
        });
        let (pending, read) = (pending.collect(), rng.one_in(2).then_some(1));
        let name = vec![b'g', name as u8];
        stream.groups.push(StreamGroup { name, last_id: stream.last_id, entries_read: read, consumers, pending });
    }
    stream
}
