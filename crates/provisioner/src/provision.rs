//! Claims that want a volume: upstream's `shouldProvision`, what the driver is asked for, and the PersistentVolume.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::{
    core::v1::{PersistentVolumeClaim, PersistentVolumeClaimSpec},
    secret_names::OWN_PARAMETERS,
    storage::v1::{StorageClass, VolumeAttributesClass},
    volumes::{BETA_STORAGE_PROVISIONER, STORAGE_PROVISIONER},
};
use corten_meta::Quantity;
use serde_json::{Value, json};

use crate::{
    names::volume_name,
    secrets::{self, DELETION_NAME, DELETION_NAMESPACE, MODIFICATION_NAME, MODIFICATION_NAMESPACE},
    words::{Created, DriverFacts, Request, Source, Topology},
};

pub(crate) use corten_api::volumes::{PROVISIONED_BY, SELECTED_NODE};

pub const FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
const FS_TYPE: &str = "csi.storage.k8s.io/fstype";
const READ_ONLY: &str = "ReadOnlyMany";
/// Among a volume's attributes: who made it.
const IDENTITY: &str = "storage.kubernetes.io/csiProvisionerIdentity";
/// Deprecated, in whatever case; external-provisioner reads it all the same, and tells the driver of it, too.
const BARE_FS_TYPE: &str = "fstype";

pub(crate) fn spec(claim: &PersistentVolumeClaim) -> PersistentVolumeClaimSpec {
    claim.spec.clone().unwrap_or_default()
}

pub(crate) fn annotation<'c>(claim: &'c PersistentVolumeClaim, name: &str) -> Option<&'c str> {
    claim.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// Who is to make a volume for this claim.
pub(crate) fn provisioner_of(claim: &PersistentVolumeClaim) -> Option<&str> {
    [STORAGE_PROVISIONER, BETA_STORAGE_PROVISIONER].into_iter().find_map(|it| annotation(claim, it))
}

pub(crate) fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// Does this claim want a volume now, whoever makes it?
pub(crate) fn is_wanted(claim: &PersistentVolumeClaim, class: &StorageClass) -> bool {
    let spec = spec(claim);
    let has_volume = spec.volume_name.as_deref().is_some_and(|it| !it.is_empty());
    if has_volume || claim.metadata.deletion_timestamp.is_some() || provisioner_of(claim) != Some(&class.provisioner) {
        return false;
    }
    annotation(claim, SELECTED_NODE).is_some() || !waits_for_consumer(class)
}

/// What the driver is asked for, or why there is nothing to ask.
pub(crate) fn request(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    driver: &DriverFacts,
    topologies: Vec<Topology>,
    source: Option<Source>,
    attributes: Option<Attributes<'_>>,
) -> Result<Request, String> {
    let spec = spec(claim);
    if spec.selector.is_some() {
        return Err("claim Selector is not supported".into());
    }
    let bytes = asked_bytes(claim)?;
    let given = class.parameters.clone().unwrap_or_default();
    if let Some(unknown) = given.keys().find(|it| !secrets::is_known(it)) {
        return Err(format!("found unknown parameter key {unknown:?} with reserved namespace {OWN_PARAMETERS}"));
    }
    let name = volume_name(claim);
    Ok(Request {
        driver: driver.name.clone(),
        secrets: secrets::of(&given, claim, &name)?,
        name,
        bytes,
        fs_type: fs_type(&given)?,
        is_block: spec.volume_mode.as_deref() == Some("Block"),
        read_only: driver.attaches_read_only && spec.access_modes.as_deref() == Some(&[READ_ONLY.to_owned()]),
        identity: None,
        access_modes: spec.access_modes.unwrap_or_default(),
        mount_options: class.mount_options.clone().unwrap_or_default(),
        parameters: driver_parameters(given),
        topologies,
        source,
        attributes_class: attributes.map(|it| it.0.to_owned()),
        mutable_parameters: attributes.map(|it| it.1.clone()).unwrap_or_default(),
    })
}

/// The file system that the class names; empty: the driver chooses, as external-provisioner has no default of its own.
fn fs_type(parameters: &BTreeMap<String, String>) -> Result<String, String> {
    let is_it = |name: &str| name == FS_TYPE || name.eq_ignore_ascii_case(BARE_FS_TYPE);
    let mut found = parameters.iter().filter(|it| is_it(it.0)).map(|it| it.1);
    let fs_type = found.next().cloned().unwrap_or_default();
    match found.next() {
        Some(_) => Err(format!("fstype specified in parameters with both {BARE_FS_TYPE:?} and {FS_TYPE:?} keys")),
        None => Ok(fs_type),
    }
}

/// The claim's VolumeAttributesClass with what it says of a volume; `None`: it asks for none.
///
/// # Errors
/// As external-provisioner: there is none of that name, it is another driver's, or the driver changes no volumes.
pub(crate) fn attributes<'c>(
    claim: &PersistentVolumeClaim,
    driver: &DriverFacts,
    classes: &'c BTreeMap<String, Arc<VolumeAttributesClass>>,
) -> Result<Option<Attributes<'c>>, String> {
    static NOTHING: BTreeMap<String, String> = BTreeMap::new();
    let asked = spec(claim).volume_attributes_class_name.filter(|it| !it.is_empty());
    let Some(asked) = asked else { return Ok(None) };
    if !driver.modifies {
        return Err(format!("driver {} does not support VolumeAttributesClass (MODIFY_VOLUME)", driver.name));
    }
    let missing = || format!("volumeattributesclass.storage.k8s.io {asked:?} not found");
    let (name, class) = classes.get_key_value(&asked).ok_or_else(missing)?;
    if class.driver_name != driver.name {
        let of = &class.driver_name;
        return Err(format!(
            "VAC {asked} referenced in PVC is for driver {of} which does not match driver name {}",
            driver.name
        ));
    }
    Ok(Some((name, class.parameters.as_ref().unwrap_or(&NOTHING))))
}

/// A VolumeAttributesClass: its name, and its parameters.
pub(crate) type Attributes<'c> = (&'c str, &'c BTreeMap<String, String>);

/// How large the volume is to be at least.
pub(crate) fn asked_bytes(claim: &PersistentVolumeClaim) -> Result<u64, String> {
    let spec = spec(claim);
    let asked = spec.resources.as_ref().and_then(|it| it.requests.as_ref()?.get("storage"));
    let bytes = asked.and_then(|it| it.0.parse::<Quantity>().ok()).map_or(0, Quantity::value);
    u64::try_from(bytes).map_err(|_| "it asks for less than nothing".to_owned())
}

pub(crate) fn driver_parameters(given: BTreeMap<String, String>) -> BTreeMap<String, String> {
    given.into_iter().filter(|it| !it.0.starts_with(OWN_PARAMETERS)).collect()
}

/// The PersistentVolume of what a driver made for a claim.
pub fn volume(claim: &PersistentVolumeClaim, class: &StorageClass, request: &Request, created: &Created) -> Value {
    let (own, bytes) = (&claim.metadata, if created.bytes > 0 { created.bytes } else { request.bytes });
    let fs_type = [&created.fs_type, &request.fs_type].into_iter().find(|it| !it.is_empty()).map(String::as_str);
    // What the driver says goes before.
    let mut attributes = created.context.clone();
    if let Some(identity) = &request.identity {
        attributes.entry(IDENTITY.to_owned()).or_insert_with(|| identity.clone());
    }
    let mut csi = json!({
        "driver": request.driver,
        "volumeHandle": created.handle,
        "volumeAttributes": attributes,
    });
    if request.read_only {
        csi["readOnly"] = true.into();
    }
    for (field, key) in &request.secrets.by_field {
        csi[*field] = json!({ "name": key.name, "namespace": key.namespace });
    }
    // The built-in driver says which it makes, and none of a folder; another driver to which none was told makes what it likes.
    if let Some(fs_type) = fs_type.filter(|_| !request.is_block) {
        csi["fsType"] = fs_type.into();
    }
    let mut spec = json!({
        "capacity": { "storage": Quantity::bytes(i64::try_from(bytes).unwrap_or(i64::MAX)).to_string() },
        "accessModes": request.access_modes,
        "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
        "storageClassName": class.metadata.name,
        "mountOptions": request.mount_options,
        "volumeMode": if request.is_block { "Block" } else { "Filesystem" },
        "csi": csi,
        "claimRef": {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": own.namespace,
            "name": own.name,
            "uid": own.uid,
            "resourceVersion": own.resource_version,
        },
    });
    if let Some(class) = &request.attributes_class {
        spec["volumeAttributesClassName"] = class.as_str().into();
    }
    if !created.topology.is_empty() {
        let terms: Vec<Value> = created.topology.iter().map(term).collect();
        spec["nodeAffinity"] = json!({ "required": { "nodeSelectorTerms": terms } });
    }
    let mut annotations = BTreeMap::from([(PROVISIONED_BY, &request.driver)]);
    if let Some(key) = &request.secrets.provisioner {
        annotations.extend([(DELETION_NAME, &key.name), (DELETION_NAMESPACE, &key.namespace)]);
    }
    if let Some(key) = &request.secrets.modification {
        annotations.extend([(MODIFICATION_NAME, &key.name), (MODIFICATION_NAMESPACE, &key.namespace)]);
    }
    json!({
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": {
            "name": request.name,
            "annotations": annotations,
            "finalizers": [FINALIZER],
        },
        "spec": spec,
    })
}

fn term(labels: &Topology) -> Value {
    let expressions = labels.iter().map(|(key, value)| json!({ "key": key, "operator": "In", "values": [value] }));
    json!({ "matchExpressions": expressions.collect::<Vec<_>>() })
}
