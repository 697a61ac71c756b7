//! What is told of MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

use corten_api::resources::{
    MUTATING_WEBHOOK_CONFIGURATIONS as MUTATING_RESOURCE, VALIDATING_WEBHOOK_CONFIGURATIONS as VALIDATING_RESOURCE,
};
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    family::{Family, KindMetrics},
    resource_version,
};

static MUTATING_AT: Resource = MUTATING_RESOURCE;
static VALIDATING_AT: Resource = VALIDATING_RESOURCE;

pub(crate) static MUTATING_WEBHOOK_CONFIGURATIONS: KindMetrics<WebhookConfiguration> = KindMetrics {
    resource: &MUTATING_AT,
    labels: &["namespace", "mutatingwebhookconfiguration"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: MUTATING,
};

pub(crate) static VALIDATING_WEBHOOK_CONFIGURATIONS: KindMetrics<WebhookConfiguration> = KindMetrics {
    resource: &VALIDATING_AT,
    labels: &["namespace", "validatingwebhookconfiguration"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: VALIDATING,
};

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WebhookConfiguration {
    metadata: ObjectMeta,
    webhooks: Vec<Webhook>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Webhook {
    client_config: ClientConfig,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClientConfig {
    /// Empty where the webhook is at a URL.
    service: Service,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Service {
    name: String,
    namespace: String,
}

const MUTATING: &[Family<WebhookConfiguration>] = &[
    created("kube_mutatingwebhookconfiguration_created"),
    info("kube_mutatingwebhookconfiguration_info", "Information about the MutatingWebhookConfiguration."),
    version(
        "kube_mutatingwebhookconfiguration_metadata_resource_version",
        "Resource version representing a specific version of the MutatingWebhookConfiguration.",
    ),
    services(
        "kube_mutatingwebhookconfiguration_webhook_clientconfig_service",
        "Service used by the apiserver to connect to a mutating webhook.",
    ),
];

const VALIDATING: &[Family<WebhookConfiguration>] = &[
    created("kube_validatingwebhookconfiguration_created"),
    info("kube_validatingwebhookconfiguration_info", "Information about the ValidatingWebhookConfiguration."),
    version(
        "kube_validatingwebhookconfiguration_metadata_resource_version",
        "Resource version representing a specific version of the ValidatingWebhookConfiguration.",
    ),
    services(
        "kube_validatingwebhookconfiguration_webhook_clientconfig_service",
        "Service used by the apiserver to connect to a validating webhook.",
    ),
];

const fn created(name: &'static str) -> Family<WebhookConfiguration> {
    Family::gauge(name, "Unix creation timestamp.", &[], |it, out| out.one(it.metadata.creation_timestamp))
}

const fn info(name: &'static str, help: &'static str) -> Family<WebhookConfiguration> {
    Family::gauge(name, help, &[], |_, out| out.one(true))
}

const fn version(name: &'static str, help: &'static str) -> Family<WebhookConfiguration> {
    Family::gauge(name, help, &[], |it, out| resource_version::of(&it.metadata, out))
}

const fn services(name: &'static str, help: &'static str) -> Family<WebhookConfiguration> {
    Family::gauge(name, help, &["webhook_name", "service_name", "service_namespace"], |it, out| {
        for Webhook { name, client_config } in &it.webhooks {
            out.add(&[name, &client_config.service.name, &client_config.service.namespace], 1.0);
        }
    })
}
