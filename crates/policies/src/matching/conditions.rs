//! `matchConditions`: what must hold of a request in CEL, too. A condition that is false wins over one that fails.

use corten_cel::{
    Activation, PER_CALL_LIMIT, Program, RUNTIME_BUDGET_MATCH_CONDITIONS, STORED_EXPRESSIONS, Type, Value as Cel,
    is_spent,
};
use corten_meta::aggregate;
use corten_validation::{
    admission_expressions::{Declares, compile, env},
    read::{items, text},
};
use serde_json::Value;

use super::bindings::Uses;

/// Compiled once.
#[derive(Debug, Default)]
pub struct Conditions {
    all: Vec<Condition>,
    /// `failurePolicy: Ignore`.
    ignores_errors: bool,
}

#[derive(Debug)]
struct Condition {
    name: String,
    expression: String,
    program: Result<Program, String>,
}

/// What the conditions say of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All hold.
    Matches,
    /// This one does not hold.
    Excluded(String),
    /// Some failed, and failures are to be ignored: it does not match.
    Ignored(String),
    /// Some failed, and the request must fail with them.
    Failed(String),
}

/// What is said where expressions cost more than they may together.
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Conditions {
    /// Those of a webhook or of a policy's `spec`, which may name `params`.
    pub fn read(of: &Value, has_params: bool) -> Self {
        let env = env(STORED_EXPRESSIONS, Declares { params: has_params, authorizer: true, patches: false });
        let condition = |it: &Value| Condition {
            name: text(it, "/name").to_owned(),
            expression: text(it, "/expression").to_owned(),
            program: compile(&env, text(it, "/expression"), &[Type::Bool]),
        };
        Self {
            all: items(of, "/matchConditions").iter().map(condition).collect(),
            ignores_errors: of["failurePolicy"] == "Ignore",
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn uses(&self) -> Uses {
        self.all.iter().filter_map(|it| it.program.as_ref().ok()).map(Uses::of).fold(Uses::default(), Uses::and)
    }

    pub fn evaluate<'a>(&'a self, activation: &Activation<'a>) -> Verdict {
        let (mut errors, mut budget) = (Vec::new(), RUNTIME_BUDGET_MATCH_CONDITIONS);
        let mut results = Vec::new();
        for condition in &self.all {
            match condition.evaluate(activation, &mut budget) {
                Ok(result) => results.push(result),
                Err(message) => return self.failed(message),
            }
        }
        for (condition, result) in self.all.iter().zip(results) {
            match result {
                Ok(true) => {}
                Ok(false) => return Verdict::Excluded(condition.name.clone()),
                Err(message) => errors.push(message),
            }
        }
        aggregate(errors).map_or(Verdict::Matches, |it| self.failed(it))
    }

    fn failed(&self, message: String) -> Verdict {
        if self.ignores_errors { Verdict::Ignored(message) } else { Verdict::Failed(message) }
    }
}

impl Condition {
    /// Outside, an error that ends all conditions; inside, one of this condition.
    fn evaluate<'a>(&'a self, activation: &Activation<'a>, budget: &mut u64) -> Result<Result<bool, String>, String> {
        let program = match &self.program {
            Ok(program) => program,
            Err(error) => return Ok(Err(format!("compilation error: {error}"))),
        };
        let evaluated = evaluate(program, activation, budget, &self.expression)?;
        Ok(evaluated.map(|it| matches!(it, Cel::Bool(true))))
    }
}

/// Evaluates within a budget. Outside, an error that ends all that shares the budget; inside, one of this expression.
pub(crate) fn evaluate<'a>(
    program: &'a Program,
    activation: &Activation<'a>,
    budget: &mut u64,
    expression: &str,
) -> Result<Result<Cel<'a>, String>, String> {
    if is_spent() {
        return Err(OUT_OF_BUDGET.to_owned());
    }
    let outcome = program.evaluate(activation, PER_CALL_LIMIT);
    // What all that is asked about a request has together.
    if is_spent() {
        return Err(OUT_OF_BUDGET.to_owned());
    }
    let cost = outcome.cost.saturating_add(activation.take_composed_cost());
    *budget = budget.checked_sub(cost).ok_or_else(|| OUT_OF_BUDGET.to_owned())?;
    Ok(outcome.result.map_err(|it| format!("expression '{expression}' resulted in error: {it}")))
}
