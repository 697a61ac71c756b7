//! Nobody may grant rights they do not have: checked whenever a role or a binding is written, whatever of it changes.
//!
//! Two verbs lift the check: `escalate` on the role itself, `bind` on the role that a binding refers to. A role that is
//! summed up in others by its labels grants there, too: who lacks its rules needs `escalate` on every sum that grows.

mod aggregation;

use std::collections::BTreeSet;

use corten_access::{
    Answers, Attributes, Identity, ResourceOrPath,
    held_rules::missing,
    rbac::{Binding, EVERYTHING, Index, Role},
    rule::{PolicyRule, quoted},
};
use corten_api::resources::{CLUSTER_ROLES, ROLES};
use corten_cacher::{apart::apart, body::BoxFuture, watch_cache::Caches};
use corten_meta::Status;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::plugin::{self, Admission, Operation};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) struct Escalation;

impl Admission for Escalation {
    fn name(&self) -> &'static str {
        "RBACEscalation"
    }

    fn validate<'a>(
        &'a self,
        request: &'a plugin::Attributes<'a>,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            if request.kind.resource.group != GROUP || !writes {
                return Ok(());
            }
            // As in `IsOnlyMutatingGCFields`: what the garbage collector changes grants nobody anything.
            if request.old.is_some_and(|old| what_grants(old) == what_grants(object)) {
                return Ok(());
            }
            let cluster = request.cluster;
            let who = request.who;
            let compiled = cluster.authorizer().compiled(cluster.caches());
            let check = |answers: &Answers<'_>| {
                let writer = Writer { index: &compiled, answers, who, namespace: request.namespace };
                // How long it takes depends on what somebody wrote, and on what they hold.
                apart(|| writer.check(cluster.caches(), request, object))
            };
            cluster.access.answered(check).await
        })
    }
}

/// The object without what the server itself, or the garbage collector, writes into it.
fn what_grants(object: &Value) -> Value {
    const NOTHING: [&str; 8] = [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
    ];
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|name, value| !NOTHING.contains(&&**name) && !is_empty(value));
    }
    object
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Whoever writes the role or binding, and where.
struct Writer<'a> {
    index: &'a Index,
    /// Who may escalate or bind, everybody who decides is asked; what somebody holds, RBAC alone knows.
    answers: &'a Answers<'a>,
    who: &'a Identity,
    namespace: &'a str,
}

impl Writer<'_> {
    fn check(&self, caches: &Caches, request: &plugin::Attributes<'_>, object: &Value) -> Result<(), Status> {
        let refused = |reason: String| Status::forbidden(&request.kind.resource, request.name_of(object), &reason);
        match &*request.kind.resource.plural {
            plural @ ("roles" | "clusterroles") => {
                let rules = decoded::<Role>(object).map_err(refused)?.rules;
                let held = self.confirm(&rules).and_then(|()| self.may_gather(request.old, object));
                let Err(lacking) = held else { return Ok(()) };
                if !self.may("escalate", plural, request.name) {
                    return Err(refused(lacking));
                }
                let grown =
                    if plural == "roles" { BTreeSet::new() } else { aggregation::grown(caches, request.old, object) };
                match grown.iter().find(|it| !self.may("escalate", plural, it)) {
                    Some(sum) => Err(refused(format!("{lacking}\nby way of the aggregated role {sum:?}"))),
                    None => Ok(()),
                }
            }
            "rolebindings" | "clusterrolebindings" => {
                let Binding { role_ref, .. } = decoded(object).map_err(refused)?;
                let role = if role_ref.kind == "Role" { &ROLES } else { &CLUSTER_ROLES };
                if self.may("bind", &role.plural, &role_ref.name) {
                    return Ok(());
                }
                let rules = self.index.role(&role_ref, self.namespace);
                let rules = rules.ok_or_else(|| Status::not_found(role, &role_ref.name))?;
                self.confirm(rules).map_err(refused)
            }
            _ => Ok(()),
        }
    }

    /// A role that gathers, or gathered, can come to hold anything: only who has everything may write it.
    fn may_gather(&self, old: Option<&Value>, new: &Value) -> Result<(), String> {
        let gathers = old.is_some_and(aggregation::gathers) || aggregation::gathers(new);
        if gathers && !self.lacks(&*EVERYTHING).is_empty() {
            return Err("must have cluster-admin privileges to use the aggregationRule".into());
        }
        Ok(())
    }

    fn may(&self, verb: &str, plural: &str, name: &str) -> bool {
        let target = ResourceOrPath::Resource {
            group: GROUP,
            resource: plural,
            subresource: "",
            namespace: self.namespace,
            name,
        };
        let question = Attributes { verb, target, ..Attributes::of(self.who) };
        self.answers.decide(&question).is_allowed()
    }

    fn lacks(&self, wanted: &[PolicyRule]) -> Vec<String> {
        missing(&self.index.rules_for(&self.who.user, &self.who.groups, self.namespace), wanted)
    }

    fn confirm(&self, wanted: &[PolicyRule]) -> Result<(), String> {
        let lacking = self.lacks(wanted);
        if lacking.is_empty() {
            return Ok(());
        }
        Err(format!(
            "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            self.who.user,
            quoted(&self.who.groups),
            lacking.join("\n")
        ))
    }
}

/// What cannot be read cannot be judged, and is refused.
fn decoded<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|it| format!("cannot tell what it grants: {it}"))
}
