use super::*;

const FILE: &str = r#"
apiVersion: v1
kind: Config
current-context: dev
clusters:
- name: one
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Q0E=, x-note: kept}
- name: two
  cluster: {server: "https://10.0.0.2:6443", certificate-authority: ca.crt, tls-server-name: api}
contexts:
- {name: dev, context: {cluster: one, user: admin, namespace: web}}
- {name: files, context: {cluster: two, user: files}}
- {name: helper, context: {cluster: one, user: helper}}
- {name: half, context: {cluster: one, user: half}}
- {name: lost, context: {cluster: none, user: admin}}
users:
- {name: admin, user: {client-certificate-data: Q1JU, client-key-data: S0VZ}}
- {name: files, user: {tokenFile: token}}
- {name: helper, user: {exec: {command: aws}}}
- {name: half, user: {client-key-data: S0VZ}}
preferences: {}
"#;

fn in_folder() -> (tempfile::TempDir, Kubeconfig) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in [("config", FILE), ("ca.crt", "CA of two"), ("token", "secret\n")] {
        fs::write(folder.path().join(name), text).expect("writable");
    }
    let config = Kubeconfig::load(&folder.path().join("config")).expect("a kubeconfig");
    (folder, config)
}

#[test]
fn a_context_gives_all_that_is_needed_to_connect() {
    let (_folder, config) = in_folder();
    let current = config.target(None).expect("complete");
    assert_eq!(current.server, "https://10.0.0.1:6443");
    assert_eq!((&*current.ca, &*current.namespace), (&b"CA"[..], "web"));
    assert_eq!(current.identity, Some((b"CRT".to_vec(), b"KEY".to_vec())));

    let files = config.target(Some("files")).expect("complete");
    assert_eq!((&*files.ca, files.token.as_deref()), (&b"CA of two"[..], Some("secret")));
    assert_eq!((files.server_name.as_deref(), files.identity), (Some("api"), None));
}

#[test]
fn what_is_missing_or_unknown_is_said() {
    let (_folder, config) = in_folder();
    for (context, expected) in [
        ("helper", r#"user "helper" signs in by "exec", which is not supported"#),
        ("half", r#"user "half" has a key, no certificate"#),
        ("lost", r#"cluster "none" does not exist"#),
        ("nowhere", r#"context "nowhere" does not exist"#),
    ] {
        assert_eq!(config.target(Some(context)).expect_err(context).to_string(), expected);
    }
    let none = Kubeconfig::default().target(None).expect_err("no context");
    assert_eq!(none.to_string(), "the kubeconfig names no current context");
}

#[test]
fn writing_loses_nothing_and_keeps_the_file_private() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, config) = in_folder();
    let path = folder.path().join("sub/copy");
    config.save(&path).expect("writable");
    let mode = fs::metadata(&path).expect("written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let copy = Kubeconfig::load(&path).expect("a kubeconfig");
    assert_eq!(Kubeconfig { path: config.path.clone(), ..copy }, config);
    assert_eq!(config.clusters[0].cluster.unknown["x-note"], "kept");
}

#[test]
fn of_two_entries_the_first_counts() {
    let mut first = Kubeconfig::embedded("one", "admin", "https://first", b"CA", b"CRT", b"KEY");
    let second = Kubeconfig::embedded("one", "other", "https://second", b"", b"", b"");
    first.merge(second);
    assert_eq!(first.clusters.len(), 1);
    assert_eq!(first.users.len(), 2);
    assert_eq!(first.target(None).expect("complete").server, "https://first");
}

#[test]
fn what_cannot_be_read_is_not_shown() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("config");
    for text in [
        "-----BEGIN PRIVATE KEY-----\nSECRET0\nSECRET1: SECRET2\n-----END PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----\nSECRET0\nSECRET1\n-----END PRIVATE KEY-----\n",
        "SECRET",
        "\"SECRET \\\" SECRET\"",
        "users:\n- name: a\n  user:\n    token: SECRET\n   client-key-data: SECRET\n",
        "users:\n- name: a\n  user:\n    token: [SECRET\n",
        "users:\n- name: a\n  user:\n    token: \"SECRET\n",
        "users:\n- name: a\n  user:\n    token: {SECRET: SECRET}\n",
        "users:\n- name: a\n  user: SECRET\n",
        "users:\n- SECRET\n",
        "users: SECRET\n",
        "clusters:\n- name: a\n  cluster: {insecure-skip-tls-verify: SECRET}\n",
        "users:\n- name: a\n  user: {token: *SECRET}\n",
        "users:\n- name: a\n  user: {token: !!binary SECRET}\n",
        "users:\n- name: a\n  user: {token: !!int SECRET}\n",
        "users:\n- name: a\n  user: {SECRET: 1, SECRET: 1}\n",
    ] {
        fs::write(&path, text).expect("writable");
        let said = Kubeconfig::load(&path).expect_err(text).to_string();
        assert!(!said.contains("SECRET") && said.contains("line ") && !said.contains('\n'), "{text:?}: {said}");
    }
}
