//! The text of a Pod's `/etc/hosts`, as upstream writes it, and the machine's own name servers.

use std::{fmt, fs, net::IpAddr};

/// What a Pod's `/etc/hosts` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostsFile {
    /// The Pod's addresses. Without any the file is the machine's own: the Pod has no network of its own.
    pub ips: Vec<IpAddr>,
    pub hostname: String,
    /// `subdomain.namespace.svc.cluster.local`.
    pub domain: Option<String>,
    /// Address and its names.
    pub host_aliases: Vec<(String, Vec<String>)>,
}

impl fmt::Display for HostsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ips.is_empty() {
            f.write_str("# Kubernetes-managed hosts file (host network).\n")?;
            f.write_str(&fs::read_to_string("/etc/hosts").unwrap_or_default())?;
        } else {
            f.write_str(
                "# Kubernetes-managed hosts file.\n\
                 127.0.0.1\tlocalhost\n\
                 ::1\tlocalhost ip6-localhost ip6-loopback\n\
                 fe00::0\tip6-localnet\n\
                 fe00::0\tip6-mcastprefix\n\
                 fe00::1\tip6-allnodes\n\
                 fe00::2\tip6-allrouters\n",
            )?;
        }
        for ip in &self.ips {
            match &self.domain {
                Some(domain) => writeln!(f, "{ip}\t{}.{domain}\t{}", self.hostname, self.hostname)?,
                None => writeln!(f, "{ip}\t{}", self.hostname)?,
            }
        }
        if !self.host_aliases.is_empty() {
            f.write_str("\n# Entries added by HostAliases.\n")?;
        }
        for (ip, names) in &self.host_aliases {
            writeln!(f, "{ip}\t{}", names.join("\t"))?;
        }
        Ok(())
    }
}

/// What resolves names for a Pod; the runtime writes `/etc/resolv.conf` from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnsConfig {
    pub servers: Vec<String>,
    pub searches: Vec<String>,
    pub options: Vec<String>,
}

impl DnsConfig {
    /// The machine's own. systemd-resolved's stub listens where no Pod reaches it, so its list of real servers is read.
    pub fn of_machine() -> Self {
        let stub = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        let config = Self::parse(&stub);
        if config.servers.iter().any(|it| it == "127.0.0.53")
            && let Ok(text) = fs::read_to_string("/run/systemd/resolve/resolv.conf")
        {
            return Self::parse(&text);
        }
        config
    }

    fn parse(text: &str) -> Self {
        let mut config = Self::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") => config.servers.extend(words.next().map(str::to_owned)),
                // The last one holds.
                Some("search" | "domain") => config.searches = words.map(domain).collect(),
                Some("options") => config.options.extend(words.map(str::to_owned)),
                _ => {}
            }
        }
        config
    }
}

/// As upstream: without the dot at its end, which says nothing in this place; but for the root itself.
fn domain(text: &str) -> String {
    text.strip_suffix('.').filter(|it| !it.is_empty()).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_hosts_as_upstream_does() {
        let hosts = HostsFile {
            ips: vec![IpAddr::from([10, 244, 0, 7])],
            hostname: "web-0".to_owned(),
            domain: Some("web.default.svc.cluster.local".to_owned()),
            host_aliases: vec![("10.0.0.9".to_owned(), vec!["db".to_owned(), "db.example".to_owned()])],
        };
        let text = hosts.to_string();
        assert!(text.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"), "{text}");
        assert!(text.contains("\n10.244.0.7\tweb-0.web.default.svc.cluster.local\tweb-0\n"), "{text}");
        assert!(text.ends_with("\n\n# Entries added by HostAliases.\n10.0.0.9\tdb\tdb.example\n"), "{text}");
        assert!(HostsFile::default().to_string().starts_with("# Kubernetes-managed hosts file (host network).\n"));
    }

    #[test]
    fn reads_resolv_conf() {
        let text =
            "# made by\nnameserver 10.0.0.2\nnameserver fe80::1%eth0\nsearch a b\nsearch c. .\noptions ndots:2 edns0\n";
        let config = DnsConfig::parse(text);
        assert_eq!(config.servers, ["10.0.0.2", "fe80::1%eth0"]);
        assert_eq!(config.searches, ["c", "."]);
        assert_eq!(config.options, ["ndots:2", "edns0"]);
    }
}
