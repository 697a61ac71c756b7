//! The folders of a Pod: its volumes, beneath `pods/<uid>`, in the kubelet's layout.
//!
//! All of it happens in the node's mount namespace, where containers see it.

mod atomic_writer;
mod beneath;
mod group;
mod host_path;

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use corten_kubelet::{HostPathType, Hosts, Medium, VolumeFile};
use corten_machine::{Layout, NodeMounts, mounts, tree};
use rustix::{
    fs::{Mode, OFlags},
    mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount},
};

use crate::pod_files;

/// `MaxContainerTerminationMessageLength`: what is kept of a container's last words.
const TERMINATION_MESSAGE_BYTES_MAX: u64 = 4096;
/// A file of variables that is larger is none.
const ENV_FILE_BYTES_MAX: u64 = 1 << 20;
/// All that one container's variables are read from: no environment is as large, and one file may have many names.
const ENV_FILES_BYTES_MAX: usize = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum VolumeError {
    /// The Pod asks for what the machine has not, in upstream's words.
    #[error("{0}")]
    Refused(String),
    #[error("{doing}: {cause}")]
    Io { doing: String, cause: io::Error },
}

/// Makes and removes Pods' folders.
#[derive(Clone, Debug)]
pub struct Volumes {
    layout: Layout,
    mounts: NodeMounts,
}

impl Volumes {
    pub fn new(layout: Layout, mounts: NodeMounts) -> Self {
        Self { layout, mounts }
    }

    /// A folder for the Pod alone. What is in it already stays.
    /// `size`: the bytes of memory it may take; half of the machine's where there is none.
    pub async fn empty_dir(
        &self,
        uid: &str,
        name: &str,
        medium: Medium,
        size: Option<u64>,
        mode: u32,
    ) -> Result<PathBuf, VolumeError> {
        let path = self.volume(uid, "empty-dir", name)?;
        self.there(move || {
            fs::create_dir_all(&path).doing("create", &path)?;
            match medium {
                Medium::Disk => {}
                Medium::Memory => mount_memory(&path, size, mode)?,
                Medium::HugePages { page_bytes } => mount_huge_pages(&path, page_bytes)?,
            }
            set_mode(&path, mode)?;
            Ok(path)
        })
        .await
    }

    /// A path of the machine, checked against the type the Pod wants.
    pub async fn host_path(&self, path: &Path, kind: HostPathType) -> Result<PathBuf, VolumeError> {
        let path = path.to_owned();
        self.there(move || host_path::check(kind, &path).map(|()| path)).await
    }

    /// A folder of files that change all at once (configMap, secret, downwardAPI, projected). Files not named any more go.
    ///
    /// `plugin` is upstream's name for the kind of volume: `configmap`, `secret`, `downward-api`, `projected`.
    pub async fn write_files(
        &self,
        uid: &str,
        plugin: &str,
        name: &str,
        files: Vec<VolumeFile>,
    ) -> Result<PathBuf, VolumeError> {
        let path = self.volume(uid, plugin, name)?;
        // What may hold a secret never reaches the disk.
        let in_memory = matches!(plugin, "secret" | "projected");
        self.there(move || {
            fs::create_dir_all(&path).doing("create", &path)?;
            if in_memory {
                mount_memory(&path, None, 0o777)?;
            }
            set_mode(&path, 0o777)?;
            atomic_writer::write(&path, &files).doing("write the files of", &path)?;
            Ok(path)
        })
        .await
    }

    /// Gives everything in a volume to a group (`fsGroup`): readable by it, new files too, and writable unless nobody may
    /// write there.
    pub async fn set_group(&self, volume: &Path, gid: u32, read_only: bool) -> Result<(), VolumeError> {
        let volume = volume.to_owned();
        self.there(move || group::give(&volume, gid, read_only).doing("give to the group", &volume)).await
    }

    /// The same, and nothing where the volume's top folder is as it must be.
    pub async fn set_group_on_root_mismatch(
        &self,
        volume: &Path,
        gid: u32,
        read_only: bool,
    ) -> Result<(), VolumeError> {
        let volume = volume.to_owned();
        self.there(move || group::give_on_root_mismatch(&volume, gid, read_only).doing("give to the group", &volume))
            .await
    }

    /// A part of a volume, for one mount of one container. It is bound, so that nothing that happens to the volume's
    /// links afterwards leads the container elsewhere. A folder that is not there is made.
    pub async fn sub_path(
        &self,
        uid: &str,
        container: &str,
        index: usize,
        volume: &Path,
        sub_path: &str,
    ) -> Result<PathBuf, VolumeError> {
        let target = self.pod(uid)?.join("volume-subpaths").join(name_of(container)?).join(index.to_string());
        let (volume, sub_path) = (volume.to_owned(), sub_path.to_owned());
        self.there(move || {
            let source = beneath::open_or_create(&volume, &sub_path)
                .map_err(|it| beneath::explain(&sub_path, it))
                .doing("open the subPath of", &volume)?;
            let stat = rustix::fs::fstat(&source).doing("look at", &volume)?;
            let is_folder = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
            while unmount(&target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_ok() {}
            place(&target, is_folder).doing("create", &target)?;
            let source = format!("/proc/self/fd/{}", rustix::fd::AsRawFd::as_raw_fd(&source));
            mount_bind(source, &target).doing("bind", &target)?;
            Ok(target)
        })
        .await
    }

    /// What files of a Pod's emptyDirs hold: volume and path beneath it. Nothing for one that is not there.
    pub async fn read_files(
        &self,
        uid: &str,
        files: Vec<(String, String)>,
    ) -> Result<BTreeMap<(String, String), Option<Vec<u8>>>, VolumeError> {
        let (mut read, mut n_bytes) = (BTreeMap::new(), 0_usize);
        for (name, path) in files {
            let volume = self.volume(uid, "empty-dir", &name)?;
            let wanted = path.clone();
            let content =
                self.there(move || beneath::read(&volume, &wanted, ENV_FILE_BYTES_MAX).doing("read from", &volume));
            let content: Option<Vec<u8>> = content.await?;
            n_bytes = n_bytes.saturating_add(content.as_ref().map_or(0, Vec::len));
            if n_bytes > ENV_FILES_BYTES_MAX {
                return Err(VolumeError::Refused(format!(
                    "files of environment variables come to more than {ENV_FILES_BYTES_MAX} bytes"
                )));
            }
            read.insert((name, path), content);
        }
        Ok(read)
    }

    /// The Pod's `/etc/hosts`.
    pub async fn hosts_file(&self, uid: &str, hosts: &Hosts) -> Result<PathBuf, VolumeError> {
        let (path, text) = (self.pod(uid)?.join("etc-hosts"), pod_files::hosts_file(hosts));
        beside(move || {
            make_parent(&path)?;
            // In place: containers have this very file mounted.
            fs::write(&path, text).doing("write", &path)?;
            set_mode(&path, 0o644)?;
            Ok(path)
        })
        .await
    }

    /// The file a container may leave its last words in.
    pub async fn termination_log(&self, uid: &str, container: &str, attempt: u32) -> Result<PathBuf, VolumeError> {
        let path = self.pod(uid)?.join("containers").join(name_of(container)?).join(attempt.to_string());
        beside(move || {
            make_parent(&path)?;
            fs::write(&path, "").doing("create", &path)?;
            set_mode(&path, 0o666)?;
            Ok(path)
        })
        .await
    }

    /// The end of a termination log; nothing where there is none.
    pub async fn read_termination_log(&self, path: &Path) -> String {
        let path = path.to_owned();
        let read = self.there(move || {
            // The container may have put anything there: a pipe would be waited for, a link would lead out.
            let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
            let file = fs::File::from(
                rustix::fs::open(&path, flags, Mode::empty()).map_err(io::Error::from).doing("open", &path)?,
            );
            let entry = file.metadata().doing("look at", &path)?;
            if !entry.is_file() {
                return Err(VolumeError::Refused(format!("{} is no file", path.display())));
            }
            let size = entry.len();
            let mut text = vec![0; usize::try_from(size.min(TERMINATION_MESSAGE_BYTES_MAX)).unwrap_or(0)];
            let start = size.saturating_sub(TERMINATION_MESSAGE_BYTES_MAX);
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut text, start).doing("read", &path)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        });
        read.await.unwrap_or_default()
    }

    /// Unmounts the parts of volumes that its containers were given. Harmless when there are none.
    pub async fn remove_sub_paths(&self, uid: &str) -> Result<(), VolumeError> {
        let path = self.pod(uid)?.join("volume-subpaths");
        self.there(move || mounts::unmount_beneath(&path).doing("unmount what is beneath", &path)).await
    }

    /// Removes all folders of a Pod; what was mounted there is unmounted first. Harmless when there are none.
    pub async fn remove_pod(&self, uid: &str) -> Result<(), VolumeError> {
        let path = self.pod(uid)?;
        self.there(move || {
            mounts::unmount_beneath(&path).doing("unmount what is beneath", &path)?;
            // Removing through a mount would empty what is mounted.
            if let Some(mount) = mounts::mounts_beneath(&path).first() {
                return Err(VolumeError::Refused(format!("{} cannot be unmounted", mount.display())));
            }
            tree::remove(&path).doing("remove", &path)
        })
        .await
    }

    /// The uids of all Pods that have folders.
    pub async fn pod_uids(&self) -> Vec<String> {
        let pods = self.layout.pods();
        let listed = self.there(move || {
            let entries = fs::read_dir(&pods).into_iter().flatten().flatten();
            Ok(entries.map(|it| it.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>())
        });
        let mut uids = listed.await.unwrap_or_default();
        uids.sort();
        uids
    }

    fn pod(&self, uid: &str) -> Result<PathBuf, VolumeError> {
        Ok(self.layout.pods().join(name_of(uid)?))
    }

    /// Where a volume lies.
    pub(crate) fn volume(&self, uid: &str, plugin: &str, name: &str) -> Result<PathBuf, VolumeError> {
        let plugin = format!("kubernetes.io~{}", name_of(plugin)?);
        Ok(self.pod(uid)?.join("volumes").join(plugin).join(name_of(name)?))
    }

    async fn there<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        let entered = self.mounts.run(work).await;
        entered.map_err(|cause| VolumeError::Io { doing: "enter the node's mount namespace".to_owned(), cause })?
    }
}

/// Work on plain files, which look the same from every mount namespace: a new thread to enter one is spared.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, VolumeError> + Send + 'static,
) -> Result<T, VolumeError> {
    tokio::task::spawn_blocking(work).await.doing("work on", Path::new("a Pod's files"))?
}

/// Adds what was being done to what.
trait Doing<T> {
    fn doing(self, doing: &str, path: &Path) -> Result<T, VolumeError>;
}

impl<T, E: Into<io::Error>> Doing<T> for Result<T, E> {
    fn doing(self, doing: &str, path: &Path) -> Result<T, VolumeError> {
        self.map_err(|it| VolumeError::Io { doing: format!("{doing} {}", path.display()), cause: it.into() })
    }
}

/// A name that is one step of a path. The API server has checked it; a path is too dangerous to rely on that.
fn name_of(name: &str) -> Result<&str, VolumeError> {
    match name {
        "" | "." | ".." => Err(VolumeError::Refused(format!("{name:?} is not a name"))),
        name if name.contains(['/', '\0']) => Err(VolumeError::Refused(format!("{name:?} is not a name"))),
        name => Ok(name),
    }
}

fn make_parent(path: &Path) -> Result<(), VolumeError> {
    let parent = path.parent().expect("every path here lies beneath the node's folder");
    fs::create_dir_all(parent).doing("create", parent)
}

/// The process's umask does not reach what Pods are promised.
fn set_mode(path: &Path, mode: u32) -> Result<(), VolumeError> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).doing("set the mode of", path)
}

fn mount_memory(path: &Path, size: Option<u64>, mode: u32) -> Result<(), VolumeError> {
    if mounts::is_mount_point(path) {
        return Ok(());
    }
    let size = size.map(|it| format!("size={it},")).unwrap_or_default();
    let options = std::ffi::CString::new(format!("{size}mode={mode:o}")).expect("digits hold no zero byte");
    mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())
        .doing("mount memory at", path)
}

/// Nothing of it is taken before a container writes: the pages are those its limits count.
fn mount_huge_pages(path: &Path, page_bytes: u64) -> Result<(), VolumeError> {
    if mounts::is_mount_point(path) {
        return Ok(());
    }
    let options = std::ffi::CString::new(format!("pagesize={page_bytes}")).expect("digits hold no zero byte");
    mount("hugetlbfs", path, "hugetlbfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str()).map_err(|it| {
        match it {
            rustix::io::Errno::NODEV => {
                VolumeError::Refused("this machine's kernel has no file system hugetlbfs".into())
            }
            rustix::io::Errno::INVAL => {
                VolumeError::Refused(format!("this machine's kernel has no huge pages of {page_bytes} bytes"))
            }
            other => VolumeError::Io { doing: format!("mount huge pages at {}", path.display()), cause: other.into() },
        }
    })
}

/// Makes a place to bind a folder or a file to.
fn place(target: &Path, folder: bool) -> io::Result<()> {
    if folder {
        return fs::create_dir_all(target);
    }
    fs::create_dir_all(target.parent().unwrap_or(target))?;
    fs::OpenOptions::new().create(true).append(true).open(target).map(drop)
}

#[cfg(test)]
mod tests;
