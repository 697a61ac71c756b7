//! Where a node keeps its things: what must survive a reboot below `data`, what must not below `run`.

use std::path::{Path, PathBuf};

/// Where the machine's usual node has what does not outlive the machine's run.
const RUN: &str = "/run/corten";

const FOLDER_BYTES_MAX: usize = 255;

/// Where an installation puts the images that Corten itself needs.
pub const INSTALLED_IMAGES: &str = "/usr/local/share/corten/images";

/// Two nodes on one machine differ in every field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub data: PathBuf,
    pub run: PathBuf,
    /// The cgroup above all Pods.
    pub cgroup_root: String,
    /// The bridge all Pods are plugged into; at most 15 characters.
    pub bridge: String,
    /// The node's own nftables table (family `inet`).
    pub nft_table: String,
    /// Archives of images (`*.tar`) put here are imported when the node starts, and while it runs.
    pub image_folders: Vec<PathBuf>,
}

impl Layout {
    /// The layout of the node with these folders. One with another `run` than usual also has another name for all else, so
    /// that taking it away never touches the machine's usual node.
    pub fn new(data: impl Into<PathBuf>, run: impl Into<PathBuf>) -> Self {
        let (data, run) = (data.into(), run.into());
        let mark = if run == Path::new(RUN) { String::new() } else { mark(&run) };
        let named = |name: &str, between: &str| match mark.as_str() {
            "" => name.to_owned(),
            mark => format!("{name}{between}{mark}"),
        };
        Self {
            // What came with the installation outlives the cluster's data.
            image_folders: vec![data.join("images"), PathBuf::from(INSTALLED_IMAGES)],
            cgroup_root: named("kubepods", "-"),
            bridge: if mark.is_empty() { "corten0".to_owned() } else { format!("corten{mark}") },
            nft_table: named("corten", "_"),
            data,
            run,
        }
    }

    /// The table of Services' packet rules. Apart from [`Layout::nft_table`], which is written anew at each start.
    pub fn service_table(&self) -> String {
        format!("{}_services", self.nft_table)
    }

    /// The table of NetworkPolicies' packet rules.
    pub fn policy_table(&self) -> String {
        format!("{}_policies", self.nft_table)
    }

    /// The table of what the tunnel to other nodes takes and brings.
    pub fn tunnel_table(&self) -> String {
        format!("{}_tunnel", self.nft_table)
    }

    /// The unit that keeps the node running, where systemd does.
    pub fn service_unit(&self) -> String {
        format!("{}.service", self.nft_table.replace('_', "-"))
    }

    /// The slice of that unit, and of the runtime. No dash: one node's slice is not in another's.
    pub fn service_slice(&self) -> String {
        format!("{}.slice", self.nft_table.replace('-', "_"))
    }

    pub fn containerd_root(&self) -> PathBuf {
        self.data.join("containerd")
    }

    pub fn containerd_state(&self) -> PathBuf {
        self.run.join("containerd")
    }

    pub fn containerd_socket(&self) -> PathBuf {
        self.run.join("containerd.sock")
    }

    pub fn containerd_log(&self) -> PathBuf {
        self.data.join("log/containerd.log")
    }

    pub fn containerd_config(&self) -> PathBuf {
        self.run.join("containerd.toml")
    }

    pub fn containerd_pid(&self) -> PathBuf {
        self.run.join("containerd.pid")
    }

    pub fn cni_config(&self) -> PathBuf {
        self.run.join("cni/net.d")
    }

    /// host-local's record of which address is whose. Below `run`: no address outlives the machine's own run.
    pub fn cni_addresses(&self) -> PathBuf {
        self.run.join("cni/addresses")
    }

    /// The file that holds the node's mount namespace, on a private mount of its own.
    pub fn mount_namespace(&self) -> PathBuf {
        self.run.join("ns/mnt")
    }

    pub fn pods(&self) -> PathBuf {
        self.data.join("pods")
    }

    pub fn pod(&self, uid: &str) -> PathBuf {
        self.pods().join(uid)
    }

    /// Where CSI drivers of others stage volumes, each once for all Pods of the node.
    pub fn staged_volumes(&self) -> PathBuf {
        self.data.join("plugins/kubernetes.io/csi")
    }

    /// Where archives of containers are put, whose memory they hold.
    pub fn checkpoints(&self) -> PathBuf {
        self.data.join("checkpoints")
    }

    /// The `log_directory` of a Pod's sandbox.
    pub fn pod_logs(&self, namespace: &str, name: &str, uid: &str) -> PathBuf {
        // A Pod's name may be longer than a folder's; the uid alone tells Pods apart.
        let room = FOLDER_BYTES_MAX.saturating_sub(namespace.len() + uid.len() + 2);
        let name = name.get(..room).unwrap_or(name);
        self.data.join("log/pods").join(format!("{namespace}_{name}_{uid}"))
    }

    /// The `log_path` of a container: beneath its Pod's log directory.
    pub fn relative_container_log(container: &str, attempt: u32) -> String {
        format!("{container}/{attempt}.log")
    }

    pub fn container_log(&self, namespace: &str, name: &str, uid: &str, container: &str, attempt: u32) -> PathBuf {
        self.pod_logs(namespace, name, uid).join(Self::relative_container_log(container, attempt))
    }
}

/// Eight digits that stand for a path: FNV-1a, the same at every start.
fn mark(path: &Path) -> String {
    let hash = path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    format!("{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_fit() {
        let folder = |name: &str| Layout::new("/d", "/r").pod_logs(&"n".repeat(63), name, &"u".repeat(36));
        let long = folder(&"p".repeat(253));
        assert_eq!(long.file_name().map(|it| it.len()), Some(FOLDER_BYTES_MAX), "{long:?}");
        assert!(folder("web").ends_with(format!("{}_web_{}", "n".repeat(63), "u".repeat(36))));
    }

    #[test]
    fn two_nodes_of_a_machine_share_nothing() {
        let usual = Layout::new("/var/lib/corten", "/run/corten");
        let other = Layout::new("/srv/corten", "/run/other");
        assert_eq!((usual.bridge.as_str(), usual.cgroup_root.as_str()), ("corten0", "kubepods"));
        assert_eq!(usual.service_unit(), "corten.service");
        assert_ne!(usual.service_unit(), other.service_unit());
        assert!(usual.bridge != other.bridge && usual.cgroup_root != other.cgroup_root);
        assert!(usual.nft_table != other.nft_table && other.bridge.len() <= 15, "{other:?}");
        assert_eq!(other, Layout::new("/srv/corten", "/run/other"));
    }
}
