//! PersistentVolumeClaims: what they ask for, in the line that says nobody gives it.

use serde_json::Value;

use super::found::Findings;
use crate::why::{State, fields::text};

pub(super) fn claim(object: &Value, found: &mut Findings) {
    if text(object, "/status/phase") == "Bound" && !object["metadata"]["deletionTimestamp"].is_string() {
        found.verdict = Some((State::Fine, format!("it is bound to volume {}", text(object, "/spec/volumeName"))));
    }
}
