//! Whom the claims of a token name, by the words of a configuration.

use corten_meta::Time;
use serde_json::{Map, Value, json};

use super::{
    config::{Compilation, CompiledIssuer, CompiledRule},
    expressions::evaluated,
    keys::Signed,
};
use crate::identity::{CREDENTIAL_ID, Identity, user_info};

/// As go-oidc allows clocks to differ.
const NOT_BEFORE_LEEWAY_SECONDS: f64 = 300.0;

type Claims = Map<String, Value>;

/// Is the token of this issuer, in its time, and for one of the audiences of the configuration?
pub(super) fn check(issuer: &CompiledIssuer, token: &Signed<'_>, now: Time) -> Result<(), String> {
    let now = now.unix_millis() as f64 / 1000.0;
    let number = |name: &str| token.claims.get(name).and_then(Value::as_f64);
    let Some(ends) = number("exp") else { return Err("oidc: token has no expiry".into()) };
    if ends < now {
        return Err("oidc: verify token: oidc: token is expired".into());
    }
    // One that cannot be read is not left out: the issuer meant a bound.
    let begins = match token.claims.get("nbf").unwrap_or(&Value::Null) {
        Value::Null => None,
        it => Some(it.as_f64().ok_or("oidc: failed to unmarshal claims: nbf is no number")?),
    };
    if begins.is_some_and(|it| it > now + NOT_BEFORE_LEEWAY_SECONDS) {
        return Err("oidc: verify token: oidc: current time before the nbf (not before) time".into());
    }
    let audiences = texts_of(token.claims.get("aud").unwrap_or(&Value::Null)).unwrap_or_default();
    let wanted = &issuer.issuer.audiences;
    if !audiences.iter().any(|it| wanted.contains(it)) {
        return Err(format!("oidc: verify token: oidc: expected audience in {wanted:?} got {audiences:?}"));
    }
    Ok(())
}

/// # Errors
/// A claim is missing or of another type, or a rule does not hold.
pub(super) fn holder(issuer: &CompiledIssuer, claims: &Claims) -> Result<Identity, String> {
    let json = Value::Object(claims.clone());
    for rule in &issuer.claim_rules {
        hold(rule, claims, &json)?;
    }
    let user = username(&issuer.username, claims, &json)?;
    let groups = match &issuer.groups {
        Some(from) => groups(from, claims, &json)?,
        None => Vec::new(),
    };
    let uid = match &issuer.uid {
        Some(from) => text(from, "uid", claims, &json)?,
        None => String::new(),
    };
    let mut who = Identity { user, uid, groups, ..Identity::default() };
    for (key, program) in &issuer.extra {
        let found = evaluated(program, "claims", &json)
            .map_err(|it| format!("oidc: error evaluating extra claim expression: {it}"))?;
        let values = texts_of(&found).map_err(|it| format!("oidc: extra claim {key:?}: {it}"))?;
        if !values.is_empty() {
            who.extra.insert(key.clone(), values);
        }
    }
    if let Some(id) = claims.get("jti").and_then(Value::as_str).filter(|it| !it.is_empty()) {
        who.extra.insert(CREDENTIAL_ID.into(), vec![format!("JTI={id}")]);
    }
    let user = user_info(&who);
    let user = json!({
        "username": user["username"],
        "uid": user.get("uid").cloned().unwrap_or_else(|| json!("")),
        "groups": user.get("groups").cloned().unwrap_or_else(|| json!([])),
        "extra": user.get("extra").cloned().unwrap_or_else(|| json!({})),
    });
    for (rule, message) in &issuer.user_rules {
        let holds = evaluated(rule, "user", &user)
            .map_err(|it| format!("oidc: error evaluating user info validation rule: {it}"))?;
        if holds != true {
            return Err(format!(
                "oidc: error evaluating user info validation rule: validation expression failed: {message}"
            ));
        }
    }
    Ok(who)
}

fn hold(rule: &CompiledRule, claims: &Claims, json: &Value) -> Result<(), String> {
    match rule {
        CompiledRule::Claim { name, value } => match claims.get(name) {
            None => Err(format!("oidc: required claim {name} not present in ID token")),
            Some(Value::String(found)) if found == value => Ok(()),
            Some(Value::String(found)) => {
                Err(format!("oidc: required claim {name} value does not match. Got = {found}, want = {value}"))
            }
            Some(_) => Err(format!("oidc: parse claim {name}: it is no text")),
        },
        CompiledRule::Expression { program, message } => {
            let holds = evaluated(program, "claims", json)
                .map_err(|it| format!("oidc: error evaluating claim validation expression: {it}"))?;
            if holds == true {
                return Ok(());
            }
            Err(format!("oidc: error evaluating claim validation expression: validation expression failed: {message}"))
        }
    }
}

fn username(from: &Compilation, claims: &Claims, json: &Value) -> Result<String, String> {
    // Where an issuer says so, an address that it has not verified names nobody (`jwtAuthenticator.getUsername`).
    if matches!(from, Compilation::Claim { name, .. } if name == "email")
        && claims.get("email_verified").is_some_and(|it| *it != true)
    {
        return Err("oidc: email not verified".into());
    }
    let name = text(from, "username", claims, json)?;
    // A prefix alone names nobody, either.
    let is_nobody = match from {
        Compilation::Claim { prefix, .. } => name.len() == prefix.len(),
        Compilation::Expression(_) => name.is_empty(),
    };
    if is_nobody { Err("oidc: username claim is empty".into()) } else { Ok(name) }
}

fn text(from: &Compilation, what: &str, claims: &Claims, json: &Value) -> Result<String, String> {
    match from {
        Compilation::Claim { name, prefix } => {
            let found =
                claims.get(name).ok_or_else(|| format!("oidc: parse {what} claims {name:?}: claim not present"))?;
            let found = found.as_str().ok_or_else(|| format!("oidc: parse {what} claims {name:?}: it is no text"))?;
            Ok(format!("{prefix}{found}"))
        }
        Compilation::Expression(program) => {
            let found = evaluated(program, "claims", json)
                .map_err(|it| format!("oidc: error evaluating {what} claim expression: {it}"))?;
            let Value::String(found) = found else {
                return Err(format!("oidc: error evaluating {what} claim expression: it is no text"));
            };
            Ok(found)
        }
    }
}

fn groups(from: &Compilation, claims: &Claims, json: &Value) -> Result<Vec<String>, String> {
    match from {
        Compilation::Claim { name, prefix } => {
            let Some(found) = claims.get(name) else { return Ok(Vec::new()) };
            let found = texts_of(found).map_err(|it| format!("oidc: parse groups claim {name:?}: {it}"))?;
            Ok(found.into_iter().map(|it| format!("{prefix}{it}")).collect())
        }
        Compilation::Expression(program) => {
            let found = evaluated(program, "claims", json)
                .map_err(|it| format!("oidc: error evaluating group claim expression: {it}"))?;
            texts_of(&found).map_err(|it| format!("oidc: error evaluating group claim expression: {it}"))
        }
    }
}

/// A text, or several; of nothing, and of empty ones, none.
fn texts_of(value: &Value) -> Result<Vec<String>, String> {
    let one = |it: &Value| {
        it.as_str().map(str::to_owned).ok_or_else(|| "it is neither a text nor a list of texts".to_owned())
    };
    let all: Vec<String> = match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().map(one).collect::<Result<_, _>>()?,
        other => vec![one(other)?],
    };
    Ok(all.into_iter().filter(|it| !it.is_empty()).collect())
}
