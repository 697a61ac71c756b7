//! What is wrong with the rules of a definition, before any object is held to them (apiextensions'
//! `validateCustomResourceDefinitionOpenAPISchema`).

use corten_cel::{
    DeclType, Env, NEW_EXPRESSIONS, REQUEST_BYTES_MAX, STATIC_ESTIMATE_LIMIT, STATIC_ESTIMATE_LIMIT_TOTAL, Type,
};
use serde_json::Value;

/// What is found of one rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RuleCheck {
    pub problems: Vec<RuleProblem>,
    /// What each of its expressions, `rule` or `messageExpression`, costs at most in one object.
    pub costs: Vec<(&'static str, u64)>,
    /// Is it about what stood there before?
    pub uses_old_self: bool,
}

/// One thing that is wrong with a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct RuleProblem {
    /// `rule` or `messageExpression`.
    pub field: &'static str,
    pub detail: String,
    /// It is right, and would cost too much.
    pub is_cost: bool,
}

/// How often a part of a schema can occur in one object; `None` where nothing bounds it.
#[derive(Clone, Copy, Debug)]
pub struct Occurrences(Option<u64>);

impl Occurrences {
    pub const ONCE: Self = Self(Some(1));

    /// Of what a list or map of this schema holds.
    pub fn below(self, schema: &Value) -> Self {
        let bound = schema["maxItems"].as_u64().or_else(|| schema["maxProperties"].as_u64());
        Self(self.0.zip(bound).map(|(outer, inner)| outer.saturating_mul(inner)))
    }
}

/// What is wrong with one rule of a part of a schema, and what it costs at most in one object.
pub fn check_rule(schema: &Value, is_root: bool, rule: &Value, occurs: Occurrences) -> RuleCheck {
    let is_object = is_root || schema["x-kubernetes-embedded-resource"] == true;
    let Some(declared) = DeclType::from_schema(schema, is_object) else { return RuleCheck::default() };
    let text = |field: &str| rule[field].as_str().unwrap_or_default().trim();
    let old = if rule["optionalOldSelf"] == true { DeclType::optional(declared.clone()) } else { declared.clone() };
    // Where nothing bounds how often it occurs, the size of a request does.
    let n = occurs.0.unwrap_or(REQUEST_BYTES_MAX / (declared.min_bytes + 1));
    let env = Env::new(NEW_EXPRESSIONS).variable("self", declared).variable("oldSelf", old);
    let mut found = RuleCheck::default();
    for field in ["rule", "messageExpression"] {
        let text = text(field);
        if text.is_empty() {
            continue;
        }
        let problem = |detail: String, is_cost| RuleProblem { field, detail, is_cost };
        match env.check(text) {
            Err(error) => found.problems.push(problem(format!("compilation failed: {error}"), false)),
            Ok(checked) if field == "rule" && !matches!(checked.result_type(), Type::Bool) => {
                found.problems.push(problem("cel expression must evaluate to a bool".into(), false));
            }
            Ok(checked) if field != "rule" && !matches!(checked.result_type(), Type::String) => {
                found.problems.push(problem("must evaluate to a string".into(), false));
            }
            Ok(checked) => {
                let estimate = checked.estimate().max.saturating_mul(n);
                let name = if field == "rule" { "estimated rule cost" } else { "estimated messageExpression cost" };
                if estimate > STATIC_ESTIMATE_LIMIT {
                    found.problems.push(problem(too_expensive(name, estimate, STATIC_ESTIMATE_LIMIT), true));
                }
                found.costs.push((field, estimate));
                found.uses_old_self |= field == "rule" && checked.program().uses("oldSelf");
            }
        }
    }
    found
}

/// What all expressions of a version cost at most in one object, and which of them the most (`cel.TotalCost`).
#[derive(Debug, Default)]
pub struct TotalCost {
    total: u64,
    /// The most expensive one first.
    most_expensive: Vec<(String, u64)>,
}

impl TotalCost {
    /// So many are named.
    const NAMED_MAX: usize = 4;
    /// What costs less than a hundredth of what all may cost is not named.
    const NAMED_FROM: u64 = STATIC_ESTIMATE_LIMIT_TOTAL / 100;

    pub fn add(&mut self, cost: u64, path: impl FnOnce() -> String) {
        self.total = self.total.saturating_add(cost);
        let place = self.most_expensive.partition_point(|it| it.1 >= cost);
        if cost >= Self::NAMED_FROM && place < Self::NAMED_MAX {
            self.most_expensive.insert(place, (path(), cost));
            self.most_expensive.truncate(Self::NAMED_MAX);
        }
    }

    /// What is said where they cost too much together: of each path that makes it so, and of the whole schema.
    pub fn excess(&self) -> Option<Excess<'_>> {
        let name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let limit = STATIC_ESTIMATE_LIMIT_TOTAL;
        (self.total > limit).then(|| Excess {
            contributors: self.most_expensive.iter().map(|it| &*it.0).collect(),
            contributor: "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
            whole: too_expensive(name, self.total, limit),
        })
    }
}

/// More than all expressions of a version may cost.
#[derive(Debug)]
pub struct Excess<'a> {
    pub contributors: Vec<&'a str>,
    /// What is said of each of them.
    pub contributor: &'static str,
    /// What is said of the schema.
    pub whole: String,
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let factor = match cost as f64 / limit as f64 {
        factor if factor > 100.0 => "more than 100x".to_owned(),
        factor if factor < 1.5 => format!("{factor:.6}x"),
        factor => format!("{factor:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
}
