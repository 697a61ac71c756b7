//! What expressions of webhooks and admission policies may name, and what is said of one that is wrong: checked where it is
//! written, compiled in the same words where it runs (apiserver, `pkg/admission/plugin/cel`).

use std::sync::{Arc, LazyLock};

use corten_cel::{DeclType, Env, Field, ListKind, ObjectDecl, Program, STORED_EXPRESSIONS, Shape, Type};

/// Which variables there are beside `object`, `oldObject`, `request` and `namespaceObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declares {
    pub params: bool,
    pub authorizer: bool,
    /// `Object{…}` and `JSONPatch{…}` can be made.
    pub patches: bool,
}

/// The declarations for expressions of this minor version.
pub fn env(minor: u16, declares: Declares) -> Env {
    let env = Env::new(minor);
    let env = if minor == STORED_EXPRESSIONS { env.with_patterns_unread() } else { env };
    let mut env = env
        .variable("object", DeclType::DYN)
        .variable("oldObject", DeclType::DYN)
        .variable("namespaceObject", NAMESPACE.clone())
        .variable("request", REQUEST.clone());
    if declares.params {
        env = env.variable("params", DeclType::DYN);
    }
    if declares.authorizer {
        env = env.variable("authorizer", DeclType::of(Type::Opaque("kubernetes.authorization.Authorizer"))).variable(
            "authorizer.requestResource",
            DeclType::of(Type::Opaque("kubernetes.authorization.ResourceCheck")),
        );
    }
    if declares.patches { env.with_mutation() } else { env }
}

/// The declarations for whoever checks a validating policy against one type, as `buildEnvSet` of upstream's type checker has them:
/// of the authorizer it knows the variable alone.
pub fn typed_env(object: DeclType, params: Option<DeclType>) -> Env {
    let env = Env::new(STORED_EXPRESSIONS)
        .with_patterns_unread()
        .variable("object", object.clone())
        .variable("oldObject", object)
        .variable("namespaceObject", NAMESPACE.clone())
        .variable("request", REQUEST.clone())
        .variable("authorizer", DeclType::of(Type::Opaque("kubernetes.authorization.Authorizer")));
    match params {
        Some(params) => env.variable("params", params),
        None => env,
    }
}

/// With `variables`: the names of expressions and what they evaluate to.
#[must_use]
pub fn with_variables(env: Env, variables: &[(String, Type)]) -> Env {
    let fields = variables.iter().map(|(name, of)| (&**name, DeclType::of(of.clone()), true));
    env.variable("variables", object("kubernetes.variables", fields))
}

/// An expression that evaluates to one of these types; to any where none is named.
///
/// # Errors
/// In upstream's words.
pub fn compile(env: &Env, expression: &str, returns: &[Type]) -> Result<Program, String> {
    let checked = env.check(expression).map_err(|it| format!("compilation failed: {it}"))?;
    let found = checked.result_type();
    let is_named = |it: &Type| it.to_string() == found.to_string();
    if returns.is_empty() || returns.iter().any(is_named) {
        return Ok(checked.program());
    }
    let found = shown(&found);
    let returns: Vec<String> = returns.iter().map(shown).collect();
    Err(match &returns[..] {
        [one] => format!("must evaluate to {one} but got {found}"),
        several => format!("must evaluate to one of [{}] but got {found}", several.join(" ")),
    })
}

/// As Go writes a type, which is not as complaints of the compiler write it.
fn shown(of: &Type) -> String {
    match of {
        Type::Null => "null_type".to_owned(),
        other => other.to_string(),
    }
}

/// An object whose fields are named as they are: `BuildRequestType` does not escape `request.namespace`, a word that CEL reserves.
fn object<'n>(name: &str, fields: impl IntoIterator<Item = (&'n str, DeclType, bool)>) -> DeclType {
    let field = |(name, of, is_required): (&str, DeclType, bool)| {
        (name.to_owned(), Field { property: name.to_owned(), of, is_required })
    };
    let fields = fields.into_iter().map(field).collect();
    DeclType::new(Shape::Object(Arc::new(ObjectDecl { name: name.into(), fields })), 0, 2)
}

static REQUEST: LazyLock<DeclType> = LazyLock::new(|| {
    let text = || DeclType::string(None);
    let kind = |last: &'static str| {
        let name = if last == "kind" { "kubernetes.GroupVersionKind" } else { "kubernetes.GroupVersionResource" };
        object(name, [("group", text(), true), ("version", text(), true), (last, text(), true)])
    };
    let texts = || DeclType::list(text(), None, ListKind::Atomic);
    let user = object(
        "kubernetes.UserInfo",
        [
            ("username", text(), false),
            ("uid", text(), false),
            ("groups", texts(), false),
            ("extra", DeclType::map(texts(), None), false),
        ],
    );
    object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind("kind"), true),
            ("resource", kind("resource"), true),
            ("subResource", text(), false),
            ("requestKind", kind("kind"), true),
            ("requestResource", kind("resource"), true),
            ("requestSubResource", text(), false),
            ("name", text(), true),
            ("namespace", text(), false),
            ("operation", text(), true),
            ("userInfo", user, true),
            ("dryRun", DeclType::BOOL, false),
            ("options", DeclType::DYN, false),
        ],
    )
});

/// What expressions see of the object's namespace.
pub static NAMESPACE: LazyLock<DeclType> = LazyLock::new(|| {
    let text = || DeclType::string(None);
    let texts = || DeclType::list(text(), None, ListKind::Atomic);
    let condition = object(
        "kubernetes.NamespaceCondition",
        [
            ("status", text(), true),
            ("type", text(), true),
            ("lastTransitionTime", DeclType::TIMESTAMP, true),
            ("message", text(), true),
            ("reason", text(), true),
        ],
    );
    let metadata = object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text(), true),
            ("generateName", text(), true),
            ("namespace", text(), true),
            ("labels", DeclType::map(text(), None), true),
            ("annotations", DeclType::map(text(), None), true),
            // `BuildNamespaceType` declares `UID`, which no Namespace has, and not `uid`.
            ("UID", text(), true),
            ("creationTimestamp", DeclType::TIMESTAMP, true),
            ("deletionGracePeriodSeconds", DeclType::INT, true),
            ("deletionTimestamp", DeclType::TIMESTAMP, true),
            ("generation", DeclType::INT, true),
            ("resourceVersion", text(), true),
            ("finalizers", texts(), true),
        ],
    );
    let spec = object("kubernetes.NamespaceSpec", [("finalizers", texts(), true)]);
    let conditions = DeclType::list(condition, None, ListKind::Atomic);
    let status = object("kubernetes.NamespaceStatus", [("conditions", conditions, true), ("phase", text(), true)]);
    object("kubernetes.Namespace", [("metadata", metadata, true), ("spec", spec, true), ("status", status, true)])
});
