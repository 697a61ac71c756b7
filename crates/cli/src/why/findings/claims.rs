//! PersistentVolumeClaims and PersistentVolumes: whom each belongs to.

use serde_json::Value;

use super::found::Findings;
use crate::why::{State, fields::text};

pub(super) fn claim(object: &Value, found: &mut Findings) {
    if text(object, "/status/phase") == "Bound" && !object["metadata"]["deletionTimestamp"].is_string() {
        found.verdict = Some((State::Fine, format!("it is bound to volume {}", text(object, "/spec/volumeName"))));
    }
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
