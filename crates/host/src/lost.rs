//! Files that somebody removed while the node runs, and what follows from that. The store sees to its own.

use std::{io::ErrorKind::NotFound, path::PathBuf};

use corten_kubelet::NodeProblem;
use corten_machine::Layout;

/// What a machine that has joined is known by.
const JOINED: [&str; 2] = ["kubelet/kubeconfig", "kubelet/pki/kubelet-client-current.pem"];
/// What a restart makes again.
const RESTART: &str = "it comes back with `corten down && corten up`";

/// What runs without them until it is started again, or asked for them.
pub(crate) fn lost(layout: &Layout) -> Vec<NodeProblem> {
    let of_start = [
        (layout.run.join("node.lock"), "another node can be started beside this one", RESTART.to_owned()),
        (layout.run.join("node.pid"), "nothing can end the node in good order", RESTART.to_owned()),
        (layout.containerd_socket(), "no container can be started, ended or asked for", RESTART.to_owned()),
    ];
    let needed = proofs(layout).into_iter().chain(of_start);
    let gone = needed.filter(|it| it.0.symlink_metadata().is_err_and(|it| it.kind() == NotFound));
    gone.map(|(path, why, help)| NodeProblem::Lost { path: path.display().to_string(), why: format!("{why}; {help}") })
        .collect()
}

/// What the machine is known by, and knows others by: another one where a control plane is than on a machine that has joined.
fn proofs(layout: &Layout) -> Vec<(PathBuf, &'static str, String)> {
    let of_joined = JOINED.map(|it| layout.data.join(it));
    if of_joined.iter().any(|it| it.exists()) {
        let why = "with the next start the machine is in no cluster";
        return of_joined.map(|it| (it, why, "join again with a new token: `corten token create`".to_owned())).into();
    }
    let data = layout.data.display();
    let backup = |name: &str| format!("put it back: `tar -xzf corten-backup.tar.gz -C {data} {name}`");
    let authority = "with the next start there is another authority, and no kubeconfig or node in use is known";
    let tokens = "with the next start every token is void";
    [("pki/ca.crt", authority), ("pki/ca.key", authority), ("pki/sa.key", tokens)]
        .map(|(name, why)| (layout.data.join(name), why, backup(name)))
        .into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_removed_is_named_with_what_follows() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let all = lost(&layout);
        for node_problem in &all {
            let NodeProblem::Lost { path, why } = node_problem else { panic!("{node_problem:?}") };
            assert!(why.matches('`').count() == 2, "{why} has one command");
            let path = std::path::Path::new(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, "x").expect("written");
        }
        assert_eq!(lost(&layout), []);
        fs::remove_file(layout.run.join("node.lock")).expect("removed");
        assert_eq!(lost(&layout).len(), 1);
    }
    #[test]
    fn a_machine_that_has_joined_has_no_authority_to_lose() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let paths = || -> Vec<String> {
            let of = |it: NodeProblem| match it {
                NodeProblem::Lost { path, .. } => path,
                other => panic!("{other:?}"),
            };
            let data = format!("{}/", layout.data.display());
            lost(&layout).into_iter().map(of).filter_map(|it| Some(it.strip_prefix(&data)?.to_owned())).collect()
        };
        assert_eq!(paths(), ["pki/ca.crt", "pki/ca.key", "pki/sa.key"]);
        fs::create_dir_all(layout.data.join("kubelet/pki")).expect("made");
        fs::write(layout.data.join(JOINED[0]), "").expect("written");
        assert_eq!(paths(), [JOINED[1]]);
        fs::write(layout.data.join(JOINED[1]), "").expect("written");
        assert_eq!(paths(), [""; 0]);
    }
}
