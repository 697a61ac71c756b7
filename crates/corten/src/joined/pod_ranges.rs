//! Waits for this node's part of the Pods' network, which the cluster gives to its Node.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, bail};
use corten_api::{core::v1::Node, resources::NODES};
use corten_cli::Failure;
use corten_client::{Backoff, Client};
use corten_machine::write_whole;
use corten_meta::{Key, address::Cidr};
use corten_network::bridge::has_ipv6;
use serde_json::json;
use tokio::time::Instant;

const AGAIN_FIRST: Duration = Duration::from_millis(50);
const AGAIN_MAX: Duration = Duration::from_secs(1);
const GIVEN_WITHIN: Duration = Duration::from_secs(60);
/// A node that had ranges before starts with these where the server does not answer for so long.
const KNOWN_AFTER: Duration = Duration::from_secs(5);
/// Below the node's data: the ranges, by commas.
const FILE: &str = "kubelet/pod-cidrs";

/// The ranges, of families that this machine has. The Node is made where there is none: its kubelet says the rest of it.
///
/// # Errors
/// The server does not answer in time, or the Node is given no range.
pub(crate) async fn pod_ranges(client: &Client, name: &str, data: &Path) -> Result<Vec<String>> {
    let path = data.join(FILE);
    let known = std::fs::read_to_string(&path).ok().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let given = asked(client, name, known.as_deref()).await?;
    let usable: Vec<String> = given.into_iter().filter(|it| !it.contains(':') || has_ipv6()).collect();
    if usable.iter().any(|it| Cidr::parse(it).is_none()) || usable.is_empty() {
        let message = match &*usable {
            [] => format!(
                "node {name} is given no range of Pod addresses that this machine can use: has its kernel IPv6?"
            ),
            some => format!("node {name} is given ranges that this machine cannot use: {}", some.join(", ")),
        };
        bail!(Failure::new(message).next(format!("kubectl get node {name} -o jsonpath='{{.spec.podCIDRs}}'")));
    }
    let text = usable.join(",");
    if known.as_ref() != Some(&text) {
        // Beside a control plane nobody has made the folder yet.
        path.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(|| format!("making {}", path.display()))?;
        write_whole(&path, 0o600, text.as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(usable)
}

async fn asked(client: &Client, name: &str, known: Option<&str>) -> Result<Vec<String>> {
    let begin = Instant::now();
    let mut backoff = Backoff::new(AGAIN_FIRST, AGAIN_MAX, 3);
    let mut last = String::new();
    let given = async {
        loop {
            let patience = if known.is_some() { KNOWN_AFTER } else { GIVEN_WITHIN };
            let looked = tokio::time::timeout(patience, look(client, name)).await;
            match looked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(ranges) if !ranges.is_empty() => return ranges,
                Ok(_) => last = format!("node {name} is given no range of the Pods' network (spec.podCIDRs)"),
                Err(error) => match known.filter(|_| begin.elapsed() >= KNOWN_AFTER) {
                    Some(known) => {
                        tracing::warn!(
                            error,
                            known,
                            "the API server does not answer: the node has the ranges of before"
                        );
                        return known.split(',').map(str::to_owned).collect();
                    }
                    None => last = error,
                },
            }
            tokio::time::sleep(backoff.delay()).await;
        }
    };
    match tokio::time::timeout(GIVEN_WITHIN, given).await {
        Ok(given) => Ok(given),
        Err(_) => Err(Failure::new(last).next(format!("kubectl get node {name} -o yaml")).into()),
    }
}

async fn look(client: &Client, name: &str) -> Result<Vec<String>, String> {
    match client.get_as::<Node>(&NODES, &Key::cluster(name)).await {
        Ok(node) => Ok(node.spec.and_then(|it| it.pod_cidrs).unwrap_or_default()),
        Err(error) if error.is_not_found() => {
            let annotations = json!({ "volumes.kubernetes.io/controller-managed-attach-detach": "true" });
            let node =
                json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "annotations": annotations } });
            match client.create(&NODES, "", &node).await {
                Err(error) if !error.is_already_exists() => Err(error.to_string()),
                _ => Ok(Vec::new()),
            }
        }
        Err(error) => Err(error.to_string()),
    }
}
