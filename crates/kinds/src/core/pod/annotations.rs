//! Annotations of a Pod that are for good: what says that it shows a static Pod, and what once said its AppArmor profiles.

use corten_api::resources::MIRROR_POD;
use corten_meta::Violation;
use corten_schema::Cursor;
use serde_json::Value;

use super::app_armor;

/// As `ValidatePodSpecificAnnotationUpdates`: first those that were there, then those that come.
pub(super) fn validate_update(pod: Cursor<'_>, old: &Value) {
    let annotations = pod.at("metadata").at("annotations");
    let forbid = |key: &str, detail: String| {
        annotations.report(Violation::forbidden(format!("{}[{key}]", annotations.path()), &detail));
    };
    let (now, before) = (annotations.map(), old["metadata"]["annotations"].as_object());
    for (key, value) in before.into_iter().flatten() {
        if let Some(what) = for_good(key)
            && now.and_then(|it| it.get(key)) != Some(value)
        {
            forbid(key, format!("may not remove or update {what}"));
        }
    }
    for (key, _) in now.into_iter().flatten() {
        if let Some(what) = for_good(key)
            && before.is_none_or(|it| !it.contains_key(key))
        {
            forbid(key, format!("may not add {what}"));
        }
    }
}

/// What an annotation is in upstream's words, where it is for good.
pub(in crate::core) fn for_good(key: &str) -> Option<&'static str> {
    match key {
        MIRROR_POD => Some("mirror pod annotation"),
        _ if key.starts_with(app_armor::PREFIX) => Some("AppArmor annotations"),
        _ => None,
    }
}
