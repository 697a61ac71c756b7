//! Claims whose volume is to be larger, or as another VolumeAttributesClass says, and is not.

use serde_json::json;

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
