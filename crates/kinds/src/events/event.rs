//! The events of the core group in the shape of `events.k8s.io`.

use corten_api::resources::{EVENTS, EVENTS_V1};
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::rules;
use serde_json::Value;

use crate::{BuiltIn, MetadataChecks, Policy, ViewOf, core};

pub(crate) const KIND: BuiltIn = BuiltIn::view(
    EVENTS_V1,
    "io.k8s.api.events.v1.Event",
    ViewOf::converted(EVENTS, |it| rename(it, TO_CORE), |it| rename(it, FROM_CORE)),
    core::event::KIND,
)
.selected_by(&[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
])
.checked_by(&Event);

type Renamed = (&'static str, &'static str);

/// Fields that have another name here; all others have the same in both groups.
const TO_CORE: &[Renamed] = &[
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
];
const FROM_CORE: &[Renamed] = &[
    ("message", "note"),
    ("involvedObject", "regarding"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

fn rename(event: &mut Value, names: &[Renamed]) {
    let Some(event) = event.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = event.shift_remove(*from) {
            event.insert((*to).to_owned(), value);
        }
    }
}

/// What is asked only of those who use the newer shape. Paths are those of the stored one (`legacyValidateEvent` beside
/// `ValidateEventCreate`).
struct Event;

impl Policy for Event {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        let mut found = core::event::Event.validate(object);
        found.extend(violations(object, |event| {
            let series = event.at("series");
            if series.exists() {
                if series.at("count").int() < 2 {
                    series.at("count").invalid_as("", "should be at least 2");
                }
                series.at("lastObservedTime").required();
            }
            // As in `ValidateEventUpdate`: events of the older shape that are there may be counted on.
            if event.at("metadata").at("resourceVersion").exists() {
                return;
            }
            event.at("eventTime").required();
            let kind = event.at("type");
            if !matches!(kind.str(), "Normal" | "Warning") {
                kind.invalid_as("", &format!("has invalid value: {}", kind.str()));
            }
            for unused in ["firstTimestamp", "lastTimestamp", "count", "source"].map(|it| event.at(it)) {
                if !unused.is_empty() && unused.value() != 0 {
                    unused.invalid_as("", "needs to be unset");
                }
            }
        }));
        renamed(found)
    }

    /// Only what counts repetitions changes.
    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        renamed(violations(new, |event| {
            let whole = |field| rules::immutable(event.at(field), &old[field]);
            let text = |field| rules::immutable_text(event.at(field), &old[field]);
            whole("involvedObject");
            // Upstream compares it twice, and tells so (ValidateEventUpdate).
            text("reason");
            text("reason");
            text("message");
            ["source", "firstTimestamp", "lastTimestamp", "count"].into_iter().for_each(whole);
            text("reportingComponent");
            text("reportingInstance");
            whole("eventTime");
            text("action");
            whole("related");
            text("type");
        }))
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

/// Of all fields with another name in the core group, this one alone is reported by the name it has here.
fn renamed(mut found: Vec<Violation>) -> Vec<Violation> {
    for violation in found.iter_mut().filter(|it| it.path == "reportingComponent") {
        "reportingController".clone_into(&mut violation.path);
    }
    found
}
