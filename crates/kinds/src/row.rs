//! The shape of one row of the table.

mod versions;

use std::{borrow::Cow, ops::Deref, sync::Arc};

use corten_meta::Resource;
use corten_schema::{Struct, structural::Structural};
use serde_json::Value;

use crate::{Columns, Policy, Scale, Subresource, Verb};
pub use versions::{ConversionWebhook, Version, Versions};

/// Everything the server knows of one resource.
pub struct Kind {
    pub resource: Resource,
    pub singular: Cow<'static, str>,
    pub short_names: Names,
    pub categories: Names,
    pub verbs: &'static [Verb],
    pub subresources: &'static [Subresource],
    pub schema: Schema,
    /// Set where the row shows the objects of another row in another version or group: they are stored in that one's form.
    pub view_of: Option<ViewOf>,
    /// Paths a field selector may name beside `metadata.name` and `metadata.namespace`: `spec.nodeName`.
    pub selectable_fields: Names,
    pub columns: Columns,
    pub policy: PolicyRef,
    /// Of a custom resource.
    pub versions: Option<Arc<Versions>>,
    /// Empty: the kind with `List` behind it.
    pub(crate) list_kind: Cow<'static, str>,
}

/// A row that whoever holds it keeps: of a built-in kind, or of a definition, whose row goes when nobody holds it any more.
#[derive(Clone)]
pub enum KindRef {
    BuiltIn(&'static Kind),
    Custom(Arc<Kind>),
}

/// Names in the order in which they were given.
pub enum Names {
    Constant(&'static [&'static str]),
    Owned(Vec<String>),
}

/// What says which fields the objects have.
pub enum Schema {
    /// The name of a type in `corten_schema`'s table: `io.k8s.api.core.v1.Pod`.
    Table(&'static str),
    Structural(Arc<CustomSchema>),
}

/// The schema of one version of a custom resource.
pub struct CustomSchema {
    /// `com.example.stable.v1.CronTab`: what the OpenAPI documents call it.
    pub name: String,
    pub structural: Structural,
    /// As its definition has it, as text: what the OpenAPI documents show.
    pub open_api: Box<str>,
    pub scale: Option<Scale>,
    /// What whoever asks for a deprecated version is warned with.
    pub deprecation: Option<String>,
}

pub enum PolicyRef {
    Constant(&'static dyn Policy),
    Owned(Box<dyn Policy>),
}

/// Whose objects a row shows, and how their form is changed into the row's and back; `apiVersion` and `kind` are not its
/// business.
pub struct ViewOf {
    pub stored: Resource,
    /// The row of a custom resource's stored version; built-in rows are found in the table.
    pub(crate) row: Option<Arc<Kind>>,
    /// Neither function does anything: stored bytes are shown as they are, under another head.
    pub same_fields: bool,
    pub to_stored: fn(&mut Value),
    pub from_stored: fn(&mut Value),
}

impl ViewOf {
    /// Both versions have the same fields.
    pub const fn same(stored: Resource) -> Self {
        Self { stored, row: None, same_fields: true, to_stored: |_| {}, from_stored: |_| {} }
    }

    /// The versions differ in their fields.
    pub const fn converted(stored: Resource, to_stored: fn(&mut Value), from_stored: fn(&mut Value)) -> Self {
        Self { stored, row: None, same_fields: false, to_stored, from_stored }
    }
}

impl Kind {
    /// Are there objects in the store in this row's form? Reviews, journals and views of other rows are answered without.
    pub fn is_stored(&self) -> bool {
        self.view_of.is_none() && (self.is_custom() || self.allows(Verb::Create) && self.allows(Verb::List))
    }

    /// What discovery says can be done: of a definition that is being deleted upstream names what ends objects, and what reads
    /// them (`discovery_controller.go` of apiextensions-apiserver), though others can still be changed.
    pub fn discovered_verbs(&self) -> &'static [Verb] {
        if self.is_custom() && !self.allows(Verb::Create) { Verb::LEAVING } else { self.verbs }
    }

    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    pub fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }

    /// Does a CustomResourceDefinition describe it?
    pub fn is_custom(&self) -> bool {
        matches!(self.schema, Schema::Structural(_))
    }

    /// Who converts objects of other versions into this row's, where somebody does.
    pub fn conversion_webhook(&self) -> Option<&ConversionWebhook> {
        self.versions.as_ref()?.webhook.as_ref()
    }

    /// In which form objects are written.
    pub fn storage_resource(&self) -> &Resource {
        match (&self.versions, &self.view_of) {
            (Some(versions), _) => &versions.storage().resource,
            (None, Some(view)) => &view.stored,
            (None, None) => &self.resource,
        }
    }

    /// What the documents call the list of its objects.
    pub fn list_kind(&self) -> Cow<'_, str> {
        if self.list_kind.is_empty() { format!("{}List", self.resource.kind).into() } else { (&*self.list_kind).into() }
    }
}

impl CustomSchema {
    /// As an object is read that was stored in this version: without what the schema does not know, and with its defaults. Whose
    /// defaults would be too large stays without them.
    pub fn coerce(&self, object: &mut Value) {
        self.structural.prune(object);
        let mut whole = object.clone();
        if self.structural.default(&mut whole).is_ok() {
            *object = whole;
        }
    }
}

impl Schema {
    /// What OpenAPI documents call the type.
    pub fn name(&self) -> &str {
        match self {
            Self::Table(name) => name,
            Self::Structural(it) => &it.name,
        }
    }

    /// The type as server-side apply walks it; `None` where the table has none.
    pub fn fields(&self) -> Option<Struct<'_>> {
        match self {
            Self::Table(name) => corten_schema::find(name).map(Struct::Table),
            Self::Structural(it) => Some(Struct::from(&it.structural)),
        }
    }

    /// Are there rules in CEL beside those that the server itself has? Those of a definition are.
    pub fn has_rules(&self) -> bool {
        match self {
            Self::Table(_) => false,
            Self::Structural(it) => it.structural.has_rules(),
        }
    }

    /// Makes the object what it is for whoever reads it: with the fields that Go always writes. A custom resource has all it gets
    /// since it was read and defaulted.
    pub fn complete(&self, object: &mut Value) {
        match self {
            Self::Table(name) => corten_schema::complete(name, object),
            Self::Structural(_) => {}
        }
    }
}

impl KindRef {
    /// The row in whose form the objects are stored: this one, unless it is a view.
    pub fn stored_row(&self) -> Self {
        match (self, &self.view_of) {
            (Self::BuiltIn(kind), _) => Self::BuiltIn(kind.stored_row()),
            (Self::Custom(_), Some(ViewOf { row: Some(row), .. })) => Self::Custom(row.clone()),
            (Self::Custom(_), _) => self.clone(),
        }
    }
}

impl Deref for KindRef {
    type Target = Kind;

    fn deref(&self) -> &Kind {
        match self {
            Self::BuiltIn(kind) => kind,
            Self::Custom(kind) => kind,
        }
    }
}

impl From<&'static Kind> for KindRef {
    fn from(kind: &'static Kind) -> Self {
        Self::BuiltIn(kind)
    }
}

impl Names {
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (constant, owned) = match self {
            Self::Constant(names) => (*names, &[][..]),
            Self::Owned(names) => (&[][..], &names[..]),
        };
        constant.iter().copied().chain(owned.iter().map(String::as_str))
    }

    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|it| it == name)
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Constant(names) => names.len(),
            Self::Owned(names) => names.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Deref for PolicyRef {
    type Target = dyn Policy;

    fn deref(&self) -> &(dyn Policy + 'static) {
        match self {
            Self::Constant(policy) => *policy,
            Self::Owned(policy) => &**policy,
        }
    }
}
