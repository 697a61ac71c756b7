//! Programs: what is left of an expression when it is to be run many times, and the running of it.

mod cost;
mod eval;
mod plan;

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use smallvec::SmallVec;

use crate::{
    declared::Type,
    env::Env,
    error::Error,
    fuel,
    syntax::ast::Expr,
    typing::checker::Types,
    value::{Map, Value},
};

/// A compiled expression. It is shared between threads, and evaluated by any of them.
#[derive(Debug)]
pub struct Program {
    root: plan::Plan,
    result: Type,
    variables: Vec<Arc<str>>,
    n_slots: usize,
    depth: u16,
}

/// What an evaluation came to, and what it cost.
#[derive(Clone, Debug)]
pub struct Outcome<'a> {
    pub result: Result<Value<'a>, Error>,
    pub cost: u64,
}

impl Program {
    pub(crate) fn new(root: &Expr, types: &Types, env: &Env) -> Self {
        let mut planner = plan::Planner::new(types, env);
        let plan = planner.plan(root);
        let plan::Planner { variables, n_slots, .. } = planner;
        Self { root: plan, result: types.of(root).clone(), variables, n_slots, depth: root.depth }
    }

    /// What it evaluates to, if it does.
    pub fn result_type(&self) -> &Type {
        &self.result
    }

    /// Does it name this variable?
    pub fn uses(&self, variable: &str) -> bool {
        self.variables.iter().any(|it| &**it == variable)
    }

    /// Evaluates it, for at most `limit` units of cost: the least of [`crate::PER_CALL_LIMIT`] and what is left of a budget.
    ///
    /// What composed expressions cost is not in the outcome's cost: see [`Activation::take_composed_cost`].
    pub fn evaluate<'a>(&'a self, activation: &Activation<'a>, limit: u64) -> Outcome<'a> {
        if fuel::is_spent() {
            return Outcome { result: Err(*Error::interrupted()), cost: 0 };
        }
        let _limit = fuel::FuelLimit::of(fuel::OF_EVALUATION);
        let (result, cost) = eval::evaluate(self, activation, limit);
        // A unit of cost takes about as long as one of fuel.
        fuel::spend(cost);
        Outcome { result: result.map_err(|it| *it), cost }
    }
}

/// Values for variables.
#[derive(Debug, Default)]
pub struct Activation<'a> {
    roots: SmallVec<[(&'a str, Value<'a>); 6]>,
    composed: Option<Composed<'a>>,
}

/// Expressions that others name, each evaluated when it is first asked for.
#[derive(Debug)]
struct Composed<'a> {
    programs: &'a [(String, Program)],
    values: RefCell<Vec<Option<Result<Value<'a>, Error>>>>,
    cost: Cell<u64>,
    depth: Cell<u16>,
}

impl<'a> Activation<'a> {
    pub fn new() -> Self {
        Self::default()
    }

    /// With a variable.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: Value<'a>) -> Self {
        self.roots.push((name, value));
        self
    }

    /// With a variable whose fields are named expressions, such as `variables` of a policy: `variables.x` evaluates `x` once.
    #[must_use]
    pub fn composed(mut self, name: &'a str, programs: &'a [(String, Program)]) -> Self {
        self.roots.push((name, Value::Map(Map::Composed)));
        self.composed = Some(Composed {
            programs,
            values: RefCell::new(vec![None; programs.len()]),
            cost: Cell::new(0),
            depth: Cell::new(0),
        });
        self
    }

    /// What composed expressions have cost since this was asked last. It belongs to the budget, not to one call's limit.
    pub fn take_composed_cost(&self) -> u64 {
        self.composed.as_ref().map_or(0, |it| it.cost.take())
    }

    fn root(&self, name: &str) -> Option<&Value<'a>> {
        self.roots.iter().find(|it| it.0 == name).map(|it| &it.1)
    }

    /// The value of a composed expression; `None` if there is none of this name.
    fn composed_value(&self, name: &str) -> Option<Result<Value<'a>, Box<Error>>> {
        let composed = self.composed.as_ref()?;
        let at = composed.programs.iter().position(|it| it.0 == name)?;
        if let Some(known) = &composed.values.borrow()[at] {
            return Some(known.clone().map_err(Box::new));
        }
        let program = &composed.programs[at].1;
        // One that asks for another runs on the same stack.
        let before = composed.depth.get();
        let depth = before.saturating_add(program.depth);
        if depth > COMPOSED_DEPTH_MAX {
            return Some(Err(Error::other(format!(
                "composited variable {name:?} fails to evaluate: nested too deeply"
            ))));
        }
        composed.depth.set(depth);
        let (result, cost) = eval::evaluate(program, self, crate::PER_CALL_LIMIT);
        composed.depth.set(before);
        composed.cost.set(composed.cost.get().saturating_add(cost));
        fuel::spend(cost);
        let result = result.map_err(|it| {
            let message = format!("composited variable {name:?} fails to evaluate: {it}");
            Error { kind: it.kind, message }
        });
        composed.values.borrow_mut()[at] = Some(result.clone());
        Some(result.map_err(Box::new))
    }
}

/// So deep expressions within expressions may be, together.
const COMPOSED_DEPTH_MAX: u16 = crate::DEPTH_MAX;
