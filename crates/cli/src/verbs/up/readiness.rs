//! When a node counts as up.

use anyhow::{Context, Result, bail};
use corten_client::Client;
use corten_meta::Time;
use serde_json::Value;

use corten_console::progress::Progress;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A node whose Pods another's plug-in plugs in is told so.
const BY_PLUGIN: &str = "--pod-network=cni";
const CONFIG: &str = "--cni-config=";
const CONFIG_USUAL: &str = "/etc/cni/net.d";
/// How its Node begins to say that it lacks the network, and nothing else.
const NO_NETWORK: &str = "container runtime network not ready: ";

/// What `up` and `join` wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Awaited {
    Ready,
    /// Ready but for the Pods' network: its plug-in may run in Pods itself, and is brought to a cluster that is up.
    AllButNetwork {
        config: String,
    },
}

impl Awaited {
    /// By the options of the node.
    pub(super) fn of(options: &[String]) -> Self {
        if !options.iter().any(|it| it == BY_PLUGIN) {
            return Self::Ready;
        }
        let config = options.iter().find_map(|it| it.strip_prefix(CONFIG)).unwrap_or(CONFIG_USUAL);
        Self::AllButNetwork { config: config.to_owned() }
    }

    /// Why the node is not up.
    pub(super) fn lack(&self, object: &Value) -> Result<(), String> {
        match readiness(object) {
            Err(why) if *self != Self::Ready && why.starts_with(NO_NETWORK) => Ok(()),
            other => other,
        }
    }

    /// Says that it is up.
    pub(super) fn tell(&self, name: &str, object: &Value, progress: &mut Progress) {
        match (self, readiness(object)) {
            (Self::AllButNetwork { config }, Err(_)) => progress.done(&format!(
                "node {name} is up, and Ready once a CNI plug-in has put its configuration into {config}"
            )),
            _ => progress.done(&format!("node {name} is Ready")),
        }
    }
}

/// What a Node says may be from before a start. Its kubelet renews its Lease once the Node says what has been the case since then.
///
/// # Errors
/// It has not yet, or the Lease cannot be read.
pub(super) async fn heard_since(client: &Client, name: &str, begin: Time) -> Result<()> {
    let lease = client.get_path(&format!("{LEASES}/{name}")).await.context("asking for the node's Lease")?;
    let lease: Value = serde_json::from_slice(&lease).context("reading the node's Lease")?;
    let renewed = lease["spec"]["renewTime"].as_str().and_then(|it| it.parse::<Time>().ok());
    if renewed.is_none_or(|it| it < begin) {
        bail!("its kubelet has not said since its start that it is there");
    }
    Ok(())
}

/// Why the node is not Ready.
fn readiness(object: &Value) -> Result<(), String> {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    match conditions.iter().find(|it| it["type"] == "Ready") {
        Some(condition) if condition["status"] == "True" => Ok(()),
        Some(condition) => Err(condition["message"].as_str().unwrap_or("not ready").to_owned()),
        None => Err("it has not said yet how it is".to_owned()),
    }
}
