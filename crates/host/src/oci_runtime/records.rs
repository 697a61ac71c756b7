//! What crun has written down of a container, made again where it is lost.
//!
//! A containerd that is killed while it has an ended container deleted asks for that again at its next start. runc then
//! answers that the container `does not exist`, and all is well. crun up to 1.8 answers that a file of its own is missing;
//! containerd takes that for a failure, and would for ever neither stop the container nor remove it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use corten_machine::{Layout, cgroups::scope_of};
use rustix::process::Pid;
use serde_json::{Value, json};

use crate::shims;

/// No process has this number: what asks crun for it hears that it has ended.
const NOBODY: i32 = i32::MAX;

/// Where `message` complains of a record that is not there: writes it again, so that whoever asked can ask once more.
pub(crate) fn make_again(layout: &Layout, message: &str) -> bool {
    let Some(record) = missing_record(message, &layout.run.join("crun")) else { return false };
    let made = write(layout, &record);
    match &made {
        Ok(()) => tracing::info!(record = %record.display(), "crun's record of a container was lost and is made again"),
        Err(error) => tracing::warn!(record = %record.display(), %error, "crun's record of a container is lost"),
    }
    made.is_ok()
}

/// The folder of the container, below crun's own.
fn missing_record(message: &str, root: &Path) -> Option<PathBuf> {
    let (before, _) = message.split_once("/status`: No such file or directory")?;
    let folder = PathBuf::from(before.rsplit_once('`')?.1);
    (folder.parent()?.parent()? == root && !folder.exists()).then_some(folder)
}

fn write(layout: &Layout, record: &Path) -> io::Result<()> {
    let id = record.file_name().unwrap_or_default();
    let bundle = layout.containerd_state().join("io.containerd.runtime.v2.task/k8s.io").join(id);
    let config = fs::read(bundle.join("config.json"))?;
    let spec: Value = serde_json::from_slice(&config)?;
    let cgroups_path = spec["linux"]["cgroupsPath"].as_str().unwrap_or_default();
    let scope = scope_of(cgroups_path);
    let (pid, began) = process_of(&bundle, &id.to_string_lossy()).unwrap_or((NOBODY, 1));
    let status = json!({
        "pid": pid,
        "process-start-time": began,
        // Of a scope, the container is in a cgroup beneath.
        "cgroup-path": scope.as_ref().map_or(cgroups_path.to_owned(), |(path, _)| format!("/{path}/container")),
        "scope": scope.as_ref().map_or("", |it| &it.1),
        "rootfs": "rootfs",
        "systemd-cgroup": scope.is_some(),
        "bundle": bundle,
        "created": jiff::Timestamp::now().to_string(),
        "owner": "root",
        "detached": true,
        "external_descriptors": r#"["/dev/null","/dev/null","/dev/null"]"#,
    });
    fs::create_dir_all(record)?;
    fs::write(record.join("config.json"), config)?;
    fs::write(record.join("status"), serde_json::to_vec_pretty(&status)?)
}

/// The container's first process and when it began, where it still runs: the number alone may have come to mean another.
fn process_of(bundle: &Path, id: &str) -> Option<(i32, u64)> {
    let pid: i32 = fs::read_to_string(bundle.join("init.pid")).ok()?.trim().parse().ok()?;
    let began = shims::began(Pid::from_raw(pid)?)?;
    let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    cgroups.contains(id).then_some((pid, began))
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMPLAINT: &str = "failed to kill sandbox container: unknown error after kill: /usr/bin/crun did not terminate \
         successfully: exit status 1: error opening file `RUN/crun/k8s.io/abc/status`: No such file or directory\n: unknown";

    #[test]
    fn a_record_that_is_missed_is_made_again_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::new(folder.path().join("data"), folder.path().join("run"));
        let complaint = COMPLAINT.replace("RUN", &layout.run.to_string_lossy());
        assert!(!make_again(&layout, &complaint), "nothing is known of that container");

        let bundle = layout.containerd_state().join("io.containerd.runtime.v2.task/k8s.io/abc");
        fs::create_dir_all(&bundle).expect("created");
        fs::write(bundle.join("config.json"), r#"{"linux":{"cgroupsPath":"/pods/abc"}}"#).expect("written");
        // A process that runs, and is another's.
        fs::write(bundle.join("init.pid"), std::process::id().to_string()).expect("written");
        assert!(make_again(&layout, &complaint));
        let record = layout.run.join("crun/k8s.io/abc");
        let status: Value = serde_json::from_slice(&fs::read(record.join("status")).expect("read")).expect("JSON");
        assert_eq!([&status["pid"], &status["cgroup-path"]], [&json!(NOBODY), &json!("/pods/abc")]);
        assert!(record.join("config.json").exists());
        assert!(!make_again(&layout, &complaint), "it is there");

        let parted = r#"{"linux":{"cgroupsPath":"kubepods-pod1.slice:cri-containerd:abc"}}"#;
        fs::write(bundle.join("config.json"), parted).expect("written");
        fs::remove_dir_all(&record).expect("removed");
        assert!(make_again(&layout, &complaint));
        let status: Value = serde_json::from_slice(&fs::read(record.join("status")).expect("read")).expect("JSON");
        assert_eq!([&status["scope"], &status["systemd-cgroup"]], [&json!("cri-containerd-abc.scope"), &json!(true)]);
        let path = "/kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope/container";
        assert_eq!(status["cgroup-path"], path);
    }

    #[test]
    fn other_complaints_and_other_folders_are_left_alone() {
        let root = Path::new("/run/corten/crun");
        for message in [
            "container not running",
            "error opening file `/run/corten/crun/k8s.io/abc/config.json`: No such file or directory",
            "error opening file `/run/other/crun/k8s.io/abc/status`: No such file or directory",
            "error opening file `/run/corten/crun/k8s.io/../../status`: No such file or directory",
            "error opening file /status`: No such file or directory",
        ] {
            assert_eq!(missing_record(message, root), None, "{message}");
        }
        let folder = missing_record(&COMPLAINT.replace("RUN", "/run/corten"), root);
        assert_eq!(folder.as_deref(), Some(Path::new("/run/corten/crun/k8s.io/abc")));
    }
}
