//! Are the defaults of a schema values that it accepts (`pkg/apiserver/schema/defaulting.ValidateDefaults` of
//! apiextensions-apiserver)?

use corten_cel::{Fuel, FuelLimit, RUNTIME_BUDGET};
use corten_meta::Violation;

use super::{DefaultValue, Structural, TYPE_AND_OBJECT_META};

impl Structural {
    /// What is wrong with the defaults of a resource's schema that stands at `path`. Each is looked at as it is written, without
    /// the defaults within it; the rules in CEL of all have one budget.
    pub fn violations_of_defaults(&self, path: &str) -> Vec<Violation> {
        let _limit = FuelLimit::of(Fuel::OBJECT);
        let mut check = DefaultCheck { path: path.to_owned(), found: Vec::new(), budget: RUNTIME_BUDGET };
        check.part(self, true, false);
        check.found
    }
}

struct DefaultCheck {
    path: String,
    found: Vec<Violation>,
    /// What rules in CEL may still cost.
    budget: u64,
}

impl DefaultCheck {
    /// Below `additionalProperties` nothing is filled in that a part of the schema could not be found for: they are not followed.
    fn part(&mut self, schema: &Structural, is_resource: bool, is_meta: bool) {
        if self.found.len() > Violation::MOST {
            return;
        }
        let is_resource = is_resource || schema.embedded_resource;
        let is_meta = is_meta && !is_resource;
        if let Some(default) = &schema.default {
            self.value(schema, default, is_meta);
        }
        if let Some(items) = &schema.items {
            self.within(".items", |it| it.part(items, false, is_meta));
        }
        for (name, property) in &schema.properties {
            let is_meta = is_meta || is_resource && TYPE_AND_OBJECT_META.contains(&&**name);
            self.within(&format!(".properties[{name}]"), |it| it.part(property, false, is_meta));
        }
    }

    fn within(&mut self, step: &str, look: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        look(self);
        self.path.truncate(length);
    }

    fn value(&mut self, schema: &Structural, default: &DefaultValue, is_meta: bool) {
        let (value, path) = (&default.value, format!("{}.default", self.path));
        if !is_meta && schema.has_unknown_fields(value) {
            self.found.push(Violation::invalid(&*path, value, "must not have unknown fields"));
        }
        let mut broken = schema.validate(value, None);
        if broken.is_empty() {
            broken = schema.validate_expressions_within(value, &mut self.budget);
        }
        self.found.extend(broken.into_iter().map(|it| Violation { path: below(&path, &it.path), ..it }));
    }
}

/// A combination of rules has no path of its own.
fn below(path: &str, inner: &str) -> String {
    match inner {
        "" | "<nil>" => path.to_owned(),
        item if item.starts_with('[') => format!("{path}{item}"),
        field => format!("{path}.{field}"),
    }
}
