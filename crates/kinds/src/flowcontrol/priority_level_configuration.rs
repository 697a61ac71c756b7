//! How many requests of a level are answered at once, and where others wait.

use corten_api::resources::PRIORITY_LEVEL_CONFIGURATIONS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{Object, fill, inner, made, means_the_same},
    read::text,
};
use serde_json::{Value, json};

use super::{bootstrap, conditions};
use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: PRIORITY_LEVEL_CONFIGURATIONS,
    singular: "prioritylevelconfiguration",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Type", "Whether it is limited.", |object, _| json!(text(object, "/spec/type"))),
        column("NominalConcurrencyShares", "Its share of all requests that run.", |object, _| {
            or_none(object, "/spec/limited/nominalConcurrencyShares")
        }),
        column("Queues", "How many queues it has.", |object, _| or_none(object, &queuing("queues"))),
        column("HandSize", "From how many queues one is chosen.", |object, _| or_none(object, &queuing("handSize"))),
        column("QueueLengthLimit", "How many requests wait in a queue.", |object, _| {
            or_none(object, &queuing("queueLengthLimit"))
        }),
        AGE,
    ],
    policy: &PriorityLevelConfiguration,
};

fn queuing(field: &str) -> String {
    format!("/spec/limited/limitResponse/queuing/{field}")
}

fn or_none(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_else(|| json!("<none>"))
}

struct PriorityLevelConfiguration;

const QUEUES_MAX: i64 = 10_000_000;
const HASH_BITS: f64 = 60.0;

impl Policy for PriorityLevelConfiguration {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| inner(it, "spec")) else { return };
        if spec.get("type").is_some_and(|it| it == "Exempt")
            && let Some(exempt) = made(spec, "exempt")
        {
            fill(exempt, "nominalConcurrencyShares", 0);
            fill(exempt, "lendablePercent", 0);
        }
        let Some(limited) = inner(spec, "limited") else { return };
        fill(limited, "nominalConcurrencyShares", 30);
        fill(limited, "lendablePercent", 0);
        if let Some(queuing) = inner(limited, "limitResponse").and_then(|it| inner(it, "queuing")) {
            for (field, value) in [("queues", 64), ("handSize", 8), ("queueLengthLimit", 50)] {
                fill_zero(queuing, field, value);
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |level| {
            let (name, spec) = (level.at("metadata").at("name").str(), level.at("spec"));
            self::spec(spec, name);
            let fixed = bootstrap::mandatory(bootstrap::priority_levels(), name);
            // As in `ValidatePriorityLevelConfiguration`: how much the exempt level lends is for the user to say.
            if name == "catch-all" && fixed.is_some_and(|it| !means_the_same(&it, spec.value())) {
                spec.invalid(&format!("spec of '{name}' must equal the fixed value"));
            }
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |level| conditions(level.at("status")))
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

/// As [`fill`], where zero counts as left out.
fn fill_zero(object: &mut Object, field: &str, value: i64) {
    if object.get(field).and_then(Value::as_i64).unwrap_or_default() == 0 {
        object.insert(field.to_owned(), value.into());
    }
}

fn spec(spec: Cursor<'_>, name: &str) {
    let (kind, limited, exempt) = (spec.at("type"), spec.at("limited"), spec.at("exempt"));
    if (name == "exempt") != (kind.str() == "Exempt") {
        kind.invalid_as(kind.str(), "type must be 'Exempt' if and only if name is 'exempt'");
    }
    match kind.str() {
        "Exempt" => {
            if limited.exists() {
                limited.forbidden("must be nil if the type is not Limited");
            }
            shares(exempt);
        }
        "Limited" => {
            if exempt.exists() {
                exempt.forbidden("must be nil if the type is Limited");
            }
            if limited.exists() {
                self::limited(limited);
            } else {
                limited.missing("must not be empty when type is Limited");
            }
        }
        _ => kind.unsupported(&["Exempt", "Limited"]),
    }
}

fn shares(level: Cursor<'_>) {
    let (shares, lendable) = (level.at("nominalConcurrencyShares"), level.at("lendablePercent"));
    if shares.int() < 0 {
        shares.invalid("must be a non-negative integer");
    }
    lendable.int_between(0, 100);
}

fn limited(limited: Cursor<'_>) {
    shares(limited);
    let borrowing = limited.at("borrowingLimitPercent");
    if borrowing.int() < 0 {
        borrowing.invalid("if specified, must be a non-negative integer");
    }
    let response = limited.at("limitResponse");
    let queuing = response.at("queuing");
    match response.at("type").str() {
        "Reject" if queuing.exists() => queuing.forbidden("must be nil if limited.limitResponse.type is not Limited"),
        "Reject" => {}
        "Queue" if queuing.exists() => self::queues(queuing),
        "Queue" => queuing.missing("must not be empty if limited.limitResponse.type is Limited"),
        _ => response.at("type").unsupported(&["Queue", "Reject"]),
    }
}

fn queues(queuing: Cursor<'_>) {
    let (queues, hand, length) = (queuing.at("queues"), queuing.at("handSize"), queuing.at("queueLengthLimit"));
    for number in [length, queues, hand] {
        if number.int() <= 0 {
            number.invalid("must be positive");
        }
    }
    if queues.int() > QUEUES_MAX {
        queues.invalid(&format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand.int() > queues.int() && hand.int() > 0 {
        hand.invalid(&format!("should not be greater than queues ({})", queues.int()));
    } else if hand.int() > 0 && entropy_bits(queues.int(), hand.int()) > HASH_BITS {
        hand.invalid(&format!(
            "required entropy bits of deckSize {} and handSize {} should not be greater than {HASH_BITS}",
            queues.int(),
            hand.int()
        ));
    }
}

/// How many bits of a hash dealing a hand takes.
fn entropy_bits(deck: i64, hand: i64) -> f64 {
    let deck = f64::from(i32::try_from(deck).unwrap_or(i32::MAX));
    (deck.log2() * f64::from(i32::try_from(hand).unwrap_or(i32::MAX))).ceil()
}
