//! Names and addresses that are the cluster's own: a node that had one could serve in the place of the API server or of a
//! Service.

use core::{fmt, net::IpAddr};

const LOOPBACK: [&str; 5] =
    ["ip6-localhost", "ip6-loopback", "localhost", "localhost.localdomain", "localhost4.localdomain4"];

/// Under what a client reaches a server, in the one spelling in which it is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// In lower case, without the dot at its end.
    Name(String),
    Address(IpAddr),
}

impl Host {
    pub fn parse(text: &str) -> Self {
        let name = text.trim_end_matches('.');
        match name.parse::<IpAddr>() {
            Ok(address) => Self::of(address),
            Err(_) => Self::Name(name.to_ascii_lowercase()),
        }
    }

    /// An IPv4 address that is written as IPv6 is the IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }

    /// What the API server is called and what the machine calls itself, names that the cluster's name server answers for,
    /// patterns that stand for such names, and addresses that are no single machine's towards others.
    pub fn is_reserved(&self) -> bool {
        match self {
            Self::Name(name) => is_reserved_name(name),
            Self::Address(address) => {
                let is_broadcast = matches!(address, IpAddr::V4(it) if it.is_broadcast());
                address.is_loopback() || address.is_unspecified() || address.is_multicast() || is_broadcast
            }
        }
    }

    /// What every machine is to itself.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => LOOPBACK.contains(&&**name) || name.ends_with(".localhost"),
            Self::Address(address) => address.is_loopback(),
        }
    }

    /// Name and namespace of the Service that Pods find under `web.shop`.
    pub fn service(&self) -> Option<(&str, &str)> {
        let Self::Name(name) = self else { return None };
        name.split_once('.').filter(|it| !it.1.contains('.'))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

fn is_reserved_name(name: &str) -> bool {
    /// With all names below them: `x.svc` too.
    const DOMAINS: [&str; 3] = ["cluster.local", "localhost", "svc"];
    let is_within = |domain: &&str| name.strip_suffix(*domain).is_some_and(|it| it.is_empty() || it.ends_with('.'));
    name.is_empty()
        || name.contains('*')
        || LOOPBACK.contains(&name)
        || name == "kubernetes"
        || name.starts_with("kubernetes.")
        || DOMAINS.iter().any(is_within)
}

#[cfg(test)]
mod tests {
    use super::Host;

    #[test]
    fn the_clusters_own_names_are_known_in_every_spelling() {
        for name in [
            "kubernetes",
            "KUBERNETES.default",
            "kubernetes.default.svc",
            "Kubernetes.Default.Svc.Cluster.Local.",
            "kubernetes.example.com",
            "web.shop.svc",
            "web.shop.svc.cluster.local",
            "cluster.local",
            "svc",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "localhost.localdomain",
            "*",
            "*.shop.svc",
            "*.example.com",
            "",
            ".",
            "127.0.0.1",
            "127.8.9.1.",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "::",
            "255.255.255.255",
            "224.0.0.1",
            "ff02::1",
        ] {
            assert!(Host::parse(name).is_reserved(), "{name}");
        }
        for name in [
            "n1",
            "kubernetes-1",
            "n1.example.com",
            "mysvc",
            "a.mysvc",
            "local",
            "10.0.0.5",
            "::ffff:10.0.0.5",
            "fd00::5",
        ] {
            assert!(!Host::parse(name).is_reserved(), "{name}");
        }
        assert_eq!(Host::parse("::ffff:10.0.0.5"), Host::parse("10.0.0.5."));
        assert_eq!(Host::parse("Web.Shop.").service(), Some(("web", "shop")));
        assert_eq!(Host::parse("web.shop.svc").service(), None);
    }
}
