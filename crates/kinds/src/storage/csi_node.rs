//! Which storage drivers run on a node, and what they call it.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::CSI_NODES;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, Ordered, violations};
use corten_validation::{fill::means_the_same, read::items, rules};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CSI_NODES,
    singular: "csinode",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.storage.v1.CSINode",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        integer("Drivers", "How many drivers it has.", |object, _| json!(items(object, "/spec/drivers").len())),
        AGE,
    ],
    policy: &CsiNode,
};

struct CsiNode;

const NODE_ID_BYTES_MAX: usize = 256;

impl Policy for CsiNode {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |node| {
            let mut seen = BTreeSet::new();
            for driver in node.at("spec").list("drivers") {
                self::driver(driver);
                let name = driver.at("name");
                if seen.contains(name.str()) {
                    name.duplicate();
                }
                seen.insert(name.str());
            }
        })
    }

    /// A driver may come and go; while it is there only what it can hold changes.
    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |node| {
            let mut known: BTreeMap<Ordered<'_>, &Value> = BTreeMap::new();
            for driver in items(old, "/spec/drivers") {
                known.entry(Ordered(&driver["name"])).or_insert(driver);
            }
            for driver in node.at("spec").list("drivers") {
                let Some(before) = known.get(&Ordered(driver.at("name").value())) else { continue };
                let same =
                    ["nodeID", "topologyKeys"].iter().all(|it| means_the_same(&driver.value()[*it], &before[*it]));
                if !same {
                    driver.invalid("field is immutable");
                }
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

fn driver(driver: Cursor<'_>) {
    rules::driver_name(driver.at("name"));
    let id = driver.at("nodeID");
    if id.required() && id.str().len() > NODE_ID_BYTES_MAX {
        id.invalid(&format!("must be {NODE_ID_BYTES_MAX} characters or less"));
    }
    driver.at("allocatable").at("count").non_negative_int();
    let keys = driver.at("topologyKeys");
    let mut seen = BTreeSet::new();
    for key in keys.each().filter(|it| !seen.insert(it.str())) {
        // `validateCSINodeDriver`: it is the driver's path that a second key is reported at.
        driver.instead(key).duplicate();
    }
    keys.each().for_each(|it| it.follows(field::qualified_name));
}
