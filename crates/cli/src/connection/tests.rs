//! Which cluster a command asks, and as whom.

use super::*;

#[test]
fn the_folder_is_found_though_the_cluster_was_asked_for_elsewhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |file: &str, server: &str, ca: &str| {
        let ca = format!("-----BEGIN CERTIFICATE-----\n{ca}\n-----END CERTIFICATE-----\n");
        let config = Kubeconfig::embedded("corten", "admin", server, ca.as_bytes(), b"c", b"k");
        config.save(&folder.path().join(file)).expect("written");
    };
    write("admin.kubeconfig", "https://10.0.0.1:6443", "ca");
    write("same", "https://10.0.0.1:6443", "ca");
    write("balancer", "https://api.example.com", "ca");
    write("another", "https://10.0.0.1:6443", "another");
    for (file, n, n_of_cluster) in [("same", 1, 1), ("balancer", 0, 1), ("another", 0, 0)] {
        let path = folder.path().join(file).into_os_string();
        let line = ["x".into(), "--kubeconfig".into(), path];
        let matches = args(Command::new("x")).try_get_matches_from(line).expect("words");
        let own = |it: Vec<PathBuf>| it.iter().filter(|it| *it == folder.path()).count();
        let found = (own(data_folders(&matches)), own(data_folders_of_cluster(&matches)));
        assert_eq!(found, (n, n_of_cluster), "{file}");
    }
}

#[test]
fn what_is_not_there_is_named() {
    let paths = |it: &[&str]| it.iter().map(PathBuf::from).collect::<Vec<_>>();
    for (paths, is_told, said) in [
        (paths(&["/nonexistent"]), true, "KUBECONFIG names /nonexistent, which does not exist"),
        (paths(&["/a", "/b"]), true, "KUBECONFIG names /a, /b, none of which exists"),
        (
            paths(&["/home/me/.kube/config"]),
            false,
            "no cluster is known: /home/me/.kube/config does not exist; start one, or name a kubeconfig with --kubeconfig",
        ),
        (Vec::new(), false, "no cluster is known; start one, or name a kubeconfig with --kubeconfig"),
    ] {
        assert_eq!(unknown_cluster(&paths, is_told).message, said);
    }
}
