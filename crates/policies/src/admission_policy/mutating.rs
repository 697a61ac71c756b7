//! What a MutatingAdmissionPolicy makes of an object: configurations that are merged as server-side apply does, and JSON patches.

use corten_cel::{Program, RUNTIME_BUDGET, Type, mutation_json};
use corten_schema::{Struct, apply, patch};
use corten_validation::read::{items, text};
use serde_json::{Value, json};

use super::{
    policy::{Compiler, Policy},
    validating::Unevaluated,
};
use crate::matching::{Bindings, OUT_OF_BUDGET, evaluate};

#[derive(Debug)]
pub struct MutatingPolicy {
    pub policy: Policy,
    mutations: Vec<Mutation>,
    /// `reinvocationPolicy: IfNeeded`.
    pub is_reinvoked: bool,
}

#[derive(Debug)]
struct Mutation {
    is_configuration: bool,
    expression: String,
    program: Result<Program, String>,
}

/// Why a mutation was not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmutated {
    pub error: Unevaluated,
    pub message: String,
}

impl Unmutated {
    fn of_evaluation(message: String) -> Self {
        let error = if message == OUT_OF_BUDGET { Unevaluated::OutOfBudget } else { Unevaluated::Invalid };
        Self { error, message }
    }
}

/// What an object is that is to be changed.
#[derive(Clone, Copy)]
pub struct ObjectType<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    /// `None` where nothing describes it.
    pub fields: Option<Struct<'a>>,
}

impl MutatingPolicy {
    pub fn read(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let (mut policy, mut compiler) = Policy::read(policy, true);
        let mutations = items(spec, "/mutations").iter().map(|it| mutation(it, &mut compiler)).collect();
        policy.uses = compiler.uses;
        Self { policy, mutations, is_reinvoked: spec["reinvocationPolicy"] == "IfNeeded" }
    }

    pub fn n_mutations(&self) -> usize {
        self.mutations.len()
    }

    /// The object after one of the mutations.
    ///
    /// # Errors
    /// What is said where it cannot be made.
    pub fn mutate(&self, nth: usize, bindings: &Bindings<'_>, target: ObjectType<'_>) -> Result<Value, Unmutated> {
        let (mutation, object) = (&self.mutations[nth], bindings.object.unwrap_or(&Value::Null));
        let program = mutation
            .program
            .as_ref()
            .map_err(|it| Unmutated { error: Unevaluated::Compilation, message: format!("compilation error: {it}") })?;
        self.applied(mutation, program, object, bindings, target).map_err(Unmutated::of_evaluation)
    }

    fn applied(
        &self,
        mutation: &Mutation,
        program: &Program,
        object: &Value,
        bindings: &Bindings<'_>,
        target: ObjectType<'_>,
    ) -> Result<Value, String> {
        let activation = self.policy.activation(bindings);
        let mut budget = RUNTIME_BUDGET;
        let made = evaluate(program, &activation, &mut budget, &mutation.expression)??;
        let made = mutation_json(&made).map_err(|it| format!("type mismatch: {it}"))?;
        if mutation.is_configuration {
            return merged(object, made, target).map_err(|it| format!("error applying patch: {it}"));
        }
        patch::json(object.clone(), made.to_string().as_bytes())
            .map_err(|it| format!("error applying JSON Patch: {it}"))
    }
}

fn mutation(mutation: &Value, compiler: &mut Compiler) -> Mutation {
    let is_configuration = mutation["patchType"] == "ApplyConfiguration";
    let (place, returns) = if is_configuration {
        ("/applyConfiguration/expression", Type::Open("Object".into()))
    } else {
        ("/jsonPatch/expression", Type::list(Type::Open("JSONPatch".into())))
    };
    let expression = text(mutation, place).to_owned();
    Mutation { is_configuration, program: compiler.compile(&expression, &[returns]), expression }
}

/// As `ApplyStructuredMergeDiff`: nobody owns what a policy writes, so that it cannot say a part of what is replaced as a whole.
fn merged(object: &Value, mut configuration: Value, target: ObjectType<'_>) -> Result<Value, String> {
    let Some(fields) = target.fields else {
        return Err(format!("no schema describes {}, Kind={}", target.api_version, target.kind));
    };
    configuration["apiVersion"] = json!(target.api_version);
    configuration["kind"] = json!(target.kind);
    let misfits = apply::misfits(fields, &configuration);
    if !misfits.is_empty() {
        return Err(format!("failed to convert patch object to typed object: {}", misfits.join(", ")));
    }
    let atomics = apply::atomics(fields, &configuration);
    if !atomics.is_empty() {
        let paths = atomics.join(", ");
        return Err(format!("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {paths}"));
    }
    Ok(apply::merged(fields, object, &configuration))
}
