//! Which of the names that a definition asks for it gets (`pkg/controller/status/naming_controller.go` of
//! apiextensions-apiserver): within a group no two definitions have one name.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// The names of a definition: those that were accepted, and where none were yet, those it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

/// A name that another definition of the group has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NameConflict {
    /// `PluralConflict`.
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Names {
    fn read(names: &Value) -> Self {
        let text = |name: &str| names[name].as_str().unwrap_or_default().to_owned();
        let list = |name: &str| {
            names[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self {
            plural: text("plural"),
            singular: text("singular"),
            kind: text("kind"),
            list_kind: text("listKind"),
            short_names: list("shortNames"),
            categories: list("categories"),
        }
    }

    /// What resources are asked for by.
    fn resources(&self) -> impl Iterator<Item = &str> {
        [&self.plural, &self.singular]
            .into_iter()
            .chain(&self.short_names)
            .map(String::as_str)
            .filter(|it| !it.is_empty())
    }

    fn kinds(&self) -> impl Iterator<Item = &str> {
        [&self.kind, &self.list_kind].into_iter().map(String::as_str).filter(|it| !it.is_empty())
    }

    pub fn json(&self) -> Value {
        let mut names = json!({ "plural": self.plural, "kind": self.kind });
        for (field, name) in [("singular", &self.singular), ("listKind", &self.list_kind)] {
            if !name.is_empty() {
                names[field] = name.clone().into();
            }
        }
        for (field, list) in [("shortNames", &self.short_names), ("categories", &self.categories)] {
            if !list.is_empty() {
                names[field] = list.clone().into();
            }
        }
        names
    }
}

/// The names by which a definition's objects are served.
pub fn names_of(definition: &Value) -> Names {
    let accepted = Names::read(&definition["status"]["acceptedNames"]);
    if accepted.plural.is_empty() || accepted.kind.is_empty() {
        Names::read(&definition["spec"]["names"])
    } else {
        accepted
    }
}

/// The names that `definition` has from now on beside `others` of its group, and one that it cannot have.
pub(super) fn accepted(definition: &Value, others: &[Names]) -> (Names, Option<NameConflict>) {
    let asked = Names::read(&definition["spec"]["names"]);
    let mut now = Names::read(&definition["status"]["acceptedNames"]);
    let resources: BTreeSet<&str> = others.iter().flat_map(Names::resources).collect();
    let kinds: BTreeSet<&str> = others.iter().flat_map(Names::kinds).collect();
    let in_use = |reason, name: &str| Some(NameConflict { reason, message: format!("{name:?} is already in use") });
    // Of several conflicts the last is told (`calculateNamesAndConditions`).
    let mut conflict = None;
    let mut take = |now: &mut String, asked: &str, taken: &BTreeSet<&str>, reason| {
        if taken.contains(asked) && *now != asked {
            conflict = in_use(reason, asked);
        } else {
            asked.clone_into(now);
        }
    };
    take(&mut now.plural, &asked.plural, &resources, "PluralConflict");
    take(&mut now.singular, &asked.singular, &resources, "SingularConflict");
    let taken = asked.short_names.iter().find(|it| resources.contains(&***it) && !now.short_names.contains(it));
    let of_short_names = taken.and_then(|it| in_use("ShortNamesConflict", it));
    let mut of_kinds = None;
    let mut take = |now: &mut String, asked: &str, reason| {
        if kinds.contains(asked) && *now != asked {
            of_kinds = in_use(reason, asked);
        } else {
            asked.clone_into(now);
        }
    };
    take(&mut now.kind, &asked.kind, "KindConflict");
    take(&mut now.list_kind, &asked.list_kind, "ListKindConflict");
    if of_short_names.is_none() {
        now.short_names = asked.short_names;
    }
    let conflict = of_kinds.or(of_short_names).or(conflict);
    now.categories = asked.categories;
    (now, conflict)
}
