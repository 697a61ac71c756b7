//! Secrets that a class names for its driver, with the placeholders of upstream's external-provisioner (`getSecretReference`).

use std::collections::BTreeMap;

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, SecretReference},
    secret_names::{OWN_PARAMETERS, secret_of},
};
use corten_meta::Key;

use crate::names::volume_name;

/// On a volume: the Secret its driver is told when it is removed.
pub(crate) const DELETION_NAME: &str = "volume.kubernetes.io/provisioner-deletion-secret-name";
pub(crate) const DELETION_NAMESPACE: &str = "volume.kubernetes.io/provisioner-deletion-secret-namespace";

/// On a volume: the Secret its driver is told when its VolumeAttributesClass is changed.
pub(crate) const MODIFICATION_NAME: &str = "volume.kubernetes.io/controller-modify-secret-name";
pub(crate) const MODIFICATION_NAMESPACE: &str = "volume.kubernetes.io/controller-modify-secret-namespace";

const PROVISIONER: &str = "provisioner-secret";
/// The volume has no field for it.
const MODIFICATION: &str = "controller-modify-secret";
/// What a class calls them, and the field of the volume that keeps each.
const OF_VOLUME: [(&str, &str); 5] = [
    ("controller-publish-secret", "controllerPublishSecretRef"),
    ("node-stage-secret", "nodeStageSecretRef"),
    ("node-publish-secret", "nodePublishSecretRef"),
    ("controller-expand-secret", "controllerExpandSecretRef"),
    ("node-expand-secret", "nodeExpandSecretRef"),
];

/// The Secrets of one volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeSecrets {
    /// For making and removing it.
    pub provisioner: Option<Key>,
    /// For changing what its VolumeAttributesClass says.
    pub modification: Option<Key>,
    /// By the fields of the PersistentVolume that name them.
    pub by_field: BTreeMap<&'static str, Key>,
}

/// What the class's parameters name for this claim.
///
/// # Errors
/// Half of a name, or a placeholder that is none, in upstream's words.
pub(crate) fn of(
    parameters: &BTreeMap<String, String>,
    claim: &PersistentVolumeClaim,
    volume: &str,
) -> Result<VolumeSecrets, String> {
    let find = |what: &str| reference(parameters, what, claim, volume);
    let mut by_field = BTreeMap::new();
    for (what, field) in OF_VOLUME {
        if let Some(key) = find(what)? {
            by_field.insert(field, key);
        }
    }
    Ok(VolumeSecrets { provisioner: find(PROVISIONER)?, modification: find(MODIFICATION)?, by_field })
}

/// Is it this Secret that the class has the driver told when it makes a volume for the claim?
pub fn provisioner_secret_is(
    parameters: &BTreeMap<String, String>,
    claim: &PersistentVolumeClaim,
    (namespace, name): (&str, &str),
) -> bool {
    let found = reference(parameters, PROVISIONER, claim, &volume_name(claim));
    found.is_ok_and(|it| it.is_some_and(|it| it.namespace == namespace && it.name == name))
}

/// Is it one that the driver is told when it attaches, grows, changes or removes the volume?
pub fn controller_secrets_have(volume: &PersistentVolume, (namespace, name): (&str, &str)) -> bool {
    let csi = volume.spec.as_ref().and_then(|it| it.csi.as_ref());
    let named = csi.into_iter().flat_map(|it| {
        [&it.controller_publish_secret_ref, &it.controller_expand_secret_ref, &it.node_expand_secret_ref]
    });
    let named = named.filter_map(|it| key_of(it.as_ref())).chain(of_removal(volume)).chain(of_modification(volume));
    named.into_iter().any(|it| it.namespace == namespace && it.name == name)
}

/// Is it a parameter of the provisioner that means something?
pub(crate) fn is_known(parameter: &str) -> bool {
    let names = OF_VOLUME.iter().map(|it| it.0).chain([PROVISIONER, MODIFICATION]);
    let Some(own) = parameter.strip_prefix(OWN_PARAMETERS) else { return true };
    own == "fstype"
        || names.into_iter().any(|it| own.strip_prefix(it).is_some_and(|it| it == "-name" || it == "-namespace"))
}

fn reference(
    parameters: &BTreeMap<String, String>,
    what: &str,
    claim: &PersistentVolumeClaim,
    volume: &str,
) -> Result<Option<Key>, String> {
    let meta = &claim.metadata;
    secret_of(parameters, what, |token, is_name| match token {
        "pv.name" => Some(volume.to_owned()),
        "pvc.namespace" => meta.namespace.clone(),
        "pvc.name" if is_name => meta.name.clone(),
        _ if is_name && what != PROVISIONER => {
            let key = token.strip_prefix("pvc.annotations['")?.strip_suffix("']")?;
            meta.annotations.as_ref()?.get(key).cloned()
        }
        _ => None,
    })
}

/// The Secret that the driver is told when the volume is removed.
pub(crate) fn of_removal(volume: &PersistentVolume) -> Option<Key> {
    annotated(volume, DELETION_NAMESPACE, DELETION_NAME)
}

/// The Secret that the driver is told when the volume's class of attributes is changed, as by external-resizer: that for growing it where
/// there is none of its own.
pub(crate) fn of_modification(volume: &PersistentVolume) -> Option<Key> {
    let own = annotated(volume, MODIFICATION_NAMESPACE, MODIFICATION_NAME);
    own.or_else(|| key_of(volume.spec.as_ref()?.csi.as_ref()?.controller_expand_secret_ref.as_ref()))
}

fn annotated(volume: &PersistentVolume, namespace: &str, name: &str) -> Option<Key> {
    let annotations = volume.metadata.annotations.as_ref()?;
    Some(Key::new(annotations.get(namespace)?.clone(), annotations.get(name)?.clone()))
}

pub(crate) fn key_of(reference: Option<&SecretReference>) -> Option<Key> {
    let reference = reference?;
    Some(Key::new(reference.namespace.clone()?, reference.name.clone()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(parameters: &[(&str, &str)]) -> Result<VolumeSecrets, String> {
        let parameters =
            parameters.iter().map(|(name, it)| (format!("{OWN_PARAMETERS}{name}"), (*it).to_owned())).collect();
        let claim =
            serde_json::json!({ "metadata": { "name": "data", "namespace": "ns", "annotations": { "k/e": "x" } } });
        of(&parameters, &serde_json::from_value(claim).expect("a claim"), "pvc-1")
    }

    #[test]
    fn the_secret_for_growing_serves_for_changing_where_there_is_no_other() {
        let growing = serde_json::json!({ "name": "grow", "namespace": "ns" });
        let own = serde_json::json!({ MODIFICATION_NAME: "change", MODIFICATION_NAMESPACE: "ns" });
        for (annotations, growing, expected) in [
            (own.clone(), Some(&growing), Some("change")),
            (own, None, Some("change")),
            (serde_json::json!({ MODIFICATION_NAME: "change" }), Some(&growing), Some("grow")),
            (serde_json::json!({}), Some(&growing), Some("grow")),
            (serde_json::json!({}), None, None),
        ] {
            let csi = serde_json::json!({ "driver": "d", "volumeHandle": "h", "controllerExpandSecretRef": growing });
            let volume = serde_json::json!({ "metadata": { "annotations": annotations }, "spec": { "csi": csi } });
            let volume: PersistentVolume = serde_json::from_value(volume).expect("a volume");
            assert_eq!(of_modification(&volume), expected.map(|it| Key::new("ns", it)), "{annotations} {growing:?}");
            for name in ["change", "grow", "other"] {
                let may = expected == Some(name) || growing.is_some() && name == "grow";
                assert_eq!(controller_secrets_have(&volume, ("ns", name)), may, "{annotations} {name}");
            }
        }
    }

    #[test]
    fn placeholders_are_the_claims_and_the_volumes() {
        let told = secrets(&[
            ("provisioner-secret-name", "${pvc.name}-${pv.name}"),
            ("provisioner-secret-namespace", "${pvc.namespace}"),
            ("node-stage-secret-name", "s-${pvc.annotations['k/e']}"),
            ("node-stage-secret-namespace", "fixed"),
            ("controller-modify-secret-name", "${pvc.name}"),
            ("controller-modify-secret-namespace", "fixed"),
        ]);
        let told = told.expect("resolved");
        assert_eq!(told.provisioner, Some(Key::new("ns", "data-pvc-1")));
        assert_eq!(told.modification, Some(Key::new("fixed", "data")));
        assert_eq!(told.by_field, BTreeMap::from([("nodeStageSecretRef", Key::new("fixed", "s-x"))]));
        for (parameters, words) in [
            (&[("node-stage-secret-name", "x")][..], "Both must be specified"),
            (
                &[("provisioner-secret-name", "${x}"), ("provisioner-secret-namespace", "y")][..],
                "invalid tokens: [\"x\"]",
            ),
            (&[("provisioner-secret-name", "../x"), ("provisioner-secret-namespace", "y")][..], "not a valid name"),
            (
                &[("provisioner-secret-name", "x"), ("provisioner-secret-namespace", "${pvc.name}")][..],
                "invalid tokens",
            ),
        ] {
            let error = secrets(parameters).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
        let class =
            [("provisioner-secret-name", "${pvc.name}-key"), ("provisioner-secret-namespace", "${pvc.namespace}")];
        let class = class.iter().map(|it| (format!("{OWN_PARAMETERS}{}", it.0), it.1.to_owned())).collect();
        let claim = serde_json::json!({ "metadata": { "name": "data", "namespace": "ns" } });
        let claim = serde_json::from_value(claim).expect("a claim");
        assert!(provisioner_secret_is(&class, &claim, ("ns", "data-key")));
        assert!(!provisioner_secret_is(&class, &claim, ("other", "data-key")));
        assert!(!provisioner_secret_is(&BTreeMap::new(), &claim, ("ns", "data-key")));
        assert!(is_known("csi.storage.k8s.io/controller-modify-secret-name"));
        assert!(is_known("type") && is_known("csi.storage.k8s.io/fstype"));
        assert!(!is_known("csi.storage.k8s.io/node-stage-secret"));
    }
}
