//! `serviceaccounts/NAME/token`: a token for the account, for an audience, a time, and as long as what it is bound to lives.

use corten_access::tokens::{self, issue::TokenSpec};
use corten_cacher::{answer, body::Response};
use corten_meta::{Resource, Status, Violation};
use http::StatusCode;
use serde_json::{Value, json};

use super::{body, request_scope::RequestScope, write_request::WriteRequest};
use crate::context::Context;

const KIND: &str = "TokenRequest";
const API_VERSION: &str = "authentication.k8s.io/v1";
const SCHEMA: &str = "io.k8s.api.authentication.v1.TokenRequest";
const SECONDS: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

pub(crate) async fn request(ctx: &mut Context, target: &RequestScope) -> Result<Response, Status> {
    let mut request = read(ctx).await?;
    let account = target.current(ctx)?;
    default(&mut request);
    let asked = WriteRequest::create(ctx, target);
    asked.admit(&mut request).await?;
    // As upstream's `TokenREST.Create`: it looks at what admission has made of the request.
    shaped(&mut request);
    default(&mut request);
    let violations = violations(&request, target);
    if !violations.is_empty() {
        let resource = Resource::namespaced("authentication.k8s.io", "v1", KIND, "tokenrequests");
        return Err(Status::invalid(&resource, &target.name, &violations));
    }
    let metadata = super::metadata::of(&mut request);
    metadata.insert("name".into(), json!(target.name));
    metadata.insert("namespace".into(), json!(target.namespace));
    metadata.insert("creationTimestamp".into(), json!(ctx.state.now().to_string()));
    asked.validate(&request).await?;

    let spec = &request["spec"];
    let bound = match &spec["boundObjectRef"] {
        Value::Null => None,
        reference => Some(tokens::issue::bound(ctx.state.caches(), &target.namespace, &target.name, reference)?),
    };
    let wanted = TokenSpec {
        namespace: &target.namespace,
        account: &target.name,
        account_uid: account.uid(),
        audiences: spec["audiences"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(Into::into)
            .collect(),
        seconds: spec["expirationSeconds"].as_i64().unwrap_or(SECONDS),
        bound,
    };
    if ctx.dry_run() {
        request["status"] = json!({ "token": "", "expirationTimestamp": null });
        return Ok(answer::json(StatusCode::CREATED, &request));
    }
    let state = &ctx.state;
    let issued = tokens::issue::issue(&state.config().pki.token_keys().signing, state.now(), state.new_uid(), wanted)?;
    let credential = format!("JTI={}", issued.id);
    ctx.audit_annotations.insert("authentication.kubernetes.io/issued-credential-id".into(), credential);
    request["status"] = tokens::issue::status(&issued);
    Ok(answer::json(StatusCode::CREATED, &request))
}

/// The body, of the right kind and with the right types.
async fn read(ctx: &mut Context) -> Result<Value, Status> {
    let mut request = body::part(ctx, KIND, &[API_VERSION], SCHEMA).await?;
    shaped(&mut request);
    Ok(request)
}

fn shaped(request: &mut Value) {
    if !request["spec"].is_object() {
        request["spec"] = json!({});
    }
}

fn default(request: &mut Value) {
    let spec = &mut request["spec"];
    if spec["expirationSeconds"].is_null() {
        spec["expirationSeconds"] = json!(SECONDS);
    }
    if spec["audiences"].as_array().is_none_or(Vec::is_empty) {
        spec["audiences"] = json!([tokens::ISSUER]);
    }
    // An unset field of the answer is there, and null.
    if spec.get("boundObjectRef").is_none() {
        spec["boundObjectRef"] = Value::Null;
    }
}

fn violations(request: &Value, target: &RequestScope) -> Vec<Violation> {
    let mut found = Vec::new();
    for (field, expected) in [("name", &target.name), ("namespace", &target.namespace)] {
        let given = request["metadata"][field].as_str().unwrap_or_default();
        if !given.is_empty() && given != expected {
            let detail = format!("must match the service account {field} if specified");
            found.push(Violation::invalid(format!("metadata.{field}"), format!("{given:?}"), &detail));
        }
    }
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(SECONDS);
    let mut refuse = |detail| found.push(Violation::invalid("spec.expirationSeconds", seconds, detail));
    if seconds < SECONDS_MIN {
        refuse("may not specify a duration less than 10 minutes");
    }
    if seconds > SECONDS_MAX {
        refuse("may not specify a duration larger than 2^32 seconds");
    }
    found
}
