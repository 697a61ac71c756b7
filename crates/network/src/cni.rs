//! The Pod network of one node: a bridge, an address for each Pod, and one rule that lets Pods out.
//!
//! Masquerading is done once per node, not per Pod: the plugin's own way runs iptables for each Pod and doubles its start.

mod kept;
mod plugin;

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
};

use corten_machine::{Doing, Layout, MachineError, command};
use corten_meta::address::Cidr;
use serde_json::json;

use crate::{
    ServiceRules, announced, bridge, nat64,
    nft::{self, PolicyRules, Port, SourceGuard},
    peers,
};

use kept::forget_broken_results;
pub use kept::{all_plugged, plugged};
pub(crate) use kept::{port, ports};
pub use plugin::{CniFolders, PodLink, link_local};

/// Where libcni remembers what it did, wherever its configuration lies.
pub const CACHE: &str = "/var/lib/cni";
/// Debian's folder first, then the one the plugins' own releases use.
const PLUGIN_FOLDERS: [&str; 3] = ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"];

/// The folder with the plugins this network needs.
fn plugins() -> Result<PathBuf, MachineError> {
    let complete =
        |folder: &Path| ["bridge", "host-local", "portmap", "loopback"].iter().all(|it| folder.join(it).exists());
    PLUGIN_FOLDERS.iter().map(PathBuf::from).find(|it| complete(it)).ok_or_else(|| {
        MachineError::Missing(format!(
            "no CNI plugins in {}: install containernetworking-plugins",
            PLUGIN_FOLDERS.join(", ")
        ))
    })
}

/// Makes everything ready for the first Pod; `networks` are this node's part of the cluster's Pod network, which is `all`.
async fn prepare(layout: &Layout, networks: &[String], all: &[Cidr]) -> Result<(), MachineError> {
    let folder = layout.cni_config();
    fs::create_dir_all(&folder).doing("create", &folder)?;
    let path = folder.join("10-corten.conflist");
    // Whatever is left of an earlier run, or half written, would be read as a network too.
    for entry in fs::read_dir(&folder).doing("list", &folder)?.flatten().filter(|it| it.path() != path) {
        fs::remove_file(entry.path()).doing("remove", &entry.path())?;
    }
    let text = serde_json::to_string_pretty(&network(layout, networks)).expect("plain JSON is always written");
    // A containerd that goes on would see the network leave and come back.
    if fs::read_to_string(&path).map_or(true, |it| it != text) {
        fs::write(&path, text).doing("write", &path)?;
    }
    forget_broken_addresses(&layout.cni_addresses().join(&layout.bridge));
    forget_broken_results(&Path::new(CACHE).join("results"), &layout.bridge);
    bridge::prepare(layout, networks).await?;
    put_rules(layout, networks, all).await
}

/// Is the table of [`put_rules`] there? Somebody may have emptied the whole ruleset.
pub async fn has_rules(layout: &Layout) -> Result<bool, MachineError> {
    nft::is_there(&layout.nft_table).await
}

/// Puts every sandbox that is plugged in back onto the bridge, where somebody has pulled it out or the bridge was made anew.
pub fn replug(layout: &Layout) -> Result<(), MachineError> {
    for port in ports(layout).iter().filter(|it| !is_plugged(it)) {
        bridge::plug(layout, &port.interface)?;
    }
    Ok(())
}

/// A sandbox that is off the bridge.
pub fn unplugged(layout: &Layout) -> Option<String> {
    let found = ports(layout).into_iter().find(|it| !is_plugged(it));
    found.map(|it| format!("{} is off {}", it.interface, layout.bridge))
}

fn is_plugged(port: &Port) -> bool {
    Path::new("/sys/class/net").join(&port.interface).join("master").exists() && bridge::is_up(&port.interface)
}

/// What lets Pods out, written whole.
pub async fn put_rules(layout: &Layout, networks: &[String], all: &[Cidr]) -> Result<(), MachineError> {
    let is_filtered = bridge::filter_bridged(bridge::families(networks)).await;
    if !is_filtered {
        tracing::warn!(
            "br_netfilter is not to be had: pods that meet through a service see the node's address, not the other's"
        );
    }
    let rules = rules(layout, networks, all, is_filtered);
    command::run("nft", &["-f", "-"], &rules).await.map(drop)
}

fn network(layout: &Layout, networks: &[String]) -> serde_json::Value {
    let ranges: Vec<_> = networks.iter().map(|it| json!([{ "subnet": it }])).collect();
    let default = |it: &String| json!({ "dst": if it.contains(':') { "::/0" } else { "0.0.0.0/0" } });
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
                    "ranges": ranges,
                    "routes": networks.iter().map(default).collect::<Vec<_>>(),
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    })
}

/// One atomic transaction: the table is declared, so that it can be deleted, then written anew. Through `nft`: the rules
/// are written once per start, and what changes while the node runs is in a table of its own.
///
/// The bridge's own addresses are for Pods. What comes for them by another wire is dropped: there the API may listen that
/// is otherwise for this machine alone.
fn rules(layout: &Layout, networks: &[String], all: &[Cidr], is_filtered: bool) -> String {
    let (table, bridge) = (&layout.nft_table, &layout.bridge);
    // A Pod that wraps packets as nodes do would send them past every policy.
    let mut guard = format!("\t\tudp dport {} iifname \"{bridge}\" drop\n", peers::PORT);
    let mut leave = String::new();
    for network in networks {
        let (ip, multicast) = if network.contains(':') { ("ip6", "ff00::/8") } else { ("ip", "224.0.0.0/4") };
        if let Some(own) = bridge::gateway(network) {
            guard += &format!("\t\t{ip} daddr {own} iifname != {{ \"lo\", \"{bridge}\" }} drop\n");
        }
        if !is_filtered {
            leave += &format!("\t\t{ip} saddr {network} {ip} daddr {network} ct status dnat masquerade\n");
        }
        // Pods of other nodes see who speaks to them.
        let inside = whole_range(network, all);
        leave += &format!("\t\t{ip} saddr {network} {ip} daddr != {inside} {ip} daddr != {multicast} masquerade\n");
    }
    let translated = nat64::rules(networks);
    guard += &translated.guard;
    leave += &translated.leave;
    let chains = translated.chains;
    format!(
        "table inet {table}\n\
         delete table inet {table}\n\
         table inet {table} {{\n\
         \tchain guard {{\n\
         \t\ttype filter hook prerouting priority raw; policy accept;\n\
         {guard}\
         \t}}\n\
         \tchain postrouting {{\n\
         \t\ttype nat hook postrouting priority srcnat; policy accept;\n\
         {leave}\
         \t}}\n\
         {chains}\
         }}\n"
    )
}

/// The range of all Pods of the cluster, where that holds the node's own; else that alone.
fn whole_range(network: &str, all: &[Cidr]) -> String {
    let own = Cidr::parse(network);
    let found = all.iter().find(|it| own.is_some_and(|own| it.contains(own.address)));
    found.map_or_else(|| network.to_owned(), ToString::to_string)
}

/// Has the next sandbox take these addresses, where nobody has them: host-local gives out what comes after the one that it gave last.
/// Answers those that are offered: one of each network at most.
pub fn offer(layout: &Layout, networks: &[String], addresses: &[IpAddr]) -> Vec<IpAddr> {
    let mut offered = Vec::new();
    let folder = layout.cni_addresses().join(&layout.bridge);
    for (idx, network) in networks.iter().enumerate() {
        let Some(range) = Cidr::parse(network) else { continue };
        let free = |it: &&IpAddr| range.contains(**it) && !folder.join(it.to_string()).exists();
        let Some(address) = addresses.iter().find(free) else { continue };
        let Some(before) = before(*address).filter(|it| range.contains(*it)) else { continue };
        // Where it cannot be written the Pod has another address.
        let path = folder.join(format!("last_reserved_ip.{idx}"));
        if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, before.to_string())) {
            tracing::debug!(%error, path = %path.display(), "an address cannot be offered");
            continue;
        }
        offered.push(*address);
    }
    offered
}

/// Have sandboxes all of them?
pub fn are_taken(layout: &Layout, addresses: &[IpAddr]) -> bool {
    let folder = layout.cni_addresses().join(&layout.bridge);
    addresses.iter().all(|it| folder.join(it.to_string()).exists())
}

fn before(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(it) => Ipv4Addr::from_bits(it.to_bits().checked_sub(1)?).into(),
        IpAddr::V6(it) => Ipv6Addr::from_bits(it.to_bits().checked_sub(1)?).into(),
    })
}

/// An address that is given out, and the id of the sandbox that it was given to.
pub struct AllocatedAddress {
    file: PathBuf,
    owner: String,
}

/// The addresses that are given out just now.
pub fn taken(layout: &Layout) -> Vec<AllocatedAddress> {
    let entries = fs::read_dir(layout.cni_addresses().join(&layout.bridge)).into_iter().flatten().flatten();
    let files = entries.map(|it| it.path()).filter(|it| {
        let name = it.file_name().and_then(|it| it.to_str());
        name.is_some_and(|it| it.parse::<std::net::IpAddr>().is_ok())
    });
    files.filter_map(|file| Some(AllocatedAddress { owner: owner(&file)?, file })).collect()
}

/// The sandbox's id, then the interface: of that only the first line.
fn owner(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Gives back those of sandboxes that the runtime does not know: whoever was to do that has died over it.
pub fn give_back(taken: Vec<AllocatedAddress>, known: &BTreeSet<String>) {
    for AllocatedAddress { file, owner: sandbox } in taken.into_iter().filter(|it| !known.contains(&it.owner)) {
        // Another's by now?
        if owner(&file).as_ref() == Some(&sandbox) && fs::remove_file(&file).is_ok() {
            tracing::info!(address = %file.display(), "an address that no pod has any more is given back");
        }
    }
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
pub async fn remove(layout: &Layout) -> Result<(), MachineError> {
    let table = &layout.nft_table;
    // Where the program is not installed, no rule was ever made with it.
    if command::run("nft", &["--version"], "").await.is_ok() {
        command::run("nft", &["-f", "-"], &format!("table inet {table}\ndelete table inet {table}\n")).await?;
        ServiceRules::new(layout).remove().await?;
        PolicyRules::new(layout).remove().await?;
        SourceGuard::new(layout).remove().await?;
    }
    peers::remove(layout).await?;
    announced::remove().await?;
    bridge::remove_device(&nat64::device(layout)).await?;
    bridge::remove(layout).await?;
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
async fn remove_host_ports() -> Result<(), MachineError> {
    // Asked of nft first: iptables would make the tables it is asked about.
    let all = command::run("nft", &["list", "tables"], "").await.unwrap_or_default();
    let mut tables = Vec::new();
    for (family, program) in [("ip", "iptables"), ("ip6", "ip6tables")] {
        if all.lines().any(|it| it == format!("table {family} nat")) {
            // Another program may have removed it in between.
            if let Some(listed) = listed_nat(family).await? {
                tables.push((family, program, listed));
            }
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
        if listed_nat(family).await?.is_some_and(|it| has_no_rules(&it)) {
            gone(command::run("nft", &["delete", "table", family, "nat"], "").await)?;
        }
    }
    Ok(())
}

/// The rules of a family's `nat` table; nothing where there is no such table.
async fn listed_nat(family: &str) -> Result<Option<String>, MachineError> {
    gone(command::run("nft", &["list", "table", family, "nat"], "").await)
}

/// What is not there needs nothing.
fn gone(result: Result<String, MachineError>) -> Result<Option<String>, MachineError> {
    match result {
        Err(MachineError::Command { message, .. }) if message.contains("No such file or directory") => Ok(None),
        other => other.map(Some),
    }
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
    use corten_api::cluster_network::ClusterNetwork;

    use super::*;

    #[test]
    fn replaces_its_own_table_only_and_lets_pods_talk_unmasked() {
        let networks = ["10.244.0.0/24".to_owned(), "fd00:10:244::/64".to_owned()];
        let all = ClusterNetwork::default().cluster_cidrs;
        let rules = rules(&Layout::new("/var/lib/corten", "/run/corten"), &networks, &all, true);
        assert_eq!(rules.matches("table inet corten\n").count(), 2);
        assert!(
            rules.contains("\tip saddr 10.244.0.0/24 ip daddr != 10.244.0.0/16 ip daddr != 224.0.0.0/4 masquerade")
        );
        assert!(rules.contains("ip6 saddr fd00:10:244::/64 ip6 daddr != fd00:10:244::/56"));
        assert!(rules.contains("ip6 daddr fd00:10:244::1 iifname != { \"lo\", \"corten0\" } drop"));
        assert!(!rules.contains("flush ruleset") && !rules.contains("ct status"));
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
    fn gives_back_addresses_of_unknown_sandboxes_only() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let folder = layout.cni_addresses().join(&layout.bridge);
        fs::create_dir_all(&folder).expect("a folder");
        let files = [
            ("10.244.0.2", "known\r\neth0"),
            ("10.244.0.3", "gone\r\neth0"),
            ("10.244.0.4", "gone"),
            ("fd00::2", ""),
            ("lock", "gone"),
        ];
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("a file");
        }
        let taken = taken(&layout);
        fs::write(folder.join("10.244.0.4"), "new").expect("given to another meanwhile");
        give_back(taken, &BTreeSet::from(["known".to_owned()]));
        let mut left: Vec<_> = fs::read_dir(&folder).expect("listed").flatten().map(|it| it.file_name()).collect();
        left.sort();
        assert_eq!(left, ["10.244.0.2", "10.244.0.4", "lock"]);
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
