//! Volumes that the kernel mounts, and no driver: a folder or a disk of the machine, a folder of an NFS server.

use std::{
    fs,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    time::Instant,
};

use corten_kubelet::PersistentMount;
use corten_machine::mounts;
use rustix::mount::MountFlags;

use super::{MountError, Mounter, Placed, record_for_pod, refused};
use crate::{
    Fault,
    file_system::{self, Kind},
    mount_options, nfs,
    records::{self, Record},
    with_faults_named,
};

const LOCAL: &str = "local-volume";
const NFS: &str = "nfs";

/// Unmounts and removes the place of one volume.
type TakeAway = fn(&Path) -> Result<(), Fault>;

impl Mounter {
    /// A folder of the machine, or a disk of it.
    pub(super) async fn local(
        &self,
        uid: &str,
        mount: &PersistentMount,
        path: &str,
        fs_type: &str,
    ) -> Result<Option<Placed>, MountError> {
        let (source, target) = (PathBuf::from(path), self.path(uid, LOCAL, &mount.name)?);
        if source.components().any(|it| it == std::path::Component::ParentDir) || !source.is_absolute() {
            return Err(MountError::Refused(format!("invalid path: {path} {:?}", target.display())));
        }
        let (is_block, note) = (mount.is_block, self.note(uid, LOCAL, mount)?);
        let (options, read_only, kind) = (mount.mount_options.clone(), mount.read_only, fs_type.to_owned());
        self.there("local volume", move || {
            let is_device = fs::metadata(&source).is_ok_and(|it| it.file_type().is_block_device());
            if is_block {
                let why = || Fault::internal(format!("{} is not a block device", source.display()));
                return if is_device { Ok(None) } else { Err(why()) };
            }
            if !source.exists() {
                return Err(Fault::internal(format!("path {:?} does not exist", source.display())));
            }
            let is_new = !mounts::is_mount_point(&target);
            records::write(&note.0, &note.1)?;
            with_faults_named(fs::create_dir_all(&target), "make the mount's place")?;
            if is_device && is_new {
                mount_disk(&source, &target, &kind, &options)?;
            }
            let flags = mount_options::parse(&options).flags;
            let flags = if read_only { flags | MountFlags::RDONLY } else { flags };
            if !is_device {
                file_system::bind(&source, &target, flags)?;
            }
            // A disk that is mounted at the source later would else be unmounted there with the Pod.
            if !is_device && is_new {
                file_system::only_follow(&target)?;
            }
            Ok(Some(Placed { path: target, is_new, driver_gives_group: false }))
        })
        .await
    }

    /// What is written down of a mount of the kernel's, for who tells of it, and where.
    pub(super) fn note(
        &self,
        uid: &str,
        plugin: &str,
        mount: &PersistentMount,
    ) -> Result<(PathBuf, Record), MountError> {
        let folder = self.records.kernel_folder(uid, plugin, &mount.name).map_err(refused)?;
        let record = Record { name: mount.name.clone(), ..Record::default() };
        Ok((folder, record_for_pod(record, mount)))
    }

    pub(super) async fn nfs(
        &self,
        uid: &str,
        mount: &PersistentMount,
        server: &str,
        path: &str,
    ) -> Result<Placed, MountError> {
        let target = self.path(uid, NFS, &mount.name)?;
        let address = nfs::address(server).await.map_err(|fault| MountError::Driver { doing: "nfs", fault })?;
        let (server, path, options) = (server.to_owned(), path.to_owned(), mount.mount_options.clone());
        let (read_only, note) = (mount.read_only, self.note(uid, NFS, mount)?);
        self.there("nfs", move || {
            let is_new = !mounts::is_mount_point(&target);
            records::write(&note.0, &note.1)?;
            with_faults_named(fs::create_dir_all(&target), "make the mount's place")?;
            nfs::mount_folder(&server, address, &path, &target, &options, read_only)?;
            Ok(Placed { path: target, is_new, driver_gives_group: false })
        })
        .await
    }

    /// What a Pod was given of them. A server that is away is not asked.
    pub(super) async fn take_kernels_away(&self, uid: &str) -> Result<(), MountError> {
        self.take_all_away(uid, LOCAL, file_system::remove_place).await?;
        self.take_all_away(uid, NFS, file_system::let_go).await
    }

    async fn take_all_away(&self, uid: &str, plugin: &'static str, take_away: TakeAway) -> Result<(), MountError> {
        let folder = self.records.published_folder(uid, plugin, "x").map_err(refused)?;
        let notes = self.records.kernel_folder(uid, plugin, "x").map_err(refused)?;
        let operations = self.operations.clone();
        self.there("unmount", move || {
            let take_away = |place: &Path| {
                let begun = Instant::now();
                let taken = take_away(place);
                let plugin = format!("kubernetes.io/{plugin}");
                operations.note(&plugin, "volume_unmount", begun.elapsed(), taken.is_ok());
                taken
            };
            let within = |it: &Path| {
                let entries = it.parent().and_then(|it| fs::read_dir(it).ok()).into_iter().flatten().flatten();
                entries.map(|it| it.path())
            };
            within(&folder).try_for_each(|it| take_away(&it))?;
            within(&notes).try_for_each(|it| records::forget(&it))
        })
        .await
    }
}

fn mount_disk(device: &Path, target: &Path, fs_type: &str, options: &[String]) -> Result<(), Fault> {
    let kind = Kind::parse(fs_type)?;
    // A disk that holds anything is never made anew.
    if crate::program::run_to_end("blkid", &["-p", crate::loop_device::text(device)?])?.code == Some(2) {
        kind.make(device)?;
    }
    kind.check(device)?;
    kind.mount(device, target, options)
}
