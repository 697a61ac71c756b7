//! Rules in CEL: `x-kubernetes-validations` (KEP-2876; apiextensions-apiserver, `pkg/apiserver/schema/cel`).

pub(super) mod check;
mod evaluate;
mod read;
pub(super) mod timing;

use std::sync::Arc;

use corten_cel::{DeclType, Program};
use corten_meta::{Rule, Violation};

use super::Structural;

/// The rules of one part of a schema, each compiled once.
#[derive(Debug)]
pub(super) struct Expressions {
    /// What `self` is.
    declared: Arc<DeclType>,
    rules: Vec<Expression>,
}

#[derive(Debug)]
struct Expression {
    /// What is wrong with it where it does not compile: then it refuses everything.
    program: Result<Program, String>,
    /// What is said where it does not hold.
    message: String,
    /// An expression that makes the message, where it can.
    message_program: Option<Program>,
    reason: Rule,
    /// Below the part, where the rule is about one field of it.
    field: String,
    /// It speaks of `oldSelf`: without an old value it is not asked, unless it says that there may be none.
    is_transition: bool,
    is_old_optional: bool,
}

impl Structural {
    /// Has it rules, at any depth?
    pub fn has_rules(&self) -> bool {
        self.has_expressions
    }
}

impl Expression {
    fn violation(&self, path: &str, type_name: &str, message: &str) -> Violation {
        let path = format!("{path}{}", self.field);
        let path = path.strip_prefix('.').unwrap_or(&path);
        match self.reason {
            Rule::Required => Violation::required(path, message),
            Rule::Forbidden => Violation::forbidden(path, message),
            Rule::Duplicate => Violation::duplicate(path, format_args!("{type_name:?}")),
            _ => Violation::invalid(path, format_args!("{type_name:?}"), message),
        }
    }
}
