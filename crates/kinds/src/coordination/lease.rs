//! Says who holds a role and until when.

use corten_api::resources::LEASES;
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::read::text;
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: LEASES,
    singular: "lease",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.coordination.v1.Lease",
    view_of: None,
    selectable_fields: &[],
    columns: &[column("Holder", "Who holds it.", |object, _| json!(text(object, "/spec/holderIdentity"))), AGE],
    policy: &Lease,
};

struct Lease;

impl Policy for Lease {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |lease| {
            let spec = lease.at("spec");
            if spec.at("leaseDurationSeconds").exists() {
                spec.at("leaseDurationSeconds").positive_int();
            }
            spec.at("leaseTransitions").non_negative_int();
            if spec.at("strategy").exists() {
                super::strategy(spec.at("strategy"));
            }
            if !spec.at("preferredHolder").is_empty() && spec.at("strategy").is_empty() {
                spec.at("preferredHolder").forbidden("may only be specified if `strategy` is defined");
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
