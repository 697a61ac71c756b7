//! What a program written with kube-rs and its runtime relies on.

#![cfg(test)]

mod controller;
mod leading;
mod objects;
mod operator;
mod watching;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api, Client,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A namespace of a test's own. It goes with the cluster if the test fails.
struct Room {
    client: Client,
    name: String,
}

impl Room {
    async fn new(test: &str) -> Result<Self> {
        let client = Client::try_default().await?;
        let name = format!("kube-rs-{test}");
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
        Api::all(client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(Self { client, name })
    }

    fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    async fn leave(self) -> Result<()> {
        Api::<Namespace>::all(self.client).delete(&self.name, &DeleteParams::default()).await?;
        Ok(())
    }
}

/// Code and reason of a refusal.
fn refusal<T: std::fmt::Debug>(result: kube::Result<T>) -> (u16, String) {
    match result {
        Err(kube::Error::Api(status)) => (status.code, status.reason.clone()),
        other => panic!("it was not refused: {other:?}"),
    }
}

fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
    let data: serde_json::Map<_, _> = data.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let labels = json!({ "test": "yes" });
    serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels }, "data": data }))
        .expect("it is a ConfigMap")
}
