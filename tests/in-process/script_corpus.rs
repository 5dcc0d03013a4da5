//! Scripts and functions over engines that fetch rows, over databases whose rows leave memory before every request, and
//! with values on a tier: the transcripts of the differential test, and random ones of its grammar, answer as over the
//! engine in memory, and the replayed records give the same store.

use crate::harness::{BackedRows, SHARDS, TestServer, fetching, memory, ticketed};
use crate::tiered::{attach, demote_all};
use differential::grammar;
use differential::judge::Judge;
use differential::random::{Rounds, SETTINGS};
use differential::request;
use differential::resp::{self, Value};
use differential::script::{self, Protocol, Section};
use differential::session::{Mode, Session};
use differential::step::{Action, Step};
use differential::target::{Identity, Kind, Outcome, Target};
use engine_mem::MemEngine;
use server::executor::Flow;
use std::io;
use std::sync::Arc;
use store::shard::ShardEngine;
use tier::{Medium, Tier};

/// Rounds of a thousand random requests.
const ROUNDS: u64 = 12;

/// At least this number of their requests run scripts or functions.
const SCRIPTS_MIN: u64 = 600;

/// Longer than random commands wait for an element.
const WAIT_MS: u64 = 10;

type Engine = fn(MemEngine) -> ShardEngine;

/// What a server has below its engine.
enum Below {
    Nothing,
    /// Rows, which all entries leave memory for before every request.
    Rows(BackedRows),
    /// A tier, which all values go to before every request.
    Tier(Arc<Tier>),
}

/// A server in this process, as one of the servers to compare.
struct Local {
    name: &'static str,
    engine: Engine,
    below: fn(&TestServer) -> Below,
    is_below: Below,
    server: TestServer,
    connections: Vec<Option<Connection>>,
}

struct Connection {
    client: usize,
    identity: Identity,
    received: Vec<u8>,
}

impl Local {
    fn new(name: &'static str, engine: Engine, below: fn(&TestServer) -> Below) -> Self {
        let server = TestServer::with_shards(engine, SHARDS);
        Self { name, engine, below, is_below: below(&server), server, connections: Vec::new() }
    }

    /// Has everything leave memory that may.
    fn disturb(&mut self) {
        match &mut self.is_below {
            Below::Nothing => {}
            Below::Rows(rows) => rows.flush_and_drop(),
            Below::Tier(tier) => demote_all(&self.server, tier),
        }
    }

    fn is_closing(&self, client: usize) -> bool {
        self.server.executor.flow(client) == Flow::Closing
    }

    /// What the next reply is, with the messages before it. If there is none, time passes: it may be that of a command
    /// that waits.
    fn next(&mut self, connection: usize) -> Outcome {
        match self.taken(connection) {
            Outcome::Silence(_) => {
                self.server.pass_ms(WAIT_MS);
                self.server.executor.end_blocks();
                self.taken(connection)
            }
            outcome => outcome,
        }
    }

    fn taken(&mut self, connection: usize) -> Outcome {
        let Some(open) = self.connections.get_mut(connection).and_then(Option::as_mut) else { return Outcome::Closed };
        // What waits for rows may run now.
        open.received.extend(self.server.send(open.client, b""));
        let mut start = 0;
        loop {
            match resp::parse(&open.received[start..]) {
                Ok((Value::Push(_), length)) => start += length,
                Ok((_, length)) => {
                    let rest = open.received.split_off(start + length);
                    return Outcome::Reply(std::mem::replace(&mut open.received, rest));
                }
                Err(resp::FrameError::Malformed(_)) => return Outcome::Malformed(open.received.clone()),
                Err(resp::FrameError::Partial) => return Outcome::Silence(open.received.clone()),
            }
        }
    }
}

impl Target for Local {
    /// All are held against one of them, with no difference accepted.
    fn kind(&self) -> Kind {
        Kind::Valkey
    }

    fn name(&self) -> &str {
        self.name
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        if self.connections.len() <= connection {
            self.connections.resize_with(connection + 1, || None);
        }
        if let Some(old) = self.connections[connection].take() {
            self.server.executor.close(old.client);
        }
        let client = self.server.connect_listed();
        let reply = self.server.send(client, &request::encode(&["CLIENT", "INFO"]));
        let identity = match resp::parse(&reply) {
            Ok((Value::Bulk(line), _)) => Identity::from_client_info(&line),
            _ => Identity::default(),
        };
        self.connections[connection] = Some(Connection { client, identity, received: Vec::new() });
        Ok(())
    }

    fn identity(&self, connection: usize) -> &Identity {
        static UNKNOWN: Identity = Identity { id: Vec::new(), address: Vec::new(), local_address: Vec::new() };
        self.connections.get(connection).and_then(Option::as_ref).map_or(&UNKNOWN, |open| &open.identity)
    }

    fn send(&mut self, connection: usize, bytes: &[u8]) {
        self.disturb();
        if let Some(open) = self.connections.get_mut(connection).and_then(Option::as_mut) {
            open.received.extend(self.server.send(open.client, bytes));
        }
    }

    fn receive(&mut self, connection: usize, replies: usize) -> Vec<Outcome> {
        (0..replies).map(|_| self.next(connection)).collect()
    }

    fn await_close(&mut self, connection: usize) -> Outcome {
        let open = self.connections.get(connection).and_then(Option::as_ref);
        match open {
            Some(open) if !self.is_closing(open.client) => Outcome::Silence(open.received.clone()),
            Some(open) if !open.received.is_empty() => Outcome::Malformed(open.received.clone()),
            _ => Outcome::Closed,
        }
    }

    fn restart(&mut self) -> io::Result<()> {
        *self = Self::new(self.name, self.engine, self.below);
        Ok(())
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.server.assert_replica_agrees();
        match &self.is_below {
            Below::Nothing => {}
            Below::Rows(_) => assert!(self.server.rounds > 0, "rows were in memory"),
            Below::Tier(tier) => assert!(tier.figures().read_values > 0, "values were in memory"),
        }
    }
}

fn session() -> Session {
    let rows = |server: &TestServer| {
        let rows = server.back();
        rows.set_cold(true);
        Below::Rows(rows)
    };
    let targets = [
        Local::new("memory", memory, |_| Below::Nothing),
        Local::new("fetching", fetching, |_| Below::Nothing),
        Local::new("ticketed", ticketed, |_| Below::Nothing),
        Local::new("rows", memory, rows),
        Local::new("tier", memory, |server| Below::Tier(attach(server, Medium::File))),
    ];
    let targets = targets.into_iter().map(|target| Box::new(target) as Box<dyn Target>);
    Session::new(targets.collect(), Judge::load().expect("the tables load"))
}

/// Runs a section in one protocol.
fn run(session: &mut Session, section: &Section, protocol: Protocol) {
    let connections = section.connections();
    session.reset(&SETTINGS, connections).expect("they answer");
    let hello = |connection| Step::words(connection, &["HELLO", "3"]);
    let mut steps = Vec::new();
    if protocol == Protocol::Resp3 {
        steps.extend((1..=connections).map(hello));
    }
    for step in &section.steps {
        steps.push(Step { without: Vec::new(), ..step.clone() });
        if protocol == Protocol::Resp3 && matches!(step.action, Action::Closed | Action::Reopen) {
            steps.push(hello(step.connection));
        }
    }
    let mismatch = session.run(&steps, Mode::FirstMismatch).pop();
    if let Some(mismatch) = mismatch {
        panic!(
            "{} ({protocol:?}): {}\n{:?}",
            section.title,
            steps[mismatch.step],
            (mismatch.reference, mismatch.other)
        );
    }
}

#[test]
fn transcripts_answer_alike_over_every_engine() {
    let mut session = session();
    let mut judged = 0;
    for (name, text) in script::all().expect("the transcripts are there") {
        if !["scripting", "functions"].contains(&&*name) {
            continue;
        }
        for section in script::parse(&text).expect("transcripts parse") {
            section.protocols.iter().for_each(|protocol| run(&mut session, &section, *protocol));
        }
        assert!(session.judged() > judged, "{name} has requests");
        judged = session.judged();
    }
}

#[test]
fn random_scripts_answer_alike_over_every_engine() {
    let families = ["scripting", "functions", "string", "zset", "transactions"];
    let rules = grammar::load(&families.map(str::to_owned)).expect("the grammar parses");
    let rounds = Rounds::new(1, &rules);
    let mut session = session();
    for round in 0..ROUNDS {
        if let Some(failure) = rounds.run(&mut session, round).expect("they answer") {
            panic!("{}", failure.report);
        }
    }
    assert!(session.scripts() > SCRIPTS_MIN, "only {} scripts", session.scripts());
}
