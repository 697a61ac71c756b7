//! The release of this program, and how far apart those of one cluster may be: upstream's version skew policy.

/// What servers and kubelets say they are. Of one release of Kubernetes' API, and one of Corten.
pub const VERSION: &str = concat!("v1.37.0+corten.", env!("CARGO_PKG_VERSION"));

/// Stands in the version of each of Corten's servers, and of none of upstream's.
const OWN: &str = "+corten.";

/// So many minor releases a kubelet may be older than the servers that it asks.
const KUBELET_OLDER_MAX: u64 = 3;
/// So many minor releases the servers of one store may be apart.
const SERVERS_APART_MAX: u64 = 1;

/// Is it the version of a server of Corten, and not of upstream's?
pub fn is_own(version: &str) -> bool {
    version.contains(OWN)
}

/// Major and minor; `None` where the text is no version.
pub fn minor(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.strip_prefix('v')?.split('.').map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Why a kubelet cannot count on a server. What is no version is not judged.
pub fn kubelet_skew(kubelet: &str, server: &str) -> Option<String> {
    let (own, servers) = (minor(kubelet)?, minor(server)?);
    if own > servers {
        return Some(format!(
            "its kubelet is {kubelet}, newer than the API server, {server}: servers are upgraded before nodes"
        ));
    }
    let is_too_old = own.0 < servers.0 || servers.1 - own.1 > KUBELET_OLDER_MAX;
    is_too_old.then(|| {
        format!(
            "its kubelet is {kubelet}, more than {KUBELET_OLDER_MAX} minor releases older than the API server, {server}"
        )
    })
}

/// Why two servers cannot share a store.
pub fn servers_skew(own: &str, other: &str) -> Option<String> {
    let (ours, others) = (minor(own)?, minor(other)?);
    let is_apart = ours.0 != others.0 || ours.1.abs_diff(others.1) > SERVERS_APART_MAX;
    is_apart.then(|| {
        format!("this server is {own}, and another one, which runs, is {other}: more than {SERVERS_APART_MAX} minor release apart")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_is_no_newer_and_three_minors_older_at_most() {
        let server = "v1.37.0+corten.0.1.0";
        for (kubelet, expected) in [
            (server, None),
            ("v1.37.9", None),
            ("v1.36.0+corten.0.1.0", None),
            ("v1.34.2", None),
            ("v1.33.0", Some("more than 3 minor releases older than the API server, v1.37.0")),
            ("v0.99.0", Some("more than 3 minor releases older")),
            ("v1.38.0-alpha.1", Some("newer than the API server")),
            ("v2.0.0", Some("newer than the API server")),
            ("", None),
            ("unknown", None),
        ] {
            let said = kubelet_skew(kubelet, server);
            assert_eq!(said.is_some(), expected.is_some(), "{kubelet}: {said:?}");
            assert!(said.unwrap_or_default().contains(expected.unwrap_or_default()), "{kubelet}");
        }
    }

    #[test]
    fn servers_are_one_minor_apart_at_most() {
        for (other, is_apart) in [
            ("v1.37.4", false),
            ("v1.36.0", false),
            ("v1.38.0", false),
            ("v1.35.0", true),
            ("v2.37.0", true),
            ("", false),
        ] {
            assert_eq!(servers_skew("v1.37.0+corten.0.1.0", other).is_some(), is_apart, "{other}");
        }
    }

    #[test]
    fn this_program_has_a_version() {
        assert!(minor(VERSION).is_some(), "{VERSION}");
        assert!(is_own(VERSION) && !is_own("v1.37.0"));
    }
}
