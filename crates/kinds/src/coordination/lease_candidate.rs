//! Who could hold a Lease, and in which version it runs.

use corten_api::resources::{LEASE_CANDIDATES, LEASE_CANDIDATES_V1ALPHA2};
use corten_meta::{Violation, release};
use corten_schema::{Cursor, violations};
use corten_validation::{
    read::text,
    rules::{self, data_key_reasons},
};
use serde_json::{Value, json};

use super::strategy;
use crate::{
    BuiltIn, Policy, Verb, ViewOf,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: LEASE_CANDIDATES,
    singular: "leasecandidate",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.coordination.v1beta1.LeaseCandidate",
    view_of: None,
    selectable_fields: &["spec.leaseName"],
    columns: &[
        column("LeaseName", "The Lease it could hold.", |object, _| json!(text(object, "/spec/leaseName"))),
        column("BinaryVersion", "The version that runs.", |object, _| json!(text(object, "/spec/binaryVersion"))),
        column("EmulationVersion", "The version it behaves like.", |object, _| {
            json!(text(object, "/spec/emulationVersion"))
        }),
        AGE,
    ],
    policy: &LeaseCandidate,
};

pub(crate) const V1ALPHA2: BuiltIn = BuiltIn::view(
    LEASE_CANDIDATES_V1ALPHA2,
    "io.k8s.api.coordination.v1alpha2.LeaseCandidate",
    ViewOf::same(LEASE_CANDIDATES),
    KIND,
);

struct LeaseCandidate;

impl Policy for LeaseCandidate {
    fn name_violations(&self, name: &str) -> Vec<String> {
        data_key_reasons(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |candidate| {
            let spec = candidate.at("spec");
            spec.at("leaseName").required();
            versions(spec);
            let strategy = spec.at("strategy");
            if strategy.required() {
                self::strategy(strategy);
            }
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |candidate| rules::immutable(candidate.at("spec").at("leaseName"), &old["spec"]["leaseName"]))
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn versions(spec: Cursor<'_>) {
    let (emulation, binary) = (spec.at("emulationVersion"), spec.at("binaryVersion"));
    let parsed = |version: Cursor<'_>| {
        let parsed = release(version.str());
        if parsed.is_none() && !version.is_empty() {
            version.invalid("must be a valid semantic version");
        }
        parsed
    };
    let emulated = parsed(emulation);
    let running = if binary.required() { parsed(binary) } else { None };
    if let (Some(running), Some(emulated)) = (running, emulated)
        && running < emulated
    {
        binary.invalid("must be greater than or equal to `emulationVersion`");
    }
    if spec.at("strategy").str() == "OldestEmulationVersion" && emulated.is_none_or(|it| it == (0, 0, 0)) {
        emulation.missing("must be specified when `strategy` is 'OldestEmulationVersion'");
    }
}
