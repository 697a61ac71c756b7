//! The ConfigMaps and Secrets a node's pods read: one small watch for each, as long as a pod names it. And of all
//! Services the little that containers are told of them.
//!
//! A node may read just these objects, so it asks for each by name and never for all of a namespace.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::{
    core::v1::{ConfigMap, Secret},
    resources::{CLUSTER_TRUST_BUNDLES, CONFIG_MAPS, RUNTIME_CLASSES, SECRETS, SERVICES},
};
use corten_client::{Client, Error, Identity, Informer, InformerEvent, InformerParams, decode};
use corten_kubelet::{Event, ServiceLink, ServicePort, Source, SourceKind, TrustBundle};
use corten_meta::{Key, ObjectMeta};
use serde::Deserialize;
use tokio::time::Instant;

use crate::keeping;

/// What the node may not read for so long is not kept for a start without the API. A server that has just begun refuses what its
/// authorizer has not seen yet.
const REFUSED_FOR: Duration = Duration::from_secs(300);

type Data = BTreeMap<String, Arc<[u8]>>;

/// What is followed now.
#[derive(Default)]
pub(crate) struct Followed(BTreeMap<Source, One>);

struct One {
    client: Client,
    informer: Informer<Data>,
    is_there: bool,
    /// Since when each list has been refused.
    refused_since: Option<Instant>,
}

impl Followed {
    pub(crate) fn follow(&mut self, client: &Client, source: Source) {
        let (informer, client) = (informer(client, &source), client.clone());
        self.0.insert(source, One { client, informer, is_there: false, refused_since: None });
    }

    pub(crate) fn unfollow(&mut self, source: &Source) {
        if let Some(one) = self.0.remove(source) {
            one.informer.forget_kept();
        }
    }

    /// All news there is. An object that is not there is news once its list has come.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut events = Vec::new();
        for (source, one) in &mut self.0 {
            one.note_refusal(source);
            while let Poll::Ready(event) = one.informer.poll_event(context) {
                let data = match event {
                    InformerEvent::Applied(data, _) => {
                        one.is_there = true;
                        Some(data)
                    }
                    InformerEvent::Deleted(_) => {
                        one.is_there = false;
                        None
                    }
                    InformerEvent::Synced(_) if one.is_there => continue,
                    InformerEvent::Synced(_) => None,
                };
                events.push(Event::Source { source: source.clone(), data });
            }
        }
        events
    }
}

impl One {
    /// Who may not read an object any more does not hand it to Pods for ever.
    fn note_refusal(&mut self, source: &Source) {
        if !self.informer.is_forbidden() {
            self.refused_since = None;
        } else if self.refused_since.get_or_insert_with(Instant::now).elapsed() >= REFUSED_FOR {
            (self.refused_since, self.is_there) = (None, false);
            self.informer.forget_kept();
            // It has kept nothing of what it knows, so it begins with what a server tells.
            self.informer = informer(&self.client, source);
        }
    }
}

fn informer(client: &Client, source: &Source) -> Informer<Data> {
    let kind = source.kind;
    let resource = if kind == SourceKind::ConfigMap { CONFIG_MAPS } else { SECRETS };
    let params = InformerParams {
        namespace: source.key.namespace.clone(),
        field_selector: format!("metadata.name={}", source.key.name),
        keeping: Some(keeping::SOURCES),
        ..InformerParams::all(resource)
    };
    let params = params.seeded_by(&source.key.to_string());
    Informer::decoding(client.clone(), params, move |bytes| data_of(kind, &bytes))
}

fn data_of(kind: SourceKind, bytes: &[u8]) -> Result<(Identity, Data), Error> {
    let identity =
        |name: Option<String>, namespace: Option<String>, uid: Option<String>, version: Option<String>| Identity {
            key: Key::new(namespace.unwrap_or_default(), name.unwrap_or_default()),
            uid: uid.unwrap_or_default(),
            version: version.unwrap_or_default(),
        };
    match kind {
        SourceKind::ConfigMap => {
            let object: ConfigMap = decode(bytes)?;
            let text = object.data.into_iter().flatten().map(|(key, value)| (key, Arc::from(value.into_bytes())));
            let binary = object.binary_data.into_iter().flatten().map(|(key, value)| (key, Arc::from(value.0)));
            let it = object.metadata;
            Ok((identity(it.name, it.namespace, it.uid, it.resource_version), text.chain(binary).collect()))
        }
        SourceKind::Secret => {
            let object: Secret = decode(bytes)?;
            let data = object.data.into_iter().flatten().map(|(key, value)| (key, Arc::from(value.0)));
            let it = object.metadata;
            Ok((identity(it.name, it.namespace, it.uid, it.resource_version), data.collect()))
        }
    }
}

/// Follows every Service.
pub(crate) fn services(client: &Client, node: &str) -> Informer<Linked> {
    let params = keeping::params(SERVICES, keeping::LINKED_SERVICES).seeded_by(node);
    Informer::decoding(client.clone(), params, |bytes| link_of(&bytes))
}

/// All news of Services there is.
pub(crate) fn poll_services(informer: &mut Informer<Linked>, context: &mut Context<'_>, most: usize) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < most
        && let Poll::Ready(event) = informer.poll_event(context)
    {
        events.push(match event {
            InformerEvent::Applied(Linked { key, link }, _) => Event::Service { key, service: Some(link) },
            InformerEvent::Deleted(meta) => Event::Service { key: meta.key(), service: None },
            InformerEvent::Synced(_) => Event::ServicesSynced,
        });
    }
    events
}

/// A Service by its name.
pub(crate) struct Linked {
    key: Key,
    link: ServiceLink,
}

fn link_of(bytes: &[u8]) -> Result<(Identity, Linked), Error> {
    #[derive(Deserialize)]
    struct Service {
        metadata: ObjectMeta,
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    #[derive(Default)]
    struct Spec {
        #[serde(rename = "clusterIP")]
        cluster_ip: String,
        ports: Vec<Port>,
    }
    #[derive(Deserialize)]
    struct Port {
        #[serde(default)]
        name: String,
        #[serde(default)]
        protocol: String,
        port: i32,
    }
    let Service { metadata, spec } = decode(bytes)?;
    let port = |Port { name, protocol, port }| {
        let protocol = if protocol.is_empty() { "TCP".to_owned() } else { protocol };
        ServicePort { name, protocol, port }
    };
    let link = ServiceLink { ip: spec.cluster_ip, ports: spec.ports.into_iter().map(port).collect() };
    Ok((Identity::of(&metadata), Linked { key: metadata.key(), link }))
}

/// Follows every RuntimeClass: each name and its handler.
pub(crate) fn runtime_classes(client: &Client, node: &str) -> Informer<(String, String)> {
    #[derive(Deserialize)]
    struct RuntimeClass {
        metadata: ObjectMeta,
        handler: String,
    }
    let params = keeping::params(RUNTIME_CLASSES, keeping::RUNTIME_CLASSES).seeded_by(node);
    Informer::decoding(client.clone(), params, |bytes| {
        let RuntimeClass { metadata, handler } = decode(&bytes)?;
        let identity = Identity::of(&metadata);
        Ok((identity, (metadata.name, handler)))
    })
}

/// Follows every ClusterTrustBundle: a pod may have them projected by signer and labels.
pub(crate) fn trust_bundles(client: &Client, node: &str) -> Informer<(String, TrustBundle)> {
    #[derive(Deserialize)]
    struct ClusterTrustBundle {
        metadata: ObjectMeta,
        spec: Spec,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(default)]
        signer_name: String,
        trust_bundle: String,
    }
    let params = keeping::params(CLUSTER_TRUST_BUNDLES, keeping::TRUST_BUNDLES).seeded_by(node);
    let params = InformerParams { is_optional: true, ..params };
    Informer::decoding(client.clone(), params, |bytes| {
        let ClusterTrustBundle { metadata, spec } = decode(&bytes)?;
        let identity = Identity::of(&metadata);
        let labels = metadata.labels.into_iter().collect();
        let bundle = TrustBundle { signer: spec.signer_name, labels, certificates: spec.trust_bundle };
        Ok((identity, (metadata.name, bundle)))
    })
}

/// All news of ClusterTrustBundles there is.
pub(crate) fn poll_trust_bundles(
    informer: &mut Informer<(String, TrustBundle)>,
    context: &mut Context<'_>,
    most: usize,
) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < most
        && let Poll::Ready(event) = informer.poll_event(context)
    {
        events.push(match event {
            InformerEvent::Applied((name, bundle), _) => Event::TrustBundle { name, bundle: Some(bundle) },
            InformerEvent::Deleted(meta) => Event::TrustBundle { name: meta.key().name, bundle: None },
            InformerEvent::Synced(_) => Event::TrustBundlesSynced,
        });
    }
    events
}

/// All news of RuntimeClasses there is.
pub(crate) fn poll_runtime_classes(
    informer: &mut Informer<(String, String)>,
    context: &mut Context<'_>,
    most: usize,
) -> Vec<Event> {
    let mut events = Vec::new();
    while events.len() < most
        && let Poll::Ready(event) = informer.poll_event(context)
    {
        events.push(match event {
            InformerEvent::Applied((name, handler), _) => Event::RuntimeClass { name, handler: Some(handler) },
            InformerEvent::Deleted(meta) => Event::RuntimeClass { name: meta.key().name, handler: None },
            InformerEvent::Synced(_) => Event::RuntimeClassesSynced,
        });
    }
    events
}
