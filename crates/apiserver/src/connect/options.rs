//! Query parameters of the API, as the kubelet names them.

use corten_kinds::Subresource;
use corten_meta::Status;
use corten_routes::RequestInfo;
use corten_stream::Streams;
use form_urlencoded::Serializer;

use super::target_pod::TargetPod;

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
