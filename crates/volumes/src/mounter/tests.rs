//! What Pods are given, and what is left of it, with the built-in driver and real mounts.

use super::*;
use rustix::mount::MountFlags;

use crate::{CreateVolume, LOCAL_DRIVER, LocalDriver, Reserve, detach_all};

struct World {
    layout: Layout,
    mounts: NodeMounts,
    mounter: Mounter,
    _dir: tempfile::TempDir,
}

fn mounter(layout: &Layout, mounts: &NodeMounts) -> Mounter {
    let drivers = Drivers::default();
    drivers.add(Arc::new(LocalDriver::new(layout, mounts.clone(), "n1", Reserve::default())));
    Mounter::new(layout.clone(), mounts.clone(), drivers)
}

fn world() -> Option<World> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
    let mounts = NodeMounts::prepare(&layout).expect("a namespace");
    Some(World { mounter: mounter(&layout, &mounts), layout, mounts, _dir: dir })
}

impl World {
    async fn create(&self, name: &str) {
        let driver = self.mounter.drivers.get(LOCAL_DRIVER).expect("built in");
        let request = CreateVolume { name: name.into(), required_bytes: 8 << 20, ..CreateVolume::default() };
        driver.create(request).await.expect("made");
    }

    /// What is mounted beneath the node's data.
    fn mounted(&self) -> usize {
        let folder = self.layout.data.clone();
        self.mounts.run_blocking(move || mounts::mounts_beneath(&folder).len()).expect("entered")
    }

    /// Is this what is mounted, and how many files are disks? One that was let go is one for as long as another process looks
    /// at all disks.
    fn has(&self, mounted: usize, attached: usize) {
        let count = || crate::loop_device::all().iter().filter(|it| it.1.starts_with(&self.layout.data)).count();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while count() != attached && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!((self.mounted(), count()), (mounted, attached));
    }

    fn unmount_everything(&self) {
        let folder = self.layout.data.clone();
        let _ = self.mounts.run_blocking(move || mounts::unmount_beneath(&folder));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.unmount_everything();
        NodeMounts::release(&self.layout);
        detach_all(&self.layout);
    }
}

/// `PLUGIN OPERATION STATUS N`, in order.
fn operations(mounter: &Mounter) -> Vec<String> {
    let tallies = mounter.operations().tallies();
    let rows = tallies.iter().flat_map(|it| it.rows()).map(|it| format!("{} {}", it.labels.join(" "), it.n));
    rows.collect()
}

fn claimed(name: &str) -> PersistentMount {
    let volume = CsiVolume {
        driver: LOCAL_DRIVER.into(),
        handle: name.into(),
        access_mode: "ReadWriteOnce".into(),
        ..CsiVolume::default()
    };
    PersistentMount {
        name: name.into(),
        backend: Backend::Csi(volume),
        is_block: false,
        read_only: false,
        mount_options: Vec::new(),
        is_single_pod: false,
        takes_group: true,
        group: None,
        owner: corten_kubelet::VolumeOwner::default(),
    }
}

#[tokio::test]
async fn two_pods_share_what_is_staged_once() {
    let Some(world) = world() else { return };
    world.create("pvc-1").await;
    let mount = claimed("pvc-1");
    let first = world.mounter.set_up("u1", &mount).await.expect("there").expect("a mount");
    assert!(first.is_new && first.path.ends_with("pods/u1/volumes/kubernetes.io~csi/pvc-1/mount"));
    assert!(!world.mounter.set_up("u1", &mount).await.expect("there").expect("a mount").is_new);
    world.mounter.set_up("u2", &mount).await.expect("there");
    world.has(3, 1);
    let alone = PersistentMount { is_single_pod: true, ..mount.clone() };
    let refused = world.mounter.set_up("u3", &alone).await.expect_err("it has others").to_string();
    assert_eq!(refused, "volume uses the ReadWriteOncePod access mode and is already in use by another pod");

    let without = Mounter::new(world.layout.clone(), world.mounts.clone(), Drivers::default());
    without.tear_down("u1").await.expect_err("its driver is away");
    let failed = "kubernetes.io/csi:local.corten.dev volume_unmount";
    assert_eq!(operations(&without), [format!("{failed} fail-unknown false 1"), format!("{failed} 1")]);

    world.mounter.tear_down("u1").await.expect("taken away");
    world.has(2, 1);
    world.mounter.tear_down("u2").await.expect("taken away");
    world.mounter.tear_down("u2").await.expect("harmless");
    world.has(0, 0);
    let done = ["unmount_device success false 1", "volume_unmount success false 2"];
    assert_eq!(operations(&world.mounter), done.map(|it| format!("kubernetes.io/csi:local.corten.dev {it}")));
    world.mounter.set_up("u3", &alone).await.expect("alone now");
    world.mounter.tear_down("u3").await.expect("taken away");
}

/// The machine ends amid its work: the files are there, the mounts are not.
#[tokio::test]
async fn after_a_boot_all_is_as_it_was() {
    let Some(world) = world() else { return };
    world.create("pvc-1").await;
    world.create("pvc-2").await;
    let placed = world.mounter.set_up("u1", &claimed("pvc-1")).await.expect("there").expect("a mount");
    let file = placed.path.join("kept");
    let written = file.clone();
    world.mounts.run(move || fs::write(written, "data")).await.expect("entered").expect("written");
    world.mounter.set_up("u2", &claimed("pvc-2")).await.expect("there");
    world.unmount_everything();
    detach_all(&world.layout);

    let after = mounter(&world.layout, &world.mounts);
    // A Pod that is still wanted, and one that was deleted meanwhile.
    assert!(after.set_up("u1", &claimed("pvc-1")).await.expect("there").expect("a mount").is_new);
    assert_eq!(world.mounts.run(move || fs::read_to_string(file)).await.expect("entered").expect("read"), "data");
    after.tear_down("u2").await.expect("nothing is left");
    world.has(2, 1);
}

/// Corten ends between two steps of taking a volume away.
#[tokio::test]
async fn what_nobody_has_is_unstaged() {
    let Some(world) = world() else { return };
    world.create("pvc-1").await;
    world.mounter.set_up("u1", &claimed("pvc-1")).await.expect("there");
    world.mounter.unstage_left().await;
    assert_eq!(world.mounted(), 2, "a Pod has it");
    let (driver, folder) = (world.mounter.drivers.get(LOCAL_DRIVER).expect("built in"), world.layout.pod("u1"));
    let target = folder.join("volumes/kubernetes.io~csi/pvc-1/mount");
    driver.unpublish("pvc-1".into(), target).await.expect("unpublished");
    fs::remove_dir_all(folder).expect("the Pod's folder is gone");
    // While its driver is not there it must not be detached.
    let without = Mounter::new(world.layout.clone(), world.mounts.clone(), Drivers::default());
    assert!(without.unstage_left().await, "nothing can be done");
    assert_eq!(*without.left().borrow(), [format!("kubernetes.io/csi/{LOCAL_DRIVER}^pvc-1")].into());
    let after = mounter(&world.layout, &world.mounts);
    assert!(after.unstage_left().await);
    assert!(after.left().borrow().is_empty());
    world.has(0, 0);
}

/// A disk may be mounted by hand after its Pod has begun: it is there for the next Pod, whatever became of the first.
#[tokio::test]
async fn what_is_mounted_at_a_local_folder_outlives_the_pod() {
    let Some(world) = world() else { return };
    let source = world.layout.data.join("disk");
    fs::create_dir_all(&source).expect("made");
    let local = PersistentMount {
        backend: Backend::Local { path: source.to_string_lossy().into_owned(), fs_type: String::new() },
        ..claimed("pv1")
    };
    world.mounter.set_up("u1", &local).await.expect("there").expect("a mount");
    let disk = source.clone();
    let mounted = world.mounts.run_blocking(move || {
        rustix::mount::mount("tmpfs", &disk, "tmpfs", rustix::mount::MountFlags::empty(), c"")?;
        fs::write(disk.join("x"), "kept")
    });
    mounted.expect("entered").expect("mounted");
    world.mounter.tear_down("u1").await.expect("taken away");
    let placed = world.mounter.set_up("u2", &local).await.expect("there").expect("a mount");
    let read = world.mounts.run(move || fs::read_to_string(placed.path.join("x"))).await.expect("entered");
    assert_eq!(read.expect("the disk is mounted"), "kept");
    world.mounter.tear_down("u2").await.expect("taken away");
}

#[tokio::test]
async fn a_local_folder_is_bound() {
    let Some(world) = world() else { return };
    let source = world.layout.data.join("disk");
    fs::create_dir_all(source.join("sub")).expect("made");
    let local = |path: &Path| PersistentMount {
        backend: Backend::Local { path: path.to_string_lossy().into_owned(), fs_type: String::new() },
        read_only: true,
        ..claimed("pv1")
    };
    let placed = world.mounter.set_up("u1", &local(&source)).await.expect("there").expect("a mount");
    let seen = placed.path.clone();
    let written = world.mounts.run(move || (seen.join("sub").exists(), fs::write(seen.join("x"), ""))).await;
    let (is_there, written) = written.expect("entered");
    assert!(is_there && written.is_err(), "read-only");
    for bad in ["/no/such/folder", "relative", "/srv/../etc"] {
        world.mounter.set_up("u2", &local(Path::new(bad))).await.expect_err(bad);
    }
    world.mounter.tear_down("u1").await.expect("taken away");
    assert!(source.join("sub").exists() && !placed.path.exists());
    assert_eq!(operations(&world.mounter), ["kubernetes.io/local-volume volume_unmount success false 1"]);
    for bad in ["..", "a/b", ""] {
        let mount = PersistentMount { name: bad.into(), ..local(&source) };
        world.mounter.set_up("u1", &mount).await.expect_err("no name");
        world
            .mounter
            .set_up("u1", &PersistentMount { name: bad.into(), ..claimed("pvc-1") })
            .await
            .expect_err("no name");
    }
}

#[tokio::test]
async fn what_one_pod_may_have_alone_no_other_has_of_any_kind() {
    let Some(world) = world() else { return };
    let source = world.layout.data.join("disk");
    fs::create_dir_all(&source).expect("made");
    let path = source.to_string_lossy().into_owned();
    let backends = [
        Backend::Local { path: path.clone(), fs_type: String::new() },
        Backend::HostPath { path, kind: corten_kubelet::HostPathType::Unset },
    ];
    for backend in backends {
        let shared = PersistentMount { backend, ..claimed("pv1") };
        let alone = PersistentMount { is_single_pod: true, ..shared.clone() };
        world.mounter.set_up("u1", &shared).await.expect("there");
        world.mounter.set_up("u2", &shared).await.expect("anybody's");
        for uid in ["u1", "u2"] {
            world.mounter.tear_down(uid).await.expect("taken away");
        }
        world.mounter.set_up("u1", &alone).await.expect("there");
        world.mounter.set_up("u1", &alone).await.expect("its own");
        world
            .mounter
            .set_up("u2", &PersistentMount { name: "pv2".into(), ..alone.clone() })
            .await
            .expect("another one");
        // Whoever takes its place knows, too.
        for mounter in [&world.mounter, &mounter(&world.layout, &world.mounts)] {
            let refused = mounter.set_up("u2", &alone).await.expect_err("another has it").to_string();
            assert_eq!(refused, "volume uses the ReadWriteOncePod access mode and is already in use by another pod");
        }
        world.mounter.tear_down("u1").await.expect("taken away");
        world.mounter.set_up("u2", &alone).await.expect("alone now");
        world.mounter.tear_down("u2").await.expect("taken away");
        assert!(world.mounter.records.holders("pv1").is_empty());
    }
}

#[tokio::test]
async fn how_full_a_folder_of_the_machine_is_its_file_system_says() {
    let Some(world) = world() else { return };
    let source = world.layout.data.join("disk");
    fs::create_dir_all(&source).expect("made");
    let of = |volume: &str, claim: &str| corten_kubelet::VolumeOwner {
        namespace: "ns".into(),
        pod: "p".into(),
        volume: volume.into(),
        claim: claim.into(),
    };
    let mount = PersistentMount {
        backend: Backend::Local { path: source.to_string_lossy().into_owned(), fs_type: String::new() },
        owner: of("data", "c"),
        ..claimed("pv1")
    };
    world.mounter.set_up("u1", &mount).await.expect("there");
    // A server's folder whose mount is gone: the disk beneath is not told of.
    let note = world.mounter.note("u1", "nfs", &PersistentMount { owner: of("away", ""), ..claimed("pv2") });
    let (folder, record) = note.expect("names");
    records::write(&folder, &record).expect("written");
    let told = world.mounter.figures().await;
    let [it] = &told[..] else { panic!("{told:?}") };
    assert_eq!((it.claim.as_ref().map(ToString::to_string), &*it.volume), (Some("ns/c".into()), "data"));
    let whole = rustix::fs::statvfs(&source).expect("a file system");
    assert_eq!((it.stats.capacity_bytes, it.tells_health), (whole.f_blocks * whole.f_frsize, false));
    assert_eq!((&*it.uid, it.pod.to_string()), ("u1", "ns/p".to_owned()));

    world.mounter.tear_down("u1").await.expect("taken away");
    assert!(!folder.exists() && world.mounter.records.kernel_mounts().is_empty());
    assert!(mounter(&world.layout, &world.mounts).figures().await.is_empty());
}

#[tokio::test]
async fn a_driver_that_is_not_there_is_named() {
    let Some(world) = world() else { return };
    let mut mount = claimed("pvc-1");
    if let Backend::Csi(volume) = &mut mount.backend {
        volume.driver = "other.example".into();
    }
    let error = world.mounter.set_up("u1", &mount).await.expect_err("no driver").to_string();
    assert!(error.contains("driver name other.example not found in the list of registered CSI drivers"), "{error}");
}

#[tokio::test]
async fn nfs_needs_an_absolute_path() {
    let Some(world) = world() else { return };
    let mount = PersistentMount {
        backend: Backend::Nfs { server: "127.0.0.1".into(), path: "no/slash".into() },
        ..claimed("pv1")
    };
    let error = world.mounter.set_up("u1", &mount).await.expect_err("no path").to_string();
    assert!(error.contains("an NFS volume has a server and an absolute path"), "{error}");
}

/// A folder stands for a server's: none may be asked here.
#[tokio::test]
async fn what_a_server_has_is_let_go_without_asking_it() {
    let Some(world) = world() else { return };
    let target = world.mounter.path("u1", "nfs", "pv1").expect("a path");
    let (source, place) = (world.layout.data.join("export"), target.clone());
    let work = move || {
        fs::create_dir_all(&source).and_then(|()| fs::create_dir_all(&place)).expect("made");
        fs::write(source.join("kept"), "").expect("written");
        file_system::bind(&source, &place, MountFlags::empty()).expect("bound");
        // Somebody has it open still.
        (fs::File::open(place.join("kept")).expect("open"), source)
    };
    let (_open, source) = world.mounts.run(work).await.expect("entered");
    world.mounter.tear_down("u1").await.expect("taken away");
    assert!(!target.exists() && source.join("kept").exists());
    assert_eq!(world.mounted(), 0);
}
