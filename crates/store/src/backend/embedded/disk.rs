//! The directory of a store: every touch of the file system goes through here, so that tests can make it fail.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::{DiskUse, Revision};

pub(super) const LOG: &str = "log";
pub(super) const CHECKPOINT: &str = "checkpoint";
const UNFINISHED: &str = "unfinished";
const RESERVE: &str = "reserve";

#[derive(Clone)]
pub(super) struct Disk {
    dir: Arc<Path>,
    needed: Arc<Mutex<Needed>>,
    #[cfg(test)]
    pub(super) faults: Arc<super::tests::faults::DiskFaults>,
}

/// The files of which none may be missing when the store is opened again, and which each of them is.
type Needed = BTreeMap<PathBuf, FileId>;

/// Device and inode: another file under the same name has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }
}

impl Disk {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.into(),
            needed: Arc::default(),
            #[cfg(test)]
            faults: Arc::default(),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn path(&self, revision: Revision, kind: &str) -> PathBuf {
        // Of one width, so that names sort as revisions do.
        self.dir.join(format!("{revision:020}.{kind}"))
    }

    /// Only the owner may read what is kept: there are secrets in it.
    pub(super) fn create_dir(&self) -> io::Result<()> {
        if self.dir.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        match self.dir.parent().filter(|it| !it.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => Ok(()),
        }
    }

    pub(super) fn open_lock(&self) -> io::Result<File> {
        let path = self.dir.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
        self.need(&path, &lock)?;
        Ok(lock)
    }

    /// Was a restore begun here that has not come to its end?
    pub(super) fn is_half_restored(&self) -> io::Result<bool> {
        match fs::read(self.dir.join("lock")) {
            Ok(said) => Ok(said.starts_with(super::RESTORING)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// From now on this very file is to be there.
    pub(super) fn need(&self, path: &Path, file: &File) -> io::Result<()> {
        let id = FileId::of(&file.metadata()?);
        self.needed.lock().insert(path.to_owned(), id);
        Ok(())
    }

    /// Is every file there that the store will be read from? What is written to a file without a name is lost.
    ///
    /// # Errors
    /// The one that is not.
    pub(super) fn check(&self) -> io::Result<()> {
        // Nothing is removed by the store itself meanwhile.
        for (path, id) in &*self.needed.lock() {
            // Whoever writes is told it, too, and where the store is only its owner is to know.
            let name = path.file_name().unwrap_or_default().display();
            let gone = |what: &str| {
                let message =
                    format!("{name} was {what} while the store was open: put it back, nothing is written without it");
                Err(io::Error::other(message))
            };
            match fs::metadata(path) {
                Ok(metadata) if FileId::of(&metadata) == *id => {}
                Ok(_) => return gone("replaced"),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return gone("removed"),
                Err(error) => return Err(io::Error::new(error.kind(), format!("{name}: {error}"))),
            }
        }
        Ok(())
    }

    /// The files of a kind, oldest first. Leftovers of an unfinished one are deleted.
    pub(super) fn list(&self, kind: &str) -> io::Result<Vec<(Revision, PathBuf)>> {
        let mut found = Vec::new();
        for file in fs::read_dir(&self.dir)? {
            let path = file?.path();
            let extension = path.extension().and_then(|it| it.to_str());
            let revision = path.file_stem().and_then(|it| it.to_str()).and_then(|it| it.parse().ok());
            match (extension, revision) {
                (Some(UNFINISHED), _) => fs::remove_file(&path)?,
                (Some(extension), Some(revision)) if extension == kind => found.push((revision, path)),
                _ => {}
            }
        }
        found.sort();
        Ok(found)
    }

    /// How many bytes logs and checkpoints have.
    pub(super) fn used(&self) -> io::Result<u64> {
        let mut used = 0;
        for file in fs::read_dir(&self.dir)? {
            let file = file?;
            if file.path().extension().is_some_and(|it| it == LOG || it == CHECKPOINT) {
                // One may just have been removed.
                used += file.metadata().map_or(0, |it| it.len());
            }
        }
        Ok(used)
    }

    pub(super) fn disk_use(&self, is_refused: bool) -> io::Result<DiskUse> {
        let system = rustix::fs::statvfs(&*self.dir)?;
        let held = fs::metadata(self.dir.join(RESERVE)).map_or(0, |it| it.len());
        let blocks = |n: u64| n.saturating_mul(system.f_frsize);
        let (available, total) = (blocks(system.f_bavail), blocks(system.f_blocks));
        Ok(DiskUse { used: self.used()? + held, available, total, is_refused, is_quota: false })
    }

    /// Makes a file that nobody finds until [`Disk::finish`].
    pub(super) fn begin(&self, revision: Revision, kind: &str) -> io::Result<DiskFile> {
        let path = self.path(revision, kind).with_extension(format!("{kind}.{UNFINISHED}"));
        let file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(path)?;
        Ok(self.wrap(file))
    }

    /// As [`Disk::begin`], with the room of the reserve, which is gone then.
    pub(super) fn begin_in_reserve(&self, revision: Revision, kind: &str) -> io::Result<DiskFile> {
        let path = self.path(revision, kind).with_extension(format!("{kind}.{UNFINISHED}"));
        match fs::rename(self.dir.join(RESERVE), &path) {
            Ok(()) => Ok(self.wrap(OpenOptions::new().write(true).open(path)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.begin(revision, kind),
            Err(error) => Err(error),
        }
    }

    /// How many bytes this process may still write, as far as the file system tells.
    pub(super) fn free(&self) -> io::Result<u64> {
        #[cfg(test)]
        if let Some(free) = self.faults.free(&self.dir)? {
            return Ok(free);
        }
        let system = rustix::fs::statvfs(&*self.dir)?;
        Ok(system.f_bfree.saturating_mul(system.f_frsize))
    }

    /// The file is durable under its name when this returns.
    pub(super) fn finish(&self, file: &DiskFile, revision: Revision, kind: &str) -> io::Result<()> {
        file.sync()?;
        let path = self.path(revision, kind);
        fs::rename(path.with_extension(format!("{kind}.{UNFINISHED}")), &path)?;
        self.need(&path, &file.file)?;
        self.sync_dir()
    }

    /// Whatever there is of a file that could not be finished; what cannot be deleted now is at the next start.
    pub(super) fn abandon(&self, revision: Revision, kind: &str) {
        let path = self.path(revision, kind);
        for path in [path.with_extension(format!("{kind}.{UNFINISHED}")), path] {
            match self.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(%error, path = %path.display(), "cannot delete an unfinished file");
                }
                _ => {}
            }
        }
    }

    /// The file that holds room back. It may be lost: it holds nothing else.
    pub(super) fn open_reserve(&self) -> io::Result<DiskFile> {
        let path = self.dir.join(RESERVE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        Ok(self.wrap(file))
    }

    pub(super) fn open(&self, path: &Path) -> io::Result<DiskFile> {
        let file = OpenOptions::new().write(true).open(path)?;
        self.need(path, &file)?;
        Ok(self.wrap(file))
    }

    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        self.needed.lock().remove(path);
        fs::remove_file(path)
    }

    pub(super) fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }

    fn wrap(&self, file: File) -> DiskFile {
        DiskFile {
            file,
            #[cfg(test)]
            dir: self.dir.clone(),
            #[cfg(test)]
            faults: self.faults.clone(),
        }
    }
}

pub(super) struct DiskFile {
    file: File,
    #[cfg(test)]
    dir: Arc<Path>,
    #[cfg(test)]
    faults: Arc<super::tests::faults::DiskFaults>,
}

impl DiskFile {
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        #[cfg(test)]
        self.faults.write(bytes, |part| self.file.write_all_at(part, offset))?;
        #[cfg(test)]
        self.faults.grow(&self.dir, &self.file, offset + bytes.len() as u64)?;
        self.file.write_all_at(bytes, offset)
    }

    /// As `fdatasync`, which includes a changed length.
    pub(super) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        self.faults.sync()?;
        self.file.sync_data()
    }

    /// Makes room, and with it the file longer by zeros: a write that changes no length is durable sooner.
    pub(super) fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        #[cfg(test)]
        self.faults.truncate().and_then(|()| self.faults.grow(&self.dir, &self.file, offset + length))?;
        Ok(rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::empty(), offset, length)?)
    }

    /// How long the file is.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(super) fn truncate(&self, length: u64) -> io::Result<()> {
        #[cfg(test)]
        self.faults.truncate()?;
        self.file.set_len(length)
    }
}
