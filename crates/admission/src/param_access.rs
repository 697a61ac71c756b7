//! Whoever gives an admission policy its parameters must be able to read them: the policy shows them to whom it refuses.
//!
//! The rules of `authorize` in upstream's registries of policies and bindings (`authz.go` of each). There they are the last
//! of validation, so this comes before all plugins that validate.

use corten_access::{Attributes as Question, Decision, Identity, ResourceOrPath};
use corten_api::resources::{
    MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS, VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
};
use corten_cacher::body::BoxFuture;
use corten_meta::{Resource, Status, Violation};
use corten_policies::admission_policy::{Binding, ParamKind};
use serde_json::Value;

use crate::plugin::{Admission, Attributes, Operation};

pub(crate) struct ParamAccess;

impl Admission for ParamAccess {
    fn name(&self) -> &'static str {
        "ParamAccess"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            // As in `EscalationAllowed`: these may do everything, whatever the roles say.
            if !writes || request.subresource.is_some() || Question::of(request.who).is_master() {
                return Ok(());
            }
            let resource = &request.kind.resource;
            let (field, refusal) = if let Some(policies) = policies_of(resource) {
                ("spec.paramRef", of_binding(request, &policies, object).await)
            } else if [VALIDATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICIES].contains(resource) {
                ("spec.paramKind", of_policy(request, object).await)
            } else {
                return Ok(());
            };
            let Some(refusal) = refusal else { return Ok(()) };
            let violations = [Violation::forbidden(field, &refusal)];
            Err(Status::invalid(resource, request.name_of(object), &violations))
        })
    }
}

/// What bindings of this resource are of.
fn policies_of(bindings: &Resource) -> Option<Resource> {
    if *bindings == VALIDATING_ADMISSION_POLICY_BINDINGS {
        Some(VALIDATING_ADMISSION_POLICIES)
    } else if *bindings == MUTATING_ADMISSION_POLICY_BINDINGS {
        Some(MUTATING_ADMISSION_POLICIES)
    } else {
        None
    }
}

/// Why the policy may not be written: a new kind of parameters asks for the right to read all of them.
async fn of_policy(request: &Attributes<'_>, policy: &Value) -> Option<String> {
    let named = &policy["spec"]["paramKind"];
    if request.old.is_some_and(|old| old["spec"]["paramKind"] == *named) {
        return None;
    }
    let kind = ParamKind::of(policy)?;
    let who = shown(request.who);
    let refusal = || {
        let ParamKind { api_version, kind } = &kind;
        format!(
            "user {who} must have \"get\" permission on all objects of the referenced paramKind (kind={kind}, apiVersion={api_version})"
        )
    };
    let resource = ParamResource::of(request, Some(&kind));
    resource.lacks(request, "get", "*", "*").await.map(|error| error.unwrap_or_else(refusal))
}

/// Why the binding may not be written: its parameters must be such as its author may read.
async fn of_binding(request: &Attributes<'_>, policies: &Resource, binding: &Value) -> Option<String> {
    // Upstream compares pointers, which are never the same, and asks whatever has changed. What changes metadata alone binds
    // nothing anew, and a finalizer must be able to go.
    if request.old.is_some_and(|old| old["spec"] == binding["spec"]) {
        return None;
    }
    let Binding { policy, param_ref, .. } = Binding::read(binding);
    let reference = param_ref?;
    let policy = request.cluster.cache_of(policies).get("", &policy);
    let kind = policy.and_then(|it| ParamKind::of(&it.parse()));
    let selects = reference.name.is_empty() && *policies == MUTATING_ADMISSION_POLICIES;
    let verb = if selects { "list" } else { "get" };
    let who = shown(request.who);
    let refusal = || format!("user {who} does not have {verb:?} permission on the object referenced by paramRef");
    let resource = ParamResource::of(request, kind.as_ref());
    let lacking = resource.lacks(request, verb, &reference.namespace, &reference.name).await;
    lacking.map(|error| error.unwrap_or_else(refusal))
}

/// What the right is asked for; `*` is what is not known.
struct ParamResource {
    group: String,
    version: String,
    plural: String,
}

impl ParamResource {
    /// Where nobody knows the kind, somebody may come to define it later as anything.
    fn of(request: &Attributes<'_>, kind: Option<&ParamKind>) -> Self {
        let any = || "*".to_owned();
        let Some(kind) = kind else { return Self { group: any(), version: any(), plural: any() } };
        let row = request.kinds.by_kind(&kind.api_version, &kind.kind);
        let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
        let plural = row.map_or_else(any, |it| it.resource.plural.to_string());
        Self { group: group.to_owned(), version: version.to_owned(), plural }
    }

    /// `None` where the author of the request may; else why nobody could say so, where that is why.
    async fn lacks(&self, request: &Attributes<'_>, verb: &str, namespace: &str, name: &str) -> Option<Option<String>> {
        let target =
            ResourceOrPath::Resource { group: &self.group, resource: &self.plural, subresource: "", namespace, name };
        let question = Question { verb, target, version: &self.version, ..Question::of(request.who) };
        match request.cluster.access.decide(&question).await {
            Decision::Allowed(_) => None,
            Decision::Denied(denial) => Some(Some(denial.error).filter(|it| !it.is_empty())),
        }
    }
}

/// A user as Go prints its `user.DefaultInfo`: `&{jane uid [dev ops] map[key:[a b]]}`.
fn shown(who: &Identity) -> String {
    let extra: Vec<String> = who.extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", who.user, who.uid, who.groups.join(" "), extra.join(" "))
}
