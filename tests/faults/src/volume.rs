//! File systems of our own: an image on a loop device whose power can be cut, and a small one in memory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The request of the system call that shuts a file system down, and the flag that keeps what is in memory from being
/// written: what was not synced is gone, data, sizes and names, as when the power goes (`EXT4_IOC_SHUTDOWN` and its
/// twin of XFS). Called through Python, which has `ioctl`, so that this crate needs no unsafe code.
const SHUTDOWN: &str = "
import fcntl, os, struct, sys
place = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(place, 0x8004587D, struct.pack('I', 2))
";

/// What an image is formatted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// ext4
    Ext4,
    /// XFS
    Xfs,
}

impl Format {
    /// Its name for `mkfs`.
    pub fn name(self) -> &'static str {
        match self {
            Format::Ext4 => "ext4",
            Format::Xfs => "xfs",
        }
    }
}

/// A file system in an image, mounted by a loop device. Unmounted with this value.
#[derive(Debug)]
pub struct Volume {
    image: PathBuf,
    place: PathBuf,
    format: Format,
}

impl Volume {
    /// Makes an image of `megabytes` and mounts it.
    ///
    /// # Errors
    /// What a tool said.
    pub fn create(image: &Path, place: &Path, format: Format, megabytes: u64) -> Result<Self, String> {
        let words = |error: std::io::Error| format!("{}: {error}", image.display());
        File::create(image).and_then(|file| file.set_len(megabytes << 20)).map_err(words)?;
        fs::create_dir_all(place).map_err(words)?;
        let quiet: &[&str] = if format == Format::Ext4 { &["-q", "-F"] } else { &["-q", "-f"] };
        run(Command::new(format!("mkfs.{}", format.name())).args(quiet).arg(image))?;
        let volume = Self { image: image.to_owned(), place: place.to_owned(), format };
        volume.mount()?;
        Ok(volume)
    }

    /// Where it is mounted.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Cuts the power: what was not synced is gone. Nothing can be written until it is mounted again.
    ///
    /// # Errors
    /// The file system cannot do it.
    pub fn cut(&self) -> Result<(), String> {
        run(Command::new("python3").args(["-c", SHUTDOWN]).arg(&self.place))
    }

    /// Unmounts it and mounts it again, which plays the file system's own journal.
    ///
    /// # Errors
    /// What a tool said.
    pub fn remount(&self) -> Result<(), String> {
        self.unmount()?;
        self.mount()
    }

    /// Unmounts it, has its tool mend what write errors have left, and mounts it again.
    ///
    /// # Errors
    /// What a tool said.
    pub fn mend(&self) -> Result<(), String> {
        self.unmount()?;
        if self.format == Format::Ext4 {
            // Its status says what was mended: only 4 and more are failures.
            let done = Command::new("e2fsck")
                .args(["-fy"])
                .arg(&self.image)
                .output()
                .map_err(|error| format!("e2fsck: {error}"))?;
            if done.status.code().is_none_or(|code| code >= 4) {
                return Err(format!("e2fsck: {}", String::from_utf8_lossy(&done.stdout).trim()));
            }
        }
        self.mount()
    }

    /// The loop device, as `MAJOR:MINOR`.
    ///
    /// # Errors
    /// What a tool said.
    pub fn device(&self) -> Result<String, String> {
        let done = Command::new("mountpoint")
            .arg("-d")
            .arg(&self.place)
            .output()
            .map_err(|error| format!("mountpoint: {error}"))?;
        Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
    }

    fn mount(&self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop", "-t", self.format.name()]).arg(&self.image).arg(&self.place))
    }

    fn unmount(&self) -> Result<(), String> {
        unmount(&self.place)
    }
}

/// A stalled volume: writes and syncs wait. Dropping this releases it.
pub struct Frozen<'a>(&'a Volume);

impl<'a> Frozen<'a> {
    /// Stops the volume.
    ///
    /// # Errors
    /// What the tool said.
    pub fn new(volume: &'a Volume) -> Result<Self, String> {
        run(Command::new("fsfreeze").arg("-f").arg(&volume.place))?;
        Ok(Self(volume))
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = run(Command::new("fsfreeze").arg("-u").arg(&self.0.place));
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = self.unmount();
    }
}

/// A file system in memory that is small. Unmounted with this value.
#[derive(Debug)]
pub struct Memory {
    place: PathBuf,
}

impl Memory {
    /// Mounts one of `megabytes`.
    ///
    /// # Errors
    /// What a tool said.
    pub fn mount(place: &Path, megabytes: u64) -> Result<Self, String> {
        fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
        run(Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "onggi-faults"])
            .arg(place))?;
        Ok(Self { place: place.to_owned() })
    }

    /// Gives it another size.
    ///
    /// # Errors
    /// What a tool said.
    pub fn resize(&self, megabytes: u64) -> Result<(), String> {
        run(Command::new("mount").args(["-o", &format!("remount,size={megabytes}m")]).arg(&self.place))
    }

    /// Where it is mounted.
    pub fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = unmount(&self.place);
    }
}

/// Unmounts; what the kernel still closes is waited for.
fn unmount(place: &Path) -> Result<(), String> {
    let mut last = Ok(());
    for _ in 0..100 {
        last = run(Command::new("umount").arg(place));
        if last.is_ok() {
            return last;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    // Detached, so that it does not disturb the next run.
    let _ = run(Command::new("umount").arg("-l").arg(place));
    last
}

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| format!("{name}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{name}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}
