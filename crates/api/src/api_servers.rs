//! How API servers are known: each says in a Lease that it is there, and machines were told in `cluster-info` where to join.

use corten_meta::{
    ObjectMeta,
    address::{authority, split_host_port},
    reserved::Host,
};

/// Where their Leases are.
pub const LEASE_NAMESPACE: &str = "kube-system";
const LEASES: &str = "apiserver-";
/// The label that only their Leases have.
pub const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
/// The annotation that says at which address the server is reached.
pub const ADVERTISED: &str = "corten.dev/advertise-address";

/// The annotation that says which release the server is.
pub const RELEASE: &str = "corten.dev/version";

/// The annotation that names the node in the server's process: where the server is it is, too.
pub const NODE: &str = "corten.dev/node";

/// What the server of a Lease is called and where it is, or was until an hour ago: while it restarts both are nobody else's.
pub fn hosts_of_lease(metadata: &ObjectMeta) -> Vec<Host> {
    let is_servers = metadata.namespace == LEASE_NAMESPACE
        && metadata.name.starts_with(LEASES)
        && metadata.labels.contains_key(IDENTITY_LABEL);
    if !is_servers {
        return Vec::new();
    }
    let name = metadata.labels.get("kubernetes.io/hostname").map(|it| Host::parse(it));
    let address = metadata.annotations.get(ADVERTISED).and_then(|it| it.parse().ok()).map(Host::of);
    name.into_iter().chain(address).collect()
}

/// The servers of a kubeconfig by which machines join: a balancer's name, perhaps.
pub fn hosts_of_kubeconfig(text: &str) -> Vec<Host> {
    let urls = text.lines().filter_map(|it| it.trim().trim_start_matches("- ").strip_prefix("server:"));
    urls.filter_map(|it| host_of(it.trim().trim_matches(['"', '\'']))).collect()
}

/// `https://api.example.com:6443/` is at `api.example.com`.
pub fn host_of(url: &str) -> Option<Host> {
    let (host, _) = split_host_port(authority(url.split_once("://")?.1));
    (!host.is_empty()).then(|| Host::parse(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_are_told_is_read() {
        let of = |server: &str| {
            hosts_of_kubeconfig(&format!(
                "clusters:\n- cluster:\n    certificate-authority-data: x\n    server: {server}\n  name: ''\n"
            ))
        };
        for (url, host) in [
            ("https://api.example.com:6443", "api.example.com"),
            ("\"https://192.0.2.1/path\"", "192.0.2.1"),
            ("https://[2001:db8::1]:6443", "2001:db8::1"),
        ] {
            assert_eq!(of(url), [Host::parse(host)], "{url}");
        }
        assert!(of("nonsense").is_empty() && hosts_of_kubeconfig("").is_empty());
    }

    #[test]
    fn a_server_that_has_left_the_endpoints_is_known_by_its_lease() {
        let map = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
        let lease = |address: &str| ObjectMeta {
            namespace: LEASE_NAMESPACE.into(),
            name: "apiserver-1".into(),
            labels: map(IDENTITY_LABEL, "kube-apiserver"),
            annotations: map(ADVERTISED, address),
            ..ObjectMeta::default()
        };
        assert_eq!(hosts_of_lease(&lease("10.0.0.2")), [Host::parse("10.0.0.2")]);
        for odd in [
            lease("nonsense"),
            ObjectMeta { labels: map("other", "label"), ..lease("10.0.0.2") },
            ObjectMeta { name: "another".into(), ..lease("10.0.0.2") },
            ObjectMeta { namespace: "default".into(), ..lease("10.0.0.2") },
        ] {
            assert_eq!(hosts_of_lease(&odd), [], "{odd:?}");
        }
    }
}
