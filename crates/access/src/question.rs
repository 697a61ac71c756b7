//! May this user do this? The question, its answer, and the words of a refusal.

use std::{collections::BTreeMap, sync::Arc};

use corten_meta::{Resource, Status};
use corten_routes::RequestInfo;

use crate::identity::Identity;

/// One access question, in RBAC's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a> {
    pub user: &'a str,
    pub uid: &'a str,
    pub groups: &'a [String],
    pub extra: &'a BTreeMap<String, Vec<String>>,
    /// `get`, `list`, `create`; for paths the HTTP method in lower case.
    pub verb: &'a str,
    pub target: ResourceOrPath<'a>,
    /// Of the resource; empty where any is meant.
    pub version: &'a str,
    /// What a list or watch is narrowed to, as the query writes it; empty where it is not.
    pub field_selector: &'a str,
    pub label_selector: &'a str,
}

/// What somebody has beside name and groups who has nothing beside them.
static NO_EXTRA: BTreeMap<String, Vec<String>> = BTreeMap::new();

/// What the question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceOrPath<'a> {
    /// Empty strings where there is no subresource, namespace or name.
    Resource { group: &'a str, resource: &'a str, subresource: &'a str, namespace: &'a str, name: &'a str },
    /// A path that is no resource: `/healthz`.
    Path(&'a str),
}

/// The group whose members may do everything, whatever the roles say: the way back in after a bad role was written.
pub const MASTERS: &str = "system:masters";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// With what allows it, where that is a binding.
    Allowed(Option<Arc<str>>),
    Denied(Denial),
}

/// Why something is not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denial {
    /// Names roles that are bound but missing, or is what a webhook says. May be empty.
    pub reason: String,
    /// An authorizer forbids it, whatever the others say; else nobody has allowed it.
    pub is_explicit: bool,
    /// Who could not be asked, and why. While this says something, the answer is not known for certain.
    pub error: String,
}

impl From<String> for Denial {
    fn from(reason: String) -> Self {
        Self { reason, ..Self::default() }
    }
}

impl Decision {
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }
}

impl<'a> Attributes<'a> {
    /// A question of `who`, about nothing yet.
    pub fn of(who: &'a Identity) -> Self {
        Self { uid: &who.uid, extra: &who.extra, ..Self::of_user(&who.user, &who.groups) }
    }

    /// As [`Self::of`], of whom no more is known.
    pub fn of_user(user: &'a str, groups: &'a [String]) -> Self {
        Self {
            user,
            uid: "",
            groups,
            extra: &NO_EXTRA,
            verb: "",
            target: ResourceOrPath::Path(""),
            version: "",
            field_selector: "",
            label_selector: "",
        }
    }

    /// The question that a request asks.
    pub fn of_request(who: &'a Identity, info: &'a RequestInfo) -> Self {
        let target = if info.is_resource() {
            ResourceOrPath::Resource {
                group: &info.group,
                resource: &info.plural,
                subresource: &info.subresource,
                namespace: &info.namespace,
                name: &info.name,
            }
        } else {
            ResourceOrPath::Path(&info.path)
        };
        let is_narrowed = matches!(info.verb, "list" | "watch" | "deletecollection");
        let selector = |name| if is_narrowed { info.query.get(name).unwrap_or_default() } else { "" };
        Self {
            verb: info.verb,
            target,
            version: if info.is_resource() { &info.version } else { "" },
            field_selector: selector("fieldSelector"),
            label_selector: selector("labelSelector"),
            ..Self::of(who)
        }
    }

    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|it| it == MASTERS)
    }

    /// `User "jane" cannot list resource "pods" in API group "" in the namespace "default"`.
    fn sentence(&self) -> String {
        let Self { user, verb, .. } = self;
        match self.target {
            ResourceOrPath::Path(path) => format!("User {user:?} cannot {verb} path {path:?}"),
            ResourceOrPath::Resource { group, resource, subresource, namespace, .. } => {
                let resource = combined(resource, subresource);
                let place = match namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
            }
        }
    }

    /// What a request that asked is answered: 500 where somebody could not be asked, as `WithAuthorization`.
    pub fn refusal(&self, denial: &Denial) -> Status {
        if denial.error.is_empty() {
            return self.forbidden(&denial.reason);
        }
        Status::internal(&denial.error)
    }

    /// The 403 for a question that was denied.
    pub fn forbidden(&self, reason: &str) -> Status {
        let mut sentence = self.sentence();
        if !reason.is_empty() {
            sentence = format!("{sentence}: {reason}");
        }
        match self.target {
            ResourceOrPath::Path(_) => {
                let mut status = Status::failure(403, "Forbidden", format!("forbidden: {sentence}"));
                status.details = Some(corten_meta::Details::default());
                status
            }
            ResourceOrPath::Resource { group, resource, name, .. } => {
                let resource = Resource {
                    group: group.to_owned().into(),
                    version: "".into(),
                    kind: "".into(),
                    plural: resource.to_owned().into(),
                    namespaced: false,
                };
                Status::forbidden(&resource, name, &sentence)
            }
        }
    }
}

/// `pods/log`, or just `pods`.
pub(crate) fn combined(resource: &str, subresource: &str) -> String {
    if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") }
}
