//! What machines that join must know of a cluster's network. Corten's API server says it itself; of upstream's cluster it is read from
//! what kubeadm has kept, or told by options, and written down where Corten's nodes look for it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use corten_api::{
    cluster_network::{
        CLUSTER_CIDR, CONFIG_MAP, CONFIG_MAP_NAMESPACE, ClusterNetwork, DOMAIN, NODE_MASK_IPV4, NODE_MASK_IPV6,
        OPTIONS, SERVICE_RANGE,
    },
    core::v1::ConfigMap,
    resources::CONFIG_MAPS,
    version,
};
use corten_client::{Client, PatchType};
use corten_meta::Key;
use serde::Deserialize;
use serde_json::json;

use corten_console::failure::Failure;

/// Below kube-system: what kubeadm made the cluster with (`kubeadmapi.ClusterConfiguration`).
const KUBEADM: &str = "kubeadm-config";
const KUBEADM_ENTRY: &str = "ClusterConfiguration";

/// Settings by the names of options.
type Settings = BTreeMap<String, String>;

pub(super) fn args(command: Command) -> Command {
    let helps = [
        (CLUSTER_CIDR, "CIDR,…", "Where upstream's cluster has its Pods [default: what kubeadm has kept]"),
        (NODE_MASK_IPV4, "BITS", "Of upstream's cluster: the prefix of a node's IPv4 Pods [default: 24]"),
        (NODE_MASK_IPV6, "BITS", "Of upstream's cluster: the prefix of a node's IPv6 Pods [default: 64]"),
        (SERVICE_RANGE, "CIDR,…", "Where upstream's cluster has its Services [default: what kubeadm has kept]"),
        (DOMAIN, "NAME", "The domain of upstream's cluster [default: what kubeadm has kept]"),
    ];
    command.args(helps.map(|(name, value, help)| Arg::new(name).long(name).value_name(value).help(help)))
}

pub(super) fn given(matches: &ArgMatches) -> Settings {
    let value = |name: &str| Some((name.to_owned(), matches.get_one::<String>(name)?.clone()));
    OPTIONS.iter().filter_map(|it| value(it)).collect()
}

/// Who made a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    Corten,
    /// It has what machines need to join, as far as its administrator has left it there.
    Kubeadm,
    Other,
}

/// Writes it down where the cluster's own server does not. What is there gives way to what is `given`.
///
/// # Errors
/// Nobody says where Pods and Services are, what is said is no network, or the cluster does not take it.
pub(super) async fn publish(client: &Client, given: &Settings) -> Result<Maker> {
    if is_own(client).await? {
        if given.is_empty() {
            return Ok(Maker::Corten);
        }
        let options: Vec<String> = given.keys().map(|it| format!("--{it}")).collect();
        let message = format!("{}: the cluster's API server is Corten's, and says it itself", options.join(", "));
        return Err(Failure::new(message).into());
    }
    let key = Key::new(CONFIG_MAP_NAMESPACE, CONFIG_MAP);
    let (known, kubeadm) = (config_map(client, &key).await?, of_kubeadm(client).await?);
    let maker = if kubeadm.is_some() { Maker::Kubeadm } else { Maker::Other };
    let said = known.clone().or(kubeadm).unwrap_or_default();
    let wanted = settled(said, given)?;
    match known {
        Some(known) if known == wanted => return Ok(maker),
        Some(_) => {
            let patch = json!({ "data": wanted });
            client.patch(&CONFIG_MAPS, &key, "", &PatchType::Merge, &patch).await
        }
        None => {
            let object = json!({ "metadata": { "name": CONFIG_MAP }, "data": wanted });
            client.create(&CONFIG_MAPS, CONFIG_MAP_NAMESPACE, &object).await
        }
    }
    .with_context(|| format!("writing the ConfigMap {key}"))?;
    Ok(maker)
}

async fn is_own(client: &Client) -> Result<bool> {
    let version = client.server_version().await.context("asking which API server it is")?;
    Ok(version::is_own(&version))
}

async fn config_map(client: &Client, key: &Key) -> Result<Option<Settings>> {
    match client.get_as::<ConfigMap>(&CONFIG_MAPS, key).await {
        Ok(found) => Ok(Some(found.data.unwrap_or_default())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading the ConfigMap {key}")),
    }
}

async fn of_kubeadm(client: &Client) -> Result<Option<Settings>> {
    let kept = config_map(client, &Key::new(CONFIG_MAP_NAMESPACE, KUBEADM)).await?;
    kept.and_then(|mut it| it.remove(KUBEADM_ENTRY)).map(|it| read_kubeadm(&it)).transpose()
}

fn read_kubeadm(text: &str) -> Result<Settings> {
    #[derive(Deserialize)]
    struct ClusterConfiguration {
        #[serde(default)]
        networking: Networking,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Networking {
        pod_subnet: String,
        service_subnet: String,
        dns_domain: String,
    }
    let read: ClusterConfiguration =
        serde_saphyr::from_str(text).with_context(|| format!("reading the ConfigMap {KUBEADM}"))?;
    let Networking { pod_subnet, service_subnet, dns_domain } = read.networking;
    let said = [(CLUSTER_CIDR, pod_subnet), (SERVICE_RANGE, service_subnet), (DOMAIN, dns_domain)];
    Ok(said.into_iter().filter(|it| !it.1.is_empty()).map(|(name, it)| (name.to_owned(), it)).collect())
}

/// A wrong range makes Pods that nobody reaches, so the defaults of Corten's own clusters do not count here.
fn settled(said: Settings, given: &Settings) -> Result<Settings> {
    let wanted: Settings = said.into_iter().chain(given.clone()).collect();
    let lacks: Vec<String> = [CLUSTER_CIDR, SERVICE_RANGE]
        .iter()
        .filter(|it| !wanted.contains_key(**it))
        .map(|it| format!("--{it}"))
        .collect();
    if !lacks.is_empty() {
        let message =
            format!("the cluster does not say where its Pods and Services are: {} is needed", lacks.join(", "));
        let mut failure = Failure::new(message);
        failure.details.push("as its kube-controller-manager and kube-apiserver were started".to_owned());
        return Err(failure.into());
    }
    match ClusterNetwork::of(&wanted) {
        Ok(network) => Ok(wanted.into_iter().chain(network.settings()).collect()),
        Err(errors) => {
            let mut failure = Failure::new("what is said of the cluster's network is wrong");
            failure.details.extend(errors);
            Err(failure.into())
        }
    }
}

#[cfg(test)]
mod tests;
