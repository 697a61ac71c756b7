//! Whether the expressions of webhooks and policies compile, said where they are written.

use corten_cel::{Env, NEW_EXPRESSIONS, Type};
use corten_schema::Cursor;
use corten_validation::admission_expressions::{Declares, compile, env, with_variables};

/// What expressions of a policy are checked in; variables are added one by one.
pub(super) struct Checker {
    all: Env,
    messages: Env,
    variables: Vec<(String, Type)>,
}

impl Checker {
    pub(super) fn of_policy(spec: Cursor<'_>, patches: bool) -> Self {
        let declares = Declares { params: spec.at("paramKind").exists(), authorizer: true, patches };
        Self {
            all: env(NEW_EXPRESSIONS, declares),
            messages: env(NEW_EXPRESSIONS, Declares { authorizer: false, ..declares }),
            variables: Vec::new(),
        }
    }

    pub(super) fn expression(&self, expression: Cursor<'_>, returns: &[Type]) {
        check(&self.all, expression, returns);
    }

    pub(super) fn message(&self, expression: Cursor<'_>) {
        check(&self.messages, expression, &[Type::String]);
    }

    /// Those that follow may name it.
    pub(super) fn variable(&mut self, name: &str, expression: Cursor<'_>) {
        if let Some(of) = check(&self.all, expression, &[]) {
            self.variables.push((name.to_owned(), of));
            self.all = with_variables(self.all.clone(), &self.variables);
            self.messages = with_variables(self.messages.clone(), &self.variables);
        }
    }
}

/// `matchConditions`.
pub(super) fn condition(expression: Cursor<'_>, has_params: bool) {
    let env = env(NEW_EXPRESSIONS, Declares { params: has_params, authorizer: true, patches: false });
    check(&env, expression, &[Type::Bool]);
}

fn check(env: &Env, expression: Cursor<'_>, returns: &[Type]) -> Option<Type> {
    match compile(env, expression.str(), returns) {
        Ok(program) => Some(program.result_type().clone()),
        Err(error) => {
            expression.invalid(&error);
            None
        }
    }
}
