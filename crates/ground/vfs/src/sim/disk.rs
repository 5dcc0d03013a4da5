//! The whole simulated disk: files, directories, visible names and durable names. A copy shares everything (see `cow`),
//! so a copy per operation of a run is affordable. A reboot is a function from one disk to the next.
//!
//! D1. Node 0 is the root directory and always exists.
//! D2. A node is kept while a name (visible, durable or pending) or an open handle can reach it: a power cut may
//!     restore a removed file.
//! D3. `used` is the number of pages of files that have a visible name or an open handle.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base::Rng;
use rustix::io::Errno;

use super::cow::CowVec;
use super::draw::{CrashModel, Draw};
use super::file_node::{Change, FileNode};
use super::image::{Image, PAGE};
use super::names::{Name, NodeId, PendingNames, Setting};
use crate::file_system::{DirEntry, FileKind, Metadata};

/// Longest file: the page table of a longer one would waste memory in a test.
pub(super) const FILE_LEN_MAX: u64 = 1 << 36;

const ROOT: NodeId = NodeId(0);

#[derive(Clone, Debug)]
enum Node {
    File(FileNode),
    Dir(DirNode),
}

#[derive(Clone, Debug, Default)]
struct DirNode {
    /// The names that programs see.
    live: BTreeMap<Name, NodeId>,
    /// The names on the medium.
    durable: BTreeMap<Name, NodeId>,
}

/// A range of a file that the medium cannot read.
#[derive(Clone, Debug)]
struct BadRange {
    node: NodeId,
    range: Range<u64>,
    /// Failures left; `None`: forever.
    left: Option<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct Disk {
    nodes: CowVec<Option<Arc<Node>>>,
    names: PendingNames,
    used: u64,
    bad: Vec<BadRange>,
    /// Open handles per node; none after a reboot.
    open: BTreeMap<NodeId, u32>,
    /// A name was removed since the last search for unreachable nodes.
    removed: bool,
}

impl Disk {
    pub fn new() -> Self {
        let root = Some(Arc::new(Node::Dir(DirNode::default())));
        Self {
            nodes: [root].into_iter().collect(),
            names: PendingNames::default(),
            used: 0,
            bad: Vec::new(),
            open: BTreeMap::new(),
            removed: false,
        }
    }

    /// Pages in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    // ---- Paths. `..` is refused; a leading `/` and `.` have no effect: every path starts at the root.

    pub fn lookup(&self, path: &Path) -> io::Result<NodeId> {
        let mut node = ROOT;
        for component in path.components() {
            match component {
                Component::Normal(name) => {
                    node = *self.dir(node)?.live.get(name).ok_or(Errno::NOENT)?;
                }
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return Err(Errno::INVAL.into()),
            }
        }
        Ok(node)
    }

    /// The directory that holds (or would hold) the last name of the path, and that name.
    fn parent(&self, path: &Path) -> io::Result<(NodeId, Name)> {
        let name = path.file_name().ok_or(Errno::BUSY)?;
        let dir = self.lookup(path.parent().unwrap_or(Path::new("")))?;
        self.dir(dir)?;
        Ok((dir, name.into()))
    }

    fn child(&self, dir: NodeId, name: &OsStr) -> io::Result<Option<NodeId>> {
        Ok(self.dir(dir)?.live.get(name).copied())
    }

    // ---- Nodes.

    fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.0 as usize).and_then(Option::as_deref).expect("D2: the node is reachable")
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        let node = self.nodes.get_mut(id.0 as usize).and_then(Option::as_mut).expect("D2: the node is reachable");
        Arc::make_mut(node)
    }

    fn dir(&self, id: NodeId) -> io::Result<&DirNode> {
        match self.node(id) {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    fn dir_mut(&mut self, id: NodeId) -> &mut DirNode {
        match self.node_mut(id) {
            Node::Dir(dir) => dir,
            Node::File(_) => panic!("looked up as a directory"),
        }
    }

    fn is_dir(&self, id: NodeId) -> bool {
        matches!(self.node(id), Node::Dir(_))
    }

    pub fn file(&self, id: NodeId) -> io::Result<&FileNode> {
        match self.node(id) {
            Node::File(file) => Ok(file),
            Node::Dir(_) => Err(Errno::ISDIR.into()),
        }
    }

    /// Applies a change to one file and maintains D3.
    pub fn change_file<R>(&mut self, id: NodeId, change: impl FnOnce(&mut FileNode) -> R) -> R {
        let counted = self.open.contains_key(&id);
        let Node::File(file) = self.node_mut(id) else { panic!("opened as a file") };
        let before = file.live().allocated();
        let result = change(file);
        let after = file.live().allocated();
        if counted || file.links > 0 {
            self.used = self.used + after - before;
        }
        result
    }

    fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(Some(Arc::new(node)));
        id
    }

    pub fn opened(&mut self, id: NodeId) {
        *self.open.entry(id).or_insert(0) += 1;
    }

    pub fn closed(&mut self, id: NodeId) {
        let handles = self.open.get_mut(&id).expect("was opened");
        *handles -= 1;
        if *handles == 0 {
            self.open.remove(&id);
            self.forget_if_last(id);
        }
    }

    /// Frees the space of a file when no name and no handle remain.
    fn forget_if_last(&mut self, id: NodeId) {
        if let Node::File(file) = self.node(id)
            && file.links == 0
            && !self.open.contains_key(&id)
        {
            self.used -= file.live().allocated();
            self.removed = true;
        }
    }

    // ---- Names.

    /// Sets names in one step, both the visible ones and those that wait for a directory sync.
    fn set_names(&mut self, change: Vec<Setting>) {
        let mut replaced = Vec::new();
        for setting in &change {
            let live = &mut self.dir_mut(setting.dir).live;
            replaced.extend(match setting.node {
                Some(node) => live.insert(Arc::clone(&setting.name), node),
                None => live.remove(&setting.name),
            });
        }
        for node in change.iter().filter_map(|s| s.node) {
            self.add_links(node, 1);
        }
        for node in replaced {
            self.add_links(node, -1);
            self.forget_if_last(node);
            self.removed = true;
        }
        self.names.push(change);
    }

    fn add_links(&mut self, id: NodeId, links: i32) {
        if let Node::File(file) = self.node_mut(id) {
            file.links = file.links.checked_add_signed(links).expect("one link per name");
        }
    }

    /// Creates an empty file; the name must be free.
    pub fn create_file(&mut self, path: &Path) -> io::Result<NodeId> {
        let (dir, name) = self.parent(path)?;
        if self.child(dir, &name)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        let id = self.add(Node::File(FileNode::default()));
        self.set_names(vec![Setting::new(dir, name, Some(id))]);
        Ok(id)
    }

    pub fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        if self.child(dir, &name)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        let id = self.add(Node::Dir(DirNode::default()));
        self.set_names(vec![Setting::new(dir, name, Some(id))]);
        Ok(())
    }

    pub fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let id = self.child(dir, &name)?.ok_or(Errno::NOENT)?;
        self.file(id)?;
        self.set_names(vec![Setting::new(dir, name, None)]);
        Ok(())
    }

    pub fn remove_dir(&mut self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        let id = self.child(dir, &name)?.ok_or(Errno::NOENT)?;
        self.must_be_empty(id)?;
        self.set_names(vec![Setting::new(dir, name, None)]);
        Ok(())
    }

    fn must_be_empty(&self, dir: NodeId) -> io::Result<()> {
        if self.dir(dir)?.live.is_empty() { Ok(()) } else { Err(Errno::NOTEMPTY.into()) }
    }

    pub fn hard_link(&mut self, existing: &Path, link: &Path) -> io::Result<()> {
        let id = self.lookup(existing)?;
        let (dir, name) = self.parent(link)?;
        if self.child(dir, &name)?.is_some() {
            return Err(Errno::EXIST.into());
        }
        if self.is_dir(id) {
            return Err(Errno::PERM.into());
        }
        self.set_names(vec![Setting::new(dir, name, Some(id))]);
        Ok(())
    }

    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let id = self.child(from_dir, &from_name)?.ok_or(Errno::NOENT)?;
        if self.is_dir(id) && self.is_inside(to, from) {
            return Err(Errno::INVAL.into());
        }
        match self.child(to_dir, &to_name)? {
            // Two names of one file: POSIX says to do nothing.
            Some(there) if there == id => return Ok(()),
            Some(there) if self.is_dir(id) => self.must_be_empty(there)?,
            Some(there) => drop(self.file(there)?),
            None => {}
        }
        self.set_names(vec![Setting::new(from_dir, from_name, None), Setting::new(to_dir, to_name, Some(id))]);
        Ok(())
    }

    /// Whether `path` lies below `dir`, by its text: directories have one name, and `..` is refused.
    fn is_inside(&self, path: &Path, dir: &Path) -> bool {
        let names = |path: &Path| -> Vec<Name> {
            let normal = |c: Component<'_>| if let Component::Normal(name) = c { Some(name.into()) } else { None };
            path.components().filter_map(normal).collect()
        };
        let (path, dir) = (names(path), names(dir));
        path.len() > dir.len() && path.starts_with(&dir)
    }

    pub fn read_dir(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let kind = |id| if self.is_dir(id) { FileKind::Dir } else { FileKind::File };
        let entries = self.dir(self.lookup(path)?)?.live.iter();
        Ok(entries.map(|(name, &id)| DirEntry { name: name.to_os_string(), kind: kind(id) }).collect())
    }

    pub fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(match self.node(self.lookup(path)?) {
            Node::Dir(_) => Metadata { kind: FileKind::Dir, len: 0, allocated: 0, modified_ms: None },
            Node::File(file) => {
                let image = file.live();
                let (len, allocated) = (image.len(), image.allocated() * PAGE);
                Metadata { kind: FileKind::File, len, allocated, modified_ms: None }
            }
        })
    }

    /// All files that programs see, with their contents.
    pub fn contents(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut dirs = vec![(ROOT, PathBuf::from("/"))];
        while let Some((dir, path)) = dirs.pop() {
            for (name, &id) in &self.dir(dir).expect("pushed as a directory").live {
                let path = path.join(&**name);
                match self.node(id) {
                    Node::Dir(_) => dirs.push((id, path)),
                    Node::File(file) => drop(found.insert(path, file.live().to_vec())),
                }
            }
        }
        found
    }

    // ---- Durability.

    /// Records which name changes a sync of this directory covers; returns the directory.
    pub fn begin_sync_dir(&mut self, path: &Path) -> io::Result<NodeId> {
        let dir = self.lookup(path)?;
        self.dir(dir)?;
        self.names.begin_sync(dir);
        Ok(dir)
    }

    pub fn finish_sync_dir(&mut self) {
        let due = self.names.finish_sync();
        self.make_durable(due);
        self.drop_unreachable();
    }

    /// A failed directory sync (see [`PendingNames::fail_sync`]).
    pub fn fail_sync_dir(&mut self, dir: NodeId, draw: &mut Draw) {
        let arrived = self.names.fail_sync(dir, draw);
        self.make_durable(arrived);
    }

    fn make_durable(&mut self, settings: Vec<Setting>) {
        for setting in settings {
            // The directory may be unreachable by now; then its names do not matter.
            if self.nodes.get(setting.dir.0 as usize).is_some_and(Option::is_some) {
                let durable = &mut self.dir_mut(setting.dir).durable;
                match setting.node {
                    Some(node) => drop(durable.insert(setting.name, node)),
                    None => drop(durable.remove(&setting.name)),
                }
            }
        }
    }

    /// Frees the memory of nodes that nothing can restore (D2).
    fn drop_unreachable(&mut self) {
        if !std::mem::take(&mut self.removed) {
            return;
        }
        let mut reached: BTreeSet<NodeId> = BTreeSet::new();
        let mut next: Vec<NodeId> = self.open.keys().copied().chain(self.names.nodes()).chain([ROOT]).collect();
        while let Some(id) = next.pop() {
            if reached.insert(id)
                && let Node::Dir(dir) = self.node(id)
            {
                next.extend(dir.live.values().chain(dir.durable.values()));
            }
        }
        for index in 0..self.nodes.len() {
            if !reached.contains(&NodeId(index as u32)) && self.nodes.get(index).is_some_and(Option::is_some) {
                *self.nodes.get_mut(index).expect("inside") = None;
            }
        }
        self.bad.retain(|bad| reached.contains(&bad.node));
    }

    /// The disk after a power cut and a reboot: the durable state, and whatever the seed keeps of the rest.
    pub fn after_power_cut(&self, seed: u64, model: CrashModel) -> Disk {
        let mut rng = Rng::new(seed);
        let mut namespace = self.clone();
        let survivors = self.names.survivors(&mut Draw::new(Rng::new(rng.next_u64()), model));
        namespace.make_durable(survivors);

        // Only nodes that a durable name reaches exist after the boot. They are drawn in the order of the walk, which
        // depends only on the names, each with its own random numbers.
        let mut next = Disk { nodes: CowVec::default(), bad: self.bad.clone(), ..Disk::new() };
        let mut found: BTreeMap<NodeId, (u32, Node)> = BTreeMap::new();
        let mut walk = vec![ROOT];
        while let Some(id) = walk.pop() {
            if let Some((links, _)) = found.get_mut(&id) {
                *links += 1;
                continue;
            }
            let node = match namespace.node(id) {
                Node::Dir(dir) => {
                    walk.extend(dir.durable.values());
                    Node::Dir(DirNode { live: dir.durable.clone(), durable: dir.durable.clone() })
                }
                Node::File(file) => {
                    let mut draw = Draw::new(Rng::new(rng.next_u64()), model);
                    Node::File(FileNode::at_rest(file.drawn(&mut draw), 0))
                }
            };
            found.insert(id, (1, node));
        }
        let end = found.last_key_value().map_or(0, |(id, _)| id.0 + 1);
        for index in 0..end {
            next.nodes.push(found.remove(&NodeId(index)).map(|(links, mut node)| {
                if let Node::File(file) = &mut node {
                    file.links = links;
                    next.used += file.live().allocated();
                }
                Arc::new(node)
            }));
        }
        next.bad.retain(|bad| next.nodes.get(bad.node.0 as usize).is_some_and(Option::is_some));
        next
    }

    /// The disk after the death of the process alone: the page cache survives, handles are closed.
    pub fn after_process_kill(&self) -> Disk {
        let mut next = self.clone();
        for id in self.open.keys() {
            next.open.remove(id);
            next.forget_if_last(*id);
        }
        next
    }

    // ---- Damage at rest.

    /// Changes bytes of a file, on the medium and in the cache.
    pub fn damage(&mut self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let id = self.lookup(path)?;
        self.file(id)?;
        self.change_file(id, |file| file.damage(offset, bytes));
        Ok(())
    }

    pub fn make_unreadable(&mut self, path: &Path, range: Range<u64>, times: Option<u32>) -> io::Result<()> {
        let node = self.lookup(path)?;
        self.file(node)?;
        self.bad.push(BadRange { node, range, left: times });
        Ok(())
    }

    /// Whether a read of this range hits a bad one; counts down those that fail a limited number of times.
    pub fn read_fails(&mut self, node: NodeId, range: Range<u64>) -> bool {
        let meets = |bad: &BadRange| bad.node == node && bad.range.start < range.end && range.start < bad.range.end;
        let Some(bad) = self.bad.iter_mut().find(|bad| bad.left != Some(0) && meets(bad)) else { return false };
        bad.left = bad.left.map(|left| left - 1);
        true
    }

    /// A file's contents as programs see them.
    pub fn image(&self, path: &Path) -> io::Result<&Image> {
        Ok(self.file(self.lookup(path)?)?.live())
    }

    /// All files.
    fn files(&self) -> impl Iterator<Item = &FileNode> {
        let nodes = (0..self.nodes.len()).filter_map(|index| self.nodes.get(index)?.as_deref());
        nodes.filter_map(|node| if let Node::File(file) = node { Some(file) } else { None })
    }

    /// The number of states that words that are not fenced can be left in; `None` if they are too many to count.
    pub fn word_states(&self) -> Option<u64> {
        self.files().try_fold(1u64, |states, file| states.checked_mul(file.word_states()?))
    }

    /// The disk after a power cut that leaves the words in the state of this number. Other pending changes of contents
    /// are lost; names are as programs see them.
    pub fn with_word_state(&self, mut state: u64) -> Disk {
        let mut next = self.after_process_kill();
        for index in 0..next.nodes.len() {
            let Some(Some(node)) = next.nodes.get_mut(index) else { continue };
            if let Node::File(file) = Arc::make_mut(node) {
                let states = file.word_states().unwrap_or(u64::MAX);
                *file = FileNode::at_rest(file.with_word_state(state % states), file.links);
                state /= states;
            }
        }
        let used = next.files().filter(|file| file.links > 0).map(|file| file.live().allocated()).sum();
        Disk { used, ..next }
    }

    /// Truncates a file to length 0, as opening it with `truncate` does.
    pub fn truncate(&mut self, id: NodeId) {
        self.change_file(id, |file| file.change(Change::Cut(0)));
    }
}
