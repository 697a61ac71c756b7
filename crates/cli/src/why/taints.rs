//! Taints and tolerations of objects as JSON, for the rules that decide on them.

use corten_api::scheduling::{Taint, Toleration};
use serde_json::Value;

use crate::why::fields::text;

pub(super) fn taint_of(taint: &Value) -> Taint<'_> {
    Taint { key: text(taint, "/key"), value: text(taint, "/value"), effect: text(taint, "/effect") }
}

pub(super) fn toleration_of(toleration: &Value) -> Toleration<'_> {
    let (key, operator, value) = (text(toleration, "/key"), text(toleration, "/operator"), text(toleration, "/value"));
    Toleration { key, operator, value, effect: text(toleration, "/effect") }
}
