//! How a built-in kind is written down: one constant, which [`crate::KINDS`] makes a row of.

use corten_meta::Resource;

use crate::{Columns, Kind, Names, Policy, PolicyRef, Schema, Subresource, Verb, ViewOf, column::Column};

/// See [`Kind`] for what the fields mean.
pub(crate) struct BuiltIn {
    pub(crate) resource: Resource,
    pub(crate) singular: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) categories: &'static [&'static str],
    pub(crate) verbs: &'static [Verb],
    pub(crate) subresources: &'static [Subresource],
    pub(crate) schema: &'static str,
    pub(crate) view_of: Option<ViewOf>,
    pub(crate) selectable_fields: &'static [&'static str],
    pub(crate) columns: &'static [Column],
    pub(crate) policy: &'static dyn Policy,
}

impl BuiltIn {
    pub(crate) fn kind(self) -> Kind {
        let Self {
            resource,
            singular,
            short_names,
            categories,
            verbs,
            subresources,
            schema,
            view_of,
            selectable_fields,
            columns,
            policy,
        } = self;
        Kind {
            resource,
            singular: std::borrow::Cow::Borrowed(singular),
            short_names: Names::Constant(short_names),
            categories: Names::Constant(categories),
            verbs,
            subresources,
            schema: Schema::Table(schema),
            view_of,
            selectable_fields: Names::Constant(selectable_fields),
            columns: Columns::Constant(columns),
            policy: PolicyRef::Constant(policy),
            list_kind: std::borrow::Cow::Borrowed(""),
            versions: None,
        }
    }

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
}
