//! What both kinds of policies have: which requests they are about, conditions, variables.

use corten_cel::{Activation, Env, Program, STORED_EXPRESSIONS, Type};
use corten_validation::{
    admission_expressions::{Declares, compile, env, with_variables},
    read::{items, text},
};
use serde_json::Value;

use super::binding::ParamKind;
use crate::matching::{Bindings, Conditions, Criteria, Uses, Verdict};

#[derive(Debug)]
pub struct Policy {
    pub name: String,
    /// What it was read of, beside its name: its `spec`.
    source: Value,
    pub criteria: Criteria,
    pub param_kind: Option<ParamKind>,
    /// `failurePolicy: Ignore`.
    pub ignores_errors: bool,
    pub conditions: Conditions,
    /// By their names; each may name those before it.
    pub(super) variables: Vec<(String, Program)>,
    /// What of the request its expressions name.
    pub uses: Uses,
    /// An expression looks at who owns which fields.
    pub names_owners: bool,
}

/// What expressions of a policy are compiled in.
pub(super) struct Compiler {
    pub(super) all: Env,
    /// Of `messageExpression`, which may not ask the authorizer.
    pub(super) messages: Env,
    pub(super) uses: Uses,
}

impl Compiler {
    pub(super) fn compile(&mut self, expression: &str, returns: &[Type]) -> Result<Program, String> {
        let program = compile(&self.all, expression, returns)?;
        self.uses = self.uses.and(Uses::of(&program));
        Ok(program)
    }

    /// What makes a message, where it can.
    pub(super) fn message(&mut self, expression: &str) -> Option<Program> {
        let program = compile(&self.messages, expression, &[Type::String]).ok()?;
        self.uses = self.uses.and(Uses::of(&program));
        Some(program)
    }
}

impl Policy {
    pub(super) fn read(policy: &Value, patches: bool) -> (Self, Compiler) {
        let spec = &policy["spec"];
        let has_params = spec["paramKind"].is_object();
        let declares = Declares { params: has_params, authorizer: true, patches };
        let all = env(STORED_EXPRESSIONS, declares);
        let messages = env(STORED_EXPRESSIONS, Declares { authorizer: false, ..declares });
        let conditions = Conditions::read(spec, has_params);
        let mut compiler = Compiler { uses: conditions.uses(), all, messages };
        let mut variables = Vec::new();
        let mut types = Vec::new();
        for variable in items(spec, "/variables") {
            // One that does not compile is no variable: whoever names it does not compile either.
            if let Ok(program) = compiler.compile(text(variable, "/expression"), &[]) {
                types.push((text(variable, "/name").to_owned(), program.result_type().clone()));
                variables.push((text(variable, "/name").to_owned(), program));
            }
            compiler.all = with_variables(compiler.all, &types);
        }
        if !items(spec, "/variables").is_empty() {
            compiler.messages = with_variables(compiler.messages, &types);
        }
        let read = Self {
            name: text(policy, "/metadata/name").to_owned(),
            source: spec.clone(),
            criteria: Criteria::of_policy(&spec["matchConstraints"]),
            param_kind: ParamKind::of(policy),
            ignores_errors: spec["failurePolicy"] == "Ignore",
            conditions,
            variables,
            uses: Uses::default(),
            names_owners: spec.to_string().contains("managedFields"),
        };
        (read, compiler)
    }

    /// Would it be the same if it were read of this object?
    pub fn is_read_of(&self, policy: &Value) -> bool {
        self.name == text(policy, "/metadata/name") && self.source == policy["spec"]
    }

    /// What its expressions see; each variable is evaluated when it is first named.
    /// Is it about the request, as far as its conditions say?
    pub fn matches(&self, bindings: &Bindings<'_>) -> Verdict {
        self.conditions.evaluate(&self.activation(bindings))
    }

    pub(super) fn activation<'a>(&'a self, bindings: &Bindings<'a>) -> Activation<'a> {
        bindings.activation().composed("variables", &self.variables)
    }
}
