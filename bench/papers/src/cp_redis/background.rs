//! A server's background work: waits for its end and counts it.

use loadgen::client::Client;
use loadgen::compare::Harness;
use loadgen::error::Result;
use loadgen::server::Server;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// No change for this long: values have become cold meanwhile.
const QUIET: Duration = Duration::from_secs(6);
/// Passes that have ended meanwhile: the last one that changed something, and one that found nothing. Passes over
/// millions of values are many seconds apart.
const PASSES: u64 = 2;
/// Longer than any pass over what fits into memory.
const PATIENCE: Duration = Duration::from_secs(3600);
const POLL: Duration = Duration::from_millis(200);

/// Fields of `INFO compression` that change while values do, or while the server is still deciding about them.
const MOVING: [&str; 6] = [
    "compression_values",
    "compression_stored_bytes",
    "compression_in_vain",
    "compression_skipped",
    "compression_dictionaries",
    "compression_values_with_dictionary",
];

/// Waits until all values have reached their final form. A server without background compression is done at once.
///
/// # Errors
/// When the server cannot be asked.
pub(super) fn finish(harness: &Harness<'_>, server: &Server) -> Result<()> {
    let mut client = Client::connect(&server.target.address, &server.target.login)?;
    let is_idle = client.setting("compression-when")?.is_some_and(|when| when == "idle");
    if !is_idle || client.setting("compression")?.is_none_or(|codec| codec == "off") {
        return Ok(());
    }
    harness.steps.wait(&format!("{}: values are compressed in the background", server.record.name));
    wait_until_quiet(&mut client, QUIET, PASSES)
}

/// Waits until nothing has changed for `quiet` and for `passes` passes.
pub(super) fn wait_until_quiet(client: &mut Client, quiet: Duration, passes: u64) -> Result<()> {
    let begun = Instant::now();
    let (mut since, mut last, mut first_pass, mut pass) = (begun, Vec::new(), None, None);
    let is_too_early =
        |first: Option<u64>, now: Option<u64>| first.zip(now).is_some_and(|(first, now)| now < first + passes);
    while (since.elapsed() < quiet || is_too_early(first_pass, pass)) && begun.elapsed() < PATIENCE {
        loadgen::interrupt::check()?;
        std::thread::sleep(POLL);
        let mut fields = client.info_fields("compression")?;
        let now: Vec<_> = MOVING.iter().map(|name| fields.remove(*name)).collect();
        pass = fields.get("compression_rounds").and_then(|passes| passes.parse().ok());
        if now != last {
            (since, last, first_pass) = (Instant::now(), now, pass);
        }
    }
    Ok(())
}

/// How often a server has compressed and decompressed; `None` if it does not report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coded {
    pub(super) compressed: u64,
    pub(super) decompressed: u64,
}

impl Coded {
    /// # Errors
    /// When the server cannot be asked.
    pub(super) fn read(server: &Server) -> Result<Option<Self>> {
        let mut client = Client::connect(&server.target.address, &server.target.login)?;
        Ok(Self::of(&client.info_fields("compression")?))
    }

    fn of(fields: &HashMap<String, String>) -> Option<Self> {
        let count = |name: &str| fields.get(name)?.parse::<u64>().ok();
        Some(Self {
            compressed: count("compression_compressed_by_writes")? + count("compression_compressed_in_background")?,
            decompressed: count("compression_decompressed_for_commands")?
                + count("compression_decompressed_in_background")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_that_tells_is_counted() {
        let fields = |pairs: &[(&str, &str)]| pairs.iter().map(|&(a, b)| (a.to_owned(), b.to_owned())).collect();
        let own = fields(&[
            ("compression_compressed_by_writes", "3"),
            ("compression_compressed_in_background", "4"),
            ("compression_decompressed_for_commands", "1"),
            ("compression_decompressed_in_background", "1"),
        ]);
        assert_eq!(Coded::of(&own), Some(Coded { compressed: 7, decompressed: 2 }));
        assert_eq!(Coded::of(&fields(&[("used_memory", "3")])), None);
    }
}
