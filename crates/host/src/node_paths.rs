//! The node's own paths in what its system and its runtime say: whoever runs the node finds them in its log, and users of the
//! API are told what they named themselves, a volume or a path within a container.

use std::path::Path;

use corten_kubelet::Outcome;
use corten_machine::{Cgroups, Layout};

/// Where a Pod's own volumes lie within the folder of Pods.
const VOLUMES: &str = "volumes";
/// What a container's own `/` is called in the folders of runtime and snapshotter.
const ROOTS: [&str; 2] = ["/rootfs", "/fs"];

/// Shortens what an outcome says; the log keeps what was said.
pub(crate) fn shorten(layout: &Layout, pod: &impl std::fmt::Display, outcome: &mut Outcome) {
    for message in outcome.messages() {
        let short = without(layout, message);
        if short != *message {
            tracing::info!(%pod, message, "told to users without paths of this node");
            *message = short;
        }
    }
}

/// The text with other words for every path within the node's folders.
pub(crate) fn without(layout: &Layout, text: &str) -> String {
    let mut folders = [&layout.data, &layout.run].map(|it| it.to_string_lossy().into_owned()).to_vec();
    folders.extend(Cgroups::every_root(layout).into_iter().map(|it| format!("/sys/fs/cgroup/{it}")));
    let mut rest = text;
    let mut said = String::with_capacity(text.len());
    let begins = |rest: &str| -> Option<(usize, usize)> {
        let known = folders.iter().map(String::as_str).filter(|it| it.len() > 1);
        known.filter_map(|it| Some((whole(rest, it)?, it.len()))).min()
    };
    while let Some((at, n)) = begins(rest) {
        let after = &rest[at + n..];
        let end = after.find(ends_path).unwrap_or(after.len());
        said.push_str(&rest[..at]);
        said.push_str(&named(&after[..end]));
        rest = &after[end..];
    }
    said + rest
}

fn ends_path(it: char) -> bool {
    it.is_whitespace() || matches!(it, '"' | '\'' | '`' | ',' | ';' | ':' | ')' | ']' | '\\')
}

/// Where a folder stands in a text, and not another one that begins like it.
fn whole(text: &str, folder: &str) -> Option<usize> {
    let mut hits = text.match_indices(folder).map(|it| it.0);
    hits.find(|at| {
        let before = text[..*at].chars().next_back();
        let mut after = text[at + folder.len()..].chars();
        let (after, then) = (after.next(), after.next());
        let ends_sentence = after == Some('.') && then.is_none_or(char::is_whitespace);
        before.is_none_or(|it| it == '=' || ends_path(it) || it == '(' || it == '[')
            && (ends_sentence || after.is_none_or(|it| it == '/' || ends_path(it)))
    })
}

/// What users call what lies there.
fn named(beneath: &str) -> String {
    let parts: Vec<&str> = beneath.trim_matches('/').split('/').collect();
    if let ["pods", _, folder, _, name @ ..] = &parts[..]
        && *folder == VOLUMES
        && !name.is_empty()
    {
        return format!("volume {}", name.join("/"));
    }
    for root in ROOTS {
        if let Some((_, within)) = beneath.split_once(root).filter(|it| it.1.is_empty() || it.1.starts_with('/')) {
            return if within.is_empty() { "/".to_owned() } else { within.to_owned() };
        }
    }
    match (&parts[..], Path::new(beneath).file_name()) {
        // As the user named it.
        (["seccomp", profile @ ..], _) if !profile.is_empty() => profile.join("/"),
        // Its name there is a number.
        (["pods", _, "volume-subpaths", ..], _) => "the subPath of a volume".to_owned(),
        (["log", "pods", ..], _) => "the folder of its logs".to_owned(),
        (["pods", _, .., _], Some(name)) => format!("its {}", name.to_string_lossy()),
        _ => "a path of the node".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use corten_kubelet::{Failure, StartFailure, StartStage};

    use super::*;

    #[test]
    fn users_are_told_what_they_named() {
        let layout = Layout::new("/var/lib/corten", "/run/corten");
        for (said, told) in [
            ("nothing of the node", "nothing of the node"),
            (
                "mkdir /var/lib/corten/pods/1-2/volumes/kubernetes.io~empty-dir/data/sub: permission denied",
                "mkdir volume data/sub: permission denied",
            ),
            (
                "/var/lib/corten/pods/1-2/volumes/kubernetes.io~secret/keys cannot be unmounted",
                "volume keys cannot be unmounted",
            ),
            (
                "error mounting \"/var/lib/corten/pods/1-2/etc-hosts\" to rootfs at \"/etc/hosts\": open \
                 /run/corten/containerd/io.containerd.runtime.v2.task/k8s.io/ab12/rootfs/etc/hosts: read-only",
                "error mounting \"its etc-hosts\" to rootfs at \"/etc/hosts\": open /etc/hosts: read-only",
            ),
            (
                "mount /var/lib/corten/pods/1-2/volume-subpaths/app/0 to etc/app.conf: Not a directory",
                "mount the subPath of a volume to etc/app.conf: Not a directory",
            ),
            (
                "stat /var/lib/corten/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/12/fs/bin/sh: no such file",
                "stat /bin/sh: no such file",
            ),
            (
                "cannot load seccomp profile \"/var/lib/corten/seccomp/suite/missing.json\": no such file",
                "cannot load seccomp profile \"suite/missing.json\": no such file",
            ),
            (
                "failed to mount /var/lib/corten/containerd/tmpmounts/containerd-mount1",
                "failed to mount a path of the node",
            ),
            (
                "dial unix /run/corten/containerd.sock: connect: refused",
                "dial unix a path of the node: connect: refused",
            ),
            ("creating /var/lib/corten/log/pods/shop_web_1: no space", "creating the folder of its logs: no space"),
            ("write /sys/fs/cgroup/kubepods/pod1/cpu.max: invalid", "write a path of the node: invalid"),
            ("write /sys/fs/cgroup/kubepods.slice/kubepods-pod1.slice/cpu.max: no", "write a path of the node: no"),
            // What a user named, or another program has, stays.
            (
                "hostPath type check failed: /var/lib/cortens/x is not a directory",
                "hostPath type check failed: /var/lib/cortens/x is not a directory",
            ),
            ("stat /srv/var/lib/corten/x: gone", "stat /srv/var/lib/corten/x: gone"),
            ("open /data/file: gone", "open /data/file: gone"),
        ] {
            assert_eq!(without(&layout, said), told);
        }
    }

    #[test]
    fn every_failure_is_shortened() {
        let layout = Layout::new("/srv/corten data", "/run/corten");
        let message = "open /srv/corten data/pods/1/volumes/kubernetes.io~secret/keys: gone";
        let failure = StartFailure { stage: StartStage::Config, message: message.into(), container: None };
        for mut outcome in [
            Outcome::Volumes(Err(Failure::new(message))),
            Outcome::PodRemoved(Err(Failure::new(message))),
            Outcome::Container { container: "c".into(), attempt: 0, result: Err(failure) },
        ] {
            shorten(&layout, &"web", &mut outcome);
            let told: Vec<String> = outcome.messages().into_iter().map(|it| it.clone()).collect();
            assert_eq!(told, ["open volume keys: gone"]);
        }
    }
}
