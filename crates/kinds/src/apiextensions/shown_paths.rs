//! Where a violation is told to stand: upstream validates its internal type, in which what all versions say alike stands once.

use corten_meta::Violation;
use serde_json::Value;

use super::internal_form;

/// Of schemas that are not there, each version's place is told.
const MISSING: &str = "schemas are required";

/// Moves what is told of `spec.versions[N].schema` and the like to `spec.validation` and the like, where all versions say the same;
/// and tells it once.
pub(super) fn moved(definition: &Value, violations: Vec<Violation>) -> Vec<Violation> {
    if violations.is_empty() {
        return violations;
    }
    let fields = internal_form::same_in_all(&definition["spec"]["versions"]);
    violations.into_iter().filter_map(|it| moved_one(&fields, it)).collect()
}

fn moved_one(fields: &[&str], violation: Violation) -> Option<Violation> {
    let Some((version, field, rest)) = parts(&violation.path) else { return Some(violation) };
    if !fields.contains(&field) || violation.message.contains(MISSING) {
        return Some(violation);
    }
    let place = if field == "schema" { "validation" } else { field };
    let path = format!("spec.{place}{rest}");
    // Some name another place of the same schema.
    let message = violation.message.replace("spec.versions[0].schema.", "spec.validation.");
    (version == "0").then_some(Violation { path, message, ..violation })
}

/// The number of the version, the field of it, and what follows.
fn parts(path: &str) -> Option<(&str, &str, &str)> {
    let (version, of_version) = path.strip_prefix("spec.versions[")?.split_once("].")?;
    let end = of_version.find(['.', '[']).unwrap_or(of_version.len());
    let (field, rest) = of_version.split_at(end);
    Some((version, field, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_all_versions_say_alike_is_told_once() {
        let definition = json!({ "spec": { "versions": [
            { "name": "v1", "schema": { "openAPIV3Schema": {} }, "selectableFields": [] },
            { "name": "v2", "schema": { "openAPIV3Schema": {} }, "selectableFields": [{}] },
        ] } });
        let told = |path: &str| {
            let found = moved(&definition, vec![Violation::invalid(path, 0, "is wrong")]);
            found.into_iter().next().map(|it| it.path)
        };
        for (path, shown) in [
            ("spec.versions[0].schema.openAPIV3Schema.type", Some("spec.validation.openAPIV3Schema.type")),
            ("spec.versions[1].schema.openAPIV3Schema.type", None),
            ("spec.versions[0].additionalPrinterColumns[1].type", Some("spec.additionalPrinterColumns[1].type")),
            ("spec.versions[1].selectableFields[0].jsonPath", Some("spec.versions[1].selectableFields[0].jsonPath")),
            ("spec.versions[0].name", Some("spec.versions[0].name")),
            ("spec.names.kind", Some("spec.names.kind")),
        ] {
            assert_eq!(told(path).as_deref(), shown, "{path}");
        }
    }
}
