//! Looks at the data directory before a start: a wrong path, a disk that is not mounted, or the directory of another
//! server must not become an empty database in silence.
//!
//! ```text
//! missing          -> new, if its parent is there (only the last component is created)
//! with MANIFEST    -> holds data
//! files of Redis   -> refused, with the command that imports them
//! anything else    -> new; `dir-must-hold-data` refuses it
//! ```

use config::Settings;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use vfs::{DirEntry, FileKind, FileSystem, FsError, OpenOptions};

/// The file without which a directory holds no data of ours.
const MANIFEST: &str = "MANIFEST";

/// The names of foreign files in a message, at most.
const NAMED_MAX: usize = 3;

/// What a start begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Data.
    Data,
    /// None yet. `others` are files that are not ours, which are left alone.
    New {
        /// How many there are.
        others: usize,
    },
}

/// Why a server does not start with a data directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The operating system refused.
    #[error("cannot open data directory {}: {}", path.display(), source.reason())]
    Fs {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: FsError,
    },
    /// Not even the directory that is to hold it exists.
    #[error(
        "cannot create data directory {}: {} does not exist. Mount its disk, create it, or choose another directory with --dir",
        path.display(),
        parent.display()
    )]
    NoParent {
        /// The directory.
        path: PathBuf,
        /// What would hold it.
        parent: PathBuf,
    },
    /// A file has its name.
    #[error("data directory {} is not a directory; choose another with --dir", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// It holds nothing, and `dir-must-hold-data` is set.
    #[error(
        "data directory {} holds no data, and dir-must-hold-data is yes. Mount its disk or correct --dir; to start with an \
         empty database, pass --dir-must-hold-data no",
        path.display()
    )]
    Empty {
        /// The directory.
        path: PathBuf,
    },
    /// Another server keeps its data there.
    #[error(
        "data directory {} holds {what}, and no data of Onggi. {}To start with an empty database next to these files, pass \
         --ignore-foreign-files yes",
        path.display(),
        import_advice(path, import.as_deref())
    )]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What was found.
        what: String,
        /// What can be imported.
        import: Option<String>,
    },
}

fn import_advice(path: &Path, file: Option<&str>) -> String {
    file.map_or_else(String::new, |file| {
        format!("Import them into a directory of their own: onggi import {} --dir NEWDIR. ", path.join(file).display())
    })
}

/// Looks at the data directory of the settings. Creates nothing.
///
/// # Errors
/// See [`DirectoryError`].
pub fn look(fs: &dyn FileSystem, settings: &Settings) -> Result<Found, DirectoryError> {
    let path = &settings.dir;
    let failed = |source| DirectoryError::Fs { path: path.clone(), source };
    match fs.metadata(path) {
        Ok(metadata) if metadata.kind == FileKind::Dir => {}
        Ok(_) => return Err(DirectoryError::NotADirectory { path: path.clone() }),
        Err(error) if error.is_not_found() => return missing(fs, settings),
        Err(error) => return Err(failed(error)),
    }
    let entries = fs.read_dir(path).map_err(failed)?;
    if entries.iter().any(|entry| entry.name == MANIFEST) {
        return Ok(Found::Data);
    }
    let foreign: Vec<_> = entries.iter().filter(|entry| is_foreign(entry, &settings.rdb_file)).collect();
    if !foreign.is_empty() && !settings.ignore_foreign_files {
        return Err(refused(fs, path, &foreign));
    }
    if settings.dir_must_hold_data {
        return Err(DirectoryError::Empty { path: path.clone() });
    }
    Ok(Found::New { others: entries.iter().filter(|entry| is_other(&entry.name)).count() })
}

fn missing(fs: &dyn FileSystem, settings: &Settings) -> Result<Found, DirectoryError> {
    let path = &settings.dir;
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    match fs.metadata(parent) {
        Err(error) if error.is_not_found() => {
            Err(DirectoryError::NoParent { path: path.clone(), parent: parent.to_owned() })
        }
        Err(source) => Err(DirectoryError::Fs { path: path.clone(), source }),
        Ok(_) if settings.dir_must_hold_data => Err(DirectoryError::Empty { path: path.clone() }),
        Ok(_) => Ok(Found::New { others: 0 }),
    }
}

/// Whether a file or directory is another server's data: of Redis, Valkey, KeyDB or Dragonfly.
fn is_foreign(entry: &DirEntry, rdb_file: &Path) -> bool {
    let Some(name) = entry.name.to_str() else { return false };
    if entry.kind == FileKind::Dir {
        return name == "appendonlydir";
    }
    let ends = |suffix: &str| name.len() > suffix.len() && name.ends_with(suffix);
    let dumps = [".rdb", ".aof", ".aof.manifest", ".dfs"].into_iter().any(ends);
    !name.starts_with('.') && (dumps || name == "nodes.conf" || Path::new(name) == rdb_file)
}

/// Whether a file is neither ours nor a part of every file system.
fn is_other(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_ours = ["LOCK", "arcus", "lsm"].contains(&&*name)
        || ["MANIFEST", "prdb-", "log-", "dict-"].iter().any(|begin| name.starts_with(begin));
    !is_ours && !name.starts_with('.') && name != "lost+found"
}

fn refused(fs: &dyn FileSystem, path: &Path, foreign: &[&DirEntry]) -> DirectoryError {
    let mut named: Vec<_> = foreign.iter().take(NAMED_MAX).map(|entry| described(fs, path, entry)).collect();
    if foreign.len() > NAMED_MAX {
        named.push(format!("{} more files of another server", foreign.len() - NAMED_MAX));
    }
    // Where both are kept, the append-only files are the newer.
    let find = |suffix: &str| {
        let names = foreign.iter().filter_map(|entry| entry.name.to_str());
        names.filter(|name| name.ends_with(suffix)).find(|name| !name.starts_with("temp-")).map(str::to_owned)
    };
    let import = find("appendonlydir").or_else(|| find(".aof")).or_else(|| find(".rdb"));
    DirectoryError::Foreign { path: path.to_owned(), what: named.join(", "), import }
}

/// A name, and what wrote the file, where that is easily read.
fn described(fs: &dyn FileSystem, path: &Path, entry: &DirEntry) -> String {
    let name = entry.name.to_string_lossy();
    match origin(fs, &path.join(&entry.name)) {
        Some(origin) => format!("{name} ({origin})"),
        None => name.into_owned(),
    }
}

fn origin(fs: &dyn FileSystem, path: &Path) -> Option<rdb::origin::Origin> {
    let file = fs.open(path, OpenOptions::read()).ok()?;
    let len = usize::try_from(file.len().ok()?).unwrap_or(usize::MAX);
    let mut head = vec![0; len.min(rdb::origin::HEAD_BYTES)];
    file.read_exact_at(&mut head, 0).ok()?;
    rdb::origin::origin(&head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::SimFs;

    const DIR: &str = "/var/lib/redis";

    fn settings() -> Settings {
        Settings { dir: DIR.into(), ..Settings::default() }
    }

    fn directory(files: &[&str]) -> SimFs {
        let fs = SimFs::new(1);
        fs.create_dir_all(Path::new(DIR)).unwrap();
        files.iter().for_each(|name| put(&fs, name, b"?"));
        fs
    }

    fn put(fs: &SimFs, name: &str, bytes: &[u8]) {
        let file = fs.open(&Path::new(DIR).join(name), OpenOptions::write().create()).unwrap();
        file.write_all_at(bytes, 0).unwrap();
    }

    /// A Redis data directory became an empty database, and BGSAVE RDB replaced its dump.
    #[test]
    fn a_directory_of_redis_is_refused_with_the_command_that_imports_it() {
        let fs = directory(&["LOCK", "temp-12.rdb"]);
        put(&fs, "dump.rdb", b"REDIS0010\xFA\x09redis-ver\x067.0.15\xFE\x00");
        let error = look(&fs, &settings()).unwrap_err().to_string();
        let begin =
            "data directory /var/lib/redis holds dump.rdb (Redis 7.0.15), temp-12.rdb, and no data of Onggi. Import";
        assert!(error.starts_with(begin), "{error}");
        assert!(error.contains("onggi import /var/lib/redis/dump.rdb --dir NEWDIR"), "{error}");
        fs.create_dir_all(&Path::new(DIR).join("appendonlydir")).unwrap();
        let error = look(&fs, &settings()).unwrap_err().to_string();
        assert!(error.contains("onggi import /var/lib/redis/appendonlydir --dir NEWDIR"), "{error}");
        let ignoring = Settings { ignore_foreign_files: true, ..settings() };
        assert_eq!(look(&fs, &ignoring).unwrap(), Found::New { others: 3 });
        put(&fs, "MANIFEST", b"?");
        assert_eq!(look(&fs, &settings()).unwrap(), Found::Data, "BGSAVE RDB has made the dump");
    }

    #[test]
    fn what_is_foreign() {
        let of = |name: &str| look(&directory(&[name]), &Settings { rdb_file: "mine".into(), ..settings() });
        for name in
            ["dump.rdb", "x.rdb", "appendonly.aof", "appendonly.aof.manifest", "nodes.conf", "dump-0.dfs", "mine"]
        {
            assert!(matches!(of(name), Err(DirectoryError::Foreign { .. })), "{name}");
        }
        for (name, others) in
            [("LOCK", 0), (".rdb", 0), (".x.rdb", 0), ("onggi.conf", 1), ("server.log", 1), ("rdb", 1)]
        {
            assert_eq!(of(name).unwrap(), Found::New { others }, "{name}");
        }
        let fs = directory(&[]);
        fs.create_dir_all(&Path::new(DIR).join("lost+found")).unwrap();
        fs.create_dir_all(&Path::new(DIR).join("old.rdb")).unwrap();
        assert_eq!(look(&fs, &settings()).unwrap(), Found::New { others: 1 }, "a directory is no dump");
    }

    /// A mistyped path, or a disk that is not mounted.
    #[test]
    fn only_the_last_component_may_be_missing() {
        let fs = SimFs::new(1);
        let error = look(&fs, &settings()).unwrap_err().to_string();
        assert!(error.starts_with("cannot create data directory /var/lib/redis: /var/lib does not exist."), "{error}");
        fs.create_dir_all(Path::new("/var/lib")).unwrap();
        assert_eq!(look(&fs, &settings()).unwrap(), Found::New { others: 0 });
        let here = Settings { dir: "new".into(), ..settings() };
        assert!(look(&vfs::RealFs, &here).is_ok(), "beside the program's directory");
    }

    #[test]
    fn a_directory_that_must_hold_data() {
        let strict = Settings { dir_must_hold_data: true, ..settings() };
        let fs = SimFs::new(1);
        fs.create_dir_all(Path::new("/var/lib")).unwrap();
        assert!(matches!(look(&fs, &strict), Err(DirectoryError::Empty { .. })), "missing");
        for files in [&[][..], &["server.log"]] {
            assert!(matches!(look(&directory(files), &strict), Err(DirectoryError::Empty { .. })), "{files:?}");
        }
        assert_eq!(look(&directory(&["MANIFEST"]), &strict).unwrap(), Found::Data);
        assert!(matches!(look(&directory(&["dump.rdb"]), &strict), Err(DirectoryError::Foreign { .. })));
    }
}
