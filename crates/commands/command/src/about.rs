//! What does not change while a server runs, and what the operating system says about its process.

use base::{Rng, UnixMs};
use std::fs;
use std::path::PathBuf;

/// The version of this server.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The Redis version whose commands it speaks: what clients and tools compare with.
pub const REDIS_VERSION: &str = "7.2.4";

/// A server's identity.
pub struct About {
    /// 40 hexadecimal digits, other ones at every start.
    pub run_id: String,
    /// 40 hexadecimal digits that name the history of changes since the start: what replicas know it by.
    pub history_id: String,
    /// When it was started.
    pub started_at: UnixMs,
    /// The file the settings came from.
    pub config_file: Option<PathBuf>,
    /// The program file.
    pub executable: Option<PathBuf>,
}

impl About {
    /// An identity with a random run id.
    pub fn new(rng: &mut Rng, started_at: UnixMs, config_file: Option<PathBuf>) -> Self {
        let mut id = || {
            let mut bytes = [0; 20];
            rng.fill(&mut bytes);
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        };
        Self { run_id: id(), history_id: id(), started_at, config_file, executable: std::env::current_exe().ok() }
    }
}

/// Distinguishes builds of different versions and platforms.
pub fn build_id() -> String {
    let build = [VERSION, std::env::consts::ARCH, std::env::consts::OS].join(" ");
    format!("{:08x}", base::checksum::crc32c(build.as_bytes()))
}

/// Resident bytes of this process.
pub fn resident_bytes() -> Option<u64> {
    let pages = number(&fs::read_to_string("/proc/self/statm").ok()?, 1)?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

/// Processor time of this process and of its ended children, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct CpuSeconds {
    /// In the kernel.
    pub system: f64,
    /// In the program.
    pub user: f64,
    /// In the kernel, of children.
    pub system_children: f64,
    /// In the programs of children.
    pub user_children: f64,
}

/// Processor time so far.
pub fn cpu_seconds() -> Option<CpuSeconds> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, which may hold blanks; numbering starts after it.
    let fields = text.get(text.rfind(')')?.checked_add(1)?..)?;
    let seconds = |index| Some(number(fields, index)? as f64 / rustix::param::clock_ticks_per_second() as f64);
    Some(CpuSeconds {
        user: seconds(11)?,
        system: seconds(12)?,
        user_children: seconds(13)?,
        system_children: seconds(14)?,
    })
}

/// Bytes of memory this machine has.
pub fn system_memory_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    number(text.lines().find(|line| line.starts_with("MemTotal:"))?, 1)?.checked_mul(1024)
}

/// The operating system, its release and the processor's architecture.
pub fn operating_system() -> String {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default().trim().to_owned();
    format!("{} {} {}", read("ostype"), read("osrelease"), std::env::consts::ARCH)
}

/// The number that is the word at `index`.
fn number(text: &str, index: usize) -> Option<u64> {
    text.split_ascii_whitespace().nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_found() {
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(system_memory_bytes().unwrap() > resident_bytes().unwrap());
        let cpu = cpu_seconds().unwrap();
        assert!(cpu.user + cpu.system < 3600.0 && cpu.user_children + cpu.system_children == 0.0, "{cpu:?}");
        assert!(operating_system().starts_with("Linux "));
    }
}
