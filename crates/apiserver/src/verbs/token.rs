//! `serviceaccounts/NAME/token`: a token for the account, for an audience, a time, and as long as what it is bound to lives.

use corten_access::tokens::{self, issue::TokenSpec, request};
use corten_cacher::{answer, body::Response};
use corten_meta::{Resource, Status};
use http::StatusCode;
use serde_json::{Value, json};

use super::{body, request_scope::RequestScope, write_request::WriteRequest};
use crate::context::Context;

const KIND: &str = "TokenRequest";
const API_VERSION: &str = "authentication.k8s.io/v1";
const SCHEMA: &str = "io.k8s.api.authentication.v1.TokenRequest";

pub(crate) async fn request(ctx: &mut Context, target: &RequestScope) -> Result<Response, Status> {
    let mut token_request = body::part(ctx, KIND, &[API_VERSION], SCHEMA).await?;
    let account = target.current(ctx)?;
    request::default(&mut token_request);
    let asked = WriteRequest::create(ctx, target);
    asked.admit(&mut token_request).await?;
    // As upstream's `TokenREST.Create`: it looks at what admission has made of the request.
    request::default(&mut token_request);
    let violations = request::violations(&token_request, &target.namespace, &target.name);
    if !violations.is_empty() {
        let resource = Resource::namespaced("authentication.k8s.io", "v1", KIND, "tokenrequests");
        return Err(Status::invalid(&resource, &target.name, &violations));
    }
    let metadata = super::metadata::of(&mut token_request);
    metadata.insert("name".into(), json!(target.name));
    metadata.insert("namespace".into(), json!(target.namespace));
    metadata.insert("creationTimestamp".into(), json!(ctx.state.now().to_string()));
    asked.validate(&token_request).await?;

    let spec = &token_request["spec"];
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
        seconds: spec["expirationSeconds"].as_i64().unwrap_or(request::SECONDS),
        bound,
    };
    if ctx.dry_run() {
        token_request["status"] = json!({ "token": "", "expirationTimestamp": null });
        return Ok(answer::json(StatusCode::CREATED, &token_request));
    }
    let state = &ctx.state;
    let issued = tokens::issue::issue(&state.config().pki.token_keys().signing, state.now(), state.new_uid(), wanted)?;
    let credential = format!("JTI={}", issued.id);
    ctx.audit_annotations.insert("authentication.kubernetes.io/issued-credential-id".into(), credential);
    token_request["status"] = tokens::issue::status(&issued);
    Ok(answer::json(StatusCode::CREATED, &token_request))
}
