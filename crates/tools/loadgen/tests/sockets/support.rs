//! A tiny server for tests: a map under a lock, a thread per connection, and faults on request.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the server does besides its commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behaviour {
    /// From this long after the start, answer nothing for this long.
    pub stall: Option<(Duration, Duration)>,
    /// Answer every command with this error.
    pub error: Option<&'static str>,
    /// Close each connection after this many commands.
    pub close_after: Option<usize>,
    /// Answer with these bytes instead of RESP.
    pub foreign: Option<&'static str>,
}

/// Keys and values, and every command in the order of arrival, by connection.
#[derive(Default)]
pub struct State {
    pub map: HashMap<Vec<u8>, Vec<u8>>,
    /// The only sorted set: scores and members.
    pub index: BTreeSet<(i64, Vec<u8>)>,
    pub commands: Vec<Vec<Vec<Vec<u8>>>>,
}

pub struct FakeServer {
    pub address: String,
    pub state: Arc<Mutex<State>>,
}

impl FakeServer {
    pub fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (state, started) = (Arc::new(Mutex::new(State::default())), Instant::now());
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    let reader: TcpStream = stream.try_clone().unwrap();
                    serve(reader, stream, &shared, behaviour, started)
                });
            }
        });
        Self { address, state }
    }

    pub fn start_unix(path: &Path) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let (state, started) = (Arc::new(Mutex::new(State::default())), Instant::now());
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    serve(stream.try_clone().unwrap(), stream, &shared, Behaviour::default(), started)
                });
            }
        });
        Self { address: path.to_str().unwrap().to_owned(), state }
    }
}

fn serve(
    reader: impl Read,
    writer: impl Write,
    state: &Mutex<State>,
    behaviour: Behaviour,
    started: Instant,
) -> io::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(reader), BufWriter::new(writer));
    let id = {
        let mut state = state.lock().unwrap();
        state.commands.push(Vec::new());
        state.commands.len() - 1
    };
    for count in 1.. {
        let command = read_command(&mut reader)?;
        if let Some((after, length)) = behaviour.stall {
            let now = started.elapsed();
            if now >= after && now < after + length {
                std::thread::sleep(after + length - now);
            }
        }
        let reply = match (behaviour.foreign, behaviour.error) {
            (Some(foreign), _) => foreign.as_bytes().to_vec(),
            (_, Some(error)) => format!("-{error}\r\n").into_bytes(),
            _ => answer(&command, &mut state.lock().unwrap()),
        };
        state.lock().unwrap().commands[id].push(command);
        writer.write_all(&reply)?;
        if behaviour.close_after.is_some_and(|after| count >= after) {
            return writer.flush();
        }
        if reader.buffer().is_empty() {
            writer.flush()?;
        }
    }
    Ok(())
}

fn read_command(reader: &mut impl BufRead) -> io::Result<Vec<Vec<u8>>> {
    let header = |reader: &mut dyn BufRead| -> io::Result<usize> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        line.trim_end().get(1..).and_then(|n| n.parse().ok()).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    };
    let words = header(reader)?;
    (0..words)
        .map(|_| {
            let mut word = vec![0; header(reader)? + 2];
            reader.read_exact(&mut word)?;
            word.truncate(word.len() - 2);
            Ok(word)
        })
        .collect()
}

fn answer(command: &[Vec<u8>], state: &mut State) -> Vec<u8> {
    let bulk = |bytes: &[u8]| [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    match (command[0].to_ascii_uppercase().as_slice(), &command[1..]) {
        (b"SET", [key, value, ..]) => {
            state.map.insert(key.clone(), value.clone());
            b"+OK\r\n".to_vec()
        }
        (b"GET", [key]) => state.map.get(key).map_or_else(|| b"$-1\r\n".to_vec(), |value| bulk(value)),
        (b"HMSET", [key, fields @ ..]) => {
            state.map.insert(key.clone(), fields.concat());
            b"+OK\r\n".to_vec()
        }
        (b"HGETALL", [key]) => match state.map.get(key) {
            Some(fields) => [&b"*2\r\n$3\r\nall\r\n"[..], &bulk(fields)].concat(),
            None => b"*0\r\n".to_vec(),
        },
        (b"ZADD", [key, score, member]) => {
            state.map.insert(key.clone(), Vec::new());
            let score = String::from_utf8_lossy(score).parse().unwrap();
            format!(":{}\r\n", u8::from(state.index.insert((score, member.clone())))).into_bytes()
        }
        (b"ZRANGEBYSCORE", [_, from, _, _, _, limit]) => {
            let number = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse::<i64>().unwrap();
            let found = state.index.range((number(from), Vec::new())..).take(number(limit) as usize);
            let found: Vec<_> = found.map(|(_, member)| bulk(member)).collect();
            [format!("*{}\r\n", found.len()).into_bytes(), found.concat()].concat()
        }
        (b"DBSIZE", _) => format!(":{}\r\n", state.map.len()).into_bytes(),
        (b"FLUSHALL", _) => {
            state.map.clear();
            b"+OK\r\n".to_vec()
        }
        (b"SCAN", [_, _, pattern, ..]) => {
            let prefix = pattern.strip_suffix(b"*").unwrap_or(pattern);
            let keys: Vec<_> = state.map.keys().filter(|key| key.starts_with(prefix)).collect();
            let mut reply = format!("*2\r\n$1\r\n0\r\n*{}\r\n", keys.len()).into_bytes();
            keys.into_iter().for_each(|key| reply.extend(bulk(key)));
            reply
        }
        (b"UNLINK", keys) => {
            let before = state.map.len();
            keys.iter().for_each(|key| drop(state.map.remove(key)));
            format!(":{}\r\n", before - state.map.len()).into_bytes()
        }
        (b"INFO", _) => bulk(format!("process_id:{}\r\nredis_version:0.0.1\r\n", std::process::id()).as_bytes()),
        (b"PING", _) => b"+PONG\r\n".to_vec(),
        _ => b"-ERR unknown command\r\n".to_vec(),
    }
}

/// A map with memcached's `set` and `get`; returns its address.
pub fn start_memcached() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let map: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let map = map.clone();
            std::thread::spawn(move || serve_memcached(stream, &map));
        }
    });
    address
}

fn serve_memcached(mut stream: TcpStream, map: &Mutex<HashMap<String, Vec<u8>>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let reply = match words[..] {
            ["set", key, "0", "0", bytes] => {
                let mut block = vec![0; bytes.parse::<usize>().map_err(io::Error::other)? + 2];
                reader.read_exact(&mut block)?;
                map.lock().unwrap().insert(key.to_owned(), block);
                b"STORED\r\n".to_vec()
            }
            ["get", key] => map.lock().unwrap().get(key).map_or_else(
                || b"END\r\n".to_vec(),
                |block| [format!("VALUE {key} 0 {}\r\n", block.len() - 2).as_bytes(), block, b"END\r\n"].concat(),
            ),
            _ => b"ERROR\r\n".to_vec(),
        };
        stream.write_all(&reply)?;
        line.clear();
    }
    Ok(())
}
