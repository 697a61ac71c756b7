//! Claims whose volume is to be larger, or as another VolumeAttributesClass says, and is not.

use corten_api::resources::VOLUME_ATTRIBUTES_CLASSES;
use corten_reconcile::Actor;
use serde_json::{Value, json};

use super::case::{Advice, Case};
use crate::why::{
    command::{kubectl, merge},
    fields::{one_line, text},
    findings::conditions::is_infeasible,
};

/// The driver, or its part on the node, does not grow the volume.
pub(super) fn size(case: &Case<'_>) -> Advice {
    let subject = &case.at.subject;
    let (has, asked) =
        (text(case.object, "/status/capacity/storage"), text(case.object, "/spec/resources/requests/storage"));
    let where_ = if case.wait.reason == "NodeResizeError" { "on its node" } else { "by its driver" };
    let message = one_line(&case.wait.message);
    let said = message.split_once(" desc = ").map_or(&*message, |it| it.1);
    let advice = Advice::run(case.describe())
        .headline(format!("the volume of {subject} has {has} and is not grown to {asked} {where_}: {said}"));
    if !is_infeasible(case.object) {
        return advice.who("whoever runs its driver: it is asked again, after pauses that double");
    }
    // What it has already is less than may be asked for.
    let advice = advice.who(format!(
        "whoever wrote {subject}: its driver will never grow it to {asked}, ask for less, and more than {has}"
    ));
    Advice { next: case.edit(), ..advice }
}

/// The volume is as large as is asked for, and the file system on it is not.
pub(super) fn file_system(case: &Case<'_>) -> Advice {
    let message = &case.wait.message;
    let advice = Advice::run(case.describe()).headline(format!("{}: {message}", case.at.subject));
    let pod = message.split_once("; pod/").and_then(|it| it.1.split_once(' ')).map(|it| it.0);
    match (case.wait.actor, pod) {
        (Actor::Cluster, Some(pod)) => {
            advice.who(format!("nobody, if it comes within a minute; else whoever runs pod/{pod}: have it begin anew"))
        }
        (Actor::Cluster, None) => advice.who("nobody: it goes on by itself"),
        (Actor::Operator, Some(pod)) => {
            let next = kubectl(case.namespace, &["describe", &format!("pod/{pod}")]);
            let who = format!("whoever runs its driver, on the node of pod/{pod}: it is asked again, after pauses");
            Advice { next, ..advice }
                .who(who)
                .hint(format!("a driver that grows nothing in use does so when pod/{pod} has ended and begins anew"))
        }
        (_, Some(pod)) => {
            let next = kubectl(case.namespace, &["describe", &format!("pod/{pod}")]);
            Advice { next, ..advice }
                .who(format!("whoever runs pod/{pod}: have it begin anew, which has the volume grown"))
        }
        (_, None) => advice.who(format!("whoever has {}: begin a pod that mounts it", case.at.subject)),
    }
}

/// There is no class of the name that the claim asks for, or it is of no use for its driver.
pub(super) async fn unclassed(case: &Case<'_>) -> Advice {
    let (subject, class) = (&case.at.subject, text(case.object, "/spec/volumeAttributesClassName"));
    let classes = case.reader.list(&VOLUME_ATTRIBUTES_CLASSES, "").await;
    let named = |it: &&Value| text(it, "/metadata/name") == class;
    let why = match classes.iter().find(named).map(|it| text(it, "/driverName")) {
        Some(driver) => format!("volumeattributesclass/{class} is of driver {driver}"),
        None => format!("there is no volumeattributesclass {class:?}"),
    };
    let names: Vec<&str> = classes.iter().map(|it| text(it, "/metadata/name")).take(5).collect();
    let there = if names.is_empty() { "there is none".to_owned() } else { format!("there are: {}", names.join(", ")) };
    Advice::run(case.edit())
        .headline(format!("the volume of {subject} is not changed: {why}"))
        .who(format!("whoever wrote {subject}: name another class; or whoever makes the class"))
        .hint(format!("of such classes {there}"))
}

/// The driver refuses the change.
pub(super) fn attributes(case: &Case<'_>) -> Advice {
    let (subject, has) = (&case.at.subject, text(case.object, "/status/currentVolumeAttributesClassName"));
    let target = text(case.object, "/status/modifyVolumeStatus/targetVolumeAttributesClassName");
    let message = one_line(&case.wait.message);
    let said = message.split_once(" desc = ").map_or(&*message, |it| it.1);
    let said = said.trim_end_matches(" Waiting for retry.").trim_end_matches('.');
    let keeps = if has.is_empty() { "is not changed".into() } else { format!("stays as class {has} says") };
    let class = format!("volumeattributesclass/{target}");
    let advice =
        Advice::run(kubectl("", &["describe", &class])).headline(format!("the volume of {subject} {keeps}: {said}"));
    if text(case.object, "/status/modifyVolumeStatus/status") != "Infeasible" {
        return advice.who("whoever runs its driver: it is asked again, after pauses");
    }
    let advice = advice.who(format!("whoever wrote {subject}: its driver will never do what {class} says"));
    if has.is_empty() {
        return advice;
    }
    let back = json!({ "spec": { "volumeAttributesClassName": has } });
    Advice { next: merge(case.namespace, subject, &back), ..advice }
        .hint(format!("naming class {has} again calls it off"))
}
