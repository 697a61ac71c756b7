//! What Kubernetes must know of a storage driver.

use std::collections::BTreeSet;

use corten_api::resources::CSI_DRIVERS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, fill_pointer, is_absent, made},
    read::items,
    rules,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, boolean, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CSI_DRIVERS,
    singular: "csidriver",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.storage.v1.CSIDriver",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        boolean("AttachRequired", "Are its volumes attached to a node first?", |object, _| {
            json!(object["spec"]["attachRequired"].as_bool().unwrap_or(true))
        }),
        boolean("PodInfoOnMount", "Is it told of the Pod?", |object, _| json!(flag(object, "podInfoOnMount"))),
        boolean("StorageCapacity", "Does it say how much room there is?", |object, _| {
            json!(flag(object, "storageCapacity"))
        }),
        column("TokenRequests", "For whom it gets tokens of the Pod.", |object, _| {
            let requests = items(object, "/spec/tokenRequests").iter();
            let audiences: Vec<&str> = requests.map(|it| it["audience"].as_str().unwrap_or_default()).collect();
            json!(if audiences.is_empty() { "<unset>".to_owned() } else { audiences.join(",") })
        }),
        boolean("RequiresRepublish", "Does it look at its volumes again and again?", |object, _| {
            json!(flag(object, "requiresRepublish"))
        }),
        column("Modes", "Which volumes it makes.", |object, _| {
            let modes: Vec<&str> =
                items(object, "/spec/volumeLifecycleModes").iter().filter_map(Value::as_str).collect();
            json!(if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") })
        }),
        AGE,
    ],
    policy: &CsiDriver,
};

struct CsiDriver;

fn flag(driver: &Value, name: &str) -> bool {
    driver["spec"][name].as_bool().unwrap_or_default()
}

impl Policy for CsiDriver {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        for (field, value) in [
            ("attachRequired", true),
            ("podInfoOnMount", false),
            ("storageCapacity", false),
            ("requiresRepublish", false),
            ("seLinuxMount", false),
        ] {
            fill(spec, field, value);
        }
        fill_pointer(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if is_absent(spec, "volumeLifecycleModes") || spec["volumeLifecycleModes"] == json!([]) {
            spec.insert("volumeLifecycleModes".into(), json!(["Persistent"]));
        }
    }

    fn name_violations(&self, name: &str) -> Vec<String> {
        let reasons = field::dns1123_subdomain(&name.to_lowercase());
        if reasons.is_empty() && name.len() > 63 { vec!["must be no more than 63 bytes".to_owned()] } else { reasons }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |driver| {
            let spec = driver.at("spec");
            spec.at("fsGroupPolicy").one_of(&["File", "None", "ReadWriteOnceWithFSType"]);
            tokens(spec.at("tokenRequests"));
            let in_secrets = spec.at("serviceAccountTokenInSecrets");
            if in_secrets.exists() && spec.at("tokenRequests").is_empty() {
                in_secrets.invalid("serviceAccountTokenInSecrets is set but no tokenRequests are specified");
            }
            for mode in spec.list("volumeLifecycleModes") {
                spec.at("volumeLifecycleModes").instead(mode).one_of(&["Ephemeral", "Persistent"]);
            }
            let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
            if period.exists() && period.int() < 10 {
                period.invalid("must be greater than or equal to 10 seconds");
            }
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |driver| {
            for field in ["attachRequired", "volumeLifecycleModes"] {
                rules::immutable(driver.at("spec").at(field), &old["spec"][field]);
            }
        })
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn has_generation(&self) -> bool {
        false
    }
}

fn tokens(requests: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for request in requests.each() {
        let (audience, expiration) = (request.at("audience"), request.at("expirationSeconds"));
        if seen.contains(audience.str()) {
            audience.duplicate();
        }
        seen.insert(audience.str());
        if expiration.exists() && expiration.int() < 600 {
            expiration.invalid("may not specify a duration less than 10 minutes");
        }
        if expiration.int() > 1 << 32 {
            expiration.invalid("may not specify a duration larger than 2^32 seconds");
        }
    }
}
