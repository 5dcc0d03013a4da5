//! `onggi backup`: copies the data of a running server, which keeps its files in place meanwhile.

use crate::error::ToolError;
use crate::restore::{Build, Point, Restored, TierCopy, build};
use base::{Clock, HistoryId, Lsn};
use checkpoint::{DataDir, Manifest, ManifestFile};
use std::path::Path;
use std::sync::Arc;
use vfs::FileSystem;

/// Makes a data directory at `into`, which is empty or missing, from a server's data in `from`: the newest checkpoint,
/// linked if the file system supports it, and the log after it up to `durable`, the position that the server reported
/// (`None`: its log is off). The copy continues under `history`. Reports each file.
///
/// The server must keep its files until this returns: the caller holds them.
///
/// # Errors
/// [`ToolError::NotEmpty`]; [`ToolError::NotReachable`] if there is neither a checkpoint nor a log; damage, a failing
/// disk.
pub fn backup(
    fs: &Arc<dyn FileSystem>,
    clock: &dyn Clock,
    from: &Path,
    durable: Option<Lsn>,
    into: &Path,
    history: HistoryId,
    say: &mut dyn FnMut(&str),
) -> Result<Restored, ToolError> {
    if fs.exists(into)? && !fs.read_dir(into)?.is_empty() {
        return Err(ToolError::NotEmpty { path: into.into() });
    }
    let source = DataDir::open_to_look(Arc::clone(fs), from);
    let Some(file) = ManifestFile::load(&source)? else {
        let why = "the server has saved nothing there yet: ask it for BGSAVE".to_owned();
        return Err(ToolError::NotReachable { path: from.into(), why });
    };
    let manifest = file.current();
    let to = Point::Lsn(point(manifest, durable));
    build(
        &source,
        manifest,
        clock,
        &Build { to, into, history, links: true, tier: TierCopy::Own { at: into }, loss: None },
        say,
    )
}

/// The newest moment that the files reach: a checkpoint may be newer than the durable position before it.
fn point(manifest: &Manifest, durable: Option<Lsn>) -> Lsn {
    let cut = manifest.newest().map_or(manifest.log.since, |set| set.cut);
    durable.map_or(cut, |durable| durable.max(cut))
}
