//! The text of a Pod's `/etc/hosts`, as `managedHostsFileContent` writes it, and the machine's own name servers.

use std::{fs, net::IpAddr};

use corten_kubelet::{Dns, Hosts};

/// What a Pod's `/etc/hosts` says.
pub(crate) fn hosts_file(hosts: &Hosts) -> String {
    let ips: Vec<IpAddr> = hosts.ips.iter().filter_map(|it| it.parse().ok()).collect();
    let mut text = String::new();
    if ips.is_empty() {
        text.push_str("# Kubernetes-managed hosts file (host network).\n");
        text.push_str(&fs::read_to_string("/etc/hosts").unwrap_or_default());
    } else {
        text.push_str(
            "# Kubernetes-managed hosts file.\n\
             127.0.0.1\tlocalhost\n\
             ::1\tlocalhost ip6-localhost ip6-loopback\n\
             fe00::0\tip6-localnet\n\
             fe00::0\tip6-mcastprefix\n\
             fe00::1\tip6-allnodes\n\
             fe00::2\tip6-allrouters\n",
        );
    }
    let hostname = &hosts.hostname;
    for ip in ips {
        text.push_str(&match &hosts.domain {
            Some(domain) => format!("{ip}\t{hostname}.{domain}\t{hostname}\n"),
            None => format!("{ip}\t{hostname}\n"),
        });
    }
    if !hosts.aliases.is_empty() {
        text.push_str("\n# Entries added by HostAliases.\n");
    }
    for (ip, names) in &hosts.aliases {
        text.push_str(&format!("{ip}\t{}\n", names.join("\t")));
    }
    text
}

/// What resolves names for the machine. systemd-resolved's stub listens where no Pod reaches it, so its list of real servers is
/// read.
pub(crate) fn resolv_conf() -> Dns {
    let stub = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let config = parse(&stub);
    if config.servers.iter().any(|it| it == "127.0.0.53")
        && let Ok(text) = fs::read_to_string("/run/systemd/resolve/resolv.conf")
    {
        return parse(&text);
    }
    config
}

fn parse(text: &str) -> Dns {
    let mut config = Dns::default();
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

/// As in `parseResolvConf`: without the dot at its end, which says nothing in this place; but for the root itself.
fn domain(text: &str) -> String {
    text.strip_suffix('.').filter(|it| !it.is_empty()).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_hosts_as_upstream_does() {
        let hosts = Hosts {
            ips: vec!["10.244.0.7".to_owned()],
            hostname: "web-0".to_owned(),
            domain: Some("web.default.svc.cluster.local".to_owned()),
            aliases: vec![("10.0.0.9".to_owned(), vec!["db".to_owned(), "db.example".to_owned()])],
        };
        let text = hosts_file(&hosts);
        assert!(text.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"), "{text}");
        assert!(text.contains("\n10.244.0.7\tweb-0.web.default.svc.cluster.local\tweb-0\n"), "{text}");
        assert!(text.ends_with("\n\n# Entries added by HostAliases.\n10.0.0.9\tdb\tdb.example\n"), "{text}");
        assert!(hosts_file(&Hosts::default()).starts_with("# Kubernetes-managed hosts file (host network).\n"));
    }

    #[test]
    fn reads_resolv_conf() {
        let text =
            "# made by\nnameserver 10.0.0.2\nnameserver fe80::1%eth0\nsearch a b\nsearch c. .\noptions ndots:2 edns0\n";
        let config = parse(text);
        assert_eq!(config.servers, ["10.0.0.2", "fe80::1%eth0"]);
        assert_eq!(config.searches, ["c", "."]);
        assert_eq!(config.options, ["ndots:2", "edns0"]);
    }
}
