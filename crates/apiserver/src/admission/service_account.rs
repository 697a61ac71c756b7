//! Gives every Pod a service account that exists, and the account's image pull secrets.
//!
//! The account's token is not mounted yet: there is no token issuer.

use std::{sync::Arc, time::Duration};

use corten_api::resources::{PODS, SERVICE_ACCOUNTS};
use corten_meta::Status;
use serde_json::{Value, json};

use super::{Admission, Attributes, Operation, refusal::forbidden};
use crate::{
    request::BoxFuture,
    watch_cache::{Caches, Stored},
};

pub(crate) struct ServiceAccount;

const DEFAULT: &str = "default";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// As upstream: a Pod of a new namespace waits a little for the account that a controller makes there.
const PATIENCE: Duration = Duration::from_millis(1500);

impl Admission for ServiceAccount {
    fn name(&self) -> &'static str {
        "ServiceAccount"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, pod: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let is_new_pod = request.kind.resource == PODS
                && request.operation == Operation::Create
                && request.subresource.is_none();
            if !is_new_pod {
                return Ok(());
            }
            if !pod["metadata"]["annotations"][MIRROR].is_null() {
                return mirror(request, pod);
            }
            let name = pod["spec"]["serviceAccountName"].as_str().filter(|it| !it.is_empty()).unwrap_or(DEFAULT);
            let name = name.to_owned();
            let Some(account) = find(request.ctx.server.caches(), request.namespace, &name).await else {
                let reason = format!(
                    "error looking up service account {}/{name}: serviceaccount {name:?} not found",
                    request.namespace
                );
                return Err(forbidden(request, pod, &reason));
            };
            give(&account.parse(), &name, pod);
            Ok(())
        })
    }
}

/// A mirror of a static Pod must not lean on objects of the API.
fn mirror(request: &Attributes<'_>, pod: &Value) -> Result<(), Status> {
    match pod["spec"]["serviceAccountName"].as_str() {
        None | Some("") => Ok(()),
        Some(_) => Err(forbidden(request, pod, "a mirror pod may not reference service accounts")),
    }
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

fn give(account: &Value, name: &str, pod: &mut Value) {
    pod["spec"]["serviceAccountName"] = json!(name);
    // The older name of the same field, which clients still read.
    pod["spec"]["serviceAccount"] = json!(name);
    let has_secrets = pod["spec"]["imagePullSecrets"].as_array().is_some_and(|it| !it.is_empty());
    if let Some(secrets) = account["imagePullSecrets"].as_array()
        && !has_secrets
        && !secrets.is_empty()
    {
        pod["spec"]["imagePullSecrets"] = json!(secrets);
    }
}
