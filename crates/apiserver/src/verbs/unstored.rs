//! Objects that are made when somebody asks, in the form that was asked for.

use corten_cacher::{
    answer,
    body::Response,
    codec::{Form, partial, table},
};
use corten_kinds::Kind;
use corten_meta::Status;
use http::StatusCode;
use serde_json::{Value, json};

use crate::context::Context;

pub(super) fn object(ctx: &Context, kind: &'static Kind, object: Value) -> Result<Response, Status> {
    let body = match ctx.form()? {
        Form::Object => object,
        Form::Partial => partial::of(&object),
        Form::Table(include) => table::single(kind, &object, include, ctx.state.now(), true),
    };
    Ok(answer::json(StatusCode::OK, &body))
}

pub(super) fn list(ctx: &Context, kind: &'static Kind, metadata: &Value, items: &[Value]) -> Result<Response, Status> {
    let list = |kind: &str, version: &str| json!({ "kind": kind, "apiVersion": version, "metadata": metadata });
    let resource = &kind.resource;
    let mut body;
    match ctx.form()? {
        Form::Object => {
            body = list(&format!("{}List", resource.kind), &resource.api_version());
            body["items"] = items.into();
        }
        Form::Partial => {
            body = list("PartialObjectMetadataList", "meta.k8s.io/v1");
            body["items"] = items.iter().map(partial::of).collect();
        }
        Form::Table(include) => {
            body = list("Table", "meta.k8s.io/v1");
            body["columnDefinitions"] = table::columns(kind);
            body["rows"] = items.iter().map(|it| table::row(kind, it, include, ctx.state.now())).collect();
        }
    }
    Ok(answer::json(StatusCode::OK, &body))
}
