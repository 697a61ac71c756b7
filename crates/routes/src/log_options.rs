//! `PodLogOptions`: what of a container's log is asked for, checked as by `ValidatePodLogOptions`.

use corten_meta::{Resource, Status, Violation};
use form_urlencoded::Serializer;

use crate::Query;

/// `PodLogOptions`, which upstream's messages name; there are no objects of it.
const LOG_OPTIONS: Resource = Resource::namespaced("", "v1", "PodLogOptions", "pods");

/// The query for `/containerLogs`, with its question mark where there is one.
///
/// # Errors
/// 400 where a parameter is of another type, 422 where they contradict each other.
pub fn log_query(query: &Query, pod: &str) -> Result<String, Status> {
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
        return Err(Status::invalid(&LOG_OPTIONS, pod, &violations));
    }
    let query = written.finish();
    Ok(if query.is_empty() { query } else { format!("?{query}") })
}
