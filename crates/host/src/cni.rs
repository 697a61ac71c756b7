//! The Pod network of one node: a bridge, an address for each Pod, and one rule that lets Pods out.
//!
//! Masquerading is done once per node, not per Pod: the plugin's own way runs iptables for each Pod and doubles its start.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::json;

use crate::{HostError, Layout, command, error::Doing};

/// Where libcni remembers what it did, wherever its configuration lies.
const CACHE: &str = "/var/lib/cni";
/// Debian's folder first, then the one the plugins' own releases use.
const PLUGIN_FOLDERS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];

/// The folder with the plugins this network needs.
pub(crate) fn plugins() -> Result<PathBuf, HostError> {
    let complete =
        |folder: &Path| ["bridge", "host-local", "portmap", "loopback"].iter().all(|it| folder.join(it).exists());
    PLUGIN_FOLDERS.iter().map(PathBuf::from).find(|it| complete(it)).ok_or_else(|| {
        HostError::Missing(format!(
            "no CNI plugins in {}: install containernetworking-plugins",
            PLUGIN_FOLDERS.join(", ")
        ))
    })
}

/// Makes everything ready for the first Pod; `pod_cidr` is this node's part of the cluster's Pod network.
pub(crate) async fn prepare(layout: &Layout, pod_cidr: &str) -> Result<(), HostError> {
    let folder = layout.cni_config();
    fs::create_dir_all(&folder).doing("create", &folder)?;
    let path = folder.join("10-corten.conflist");
    // Whatever is left of an earlier run, or half written, would be read as a network too.
    for entry in fs::read_dir(&folder).doing("list", &folder)?.flatten().filter(|it| it.path() != path) {
        fs::remove_file(entry.path()).doing("remove", &entry.path())?;
    }
    let text = serde_json::to_string_pretty(&network(layout, pod_cidr)).expect("plain JSON is always written");
    // A containerd that goes on would see the network leave and come back.
    if fs::read_to_string(&path).map_or(true, |it| it != text) {
        fs::write(&path, text).doing("write", &path)?;
    }
    forget_broken_addresses(&layout.cni_addresses().join(&layout.bridge));
    let forward = Path::new("/proc/sys/net/ipv4/ip_forward");
    fs::write(forward, "1").doing("write", forward)?;
    let rules = masquerade(&layout.nft_table, pod_cidr);
    command::run("nft", &["-f", "-"], &rules).await.map(drop)
}

fn network(layout: &Layout, pod_cidr: &str) -> serde_json::Value {
    json!({
        "cniVersion": "1.0.0",
        // Also the start of each file libcni keeps of the network, and so another for each node of a machine.
        "name": layout.bridge,
        "plugins": [
            {
                "type": "bridge",
                "bridge": layout.bridge,
                "isGateway": true,
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": layout.cni_addresses(),
                    "ranges": [[{ "subnet": pod_cidr }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    })
}

/// One atomic transaction: the table is declared, so that it can be deleted, then written anew.
///
/// Through `nft` and not netlink, since the rules are written once per start; an encoder of our own comes with Services.
fn masquerade(table: &str, pod_cidr: &str) -> String {
    format!(
        "table inet {table}\n\
         delete table inet {table}\n\
         table inet {table} {{\n\
         \tchain postrouting {{\n\
         \t\ttype nat hook postrouting priority srcnat; policy accept;\n\
         \t\tip saddr {pod_cidr} ip daddr != {pod_cidr} ip daddr != 224.0.0.0/4 masquerade\n\
         \t}}\n\
         }}\n"
    )
}

/// host-local keeps a file per address, holding the sandbox's id. An empty one, as a full disk or a crash leaves it,
/// would keep its address for ever.
fn forget_broken_addresses(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_address = entry.file_name().to_str().is_some_and(|it| it.parse::<std::net::IpAddr>().is_ok());
        if is_address && entry.metadata().is_ok_and(|it| it.len() == 0) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Takes the network away: rules, bridge, and what the plugins remember. Harmless where it is gone.
pub(crate) async fn remove(layout: &Layout) -> Result<(), HostError> {
    let table = &layout.nft_table;
    // Where the program is not installed, no rule was ever made with it.
    if command::run("nft", &["--version"], "").await.is_ok() {
        command::run("nft", &["-f", "-"], &format!("table inet {table}\ndelete table inet {table}\n")).await?;
    }
    if Path::new("/sys/class/net").join(&layout.bridge).exists() {
        command::run("ip", &["link", "delete", &layout.bridge], "").await?;
    }
    remove_host_ports().await?;
    let results = Path::new(CACHE).join("results");
    for entry in fs::read_dir(&results).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{}-", layout.bridge)) {
            fs::remove_file(entry.path()).doing("remove", &entry.path())?;
        }
    }
    // Only where nobody else's are in them.
    for folder in [results.as_path(), Path::new(CACHE)] {
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}

/// The portmap plugin makes three chains for all host ports of a machine, and leaves them when the last port is gone.
async fn remove_host_ports() -> Result<(), HostError> {
    // Asked of nft first: iptables would make the tables it is asked about.
    let all = command::run("nft", &["list", "tables"], "").await.unwrap_or_default();
    let mut tables = Vec::new();
    for (family, program) in [("ip", "iptables"), ("ip6", "ip6tables")] {
        if all.lines().any(|it| it == format!("table {family} nat")) {
            let listed = command::run("nft", &["list", "table", family, "nat"], "").await?;
            tables.push((family, program, listed));
        }
    }
    // It makes both tables, even where only one is used.
    if !tables.iter().any(|(_, _, listed)| listed.contains("CNI-HOSTPORT-")) {
        return Ok(());
    }
    for (family, program, _) in tables {
        let saved = command::run(&format!("{program}-save"), &["-t", "nat"], "").await?;
        if let Some(rules) = without_host_ports(&saved) {
            command::run(&format!("{program}-restore"), &["-w"], &rules).await?;
        }
        if has_no_rules(&command::run("nft", &["list", "table", family, "nat"], "").await?) {
            command::run("nft", &["delete", "table", family, "nat"], "").await?;
        }
    }
    Ok(())
}

/// Is there nothing in the table but chains that let everything pass?
fn has_no_rules(listed: &str) -> bool {
    let frame = |it: &str| {
        it.is_empty()
            || it == "}"
            || it.starts_with("table ")
            || it.starts_with("chain ")
            || it.ends_with("policy accept;")
    };
    listed.lines().all(|it| frame(it.trim()))
}

/// The table without the plugin's chains; nothing where it has none, or somebody still uses them.
fn without_host_ports(saved: &str) -> Option<String> {
    let is_in_use = saved.lines().any(|it| it.starts_with(":CNI-DN-"));
    if is_in_use || !saved.contains("CNI-HOSTPORT-") {
        return None;
    }
    Some(saved.lines().filter(|it| !it.contains("CNI-HOSTPORT-")).map(|it| format!("{it}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_its_own_table_only_and_lets_pods_talk_unmasked() {
        let rules = masquerade("corten", "10.244.0.0/24");
        assert_eq!(rules.matches("table inet corten").count(), 3);
        assert!(rules.contains("ip saddr 10.244.0.0/24 ip daddr != 10.244.0.0/24"));
        assert!(!rules.contains("flush ruleset"));
    }

    #[test]
    fn host_port_chains_go_when_nobody_uses_them() {
        let theirs = "*nat\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -j THEIRS\n";
        let chains = ":CNI-HOSTPORT-DNAT - [0:0]\n-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT\n";
        assert_eq!(without_host_ports(&format!("{theirs}COMMIT\n")), None);
        assert_eq!(without_host_ports(&format!("{theirs}{chains}COMMIT\n")), Some(format!("{theirs}COMMIT\n")));
        assert_eq!(without_host_ports(&format!("{theirs}{chains}:CNI-DN-1 - [0:0]\nCOMMIT\n")), None);

        let empty =
            "table ip nat {\n\tchain OUTPUT {\n\t\ttype nat hook output priority -100; policy accept;\n\t}\n}\n";
        assert!(has_no_rules(empty) && !has_no_rules(&empty.replace("accept;\n", "accept;\n\t\tmasquerade\n")));
    }

    #[test]
    fn forgets_empty_addresses_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [("10.244.0.2", ""), ("10.244.0.3", "sandbox"), ("lock", ""), ("last_reserved_ip.0", "")] {
            fs::write(dir.path().join(name), text).expect("a file");
        }
        forget_broken_addresses(dir.path());
        let mut left: Vec<_> = fs::read_dir(dir.path()).expect("listed").flatten().map(|it| it.file_name()).collect();
        left.sort();
        assert_eq!(left, ["10.244.0.3", "last_reserved_ip.0", "lock"]);
    }
}
