//! Volumes whose size a project quota holds: on disks that hold it, where this kernel has them, and on one that does not.

use std::process::Command;

use super::{
    snapshots::{cloned, restored, snapshot},
    *,
};
use crate::{program::run, project_quota};

fn of_quota(request: CreateVolume) -> CreateVolume {
    CreateVolume { parameters: BTreeMap::from([("limit".into(), "quota".into())]), ..request }
}

/// Disks whose file system holds project quotas; none, said aloud, where the kernel does not have them.
fn disks() -> Vec<OnDisk> {
    let ext4 = |disk: &Path| {
        let args = ["-q", "-F", "-O", "project,quota", loop_device::text(disk)?];
        run("mkfs.ext4", &args).map(drop)
    };
    let ext4 = OnDisk::begin(Kind::Ext4, 512, ext4, &["prjquota".to_owned()]);
    let xfs = OnDisk::begin(Kind::Xfs, 512, |disk| Kind::Xfs.make(disk), &["pquota".to_owned()]);
    let holds = |it: &OnDisk| {
        let probe = it.at.join("probe");
        fs::create_dir(&probe).expect("made");
        let begun = project_quota::begin(&probe, "probe", 1 << 20);
        if let Err(fault) = &begun {
            eprintln!("skipped: {fault}");
        }
        project_quota::release(&probe);
        fs::remove_dir(&probe).expect("removed");
        begun.is_ok()
    };
    [ext4, xfs].into_iter().flatten().filter(holds).collect()
}

impl World {
    /// Writes so many MiB as root of a container does, whom limits hold. Answers whether all were taken.
    async fn fill(&self, file: PathBuf, mib: u64) -> bool {
        let work = move || {
            let mut command = Command::new("setpriv");
            command.args(["--bounding-set", "-sys_resource", "dd", "if=/dev/zero", "bs=1M"]);
            command.arg(format!("count={mib}")).arg(format!("of={}", file.display()));
            command.output().expect("it runs")
        };
        let ended = self.there(work).await;
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        let is_full = ["Disk quota exceeded", "No space left"].iter().any(|it| said.contains(it));
        assert!(ended.status.success() || is_full, "{said}");
        ended.status.success()
    }

    fn project(&self, handle: &str) -> u32 {
        self.driver.store.get(handle).expect("there").project.expect("it has one")
    }

    async fn capacity_of(&self, handle: &str, at: &Path) -> u64 {
        self.driver.stats(handle.into(), at.to_owned()).await.expect("told").capacity_bytes
    }
}

#[tokio::test]
async fn a_disk_that_holds_no_quota_has_no_volumes_of_them() {
    let Some(world) = world() else { return };
    let made = world.driver.create(of_quota(wanted("pvc-1", 16))).await;
    let Err(fault) = made else {
        eprintln!("skipped: the temporary folder's file system has project quotas");
        return;
    };
    assert_eq!(fault.code, Code::ResourceExhausted, "another node is looked for");
    assert!(fault.message.contains("has no project quotas: ext4 has them with"), "{fault}");
    let folder = store::folder(&world.layout);
    assert_eq!(fs::read_dir(folder).expect("there").count(), 0, "nothing is left of it");
    assert_eq!(world.driver.store.under_way.promised(), 0);
    // What was made on a disk that held it is not given out where nobody does.
    world.driver.create(wanted("pvc-2", 16)).await.expect("a file");
    let (record, content) = (world.driver.store.of("pvc-2").expect("a path"), "data");
    fs::write(record.join("volume.json"), br#"{"bytes":16777216,"form":"quota","project":1124073472}"#)
        .expect("written");
    fs::create_dir(record.join(content)).expect("made");
    let staging = world.dir.path().join("staging");
    let refused = world.driver.stage(staged("pvc-2", false), staging).await.expect_err("nobody holds its size");
    assert_eq!(refused.code, Code::FailedPrecondition, "{refused}");
    let grown = world.driver.expand(StageVolume::of("pvc-2"), 32 << 20).await.expect_err("neither");
    assert_eq!(grown.code, Code::FailedPrecondition);
    world.driver.delete("pvc-2".into(), BTreeMap::new()).await.expect("it can be removed all the same");
}

#[tokio::test]
async fn a_quota_holds_a_volumes_size_and_nobody_elses() {
    for disk in disks() {
        let world = disk.world();
        for name in ["pvc-1", "pvc-2"] {
            assert_eq!(world.driver.create(of_quota(wanted(name, 16))).await.expect("made").bytes, 16 << 20);
        }
        let again = world.driver.create(of_quota(wanted("pvc-1", 16))).await.expect("the same");
        assert_eq!((again.bytes, again.fs_type.as_str()), (16 << 20, ""));
        let project = world.project("pvc-1");
        assert_ne!(project, world.project("pvc-2"));
        let (first, second) = (world.mounted("pvc-1").await, world.mounted("pvc-2").await);
        assert_eq!(world.capacity_of("pvc-1", &first).await, 16 << 20);

        assert!(!world.fill(first.join("large"), 64).await, "it is full");
        let before = world.left().await;
        assert!(world.fill(second.join("small"), 8).await, "another is not");
        assert!(before.saturating_sub(world.left().await) < 4 << 20, "it was promised before");

        // While it is used.
        let grown = world.driver.expand(StageVolume::of("pvc-1"), 32 << 20).await.expect("grown");
        assert!(!grown.node_expansion_required);
        assert_eq!(world.capacity_of("pvc-1", &first).await, 32 << 20);
        assert!(world.fill(first.join("large"), 24).await, "there is room now");

        world.unstage("pvc-1").await;
        world.driver.delete("pvc-1".into(), BTreeMap::new()).await.expect("deleted");
        assert!(!store::folder(&world.layout).join("pvc-1").exists());
        // The name's own number is free again.
        world.driver.create(of_quota(wanted("pvc-1", 16))).await.expect("made");
        assert_eq!(world.project("pvc-1"), project);
        world.unstage("pvc-2").await;
    }
}

#[tokio::test]
async fn a_quota_is_found_after_a_restart_and_set_again_where_it_was_lost() {
    for disk in disks() {
        let world = disk.world();
        world.driver.create(of_quota(wanted("pvc-1", 16))).await.expect("made");
        let content = world.driver.store.content("pvc-1").expect("there");
        // Somebody takes the limit away, and Corten begins anew.
        project_quota::release(&content);
        let again = LocalDriver::new(&world.layout, world.driver.mounts.clone(), "n1", Reserve::default());
        again.recover().await.expect("recovered");
        let staging = world.dir.path().join("staging-pvc-1");
        again.stage(staged("pvc-1", false), staging.clone()).await.expect("staged");
        assert_eq!(world.capacity_of("pvc-1", &staging).await, 16 << 20);
        assert!(!world.fill(staging.join("large"), 64).await, "it is held");
        // The number is the disk's to say: who begins anew does not give it to another.
        let other = again.create(of_quota(wanted("pvc-2", 16))).await.expect("made").handle;
        assert_ne!(world.project(&other), world.project("pvc-1"));
        world.unstage("pvc-1").await;

        let text = loop_device::text(&content).expect("text").to_owned();
        run("chattr", &["-p", "7", &text]).expect("another project");
        let refused = again.stage(staged("pvc-1", false), staging).await.expect_err("another's");
        assert!(refused.message.contains("chattr -R -p"), "{refused}");

        // What was being made when the power failed is no volume, and has no number.
        let folder = store::folder(&world.layout);
        fs::rename(folder.join("pvc-2"), folder.join("pvc-2.making")).expect("renamed");
        again.recover().await.expect("recovered");
        let project = world.project("pvc-1");
        again.create(of_quota(wanted("pvc-2", 16))).await.expect("made");
        assert_ne!(world.project("pvc-2"), project);
    }
}

#[tokio::test]
async fn a_copy_of_a_volume_has_a_quota_of_its_own() {
    for disk in disks() {
        let world = disk.world();
        world.driver.create(of_quota(wanted("pvc-1", 16))).await.expect("made");
        let at = world.mounted("pvc-1").await;
        let file = at.join("file");
        world.there(move || fs::write(file, "first")).await.expect("written");
        world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await.expect("kept");
        world.driver.create(of_quota(restored("pvc-2", 24, "s-1"))).await.expect("restored");
        world.driver.create(of_quota(cloned("pvc-3", 16, "pvc-1"))).await.expect("cloned");
        for (handle, mib) in [("pvc-2", 24), ("pvc-3", 16)] {
            let at = world.mounted(handle).await;
            assert_eq!(world.text(at.join("file")).await, "first");
            assert_eq!(world.capacity_of(handle, &at).await, mib << 20);
            assert!(!world.fill(at.join("large"), 64).await, "{handle} is held");
            assert_ne!(world.project(handle), world.project("pvc-1"));
            world.unstage(handle).await;
        }
        let small = world.driver.create(of_quota(restored("pvc-4", 8, "s-1"))).await.expect_err("it does not fit");
        assert_eq!(small.code, Code::OutOfRange);
        let file = world.driver.create(restored("pvc-4", 16, "s-1")).await.expect_err("another form");
        assert!(file.message.contains("the class must say limit quota"), "{file}");
        world.unstage("pvc-1").await;
    }
}
