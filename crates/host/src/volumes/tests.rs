//! Volumes on real file systems; what needs mounts says so where it cannot have them.

use std::os::unix::fs::MetadataExt;

use super::*;

fn volumes(dir: &Path) -> Volumes {
    Volumes::new(Layout::new(dir.join("data"), dir.join("run")), NodeMounts::own())
}

fn file(path: &str, data: &str, mode: u32) -> VolumeFile {
    VolumeFile { path: path.to_owned(), mode, user: None, content: data.as_bytes().into() }
}

#[tokio::test]
async fn files_change_all_at_once_and_vanish_when_not_named() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let volumes = volumes(dir.path());
    let first = vec![file("a", "1", 0o644), file("sub/b", "2", 0o400), file("c", "3", 0o644)];
    let path = volumes.write_files("u1", "configmap", "config", first.clone()).await.expect("written");
    assert!(path.ends_with("pods/u1/volumes/kubernetes.io~configmap/config"));
    assert_eq!(fs::read_link(path.join("a")).expect("a link"), Path::new("..data/a"));
    assert_eq!(fs::read_to_string(path.join("sub/b")).expect("read"), "2");
    assert_eq!(fs::metadata(path.join("sub/b")).expect("there").mode() & 0o777, 0o400);

    let generation = fs::read_link(path.join("..data")).expect("a link");
    volumes.write_files("u1", "configmap", "config", first).await.expect("written");
    assert_eq!(
        fs::read_link(path.join("..data")).expect("a link"),
        generation,
        "the same content is not written again"
    );

    volumes.write_files("u1", "configmap", "config", vec![file("a", "9", 0o644)]).await.expect("written");
    assert_eq!(fs::read_to_string(path.join("a")).expect("read"), "9");
    let mut names: Vec<String> = fs::read_dir(&path)
        .expect("listed")
        .flatten()
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 3, "one generation, ..data and a: {names:?}");
    for bad in ["../x", "/x", "", "a/../../x", "..x"] {
        assert!(volumes.write_files("u1", "configmap", "config", vec![file(bad, "", 0o644)]).await.is_err(), "{bad}");
    }
}

#[tokio::test]
async fn host_paths_are_checked_in_upstreams_words() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let volumes = volumes(dir.path());
    fs::write(dir.path().join("file"), "").expect("a file");
    let socket = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).expect("a socket");
    for (name, kind, problem) in [
        ("file", HostPathType::File, ""),
        ("file", HostPathType::Directory, "is not a directory"),
        ("file", HostPathType::DirectoryOrCreate, "is not a directory"),
        ("new-folder/deep", HostPathType::DirectoryOrCreate, ""),
        ("new-folder", HostPathType::Directory, ""),
        ("new-file", HostPathType::FileOrCreate, ""),
        ("new-file", HostPathType::File, ""),
        ("absent", HostPathType::File, "is not a file"),
        ("absent", HostPathType::Unset, ""),
        ("socket", HostPathType::Socket, ""),
        ("file", HostPathType::Socket, "is not a socket file"),
        ("file", HostPathType::CharDevice, "is not a character device"),
        ("file", HostPathType::BlockDevice, "is not a block device"),
    ] {
        let path = dir.path().join(name);
        let checked = volumes.host_path(&path, kind).await;
        match problem {
            "" => assert_eq!(checked.expect("there"), path, "{name} {kind:?}"),
            problem => {
                let expected = format!("hostPath type check failed: {} {problem}", path.display());
                assert_eq!(checked.expect_err("refused").to_string(), expected);
            }
        }
    }
    volumes.host_path(Path::new("/dev/null"), HostPathType::CharDevice).await.expect("a device");
    drop(socket);
}

#[tokio::test]
async fn a_pods_folders_are_made_and_removed_with_their_mounts() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let volumes = volumes(dir.path());
    let memory = volumes.empty_dir("u1", "cache", Medium::Memory, Some(1 << 20), 0o777).await.expect("mounted");
    assert!(mounts::is_mount_point(&memory));
    assert_eq!(rustix::fs::statvfs(&memory).map(|it| it.f_blocks * it.f_frsize), Ok(1 << 20));
    let again = volumes.empty_dir("u1", "cache", Medium::Memory, Some(1 << 20), 0o777).await.expect("harmless");
    assert_eq!((again, mounts::mounts_beneath(dir.path()).len()), (memory.clone(), 1));

    let disk = volumes.empty_dir("u1", "disk", Medium::Disk, None, 0o777).await.expect("made");
    assert_eq!(fs::metadata(&disk).expect("there").mode() & 0o7777, 0o777);
    fs::write(disk.join("kept"), "x").expect("written");
    let bound = volumes.sub_path("u1", "web", 0, &disk, "deep/er").await.expect("bound");
    fs::write(bound.join("through"), "y").expect("written");
    assert_eq!(fs::read_to_string(disk.join("deep/er/through")).expect("read"), "y");
    let bound = volumes.sub_path("u1", "web", 1, &disk, "kept").await.expect("bound");
    assert_eq!(fs::read_to_string(&bound).expect("read"), "x");

    std::os::unix::fs::symlink("/etc", disk.join("out")).expect("a link");
    for bad in ["out", "out/passwd", "../other", "/etc", "out/new"] {
        let error = volumes.sub_path("u1", "web", 2, &disk, bad).await.expect_err("leads out");
        assert!(error.to_string().contains("leads out of the volume"), "{bad}: {error}");
    }

    let outside = dir.path().join("outside");
    fs::write(&outside, "").expect("written");
    std::os::unix::fs::symlink(&outside, disk.join("to-outside")).expect("a link");
    let before = fs::metadata(&outside).expect("there");
    for (read_only, bits) in [(true, 0o040), (false, 0o060)] {
        fs::set_permissions(disk.join("kept"), fs::Permissions::from_mode(0o600)).expect("set");
        volumes.set_group(&disk, 4242, read_only).await.expect("given");
        let meta = fs::metadata(disk.join("kept")).expect("there");
        assert_eq!((meta.gid(), meta.mode() & 0o070), (4242, bits));
    }
    let after = fs::metadata(&outside).expect("there");
    assert_eq!((before.gid(), before.mode()), (after.gid(), after.mode()), "a link is not followed");
    assert_eq!(fs::symlink_metadata(disk.join("to-outside")).expect("there").gid(), 4242);

    let log = volumes.termination_log("u1", "web", 0).await.expect("made");
    fs::write(&log, "x".repeat(5000) + "end").expect("written");
    let last = volumes.read_termination_log(&log).await;
    assert!(last.len() == 4096 && last.ends_with("xend"));
    // A container may put something else there by a mount of its own.
    for anything in ["pipe", "link"] {
        let path = dir.path().join(anything);
        match anything {
            "pipe" => rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::from(0o666), 0)
                .expect("made"),
            _ => std::os::unix::fs::symlink("/etc/passwd", &path).expect("made"),
        }
        assert_eq!(volumes.read_termination_log(&path).await, "", "{anything}");
    }

    assert_eq!(volumes.pod_uids().await, ["u1"]);
    volumes.remove_pod("u1").await.expect("removed");
    assert!(volumes.pod_uids().await.is_empty() && mounts::mounts_beneath(dir.path()).is_empty());
    volumes.remove_pod("u1").await.expect("harmless");
    assert!(volumes.remove_pod("../u1").await.is_err());
}

/// What a container can do to a volume ends neither the process nor the removal: deeper than stacks, paths and open files
/// reach, and closed to everybody.
#[tokio::test]
async fn a_volume_however_deep_is_given_to_a_group_and_removed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let volumes = volumes(dir.path());
    let disk = volumes.empty_dir("u1", "disk", Medium::Disk, None, 0o777).await.expect("made");
    corten_machine::tree::deep::make_deep(&disk, corten_machine::tree::deep::DEEP);
    fs::set_permissions(disk.join("deeper/deeper"), fs::Permissions::from_mode(0o000)).expect("set");
    volumes.set_group(&disk, 4242, false).await.expect("given");
    assert_eq!(fs::metadata(disk.join("deeper".to_owned() + &"/deeper".repeat(500))).expect("there").gid(), 4242);
    volumes.remove_pod("u1").await.expect("removed");
    assert!(!dir.path().join("pods/u1").exists() && volumes.pod_uids().await.is_empty());
}

/// A link in place of what was written before leads nowhere.
#[tokio::test]
async fn files_are_not_compared_with_what_a_link_leads_to() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let volumes = volumes(dir.path());
    let path = volumes.write_files("u1", "configmap", "config", vec![file("a", "1", 0o644)]).await.expect("written");
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("a"), "1").expect("written");
    fs::set_permissions(outside.join("a"), fs::Permissions::from_mode(0o644)).expect("set");
    fs::remove_file(path.join("..data")).expect("removed");
    std::os::unix::fs::symlink(&outside, path.join("..data")).expect("linked");
    volumes.write_files("u1", "configmap", "config", vec![file("a", "1", 0o644)]).await.expect("written");
    assert!(fs::read_link(path.join("..data")).expect("a link").is_relative());
}
