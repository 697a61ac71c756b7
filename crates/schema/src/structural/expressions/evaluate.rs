//! Asks the rules of an object, from the outside to the inside, within one budget for all of them.

use corten_cel::{
    Activation, ErrorKind, Fuel, FuelLimit, MESSAGE_BYTES_MAX, PER_CALL_LIMIT, Program, RUNTIME_BUDGET, is_spent,
};
use corten_meta::Violation;
use serde_json::Value;

use super::{Expression, Expressions, timing::Part};
use crate::structural::{OUT_OF_BUDGET, Structural, correlate::Before};

impl Structural {
    /// Every rule in CEL that `value` breaks, the first ones. Asked of what [`Structural::validate`] found nothing wrong with: an
    /// expression may rely on the types that it was checked with.
    pub fn validate_expressions(&self, value: &Value, old: Option<&Value>) -> Vec<Violation> {
        let _limit = FuelLimit::of(Fuel::OBJECT);
        let mut asked = Evaluation { found: Vec::new(), path: String::new(), budget: RUNTIME_BUDGET, is_over: false };
        asked.part(self, value, old);
        if is_spent() && !asked.is_over {
            // What stood before was not found for all that is asked about a change.
            let kind = self.types.first().map_or("", |it| it.as_str());
            asked.found.push(Violation::invalid("<nil>", format_args!("{kind:?}"), OUT_OF_BUDGET));
        }
        asked.found
    }

    /// As [`Self::validate_expressions`] of what is new, within a budget that it has in common with others.
    pub(in crate::structural) fn validate_expressions_within(&self, value: &Value, budget: &mut u64) -> Vec<Violation> {
        let mut asked = Evaluation { found: Vec::new(), path: String::new(), budget: *budget, is_over: false };
        asked.part(self, value, None);
        *budget = asked.budget;
        asked.found
    }
}

struct Evaluation {
    found: Vec<Violation>,
    path: String,
    budget: u64,
    /// The budget is spent.
    is_over: bool,
}

impl Evaluation {
    fn part(&mut self, schema: &Structural, value: &Value, old: Option<&Value>) {
        if !schema.has_expressions || self.is_over || self.found.len() > Violation::MOST || value.is_null() {
            return;
        }
        let _timed = Part::begun();
        if let Some(expressions) = &schema.expressions {
            expressions.rules.iter().for_each(|it| self.ask(schema, expressions, it, value, old));
        }
        match value {
            Value::Object(entries) => {
                let old = schema.correlated(old);
                for (name, value) in entries {
                    let Some(of) = schema.property(name) else { continue };
                    // `field.Path` of apimachinery: a declared property is a child, any other a key.
                    let step = match schema.properties.contains_key(name) {
                        false => format!("[{name}]"),
                        true if self.path.is_empty() => name.clone(),
                        true => format!(".{name}"),
                    };
                    self.within(&step, |it| it.part(of, value, old.and_then(|it| it.get(name))));
                }
            }
            Value::Array(items) => {
                let Some(of) = &schema.items else { return };
                let before = Before::of(schema, old);
                for (at, item) in items.iter().enumerate() {
                    self.within(&format!("[{at}]"), |it| it.part(of, item, before.find(schema, item)));
                }
            }
            _ => {}
        }
    }

    fn within(&mut self, step: &str, ask: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(step);
        ask(self);
        self.path.truncate(length);
    }

    fn ask(&mut self, schema: &Structural, of: &Expressions, rule: &Expression, value: &Value, old: Option<&Value>) {
        if self.is_over || rule.is_transition && old.is_none() && !rule.is_old_optional {
            return;
        }
        let type_name = schema.types.first().map_or("", |it| it.as_str());
        let program = match &rule.program {
            Ok(program) => program,
            Err(error) => {
                let message = format!("rule compile error: {error}");
                return self.found.push(Violation::invalid(&*self.path, format_args!("{type_name:?}"), &message));
            }
        };
        let activation = of.activation(rule, value, old);
        let outcome = program.evaluate(&activation, PER_CALL_LIMIT.min(self.budget));
        self.spend(outcome.cost);
        let refusal = match outcome.result {
            Ok(corten_cel::Value::Bool(true)) => None,
            Ok(_) => {
                let message = self.message(rule, &activation);
                Some(rule.violation(&self.path, type_name, &message))
            }
            Err(error) => {
                let message = match error.kind {
                    ErrorKind::NoSuchOverload => format!(
                        "'{error}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                        rule.message
                    ),
                    ErrorKind::Cost => {
                        self.is_over = true;
                        format!(
                            "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                            rule.message
                        )
                    }
                    _ => format!("{error} evaluating rule: {}", rule.message),
                };
                Some(Violation::invalid(&*self.path, format_args!("{type_name:?}"), &message))
            }
        };
        // What has not changed may be as wrong as it was (KEP-4008); a rule about a change is asked of it all the same.
        let is_forgiven = |_: &Violation| !rule.is_transition && old == Some(value);
        self.found.extend(refusal.filter(|it| !is_forgiven(it)));
        if is_spent() || self.budget == 0 && !self.is_over {
            self.is_over = true;
            self.found.push(Violation::invalid(&*self.path, format_args!("{type_name:?}"), OUT_OF_BUDGET));
        }
    }

    fn spend(&mut self, cost: u64) {
        self.budget = self.budget.saturating_sub(cost);
    }

    /// A message that an expression makes is one line of text; else the one that is written down counts.
    fn message<'a>(&mut self, rule: &'a Expression, activation: &Activation<'a>) -> String {
        rule.message_program.as_ref().and_then(|it| self.made(it, activation)).unwrap_or_else(|| rule.message.clone())
    }

    fn made<'a>(&mut self, program: &'a Program, activation: &Activation<'a>) -> Option<String> {
        let outcome = program.evaluate(activation, PER_CALL_LIMIT.min(self.budget));
        self.spend(outcome.cost);
        let Ok(corten_cel::Value::String(text)) = outcome.result else { return None };
        let text = text.trim();
        let is_fit = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
        is_fit.then(|| text.to_owned())
    }
}

impl Expressions {
    fn activation<'a>(&'a self, rule: &Expression, value: &'a Value, old: Option<&'a Value>) -> Activation<'a> {
        let declared = |it| corten_cel::Value::declared(it, &self.declared);
        let activation = Activation::new().with("self", declared(value));
        match old {
            Some(old) if rule.is_old_optional => activation.with("oldSelf", corten_cel::Value::some(declared(old))),
            None if rule.is_old_optional => activation.with("oldSelf", corten_cel::Value::NONE),
            Some(old) => activation.with("oldSelf", declared(old)),
            None => activation,
        }
    }
}
