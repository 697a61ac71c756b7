//! Takes everything from the machine that a node put there: no process, mount, network, cgroup or rule is left.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use corten_machine::{
    Cgroups, Doing, Layout, MachineError, NodeMounts, could_be_a_nodes,
    folders::own_folder::{self, NodeFolder},
    logind, mounts,
    tree::{self, WalkBudget},
};
use corten_network::cni;
use futures_util::future::join_all;

use crate::{Containerd, Cri, Options, containerd, shims};

/// What containers get to end by themselves when the node goes down.
const GRACE: Duration = Duration::from_secs(5);
/// What the runtime gets for all of it. One that hangs shall not keep the node from going down.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// What removing all data gets: a person waits for it, however much there is.
const REMOVE_PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Stops all Pods and the runtime. Images, volumes on disk and the cluster's data stay.
///
/// # Errors
/// As of [`could_be_a_nodes`], before anything is touched; also what could not be taken away.
pub async fn stop_all(layout: &Layout) -> Result<(), MachineError> {
    could_be_a_nodes(layout)?;
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
        Cgroups::every(&ending).iter().try_for_each(|it| it.remove_all().and_then(|()| it.remove_runtime()))
    });
    ended.await.map_err(io::Error::other).and_then(|it| it).doing("remove the cgroups of", &layout.run)?;
    if let Some(mounts) = NodeMounts::find(layout) {
        let places = [layout.run.clone(), layout.data.clone()];
        let unmounted = mounts.run(move || places.iter().try_for_each(|it| mounts::unmount_beneath(it))).await;
        unmounted.and_then(|it| it).doing("unmount what is beneath", &layout.data)?;
    }
    NodeMounts::release(layout);
    corten_volumes::detach_all(layout);
    corten_volumes::forget_drivers_root(layout);
    logind::forget();
    // The rest of the data may hold disks that the machine's owner mounted there.
    for place in [layout.run.clone(), layout.containerd_root(), layout.pods()] {
        mounts::unmount_beneath(&place).doing("unmount what is beneath", &place)?;
    }
    // What cannot be taken back of others' filters keeps nothing of Corten's own there.
    let withdrawn = corten_network::withdraw(layout).await;
    cni::remove(layout).await?;
    clear(layout)?;
    withdrawn
}

/// Would [`erase`] erase anything that is not Corten's?
///
/// # Errors
/// Yes: a folder is not a cluster's.
pub fn may_be_erased(layout: &Layout) -> Result<(), MachineError> {
    places(layout).into_iter().try_for_each(|(place, path)| own_folder::erasure(place, path).map(drop))
}

/// Erases all data of the node and its cluster. Everything must be stopped. Answers what its owner put beside it, which stays.
///
/// # Errors
/// As of [`may_be_erased`], before anything is touched; also what could not be removed.
pub fn erase(layout: &Layout) -> Result<Vec<PathBuf>, MachineError> {
    may_be_erased(layout)?;
    // What drivers of others mounted for the node is as little its data as its Pods' volumes are: it stays on their disks.
    let staged = layout.staged_volumes();
    mounts::unmount_beneath(&staged).doing("unmount what is beneath", &staged)?;
    let mut kept = Vec::new();
    for (of, place) in places(layout) {
        // Removing through a mount would empty what is mounted.
        match mounts::mounts_beneath(place).as_slice() {
            [] => {}
            [mount] => {
                return Err(MachineError::Missing(format!("{} is still mounted; unmount it first", mount.display())));
            }
            mounts => {
                let all: Vec<_> = mounts.iter().map(|it| it.display().to_string()).collect();
                return Err(MachineError::Missing(format!("still mounted; unmount them first: {}", all.join(", "))));
            }
        }
        let erasure = own_folder::erasure(of, place)?;
        // The disk stays where its owner mounted it.
        if mounts::is_mount_point(place) || !erasure.kept.is_empty() {
            erasure.removed.iter().try_for_each(|it| remove(it))?;
        } else {
            remove(place)?;
        }
        kept.extend(erasure.kept);
    }
    Ok(kept)
}

fn places(layout: &Layout) -> [(NodeFolder, &Path); 2] {
    [(NodeFolder::Data, &layout.data), (NodeFolder::Run, &layout.run)]
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
fn clear(layout: &Layout) -> Result<(), MachineError> {
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
    own_folder::leave(&layout.run);
    // Only when nothing else is in them. Shims keep their sockets in a place of their own, whoever's they are.
    for folder in ["/run/containerd/s", "/run/containerd"] {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

fn remove(path: &Path) -> Result<(), MachineError> {
    tree::remove_within(path, &mut WalkBudget::of_time(REMOVE_PATIENCE)).doing("remove", path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

    use super::*;
    use corten_machine::{close_data, close_run};

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
        let kept = dir.path().join("volume");
        let staged = layout.staged_volumes().join("driver/volume/globalmount");
        for folder in [&kept, &staged] {
            fs::create_dir_all(folder).expect("a folder");
        }
        fs::write(kept.join("rows"), "dear").expect("written");
        mount_bind(&kept, &staged).expect("mounted");
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
        assert_eq!(fs::read_to_string(kept.join("rows")).expect("read"), "dear", "of another's volume");
        unmount(&layout.data, UnmountFlags::empty()).expect("unmounted");
    }

    /// The folders of a machine that has a `log` in the one and a `containerd` in the other.
    fn somebodys(dir: &Path, data: u32, run: u32) -> Layout {
        let layout = Layout::new(dir.join("var"), dir.join("run"));
        for (path, mode, ours) in [(&layout.data, data, "pki"), (&layout.run, run, "containerd")] {
            for it in [ours, "log"] {
                fs::create_dir_all(path.join(it)).expect("made");
            }
            fs::write(path.join("log/mail"), "dear").expect("written");
            fs::write(path.join("thesis.tex"), "").expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
        }
        layout
    }

    #[tokio::test]
    async fn what_is_anothers_is_neither_stopped_nor_erased() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (n, (data, run)) in [(0o755, 0o755), (0o700, 0o755), (0o755, 0o700)].into_iter().enumerate() {
            let layout = somebodys(&dir.path().join(n.to_string()), data, run);
            let error = stop_all(&layout).await.expect_err("refused").to_string();
            assert!(error.contains("holds what is not Corten's"), "{error}");
            let error = erase(&layout).expect_err("refused").to_string();
            assert!(error.contains("thesis.tex: nothing was erased"), "{error}");
            for path in [&layout.data, &layout.run] {
                assert!(path.join("log/mail").exists() && path.join("thesis.tex").exists());
            }
            assert!(layout.run.join("containerd").exists() && layout.data.join("pki").exists());
        }
    }

    #[test]
    fn what_its_owner_put_beside_a_cluster_stays() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        close_data(&layout.data).expect("made");
        close_run(&layout.run).expect("made");
        for it in ["store", "images"] {
            fs::create_dir(layout.data.join(it)).expect("made");
        }
        let mine = layout.data.join("audit.log");
        fs::write(&mine, "").expect("written");
        assert_eq!(erase(&layout).expect("erased"), std::slice::from_ref(&mine));
        let left = fs::read_dir(&layout.data).expect("read").count();
        assert_eq!((left, layout.run.exists()), (2, false), "what is mine, and the mark");
        fs::remove_file(&mine).expect("removed");
        assert_eq!(erase(&layout).expect("erased"), Vec::<PathBuf>::new());
        assert!(!layout.data.exists());
    }
}
