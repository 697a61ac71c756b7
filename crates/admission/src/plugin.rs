//! What a plugin is, and what it is asked.

pub use crate::operation::Operation;
use corten_access::Identity;
use corten_api::resources::{BINDINGS, PODS};
use corten_cacher::body::BoxFuture;
use corten_cel::Fuel;
use corten_kinds::{Kind, Kinds, Subresource};
use corten_meta::{Resource, Status};
use serde_json::Value;

use tokio::time::Instant;

use crate::{cluster::Cluster, converted::ConvertedObjects, notes::Notes, reinvocation::Reinvocation};

/// What is asked for. What there is to say beside the answer goes to `notes`.
pub struct Attributes<'a> {
    pub cluster: &'a Cluster,
    /// Who asks.
    pub who: &'a Identity,
    pub notes: &'a Notes,
    pub operation: Operation,
    pub kind: &'a Kind,
    pub subresource: Option<Subresource>,
    pub namespace: &'a str,
    /// May be empty for a create with `generateName`.
    pub name: &'a str,
    /// What is stored now: for updates and deletes.
    pub old: Option<&'a Value>,
    pub dry_run: bool,
    /// The row that the request names, in whose form objects are shown to others.
    pub asked: &'a Kind,
    /// All that is served.
    pub kinds: &'a Kinds,
    /// Is the object's name made by the server? Then those who may still change it do not see it.
    pub generated_name: bool,
    /// May plugins still change the object?
    pub is_open: bool,
    pub form: &'a dyn RequestForm,
    pub reinvocation: Reinvocation,
    /// What the expressions that are asked about it may take, all together.
    pub fuel: &'a Fuel,
    /// Its objects in other versions.
    pub converted: &'a ConvertedObjects,
    /// When the request's time is over; `None` where nothing ends it.
    pub deadline: Option<Instant>,
}

/// What of a request is looked at only where others are asked about it.
pub trait RequestForm: Sync {
    /// `CreateOptions`, `UpdateOptions` or `DeleteOptions`; null for what has none.
    fn options(&self) -> Value;

    /// The Scale of an object; `None` where the request is about the object itself.
    fn scale(&self, object: &Value) -> Option<Value>;

    /// Takes what a Scale says into its object.
    fn take_scale(&self, object: &mut Value, scale: &Value);
}

impl<'a> Attributes<'a> {
    /// A new object of `resource`, not a subresource of one.
    pub(crate) fn creates(&self, resource: &Resource) -> bool {
        self.operation == Operation::Create && self.subresource.is_none() && self.kind.resource == *resource
    }

    /// The object is a Binding: a Pod is given its node, by either of two paths.
    pub(crate) fn binds_pod(&self) -> bool {
        let is_of_pod = self.kind.resource == PODS && self.subresource == Some(Subresource::Binding);
        self.operation == Operation::Create && (is_of_pod || self.creates(&BINDINGS))
    }

    /// The object's name, which a create has only in its body.
    pub fn name_of<'v>(&self, object: &'v Value) -> &'v str
    where
        'a: 'v,
    {
        let named = object["metadata"]["name"].as_str().filter(|it| !it.is_empty());
        named.unwrap_or(self.name)
    }
}

/// One row of the table of plugins, with the halves that are asked.
pub struct Plugin {
    pub plugin: &'static dyn Admission,
    pub admits: bool,
    pub validates: bool,
}

impl Plugin {
    pub(crate) const fn admits(plugin: &'static dyn Admission) -> Self {
        Self { plugin, admits: true, validates: false }
    }

    pub(crate) const fn validates(plugin: &'static dyn Admission) -> Self {
        Self { plugin, admits: false, validates: true }
    }

    pub(crate) const fn both(plugin: &'static dyn Admission) -> Self {
        Self { plugin, admits: true, validates: true }
    }
}

/// One plugin. A half that a plugin has not does nothing, and is not asked.
pub trait Admission: Send + Sync {
    fn name(&self) -> &'static str;

    /// May change the object (`null` for a delete); called after defaulting, before validation. It is called a second time for the same
    /// request where a webhook or a policy changed the object after others had seen it (`reinvocationPolicy`), so it must be
    /// idempotent.
    fn admit<'a>(&'a self, _request: &'a Attributes<'a>, _object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async { Ok(()) })
    }

    /// May only refuse; called after validation.
    fn validate<'a>(&'a self, _request: &'a Attributes<'a>, _object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async { Ok(()) })
    }
}
