//! Policies that may only refuse, warn, or leave a note in the audit record.

use std::{collections::BTreeMap, time::Duration};

use corten_api::resources::VALIDATING_ADMISSION_POLICIES;
use corten_cacher::body::BoxFuture;
use corten_meta::{Cause, Status};
use corten_policies::{
    admission_policy::{Action, Binding, Decision, Evaluation, Unevaluated, ValidatingPolicy},
    matching::Verdict,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    params::{Misconfigured, with_parameter},
    policy_request::PolicyRequest,
};
use crate::{
    plugin::{Admission, Attributes},
    policy_source::{BoundPolicies, BoundPolicy, PolicyFault, PolicyTrouble},
    refusal::forbidden,
    review_request,
    versions::may_concern,
};

pub(crate) struct ValidatingPolicies;

const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;

impl Admission for ValidatingPolicies {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionPolicy"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        let compiled = request.cluster.policies.compiled(request.cluster.caches());
        if !may_concern(&compiled.validating.index, request) {
            return Box::pin(async { Ok(()) });
        }
        Box::pin(async move {
            let round = Round { asked: PolicyRequest::of(request), object, refused: None, noted: false };
            round.run(&compiled.validating).await
        })
    }
}

struct Round<'r> {
    asked: PolicyRequest<'r>,
    object: &'r Value,
    /// The first refusal: what it says, and for which reason.
    refused: Option<(String, String)>,
    /// A failed validation stands in the audit record.
    noted: bool,
}

impl Round<'_> {
    async fn run(mut self, policies: &BoundPolicies<ValidatingPolicy>) -> Result<(), Status> {
        for number in self.asked.candidates(&policies.index, self.object) {
            self.ask(&policies.all[number]).await?;
            // Expressions of many policies are much work: others get their turn.
            tokio::task::consume_budget().await;
        }
        let Some((message, reason)) = self.refused else { return Ok(()) };
        let mut status = forbidden(self.asked.request, self.object, &message);
        status.code = match &*reason {
            "Unauthorized" => 401,
            "Forbidden" => 403,
            "RequestEntityTooLarge" => 413,
            _ => 422,
        };
        status.reason = if reason.is_empty() { "Invalid".to_owned() } else { reason };
        if let Some(details) = &mut status.details {
            details.causes.push(Cause { message, ..Cause::default() });
        }
        Err(status)
    }

    async fn ask(&mut self, bound: &BoundPolicy<ValidatingPolicy>) -> Result<(), Status> {
        let policy = &*bound.policy;
        let row = match self.asked.row(&policy.policy.criteria, self.object) {
            Ok(Some(row)) => row.resource.clone(),
            Ok(None) => return Ok(()),
            Err(error) => {
                self.misconfigured(policy, None, &error.to_string());
                return Ok(());
            }
        };
        let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let (mut was_asked, mut fault) = (false, None);
        for binding in &bound.bindings {
            let params = match self.asked.params(&policy.policy, binding, self.object).await {
                Ok(Some(params)) if !params.is_empty() => params,
                Ok(_) => continue,
                Err(Misconfigured::Policy(message)) => {
                    self.misconfigured(policy, None, &message);
                    (was_asked, fault) = (true, Some(PolicyFault::fails(message)));
                    break;
                }
                Err(Misconfigured::Binding { message, detail }) => {
                    self.misconfigured(policy, Some(binding), &message);
                    self.note_binding(bound, binding, Some(&detail));
                    continue;
                }
            };
            self.note_binding(bound, binding, None);
            let place = self.asked.request.kinds.row(&row.api_version(), &row.kind);
            let row = place.unwrap_or(self.asked.request.asked);
            let shown = self.asked.shown(&policy.policy, row, self.object).await?;
            let mut found = Vec::new();
            for param in &params {
                let begun = Instant::now();
                let params = param.as_ref().map(|it| it.read(self.asked.request));
                let bindings = self.asked.bindings(&shown, params.as_ref());
                let evaluation = match self.asked.matches(&policy.policy, &bindings).await {
                    Verdict::Matches => {
                        self.asked.authorizer.answered(self.asked.request, || policy.evaluate(&bindings)).await
                    }
                    Verdict::Ignored(message) => {
                        fault = fault.or_else(|| Some(with_parameter(param.as_ref(), PolicyFault::fails(message))));
                        Evaluation::default()
                    }
                    unmatched => policy.unmatched(unmatched),
                };
                found.push((param.as_ref(), evaluation, begun.elapsed()));
                // Many parameters are much work, too: others get their turn.
                tokio::task::consume_budget().await;
            }
            drop(shown);
            for (param, evaluation, took) in found {
                was_asked = true;
                fault = fault.or_else(|| Some(with_parameter(param, fault_of(&evaluation, binding)?)));
                self.take(policy, binding, evaluation, took, &mut annotations);
            }
        }
        if was_asked {
            self.note(bound, fault.as_ref());
        }
        for (key, values) in annotations {
            self.asked.request.notes.annotate(&format!("{}/{key}", policy.policy.name), values.join(", "));
        }
        Ok(())
    }

    /// What whoever asks why is told of the policy.
    fn note(&self, bound: &BoundPolicy<ValidatingPolicy>, fault: Option<&PolicyFault>) {
        let request = self.asked.request;
        let operation = review_request::operation(request.operation).as_str();
        request.cluster.policies.note_validating(bound, operation, fault, request.cluster.now());
    }

    fn note_binding(&self, bound: &BoundPolicy<ValidatingPolicy>, binding: &Binding, error: Option<&str>) {
        self.asked.note_binding(
            VALIDATING_ADMISSION_POLICIES,
            (&bound.policy.policy, bound.edition),
            binding,
            self.object,
            error,
        );
    }

    fn take(
        &mut self,
        policy: &ValidatingPolicy,
        binding: &Binding,
        evaluation: Evaluation,
        took: Duration,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        for decision in evaluation.decisions {
            let actions = if decision.is_admitted { &[][..] } else { &binding.actions };
            if decision.is_admitted {
                self.measure(policy, binding, &decision, "allow", took);
            }
            for action in actions {
                self.enforce(policy, binding, &decision, *action, took);
            }
        }
        for annotation in evaluation.annotations {
            match annotation.value {
                Ok(mut value) => {
                    let end = (0..=ANNOTATION_BYTES_MAX.min(value.len())).rev().find(|it| value.is_char_boundary(*it));
                    value.truncate(end.unwrap_or_default());
                    let values = annotations.entry(annotation.key).or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Err(message) => self.refuse(policy, Some(binding), &message, ""),
            }
        }
    }

    fn enforce(
        &mut self,
        policy: &ValidatingPolicy,
        binding: &Binding,
        decision: &Decision,
        action: Action,
        took: Duration,
    ) {
        let (name, notes) = (&policy.policy.name, self.asked.request.notes);
        match action {
            Action::Deny => {
                self.measure(policy, binding, decision, "deny", took);
                self.refuse(policy, Some(binding), &decision.message, &decision.reason);
            }
            Action::Warn => {
                self.measure(policy, binding, decision, "warn", took);
                notes.warn(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{}': {}",
                    binding.name, decision.message
                ));
            }
            Action::Audit => {
                self.measure(policy, binding, decision, "audit", took);
                let actions: Vec<&str> = binding.actions.iter().map(|it| it.as_str()).collect();
                let failure = json!([{
                    "message": decision.message, "policy": name, "binding": binding.name,
                    "expressionIndex": decision.nth, "validationActions": actions,
                }]);
                // The first value of an audit annotation stays (`audit.AddAuditAnnotation`).
                if !std::mem::replace(&mut self.noted, true) {
                    notes.annotate(FAILURE, failure.to_string());
                }
            }
        }
    }

    fn measure(&self, policy: &ValidatingPolicy, binding: &Binding, of: &Decision, action: &str, took: Duration) {
        let error = of.error.map_or("no_error", Unevaluated::as_str);
        self.asked.request.cluster.policies.measures.checked(&policy.policy.name, &binding.name, error, action, took);
    }

    fn misconfigured(&mut self, policy: &ValidatingPolicy, binding: Option<&Binding>, error: &str) {
        if !policy.policy.ignores_errors {
            let what = if binding.is_some() { "binding" } else { "policy" };
            self.refuse(policy, binding, &format!("failed to configure {what}: {error}"), "");
        }
    }

    fn refuse(&mut self, policy: &ValidatingPolicy, binding: Option<&Binding>, message: &str, reason: &str) {
        let binding = binding.map(|it| format!(" with binding '{}'", it.name)).unwrap_or_default();
        let message = format!("ValidatingAdmissionPolicy '{}'{binding} denied request: {message}", policy.policy.name);
        self.refused.get_or_insert_with(|| (message, reason.to_owned()));
    }
}

/// Of a denial the place alone: what the message says of the object is for the author of the request.
fn fault_of(evaluation: &Evaluation, binding: &Binding) -> Option<PolicyFault> {
    let denies = binding.actions.contains(&Action::Deny);
    evaluation.decisions.iter().find_map(|it| match it.error {
        Some(_) => Some(PolicyFault::fails(&*it.message)),
        None if denies && !it.is_admitted => Some(PolicyFault {
            trouble: PolicyTrouble::Denies,
            ..PolicyFault::fails(format!("spec.validations[{}]", it.nth))
        }),
        None => None,
    })
}
