//! One write as admission sees it.

use std::time::Instant;

use corten_admission::{
    Attributes, ConvertedObjects, Fuel, Operation, Reinvocation, RequestForm, admit, commit, evaluated, validate,
};
use corten_kinds::{Subresource, scale_form};
use corten_meta::{Status, Violation};
use corten_routes::DeleteOptions;
use corten_schema::structural::timed;
use serde_json::{Value, json};

use super::request_scope::RequestScope;
use crate::context::Context;

pub(super) struct WriteRequest<'a> {
    pub(super) ctx: &'a Context,
    pub(super) target: &'a RequestScope,
    operation: Operation,
    old: Option<&'a Value>,
    deletion: Option<&'a DeleteOptions>,
    generated_name: bool,
    converted: ConvertedObjects,
    /// What its rules, patterns and expressions may take.
    pub(super) fuel: Fuel,
}

impl<'a> WriteRequest<'a> {
    pub(super) fn create(ctx: &'a Context, target: &'a RequestScope) -> Self {
        Self {
            ctx,
            target,
            operation: Operation::Create,
            old: None,
            deletion: None,
            generated_name: false,
            converted: ConvertedObjects::default(),
            fuel: Fuel::new(Fuel::REQUEST),
        }
    }

    pub(super) fn update(ctx: &'a Context, target: &'a RequestScope, old: &'a Value) -> Self {
        Self { operation: Operation::Update, old: Some(old), ..Self::create(ctx, target) }
    }

    pub(super) fn delete(
        ctx: &'a Context,
        target: &'a RequestScope,
        old: &'a Value,
        options: &'a DeleteOptions,
    ) -> Self {
        Self { operation: Operation::Delete, old: Some(old), deletion: Some(options), ..Self::create(ctx, target) }
    }

    /// What the kind's own rules say is wrong. How long those in CEL take is measured.
    pub(super) async fn broken_rules(&self, judge: impl Fn() -> Vec<Violation>) -> Vec<Violation> {
        if !self.target.asked.schema.has_rules() {
            return evaluated(&self.fuel, judge).await;
        }
        let cel = &self.ctx.state.metrics().cel;
        let measured = || {
            let cel = cel.clone();
            timed(Instant::now, move |it| cel.evaluated(it), &judge)
        };
        evaluated(&self.fuel, measured).await
    }

    pub(super) fn connect(ctx: &'a Context, target: &'a RequestScope) -> Self {
        Self { operation: Operation::Connect, ..Self::create(ctx, target) }
    }

    /// Of an object whose name the server made.
    #[must_use]
    pub(super) fn with_generated_name(self, generated_name: bool) -> Self {
        Self { generated_name, ..self }
    }

    pub(super) fn attributes(&self) -> Attributes<'_> {
        Attributes {
            cluster: self.ctx.state.cluster(),
            who: self.ctx.asker_now(),
            notes: &self.ctx.notes,
            operation: self.operation,
            kind: &self.target.kind,
            subresource: self.target.subresource,
            namespace: &self.target.namespace,
            name: &self.target.name,
            old: self.old,
            dry_run: self.ctx.dry_run() || self.deletion.is_some_and(|it| it.dry_run),
            asked: &self.target.asked,
            kinds: self.ctx.served.kinds(),
            generated_name: self.generated_name,
            is_open: false,
            form: self,
            reinvocation: Reinvocation::default(),
            fuel: &self.fuel,
            converted: &self.converted,
            deadline: self.ctx.deadline,
        }
    }

    /// Lets every plugin change the object, and once more where others have changed what some had seen. Says whether others have.
    pub(super) async fn admit(&self, object: &mut Value) -> Result<bool, Status> {
        if self.ctx.skips_admission {
            return Ok(false);
        }
        admit(&Attributes { is_open: true, ..self.attributes() }, object).await
    }

    /// Completes the object with what the server gives its kind.
    pub(super) fn complete(&self, object: &mut Value) -> Result<(), Status> {
        commit::complete(&self.attributes(), &self.ctx.reservations, object)
    }

    /// Lets every plugin refuse the object.
    pub(super) async fn validate(&self, object: &Value) -> Result<(), Status> {
        if self.ctx.skips_admission {
            return Ok(());
        }
        validate(&self.attributes(), object).await
    }
}

impl RequestForm for WriteRequest<'_> {
    fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => DeleteOptions::KIND,
            Operation::Connect => return Value::Null,
        };
        let mut options = json!({ "kind": kind, "apiVersion": "meta.k8s.io/v1" });
        if let Some(deletion) = self.deletion {
            deletion.write(&mut options);
        }
        let query = &self.ctx.info.query;
        let names = if self.deletion.is_some() { &[][..] } else { &["fieldManager", "fieldValidation"][..] };
        for name in names {
            if let Some(value) = query.get(name) {
                options[*name] = value.into();
            }
        }
        if self.attributes().dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    fn scale(&self, object: &Value) -> Option<Value> {
        let is_scale = self.target.subresource == Some(Subresource::Scale) && !object.is_null();
        is_scale.then(|| scale_form::scale_of(&self.target.asked, object))
    }

    fn take_scale(&self, object: &mut Value, scale: &Value) {
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
        // They were set before admission: nothing is in the way.
        scale_form::set_replicas(&self.target.asked, object, replicas).unwrap_or_default();
    }
}
