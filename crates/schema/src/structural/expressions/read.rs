//! Compiles the rules of a part of a schema.

use std::sync::Arc;

use corten_cel::{DeclType, Env, Program, STORED_EXPRESSIONS};
use corten_meta::Rule;
use serde_json::Value;

use super::{Expression, Expressions, timing::Part};

impl Expressions {
    /// The rules of a schema; `None` where it has none, or where expressions see nothing of its values.
    pub(in crate::structural) fn read(schema: &Value, is_root: bool) -> Option<Box<Self>> {
        let rules = schema["x-kubernetes-validations"].as_array().filter(|it| !it.is_empty())?;
        let _timed = Part::begun();
        let embedded_resource = schema["x-kubernetes-embedded-resource"] == true;
        let declared = Arc::new(DeclType::from_schema(schema, is_root || embedded_resource)?);
        let rules = rules.iter().map(|it| expression(it, &declared)).collect();
        Some(Box::new(Self { declared, rules }))
    }
}

fn expression(rule: &Value, declared: &DeclType) -> Expression {
    let text = |field: &str| rule[field].as_str().unwrap_or_default().trim();
    let is_old_optional = rule["optionalOldSelf"] == true;
    let old = if is_old_optional { DeclType::optional(declared.clone()) } else { declared.clone() };
    let env = Env::new(STORED_EXPRESSIONS).with_patterns_unread();
    let env = env.variable("self", declared.clone()).variable("oldSelf", old);
    let program = env.compile(text("rule")).map_err(|it| it.to_string());
    let message = match text("message") {
        "" => format!("failed rule: {}", text("rule")),
        message => message.to_owned(),
    };
    let makes_message = Some(text("messageExpression")).filter(|it| !it.is_empty());
    Expression {
        is_transition: program.as_ref().is_ok_and(|it: &Program| it.uses("oldSelf")),
        program,
        message,
        message_program: makes_message.and_then(|it| env.compile(it).ok()),
        reason: reason(text("reason")),
        field: text("fieldPath").to_owned(),
        is_old_optional,
    }
}

fn reason(name: &str) -> Rule {
    match name {
        "FieldValueRequired" => Rule::Required,
        "FieldValueForbidden" => Rule::Forbidden,
        "FieldValueDuplicate" => Rule::Duplicate,
        _ => Rule::Invalid,
    }
}
