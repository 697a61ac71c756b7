//! Whether others let a connection begin: `exec`, `attach`, `portforward`, `proxy`.

use corten_kinds::Subresource;
use corten_meta::Status;
use serde_json::{Value, json};

use super::{request_scope::RequestScope, write_request::WriteRequest};
use crate::context::Context;

/// # Errors
/// As the request is to be answered where it may not.
pub(crate) async fn admit(ctx: &Context, target: &RequestScope, subresource: Subresource) -> Result<(), Status> {
    let Some(mut options) = options(ctx, target, subresource) else { return Ok(()) };
    let asked = WriteRequest::connect(ctx, target);
    asked.admit(&mut options).await?;
    asked.validate(&options).await
}

/// The query as the object that others are shown (`PodExecOptions`); `None` for what is only read.
fn options(ctx: &Context, target: &RequestScope, subresource: Subresource) -> Option<Value> {
    let kind = match subresource {
        Subresource::Exec => "PodExecOptions",
        Subresource::Attach => "PodAttachOptions",
        Subresource::PortForward => "PodPortForwardOptions",
        Subresource::Proxy => match &*target.kind.resource.plural {
            "nodes" => "NodeProxyOptions",
            "services" => "ServiceProxyOptions",
            _ => "PodProxyOptions",
        },
        _ => return None,
    };
    let query = &ctx.info.query;
    let mut options = json!({ "kind": kind, "apiVersion": "v1" });
    match subresource {
        Subresource::Proxy => {
            options["path"] = ctx.info.proxied.clone().unwrap_or_default().into();
        }
        Subresource::PortForward => {
            let ports = query.all("ports").flat_map(|it| it.split(',')).filter_map(|it| it.parse::<u16>().ok());
            options["ports"] = ports.collect();
        }
        _ => {
            for flag in ["stdin", "stdout", "stderr", "tty"] {
                if query.is_set(flag) {
                    options[flag] = true.into();
                }
            }
            if let Some(container) = query.get("container") {
                options["container"] = container.into();
            }
            if subresource == Subresource::Exec {
                options["command"] = query.all("command").collect();
            }
        }
    }
    Some(options)
}
