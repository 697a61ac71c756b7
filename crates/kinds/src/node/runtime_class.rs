//! Which container runtime configuration runs Pods of a class.

use std::collections::BTreeSet;

use corten_api::resources::RUNTIME_CLASSES;
use corten_meta::{Violation, field};
use corten_schema::{Ordered, violations};
use corten_validation::{labels::labels, pod_spec::toleration, read::text, rules, warnings};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: RUNTIME_CLASSES,
    singular: "runtimeclass",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.node.v1.RuntimeClass",
    view_of: None,
    selectable_fields: &[],
    columns: &[column("Handler", "What the runtime calls it.", |object, _| json!(text(object, "/handler"))), AGE],
    policy: &RuntimeClass,
};

struct RuntimeClass;

impl Policy for RuntimeClass {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |class| {
            if class.at("handler").required() {
                class.at("handler").follows(field::dns1123_label);
            }
            for (name, quantity) in class.at("overhead").at("podFixed").entries() {
                rules::amount::name(name, quantity);
                quantity.non_negative_quantity();
            }
            let scheduling = class.at("scheduling");
            labels(scheduling.at("nodeSelector"));
            let mut seen = BTreeSet::new();
            for one in scheduling.list("tolerations") {
                toleration(one);
                if !seen.insert(Ordered(one.value())) {
                    one.duplicate();
                }
            }
        })
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::runtime_class(new)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |class| rules::immutable(class.at("handler"), &old["handler"]))
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
