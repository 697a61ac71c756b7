//! Policies that may change the object, one after another, each of which sees what those before it made of it.

use corten_api::resources::MUTATING_ADMISSION_POLICIES;
use corten_cacher::body::BoxFuture;
use corten_meta::{Cause, Status};
use corten_policies::{
    admission_policy::{Binding, MutatingPolicy, ObjectType, Unevaluated},
    matching::{OUT_OF_BUDGET, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    params::{Misconfigured, Param, Params, with_parameter},
    policy_request::PolicyRequest,
};
use crate::{
    evaluation,
    patched::{self, NamedAs, Unfit},
    plugin::{Admission, Attributes, Operation},
    policy_source::{BoundPolicies, BoundPolicy, PolicyFault, PolicyTrouble},
    refusal::forbidden,
    review_request,
    versions::may_concern,
};

pub(crate) struct MutatingPolicies;

const NAME: &str = "MutatingAdmissionPolicy";

impl Admission for MutatingPolicies {
    fn name(&self) -> &'static str {
        NAME
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        let compiled = request.cluster.policies.compiled(request.cluster.caches());
        // What is not there cannot be changed, and what a tunnel is opened with is not read from an object.
        let has_object = matches!(request.operation, Operation::Create | Operation::Update);
        if !has_object || !may_concern(&compiled.mutating.index, request) {
            return Box::pin(async { Ok(()) });
        }
        Box::pin(async move {
            request.reinvocation.begin(NAME, object);
            let mut round = Round { request, errors: Vec::new() };
            round.run(&compiled.mutating, object).await?;
            round.settle(object)?;
            request.reinvocation.end(NAME, object);
            Ok(())
        })
    }
}

struct Round<'r> {
    request: &'r Attributes<'r>,
    /// What refuses the request, in order.
    errors: Vec<String>,
}

/// A policy that is about the request, bound once.
struct Invocation<'c> {
    bound: &'c BoundPolicy<MutatingPolicy>,
    binding: &'c Binding,
    params: Params,
    /// Version and kind in which the request matched.
    row: (String, String),
}

impl<'r> Round<'r> {
    async fn run(&mut self, policies: &BoundPolicies<MutatingPolicy>, object: &mut Value) -> Result<(), Status> {
        let mut invocations = Vec::new();
        let asked = PolicyRequest::of(self.request);
        for number in asked.candidates(&policies.index, object) {
            self.invocations(&asked, &policies.all[number], object, &mut invocations).await;
        }
        for invocation in invocations {
            let policy = &*invocation.bound.policy;
            let id = format!("{}/{}", policy.policy.name, invocation.binding.name);
            if !self.request.reinvocation.is_due(NAME, &id) {
                continue;
            }
            for param in &invocation.params {
                let named_as = NamedAs::of(object);
                let Some(errors) = self.invoke(&invocation, param.as_ref(), object).await? else { continue };
                let cluster = self.request.cluster;
                let moved = named_as.moved(self.request, object);
                let moves = |it| PolicyFault { trouble: PolicyTrouble::Moves, ..PolicyFault::fails(it) };
                let fault = errors.first().map(|it| PolicyFault::fails(&**it)).or_else(|| moved.map(moves));
                let fault = fault.map(|it| with_parameter(param.as_ref(), it));
                cluster.policies.note_mutating(invocation.bound, fault.as_ref(), cluster.now());
                errors.iter().for_each(|it| self.refuse(policy, Some(invocation.binding), it));
                tokio::task::consume_budget().await;
            }
            if policy.is_reinvoked {
                self.request.reinvocation.called(NAME, &id);
            }
        }
        Ok(())
    }

    /// The evaluations to make, found before any policy changes the object (`mutating.dispatcher.Dispatch`).
    async fn invocations<'c>(
        &mut self,
        asked: &PolicyRequest<'_>,
        bound: &'c BoundPolicy<MutatingPolicy>,
        object: &Value,
        found: &mut Vec<Invocation<'c>>,
    ) {
        let policy = &*bound.policy;
        let row = match asked.row(&policy.policy.criteria, object) {
            Ok(Some(row)) => (row.resource.api_version(), row.resource.kind.to_string()),
            Ok(None) => return,
            Err(error) => return self.misconfigured(policy, None, &error.to_string()),
        };
        let note = |binding: &Binding, error: Option<&str>| {
            let policy = (&policy.policy, bound.edition);
            asked.note_binding(MUTATING_ADMISSION_POLICIES, policy, binding, object, error);
        };
        for binding in &bound.bindings {
            match asked.params(&policy.policy, binding, object).await {
                Ok(Some(params)) => {
                    note(binding, None);
                    found.push(Invocation { bound, binding, params, row: row.clone() });
                }
                Ok(None) => {}
                Err(Misconfigured::Policy(message)) => {
                    let cluster = self.request.cluster;
                    let fault = PolicyFault::fails(&*message);
                    cluster.policies.note_mutating(bound, Some(&fault), cluster.now());
                    return self.misconfigured(policy, None, &message);
                }
                Err(Misconfigured::Binding { message, detail }) => {
                    note(binding, Some(&detail));
                    self.misconfigured(policy, Some(binding), &message);
                }
            }
        }
    }

    /// Mutates the object; what of that failed. `None` where the policy's conditions leave the request out.
    async fn invoke(
        &self,
        invocation: &Invocation<'_>,
        param: Option<&Param>,
        object: &mut Value,
    ) -> Result<Option<Vec<String>>, Status> {
        let (policy, mut errors) = (&*invocation.bound.policy, Vec::new());
        // To show the object to each mutation, and to take what it made, is work beside its expression.
        if !self.request.fuel.take(evaluation::weight(object).saturating_mul(policy.n_mutations() as u64)) {
            return Ok(Some(vec![OUT_OF_BUDGET.to_owned()]));
        }
        let params = param.map(|it| it.read(self.request));
        let row = self.request.kinds.row(&invocation.row.0, &invocation.row.1).unwrap_or(self.request.asked);
        let measure = |error: Option<Unevaluated>, begun: Instant| {
            let error = error.map_or("no_error", Unevaluated::as_str);
            let measures = &self.request.cluster.policies.measures;
            measures.mutated(&policy.policy.name, &invocation.binding.name, error, begun.elapsed());
        };
        for nth in 0..policy.n_mutations() {
            let mut shown = review_request::shown(self.request, row, object).await?;
            review_request::hide_what_is_given_later(self.request, &mut shown);
            let begun = Instant::now();
            let mutated = {
                let asked = PolicyRequest::of(self.request);
                let seen = asked.shown(&policy.policy, row, object).await?.with_object(&shown);
                let bindings = asked.bindings(&seen, params.as_ref());
                if nth == 0 {
                    match asked.matches(&policy.policy, &bindings).await {
                        Verdict::Matches => {}
                        Verdict::Excluded(_) => return Ok(None),
                        Verdict::Ignored(message) => {
                            let cluster = self.request.cluster;
                            let fault = with_parameter(param, PolicyFault::fails(message));
                            cluster.policies.note_mutating(invocation.bound, Some(&fault), cluster.now());
                            return Ok(None);
                        }
                        Verdict::Failed(message) => {
                            measure(Some(Unevaluated::Invalid), begun);
                            return Ok(Some(vec![message]));
                        }
                    }
                }
                let part = review_request::part_schema(self.request);
                let fields = match part {
                    Some(name) => corten_schema::find(name).map(corten_schema::Struct::Table),
                    None => row.schema.fields(),
                };
                let text = |name: &str| shown[name].as_str().unwrap_or_default();
                let target = ObjectType { api_version: text("apiVersion"), kind: text("kind"), fields };
                asked.authorizer.answered(self.request, || policy.mutate(nth, &bindings, target)).await
            };
            measure(mutated.as_ref().err().map(|it| it.error), begun);
            let taken = match mutated {
                Ok(new) => patched::take(self.request, row, object, &shown, new).await.map_err(unfit),
                Err(failure) => Err(failure.message),
            };
            match taken {
                Ok(true) => self.request.reinvocation.changed(NAME),
                Ok(false) => {}
                Err(message) => errors.push(message),
            }
        }
        Ok(Some(errors))
    }

    fn misconfigured(&mut self, policy: &MutatingPolicy, binding: Option<&Binding>, error: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.refuse(policy, binding, &format!("failed to configure {what}: {error}"));
    }

    fn refuse(&mut self, policy: &MutatingPolicy, binding: Option<&Binding>, message: &str) {
        if policy.policy.ignores_errors {
            return;
        }
        let binding = binding.map(|it| format!(" with binding '{}'", it.name)).unwrap_or_default();
        self.errors.push(format!("policy '{}'{binding} denied request: {message}", policy.policy.name));
    }

    /// The refusal, where there are errors: its message is the first of them, and all are its causes.
    fn settle(self, object: &Value) -> Result<(), Status> {
        let Some(first) = self.errors.first() else { return Ok(()) };
        let mut status = forbidden(self.request, object, "");
        status.message.clone_from(first);
        status.reason = "Invalid".to_owned();
        if let Some(details) = &mut status.details {
            details.causes = self.errors.into_iter().map(|message| Cause { message, ..Cause::default() }).collect();
        }
        Err(status)
    }
}

fn unfit(reason: Unfit) -> String {
    match reason {
        Unfit::OtherKind => "error applying patch: the object's kind or version must not be changed".to_owned(),
        Unfit::Unreadable(reason) => reason,
        Unfit::Invalid(violation) => violation.to_string(),
        Unfit::Unconverted(status) => status.message,
    }
}
