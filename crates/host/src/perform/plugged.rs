//! Which sandboxes are plugged in, with which addresses: as libcni has kept them of the node's own bridge, as the runtime knows them
//! where a CNI plug-in of another's has given them.
//!
//! Whoever lays policies goes by these. What the runtime does not tell just now is not taken for "none".

use std::{collections::BTreeSet, net::IpAddr};

use corten_kubelet::SandboxSpec;
use corten_meta::Key;
use corten_network::{
    PodSandbox,
    cni::{self, PodLink},
};

use super::Inner;
use crate::{
    Containerd, Cri,
    cri::{self, CriError},
};

impl Containerd {
    /// All of this node.
    ///
    /// # Errors
    /// The runtime does not tell.
    pub async fn plugged(&self) -> Result<Vec<PodSandbox>, String> {
        match &self.options().pod_link {
            PodLink::Bridge => {
                let layout = self.layout().clone();
                tokio::task::spawn_blocking(move || cni::all_plugged(&layout)).await.map_err(|it| it.to_string())
            }
            PodLink::Plugin(_) => by_runtime(&self.cri()).await.map_err(|it| it.to_string()),
        }
    }

    /// Those of [`Containerd::plugged`] that may still be there, by their ids, in one question: whoever looks again and again asks this.
    ///
    /// # Errors
    /// As there.
    pub async fn sandboxes(&self) -> Result<BTreeSet<String>, String> {
        if self.options().pod_link.is_plugin() {
            let all = self.cri().list_pod_sandboxes(None).await.map_err(|it| it.to_string())?;
            return Ok(all.into_iter().map(|it| it.id).collect());
        }
        Ok(self.plugged().await?.into_iter().map(|it| it.sandbox).collect())
    }
}

impl Inner {
    /// One sandbox; why not, where nobody knows an address of it.
    pub(super) async fn plugged(&self, id: &str) -> Result<PodSandbox, String> {
        match &self.link {
            PodLink::Bridge => cni::plugged(&self.layout, id).map_err(|it| it.to_string()),
            PodLink::Plugin(_) => {
                let status = self.cri.pod_sandbox_status(id).await.map_err(|it| it.to_string())?;
                told(status).ok_or_else(|| format!("the runtime knows no address of sandbox {id}"))
            }
        }
    }

    /// Waits until the policies of a new Pod hold.
    pub(super) async fn lay_policies(&self, id: &str, spec: &SandboxSpec) -> Result<(), String> {
        if !self.policies.is_enforced() {
            return Ok(());
        }
        let plugged = self.plugged(id).await?;
        self.policies.plug(PodSandbox { labels: Some(spec.labels.clone()), ..plugged }).await
    }
}

async fn by_runtime(cri: &Cri) -> Result<Vec<PodSandbox>, CriError> {
    let mut all = Vec::new();
    for sandbox in cri.list_pod_sandboxes(None).await? {
        match cri.pod_sandbox_status(&sandbox.id).await {
            Ok(status) => all.extend(told(status)),
            // It has gone meanwhile.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Nothing of one with its machine's network, nor of one that is unplugged. One whose first process has died can still have others.
fn told(status: cri::PodSandboxStatus) -> Option<PodSandbox> {
    let (metadata, network) = (status.metadata?, status.network?);
    let texts = std::iter::once(network.ip).chain(network.additional_ips.into_iter().map(|it| it.ip));
    let mut addresses: Vec<IpAddr> =
        texts.filter_map(|it| it.parse().ok()).filter(|it: &IpAddr| !it.is_loopback()).collect();
    if addresses.is_empty() {
        return None;
    }
    addresses.extend(cni::link_local(&status.id));
    let pod = Key::new(metadata.namespace, metadata.name);
    Some(PodSandbox { sandbox: status.id, pod, uid: metadata.uid, addresses, labels: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_is_plugged_in_where_it_has_addresses_of_its_own() {
        let status = |ip: &str, others: &[&str]| cri::PodSandboxStatus {
            id: "4f".into(),
            metadata: Some(cri::PodSandboxMetadata {
                name: "db".into(),
                uid: "u1".into(),
                namespace: "shop".into(),
                attempt: 0,
            }),
            network: Some(cri::PodSandboxNetworkStatus {
                ip: ip.into(),
                additional_ips: others.iter().map(|it| cri::PodIp { ip: (*it).into() }).collect(),
            }),
            ..cri::PodSandboxStatus::default()
        };
        let plugged = told(status("10.9.0.5", &["fd09::5"])).expect("plugged in");
        assert_eq!((&*plugged.sandbox, &*plugged.uid, &plugged.pod), ("4f", "u1", &Key::new("shop", "db")));
        assert_eq!(plugged.addresses, ["10.9.0.5", "fd09::5"].map(|it| it.parse::<IpAddr>().expect("an address")));
        assert_eq!(told(status("", &[])), None, "it has its machine's network");
        assert_eq!(told(status("127.0.0.1", &["::1"])), None);
    }
}
