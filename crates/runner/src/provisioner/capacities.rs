//! Writes how much is left of each class of a node, and takes away what nobody tells any more.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::resources::CSI_STORAGE_CAPACITIES;
use corten_client::{Client, DeleteParams, Error, ListParams, PatchType};
use corten_meta::{Key, ObjectMeta};
use corten_provisioner::{
    CAPACITY_NAMESPACE, Config, DRIVER_NAME, MANAGED_BY, Published, capacity_name, capacity_object, managed_node,
    manager,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    hands::{LOOK_PATIENCE, VolumeHands},
    jobs::there,
};

/// Until it is asked again what there is of before.
const PAUSE: Duration = Duration::from_secs(10);

/// Answers with the object's name, whatever came of it.
pub(super) async fn publish(client: &Client, hands: &dyn VolumeHands, of: Published, config: &Config) -> String {
    let name = capacity_name(&of.driver, &of.class, config);
    match tokio::time::timeout(LOOK_PATIENCE, write(client, hands, &of, &name, config)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, driver = of.driver, "what is left of a class is not told"),
        Err(_) => tracing::debug!(driver = of.driver, "a driver takes too long to say how much is left"),
    }
    name
}

async fn write(
    client: &Client,
    hands: &dyn VolumeHands,
    of: &Published,
    name: &str,
    config: &Config,
) -> Result<(), Error> {
    let Some((available, maximum)) = hands.capacity(of.clone()).await else { return Ok(()) };
    let object = capacity_object(of, config, available, maximum);
    let patch = json!({ "capacity": object["capacity"], "maximumVolumeSize": object.get("maximumVolumeSize") });
    let key = Key::new(CAPACITY_NAMESPACE, name);
    match client.patch(&CSI_STORAGE_CAPACITIES, &key, "", &PatchType::Merge, &patch).await {
        Err(error) if error.is_not_found() => {
            there(client.create(&CSI_STORAGE_CAPACITIES, CAPACITY_NAMESPACE, &object).await)
        }
        other => other.map(drop),
    }
}

pub(super) async fn withdraw(client: &Client, name: String) {
    let key = Key::new(CAPACITY_NAMESPACE, name);
    let _ = client.delete(&CSI_STORAGE_CAPACITIES, &key, &DeleteParams::default()).await;
}

/// What there is of the node from before: the objects' names, each with its driver.
pub(super) async fn of_before(client: Client, node: String) -> BTreeMap<String, String> {
    let of_node = manager(&node);
    loop {
        match all(&client, &format!("{MANAGED_BY}={of_node}")).await {
            Ok(found) => {
                let own = found.into_iter().filter(|it| it.labels.get(MANAGED_BY) == Some(&of_node));
                return own.map(|mut it| (it.name, it.labels.remove(DRIVER_NAME).unwrap_or_default())).collect();
            }
            Err(error) => tracing::debug!(%error, node, "what was told to be left is not known yet"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// A node that is gone has no room.
pub(crate) async fn withdraw_of(client: Client, node: String) {
    let is_of = |it: &str| it == node;
    withdraw_where(&client, &format!("{MANAGED_BY}={}", manager(&node)), is_of).await;
}

/// Nor has one that went while nobody looked.
pub(crate) async fn withdraw_but_of(client: Client, nodes: BTreeSet<String>) {
    withdraw_where(&client, MANAGED_BY, |it| !nodes.contains(it)).await;
}

async fn withdraw_where(client: &Client, selector: &str, is_gone: impl Fn(&str) -> bool) {
    let found = match all(client, selector).await {
        Ok(found) => found,
        Err(error) => return tracing::debug!(%error, "what nodes had left that are gone is still told"),
    };
    for it in found {
        if it.labels.get(MANAGED_BY).and_then(|it| managed_node(it)).is_some_and(&is_gone) {
            withdraw(client, it.name).await;
        }
    }
}

async fn all(client: &Client, selector: &str) -> Result<Vec<ObjectMeta>, Error> {
    #[derive(Deserialize)]
    struct OnlyMeta {
        metadata: ObjectMeta,
    }
    let which = ListParams {
        namespace: CAPACITY_NAMESPACE.to_owned(),
        label_selector: selector.to_owned(),
        ..ListParams::default()
    };
    let found = client.list_as::<OnlyMeta>(&CSI_STORAGE_CAPACITIES, &which).await?;
    Ok(found.into_iter().map(|it| it.metadata).collect())
}
