//! The expressions of a configuration: compiled once, evaluated for each token.

use std::sync::LazyLock;

use corten_cel::{Activation, DeclType, Env, ListKind, PER_CALL_LIMIT, Program, STORED_EXPRESSIONS, Type, Value};
use serde_json::Value as Json;

use crate::problems::Problems;

/// What an expression is to come to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Result {
    Bool,
    Text,
    /// A text, or several.
    Texts,
}

static CLAIMS: LazyLock<Env> =
    LazyLock::new(|| Env::new(STORED_EXPRESSIONS).variable("claims", DeclType::map(DeclType::DYN, None)));

static USER_TYPE: LazyLock<DeclType> = LazyLock::new(|| {
    let text = || DeclType::string(None);
    let texts = || DeclType::list(text(), None, ListKind::Atomic);
    DeclType::object(
        "kubernetes.UserInfo",
        [
            ("username", text(), false),
            ("uid", text(), false),
            ("groups", texts(), false),
            ("extra", DeclType::map(texts(), None), false),
        ],
    )
});

static USER: LazyLock<Env> = LazyLock::new(|| Env::new(STORED_EXPRESSIONS).variable("user", USER_TYPE.clone()));

/// An expression over the claims of a token.
pub(super) fn of_claims(path: &str, source: &str, wanted: Result, problems: &mut Problems) -> Option<Program> {
    compiled(&CLAIMS, path, source, wanted, problems)
}

/// Does the expression read this claim by its name, `claims.x` or `claims.?x`? As `hasSelectExp`, in its tree and not in its text.
pub(super) fn selects_claim(source: &str, claim: &str) -> bool {
    CLAIMS.check(source).is_ok_and(|it| it.selects("claims", claim))
}

/// An expression over the user that the claims were mapped to.
pub(super) fn of_user(path: &str, source: &str, problems: &mut Problems) -> Option<Program> {
    compiled(&USER, path, source, Result::Bool, problems)
}

fn compiled(env: &Env, path: &str, source: &str, wanted: Result, problems: &mut Problems) -> Option<Program> {
    let program = match env.compile(source) {
        Ok(program) => program,
        Err(issues) => {
            problems.invalid(path, source, &format!("compilation failed: {issues}"));
            return None;
        }
    };
    let of = program.result_type();
    let is_text = matches!(of, Type::String | Type::Dyn);
    let is_texts = is_text || matches!(of, Type::List(item) if matches!(**item, Type::String | Type::Dyn));
    let (fits, words) = match wanted {
        Result::Bool => (matches!(of, Type::Bool | Type::Dyn), "must evaluate to bool"),
        Result::Text => (is_text, "must evaluate to string"),
        Result::Texts => (is_texts, "must evaluate to one of [string list(string)]"),
    };
    if !fits {
        problems.invalid(path, source, words);
        return None;
    }
    Some(program)
}

/// What it comes to, as JSON.
pub(super) fn evaluated(program: &Program, variable: &'static str, value: &Json) -> std::result::Result<Json, String> {
    let value = match variable {
        "user" => Value::declared(value, &USER_TYPE),
        _ => Value::from_json(value),
    };
    let activation = Activation::new().with(variable, value);
    let outcome = program.evaluate(&activation, PER_CALL_LIMIT);
    let found = outcome.result.map_err(|it| it.to_string())?;
    found.to_json().ok_or_else(|| "its result has no form in JSON".to_owned())
}
