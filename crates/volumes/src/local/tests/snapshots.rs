//! Snapshots and clones, on disks that share blocks and on those that do not.

use std::{
    io::Write,
    os::unix::fs::{FileTypeExt, PermissionsExt, symlink},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use super::*;

pub(super) fn snapshot(name: &str, source: &str) -> CreateSnapshot {
    CreateSnapshot { name: name.into(), source: source.into(), ..CreateSnapshot::default() }
}

pub(super) fn restored(name: &str, mib: u64, snapshot: &str) -> CreateVolume {
    CreateVolume { source: Some(VolumeSource::Snapshot(snapshot.into())), ..wanted(name, mib) }
}

pub(super) fn cloned(name: &str, mib: u64, volume: &str) -> CreateVolume {
    CreateVolume { source: Some(VolumeSource::Volume(volume.into())), ..wanted(name, mib) }
}

fn folder(request: CreateVolume) -> CreateVolume {
    CreateVolume { parameters: BTreeMap::from([("limit".into(), "none".into())]), ..request }
}

#[tokio::test]
async fn a_snapshot_keeps_what_was_there_and_volumes_begin_with_it() {
    let Some(world) = world() else { return };
    world.driver.create(wanted("pvc-1", 16)).await.expect("made");
    let at = world.mounted("pvc-1").await;
    let file = at.join("file");
    world.there(move || fs::write(file, "first")).await.expect("written");
    let kept = world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await.expect("kept");
    assert_eq!(
        (kept.handle.as_str(), kept.source.as_str(), kept.bytes, kept.is_ready),
        ("s-1", "pvc-1", 16 << 20, true)
    );
    assert!(kept.created_at > 1_600_000_000_000_000_000, "{}", kept.created_at);
    let file = at.join("file");
    world.there(move || fs::write(file, "second")).await.expect("it is not frozen");
    assert_eq!(world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await.expect("the same"), kept);
    world.driver.create(wanted("pvc-2", 8)).await.expect("made");
    let other = world.driver.create_snapshot(snapshot("s-1", "pvc-2")).await.expect_err("of another");
    assert_eq!(other.code, Code::AlreadyExists);

    let small = world.driver.create(restored("pvc-3", 8, "s-1")).await.expect_err("too small");
    assert_eq!(small.code, Code::OutOfRange);
    let made = world.driver.create(restored("pvc-3", 64, "s-1")).await.expect("made");
    assert_eq!(made.bytes, 64 << 20);
    let clone = world.driver.create(cloned("pvc-4", 16, "pvc-1")).await.expect("cloned while it is used");
    assert_eq!(clone.bytes, 16 << 20);
    // The volume goes, its snapshot stays.
    world.unstage("pvc-1").await;
    world.driver.delete("pvc-1".into(), BTreeMap::new()).await.expect("deleted");
    world.driver.create(restored("pvc-5", 16, "s-1")).await.expect("made");
    for (handle, expected) in [("pvc-3", "first"), ("pvc-4", "second"), ("pvc-5", "first")] {
        let at = world.mounted(handle).await;
        assert_eq!(world.text(at.join("file")).await, expected, "{handle}");
        if handle == "pvc-3" {
            let bytes = world.driver.stats(handle.into(), at).await.expect("there").capacity_bytes;
            assert!(bytes > 50 << 20, "it has grown: {bytes}");
        }
        world.unstage(handle).await;
    }
    for _ in 0..2 {
        world.driver.delete_snapshot("s-1".into(), BTreeMap::new()).await.expect("deleted");
    }
    let gone = world.driver.create(restored("pvc-6", 16, "s-1")).await.expect_err("gone");
    assert_eq!(gone.code, Code::NotFound);
    let gone = world.driver.create_snapshot(snapshot("s-2", "pvc-1")).await.expect_err("gone");
    assert_eq!(gone.code, Code::NotFound);
    for bad in ["", "..", "a/b", "s.making"] {
        assert!(world.driver.create_snapshot(snapshot(bad, "pvc-2")).await.is_err(), "{bad}");
        assert!(world.driver.create(restored("pvc-7", 16, bad)).await.is_err(), "{bad}");
        assert!(world.driver.delete_snapshot(bad.into(), BTreeMap::new()).await.is_err(), "{bad}");
    }
    assert!(fs::read_dir(world.layout.data.join("snapshots")).expect("there").next().is_none());
}

#[tokio::test]
async fn a_snapshot_is_of_one_moment_while_somebody_writes() {
    let Some(xfs) = OnDisk::xfs(3000) else { return };
    let world = xfs.world();
    for (fs_type, mib) in [("ext4", 64), ("xfs", 300)] {
        let handle = format!("pvc-{fs_type}");
        let request = CreateVolume { fs_type: fs_type.into(), ..wanted(&handle, mib) };
        world.driver.create(request).await.expect("made");
        let at = world.mounted(&handle).await;
        let (written, is_ended) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (told, ended) = (written.clone(), is_ended.clone());
        // Each line is on the disk before the next is begun.
        let mounts = world.driver.mounts.clone();
        let writer = tokio::task::spawn_blocking(move || {
            mounts.run_blocking(move || {
                let mut file = fs::File::create(at.join("journal")).expect("made");
                for line in 1.. {
                    if ended.load(Ordering::Relaxed) {
                        break;
                    }
                    let text = format!("{line:08}\n");
                    file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).expect("written");
                    told.store(line, Ordering::Release);
                }
            })
        });
        while written.load(Ordering::Acquire) < 20 {
            tokio::task::yield_now().await;
        }
        let mut moments = Vec::new();
        for round in 0..3 {
            let before = written.load(Ordering::Acquire);
            let name = format!("s-{fs_type}-{round}");
            world.driver.create_snapshot(snapshot(&name, &handle)).await.expect("kept");
            moments.push((name, before, written.load(Ordering::Acquire)));
        }
        is_ended.store(true, Ordering::Relaxed);
        writer.await.expect("joined").expect("ended");
        world.unstage(&handle).await;
        for (name, before, after) in moments {
            let clone = format!("of-{name}");
            world.driver.create(restored(&clone, mib, &name)).await.expect("made");
            let at = world.mounted(&clone).await;
            let text = world.text(at.join("journal")).await;
            let last = text.lines().last().and_then(|it| it.parse::<u64>().ok()).expect("a line");
            assert_eq!(text.lines().count() as u64, last, "no line is missing: {name}");
            assert!((before..=after + 1).contains(&last), "{name}: {before} {last} {after}");
            world.unstage(&clone).await;
        }
    }
}

#[tokio::test]
async fn what_is_shared_is_promised_to_both() {
    let Some(xfs) = OnDisk::xfs(900) else { return };
    let world = xfs.world();
    world.driver.create(CreateVolume { is_block: true, ..wanted("pvc-1", 128) }).await.expect("made");
    let disk = world.driver.store.disk("pvc-1").expect("a path");
    fs::write(&disk, vec![7; 128 << 20]).expect("written");
    // Before it is on the disk, XFS holds more room for it than it takes.
    fs::File::open(&disk).and_then(|it| it.sync_all()).expect("synced");
    let before = world.left().await;
    world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await.expect("kept");
    let kept = world.left().await;
    assert!(before - kept >= 128 << 20, "{before} {kept}");
    let request = CreateVolume { is_block: true, ..restored("pvc-2", 128, "s-1") };
    world.driver.create(request).await.expect("made");
    let made = world.left().await;
    assert!(kept - made >= 128 << 20, "{kept} {made}");
    let room = rustix::fs::statvfs(&world.layout.data).expect("there");
    assert!(room.f_bavail * room.f_frsize > 500 << 20, "nothing was copied");
    let much = CreateVolume { is_block: true, ..restored("pvc-3", 800, "s-1") };
    assert_eq!(world.driver.create(much).await.expect_err("too much").code, Code::ResourceExhausted);
    world.driver.delete_snapshot("s-1".into(), BTreeMap::new()).await.expect("deleted");
    world.driver.delete("pvc-2".into(), BTreeMap::new()).await.expect("deleted");
    assert!(world.left().await >= before - (1 << 20), "{before} {}", world.left().await);
}

#[tokio::test]
async fn a_folder_is_kept_with_all_that_is_its() {
    let Some(world) = world() else { return };
    world.driver.create(folder(wanted("pvc-1", 8))).await.expect("made");
    let content = world.driver.store.content("pvc-1").expect("there");
    let inner = content.join("a/b");
    fs::create_dir_all(&inner).expect("made");
    fs::write(inner.join("file"), "text").expect("written");
    fs::set_permissions(inner.join("file"), fs::Permissions::from_mode(0o640)).expect("set");
    std::os::unix::fs::chown(inner.join("file"), Some(1000), Some(1001)).expect("set");
    fs::hard_link(inner.join("file"), content.join("again")).expect("linked");
    symlink("/etc", content.join("away")).expect("linked");
    fs::File::create(content.join("sparse")).and_then(|it| it.set_len(64 << 20)).expect("made");
    assert!(Command::new("mkfifo").arg(content.join("pipe")).status().expect("run").success());
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o2700)).expect("set");
    let modified = fs::metadata(inner.join("file")).expect("there").mtime();

    world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await.expect("kept");
    fs::write(inner.join("file"), "other").expect("written");
    let wrong = world.driver.create(restored("pvc-2", 8, "s-1")).await.expect_err("not a file");
    assert_eq!(wrong.code, Code::InvalidArgument);
    world.driver.create(folder(restored("pvc-2", 8, "s-1"))).await.expect("made");
    let copy = world.driver.store.content("pvc-2").expect("there");
    let stat = fs::metadata(copy.join("a/b/file")).expect("there");
    assert_eq!((stat.mode() & 0o7777, stat.uid(), stat.gid(), stat.nlink()), (0o640, 1000, 1001, 2));
    assert_eq!(stat.mtime(), modified);
    assert_eq!(fs::metadata(copy.join("a/b")).expect("there").mode() & 0o7777, 0o2700);
    assert_eq!(fs::read_to_string(copy.join("again")).expect("there"), "text");
    assert_eq!(fs::read_link(copy.join("away")).expect("there"), Path::new("/etc"));
    let sparse = fs::metadata(copy.join("sparse")).expect("there");
    assert_eq!((sparse.len(), sparse.blocks()), (64 << 20, 0));
    assert!(
        !copy.join("pipe").exists() && fs::symlink_metadata(content.join("pipe")).expect("there").file_type().is_fifo()
    );
}

#[tokio::test]
async fn a_folder_is_copied_where_there_is_room_for_what_it_takes() {
    let Some(disk) = OnDisk::begin(Kind::Ext4, 128, |disk| Kind::Ext4.make(disk), &[]) else { return };
    let world = disk.world();
    world.driver.create(folder(wanted("pvc-1", 8))).await.expect("made");
    let (store, content) = (&world.driver.store, world.driver.store.content("pvc-1").expect("there"));
    fs::write(content.join("large"), vec![7; 80 << 20]).expect("nobody holds its size");
    let kept = world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await.map(drop);
    let cloned = world.driver.create(folder(cloned("pvc-2", 8, "pvc-1"))).await.map(drop);
    for made in [kept, cloned] {
        let fault = made.expect_err("it takes more than is left");
        assert_eq!(fault.code, Code::ResourceExhausted);
        assert!(fault.message.contains("not enough room: "), "{fault}");
    }
    assert_eq!(fs::read_dir(&store.snapshots).expect("there").count(), 0, "nothing is left of it");
    assert_eq!(fs::read_dir(&store.folder).expect("there").count(), 1);
    assert_eq!(store.under_way.promised(), 0);

    // What was promised to another is looked after while a copy takes its room piece by piece.
    world.driver.create(wanted("pvc-3", 16)).await.expect("made");
    store.still_has_room().expect("it was promised");
    let more = usize::try_from(world.left().await).expect("it is small") + (4 << 20);
    fs::write(world.layout.data.join("other"), vec![7; more]).expect("written");
    let fault = store.still_has_room().expect_err("somebody took the room");
    assert_eq!(fault.code, Code::ResourceExhausted);
    assert!(fault.message.contains("not enough room any more"), "{fault}");
}

#[tokio::test]
async fn a_block_volume_in_use_is_copied_only_where_blocks_are_shared() {
    let Some(world) = world() else { return };
    world.driver.create(CreateVolume { is_block: true, ..wanted("pvc-1", 4) }).await.expect("made");
    let staging = world.dir.path().join("staging");
    world.driver.stage(staged("pvc-1", true), staging.clone()).await.expect("staged");
    match world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await {
        Err(fault) => assert_eq!(fault.code, Code::FailedPrecondition),
        Ok(kept) => assert!(kept.is_ready, "a disk that shares blocks"),
    }
    world.driver.unstage("pvc-1".into(), staging).await.expect("unstaged");
    world.is_detached("pvc-1");
    world.driver.create_snapshot(snapshot("s-1", "pvc-1")).await.expect("kept");
}

#[tokio::test]
async fn what_a_crash_left_frozen_goes_on() {
    let Some(world) = world() else { return };
    world.driver.create(wanted("pvc-1", 8)).await.expect("made");
    let at = world.mounted("pvc-1").await;
    let place = at.clone();
    let frozen = world.there(move || Command::new("fsfreeze").arg("--freeze").arg(place).status()).await;
    assert!(frozen.expect("run").success());
    let making = world.layout.data.join("snapshots/s-1.making");
    fs::create_dir_all(&making).expect("made");
    world.driver.recover().await.expect("recovered");
    assert!(!making.exists());
    world.write(at.join("file"), 10).await.expect("it goes on");
    world.unstage("pvc-1").await;
}
