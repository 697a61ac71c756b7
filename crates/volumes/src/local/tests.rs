//! Volumes on a real disk, with real mounts where the test may mount.

use std::os::unix::fs::MetadataExt;

use super::*;

mod moving;
mod quota;
mod snapshots;

struct World {
    dir: tempfile::TempDir,
    layout: Layout,
    driver: LocalDriver,
}

fn world() -> Option<World> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    Some(world_in(tempfile::tempdir().expect("a temporary folder"), "data"))
}

fn world_in(dir: tempfile::TempDir, data: &str) -> World {
    let layout = Layout::new(dir.path().join(data), dir.path().join("run"));
    let mounts = NodeMounts::prepare(&layout).expect("a namespace");
    let driver = LocalDriver::new(&layout, mounts, "n1", Reserve::default());
    World { dir, layout, driver }
}

impl Drop for World {
    fn drop(&mut self) {
        let folder = self.layout.data.clone();
        let _ = self.driver.mounts.run_blocking(move || mounts::unmount_beneath(&folder));
        NodeMounts::release(&self.layout);
        detach_all(&self.layout);
    }
}

fn wanted(name: &str, mib: u64) -> CreateVolume {
    CreateVolume { name: name.into(), required_bytes: mib << 20, ..CreateVolume::default() }
}

fn staged(handle: &str, is_block: bool) -> StageVolume {
    StageVolume { handle: handle.into(), is_block, ..StageVolume::default() }
}

/// A world on a disk of its own.
struct OnDisk {
    world: Option<World>,
    at: PathBuf,
}

impl OnDisk {
    /// An XFS that shares blocks.
    fn xfs(mib: u64) -> Option<Self> {
        Self::begin(Kind::Xfs, mib, |disk| Kind::Xfs.make(disk), &[])
    }

    fn begin(kind: Kind, mib: u64, make: impl FnOnce(&Path) -> Result<(), Fault>, options: &[String]) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (disk, at) = (dir.path().join("disk.img"), dir.path().join("disk"));
        fs::create_dir(&at).expect("made");
        fs::File::create(&disk).and_then(|it| it.set_len(mib << 20)).expect("made");
        make(&disk).expect("a file system");
        let device = loop_device::attach(&disk).expect("attached");
        if let Err(fault) = kind.mount(&device, &at, options) {
            eprintln!("skipped: {fault}");
            loop_device::detach(&device).expect("detached");
            return None;
        }
        // It goes when it is no longer mounted.
        loop_device::detach(&device).expect("marked");
        Some(Self { world: Some(world_in(dir, "disk/data")), at })
    }

    fn world(&self) -> &World {
        self.world.as_ref().expect("it is there until the end")
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        // The folder is its own to remove, once nothing is mounted in it.
        let Some(world) = self.world.take() else { return };
        let folder = world.layout.data.clone();
        let _ = world.driver.mounts.run_blocking(move || mounts::unmount_beneath(&folder));
        detach_all(&world.layout);
        let _ = file_system::let_go(&self.at);
    }
}

impl World {
    /// A file that was let go is a disk for as long as another process looks at all disks.
    fn is_detached(&self, handle: &str) {
        let disk = self.driver.store.disk(handle).expect("a path");
        let until = std::time::Instant::now() + Duration::from_secs(10);
        while loop_device::of(&disk).is_some() {
            assert!(std::time::Instant::now() < until, "{handle} stays attached");
            std::thread::yield_now();
        }
    }

    async fn mounted(&self, handle: &str) -> PathBuf {
        let staging = self.dir.path().join(format!("staging-{handle}"));
        self.driver.stage(staged(handle, false), staging.clone()).await.expect("staged");
        staging
    }

    async fn there<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.driver.mounts.run(work).await.expect("entered")
    }

    async fn text(&self, path: PathBuf) -> String {
        self.there(move || fs::read_to_string(path).unwrap_or_else(|it| it.to_string())).await
    }

    async fn unstage(&self, handle: &str) {
        let staging = self.dir.path().join(format!("staging-{handle}"));
        self.driver.unstage(handle.into(), staging).await.expect("unstaged");
        self.is_detached(handle);
    }

    async fn left(&self) -> u64 {
        self.driver.capacity(BTreeMap::new()).await.expect("told").expect("known").available_bytes
    }

    async fn write(&self, path: PathBuf, bytes: usize) -> std::io::Result<()> {
        let work = move || fs::write(path, vec![7; bytes]);
        self.driver.mounts.run(work).await.expect("entered")
    }
}

#[tokio::test]
async fn a_volume_keeps_its_data_and_its_size() {
    let Some(world) = world() else { return };
    let made = world.driver.create(wanted("pvc-1", 16)).await.expect("made");
    assert_eq!((made.bytes, made.fs_type.as_str()), (16 << 20, "ext4"));
    assert_eq!(made.topology[0][HOSTNAME], "n1");
    assert_eq!(world.driver.create(wanted("pvc-1", 16)).await.expect("the same"), made);
    let other = world.driver.create(wanted("pvc-1", 32)).await.expect_err("another size");
    assert_eq!(other.code, Code::AlreadyExists);

    let (staging, target) = (world.dir.path().join("staging"), world.dir.path().join("pod"));
    for round in 0..2 {
        world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect("staged");
        world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect("harmless");
        let publish = || world.driver.publish(staged("pvc-1", false), Some(staging.clone()), target.clone(), false);
        publish().await.expect("published");
        publish().await.expect("harmless");
        if round == 0 {
            world.write(target.join("file"), 100).await.expect("written");
            let full = world.write(target.join("large"), 64 << 20).await.expect_err("it is full");
            assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        }
        let seen = target.clone();
        let names = move || fs::read_dir(seen).expect("there").flatten().count();
        assert_eq!(world.driver.mounts.run(names).await.expect("entered"), 2, "no lost+found");
        let in_use = world.driver.delete("pvc-1".into(), BTreeMap::new()).await.expect_err("in use");
        assert_eq!(in_use.code, Code::FailedPrecondition);
        for _ in 0..2 {
            world.driver.unpublish("pvc-1".into(), target.clone()).await.expect("unpublished");
            world.driver.unstage("pvc-1".into(), staging.clone()).await.expect("unstaged");
        }
        assert!(!target.exists());
        world.is_detached("pvc-1");
    }
    for _ in 0..2 {
        world.driver.delete("pvc-1".into(), BTreeMap::new()).await.expect("deleted");
    }
    let gone = world.driver.stage(staged("pvc-1", false), staging).await.expect_err("gone");
    assert_eq!(gone.code, Code::NotFound);
}

#[tokio::test]
async fn a_volume_grows_while_it_is_used_and_while_it_is_not() {
    let Some(world) = world() else { return };
    world.driver.create(wanted("pvc-1", 16)).await.expect("made");
    let staging = world.dir.path().join("staging");
    let grown = world.driver.expand(StageVolume::of("pvc-1"), 24 << 20).await.expect("grown on disk");
    assert_eq!(grown.bytes, 24 << 20);
    world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect("staged");
    let stats = |path: &Path| world.driver.stats("pvc-1".into(), path.to_owned());
    let before = stats(&staging).await.expect("there").capacity_bytes;
    assert!(before > 18 << 20, "{before}");
    let grown = world.driver.expand(StageVolume::of("pvc-1"), 64 << 20).await.expect("grown in use");
    if grown.node_expansion_required {
        // A machine that is a container itself may not. The next Pod finds it staged.
        let target = world.dir.path().join("target");
        let (of, at) = (staged("pvc-1", false), Some(staging.clone()));
        world.driver.publish(of, at, target.clone(), false).await.expect("published");
        world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect("staged");
        assert_eq!(stats(&staging).await.expect("there").capacity_bytes, before, "a Pod has it");
        world.driver.unpublish("pvc-1".into(), target).await.expect("taken away");
        world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect("staged");
    }
    let after = stats(&staging).await.expect("there").capacity_bytes;
    assert!(after > 50 << 20, "{after}");
    let smaller = world.driver.expand(StageVolume::of("pvc-1"), 1 << 20).await.expect("nothing to do");
    assert_eq!(smaller.bytes, 64 << 20);
    assert!(!world.driver.store.get("pvc-1").expect("there").grows);
    world.driver.unstage("pvc-1".into(), staging).await.expect("unstaged");
}

#[tokio::test]
async fn xfs_grows_while_it_is_used() {
    let Some(world) = world() else { return };
    let request = CreateVolume { fs_type: "xfs".into(), ..wanted("pvc-1", 1) };
    assert_eq!(world.driver.create(request).await.expect("made").bytes, 300 << 20);
    let staging = world.dir.path().join("staging");
    world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect("staged");
    let grown = world.driver.expand(StageVolume::of("pvc-1"), 400 << 20).await.expect("grown in use");
    assert!(!grown.node_expansion_required);
    let bytes = world.driver.stats("pvc-1".into(), staging.clone()).await.expect("there").capacity_bytes;
    assert!(bytes > 320 << 20, "{bytes}");
    world.driver.unstage("pvc-1".into(), staging).await.expect("unstaged");
}

#[tokio::test]
async fn a_block_volume_is_a_device() {
    let Some(world) = world() else { return };
    let request = CreateVolume { is_block: true, ..wanted("pvc-1", 4) };
    world.driver.create(request).await.expect("made");
    let (staging, target) = (world.dir.path().join("staging"), world.dir.path().join("device"));
    let wrong = world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect_err("it is a device");
    assert_eq!(wrong.code, Code::InvalidArgument);
    world.driver.stage(staged("pvc-1", true), staging.clone()).await.expect("staged");
    let publish = world.driver.publish(staged("pvc-1", true), Some(staging.clone()), target.clone(), false);
    publish.await.expect("published");
    let seen = target.clone();
    let device = move || {
        let stat = fs::metadata(&seen).expect("there");
        (rustix::fs::major(stat.rdev()), fs::File::open("/dev/null").is_ok())
    };
    assert_eq!(world.driver.mounts.run(device).await.expect("entered"), (7, true));
    world.driver.unpublish("pvc-1".into(), target).await.expect("unpublished");
    world.driver.unstage("pvc-1".into(), staging).await.expect("unstaged");
}

#[tokio::test]
async fn what_is_promised_is_not_promised_again() {
    let Some(world) = world() else { return };
    let room = || world.driver.capacity(BTreeMap::new());
    let before = room().await.expect("told").expect("known").available_bytes;
    world.driver.create(wanted("pvc-1", 256)).await.expect("made");
    let after = room().await.expect("told").expect("known").available_bytes;
    // Others write to the same disk meanwhile.
    assert!(before.saturating_sub(after) > 200 << 20, "{before} {after}");
    let request = CreateVolume { required_bytes: before * 2, ..wanted("pvc-2", 1) };
    let full = world.driver.create(request).await.expect_err("too large");
    assert_eq!(full.code, Code::ResourceExhausted);
    let full = world.driver.expand(StageVolume::of("pvc-1"), before * 2).await.expect_err("too large");
    assert_eq!(full.code, Code::ResourceExhausted);
    world.driver.delete("pvc-1".into(), BTreeMap::new()).await.expect("deleted");
}

#[tokio::test]
async fn nothing_half_made_is_a_volume() {
    let Some(world) = world() else { return };
    let folder = store::folder(&world.layout);
    fs::create_dir_all(folder.join("pvc-1.making")).expect("made");
    fs::write(folder.join("pvc-1.making/disk.img"), "half").expect("written");
    fs::create_dir_all(folder.join("pvc-2.deleting/data")).expect("made");
    world.driver.recover().await.expect("recovered");
    assert_eq!(fs::read_dir(&folder).expect("there").count(), 0);
    for bad in ["", "..", "a/b", "../../etc", "pvc-1.making"] {
        assert!(world.driver.delete(bad.into(), BTreeMap::new()).await.is_err(), "{bad}");
        assert!(world.driver.create(wanted(bad, 8)).await.is_err(), "{bad}");
    }
}

#[tokio::test]
async fn a_volume_whose_file_is_gone_says_so() {
    let Some(world) = world() else { return };
    world.driver.create(wanted("pvc-1", 8)).await.expect("made");
    let (disk, staging) = (world.driver.store.disk("pvc-1").expect("a path"), world.dir.path().join("staging"));
    let short = fs::File::options().write(true).open(&disk).expect("there");
    short.set_len(4 << 20).expect("cut");
    let cut = world.driver.stage(staged("pvc-1", false), staging.clone()).await.expect_err("cut").message;
    assert!(cut.contains("has 4194304 of its 8388608 bytes"), "{cut}");
    fs::remove_file(&disk).expect("removed");
    std::os::unix::fs::symlink("/dev/null", &disk).expect("a link");
    let gone = world.driver.stage(staged("pvc-1", false), staging).await.expect_err("a link").message;
    assert!(gone.contains("is gone"), "{gone}");
}

/// Nobody finds it by its name any more.
#[tokio::test]
async fn a_file_that_was_removed_while_it_was_attached_is_let_go() {
    let Some(world) = world() else { return };
    let store = &world.driver.store;
    let has_removed = |n: usize| {
        let until = std::time::Instant::now() + Duration::from_secs(10);
        let removed = || loop_device::removed_in(&store.folder).len();
        while removed() != n {
            assert!(std::time::Instant::now() < until, "{} instead of {n}", removed());
            std::thread::yield_now();
        }
    };
    let mut stagings = Vec::new();
    for name in ["pvc-1", "pvc-2", "pvc-3"] {
        world.driver.create(wanted(name, 8)).await.expect("made");
        stagings.push(world.mounted(name).await);
        fs::remove_file(store.disk(name).expect("a path")).expect("removed");
    }
    has_removed(3);
    let in_use = world.driver.delete("pvc-1".into(), BTreeMap::new()).await.expect_err("it is mounted");
    assert_eq!(in_use.code, Code::FailedPrecondition);
    world.driver.recover().await.expect("recovered");
    has_removed(3);
    world.unstage("pvc-1").await;
    has_removed(2);
    // What was unmounted and not let go.
    for staging in stagings.split_off(1) {
        world.there(move || file_system::unmount_all(&staging)).await.expect("unmounted");
    }
    has_removed(2);
    world.driver.delete("pvc-2".into(), BTreeMap::new()).await.expect("deleted");
    has_removed(1);
    fs::remove_dir_all(store.of("pvc-3").expect("a path")).expect("removed");
    world.driver.recover().await.expect("recovered");
    has_removed(0);
}

#[test]
fn a_class_is_checked() {
    let with = |name: &str, value: &str| CreateVolume {
        parameters: BTreeMap::from([(name.into(), value.into())]),
        ..wanted("pvc-1", 8)
    };
    let on_many = CreateVolume { access_modes: vec!["ReadWriteMany".into()], ..wanted("pvc-1", 8) };
    let other = CreateVolume { fs_type: "btrfs".into(), ..wanted("pvc-1", 8) };
    let block = CreateVolume { is_block: true, ..with("limit", "none") };
    let block_of_quota = CreateVolume { is_block: true, ..with("limit", "quota") };
    for bad in [with("size", "1"), with("limit", "some"), on_many, other, block, block_of_quota] {
        assert_eq!(form_of(&bad).expect_err("refused").code, Code::InvalidArgument);
    }
    assert_eq!(form_of(&with("limit", "none")).expect("taken"), Form::Folder);
    assert_eq!(form_of(&with("limit", "quota")).expect("taken"), Form::Quota);
    assert_eq!(form_of(&wanted("pvc-1", 8)).expect("taken"), Form::FileSystem(Kind::Ext4));
}

#[test]
fn the_larger_reserve_counts() {
    assert_eq!(Reserve { bytes: 5, share: 10_000 }.of(1_000), 100);
    assert_eq!(Reserve { bytes: 200, share: 10_000 }.of(1_000), 200);
    assert_eq!(Reserve::default().of(u64::MAX), 0);
}

#[tokio::test]
async fn what_is_promised_is_known_without_reading_all_again() {
    let Some(world) = world() else { return };
    let store = &world.driver.store;
    let promised = || store.promises.not_taken(|_| 0) >> 20;
    store.available().expect("told");
    for name in ["pvc-1", "pvc-2"] {
        world.driver.create(wanted(name, 16)).await.expect("made");
    }
    world.driver.expand(StageVolume::of("pvc-1"), 24 << 20).await.expect("grown");
    assert_eq!(promised(), 40);
    world.driver.delete("pvc-2".into(), BTreeMap::new()).await.expect("deleted");
    assert_eq!(promised(), 24);
    // Somebody puts a volume back that was kept elsewhere, and takes another away.
    fs::rename(store.of("pvc-1").expect("a path"), store.of("pvc-9").expect("a path")).expect("renamed");
    store.available().expect("told");
    assert_eq!(promised(), 24);
    fs::remove_dir_all(store.of("pvc-9").expect("a path")).expect("removed");
    store.available().expect("told");
    assert_eq!(promised(), 0);
}

#[tokio::test]
async fn an_erased_cluster_leaves_neither_volumes_nor_snapshots() {
    let Some(world) = world() else { return };
    world.driver.recover().await.expect("recovered");
    corten_machine::close_data(&world.layout.data).expect("closed");
    let (place, data) = (corten_machine::folders::own_folder::NodeFolder::Data, &world.layout.data);
    let erasure = corten_machine::folders::own_folder::erasure(place, data).expect("a cluster's");
    assert_eq!(erasure.kept, Vec::<PathBuf>::new());
    assert_eq!(erasure.removed.len(), 3, "volumes, snapshots and the mark: {:?}", erasure.removed);
}

#[tokio::test]
async fn a_file_system_is_made_for_who_first_has_the_volume() {
    let Some(world) = world() else { return };
    world.driver.create(wanted("pvc-1", 16)).await.expect("made");
    let store = &world.driver.store;
    let taken = |handle: &str| store.taken(&store.get(handle).expect("it is there"));
    assert_eq!((taken("pvc-1"), store.get("pvc-1").expect("there").blank), (0, true), "nothing is written before");
    // What nobody had may be grown, and cloned.
    world.driver.expand(StageVolume::of("pvc-1"), 24 << 20).await.expect("grown");
    let source = Some(VolumeSource::Volume("pvc-1".into()));
    world.driver.create(CreateVolume { source, ..wanted("pvc-2", 32) }).await.expect("cloned");
    for (handle, mib) in [("pvc-1", 24), ("pvc-2", 32)] {
        let staging = world.dir.path().join(handle);
        for _ in 0..2 {
            world.driver.stage(staged(handle, false), staging.clone()).await.expect("staged");
            let volume = store.get(handle).expect("it is there");
            assert_eq!((volume.blank, volume.grows, volume.bytes), (false, false, mib << 20), "{handle}");
            let stats = world.driver.stats(handle.into(), staging.clone()).await.expect("there");
            assert!(stats.capacity_bytes > (mib - 8) << 20, "all of it is its user's: {stats:?}");
            world.driver.unstage(handle.into(), staging.clone()).await.expect("unstaged");
        }
    }
}
