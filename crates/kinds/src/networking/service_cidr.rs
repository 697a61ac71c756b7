//! A range of addresses for Services.

use corten_api::resources::SERVICE_CIDRS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{read::items, rules::address};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, UpdateRules, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SERVICE_CIDRS,
    singular: "servicecidr",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.networking.v1.ServiceCIDR",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("CIDRs", "The ranges, one of each family.", |object, _| {
            let ranges: Vec<&str> = items(object, "/spec/cidrs").iter().filter_map(Value::as_str).collect();
            json!(ranges.join(","))
        }),
        AGE,
    ],
    policy: &ServiceCidr,
};

struct ServiceCidr;

impl Policy for ServiceCidr {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |range| ranges(range.at("spec").at("cidrs")))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |range| {
            let (ranges, before) = (range.at("spec").at("cidrs"), items(old, "/spec/cidrs"));
            // A second family may come; what is there stays.
            if ranges.items().len() != before.len() && (before.len(), ranges.items().len()) != (1, 2) {
                return ranges.invalid("field is immutable");
            }
            for (range, before) in ranges.each().zip(before) {
                if range.value() != before {
                    range.invalid("field is immutable");
                }
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }

    fn update_rules(&self) -> UpdateRules {
        UpdateRules::Change
    }
}

fn ranges(ranges: Cursor<'_>) {
    match ranges.items() {
        [] => ranges.missing("at least one CIDR required"),
        [_] => {}
        [a, b] if address::is_v6(a.as_str().unwrap_or_default()) != address::is_v6(b.as_str().unwrap_or_default()) => {}
        [_, _] => {
            ranges.invalid("may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/96")
        }
        _ => ranges.invalid("may only hold up to 2 values"),
    }
    for range in ranges.each() {
        address::range(range);
    }
}
