//! The shape of one row of the table.

use corten_meta::{Resource, Time};
use serde_json::Value;

use crate::{Policy, Subresource, Verb};

/// Everything the server knows of one resource.
pub struct Kind {
    pub resource: Resource,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub verbs: &'static [Verb],
    pub subresources: &'static [Subresource],
    /// The name of its type in `corten_schema`'s table, for example `io.k8s.api.core.v1.Pod`.
    pub schema: &'static str,
    /// Set where the row shows the objects of another row in another version or group: they are stored in that one's form.
    pub view_of: Option<ViewOf>,
    /// Paths a field selector may name beside `metadata.name` and `metadata.namespace`: `spec.nodeName`.
    pub selectable_fields: &'static [&'static str],
    /// The columns of `kubectl get` after Name; Age is a column like others. A row that has a column called Name (events have)
    /// places it there instead of first.
    pub columns: &'static [Column],
    pub policy: &'static dyn Policy,
}

/// Whose objects a row shows, and how their form is changed into the row's and back; `apiVersion` and `kind` are not its
/// business.
pub struct ViewOf {
    pub stored: Resource,
    /// Neither function does anything: stored bytes are shown as they are, under another head.
    pub same_fields: bool,
    pub to_stored: fn(&mut Value),
    pub from_stored: fn(&mut Value),
}

impl ViewOf {
    /// Both versions have the same fields.
    pub const fn same(stored: Resource) -> Self {
        Self { stored, same_fields: true, to_stored: |_| {}, from_stored: |_| {} }
    }

    /// The versions differ in their fields.
    pub const fn converted(stored: Resource, to_stored: fn(&mut Value), from_stored: fn(&mut Value)) -> Self {
        Self { stored, same_fields: false, to_stored, from_stored }
    }
}

impl Kind {
    /// A row that shows the objects of `row` as `resource`.
    pub(crate) const fn view(resource: Resource, schema: &'static str, of: ViewOf, row: Self) -> Self {
        let view = Self {
            resource,
            singular: row.singular,
            short_names: row.short_names,
            categories: row.categories,
            verbs: row.verbs,
            subresources: row.subresources,
            schema,
            view_of: Some(of),
            selectable_fields: row.selectable_fields,
            columns: row.columns,
            policy: row.policy,
        };
        // What is left of a row borrows all it has; constants may not drop it.
        std::mem::forget(row);
        view
    }

    /// A view whose fields have other names: as many as the shown row selects by, or fewer, in its order.
    pub(crate) const fn selected_by(mut self, fields: &'static [&'static str]) -> Self {
        self.selectable_fields = fields;
        self
    }

    /// A view whose requests are held to rules of its own. Its policy sees the stored form and is asked for violations alone.
    pub(crate) const fn checked_by(mut self, policy: &'static dyn Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Are there objects in the store in this row's form? Reviews, journals and views of other rows are answered without.
    pub fn is_stored(&self) -> bool {
        self.allows(Verb::Create) && self.allows(Verb::List) && self.view_of.is_none()
    }

    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    pub fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }
}

/// Where the value of a selectable field stands. As upstream: two of them are not called what they are.
pub fn place_of(field: &'static str) -> &'static str {
    match field {
        "status.successful" => "status.succeeded",
        "source" => "source.component",
        field => field,
    }
}

/// Where the value stands if its own place is empty (`ToSelectableFields` of events).
pub fn place_instead_of(field: &str) -> Option<&'static str> {
    (field == "source").then_some("reportingComponent")
}

/// One column of the table that `kubectl get` prints.
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `boolean`, `date`, `number`.
    pub column_type: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    /// 0: always; 1: with `-o wide`.
    pub priority: u8,
    pub cell: Cell,
}

/// Computes a cell from the whole object. Ages are relative to the given time.
pub type Cell = fn(&Value, Time) -> Value;
