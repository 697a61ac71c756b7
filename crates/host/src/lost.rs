//! Files that somebody removed while the node runs, and what follows from that. The store sees to its own.

use std::io::ErrorKind::NotFound;

use corten_kubelet::NodeProblem;
use corten_machine::Layout;

/// What a restart makes again.
const RESTART: &str = "it comes back with `corten down && corten up`";

/// What runs without them until it is started again, or asked for them.
pub(crate) fn lost(layout: &Layout) -> Vec<NodeProblem> {
    let data = layout.data.display();
    let backup = |name: &str| format!("put it back: `tar -xzf corten-backup.tar.gz -C {data} {name}`");
    let authority = "with the next start there is another authority, and no kubeconfig or node in use is known";
    let needed = [
        (layout.data.join("pki/ca.crt"), authority, backup("pki/ca.crt")),
        (layout.data.join("pki/ca.key"), authority, backup("pki/ca.key")),
        (layout.data.join("pki/sa.key"), "with the next start every token is void", backup("pki/sa.key")),
        (layout.run.join("node.lock"), "another node can be started beside this one", RESTART.into()),
        (layout.run.join("node.pid"), "nothing can end the node in good order", RESTART.into()),
        (layout.containerd_socket(), "no container can be started, ended or asked for", RESTART.into()),
    ];
    let gone = needed.into_iter().filter(|it| it.0.symlink_metadata().is_err_and(|it| it.kind() == NotFound));
    gone.map(|(path, why, help)| NodeProblem::Lost { path: path.display().to_string(), why: format!("{why}; {help}") })
        .collect()
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
}
