//! Claims and volumes that do not come together, and Pods that are not placed because of theirs.

use corten_api::{
    resources::{CSI_STORAGE_CAPACITIES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES},
    volumes::{LOCAL_DRIVER, NO_PROVISIONER, SOURCE_NODE},
};
use corten_meta::Key;
use serde_json::Value;

use super::{
    attaching::nowhere,
    case::{Advice, Case},
    provisioning,
};
use crate::why::{
    command::{kubectl, merge},
    fields::{items, one_line, text},
    findings::drivers::run_nowhere,
    gather::{newest_event, warning_events},
    nearest::nearest,
};

/// More names than these do not help.
pub(super) const NAMES_MAX: usize = 5;

/// About a claim or a volume.
pub(super) async fn of(case: &Case<'_>) -> Option<Advice> {
    let subject = &case.at.subject;
    Some(match &*case.wait.reason {
        "NoStorageClass" => no_class(case).await,
        "StorageClassNotFound" => class_not_found(case).await,
        "NoVolumeFits" => by_hand(case),
        "ExternalProvisioning" | "ProvisioningFailed" => provisioning::of(case).await,
        "WaitForFirstConsumer" => Advice::run(case.describe())
            .headline(format!("{subject} gets its volume where the first pod runs that uses it, and there is none"))
            .who("nobody: make a pod that uses it")
            .hint(asks(case.object)),
        "VolumeNotFound" => volume_not_found(case).await,
        "VolumeMismatch" if subject.starts_with("persistentvolumeclaim/") => {
            let name = text(case.object, "/spec/volumeName");
            Advice::run(kubectl("", &["get", "persistentvolume", name, "-o", "yaml"]))
                .headline(format!("{subject} names volume {name}, and cannot have it: {}", case.wait.message))
                .who(format!("whoever wrote {subject}: a claim cannot be changed, make another"))
                .hint(asks(case.object))
        }
        "VolumeTaken" => Advice::run(kubectl("", &["get", "persistentvolumes"]))
            .headline(format!("{subject} cannot have its volume: {}", case.wait.message))
            .who(format!("whoever wrote {subject}: name another volume, in another claim")),
        "ClaimLost" | "ClaimMisbound" => {
            let name = text(case.object, "/metadata/name");
            Advice::run(kubectl(case.namespace, &["delete", "persistentvolumeclaim", name]))
                .headline(format!("{subject} has lost its volume {}", text(case.object, "/spec/volumeName")))
                .who(format!("whoever wrote {subject}: delete it, make it anew, and restore what it had from a copy"))
                .hint("if the volume comes back with the same name and claimRef, so does the claim")
        }
        "VolumeReleased" => released(case).await,
        "ClaimOfAnother" => {
            let claim = case.wait.on.as_deref().unwrap_or_default().to_owned();
            Advice::run(kubectl(case.namespace, &["get", &claim, "-o", "yaml"]))
                .headline(format!("{subject} is to have a claim of its own, and {claim} is there and not made for it"))
                .who(format!(
                    "whoever has {claim}: delete it, or make it anew under another name; or whoever wrote {}: rename that",
                    case.author
                ))
                .hint("what is on it stays as it is: no claim is replaced for a pod")
        }
        _ => return None,
    })
}

/// The class makes no volumes.
fn by_hand(case: &Case<'_>) -> Advice {
    let (subject, class) = (&case.at.subject, text(case.object, "/spec/storageClassName"));
    Advice::run(kubectl("", &["get", "persistentvolumes"]))
        .headline(format!("{subject} has no volume: the volumes of its class are made by hand, and none fits"))
        .who(format!("whoever runs the cluster: make a persistentvolume of class {class:?} that is large enough"))
        .hint(asks(case.object))
        .hints(selector_of(case.object).map(|it| format!("and only one whose labels fit its selector: {it}")))
}

/// The claim's selector, as a command takes it.
pub(super) fn selector_of(claim: &Value) -> Option<String> {
    let labels = claim.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let labels =
        labels.into_iter().flatten().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = items(claim, "/spec/selector/matchExpressions").iter().map(|it| {
        let values: Vec<&str> = items(it, "/values").iter().filter_map(Value::as_str).collect();
        let values = if values.is_empty() { String::new() } else { format!(" ({})", values.join(",")) };
        format!("{} {}{values}", text(it, "/key"), text(it, "/operator"))
    });
    let all: Vec<String> = labels.chain(expressions).collect();
    (!all.is_empty()).then(|| all.join(","))
}

/// What a claim asks for.
pub(super) fn asks(claim: &Value) -> String {
    let class = text(claim, "/spec/storageClassName");
    let class = if class.is_empty() { "no storage class".to_owned() } else { format!("class {class:?}") };
    let modes: Vec<&str> = items(claim, "/spec/accessModes").iter().filter_map(Value::as_str).collect();
    let size = text(claim, "/spec/resources/requests/storage");
    let modes = if modes.is_empty() { String::new() } else { format!(", {}", modes.join(" and ")) };
    format!("it asks for {size}, {class}{modes}")
}

async fn classes(case: &Case<'_>) -> Vec<String> {
    let classes = case.reader.list(&STORAGE_CLASSES, "").await;
    classes.iter().map(|it| text(it, "/metadata/name").to_owned()).collect()
}

fn there_are(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let shown = names[..names.len() - more].join(", ");
    match (names.len(), more) {
        (0, _) => "there is none".into(),
        (_, 0) => format!("there are: {shown}"),
        _ => format!("there are: {shown} and {more} more"),
    }
}

async fn no_class(case: &Case<'_>) -> Advice {
    let classes = classes(case).await;
    Advice::run(kubectl("", &["get", "storageclasses,persistentvolumes"]))
        .headline(format!("{} has no volume: none fits, and it has no storage class", case.at.subject))
        .who(format!("whoever wrote {}, or whoever makes a class the default one", case.at.subject))
        .hint(asks(case.object))
        .hint(format!("of storage classes {}", there_are(&classes)))
}

async fn class_not_found(case: &Case<'_>) -> Advice {
    let (classes, wanted) = (classes(case).await, text(case.object, "/spec/storageClassName"));
    let mut advice = Advice::run(kubectl("", &["get", "storageclasses"]))
        .headline(format!("{} has no volume: there is no storage class {wanted:?}", case.at.subject))
        .who(format!("whoever wrote {}, or whoever makes the class", case.at.subject))
        .hint(asks(case.object))
        .hint(format!("of storage classes {}", there_are(&classes)));
    if let Some(near) = nearest(wanted, classes.iter().map(String::as_str)) {
        advice = advice.hint(format!("if {near:?} is meant: a claim's class cannot be changed, make another claim"));
    }
    advice
}

async fn volume_not_found(case: &Case<'_>) -> Advice {
    let wanted = text(case.object, "/spec/volumeName");
    let volumes = case.reader.list(&PERSISTENT_VOLUMES, "").await;
    let names = volumes.iter().map(|it| text(it, "/metadata/name"));
    let near = nearest(wanted, names).map(|it| format!("if {it:?} is meant: make another claim that names it"));
    Advice::run(kubectl("", &["get", "persistentvolumes"]))
        .headline(format!("{} names volume {wanted:?}, and there is none", case.at.subject))
        .who(format!("whoever wrote {}, or whoever makes the volume", case.at.subject))
        .hints(near)
}

async fn released(case: &Case<'_>) -> Advice {
    let name = text(case.object, "/metadata/name");
    let claim =
        format!("{} in {}", text(case.object, "/spec/claimRef/name"), text(case.object, "/spec/claimRef/namespace"));
    let advice = |next| Advice::run(next).hint(format!("it was of persistentvolumeclaim/{claim}"));
    if text(case.object, "/spec/persistentVolumeReclaimPolicy") != "Retain" {
        let driver = text(case.object, "/spec/csi/driver");
        if driver != LOCAL_DRIVER && run_nowhere(case.reader, driver).await {
            let headline = format!("{} is to be removed, as its claim was", case.at.subject);
            return nowhere(advice(kubectl("", &["get", "csinodes"])), headline, driver);
        }
        let advice = advice(kubectl("", &["describe", &case.at.subject]));
        let is_refusal = |it: &Value| text(it, "/reason") == "VolumeFailedDelete";
        return match newest_event(&warning_events(case.reader, case.object).await, is_refusal) {
            Some(said) => advice
                .headline(format!("{} is not deleted, as its claim was: {}", case.at.subject, one_line(&said)))
                .who(format!("whoever runs {driver}: it is asked again, after pauses that double")),
            None => advice,
        };
    }
    advice(merge("", &case.at.subject, &serde_json::json!({ "spec": { "claimRef": null } })))
        .headline(format!("{} is kept for what is on it: its claim is gone", case.at.subject))
        .who(format!("whoever runs the cluster: delete persistentvolume/{name}, or give it to others"))
        .hint("the command gives it to any claim that it fits, with all that is on it")
}

/// A Pod that no node can run, for the sake of its volumes.
pub(super) async fn placement(case: &Case<'_>) -> Advice {
    if case.wait.message.ends_with("not found") {
        return missing_claim(case).await;
    }
    let says = |words: &str| case.wait.message.contains(words);
    let mut advice = Advice::run(kubectl(case.namespace, &["get", "persistentvolumeclaims"]));
    if says("enough free storage") {
        advice = advice
            .who("whoever runs the cluster: make room where it may run; or whoever wrote its claim: ask for less");
    } else if says("PersistentVolume's node affinity") {
        advice = advice.who(format!(
            "whoever wrote {}: let it run where its volume is; or whoever runs that node: it must be there, with room for it",
            case.author
        ));
    } else if says("non-existent p") {
        advice = advice.who("whoever wrote its claim: delete it, make it anew, and restore what it had from a copy");
    } else if says("find available persistent volumes") {
        advice = advice.who("whoever runs the cluster: make a persistentvolume that fits, where the pod may run");
    }
    for source in items(case.object, "/spec/volumes") {
        let name = text(source, "/persistentVolumeClaim/claimName");
        let own = format!("{}-{}", text(case.object, "/metadata/name"), text(source, "/name"));
        let name = if source["ephemeral"].is_object() { &own } else { name };
        if name.is_empty() {
            continue;
        }
        let key = Key::new(case.namespace, name);
        if let Some(claim) = case.reader.get(&PERSISTENT_VOLUME_CLAIMS, &key).await {
            advice = advice.hints(whereabouts(case, &claim).await);
            let is_unbound = text(&claim, "/spec/volumeName").is_empty();
            if let Some(node) = claim["metadata"]["annotations"][SOURCE_NODE].as_str().filter(|_| is_unbound) {
                advice = advice.who(format!(
                    "whoever runs node {node}, which has what claim {name} is to begin with: the pod must find room there"
                ));
                continue;
            }
            let class = Key::cluster(text(&claim, "/spec/storageClassName"));
            let class = if is_unbound && !class.name.is_empty() {
                case.reader.get(&STORAGE_CLASSES, &class).await
            } else {
                None
            };
            if let Some(class) = class.filter(|it| it["provisioner"] == NO_PROVISIONER) {
                let class = text(&class, "/metadata/name");
                advice = advice.who(format!(
                    "whoever runs the cluster: make a persistentvolume of class {class} for claim {name}"
                ));
            }
        }
    }
    advice
}

async fn missing_claim(case: &Case<'_>) -> Advice {
    let wanted = case.wait.message.split('"').nth(1).unwrap_or_default();
    let claims = case.reader.list(&PERSISTENT_VOLUME_CLAIMS, case.namespace).await;
    let names = claims.iter().map(|it| text(it, "/metadata/name"));
    let near = nearest(wanted, names).map(|it| format!("there is {it:?}"));
    Advice::run(case.edit())
        .headline(format!("there is no persistentvolumeclaim {wanted:?} in {}", case.namespace))
        .who(format!("whoever wrote {}, or whoever makes the claim", case.author))
        .hints(near)
        .hints(case.edit_hints())
}

/// Where a claim's volume is, or where there is how much room for one.
async fn whereabouts(case: &Case<'_>, claim: &Value) -> Vec<String> {
    let (name, volume) = (text(claim, "/metadata/name"), text(claim, "/spec/volumeName"));
    if !volume.is_empty() {
        let Some(found) = case.reader.get(&PERSISTENT_VOLUMES, &Key::cluster(volume)).await else {
            return vec![format!("the volume {volume} of claim {name} is not there")];
        };
        let terms = items(&found, "/spec/nodeAffinity/required/nodeSelectorTerms").iter();
        let expressions = terms.flat_map(|it| items(it, "/matchExpressions"));
        let place = |it: &Value| {
            let values: Vec<&str> = items(it, "/values").iter().filter_map(Value::as_str).collect();
            format!("{} {}", text(it, "/key"), values.join(", "))
        };
        let places: Vec<String> = expressions.map(place).collect();
        let said = format!("the volume {volume} of claim {name} is only at {}", places.join("; "));
        return Vec::from_iter((!places.is_empty()).then_some(said));
    }
    let (class, size) = (text(claim, "/spec/storageClassName"), text(claim, "/spec/resources/requests/storage"));
    let mut said = vec![format!("claim {name} asks for {size} of class {class}")];
    said.extend(rooms(case, class).await);
    said
}

/// Where there is how much room for a volume of the class.
pub(super) async fn rooms(case: &Case<'_>, class: &str) -> Option<String> {
    let capacities = case.reader.list(&CSI_STORAGE_CAPACITIES, "").await;
    let of_class = capacities.iter().filter(|it| text(it, "/storageClassName") == class).take(NAMES_MAX);
    let rooms: Vec<String> = of_class
        .map(|it| {
            let labels = it["nodeTopology"]["matchLabels"].as_object();
            let place: Vec<&str> = labels.into_iter().flat_map(|it| it.values()).filter_map(Value::as_str).collect();
            let largest = text(it, "/maximumVolumeSize");
            let room = if largest.is_empty() { text(it, "/capacity") } else { largest };
            if place.is_empty() {
                format!("{room} wherever its driver is")
            } else {
                format!("{room} on {}", place.join(", "))
            }
        })
        .collect();
    (!rooms.is_empty()).then(|| format!("there is room for {}", rooms.join("; ")))
}
