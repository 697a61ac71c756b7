//! Gives every Pod a service account that exists, the account's image pull secrets, and a way to speak to the API server.

use std::{sync::Arc, time::Duration};

use corten_api::resources::{MIRROR_POD, PODS, SERVICE_ACCOUNTS};
use corten_cacher::{
    body::BoxFuture,
    watch_cache::{Caches, Stored},
};
use corten_meta::Status;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Admission, Attributes, Operation, api_access, mountable_secrets, refusal::forbidden};
use crate::name_suffix;

pub(crate) struct ServiceAccount;

/// What a Pod takes from its account.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Account {
    automount_service_account_token: Option<bool>,
    image_pull_secrets: Vec<Value>,
}

const DEFAULT: &str = "default";
/// As in `getServiceAccount`: a Pod of a new namespace waits a little for the account that a controller makes there.
const PATIENCE: Duration = Duration::from_millis(1500);

impl Admission for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            // A mirror stays as its node wrote it.
            if !request.creates(&PODS) || is_mirror(pod) {
                return Ok(());
            }
            let name = pod["spec"]["serviceAccountName"].as_str().filter(|it| !it.is_empty()).unwrap_or(DEFAULT);
            let name = name.to_owned();
            let account = account(request, pod, &name).await?;
            let account = account.projection::<Account>();
            if api_access::is_wanted(account.automount_service_account_token, pod) {
                api_access::mount(pod, &name_suffix(&request.cluster.new_uid()));
            }
            give(&account, &name, pod);
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let adds = request.operation == Operation::Update
                && request.subresource == Some(corten_kinds::Subresource::EphemeralContainers);
            if !(request.creates(&PODS) || (adds && request.kind.resource == PODS)) {
                return Ok(());
            }
            if is_mirror(pod) {
                return mirror(pod).map_err(|reason| forbidden(request, pod, reason));
            }
            let name = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
            if name.is_empty() {
                let of = pod["metadata"]["name"].as_str().unwrap_or_default();
                let reason = format!("no service account specified for pod {}/{of}", request.namespace);
                return Err(forbidden(request, pod, &reason));
            }
            let account = account(request, pod, name).await?;
            if !mountable_secrets::is_enforced(&account) {
                return Ok(());
            }
            let refused = mountable_secrets::refused(&account.parse(), pod);
            refused.map_or(Ok(()), |reason| Err(forbidden(request, pod, &reason)))
        })
    }
}

fn is_mirror(pod: &Value) -> bool {
    !pod["metadata"]["annotations"][MIRROR_POD].is_null()
}

/// A mirror of a static Pod must not lean on objects of the API.
fn mirror(pod: &Value) -> Result<(), &'static str> {
    if pod["spec"]["serviceAccountName"].as_str().is_some_and(|it| !it.is_empty()) {
        return Err("a mirror pod may not reference service accounts");
    }
    if mountable_secrets::named_by(pod).next().is_some() {
        return Err("a mirror pod may not reference secrets");
    }
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let mut sources = volumes.flat_map(|it| it["projected"]["sources"].as_array().into_iter().flatten());
    if sources.any(|it| it["serviceAccountToken"].is_object()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }
    Ok(())
}

async fn account(request: &Attributes<'_>, pod: &Value, name: &str) -> Result<Arc<Stored>, Status> {
    let namespace = request.namespace;
    find(request.cluster.caches(), namespace, name).await.ok_or_else(|| {
        let reason = format!("error looking up service account {namespace}/{name}: serviceaccount {name:?} not found");
        forbidden(request, pod, &reason)
    })
}

async fn find(caches: &Caches, namespace: &str, name: &str) -> Option<Arc<Stored>> {
    let accounts = caches.get(&SERVICE_ACCOUNTS).expect("service accounts are a row of the table");
    if let Some(account) = accounts.get(namespace, name) {
        return Some(account);
    }
    if name != DEFAULT {
        return None;
    }
    let appears = caches.until(|| accounts.get(namespace, name));
    tokio::time::timeout(PATIENCE, appears).await.ok()
}

fn give(account: &Account, name: &str, pod: &mut Value) {
    pod["spec"]["serviceAccountName"] = json!(name);
    // The older name of the same field, which clients still read.
    pod["spec"]["serviceAccount"] = json!(name);
    let has_secrets = pod["spec"]["imagePullSecrets"].as_array().is_some_and(|it| !it.is_empty());
    if !has_secrets && !account.image_pull_secrets.is_empty() {
        pod["spec"]["imagePullSecrets"] = json!(account.image_pull_secrets);
    }
}
