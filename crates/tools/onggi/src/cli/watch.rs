//! Modes that watch a server: `--stat`, `--latency` and `--latency-history`, with the output of redis-cli.

use super::reply::Form;
use super::session::Session;
use super::walk::good;
use proto::reply::Value;
use std::error::Error;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Rows between two heads of `--stat`.
const ROWS: u64 = 20;

/// Time between two PINGs.
pub const PAUSE: Duration = Duration::from_millis(10);

/// Time of a row of `--latency-history`, unless `-i` says otherwise.
const HISTORY: Duration = Duration::from_secs(15);

/// `--stat`: a row of figures of INFO, every interval, until interrupted.
pub fn stat(session: &mut Session, interval: Duration, repeats: i64) -> Result<(), Box<dyn Error>> {
    let interval = if interval.is_zero() { Duration::from_secs(1) } else { interval };
    let mut out = io::stdout().lock();
    let (mut row, mut requests_before, mut left) = (0, None, repeats);
    while left != 0 {
        let reply = good(session.ask(&[b"INFO".to_vec()])?)?;
        let text = String::from_utf8_lossy(reply.as_bytes().unwrap_or_default()).into_owned();
        let fields = || text.lines().filter_map(|line| line.split_once(':'));
        let number = |wanted: &str| -> u64 {
            fields().find(|(name, _)| *name == wanted).and_then(|(_, value)| value.parse().ok()).unwrap_or_default()
        };
        let of_database = |(name, value): (&str, &str)| -> Option<u64> {
            name.strip_prefix("db")?.parse::<u32>().ok()?;
            value.strip_prefix("keys=")?.split(',').next()?.parse().ok()
        };
        let keys: u64 = fields().filter_map(of_database).sum();
        if row % ROWS == 0 {
            writeln!(out, "------- data ------ --------------------- load -------------------- - child -")?;
            let [keys, memory, requests, connections] = ["keys", "mem", "requests", "connections"];
            writeln!(out, "{keys:<11}{memory:<9}clients blocked {requests:<20}{connections:<21}")?;
        }
        let requests = number("total_commands_processed");
        // After CONFIG RESETSTAT there are fewer.
        let more = requests_before.map_or(0, |before| requests.saturating_sub(before));
        let child = match (number("rdb_bgsave_in_progress") != 0, number("aof_rewrite_in_progress") != 0) {
            (true, true) => "SAVE+AOF",
            (true, false) => "SAVE",
            (false, true) => "AOF",
            (false, false) => "",
        };
        writeln!(
            out,
            "{keys:<11}{:<8} {:<8}{:<8}{:<19} {:<12}{child}",
            human(number("used_memory")),
            number("connected_clients"),
            number("blocked_clients"),
            format!("{requests} (+{more})"),
            number("total_connections_received"),
        )?;
        out.flush()?;
        (row, requests_before) = (row + 1, Some(requests));
        left -= 1;
        if left != 0 {
            std::thread::sleep(interval);
        }
    }
    Ok(())
}

/// A size as redis-cli writes it.
fn human(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..0x10_0000 => format!("{:.2}K", value / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.2}M", value / 1_048_576.0),
        _ => format!("{:.2}G", value / 1_073_741_824.0),
    }
}

/// Whether it is the reply of PING.
pub fn is_pong(reply: &Value) -> bool {
    matches!(reply, Value::Simple(_) | Value::Bulk(_))
}

/// Round trips of PING, in milliseconds.
#[derive(Default)]
struct Trips {
    least: u128,
    most: u128,
    total: u128,
    count: u64,
}

impl Trips {
    fn take(&mut self, micros: u128) {
        let millis = micros / 1000;
        self.least = if self.count == 0 { millis } else { self.least.min(millis) };
        self.most = self.most.max(millis);
        self.total += millis;
        self.count += 1;
    }

    fn mean(&self) -> f64 {
        self.total as f64 / self.count.max(1) as f64
    }

    fn line(&self, form: Form) -> String {
        let Self { least, most, count, .. } = self;
        let mean = self.mean();
        match form {
            Form::Csv => format!("{least},{most},{mean:.2},{count}"),
            Form::Json => format!("{{\"min\": {least}, \"max\": {most}, \"avg\": {mean:.2}, \"count\": {count}}}"),
            Form::People => format!("min: {least}, max: {most}, avg: {mean:.2} ({count} samples)"),
            Form::Plain | Form::Text => format!("{least} {most} {mean:.2} {count}"),
        }
    }
}

/// `--latency` and `--latency-history`. In a pipe, `--latency` prints the round trips of one interval, which is a
/// second; on a terminal, it counts until interrupted.
pub fn latency(session: &mut Session, interval: Duration, form: Form, is_history: bool) -> Result<(), Box<dyn Error>> {
    let default = if is_history { HISTORY } else { Duration::from_secs(1) };
    let interval = if interval.is_zero() { default } else { interval };
    let is_live = form == Form::People && io::stdout().is_terminal();
    let mut out = io::stdout().lock();
    let (mut trips, mut began) = (Trips::default(), Instant::now());
    loop {
        let sent = Instant::now();
        let reply = session.ask(&[b"PING".to_vec()])?;
        if !is_pong(&reply) {
            good(reply)?;
        }
        trips.take(sent.elapsed().as_micros());
        if is_live {
            write!(out, "\x1b[0G\x1b[2K{}", trips.line(form))?;
            out.flush()?;
        }
        if began.elapsed() >= interval && (is_history || !is_live) {
            let range = format!(" -- {:.2} seconds range", began.elapsed().as_secs_f64());
            let range = if is_history && matches!(form, Form::People | Form::Plain) { range } else { String::new() };
            let line = if is_live { String::new() } else { trips.line(form) };
            writeln!(out, "{line}{range}")?;
            out.flush()?;
            if !is_history {
                return Ok(());
            }
            (trips, began) = (Trips::default(), Instant::now());
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_redis_cli() {
        assert_eq!([512, 1536, 3 << 20, 5 << 30].map(human), ["512B", "1.50K", "3.00M", "5.00G"]);
    }

    #[test]
    fn round_trips_are_counted_in_milliseconds() {
        let mut trips = Trips::default();
        [1_900, 3_000, 500].into_iter().for_each(|micros| trips.take(micros));
        assert_eq!(trips.line(Form::Plain), "0 3 1.33 3");
        assert_eq!(trips.line(Form::Csv), "0,3,1.33,3");
        assert_eq!(trips.line(Form::People), "min: 0, max: 3, avg: 1.33 (3 samples)");
    }
}
