//! PersistentVolumeClaims and PersistentVolumes: whom each belongs to.

use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    fields::{items, text},
};

pub(super) fn claim(object: &Value, found: &mut Findings) {
    let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
    if text(object, "/status/phase") == "Bound" && !is_leaving && !fails_to_grow(object) {
        found.verdict = Some((State::Fine, format!("it is bound to volume {}", text(object, "/spec/volumeName"))));
    }
    if text(object, "/status/modifyVolumeStatus/status") == "Pending" {
        let class = text(object, "/spec/volumeAttributesClassName");
        let message = format!("its volume is not changed: class {class} is not there, or is another driver's");
        found.wait(Wait::new("ModifyVolumePending", message, Actor::Author).on("VolumeAttributesClass", class));
    }
}

/// Its volume is not as large as it asks for, and somebody has said why.
fn fails_to_grow(claim: &Value) -> bool {
    let says_why = |it: &Value| matches!(text(it, "/type"), "ControllerResizeError" | "NodeResizeError");
    items(claim, "/status/conditions").iter().any(|it| says_why(it) && text(it, "/status") == "True")
}

pub(super) fn volume(object: &Value, found: &mut Findings) {
    let claim = format!("{} in {}", text(object, "/spec/claimRef/name"), text(object, "/spec/claimRef/namespace"));
    let said = match text(object, "/status/phase") {
        "Bound" => format!("it is bound to persistentvolumeclaim/{claim}"),
        "Available" if object["spec"]["claimRef"].is_object() => {
            format!("it is reserved for persistentvolumeclaim/{claim}")
        }
        "Available" => "it is nobody's, and is bound to a claim that it fits".to_owned(),
        _ => return,
    };
    found.verdict = Some((State::Fine, said));
}
