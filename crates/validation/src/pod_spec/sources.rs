//! The volume sources that Pods and PersistentVolumes share and nothing but their drivers understands: what each must name.

use corten_schema::Cursor;

const REQUIRED: &[(&str, &[&str])] = &[
    ("awsElasticBlockStore", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("azureFile", &["secretName", "shareName"]),
    ("cephfs", &["monitors"]),
    ("cinder", &["volumeID"]),
    ("flexVolume", &["driver"]),
    ("gcePersistentDisk", &["pdName"]),
    ("gitRepo", &["repository"]),
    ("glusterfs", &["endpoints", "path"]),
    ("iscsi", &["targetPortal", "iqn"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("quobyte", &["registry", "volume"]),
    ("rbd", &["monitors", "image"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("vsphereVolume", &["volumePath"]),
];
/// Block devices have this many parts at most.
const PARTITION_MAX: i64 = 255;

pub(super) fn validate(kind: &str, source: Cursor<'_>) {
    let required = REQUIRED.iter().find(|it| it.0 == kind).map_or(&[][..], |it| it.1);
    for field in required {
        source.at(field).required();
    }
    match kind {
        "awsElasticBlockStore" | "gcePersistentDisk" => source.at("partition").int_between(0, PARTITION_MAX),
        "flocker" => match (source.at("datasetName").is_empty(), source.at("datasetUUID").is_empty()) {
            (true, true) => source.missing("one of datasetName and datasetUUID is required"),
            (false, false) => source.invalid("datasetName and datasetUUID can not be specified simultaneously"),
            _ => {}
        },
        "fc" => fibre_channel(source),
        "iscsi" => source.at("lun").int_between(0, PARTITION_MAX),
        _ => {}
    }
}

fn fibre_channel(source: Cursor<'_>) {
    let (targets, ids, unit) = (source.at("targetWWNs"), source.at("wwids"), source.at("lun"));
    match (targets.is_empty(), ids.is_empty()) {
        (true, true) => targets.missing("must specify either targetWWNs or wwids, but not both"),
        (false, false) => targets.invalid("targetWWNs and wwids can not be specified simultaneously"),
        (false, true) if !unit.exists() => unit.missing("lun is required if targetWWNs is specified"),
        (false, true) => unit.int_between(0, PARTITION_MAX),
        _ => {}
    }
}
