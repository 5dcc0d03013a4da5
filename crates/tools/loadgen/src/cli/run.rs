//! `onggi bench run` and `onggi bench load`: one running server.

use super::load::{LoadArgs, RowArgs, TargetArgs};
use super::{Finished, Outcome};
use crate::error::{BenchError, Result};
use crate::generator::Progress;
use crate::guest::left_behind;
use crate::keys::Distribution;
use crate::measure::{self, Latency, LoadPlan, Measurement};
use crate::payload::Size;
use crate::process;
use crate::progress::Steps;
use clap::Args;
use serde_json::{Value, json};

/// Load one running server and print operations per second, its CPU time per operation, and latencies.
///
/// Writes keys that begin with `bench:` (or --key-prefix), and those of your own --command, and leaves them in the
/// server.
///
/// Example: onggi bench run --addr 127.0.0.1:6379 --test set,get --pipeline 1,16,64 --pin-server 0 --pin-client 1
#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Do not write the keys that a test needs
    #[arg(long)]
    no_load: bool,
    /// Windows per row; the one with the median CPU time is shown
    #[arg(short = 'r', long, default_value_t = 1)]
    rounds: usize,
    #[command(flatten)]
    pub(super) rows: RowArgs,
    #[command(flatten)]
    pub(super) load: LoadArgs,
}

impl RunArgs {
    pub(super) fn run(self, is_json: bool) -> Result<Finished> {
        let (settings, rows) = (self.load.settings()?, self.rows.rows()?);
        let target = self.target.target()?;
        let (mut loaded, mut figures, steps) = (Vec::new(), Vec::new(), steps(is_json));
        if !is_json {
            println!("{}", heading());
        }
        for row in &rows {
            let needed = (row.test.loads.clone(), row.value_size);
            if !self.no_load && !loaded.contains(&needed) {
                let mut watch = |fraction| steps.advance(fraction);
                steps.expect(row.test.loads.len());
                steps.say(&format!("loading for {}", row.title()));
                measure::load_for(&target, &settings, &row.test, row.value_size, &mut watch)?;
                loaded.push(needed);
            }
            steps.expect(self.rounds.max(1));
            let mut windows = Vec::new();
            for _ in 0..self.rounds.max(1) {
                steps.say(&row.title());
                let watch = &mut |progress: Progress| steps.advance(progress.fraction);
                windows.push(measure::measure(&target, &settings, row, watch)?.0);
            }
            windows.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
            let window = &windows[windows.len() / 2];
            match is_json {
                true => figures.push(fields(&row.title(), window)),
                false => steps.print(&line(&row.title(), window)),
            }
        }
        steps.finish();
        let left = left_behind(&target.address, &settings.key_format.prefix);
        if !is_json {
            println!("{left}");
        }
        Ok(Finished { outcome: Outcome::Done, fields: json!({ "rows": figures, "notes": [left] }) })
    }
}

/// Write different keys into a running server and print the memory cost of one.
///
/// The keys begin with `bench:` (or --key-prefix) and stay there. Nothing is removed.
///
/// Example: onggi bench load --addr 6379 --keys 5000000 --value-size 16
#[derive(Args, Debug)]
pub struct FillArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// The command that writes a key
    #[arg(long, default_value = "SET {key} {value}")]
    command: String,
    /// Length of values in bytes, such as 64, 1k or 300-500
    #[arg(long, default_value = "64")]
    value_size: Size,
    /// How often each key is written
    #[arg(short = 'r', long, default_value_t = 1)]
    rounds: u64,
    /// Write the keys in random order instead of ascending
    #[arg(long)]
    shuffled: bool,
    /// Number of the first key
    #[arg(long, default_value_t = 0)]
    first_key: u64,
    /// Requests in flight per connection
    #[arg(short = 'P', long, default_value_t = measure::LOAD_PIPELINE)]
    pipeline: usize,
    #[command(flatten)]
    pub(super) load: LoadArgs,
}

impl FillArgs {
    pub(super) fn run(self, is_json: bool) -> Result<Finished> {
        if self.pipeline == 0 || self.rounds == 0 {
            return Err(BenchError::Usage("--pipeline and --rounds must be at least 1".to_owned()));
        }
        let settings = self.load.settings()?;
        settings.key_format.check(self.first_key + settings.keys)?;
        let target = self.target.target()?;
        let resident = || target.pid.map(process::resident_bytes).transpose();
        let steps = steps(is_json);
        steps.expect(1);
        steps.say(&self.command);
        let before = resident()?;
        let plan = LoadPlan {
            command: &self.command,
            keys: settings.keys,
            rounds: self.rounds,
            value_size: self.value_size,
            distribution: if self.shuffled { Distribution::Shuffled } else { Distribution::Sequential },
            pipeline: self.pipeline,
            first_key: self.first_key,
        };
        let (window, value_bytes) =
            measure::load(&target, &settings, &plan, &mut |progress| steps.advance(progress.fraction))?;
        let after = resident()?;
        steps.finish();
        let left = left_behind(&target.address, &settings.key_format.prefix);
        let mut fields = json!({ "rows": [fields(&self.command, &window)], "notes": [left] });
        let mut lines = vec![heading(), line(&self.command, &window)];
        if let (Some(before), Some(after)) = (before, after) {
            let keys = settings.keys as f64;
            let payload = settings.key_format.size as f64 + value_bytes as f64 / (keys * self.rounds as f64);
            let growth = (after as f64 - before as f64) / keys;
            lines.push(format!(
                "resident {:.1} MiB -> {:.1} MiB: {growth:.2} bytes per key, {:.2} beyond {payload:.2} of key and \
                 value",
                before as f64 / f64::from(1 << 20),
                after as f64 / f64::from(1 << 20),
                growth - payload
            ));
            fields["resident_bytes"] = json!({ "before": before, "after": after });
            fields["bytes_per_key"] = growth.into();
            fields["payload_bytes_per_key"] = payload.into();
        }
        if !is_json {
            lines.iter().for_each(|line| println!("{line}"));
            println!("{left}");
        }
        Ok(Finished { outcome: Outcome::Done, fields })
    }
}

/// A bar, which JSON has not.
fn steps(is_json: bool) -> Steps {
    if is_json { Steps::quiet() } else { Steps::new() }
}

/// The figures of a row.
fn fields(title: &str, window: &Measurement) -> Value {
    let mut fields = serde_json::to_value(window).unwrap_or_default();
    if let Value::Object(fields) = &mut fields {
        fields.insert("title".to_owned(), title.into());
    }
    fields
}

/// The order of windows: by CPU time if it is known, else by time.
fn cost(window: &Measurement) -> f64 {
    window.cpu_per_operation.map_or(1e6 / window.operations_per_second.max(1e-9), |cpu| cpu.total_us)
}

fn heading() -> String {
    format!(
        "{:<34} {:>11} {:>9} {:>7} {:>7} {:>9} {:>9} {:>9} {:>10} {:>8}",
        "test", "ops/s", "cpu us/op", "user", "system", "p50 us", "p99 us", "p99.9 us", "max us", "gen us"
    )
}

fn line(title: &str, window: &Measurement) -> String {
    let cpu = window.cpu_per_operation.map_or_else(
        || format!("{:>9} {:>7} {:>7}", "-", "-", "-"),
        |cpu| format!("{:>9.3} {:>7.3} {:>7.3}", cpu.total_us, cpu.user_us, cpu.system_us),
    );
    let Latency { p50_us, p99_us, p999_us, max_us, .. } = window.latency;
    let mut text = format!(
        "{title:<34} {:>11.0} {cpu} {p50_us:>9.0} {p99_us:>9.0} {p999_us:>9.0} {max_us:>10.0} {:>8.3}",
        window.operations_per_second, window.generator_us_per_operation
    );
    if window.misses > 0 {
        text.push_str(&format!("  misses {:.1} %", 100.0 * window.misses as f64 / window.operations as f64));
    }
    if let Some(error) = &window.first_error {
        text.push_str(&format!("  {} errors, first: {error}", window.errors));
    }
    text
}
