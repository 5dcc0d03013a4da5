//! Both connections, until one is lost, all is copied, or the end is asked for.

use super::place::{Again, Fate, KEY, Part, Place, Seen, again_text, part_field, queue_field};
use super::row::{Command, Entry, LOG, Row, before_queue, expires_at};
use super::target::Receiver;
use super::wire::{Packet, Wire, failed};
use super::{LOOK, Ssdb, SsdbCopied, SsdbCopy, SsdbEvent, SsdbProgress, SsdbRows};
use crate::MigrateError;
use proto::reply::Value;
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The key after all rows that are copied.
pub(super) const ROWS_END: &[u8] = b"t";

/// No limit of a `dump`.
const NO_LIMIT: &[u8] = b"9223372036854775807";

/// Scores up to here are exact.
pub(super) const SCORE_MAX: u64 = 1 << 53;

/// Longest silence of a stream, which SSDB fills every three seconds.
const STREAM_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Time between two questions for the newest entry.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Queues that are read again between two looks at the stream.
const QUEUES_AT_ONCE: usize = 16;

/// How long the end waits for entries that are missing.
const END_WITHIN: Duration = Duration::from_secs(30);

/// A field, or the key of a row, and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// How a session ended.
pub(super) enum Ended {
    Done(SsdbCopied),
    /// The copy begins again from nothing.
    Again,
}

/// The sequence numbers of a queue's first and last item. In an empty queue the last is before the first.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    last: u64,
}

/// Two connections, and how far the copy is.
pub(super) struct Session<'a> {
    copy: &'a SsdbCopy<'a>,
    stop: &'a AtomicBool,
    rows: &'a mut SsdbRows,
    tell: &'a mut dyn FnMut(&SsdbEvent<'_>),
    /// For questions.
    ssdb: Wire,
    target: Receiver,
    place: Place,
    /// Changes of the place that the next transaction has.
    changed: Vec<Pair>,
    removed: Vec<Vec<u8>>,
    /// Queues whose span is known, since they were read again.
    spans: HashMap<Vec<u8>, Span>,
    /// When a queue may be read again.
    rests: HashMap<Vec<u8>, Instant>,
}

impl<'a> Session<'a> {
    pub fn open(
        copy: &'a SsdbCopy<'a>,
        stop: &'a AtomicBool,
        rows: &'a mut SsdbRows,
        tell: &'a mut dyn FnMut(&SsdbEvent<'_>),
    ) -> Result<Self, MigrateError> {
        let ssdb = Wire::open(copy.ssdb)?;
        let mut target = Receiver::open(copy.target, copy.is_separate, copy.tls.clone())?;
        let place = place_of(copy, &mut target)?;
        let mut session = Self {
            copy,
            stop,
            rows,
            tell,
            ssdb,
            target,
            place,
            changed: Vec::new(),
            removed: Vec::new(),
            spans: HashMap::new(),
            rests: HashMap::new(),
        };
        session.newest()?;
        Ok(session)
    }

    /// Copies what is missing, and follows.
    pub fn run(&mut self) -> Result<Ended, MigrateError> {
        if let Some(failure) = self.place.failure.take() {
            if !self.copy.is_partial {
                return Err(self.untaken(failure));
            }
            self.removed.push(b"failure".to_vec());
        }
        if !self.place.is_copied {
            self.copy_rows()?;
        }
        if self.copy.is_followed {
            if self.place.sequence == 0 {
                return self.wait_for_a_change();
            }
            if let Some(ended) = self.follow()? {
                return Ok(ended);
            }
        }
        self.target.ask(&[b"DEL", KEY])?;
        let keys = self.target.ask_each(&[b"DBSIZE"])?;
        let (sequence, left_out) = (self.place.sequence, self.place.left_out);
        Ok(Ended::Done(SsdbCopied { rows: *self.rows, keys, sequence, left_out }))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The newest entry of the binlog; 0 for none.
    fn newest(&mut self) -> Result<u64, MigrateError> {
        let info = self.ssdb.ask(&[b"info"])?;
        let text = info.windows(2).find_map(|pair| match pair {
            [name, text] if name == b"binlogs" => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        });
        let line = text.as_deref().and_then(|text| text.lines().find_map(|line| line.trim().strip_prefix("max_seq")));
        let sequence = line.and_then(|line| line.trim_start_matches([' ', ':']).parse().ok());
        sequence.ok_or_else(|| self.ssdb.odd("the binlog's max_seq in info, as SSDB says it", &info.join(&b" "[..])))
    }

    /// Sends what is collected, with the place.
    fn commit(&mut self) -> Result<(), MigrateError> {
        let mut fields = std::mem::take(&mut self.changed);
        if !self.target.is_empty() || !fields.is_empty() || !self.removed.is_empty() {
            fields.push((b"row".to_vec(), self.place.row.clone()));
            fields.push((b"sequence".to_vec(), self.place.sequence.to_string().into_bytes()));
            fields.push((b"left_out".to_vec(), self.place.left_out.to_string().into_bytes()));
        }
        let removed = std::mem::take(&mut self.removed);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect();
        self.target.commit(&fields, &removed)?;
        self.check()
    }

    /// Waits until everything that was sent is done.
    fn settle(&mut self) -> Result<(), MigrateError> {
        self.commit()?;
        self.target.settle()?;
        self.check()
    }

    /// Looks at what the server has refused.
    fn check(&mut self) -> Result<(), MigrateError> {
        for (request, why) in self.target.take_refused() {
            self.leave_out(&request, &why)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, request: &str, why: &str) -> Result<(), MigrateError> {
        if self.copy.is_partial {
            self.place.left_out += 1;
            (self.tell)(&SsdbEvent::LeftOut { request, why });
            return Ok(());
        }
        let failure = format!("{request}: {why}");
        self.target.settle()?;
        self.target.ask(&[b"HSET", KEY, b"failure", failure.as_bytes()])?;
        Err(self.untaken(failure))
    }

    fn untaken(&self, failure: String) -> MigrateError {
        MigrateError::SsdbUntaken { target: self.copy.target.to_string(), failure }
    }

    /// Reads the rows that are missing, and puts them.
    fn copy_rows(&mut self) -> Result<(), MigrateError> {
        let newest = self.newest()?;
        let (after, queue) = self.place.resumed();
        let is_continued = !self.place.parts.is_empty();
        (self.tell)(&SsdbEvent::Copying { is_continued });
        // The entries from here on come first, and then the rows that have them.
        let begin = if is_continued { after.clone() } else { [&[LOG], &newest.to_be_bytes()[..]].concat() };
        if is_continued {
            self.end_part(newest);
            self.begin_part(after, Seen { all: newest, some: u64::MAX });
            if let Some(queue) = queue {
                self.target.add("LTRIM", &queue, &[b"1", b"0"]);
            }
        }
        let mut seen = newest;
        let mut wire = dump(self.copy.ssdb, &begin, ROWS_END)?;
        while let Some((key, value)) = next_row(&mut wire)? {
            let Some(row) = Row::parse(&key) else { return Err(wire.odd("a row of SSDB", &key)) };
            if let Row::Log(sequence) = row {
                seen = sequence;
                continue;
            }
            if self.place.parts.is_empty() {
                self.begin_copy(seen);
            }
            self.put_row(&row, &value)?;
            self.place.row = key;
            if self.target.is_full() {
                self.commit()?;
                (self.tell)(&SsdbEvent::Read(self.rows));
                if self.is_stopped() {
                    self.settle()?;
                    return Err(self.stopped("before all rows were read"));
                }
            }
        }
        if self.place.parts.is_empty() {
            self.begin_copy(seen);
        }
        if is_continued {
            // An entry may be in a row a moment before `info` counts it.
            let newest = self.newest()?.saturating_add(1);
            self.end_part(newest);
        }
        if self.copy.is_followed && self.rows.all() > 0 && self.place.sequence == 0 {
            return Err(MigrateError::SsdbBinlog { ssdb: self.copy.ssdb.to_string() });
        }
        self.place.is_copied = true;
        self.changed.push((b"copied".to_vec(), b"yes".to_vec()));
        self.settle()?;
        (self.tell)(&SsdbEvent::Read(self.rows));
        Ok(())
    }

    fn stopped(&self, when: &'static str) -> MigrateError {
        MigrateError::SsdbStopped { target: self.copy.target.to_string(), when }
    }

    fn begin_copy(&mut self, sequence: u64) {
        self.place.sequence = sequence;
        self.begin_part(Vec::new(), Seen { all: sequence, some: sequence });
    }

    fn begin_part(&mut self, after: Vec<u8>, seen: Seen) {
        let part = Part { after, seen };
        self.changed.push(part_field(&part));
        self.place.parts.retain(|other| other.after != part.after);
        self.place.parts.push(part);
    }

    /// The last part's rows have no entry after this one.
    fn end_part(&mut self, newest: u64) {
        if let Some(part) = self.place.parts.last_mut().filter(|part| part.seen.some == u64::MAX) {
            part.seen.some = newest;
            self.changed.push(part_field(part));
        }
    }

    fn put_row(&mut self, row: &Row<'_>, value: &[u8]) -> Result<(), MigrateError> {
        let rows = &mut *self.rows;
        let (count, bytes) = match row {
            Row::Key(key) => (&mut rows.keys, key.len()),
            Row::Field { name, field } => (&mut rows.fields, name.len() + field.len()),
            Row::Member { name, member } => (&mut rows.members, name.len() + member.len()),
            Row::Item { name, .. } => (&mut rows.items, name.len()),
            Row::Expiry(_) => (&mut rows.expiring, 0),
            Row::Log(_) | Row::Derived => return Ok(()),
        };
        *count += 1;
        rows.bytes += (bytes + value.len()) as u64;
        match row {
            Row::Item { name, .. } => self.target.join("RPUSH", name, &[value]),
            row => self.store(row, value)?,
        }
        Ok(())
    }

    /// Stores a row that is no item of a queue.
    fn store(&mut self, row: &Row<'_>, value: &[u8]) -> Result<(), MigrateError> {
        match row {
            // `GET` lets the server refuse a key of another type.
            Row::Key(key) => self.target.add("SET", key, &[value, b"KEEPTTL", b"GET"]),
            Row::Field { name, field } => self.target.join("HSET", name, &[field, value]),
            Row::Member { name, member } => match score(value) {
                Some(score) if score.unsigned_abs() <= SCORE_MAX => self.target.join("ZADD", name, &[value, member]),
                _ => {
                    let [name, member, score] = [*name, *member, value].map(inspect::text::escape);
                    let why = format!("score {score} of \"{member}\" is not exact: Onggi has them up to 2^53");
                    self.leave_out(&format!("ZADD \"{name}\""), &why)?;
                }
            },
            Row::Expiry(key) => match score(value) {
                Some(time) => self.target.add("GETEX", key, &[b"PXAT", expires_at(time).max(1).to_string().as_bytes()]),
                None => return Err(self.ssdb.odd("the time of a key that expires", value)),
            },
            Row::Item { .. } | Row::Log(_) | Row::Derived => {}
        }
        Ok(())
    }

    /// SSDB has no binlog yet, so there is no place to follow from: its first change begins the copy again.
    fn wait_for_a_change(&mut self) -> Result<Ended, MigrateError> {
        (self.tell)(&SsdbEvent::Said("SSDB is empty; waiting for its first change"));
        loop {
            if self.is_stopped() {
                return Err(self.stopped("before SSDB had any data"));
            }
            if self.newest()? > 0 {
                return self.begin_again();
            }
            thread::sleep(LOOK * 4);
        }
    }

    fn begin_again(&mut self) -> Result<Ended, MigrateError> {
        self.target.settle()?;
        self.target.ask_each(&[b"FLUSHDB"])?;
        *self.rows = SsdbRows::default();
        Ok(Ended::Again)
    }

    /// Applies entries until the end is asked for.
    fn follow(&mut self) -> Result<Option<Ended>, MigrateError> {
        let mut wire = Wire::open(self.copy.ssdb)?;
        let sequence = self.place.sequence;
        wire.send(&[b"sync140", sequence.to_string().as_bytes(), b"", b"sync"])?;
        (self.tell)(&SsdbEvent::Following(sequence));
        let (mut heard, mut asked) = (Instant::now(), None::<Instant>);
        let mut newest = sequence;
        let mut end: Option<(u64, Instant)> = None;
        loop {
            let packet = match wire.take()? {
                Some(packet) => Some(packet),
                None => {
                    self.commit()?;
                    self.read_queues_again()?;
                    if self.place.sequence >= newest {
                        self.settle()?;
                    }
                    wire.poll()?
                }
            };
            if let Some(packet) = packet {
                heard = Instant::now();
                if !self.apply(&wire, &packet)? {
                    let text = "SSDB no longer has the entries that follow (replication.binlog.capacity): a new copy";
                    (self.tell)(&SsdbEvent::Said(text));
                    return self.begin_again().map(Some);
                }
            } else if heard.elapsed() > STREAM_SILENCE_MAX {
                let silent = io::Error::new(ErrorKind::TimedOut, "no entry and no sign of life for 30 seconds");
                return Err(failed(&self.copy.ssdb.to_string(), silent));
            }
            if self.target.is_full() {
                self.commit()?;
            }
            let is_due = asked.is_none_or(|at| at.elapsed() > ASK_EVERY);
            if is_due || (self.is_stopped() && end.is_none()) {
                newest = self.newest()?;
                asked = Some(Instant::now());
                self.read_queues_again()?;
                self.forget_queues();
                let progress = self.progress(newest);
                (self.tell)(&SsdbEvent::Applied(progress));
            }
            if self.is_stopped() {
                let (last, since) = *end.get_or_insert((newest, Instant::now()));
                let progress = self.progress(last);
                if progress.behind == 0 && progress.queues == 0 {
                    self.settle()?;
                    return Ok(None);
                }
                if since.elapsed() > END_WITHIN {
                    self.settle()?;
                    return Err(self.stopped("before all changes were applied"));
                }
            }
        }
    }

    fn progress(&self, newest: u64) -> SsdbProgress {
        let queues = self.place.queues.values().filter(|again| **again == Again::ToRead).count() as u64;
        let sequence = self.place.sequence;
        SsdbProgress { sequence, behind: newest.saturating_sub(sequence), queues }
    }

    /// Applies an entry. `false` if SSDB has none that follow.
    fn apply(&mut self, wire: &Wire, packet: &Packet) -> Result<bool, MigrateError> {
        let (head, value) = match packet.as_slice() {
            [head] => (head, None),
            [head, value, ..] => (head, Some(value.as_slice())),
            [] => return Ok(true),
        };
        let Some(entry) = Entry::parse(head) else {
            return Err(match head.as_slice() {
                b"noauth" | b"error" | b"client_error" | b"fail" => wire.refused(&[b"sync140"], packet),
                _ => wire.odd("an entry of the binlog", head),
            });
        };
        let Entry { sequence, command, key } = entry;
        let odd = || wire.odd("an entry of the binlog", head);
        match command {
            Command::OutOfSync | Command::CopyBegins => return Ok(false),
            Command::Nothing | Command::CopyEnds => {}
            Command::Set => {
                let row = Row::parse(key).ok_or_else(odd)?;
                self.store(&row, value.ok_or_else(odd)?)?;
            }
            Command::Delete => match Row::parse(key).ok_or_else(odd)? {
                // GETDEL and GETEX refuse a key of another type.
                Row::Key(key) => self.target.add("GETDEL", key, &[]),
                Row::Field { name, field } => self.target.join("HDEL", name, &[field]),
                Row::Member { name, member } => self.target.join("ZREM", name, &[member]),
                Row::Expiry(key) => self.target.add("GETEX", key, &[b"PERSIST"]),
                Row::Item { .. } | Row::Log(_) | Row::Derived => return Err(odd()),
            },
            Command::PopBack | Command::PopFront => self.change_queue(sequence, command, key, 0, b""),
            Command::PushBack | Command::PushFront | Command::SetItem => match Row::parse(key) {
                Some(Row::Item { name, sequence: item }) => {
                    self.change_queue(sequence, command, name, item, value.ok_or_else(odd)?);
                }
                // SSDB's own replicas pass by what is no item.
                Some(Row::Derived) => {}
                _ => return Err(odd()),
            },
        }
        self.place.sequence = self.place.sequence.max(sequence);
        Ok(true)
    }

    fn change_queue(&mut self, sequence: u64, command: Command, name: &[u8], item: u64, value: &[u8]) {
        match self.place.fate(name, sequence) {
            Fate::Had => return,
            Fate::Unknown => return self.read_later(name),
            Fate::New => {}
        }
        let span = self.spans.get(name).copied();
        let is_empty = span.is_some_and(|span| span.last < span.first);
        let changed = match command {
            Command::SetItem => match span {
                Some(span) if (span.first..=span.last).contains(&item) => {
                    let index = item.saturating_sub(span.first).to_string();
                    return self.target.add("LSET", name, &[index.as_bytes(), value]);
                }
                _ => return self.read_later(name),
            },
            Command::PushBack => {
                self.target.join("RPUSH", name, &[value]);
                span.map(|span| Span { first: if is_empty { item } else { span.first }, last: item })
            }
            Command::PushFront => {
                self.target.join("LPUSH", name, &[value]);
                span.map(|span| Span { first: item, last: if is_empty { item } else { span.last } })
            }
            Command::PopFront => {
                self.target.add("LPOP", name, &[]);
                span.map(|span| Span { first: span.first.saturating_add(1), ..span })
            }
            _ => {
                self.target.add("RPOP", name, &[]);
                span.map(|span| Span { last: span.last.saturating_sub(1), ..span })
            }
        };
        if let Some(span) = changed {
            self.spans.insert(name.to_vec(), span);
        }
    }

    /// Lets a queue be read again. Its entries do not count until then.
    fn read_later(&mut self, name: &[u8]) {
        if self.place.queues.get(name) != Some(&Again::ToRead) {
            self.place.queues.insert(name.to_vec(), Again::ToRead);
            self.changed.push((queue_field(name), again_text(Again::ToRead)));
        }
    }

    fn read_queues_again(&mut self) -> Result<(), MigrateError> {
        let now = Instant::now();
        let is_due = |name: &Vec<u8>, again: &Again| {
            *again == Again::ToRead && self.rests.get(name).is_none_or(|until| *until <= now)
        };
        let due = self.place.queues.iter().filter(|(name, again)| is_due(name, again));
        let due: Vec<_> = due.map(|(name, _)| name.clone()).take(QUEUES_AT_ONCE).collect();
        due.iter().try_for_each(|name| self.read_again(name))
    }

    /// Replaces a queue by what SSDB has.
    fn read_again(&mut self, name: &[u8]) -> Result<(), MigrateError> {
        let since = Instant::now();
        let all = self.newest()?;
        let after = before_queue(name);
        let to = [after.as_slice(), &u64::MAX.to_be_bytes()].concat();
        let mut wire = dump(self.copy.ssdb, &after, &to)?;
        self.target.add("LTRIM", name, &[b"1", b"0"]);
        let mut span: Option<Span> = None;
        while let Some((key, value)) = next_row(&mut wire)? {
            if let Some(Row::Item { sequence, .. }) = Row::parse(&key) {
                span = Some(Span { first: span.map_or(sequence, |span| span.first), last: sequence });
                self.target.join("RPUSH", name, &[&value]);
                if self.target.is_full() {
                    self.commit()?;
                }
            }
        }
        match span {
            Some(span) => self.spans.insert(name.to_vec(), span),
            None => self.spans.insert(name.to_vec(), Span { first: 1, last: 0 }),
        };
        let again = Again::Read(Seen { all, some: self.newest()?.saturating_add(1) });
        self.place.queues.insert(name.to_vec(), again);
        self.changed.push((queue_field(name), again_text(again)));
        // One that changes all the time is not read all the time.
        self.rests.insert(name.to_vec(), Instant::now() + since.elapsed() * 4);
        self.commit()
    }

    /// Forgets queues that were read again, once no entry is unsure any more.
    fn forget_queues(&mut self) {
        let unsure = self.place.parts.iter().map(|part| part.seen.some).max().unwrap_or_default();
        let (sequence, removed) = (self.place.sequence, &mut self.removed);
        self.place.queues.retain(|name, again| match again {
            Again::Read(seen) if sequence >= seen.some && sequence >= unsure => {
                removed.push(queue_field(name));
                false
            }
            _ => true,
        });
        let now = Instant::now();
        self.rests.retain(|_, until| *until > now);
    }
}

/// Where the database is. One that holds other data is refused.
fn place_of(copy: &SsdbCopy<'_>, target: &mut Receiver) -> Result<Place, MigrateError> {
    let fields = match target.ask(&[b"HGETALL", KEY])? {
        Value::Array(fields) => fields,
        _ => Vec::new(),
    };
    let foreign = |found: String| MigrateError::TargetHasData { target: copy.target.to_string(), found };
    let source = copy.ssdb.to_string();
    if fields.is_empty() {
        let keys = target.ask_each(&[b"DBSIZE"])?;
        if keys > 0 {
            return Err(foreign(inspect::text::count(keys, "key", "keys")));
        }
        let databases: &[u8] = if copy.is_separate { b"4" } else { b"1" };
        target.ask(&[b"HSET", KEY, b"source", source.as_bytes(), b"databases", databases])?;
        return Ok(Place { is_separate: copy.is_separate, ..Place::new(source) });
    }
    match Place::load(&fields) {
        Some(place) if place.source == source && place.is_separate == copy.is_separate => Ok(place),
        Some(place) if place.source == source => {
            let databases = if place.is_separate { "with" } else { "without" };
            Err(foreign(format!("an unfinished copy {databases} --ssdb-namespaces separate")))
        }
        Some(place) => Err(foreign(format!("an unfinished copy of {}", place.source))),
        None => Err(foreign(format!("a key {} of another program", inspect::text::escape(KEY)))),
    }
}

/// A connection that receives the rows after a key, up to another.
pub(super) fn dump(ssdb: &Ssdb, after: &[u8], to: &[u8]) -> Result<Wire, MigrateError> {
    let mut wire = Wire::open(ssdb)?;
    let request: [&[u8]; 4] = [b"dump", after, to, NO_LIMIT];
    wire.send(&request)?;
    let begun = wire.expect()?;
    match begun.first().map(Vec::as_slice) {
        Some(b"begin") => Ok(wire),
        _ => Err(wire.refused(&request, &begun)),
    }
}

/// The next row of a `dump`; `None` after the last one.
pub(super) fn next_row(wire: &mut Wire) -> Result<Option<Pair>, MigrateError> {
    let packet = wire.expect()?;
    match <[Vec<u8>; 3]>::try_from(packet) {
        Ok([word, key, value]) if word == b"set" => Ok(Some((key, value))),
        Ok([word, ..]) => Err(wire.odd("a row of a dump", &word)),
        Err(packet) => match packet.first().map(Vec::as_slice) {
            Some(b"end") => Ok(None),
            word => Err(wire.odd("a row of a dump, or its end", word.unwrap_or_default())),
        },
    }
}

pub(super) fn score(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
