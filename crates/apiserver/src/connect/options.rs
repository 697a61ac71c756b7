//! Query parameters of the API, as the kubelet names them.

use corten_kinds::Subresource;
use corten_meta::{Resource, Status, Violation};
use corten_routes::RequestInfo;
use corten_stream::Streams;
use form_urlencoded::Serializer;

use super::target_pod::TargetPod;

/// `PodLogOptions`, which upstream's messages name; there are no objects of it.
const LOG_OPTIONS: Resource = Resource::namespaced("", "v1", "PodLogOptions", "pods");

/// The query for `/containerLogs`, with its question mark where there is one.
pub(super) fn log(info: &RequestInfo) -> Result<String, Status> {
    let query = &info.query;
    let mut violations = Vec::new();
    let mut written = Serializer::new(String::new());
    for flag in ["follow", "previous", "timestamps"] {
        if query.is_set(flag) {
            written.append_pair(flag, "true");
        }
    }
    for (name, least, rule) in [
        ("sinceSeconds", 1, "must be greater than 0"),
        ("tailLines", 0, "must be greater than or equal to 0"),
        ("limitBytes", 1, "must be greater than 0"),
    ] {
        let Some(number) = query.integer(name)? else { continue };
        if number < least {
            violations.push(Violation::invalid(name, number, rule));
        }
        written.append_pair(name, &number.to_string());
    }
    if let Some(time) = query.get("sinceTime") {
        if query.get("sinceSeconds").is_some() {
            let rule = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            violations.push(Violation::forbidden(Violation::WHOLE_OBJECT, rule));
        }
        time.parse::<corten_meta::Time>().map_err(|it| Status::bad_request(format!("sinceTime: {it}")))?;
        written.append_pair("sinceTime", time);
    }
    if let Some(stream) = query.get("stream").filter(|it| *it != "All") {
        if !["Stdout", "Stderr"].contains(&stream) {
            violations.push(Violation::not_supported("stream", stream, &["All", "Stderr", "Stdout"]));
        }
        if query.get("tailLines").is_some() {
            let rule = "`tailLines` and specific `stream` are mutually exclusive for now";
            violations.push(Violation::forbidden(Violation::WHOLE_OBJECT, rule));
        }
        written.append_pair("stream", stream);
    }
    if !violations.is_empty() {
        return Err(Status::invalid(&LOG_OPTIONS, &info.name, &violations));
    }
    Ok(with_question_mark(written.finish()))
}

/// Which streams a command is to have.
pub(super) fn streams(info: &RequestInfo) -> Streams {
    let [stdin, stdout, stderr, tty] = ["stdin", "stdout", "stderr", "tty"].map(|it| info.query.is_set(it));
    Streams { stdin, stdout, stderr, tty }
}

/// The path and query of a tunnel.
pub(super) fn tunnel(info: &RequestInfo, subresource: Subresource, target: &TargetPod) -> Result<String, Status> {
    let query = &info.query;
    let TargetPod { namespace, name, .. } = target;
    let mut written = Serializer::new(String::new());
    if subresource == Subresource::PortForward {
        for ports in query.all("ports").filter(|it| !it.is_empty()) {
            written.append_pair("port", ports);
        }
        return Ok(format!("/portForward/{namespace}/{name}{}", with_question_mark(written.finish())));
    }
    let container = target.container(query.get("container"))?;
    for (ours, kubelets) in [("stdin", "input"), ("stdout", "output"), ("stderr", "error"), ("tty", "tty")] {
        if query.is_set(ours) {
            written.append_pair(kubelets, "1");
        }
    }
    for word in query.all("command") {
        written.append_pair("command", word);
    }
    let verb = if subresource == Subresource::Exec { "exec" } else { "attach" };
    Ok(format!("/{verb}/{namespace}/{name}/{container}{}", with_question_mark(written.finish())))
}

fn with_question_mark(query: String) -> String {
    if query.is_empty() { query } else { format!("?{query}") }
}
