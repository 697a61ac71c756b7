//! Names a kind that users bring along. What its status says of that the server finds out: see [`crate::custom`].

use corten_api::resources::CUSTOM_RESOURCE_DEFINITIONS;
use corten_validation::{
    fill::{self, fill, inner, made},
    rules,
};
use std::collections::BTreeSet;

use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use serde_json::{Value, json};

use super::{checks, internal_form, names, served_version, shown_paths};
use crate::{
    BuiltIn, Policy, Subresource, UpdateRules, Verb, columns::CREATED_AT, custom::CLEANUP_FINALIZER, custom::approval,
    keep, webhook_client,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CUSTOM_RESOURCE_DEFINITIONS,
    singular: "customresourcedefinition",
    short_names: &["crd", "crds"],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    view_of: None,
    selectable_fields: &[],
    columns: &[CREATED_AT],
    policy: &CustomResourceDefinition,
};

struct CustomResourceDefinition;

impl Policy for CustomResourceDefinition {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| inner(it, "spec")) else { return };
        if let Some(names) = inner(spec, "names") {
            let kind = fill::text(names, "kind").to_owned();
            if !kind.is_empty() {
                fill(names, "singular", kind.to_lowercase());
                fill(names, "listKind", format!("{kind}List"));
            }
        }
        if let Some(conversion) = made(spec, "conversion") {
            fill(conversion, "strategy", "None");
            let client = inner(conversion, "webhook").and_then(|it| inner(it, "clientConfig"));
            if let Some(service) = client.and_then(|it| inner(it, "service")) {
                fill(service, "port", 443);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        // A list that nobody has put anything into is null in Go.
        let stored: Vec<&str> = storage_versions(object).collect();
        let stored = if stored.is_empty() { Value::Null } else { stored.into() };
        object["status"] = json!({
            "conditions": [],
            "acceptedNames": { "plural": "", "kind": "" },
            "storedVersions": stored,
        });
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        keep(new, old, "status");
        if !new["status"].is_object() && !new["status"].is_null() {
            return;
        }
        for storage in storage_versions(new).map(str::to_owned).collect::<Vec<_>>() {
            if !new["status"]["storedVersions"].is_array() {
                new["status"]["storedVersions"] = json!([]);
            }
            if let Some(stored) = new["status"]["storedVersions"].as_array_mut()
                && !stored.iter().any(|it| *it == *storage)
            {
                stored.push(storage.into());
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        whole(object, true)
    }

    /// `validate_update` asks of the whole what is asked of a change.
    fn update_rules(&self) -> UpdateRules {
        UpdateRules::Change
    }

    fn validate_new(&self, object: &Value) -> Vec<Violation> {
        let is_sound = self.validate(object).is_empty();
        let mut found = violations(object, |it| stored_versions(it.at("status"), it.at("spec")));
        found.extend(of_versions(object, None, is_sound));
        if is_sound {
            found.extend(approval::violation(object, None));
        }
        found
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        // Who changes nothing of what it describes may let go of it, too, whatever that is.
        let must_be_structural = new["spec"] != old["spec"] && checks::has_structural_schemas(old);
        let mut found = whole(new, must_be_structural);
        if old["spec"]["preserveUnknownFields"] != true && !must_be_structural {
            found.extend(violations(new, |definition| preserves_nothing(definition.at("spec"))));
        }
        found.extend(violations(new, |definition| {
            let spec = definition.at("spec");
            // What is served may be stored already, under keys that these are part of.
            if is_established(old) {
                rules::immutable(spec.at("scope"), &old["spec"]["scope"]);
                rules::immutable(spec.at("names").at("kind"), &old["spec"]["names"]["kind"]);
            }
            rules::immutable(spec.at("group"), &old["spec"]["group"]);
            rules::immutable(spec.at("names").at("plural"), &old["spec"]["names"]["plural"]);
            stored_versions(definition.at("status"), spec);
        }));
        if new["spec"]["versions"] != old["spec"]["versions"] {
            found.extend(of_versions(new, Some(old), self.validate(new).is_empty()));
        }
        found.extend(approval::violation(new, Some(old)));
        found
    }

    fn takes_short_finalizers(&self) -> bool {
        true
    }

    fn finalizer_of_deletion(&self) -> Option<&'static str> {
        Some(CLEANUP_FINALIZER)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

/// What is asked of every definition; of its schemas that they be structural, where that is asked.
fn whole(definition: &Value, must_be_structural: bool) -> Vec<Violation> {
    let found = violations(definition, |definition| {
        let (name, spec) = (definition.at("metadata").at("name"), definition.at("spec"));
        if name.str() != format!("{}.{}", spec.at("names").at("plural").str(), spec.at("group").str()) {
            name.invalid("must be spec.names.plural+\".\"+spec.group");
        }
        group(spec.at("group"));
        rules::required_one_of(spec.at("scope"), &["Cluster", "Namespaced"]);
        if must_be_structural {
            preserves_nothing(spec);
        }
        versions(spec.at("versions"), must_be_structural);
        for name in ["plural", "singular", "kind", "listKind"] {
            spec.at("names").at(name).required();
        }
        names::validate(spec.at("names"));
        conversion(spec.at("conversion"));
    });
    shown_paths::moved(definition, found)
}

fn preserves_nothing(spec: Cursor<'_>) {
    if spec.at("preserveUnknownFields").bool() {
        spec.at("preserveUnknownFields").invalid("must be false");
    }
}

/// What is asked of versions that are new or change. `is_sound` says that what is asked of every definition found nothing.
fn of_versions(new: &Value, old: Option<&Value>, is_sound: bool) -> Vec<Violation> {
    let mut found = checks::violations_of(new, old);
    if is_sound && found.is_empty() {
        found = checks::violations_of_defaults(new, old);
        if !found.is_empty() {
            return shown_paths::moved(new, found);
        }
    }
    found.extend(violations(new, |it| it.at("spec").list("versions").for_each(super::rules::validate)));
    shown_paths::moved(new, found)
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
}

/// Those that are marked so; one too many is refused later.
fn storage_versions(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|it| it["storage"] == true).filter_map(|it| it["name"].as_str())
}

/// `ValidateCustomResourceDefinitionStoredVersions`: who has seen to it that nothing is stored in a version any more says so in
/// the status, and only then the version may go.
fn stored_versions(status: Cursor<'_>, spec: Cursor<'_>) {
    // One that was never given a status, as a restored backup may be, says nothing of it.
    if !status.exists() {
        return;
    }
    let stored = status.at("storedVersions");
    if stored.items().is_empty() {
        return stored.invalid("must have at least one stored version");
    }
    for version in spec.list("versions").filter(|it| it.at("storage").bool()) {
        let name = version.at("name").str();
        if !stored.each().any(|it| it.str() == name) {
            stored.invalid(&format!("must have the storage version {name}"));
        }
    }
    let known: BTreeSet<&str> = spec.list("versions").map(|it| it.at("name").str()).collect();
    for gone in stored.each().filter(|it| !known.contains(it.str())) {
        let name = gone.str();
        gone.invalid(&format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        ));
    }
}

fn group(group: Cursor<'_>) {
    let reasons = field::dns1123_subdomain(group.str());
    if !group.required() {
        return;
    }
    if !reasons.is_empty() {
        group.invalid(&reasons.join(","));
    } else if !group.str().contains('.') {
        group.invalid("should be a domain with at least one dot");
    }
}

fn versions(versions: Cursor<'_>, must_be_structural: bool) {
    versions.each().for_each(|it| served_version::validate(it, must_be_structural));
    let unique: BTreeSet<&str> = versions.each().map(|it| it.at("name").str()).collect();
    let wrong = |detail: &str| {
        let shown = internal_form::versions(versions.value());
        versions.report(Violation::invalid(versions.path(), shown, detail));
    };
    if unique.len() != versions.items().len() {
        wrong("must contain unique version names");
    }
    if versions.each().filter(|it| it.at("storage").bool()).count() != 1 {
        wrong("must have exactly one version marked as storage version");
    }
}

fn conversion(conversion: Cursor<'_>) {
    let (webhook, strategy) = (conversion.at("webhook"), conversion.at("strategy"));
    match strategy.str() {
        "Webhook" if !webhook.exists() => webhook.missing("required when strategy is set to Webhook"),
        "Webhook" => {
            if webhook.at("clientConfig").exists() {
                webhook_client::validate(webhook.at("clientConfig"));
            } else {
                webhook.at("clientConfig").missing("required when strategy is set to Webhook");
            }
            review_versions(webhook.at("conversionReviewVersions"));
        }
        "None" if webhook.exists() => webhook.forbidden("should not be set when strategy is not set to Webhook"),
        "None" => {}
        _ => {
            rules::required_one_of(strategy, &["None", "Webhook"]);
        }
    }
}

fn review_versions(versions: Cursor<'_>) {
    const KNOWN: [&str; 2] = ["v1", "v1beta1"];
    if versions.is_empty() {
        return versions.missing("");
    }
    let mut seen = BTreeSet::new();
    for version in versions.each() {
        if !seen.insert(version.str()) {
            version.invalid("duplicate version");
            continue;
        }
        let reasons = field::dns1035_label(version.str());
        if !reasons.is_empty() {
            version.invalid(&reasons.join(","));
        }
    }
    if !KNOWN.iter().any(|it| seen.contains(it)) {
        versions.invalid(&format!("must include at least one of {}", KNOWN.join(", ")));
    }
}
