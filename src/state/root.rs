//! The root folder: recognising it, making it, and whether it may be written.
//!
//! Invariants: `config.json` is written last and once, so a root is initialised if and only if it has one; a
//! reader makes nothing; a root that lost its `config.json` is damaged, never empty; nothing in a folder that
//! may be somebody else's is touched.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use serde_json::{Map, Value};

use super::disk::{self, Dir, Entry, Kind};
use super::error::{Result, StateError};
use super::filesystem::{self, Filesystem, Locality};
use super::lock::{Deadline, LockWait, Mode, try_lock};
use super::names::{CONFIG, SECRET, SESSIONS, TASKS, TEMP_PREFIX, hex};
use super::secret::Secret;
use super::{Access, Store};

/// The version of the root's layout this program writes.
const CONFIG_VERSION: u64 = 1;
const KIND: &str = "lychgate";
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;
const SECRET_BYTES_MAX: u64 = 1024;
/// How the temporary folders of the `atomicwrites` crate begin.
const WRITE_ONCE_PREFIX: &str = ".atomicwrite";
/// A file system's own folder, where the root is a mount point.
const LOST_AND_FOUND: &str = "lost+found";
/// How long one call waits for another that is making the root.
const INIT_WAIT: LockWait = LockWait(Duration::from_secs(10));

/// `config.json`, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    version: u64,
    trusted: Vec<u64>,
    network_allowed: bool,
}

/// What a folder without `config.json` is.
enum Blank {
    /// Empty, or left by an initialisation that did not reach its end.
    Unmade,
    Damaged(String),
    Foreign(String),
}

impl Store {
    /// Opens a root. With [`Access::Write`] a missing or empty one is made.
    ///
    /// A root that is a file, or has files of somebody else's and no `config.json`, is foreign.
    pub fn open(dir: &Path, access: Access) -> Result<Self> {
        let Some(path) = disk::canonical(dir)? else {
            if access != Access::Write {
                return Err(StateError::NoRoot { path: dir.to_owned() });
            }
            // Looked at before anything is made: on a refused file system nothing is.
            let above = disk::nearest_existing(dir)?;
            writable(&above, dir, filesystem_of(&above)?, false)?;
            disk::make_root_folder(dir)?;
            let vanished = || StateError::io("find", dir, io::Error::from(io::ErrorKind::NotFound));
            let path = disk::canonical(dir)?.ok_or_else(vanished)?;
            return Self::open_existing(path, access);
        };
        Self::open_existing(path, access)
    }

    fn open_existing(path: PathBuf, access: Access) -> Result<Self> {
        let root = match Dir::open(&path) {
            Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
                return Err(StateError::ForeignRoot { path, reason: "it is not a folder".to_owned() });
            }
            opened => opened?,
        };
        let filesystem = filesystem_of(&root)?;
        let config = match (read_config(&root)?, access) {
            (Some(config), _) => config,
            (None, Access::Read | Access::Change) => return Err(unmade(&root)?),
            (None, Access::Write) => {
                writable(&root, &path, filesystem, false)?;
                owned(&root, &[])?;
                initialise(root)?
            }
        };
        if access != Access::Read {
            let root = Dir::open(&path)?;
            writable(&root, &path, filesystem, config.network_allowed)?;
            owned(&root, &config.trusted)?;
            if config.version > CONFIG_VERSION {
                return Err(StateError::NewerVersion { path: root.at(CONFIG), found: config.version });
            }
            sweep_made(root);
        }
        Ok(Self { root: path, access, locality: filesystem.locality })
    }

    /// The root's path, with every link in it resolved.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How far away the root's file system is.
    pub fn locality(&self) -> Locality {
        self.locality
    }

    /// The key that tokens are made with.
    pub fn secret(&self) -> Result<Secret> {
        let root = self.open_root()?;
        let bytes = match root.read(SECRET, SECRET_BYTES_MAX) {
            Ok(bytes) => bytes.ok_or_else(|| StateError::damaged(root.at(SECRET), "it is missing"))?,
            Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::InvalidData => {
                return Err(StateError::damaged(root.at(SECRET), source.to_string()));
            }
            Err(error) => return Err(error),
        };
        Secret::parse(&bytes).ok_or_else(|| StateError::damaged(root.at(SECRET), "it is not 64 hex digits"))
    }

    pub(super) fn open_root(&self) -> Result<Dir> {
        Dir::open(&self.root)
    }

    pub(super) fn open_tasks(&self) -> Result<Dir> {
        tasks_of(&self.open_root()?)
    }
}

/// The folder of the rows. A root that was made has one, so anything else in its place is damage.
pub(super) fn tasks_of(root: &Dir) -> Result<Dir> {
    let damaged = |reason: &str| StateError::damaged(root.at(TASKS), reason);
    match root.child(TASKS) {
        Ok(tasks) => tasks.ok_or_else(|| damaged("the folder is missing")),
        Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => {
            Err(damaged("it is not a folder"))
        }
        Err(error) => Err(error),
    }
}

impl Store {
    /// Removes what an initialisation or a spooling that died has left in the root folder itself. What cannot
    /// be removed does no harm and stays.
    pub fn sweep(&self) {
        let Ok(Ok(Ok(root))) = self.open_root().map(|root| try_lock(root, Mode::Exclusive)) else { return };
        for entry in root.list().unwrap_or_default() {
            if entry.kind == Kind::Folder && entry.name.starts_with(WRITE_ONCE_PREFIX) {
                drop(remove_write_once(&root, &entry.name));
            } else if entry.kind == Kind::File && entry.name.starts_with(TEMP_PREFIX) {
                drop(root.remove(&entry.name));
            }
        }
    }
}

fn filesystem_of(dir: &Dir) -> Result<Filesystem> {
    filesystem::of(dir.handle())
        .map_err(|error| StateError::io("look at the file system of", dir.path(), error))
}

fn writable(dir: &Dir, root: &Path, filesystem: Filesystem, network_allowed: bool) -> Result<()> {
    if filesystem.read_only {
        return Err(StateError::io("write to", dir.path(), Errno::ROFS));
    }
    if filesystem.locality == Locality::Network && !network_allowed {
        return Err(StateError::NetworkFilesystem { path: root.to_owned(), kind: filesystem.kind });
    }
    Ok(())
}

fn owned(root: &Dir, trusted: &[u64]) -> Result<()> {
    let owner = root.owner()?;
    if owner == disk::effective_user() || trusted.contains(&u64::from(owner)) {
        return Ok(());
    }
    Err(StateError::RootNotYours { path: root.path().to_owned(), owner })
}

fn read_config(root: &Dir) -> Result<Option<Config>> {
    let foreign =
        |reason: &str| StateError::ForeignRoot { path: root.path().to_owned(), reason: reason.to_owned() };
    let bytes = match root.read(CONFIG, CONFIG_BYTES_MAX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(StateError::Io { source, .. }) if source.kind() == io::ErrorKind::InvalidData => {
            return Err(foreign("its `config.json` is no small regular file"));
        }
        Err(error) => return Err(error),
    };
    let Ok(fields) = serde_json::from_slice::<Map<String, Value>>(&bytes) else {
        // Ours is renamed into place whole, so a broken one beside a secret of ours was damaged later.
        if matches!(root.read(SECRET, SECRET_BYTES_MAX), Ok(Some(secret)) if Secret::parse(&secret).is_some())
        {
            return Err(StateError::damaged(root.at(CONFIG), "it is not a JSON object"));
        }
        return Err(foreign("its `config.json` is not a JSON object"));
    };
    if fields.get("kind").and_then(Value::as_str) != Some(KIND) {
        return Err(foreign("its `config.json` does not say that it is"));
    }
    let version = fields.get("version").and_then(Value::as_u64).filter(|version| *version > 0);
    let version = version.ok_or_else(|| StateError::damaged(root.at(CONFIG), "it has no version"))?;
    let trusted = match fields.get("trustUid") {
        Some(Value::Array(uids)) => uids.iter().filter_map(Value::as_u64).collect(),
        Some(uid) => uid.as_u64().into_iter().collect(),
        None => vec![],
    };
    let network_allowed = fields.get("networkFilesystem").and_then(Value::as_str) == Some("allow");
    Ok(Some(Config { version, trusted, network_allowed }))
}

/// A secret without a `config.json` is a leftover as well.
fn is_leftover(entry: &Entry) -> bool {
    is_temporary(entry) || (entry.kind == Kind::File && entry.name == SECRET)
}

fn is_temporary(entry: &Entry) -> bool {
    match entry.kind {
        Kind::File => entry.name.starts_with(TEMP_PREFIX),
        Kind::Folder => entry.name.starts_with(WRITE_ONCE_PREFIX),
        Kind::Link | Kind::Other => false,
    }
}

/// Looks at a folder without `config.json`.
fn classify(root: &Dir) -> Result<Blank> {
    let mut foreign = None;
    let mut secret = false;
    let mut filled = None;
    for entry in root.list()? {
        let name = entry.name.as_str();
        if entry.kind == Kind::Folder && (name == TASKS || name == SESSIONS) {
            if root.child(name)?.is_some_and(|dir| !super::evidence::is_empty(&dir).unwrap_or(false)) {
                filled = Some(format!("`{CONFIG}` is missing, though `{name}` holds something"));
            }
        } else if is_leftover(&entry) {
            secret |= name == SECRET;
        } else if name != LOST_AND_FOUND {
            foreign = Some(format!("it has no `{CONFIG}`, and holds `{}`", name.escape_debug()));
        }
    }
    Ok(match (filled, foreign) {
        (Some(_), Some(foreign)) if !secret => Blank::Foreign(foreign),
        (Some(filled), _) => Blank::Damaged(filled),
        (None, Some(foreign)) => Blank::Foreign(foreign),
        (None, None) => Blank::Unmade,
    })
}

/// What a reader is told about a folder without `config.json`.
fn unmade(root: &Dir) -> Result<StateError> {
    let path = root.path().to_owned();
    Ok(match classify(root)? {
        Blank::Unmade => StateError::NoRoot { path },
        Blank::Damaged(reason) => StateError::RootDamaged { path, reason },
        Blank::Foreign(reason) => StateError::ForeignRoot { path, reason },
    })
}

/// Makes a root in an empty folder, or where an earlier call died making one.
fn initialise(root: Dir) -> Result<Config> {
    // Before the lock: nothing in a folder of somebody else's is touched, not even locked.
    if !matches!(classify(&root)?, Blank::Unmade) {
        // Another call may have made it since `config.json` was looked for.
        return read_config(&root)?.map_or_else(|| Err(unmade(&root)?), Ok);
    }
    let mut deadline = Deadline::new(INIT_WAIT);
    let mut folder = root;
    let root = loop {
        folder = match try_lock(folder, Mode::Exclusive)? {
            Ok(locked) => break locked,
            Err(folder) => folder,
        };
        deadline.pause(|| format!("the root `{}`", folder.path().display()))?;
    };
    if let Some(config) = read_config(&root)? {
        return Ok(config);
    }
    if !matches!(classify(&root)?, Blank::Unmade) {
        return Err(unmade(&root)?);
    }
    make(&root)?;
    let missing = || StateError::damaged(root.at(CONFIG), "it is missing right after it was made");
    read_config(&root)?.ok_or_else(missing)
}

/// Everything in order, each durable before `config.json` says that it is there.
fn make(root: &Dir) -> Result<()> {
    sweep(root)?;
    root.make_private()?;
    for name in [TASKS, SESSIONS] {
        root.make(name)?.make_private()?;
    }
    let key = disk::random::<32>()?;
    root.temp_with(format!("{}\n", hex(&key)).as_bytes())?.rename_to(SECRET)?;
    root.sync()?;
    if let Some(parent) = root.path().parent() {
        // A call that died may have made the folder without making it durable.
        Dir::open(parent)?.sync()?;
    }
    let config = format!("{{\"kind\":\"{KIND}\",\"version\":{CONFIG_VERSION}}}\n");
    let written = disk::write_once(&root.at(CONFIG), config.as_bytes());
    // Its error does not tell which side of the rename it is from; looking does.
    if written.is_err() && super::evidence::is_file(root, CONFIG)? {
        return written.map_err(StateError::after_visible);
    }
    written?;
    // `write_once` removes its temporary folder without making that durable.
    root.sync().map_err(StateError::after_visible)
}

/// Removes what an initialisation has left that died between its commit point and its end. Whoever is still at
/// it holds the lock of the root. A leftover does no harm, so failing to remove it is no reason to fail.
fn sweep_made(root: Dir) {
    if !root.list().is_ok_and(|entries| entries.iter().any(is_temporary)) {
        return;
    }
    if let Ok(Ok(root)) = try_lock(root, Mode::Exclusive) {
        drop(remove_all(&root, is_temporary));
    }
}

/// Removes what an initialisation that died before its commit point has left.
fn sweep(root: &Dir) -> Result<()> {
    remove_all(root, is_leftover)
}

fn remove_all(root: &Dir, unwanted: impl Fn(&Entry) -> bool) -> Result<()> {
    for entry in root.list()?.into_iter().filter(unwanted) {
        if entry.kind == Kind::File {
            root.remove(&entry.name)?;
            continue;
        }
        remove_write_once(root, &entry.name)?;
    }
    Ok(())
}

/// Removes a temporary folder of `write_once`, which holds one file at the most.
fn remove_write_once(root: &Dir, name: &str) -> Result<()> {
    if root.remove_folder(name).is_ok() {
        return Ok(());
    }
    if let Some(dir) = root.child(name)? {
        for inner in dir.list()?.iter().filter(|inner| inner.kind == Kind::File) {
            dir.remove(&inner.name)?;
        }
    }
    root.remove_folder(name)
}
