//! A piece of storage that outlives the Pods that use it.

use corten_api::{
    resources::PERSISTENT_VOLUMES,
    volumes::{LOCAL_DRIVER, MOVED_FROM},
};
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    difference,
    fill::{fill, fill_pointer, inner, is_absent, made, means_the_same},
    pod_spec,
    read::text,
    rules::{self, amount},
    volume_claim, warnings,
};
use serde_json::{Value, json};

use super::storage;
use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column, or_unset, wide},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: PERSISTENT_VOLUMES,
    singular: "persistentvolume",
    short_names: &["pv"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.core.v1.PersistentVolume",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Capacity", "How much it holds.", |object, _| {
            let capacity = text(object, "/spec/capacity/storage");
            json!(if capacity.is_empty() { "0" } else { capacity })
        }),
        column("Access Modes", "Who may mount it.", |object, _| {
            json!(storage::modes_text(object, "/spec/accessModes"))
        }),
        column("Reclaim Policy", "What becomes of it when its claim is gone.", |object, _| {
            json!(text(object, "/spec/persistentVolumeReclaimPolicy"))
        }),
        column("Status", "Available, Bound, Released or Failed.", |object, _| json!(storage::phase(object))),
        column("Claim", "The claim it is bound to.", |object, _| json!(claim(object))),
        column("StorageClass", "Its class.", |object, _| json!(storage::class_of(object))),
        column("VolumeAttributesClass", "How fast it is.", |object, _| {
            json!(or_unset(object, "/spec/volumeAttributesClassName"))
        }),
        column("Reason", "Why it is in this state.", |object, _| json!(text(object, "/status/reason"))),
        AGE,
        wide("VolumeMode", "A file system or a block device.", |object, _| json!(or_unset(object, "/spec/volumeMode"))),
    ],
    policy: &PersistentVolume,
};

struct PersistentVolume;

const SOURCES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

fn claim(volume: &Value) -> String {
    let claim = &volume["spec"]["claimRef"];
    if claim.is_null() {
        return String::new();
    }
    format!("{}/{}", text(claim, "/namespace"), text(claim, "/name"))
}

impl Policy for PersistentVolume {
    fn default(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        if let Some(status) = made(object, "status") {
            fill(status, "phase", "Pending");
        }
        let Some(spec) = made(object, "spec") else { return };
        fill(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill_pointer(spec, "volumeMode", "Filesystem");
        if let Some(path) = inner(spec, "hostPath")
            && is_absent(path, "type")
        {
            path.insert("type".into(), "".into());
        }
        pod_spec::in_tree(spec);
    }

    /// The phase.
    fn defaults_status(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        // It enters its first phase when it is made.
        let now = object["metadata"]["creationTimestamp"].clone();
        object["status"] = json!({"phase": "Pending"});
        if now.is_string() {
            object["status"]["lastPhaseTransitionTime"] = now;
        }
    }

    /// As in `persistentvolumeStatusStrategy`: the time of a phase's change is the server's to know, unless the writer does.
    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        let unchanged = new["status"]["phase"] == old["status"]["phase"];
        if unchanged
            && new["status"]["lastPhaseTransitionTime"].is_null()
            && let Some(since) = old["status"].get("lastPhaseTransitionTime")
        {
            new["status"]["lastPhaseTransitionTime"] = since.clone();
        }
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::persistent_volume(new)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |volume| spec(volume.at("spec")))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |volume| {
            let (spec, before) = (volume.at("spec"), &old["spec"]);
            // The strategy validates the whole, and `ValidatePersistentVolumeUpdate` does so again.
            self::spec(spec);
            let source = |it: &'static str| with_late_secret(it, spec.at(it).value(), &before[it]);
            let changes = SOURCES.iter().map(|it| difference(&format!("spec.{it}"), &before[*it], &source(it)));
            let changes: Vec<String> = changes.filter(|it| !it.is_empty()).collect();
            if !changes.is_empty() {
                let path = spec.at("persistentvolumesource").path();
                let detail = "spec.persistentvolumesource is immutable after creation";
                volume.report(Violation::forbidden(path, &format!("{detail}\n{}", changes.join("\n"))));
            }
            // Neither of Kubernetes's paths says `spec`.
            let at_top = |field| volume.at(field).instead(spec.at(field));
            rules::immutable(at_top("volumeMode"), &before["volumeMode"]);
            if !before["nodeAffinity"].is_null()
                && !means_the_same(spec.at("nodeAffinity").value(), &before["nodeAffinity"])
                && !is_moved(new, before)
            {
                at_top("nodeAffinity").invalid("field is immutable, except for updating from beta label to GA");
            }
            if !before["volumeAttributesClassName"].is_null() && !spec.at("volumeAttributesClassName").exists() {
                spec.at("volumeAttributesClassName").forbidden("update from non-nil value to nil is forbidden");
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}

/// A source as it is compared: the Secret that growing takes may be named late.
fn with_late_secret(kind: &str, new: &Value, before: &Value) -> Value {
    let mut source = new.clone();
    if kind == "csi"
        && before.is_object()
        && before["controllerExpandSecretRef"].is_null()
        && let Some(source) = source.as_object_mut()
    {
        source.shift_remove("controllerExpandSecretRef");
    }
    source
}

/// A volume of the built-in driver goes to another node. Upstream lets all change with the gate `MutablePVNodeAffinity` (KEP-5381).
fn is_moved(new: &Value, before: &Value) -> bool {
    before["csi"]["driver"] == LOCAL_DRIVER && new["metadata"]["annotations"][MOVED_FROM].is_string()
}

fn spec(spec: Cursor<'_>) {
    if spec.at("accessModes").is_empty() {
        spec.at("accessModes").missing("");
    }
    volume_claim::access_modes(spec.at("accessModes"));
    let capacity = spec.at("capacity");
    if capacity.is_empty() {
        capacity.missing("");
    }
    if !capacity.key("storage").exists() || capacity.entries().count() > 1 {
        let shown = capacity.value().to_string();
        let message = format!("Unsupported value: {shown}: supported values: \"storage\"");
        capacity.report(Violation { path: capacity.path(), rule: corten_meta::Rule::NotSupported, message });
    }
    capacity.entries().for_each(|(_, it)| amount::positive(it));
    let reclaim = spec.at("persistentVolumeReclaimPolicy");
    if !reclaim.is_empty() {
        reclaim.one_of(&["Delete", "Recycle", "Retain"]);
    }
    let affinity = spec.at("nodeAffinity");
    if affinity.exists() {
        match affinity.at("required") {
            required if required.exists() => pod_spec::node_selector(required),
            required => required.missing("must specify required node constraints"),
        }
    }
    source(spec);
    if spec.at("hostPath").exists()
        && spec.at("hostPath").at("path").str().trim_matches('/').is_empty()
        && reclaim.str() == "Recycle"
    {
        reclaim.forbidden("may not be 'recycle' for a hostPath mount of '/'");
    }
    for class in ["storageClassName", "volumeAttributesClassName"].map(|it| spec.at(it)) {
        if !class.is_empty() {
            class.follows(field::dns1123_subdomain);
        }
    }
    let attributes = spec.at("volumeAttributesClassName");
    if attributes.exists() && attributes.is_empty() {
        attributes.missing("an empty string is disallowed");
    }
    if attributes.exists() && !spec.at("csi").exists() {
        spec.at("csi").missing("has to be specified when using volumeAttributesClassName");
    }
    if spec.at("volumeMode").exists() {
        spec.at("volumeMode").one_of(&["Block", "Filesystem"]);
    }
}

fn source(spec: Cursor<'_>) {
    let mut given = SOURCES.iter().map(|it| spec.at(it)).filter(|it| it.exists());
    let Some(first) = given.next() else { return spec.missing("must specify a volume type") };
    for more in given {
        more.forbidden("may not specify more than 1 volume type");
    }
    if first.path() == spec.at("csi").path() {
        csi(first);
    } else if first.path() == spec.at("local").path() {
        first.at("path").required();
        pod_spec::no_way_up(first.at("path"));
        if !spec.at("nodeAffinity").exists() {
            spec.at("nodeAffinity").missing("Local volume requires node affinity");
        }
    } else if let Some(kind) = SOURCES.iter().find(|it| spec.at(it).exists()) {
        pod_spec::volume_source(kind, first);
    }
}

fn csi(csi: Cursor<'_>) {
    rules::driver_name(csi.at("driver"));
    csi.at("volumeHandle").required();
    for secret in [
        "controllerPublishSecretRef",
        "nodeStageSecretRef",
        "nodePublishSecretRef",
        "controllerExpandSecretRef",
        "nodeExpandSecretRef",
    ]
    .map(|it| csi.at(it))
    {
        if secret.exists() {
            secret.at("name").required();
            secret.at("namespace").required();
        }
    }
}
