//! AppArmor profiles of containers, which annotations said before fields did: a container whose author still says it so gets the
//! field (applyAppArmorVersionSkew; KEP-24). The other way round nothing is written any more.

use corten_validation::fill::{each, made, text};
use serde_json::{Value, json};

pub(super) const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCAL: &str = "localhost/";

/// Gives each container's annotation to its field, unless that says something itself.
pub(super) fn from_annotations(pod: &mut Value) {
    let Some(annotations) = pod["metadata"]["annotations"].as_object().cloned() else { return };
    if pod["spec"]["os"]["name"] == "windows" {
        return;
    }
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let of_pod = spec.get("securityContext").and_then(|it| it.get("appArmorProfile")).cloned();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in each(spec, list) {
            let annotation = annotations.get(&format!("{PREFIX}{}", text(container, "name")));
            let Some(profile) = annotation.and_then(Value::as_str).and_then(profile) else { continue };
            // What the Pod says of all its containers need not be said again.
            if of_pod.as_ref() == Some(&profile) {
                continue;
            }
            if let Some(context) = made(container, "securityContext")
                && context.get("appArmorProfile").is_none_or(Value::is_null)
            {
                context.insert("appArmorProfile".into(), profile);
            }
        }
    }
}

/// What a new Pod's author is told of each annotation. Upstream is silent where the author gave the field as well, and the same:
/// by now that cannot be told from a field that was filled in.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let annotations = &pod["metadata"]["annotations"];
    let containers = ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|it| {
        let list = pod["spec"][it].as_array();
        list.into_iter().flatten()
    });
    let keys = containers.map(|it| format!("{PREFIX}{}", it["name"].as_str().unwrap_or_default()));
    keys.filter(|it| !annotations[it.as_str()].is_null())
        .map(|it| {
            format!(r#"metadata.annotations[{it}]: deprecated since v1.30; use the "appArmorProfile" field instead"#)
        })
        .collect()
}

fn profile(annotation: &str) -> Option<Value> {
    match annotation {
        "runtime/default" => Some(json!({ "type": "RuntimeDefault" })),
        "unconfined" => Some(json!({ "type": "Unconfined" })),
        _ => {
            let local = annotation.strip_prefix(LOCAL).filter(|it| !it.is_empty())?;
            Some(json!({ "type": "Localhost", "localhostProfile": local }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_says_what_the_annotation_says_unless_it_says_more() {
        let context = |local: &str| json!({ "appArmorProfile": { "type": "Localhost", "localhostProfile": local } });
        let mut pod = json!({
            "metadata": { "annotations": {
                "container.apparmor.security.beta.kubernetes.io/annotated": "localhost/a",
                "container.apparmor.security.beta.kubernetes.io/both": "unconfined",
                "container.apparmor.security.beta.kubernetes.io/odd": "nonsense",
            } },
            "spec": {
                "initContainers": [{ "name": "annotated" }, { "name": "odd" }],
                "containers": [{ "name": "both", "securityContext": context("c") }, { "name": "neither" }],
            },
        });
        let annotations = pod["metadata"].clone();
        from_annotations(&mut pod);
        assert_eq!(pod["metadata"], annotations);
        assert_eq!(pod["spec"]["initContainers"][0]["securityContext"], context("a"));
        assert_eq!(pod["spec"]["initContainers"][1].get("securityContext"), None);
        assert_eq!(pod["spec"]["containers"][0]["securityContext"], context("c"));
        assert_eq!(pod["spec"]["containers"][1].get("securityContext"), None);
    }
}
