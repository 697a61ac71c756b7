//! The names of other objects in a Pod: by them its node may read those objects.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

use super::graph::ReferencedKind;

/// What one Pod names, in its own namespace.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct References {
    pub(super) node: String,
    names: Box<[(ReferencedKind, String)]>,
}

impl References {
    /// `None` for what is no Pod.
    pub(super) fn read(json: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Pod>(json).ok().map(Pod::references)
    }

    pub fn of(pod: &Value) -> Self {
        Pod::deserialize(pod).map(Pod::references).unwrap_or_default()
    }

    pub(super) fn has(&self, kind: ReferencedKind, name: &str) -> bool {
        self.names.iter().any(|it| it.0 == kind && it.1 == name)
    }

    pub(super) fn all(&self, kind: ReferencedKind) -> impl Iterator<Item = &str> {
        self.names.iter().filter(move |it| it.0 == kind).map(|it| &*it.1)
    }

    pub fn has_secrets(&self) -> bool {
        self.all(ReferencedKind::Secret).next().is_some()
    }

    pub fn has_config_maps(&self) -> bool {
        self.all(ReferencedKind::ConfigMap).next().is_some()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: OnlyName,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OnlyName {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
    service_account_name: String,
    image_pull_secrets: Option<Vec<OnlyName>>,
    volumes: Option<Vec<Volume>>,
    init_containers: Option<Vec<Container>>,
    containers: Option<Vec<Container>>,
    ephemeral_containers: Option<Vec<Container>>,
    resource_claims: Option<Vec<ClaimReference>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    resource_claim_statuses: Option<Vec<ClaimReference>>,
    extended_resource_claim_status: Option<ClaimReference>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimReference {
    resource_claim_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    env: Option<Vec<Variable>>,
    env_from: Option<Vec<Source>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Variable {
    value_from: Option<KeySource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct KeySource {
    secret_key_ref: Option<OnlyName>,
    config_map_key_ref: Option<OnlyName>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Source {
    secret_ref: Option<OnlyName>,
    config_map_ref: Option<OnlyName>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    secret: Option<SecretName>,
    config_map: Option<OnlyName>,
    persistent_volume_claim: Option<ClaimName>,
    ephemeral: Option<IgnoredAny>,
    projected: Option<Projected>,
    azure_file: Option<SecretName>,
    csi: Option<Csi>,
    cephfs: Option<Source>,
    flex_volume: Option<Source>,
    iscsi: Option<Source>,
    rbd: Option<Source>,
    #[serde(rename = "scaleIO")]
    scale_io: Option<Source>,
    storageos: Option<Source>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SecretName {
    secret_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimName {
    claim_name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Projected {
    sources: Option<Vec<ProjectedSource>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProjectedSource {
    secret: Option<OnlyName>,
    config_map: Option<OnlyName>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Csi {
    node_publish_secret_ref: Option<OnlyName>,
}

impl Pod {
    fn references(self) -> References {
        let Self { metadata, spec, status } = self;
        let mut names = Vec::new();
        let mut add = |kind: ReferencedKind, name: Option<String>| {
            if let Some(name) = name.filter(|it| !it.is_empty()) {
                names.push((kind, name));
            }
        };
        add(ReferencedKind::Account, Some(spec.service_account_name));
        spec.image_pull_secrets.into_iter().flatten().for_each(|it| add(ReferencedKind::Secret, Some(it.name)));
        for container in
            [spec.init_containers, spec.containers, spec.ephemeral_containers].into_iter().flatten().flatten()
        {
            for source in container.env.into_iter().flatten().filter_map(|it| it.value_from) {
                add(ReferencedKind::Secret, source.secret_key_ref.map(|it| it.name));
                add(ReferencedKind::ConfigMap, source.config_map_key_ref.map(|it| it.name));
            }
            for source in container.env_from.into_iter().flatten() {
                add(ReferencedKind::Secret, source.secret_ref.map(|it| it.name));
                add(ReferencedKind::ConfigMap, source.config_map_ref.map(|it| it.name));
            }
        }
        for volume in spec.volumes.into_iter().flatten() {
            // A claim made for this Pod alone is named after both.
            let own = volume.ephemeral.is_some().then(|| format!("{}-{}", metadata.name, volume.name));
            add(ReferencedKind::Claim, own);
            volume.names(&mut add);
        }
        let claims = spec.resource_claims.into_iter().chain(status.resource_claim_statuses).flatten();
        let claims = claims.chain(status.extended_resource_claim_status);
        claims.for_each(|it| add(ReferencedKind::ResourceClaim, it.resource_claim_name));
        names.sort_unstable();
        names.dedup();
        References { node: spec.node_name, names: names.into() }
    }
}

impl Volume {
    fn names(self, add: &mut impl FnMut(ReferencedKind, Option<String>)) {
        add(ReferencedKind::Secret, self.secret.map(|it| it.secret_name));
        add(ReferencedKind::Secret, self.azure_file.map(|it| it.secret_name));
        add(ReferencedKind::Secret, self.csi.and_then(|it| it.node_publish_secret_ref).map(|it| it.name));
        for source in [self.cephfs, self.flex_volume, self.iscsi, self.rbd, self.scale_io, self.storageos] {
            add(ReferencedKind::Secret, source.and_then(|it| it.secret_ref).map(|it| it.name));
        }
        add(ReferencedKind::ConfigMap, self.config_map.map(|it| it.name));
        add(ReferencedKind::Claim, self.persistent_volume_claim.map(|it| it.claim_name));
        for source in self.projected.and_then(|it| it.sources).into_iter().flatten() {
            add(ReferencedKind::Secret, source.secret.map(|it| it.name));
            add(ReferencedKind::ConfigMap, source.config_map.map(|it| it.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_names_what_it_needs() {
        let named = |it: &str| json!({ "name": it });
        let pod = json!({
            "metadata": { "name": "p" },
            "spec": {
                "nodeName": "n",
                "serviceAccountName": "sa",
                "imagePullSecrets": [named("s1")],
                "initContainers": [{ "env": [{ "valueFrom": { "secretKeyRef": named("s2") } }, { "value": "x" }] }],
                "containers": [{ "envFrom": [{ "configMapRef": named("c1") }], "env": null }],
                "ephemeralContainers": [{ "env": [{ "valueFrom": { "configMapKeyRef": named("c2") } }] }],
                "volumes": [
                    { "name": "a", "secret": { "secretName": "s3" } },
                    { "name": "b", "configMap": named("c3") },
                    { "name": "c", "persistentVolumeClaim": { "claimName": "v1" } },
                    { "name": "d", "ephemeral": { "volumeClaimTemplate": {} } },
                    { "name": "e", "projected": { "sources": [
                        { "secret": named("s4") }, { "configMap": named("c1") }, { "serviceAccountToken": {} },
                    ] } },
                    { "name": "f", "csi": { "driver": "x", "nodePublishSecretRef": named("s5") } },
                    { "name": "g", "emptyDir": {} },
                ],
                "resourceClaims": [{ "name": "r", "resourceClaimName": "r1" }, { "name": "t" }],
            },
            "status": {
                "resourceClaimStatuses": [{ "name": "t", "resourceClaimName": "r2" }],
                "extendedResourceClaimStatus": { "resourceClaimName": "r3", "requestMappings": [] },
            },
        });
        let found = References::of(&pod);
        assert_eq!(References::read(pod.to_string().as_bytes()).as_ref(), Some(&found));
        let all = |kind| found.all(kind).collect::<Vec<_>>();
        assert_eq!(found.node, "n");
        assert_eq!(all(ReferencedKind::Secret), ["s1", "s2", "s3", "s4", "s5"]);
        assert_eq!(all(ReferencedKind::ConfigMap), ["c1", "c2", "c3"]);
        assert_eq!(all(ReferencedKind::Claim), ["p-d", "v1"]);
        assert_eq!(all(ReferencedKind::Account), ["sa"]);
        assert_eq!(all(ReferencedKind::ResourceClaim), ["r1", "r2", "r3"]);
    }
}
