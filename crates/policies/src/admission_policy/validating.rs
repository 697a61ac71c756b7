//! What a ValidatingAdmissionPolicy says of an object (upstream's `validator.Validate`).

use corten_cel::{Activation, MESSAGE_BYTES_MAX, Program, RUNTIME_BUDGET, Type, Value as Cel};
use corten_validation::read::{items, text};
use serde_json::Value;

use super::policy::{Compiler, Policy};
use crate::matching::{Bindings, OUT_OF_BUDGET, Verdict, evaluate};

#[derive(Debug)]
pub struct ValidatingPolicy {
    pub policy: Policy,
    validations: Vec<Validation>,
    annotations: Vec<AuditAnnotation>,
}

#[derive(Debug)]
struct Validation {
    expression: String,
    program: Result<Program, String>,
    /// Said where nothing makes a message.
    message: String,
    message_expression: String,
    message_program: Option<Program>,
    /// As statuses have it; empty: `Invalid`.
    reason: String,
}

#[derive(Debug)]
struct AuditAnnotation {
    key: String,
    expression: String,
    program: Result<Program, String>,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unevaluated {
    /// The expression cannot be compiled.
    Compilation,
    /// Together with those before it, it costs more than it may.
    OutOfBudget,
    /// It failed, or gave what it must not.
    Invalid,
}

impl Unevaluated {
    /// The label `error_type` of what upstream counts of policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compilation => "compile_error",
            Self::OutOfBudget => "out_of_budget",
            Self::Invalid => "invalid_error",
        }
    }
}

/// What is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Which validation; the first where all of them failed together.
    pub nth: usize,
    pub message: String,
    /// Empty where an error and no validation refuses.
    pub reason: String,
    /// Why it could not be evaluated, where that is so.
    pub error: Option<Unevaluated>,
    /// An error that is to be ignored: nothing is refused.
    pub is_admitted: bool,
}

/// An entry of the audit record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    pub key: String,
    /// Or what refuses the request instead.
    pub value: Result<String, String>,
}

/// All that one policy, bound once, says of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    pub decisions: Vec<Decision>,
    pub annotations: Vec<Annotation>,
}

impl ValidatingPolicy {
    pub fn read(policy: &Value) -> Self {
        let spec = &policy["spec"];
        let (mut policy, mut compiler) = Policy::read(policy, false);
        let validations = items(spec, "/validations").iter().map(|it| validation(it, &mut compiler)).collect();
        let annotations = items(spec, "/auditAnnotations").iter().map(|it| AuditAnnotation {
            key: text(it, "/key").to_owned(),
            expression: text(it, "/valueExpression").to_owned(),
            program: compiler.compile(text(it, "/valueExpression"), &[Type::String, Type::Null]),
        });
        let annotations = annotations.collect();
        policy.uses = compiler.uses;
        Self { policy, validations, annotations }
    }

    /// What it says where its conditions do not match.
    pub fn unmatched(&self, verdict: Verdict) -> Evaluation {
        match verdict {
            Verdict::Failed(message) => self.failed(message),
            Verdict::Matches | Verdict::Excluded(_) | Verdict::Ignored(_) => Evaluation::default(),
        }
    }

    /// What it says of a request that its conditions match.
    pub fn evaluate(&self, bindings: &Bindings<'_>) -> Evaluation {
        let activation = self.policy.activation(bindings);
        let mut budget = RUNTIME_BUDGET;
        let mut decisions = Vec::new();
        for (nth, validation) in self.validations.iter().enumerate() {
            match self.decide(nth, validation, &activation, &mut budget) {
                Ok(decision) => decisions.extend(decision),
                Err(message) => return self.failed(message),
            }
        }
        let mut budget = RUNTIME_BUDGET;
        let mut annotations = Vec::new();
        for annotation in &self.annotations {
            match self.annotate(annotation, &activation, &mut budget) {
                Ok(found) => annotations.extend(found),
                Err(message) => return self.failed(message),
            }
        }
        Evaluation { decisions, annotations }
    }

    /// All of it failed.
    fn failed(&self, message: String) -> Evaluation {
        let error = if message == OUT_OF_BUDGET { Unevaluated::OutOfBudget } else { Unevaluated::Invalid };
        Evaluation { decisions: vec![self.error(0, error, message)], annotations: Vec::new() }
    }

    fn error(&self, nth: usize, error: Unevaluated, message: String) -> Decision {
        let is_admitted = self.policy.ignores_errors;
        Decision { nth, message, reason: String::new(), error: Some(error), is_admitted }
    }

    fn decide<'a>(
        &'a self,
        nth: usize,
        validation: &'a Validation,
        activation: &Activation<'a>,
        budget: &mut u64,
    ) -> Result<Option<Decision>, String> {
        let program = match &validation.program {
            Ok(program) => program,
            Err(error) => {
                return Ok(Some(self.error(nth, Unevaluated::Compilation, format!("compilation error: {error}"))));
            }
        };
        match evaluate(program, activation, budget, &validation.expression)? {
            Err(message) => Ok(Some(self.error(nth, Unevaluated::Invalid, message))),
            Ok(Cel::Bool(true)) => Ok(None),
            Ok(_) => Ok(Some(match validation.message(activation, budget) {
                Ok(message) => {
                    let reason = validation.reason.clone();
                    Decision { nth, message, reason, error: None, is_admitted: false }
                }
                Err(error) => self.error(nth, Unevaluated::Invalid, format!("failed messageExpression: {error}")),
            })),
        }
    }

    fn annotate<'a>(
        &'a self,
        annotation: &'a AuditAnnotation,
        activation: &Activation<'a>,
        budget: &mut u64,
    ) -> Result<Option<Annotation>, String> {
        let evaluated = match &annotation.program {
            Ok(program) => evaluate(program, activation, budget, &annotation.expression)?,
            Err(error) => Err(format!("compilation error: {error}")),
        };
        let value = match evaluated {
            Ok(Cel::String(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
            Err(error) if !self.policy.ignores_errors => Err(error),
            Ok(_) | Err(_) => return Ok(None),
        };
        Ok(Some(Annotation { key: annotation.key.clone(), value }))
    }
}

fn validation(validation: &Value, compiler: &mut Compiler) -> Validation {
    let expression = |name: &str| text(validation, name).to_owned();
    let message_expression = expression("/messageExpression");
    Validation {
        expression: expression("/expression"),
        program: compiler.compile(text(validation, "/expression"), &[Type::Bool]),
        message: text(validation, "/message").trim().to_owned(),
        message_program: Some(&*message_expression).filter(|it| !it.is_empty()).and_then(|it| compiler.message(it)),
        message_expression,
        reason: match text(validation, "/reason") {
            "" => "Invalid".to_owned(),
            reason => reason.to_owned(),
        },
    }
}

impl Validation {
    /// Made by an expression where that gives one line of text; else the one that is written down.
    fn message<'a>(&'a self, activation: &Activation<'a>, budget: &mut u64) -> Result<String, String> {
        if let Some(program) = &self.message_program
            && let Ok(Cel::String(text)) = evaluate(program, activation, budget, &self.message_expression)?
        {
            let text = text.trim();
            if !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n') {
                return Ok(text.to_owned());
            }
        }
        if self.message.is_empty() {
            return Ok(format!("failed expression: {}", self.expression.trim()));
        }
        Ok(self.message.clone())
    }
}
