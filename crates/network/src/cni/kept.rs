//! What libcni keeps of each sandbox that it has plugged in: whose it is, where, and with which addresses.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use corten_machine::{Doing, Layout, MachineError};
use corten_meta::Key;
use corten_netpolicy::PodSandbox;
use serde::{Deserialize, de::IgnoredAny};

use super::CACHE;
use crate::{bridge::is_there, nft::Port};

/// What libcni keeps of a sandbox's network.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CachedResult {
    result: Plugged,
    #[serde(default)]
    container_id: String,
    /// Whose it is, as the runtime has told the plugins.
    #[serde(default)]
    cni_args: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Plugged {
    #[serde(default)]
    interfaces: Vec<Interface>,
    #[serde(default)]
    ips: Vec<Ip>,
}

#[derive(Deserialize)]
struct Interface {
    name: String,
    #[serde(default)]
    mac: String,
    /// The network namespace; nothing for one of the machine's own.
    #[serde(default)]
    sandbox: String,
}

#[derive(Deserialize)]
struct Ip {
    address: String,
}

/// Where a sandbox is plugged into the network.
///
/// # Errors
/// libcni has kept nothing of it that can be read.
pub(crate) fn port(layout: &Layout, sandbox: &str) -> Result<Port, MachineError> {
    let path = result_of(layout, sandbox);
    let text = fs::read(&path).doing("read", &path)?;
    port_of(&text, &layout.bridge)
        .ok_or_else(|| MachineError::Missing(format!("{} names no interface", path.display())))
}

fn port_of(text: &[u8], bridge: &str) -> Option<Port> {
    let CachedResult { result: Plugged { interfaces, ips }, .. } = serde_json::from_slice(text).ok()?;
    let pods = interfaces.iter().find(|it| !it.sandbox.is_empty())?;
    let machines = interfaces.iter().find(|it| it.sandbox.is_empty() && it.name != bridge)?;
    Some(Port { interface: machines.name.clone(), mac: mac_of(pods)?, addresses: addresses_of(&ips) })
}

fn mac_of(interface: &Interface) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = interface.mac.split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    Some(mac)
}

fn addresses_of(ips: &[Ip]) -> Vec<IpAddr> {
    ips.iter().filter_map(|it| it.address.split('/').next()?.parse().ok()).collect()
}

/// The address that the Pod's interface has made for itself, of what another's plug-in has answered.
fn link_local_of(text: &[u8]) -> Option<IpAddr> {
    let kept: CachedResult = serde_json::from_slice(text).ok()?;
    let mac = mac_of(kept.result.interfaces.iter().find(|it| !it.sandbox.is_empty())?)?;
    let port = Port { interface: String::new(), mac, addresses: addresses_of(&kept.result.ips) };
    port.all_addresses().into_iter().find(|it| !port.addresses.contains(it))
}

/// Whose sandbox it is, and its addresses.
fn pod_of(text: &[u8], bridge: &str) -> Option<PodSandbox> {
    let port = port_of(text, bridge)?;
    let CachedResult { container_id, cni_args, .. } = serde_json::from_slice(text).ok()?;
    let told = |name: &str| cni_args.iter().find(|it| it.0 == name).map(|it| it.1.clone());
    Some(PodSandbox {
        sandbox: container_id,
        pod: Key::new(told("K8S_POD_NAMESPACE")?, told("K8S_POD_NAME")?),
        uid: told("K8S_POD_UID")?,
        addresses: port.all_addresses(),
        labels: None,
    })
}

/// Whose sandbox this is, and its addresses.
///
/// # Errors
/// libcni has kept nothing of it that can be read.
pub fn plugged(layout: &Layout, sandbox: &str) -> Result<PodSandbox, MachineError> {
    let path = result_of(layout, sandbox);
    let text = fs::read(&path).doing("read", &path)?;
    pod_of(&text, &layout.bridge).ok_or_else(|| MachineError::Missing(format!("{} names no pod", path.display())))
}

/// As [`plugged`], of all sandboxes.
pub fn all_plugged(layout: &Layout) -> Vec<PodSandbox> {
    kept(layout)
        .filter_map(|text| {
            let port = port_of(&text, &layout.bridge)?;
            is_there(&port.interface).then(|| pod_of(&text, &layout.bridge)).flatten()
        })
        .collect()
}

/// What a sandbox's interface has besides, in a network of another's plug-in, where that plug-in has said enough to tell.
pub(super) fn link_local_by_plugin(sandbox: &str) -> Option<IpAddr> {
    link_local_of(&fs::read(plugins_result(sandbox)?).ok()?)
}

/// As [`forget_broken_result`], of a sandbox in a network of another's plug-in.
pub(super) fn forget_broken_result_of_plugin(sandbox: &str) -> bool {
    plugins_result(sandbox).is_some_and(|it| forget_if_broken(&it))
}

/// Its file begins with the network's name, which is the plug-in's to choose.
fn plugins_result(sandbox: &str) -> Option<PathBuf> {
    let end = format!("-{sandbox}-eth0");
    let entries = fs::read_dir(results()).into_iter().flatten().flatten();
    entries.map(|it| it.path()).find(|it| it.to_string_lossy().ends_with(&end))
}

/// What libcni has kept of each sandbox.
fn kept(layout: &Layout) -> impl Iterator<Item = Vec<u8>> {
    let entries = fs::read_dir(results()).into_iter().flatten().flatten();
    let prefix = format!("{}-", layout.bridge);
    let own = entries.filter(move |it| it.file_name().to_string_lossy().starts_with(&prefix));
    own.filter_map(|it| fs::read(it.path()).ok())
}

/// All sandboxes that are plugged in.
pub(crate) fn ports(layout: &Layout) -> Vec<Port> {
    let ports = kept(layout).filter_map(|it| port_of(&it, &layout.bridge));
    // Of one that died half way the file may have stayed.
    ports.filter(|it| is_there(&it.interface)).collect()
}

/// Removes cached CNI results that are no JSON. libcni writes one file for each network it made and does not sync it, so a power
/// cut can leave it empty; with such a file the sandbox could never be taken down. Without it, what the kernel shows is taken down.
pub(super) fn forget_broken_results(folder: &Path, bridge: &str) {
    let prefix = format!("{bridge}-");
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            forget_if_broken(&entry.path());
        }
    }
}

/// Removes the cached CNI result of one sandbox if it is broken, and says whether it did.
pub(super) fn forget_broken_result(layout: &Layout, sandbox: &str) -> bool {
    forget_if_broken(&result_of(layout, sandbox))
}

pub(super) fn forget_if_broken(file: &Path) -> bool {
    let is_broken = fs::read(file).is_ok_and(|it| serde_json::from_slice::<IgnoredAny>(&it).is_err());
    let is_gone = is_broken && fs::remove_file(file).is_ok();
    if is_gone {
        tracing::warn!(file = %file.display(), "what was kept of a network is damaged: it is removed");
    }
    is_gone
}

fn result_of(layout: &Layout, sandbox: &str) -> PathBuf {
    results().join(format!("{}-{sandbox}-eth0", layout.bridge))
}

fn results() -> PathBuf {
    Path::new(CACHE).join("results")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_where_a_sandbox_is_plugged_in() {
        let kept = json!({"kind": "cniCacheV1", "networkName": "corten0", "result": {
            "cniVersion": "1.0.0",
            "interfaces": [
                {"mac": "0a:58:0a:f4:00:01", "name": "corten0"},
                {"mac": "52:c5:a8:10:02:9e", "name": "veth8a9d"},
                {"mac": "96:00:2c:7f:0e:ff", "name": "eth0", "sandbox": "/run/netns/x"},
            ],
            "ips": [{"address": "10.244.0.5/24", "interface": 2}, {"address": "fd00:10:244::5/64", "interface": 2}],
        }});
        assert_eq!(pod_of(kept.to_string().as_bytes(), "corten0"), None, "nobody has said whose it is");
        let mut told = kept.clone();
        told["containerId"] = "4f".into();
        told["cniArgs"] = json!([
            ["IgnoreUnknown", "1"],
            ["K8S_POD_NAMESPACE", "shop"],
            ["K8S_POD_NAME", "db"],
            ["K8S_POD_UID", "u1"]
        ]);
        let pod = pod_of(told.to_string().as_bytes(), "corten0").expect("read");
        assert_eq!((&*pod.sandbox, &*pod.uid, pod.pod), ("4f", "u1", Key::new("shop", "db")));
        let with_link = ["10.244.0.5", "fd00:10:244::5", "fe80::9400:2cff:fe7f:eff"];
        assert_eq!(pod.addresses, with_link.map(|it| it.parse::<std::net::IpAddr>().expect("an address")));
        let port = port_of(kept.to_string().as_bytes(), "corten0").expect("read");
        let addresses = ["10.244.0.5", "fd00:10:244::5"].map(|it| it.parse().expect("an address")).to_vec();
        assert_eq!(port, Port { interface: "veth8a9d".into(), mac: [0x96, 0, 0x2c, 0x7f, 0x0e, 0xff], addresses });
        for bad in ["", "{}", r#"{"result": {"interfaces": [{"name": "eth0", "mac": "x", "sandbox": "y"}]}}"#] {
            assert_eq!(port_of(bad.as_bytes(), "corten0"), None, "{bad}");
        }
    }

    #[test]
    fn forgets_broken_results_of_its_own_and_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [
            ("corten0-a-eth0", ""),
            ("corten0-b-eth0", "{\"kind\":\"cniCacheV1\",\"resu"),
            ("corten0-c-eth0", "\0\0\0\0"),
            ("corten0-d-eth0", "{\"kind\":\"cniCacheV1\"}"),
            ("other-e-eth0", ""),
        ] {
            fs::write(dir.path().join(name), text).expect("a file");
        }
        forget_broken_results(dir.path(), "corten0");
        let mut left: Vec<_> = fs::read_dir(dir.path()).expect("listed").flatten().map(|it| it.file_name()).collect();
        left.sort();
        assert_eq!(left, ["corten0-d-eth0", "other-e-eth0"]);
    }

    #[test]
    fn reads_what_a_plugin_of_anothers_has_answered() {
        let said = |interfaces: serde_json::Value| {
            let ips = json!([{"address": "10.9.0.5/32"}, {"address": "fd09::5/128"}]);
            let kept = json!({"kind": "cniCacheV1", "result": {"interfaces": interfaces, "ips": ips}});
            link_local_of(kept.to_string().as_bytes()).map(|it| it.to_string())
        };
        let plugged = json!([{"name": "cali1"}, {"name": "eth0", "mac": "96:00:2c:7f:0e:ff", "sandbox": "/run/x"}]);
        assert_eq!(said(plugged).as_deref(), Some("fe80::9400:2cff:fe7f:eff"));
        assert_eq!(said(json!([])), None, "it need say nothing of interfaces");
        assert_eq!(said(json!([{"name": "eth0", "sandbox": "/run/x"}])), None);
        assert_eq!(link_local_of(b"{}"), None);
    }
}
