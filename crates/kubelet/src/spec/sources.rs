//! The ConfigMaps and Secrets that pods here read: who needs which, and what they hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_api::core::v1::{Container, Pod};
use corten_meta::Key;

use crate::{
    ApiEffect, Effect, Source, SourceKind,
    spec::pod::{as_container, ephemeral_containers, spec_of},
};

type Data = BTreeMap<String, Arc<[u8]>>;

/// `None`: followed, but nothing has come yet.
#[derive(Debug, Default)]
pub(crate) struct Sources(BTreeMap<Source, Option<Option<Data>>>);

pub(crate) enum Lookup<'a> {
    Found(&'a Data),
    Missing,
    Unread,
}

impl Sources {
    pub(crate) fn lookup(&self, source: &Source) -> Lookup<'_> {
        match self.0.get(source) {
            Some(Some(Some(data))) => Lookup::Found(data),
            Some(Some(None)) => Lookup::Missing,
            _ => Lookup::Unread,
        }
    }

    /// Takes news in; false where nobody follows it or nothing changed.
    pub(crate) fn update(&mut self, source: &Source, data: Option<Data>) -> bool {
        match self.0.get_mut(source) {
            Some(slot) if slot.as_ref() != Some(&data) => {
                *slot = Some(data);
                true
            }
            _ => false,
        }
    }

    /// Follows what `needed` names and nothing else.
    pub(crate) fn follow(&mut self, needed: &BTreeSet<Source>) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.0.retain(|source, _| {
            let stays = needed.contains(source);
            if !stays {
                effects.push(Effect::Api(ApiEffect::Unfollow(source.clone())));
            }
            stays
        });
        for source in needed {
            if !self.0.contains_key(source) {
                self.0.insert(source.clone(), None);
                effects.push(Effect::Api(ApiEffect::Follow(source.clone())));
            }
        }
        effects
    }
}

impl Source {
    fn config_map(namespace: &str, name: &str) -> Self {
        Self { kind: SourceKind::ConfigMap, key: Key::new(namespace, name) }
    }

    fn secret(namespace: &str, name: &str) -> Self {
        Self { kind: SourceKind::Secret, key: Key::new(namespace, name) }
    }

    /// As the API server says it.
    pub(crate) fn not_found(&self) -> String {
        let kind = if self.kind == SourceKind::ConfigMap { "configmap" } else { "secret" };
        format!("{kind} {:?} not found", self.key.name)
    }
}

/// Every ConfigMap and Secret the pod names, in volumes, environments and pull secrets.
pub(crate) fn named_by(pod: &Pod) -> BTreeSet<Source> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let spec = spec_of(pod);
    let mut named = BTreeSet::new();
    for volume in spec.volumes.iter().flatten() {
        named.extend(volume.config_map.iter().map(|it| Source::config_map(namespace, &it.name)));
        let secret = volume.secret.as_ref().and_then(|it| it.secret_name.as_deref());
        named.extend(secret.map(|it| Source::secret(namespace, it)));
        for part in volume.projected.iter().flat_map(|it| it.sources.iter().flatten()) {
            named.extend(part.config_map.iter().map(|it| Source::config_map(namespace, &it.name)));
            named.extend(part.secret.iter().map(|it| Source::secret(namespace, &it.name)));
        }
    }
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        in_environment(container, namespace, &mut named);
    }
    for container in ephemeral_containers(pod).map(as_container) {
        in_environment(&container, namespace, &mut named);
    }
    named.extend(spec.image_pull_secrets.iter().flatten().map(|it| Source::secret(namespace, &it.name)));
    named
}

fn in_environment(container: &Container, namespace: &str, named: &mut BTreeSet<Source>) {
    for from in container.env_from.iter().flatten() {
        named.extend(from.config_map_ref.iter().map(|it| Source::config_map(namespace, &it.name)));
        named.extend(from.secret_ref.iter().map(|it| Source::secret(namespace, &it.name)));
    }
    for from in container.env.iter().flatten().filter_map(|it| it.value_from.as_ref()) {
        named.extend(from.config_map_key_ref.iter().map(|it| Source::config_map(namespace, &it.name)));
        named.extend(from.secret_key_ref.iter().map(|it| Source::secret(namespace, &it.name)));
    }
}
