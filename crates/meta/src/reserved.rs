//! Names and addresses that are the cluster's own: a node that had one could serve in the place of the API server or of a
//! Service.

use core::{fmt, net::IpAddr};

use crate::address::is_reachable;

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

    /// As [`Self::parse`], of what everybody reads alike: some readers find an address in `010.0.0.1`, `0x7f.1`, `[::1]` or
    /// `2130706433`, each its own, and others a name.
    ///
    /// # Errors
    /// It could be read in another way, in words that follow it in a message.
    pub fn strict(text: &str) -> Result<Self, &'static str> {
        const ODD: &str = "is no address or name that everybody reads alike";
        match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(it)) if it.to_ipv4_mapped().is_some() => Err("is an IPv4 address that is written as IPv6"),
            Ok(address) => Ok(Self::of(address)),
            Err(_) => {
                let name = text.strip_suffix('.').unwrap_or(text);
                let is_letter = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.' | b'*');
                let last = name.rsplit('.').next().unwrap_or_default();
                // As browsers have it: what ends in a number is an address, or none at all.
                let hex = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
                let is_number = last.bytes().all(|it| it.is_ascii_digit())
                    || hex.is_some_and(|it| it.bytes().all(|it| it.is_ascii_hexdigit()));
                let is_plain = name.bytes().all(is_letter) && !name.split('.').any(str::is_empty);
                if is_plain && !is_number { Ok(Self::parse(name)) } else { Err(ODD) }
            }
        }
    }

    /// What the API server is called and what the machine calls itself, names that the cluster's name server answers for,
    /// patterns that stand for such names, and addresses that are no single machine's towards others.
    pub fn is_reserved(&self, domain: &str) -> bool {
        match self {
            Self::Name(name) => is_reserved_name(name, domain),
            Self::Address(address) => !is_reachable(*address),
        }
    }

    /// What every machine is to itself.
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => LOOPBACK.contains(&&**name) || name.ends_with(".localhost"),
            Self::Address(address) => address.is_loopback(),
        }
    }

    /// What many machines have, each on its own wire: among them those that tell a cloud's machines their secrets.
    pub fn is_link_local(&self) -> bool {
        match self {
            Self::Address(IpAddr::V4(it)) => it.is_link_local(),
            Self::Address(IpAddr::V6(it)) => it.is_unicast_link_local(),
            Self::Name(_) => false,
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

fn is_reserved_name(name: &str, domain: &str) -> bool {
    /// With all names below them: `x.svc` too.
    const DOMAINS: [&str; 2] = ["localhost", "svc"];
    let is_within = |domain: &&str| name.strip_suffix(*domain).is_some_and(|it| it.is_empty() || it.ends_with('.'));
    name.is_empty()
        || name.contains('*')
        || LOOPBACK.contains(&name)
        || name == "kubernetes"
        || name.starts_with("kubernetes.")
        || DOMAINS.iter().chain([&domain]).any(is_within)
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
            "169.254.169.254",
            "::ffff:169.254.169.254",
            "fe80::1",
            "224.0.0.1",
            "ff02::1",
            "169.254.169.254",
            "fe80::1",
        ] {
            assert!(Host::parse(name).is_reserved("cluster.local"), "{name}");
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
            assert!(!Host::parse(name).is_reserved("cluster.local"), "{name}");
        }
        for odd in [
            "010.096.000.001",
            "10.96.0.01",
            "10.96.0",
            "10.96.0.1.",
            "0x7f.1",
            "0x7F000001",
            "127.0x1",
            "2130706433",
            "1.2.3.4.5",
            "a.1",
            "a.0x1",
            "[::1]",
            "[::ffff:7f00:1]",
            "::ffff:7f00:1",
            "::ffff:10.96.0.1",
            "fe80::1%eth0",
            "fd00::5.",
            "fd00::5/64",
            "10.96.0.1:443",
            " 10.96.0.1",
            "10.96.0.1\n",
            "\u{ff11}27.0.0.1",
            "127\u{3002}0.0.1",
            "a..b",
            ".a",
            "a b",
            "a/b",
            "a%2eb",
            "",
            ".",
        ] {
            assert!(Host::strict(odd).is_err(), "{odd}");
        }
        for plain in [
            "n1",
            "N1.Example.com",
            "n1.example.com.",
            "ip-10-0-0-5",
            "n_1",
            "10.0.0.5",
            "fd00::5",
            "FD00:0:0::5",
            "127.0.0.1",
            "localhost",
        ] {
            assert_eq!(Host::strict(plain), Ok(Host::parse(plain)), "{plain}");
        }
        assert_eq!(Host::parse("::ffff:10.0.0.5"), Host::parse("10.0.0.5."));
        assert_eq!(Host::parse("Web.Shop.").service(), Some(("web", "shop")));
        assert_eq!(Host::parse("web.shop.svc").service(), None);
    }
}
