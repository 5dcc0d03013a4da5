//! HyperLogLogs are bytes that either server can load: after every one of many random additions, counts and merges,
//! Valkey and Onggi hold the same string, and each continues with the string of the other. Prints one line, as the
//! other test does.
//!
//! `ONGGI_DIFF_SEED` is the seed, `ONGGI_DIFF_HYPERLOGLOGS` the number of steps (2000 unless set).

use std::env;
use std::process::ExitCode;

use base::random::OsEntropy;
use base::{Entropy, Rng};
use differential::request::encode;
use differential::resp::{self, Value};
use differential::target::process::ProcessTarget;
use differential::target::{Kind, Outcome, Target, peers};

const KEYS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Limits of the sparse form: always dense, small, the default, never dense.
const SPARSE_LIMITS: [&str; 4] = ["0", "300", "3000", "1000000"];

fn main() -> ExitCode {
    let name = "HyperLogLogs have the bytes of Valkey";
    let mut servers = Vec::new();
    for kind in [Kind::Valkey, Kind::Onggi] {
        match peers::find(kind) {
            Ok(program) => match ProcessTarget::start(program, kind.name()) {
                Ok(server) => servers.push(server),
                Err(error) => {
                    println!("not ok - {name}: {error}");
                    return ExitCode::FAILURE;
                }
            },
            Err(reason) => {
                println!("ok - {name} # SKIP {reason}");
                return ExitCode::SUCCESS;
            }
        }
    }
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed =
        number("ONGGI_DIFF_SEED").or_else(|| number("ONGGI_TEST_SEED")).unwrap_or_else(|| OsEntropy.rng().next_u64());
    match compare(&mut servers, seed, number("ONGGI_DIFF_HYPERLOGLOGS").unwrap_or(2000)) {
        Ok(()) => {
            println!("ok - {name}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            println!("not ok - {name}: seed {seed}: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn compare(servers: &mut [ProcessTarget], seed: u64, steps: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    for server in &mut *servers {
        server.open(0).map_err(|error| error.to_string())?;
    }
    for step in 0..steps {
        let request = draw(&mut rng);
        let key = request[1].clone();
        let shown = format!("step {step}: {} with {} arguments", request[..2].join(" "), request.len() - 1);
        let replies = ask(servers, &request)?;
        if replies[0] != replies[1] {
            return Err(format!("{shown}: {:?} and {:?}", replies[0], replies[1]));
        }
        if request[0] == "CONFIG" {
            continue;
        }
        let strings = ask(servers, &["GET".to_owned(), key.clone()])?;
        if strings[0] != strings[1] {
            return Err(format!("{shown}: the strings differ: {:?} and {:?}", strings[0], strings[1]));
        }
        if rng.one_in(20) {
            let Some(loaded) = strings[1].text() else { continue };
            for server in &mut *servers {
                server.send(0, &encode(&[b"SET", key.as_bytes(), loaded]));
                one_reply(server)?;
            }
        }
    }
    Ok(())
}

fn draw(rng: &mut Rng) -> Vec<String> {
    let mut key = || KEYS[rng.below(KEYS.len() as u64) as usize].to_owned();
    let (key, other, third) = (key(), key(), key());
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    match rng.below(20) {
        0..11 => {
            let mut request = words(&["PFADD", &key]);
            let count = 1 << rng.below(10);
            request.extend((0..rng.below(count + 1)).map(|_| format!("{:x}", rng.next_u64() >> rng.below(64))));
            request
        }
        11..14 => words(&["PFCOUNT", &key]),
        14 => words(&["PFCOUNT", &key, &other, &third]),
        15..18 => words(&["PFMERGE", &key, &other, &third]),
        18 => words(&["DEL", &key]),
        _ => words(&["CONFIG", "SET", "hll-sparse-max-bytes", SPARSE_LIMITS[rng.below(4) as usize]]),
    }
}

fn ask(servers: &mut [ProcessTarget], request: &[String]) -> Result<Vec<Value>, String> {
    servers.iter_mut().for_each(|server| server.send(0, &encode(request)));
    servers.iter_mut().map(one_reply).collect()
}

fn one_reply(server: &mut ProcessTarget) -> Result<Value, String> {
    match server.receive(0, 1).pop() {
        Some(Outcome::Reply(bytes)) => {
            resp::parse(&bytes).map(|(value, _)| value).map_err(|error| format!("{error:?}"))
        }
        other => Err(format!("{}: {other:?}", server.name())),
    }
}
