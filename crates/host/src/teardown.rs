//! Takes everything from the machine that a node put there: no process, mount, network, cgroup or rule is left.

use std::{fs, io, path::Path, time::Duration};

use crate::{
    Cgroups, Containerd, Cri, HostError, Layout, NodeMounts, Options, cni, containerd,
    error::Doing,
    logind, mounts, shims,
    tree::{self, Bound},
};
use futures_util::future::join_all;

/// What containers get to end by themselves when the node goes down.
const GRACE: Duration = Duration::from_secs(5);
/// What the runtime gets for all of it. One that hangs shall not keep the node from going down.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// What removing all data gets: a person waits for it, however much there is.
const REMOVE_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Stops all Pods and the runtime. Images, volumes on disk and the cluster's data stay.
pub async fn stop_all(layout: &Layout) -> Result<(), HostError> {
    if NodeMounts::find(layout).is_some() {
        // A runtime that died may have left Pods, which only it can end in good order.
        if containerd::running(layout).is_none() {
            drop(Containerd::start(layout.clone(), Options::default()).await);
        }
        if containerd::running(layout).is_some() {
            let cri = Cri::connect(&layout.containerd_socket())?;
            if tokio::time::timeout(STOP_PATIENCE, stop_pods(&cri)).await.is_err() {
                tracing::warn!("the runtime does not stop the pods in {STOP_PATIENCE:?}; they are killed");
            }
        }
    }
    let ending = layout.clone();
    let ended = tokio::task::spawn_blocking(move || {
        containerd::end(&ending);
        shims::of(&ending.containerd_socket()).iter().for_each(shims::Shim::kill);
        let cgroups = Cgroups::detect(&ending.cgroup_root);
        [ending.cgroup_root.clone(), containerd::cgroup(&ending)].iter().try_for_each(|it| cgroups.remove(it))
    });
    ended.await.map_err(io::Error::other).and_then(|it| it).doing("remove the cgroups of", &layout.run)?;
    if let Some(mounts) = NodeMounts::find(layout) {
        let places = [layout.run.clone(), layout.data.clone()];
        let unmounted = mounts.run(move || places.iter().try_for_each(|it| mounts::unmount_beneath(it))).await;
        unmounted.and_then(|it| it).doing("unmount what is beneath", &layout.data)?;
    }
    NodeMounts::release(layout);
    logind::forget();
    // The rest of the data may hold disks that the machine's owner mounted there.
    for place in [layout.run.clone(), layout.containerd_root(), layout.pods()] {
        mounts::unmount_beneath(&place).doing("unmount what is beneath", &place)?;
    }
    cni::remove(layout).await?;
    clear(layout)
}

/// Erases all data of the node and its cluster. Everything must be stopped.
pub fn erase(layout: &Layout) -> Result<(), HostError> {
    for place in [&layout.run, &layout.data] {
        // Removing through a mount would empty what is mounted.
        if let Some(mount) = mounts::mounts_beneath(place).first() {
            return Err(HostError::Missing(format!("{} is still mounted; unmount it first", mount.display())));
        }
        if mounts::is_mount_point(place) {
            // The disk stays where its owner mounted it.
            for entry in fs::read_dir(place).doing("read", place)? {
                remove(&entry.doing("read", place)?.path())?;
            }
        } else {
            remove(place)?;
        }
    }
    Ok(())
}

/// Ends all containers at once, each with its grace, then the sandboxes. What fails here is killed afterwards.
async fn stop_pods(cri: &Cri) {
    let containers = cri.list_containers(None).await.unwrap_or_default();
    let stopped = join_all(containers.iter().map(|it| cri.stop_container(&it.id, GRACE))).await;
    let sandboxes = cri.list_pod_sandboxes(None).await.unwrap_or_default();
    let removed = join_all(sandboxes.iter().map(|it| async {
        cri.stop_pod_sandbox(&it.id).await?;
        cri.remove_pod_sandbox(&it.id).await
    }))
    .await;
    for error in stopped.into_iter().chain(removed).filter_map(Result::err) {
        tracing::warn!(%error, "a pod did not stop in good order");
    }
}

/// Removes what is below `run` and of use only to a running node.
fn clear(layout: &Layout) -> Result<(), HostError> {
    for path in [
        layout.containerd_state(),
        layout.containerd_config(),
        layout.containerd_pid(),
        layout.containerd_socket(),
        layout.run.join("containerd.sock.ttrpc"),
        layout.run.join("runc"),
        layout.run.join("crun"),
        layout.run.join("cni"),
        layout.run.join("ns"),
    ] {
        remove(&path)?;
    }
    // Only when nothing else is in them. Shims keep their sockets in a place of their own, whoever's they are.
    for folder in [layout.run.as_path(), Path::new("/run/containerd/s"), Path::new("/run/containerd")] {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), HostError> {
    tree::remove_within(path, &mut Bound::of_time(REMOVE_PATIENCE)).doing("remove", path)
}

#[cfg(test)]
mod tests {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

    use super::*;

    #[tokio::test]
    async fn a_disk_of_the_owner_stays_mounted() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let mut layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        layout.cgroup_root = format!("corten-teardown-{}", std::process::id());
        let disk = |at: &Path| mount("tmpfs", at, "tmpfs", MountFlags::empty(), None).expect("mounted");
        fs::create_dir_all(&layout.data).expect("a folder");
        disk(&layout.data);
        fs::write(layout.data.join("admin.kubeconfig"), "keys").expect("written");
        let (store, left) = (layout.data.join("store"), layout.pods().join("left-behind"));
        for folder in [&store, &left] {
            fs::create_dir_all(folder).expect("a folder");
            disk(folder);
        }

        stop_all(&layout).await.expect("stopped");
        assert!(mounts::is_mount_point(&layout.data) && mounts::is_mount_point(&store), "the owner's disks");
        assert!(!mounts::is_mount_point(&left), "a mount for a pod");

        erase(&layout).expect_err("it would empty a disk that is not known");
        unmount(&store, UnmountFlags::empty()).expect("unmounted");
        erase(&layout).expect("erased");
        assert!(mounts::is_mount_point(&layout.data));
        assert_eq!(fs::read_dir(&layout.data).expect("read").count(), 0);
        unmount(&layout.data, UnmountFlags::empty()).expect("unmounted");
    }
}
