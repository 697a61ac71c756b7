//! Nobody may grant rights they do not have: checked whenever a role or a binding is written.
//!
//! Two verbs lift the check: `escalate` on the role itself, `bind` on the role that a binding refers to.

use corten_api::resources::{CLUSTER_ROLES, ROLES};
use corten_meta::Status;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Attributes, Target,
    rbac::{Binding, EVERYTHING, Index},
    rule::{PolicyRule, missing, quoted},
};
use crate::{
    admission::{self, Admission, Operation},
    request::{BoxFuture, Identity},
};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) struct Escalation;

impl Admission for Escalation {
    fn name(&self) -> &'static str {
        "RBACEscalation"
    }

    fn validate<'a>(
        &'a self,
        request: &'a admission::Attributes<'a>,
        object: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            if request.kind.resource.group != GROUP || !writes {
                return Ok(());
            }
            let server = &request.ctx.server;
            let who = request.ctx.who();
            let compiled = server.authorizer().compiled(server.caches());
            check(&compiled.index, &who, request, object)
        })
    }
}

fn check(index: &Index, who: &Identity, request: &admission::Attributes<'_>, object: &Value) -> Result<(), Status> {
    let writer = Writer { index, who, namespace: request.namespace };
    let name = object["metadata"]["name"].as_str().unwrap_or(request.name);
    let refused = |reason: String| Status::forbidden(&request.kind.resource, name, &reason);
    let same = |field: &str| request.old.is_some_and(|it| it[field] == object[field]);
    match &*request.kind.resource.plural {
        plural @ ("roles" | "clusterroles") => {
            if same("rules") && same("aggregationRule") || writer.may("escalate", plural, request.name) {
                return Ok(());
            }
            let is_aggregated = !object["aggregationRule"].is_null();
            if is_aggregated && !same("aggregationRule") && !writer.lacks(&*EVERYTHING).is_empty() {
                return Err(refused("must have cluster-admin privileges to use the aggregationRule".into()));
            }
            writer.confirm(&decoded::<Vec<PolicyRule>>(&object["rules"]).unwrap_or_default()).map_err(refused)
        }
        "rolebindings" | "clusterrolebindings" => {
            if same("roleRef") && same("subjects") {
                return Ok(());
            }
            let Some(Binding { role_ref, .. }) = decoded(object) else { return Ok(()) };
            let role = if role_ref.kind == "Role" { &ROLES } else { &CLUSTER_ROLES };
            if writer.may("bind", &role.plural, &role_ref.name) {
                return Ok(());
            }
            let rules = index.role(&role_ref, request.namespace);
            let rules = rules.ok_or_else(|| Status::not_found(role, &role_ref.name))?;
            writer.confirm(rules).map_err(refused)
        }
        _ => Ok(()),
    }
}

fn decoded<T: DeserializeOwned>(value: &Value) -> Option<T> {
    serde_json::from_value(value.clone()).ok()
}

/// Whoever writes the role or binding, and where.
struct Writer<'a> {
    index: &'a Index,
    who: &'a Identity,
    namespace: &'a str,
}

impl Writer<'_> {
    fn may(&self, verb: &str, plural: &str, name: &str) -> bool {
        let target =
            Target::Resource { group: GROUP, resource: plural, subresource: "", namespace: self.namespace, name };
        let question = Attributes { verb, target, ..Attributes::of(self.who) };
        self.index.decide(&question).is_allowed()
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
