use super::*;

const OLD: &str = "-----BEGIN CERTIFICATE-----\nold\n-----END CERTIFICATE-----\n";
const NEW: &str = "-----BEGIN CERTIFICATE-----\nnew\n-----END CERTIFICATE-----\n";

#[test]
fn the_own_kubeconfig_is_known_from_anothers_and_renewed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let write = |file: &str, user: &str, ca: &str, key: &str| {
        let path = dir.path().join(file);
        let config = Kubeconfig::embedded(
            "corten",
            user,
            "https://127.0.0.1:6443",
            ca.as_bytes(),
            key.as_bytes(),
            key.as_bytes(),
        );
        config.save(&path).expect("written");
        path
    };
    let admin = write("admin", "kubernetes-admin", &format!("{NEW}{OLD}"), "fresh");
    let target = |path: &Path| Kubeconfig::load(path).expect("there").target(None).expect("whole");
    for (name, user, ca, is_same, is_renewed) in [
        ("same", "kubernetes-admin", OLD, true, true),
        ("a user of their own", "jane", OLD, true, false),
        ("another cluster", "kubernetes-admin", "ca", false, false),
    ] {
        let path = write("file", user, ca, "stale");
        assert_eq!(leads_to_same_cluster(&path, &admin), is_same, "{name}");
        assert_eq!(renew(&path, &admin).expect("written"), is_same, "{name}");
        let found = target(&path);
        assert_eq!(found.ca == target(&admin).ca, is_same, "{name}");
        let key = if is_renewed { "fresh" } else { "stale" };
        assert_eq!(found.identity, Some((key.into(), key.into())), "{name}");
        assert!(!renew(&path, &admin).expect("read"), "{name} twice");
    }
    assert!(!leads_to_same_cluster(&admin, &dir.path().join("absent")));
}
