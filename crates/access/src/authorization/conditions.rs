//! `matchConditions`: which questions a webhook is asked, in CEL over the review it would be sent.

use std::{collections::BTreeSet, sync::LazyLock};

use corten_cel::{
    Activation, DeclType, Env, ListKind, PER_CALL_LIMIT, Program, RUNTIME_BUDGET_MATCH_CONDITIONS, STORED_EXPRESSIONS,
    Type, Value as Cel,
};
use serde_json::Value;

use crate::{evaluation::evaluated, problems::Problems};

const CONDITIONS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Conditions(Vec<(Program, String)>);

static REQUEST: LazyLock<DeclType> = LazyLock::new(|| {
    let text = || DeclType::string(None);
    let texts = || DeclType::list(text(), None, ListKind::Atomic);
    let selector = |of: &str| {
        let requirement = DeclType::object(
            &format!("kubernetes.{of}SelectorRequirement"),
            [("key", text(), false), ("operator", text(), false), ("values", texts(), false)],
        );
        let requirements = DeclType::list(requirement, None, ListKind::Atomic);
        DeclType::object(
            &format!("kubernetes.{of}SelectorAttributes"),
            [("rawSelector", text(), false), ("requirements", requirements, false)],
        )
    };
    let resource = DeclType::object(
        "kubernetes.ResourceAttributes",
        [
            ("namespace", text(), false),
            ("verb", text(), false),
            ("group", text(), false),
            ("version", text(), false),
            ("resource", text(), false),
            ("subresource", text(), false),
            ("name", text(), false),
            ("fieldSelector", selector("Field"), false),
            ("labelSelector", selector("Label"), false),
        ],
    );
    let path = DeclType::object("kubernetes.NonResourceAttributes", [("path", text(), false), ("verb", text(), false)]);
    DeclType::object(
        "kubernetes.SubjectAccessReviewSpec",
        [
            ("resourceAttributes", resource, false),
            ("nonResourceAttributes", path, false),
            ("user", text(), false),
            ("groups", texts(), false),
            ("extra", DeclType::map(texts(), None), false),
            ("uid", text(), false),
        ],
    )
});

static ENV: LazyLock<Env> = LazyLock::new(|| Env::new(STORED_EXPRESSIONS).variable("request", REQUEST.clone()));

impl Conditions {
    pub(super) fn compile<'s>(
        path: &str,
        sources: impl ExactSizeIterator<Item = &'s str>,
        problems: &mut Problems,
    ) -> Self {
        let mut conditions = Self::default();
        if sources.len() > CONDITIONS_MAX {
            problems.too_many(path, sources.len(), CONDITIONS_MAX);
            return conditions;
        }
        let mut seen = BTreeSet::new();
        for (nth, source) in sources.enumerate() {
            let at = format!("{path}[{nth}].expression");
            if source.trim().is_empty() {
                problems.required(&at, "");
                continue;
            }
            if !seen.insert(source) {
                problems.duplicate(&at, source);
                continue;
            }
            match ENV.compile(source) {
                Ok(program) if matches!(program.result_type(), Type::Bool) => {
                    conditions.0.push((program, source.to_owned()))
                }
                Ok(_) => problems.invalid(&at, source, "must evaluate to bool"),
                Err(issues) => problems.invalid(&at, source, &format!("compilation failed: {issues}")),
            }
        }
        conditions
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Do all hold of the `spec` of a review (`v1`)? One that is false wins over those that fail.
    ///
    /// # Errors
    /// What failed. All of them together have the budget that a webhook of admission has, since whoever asks chooses what they
    /// are evaluated over.
    pub(super) fn hold(&self, spec: &Value) -> Result<bool, Vec<String>> {
        evaluated(|| self.evaluate(spec))
    }

    fn evaluate(&self, spec: &Value) -> Result<bool, Vec<String>> {
        let activation = Activation::new().with("request", Cel::declared(spec, &REQUEST));
        let (mut budget, mut errors) = (RUNTIME_BUDGET_MATCH_CONDITIONS, Vec::new());
        for (program, source) in &self.0 {
            let outcome = program.evaluate(&activation, PER_CALL_LIMIT.min(budget));
            budget = budget.saturating_sub(outcome.cost);
            match outcome.result {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(error) => {
                    errors.push(format!("cel evaluation error: expression '{source}' resulted in error: {error}"));
                }
            }
        }
        if errors.is_empty() { Ok(true) } else { Err(errors) }
    }
}
