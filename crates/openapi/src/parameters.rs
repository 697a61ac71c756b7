//! The parameters of operations: names, types, and what they are for.

use serde_json::{Value, json};

use super::schemas::{DELETE_OPTIONS, Dialect, Schemas};

/// One parameter. Those of the path are required, all others are optional queries.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) value: &'static str,
    pub(super) place: &'static str,
    /// Empty: the type of delete options says it.
    description: &'static str,
}

const fn query(name: &'static str, value: &'static str, description: &'static str) -> Parameter {
    Parameter { name, value, place: "query", description }
}

pub(super) const NAME: Parameter =
    Parameter { name: "name", value: "string", place: "path", description: "name of the object" };
pub(super) const PATH: Parameter =
    Parameter { name: "path", value: "string", place: "path", description: "the path to ask for" };
pub(super) const NAMESPACE: Parameter =
    Parameter { name: "namespace", value: "string", place: "path", description: "the namespace of the object" };
pub(super) const PRETTY: Parameter = query("pretty", "string", "If 'true', the answer is written for people to read.");

const CONTINUE: Parameter =
    query("continue", "string", "The token that came with the page before, to get the page after it.");
const DRY_RUN: Parameter =
    query("dryRun", "string", "With 'All', the request is checked and answered, and nothing is stored.");
const FIELD_SELECTOR: Parameter = query("fieldSelector", "string", "Only objects whose fields match are returned.");
const LABEL_SELECTOR: Parameter = query("labelSelector", "string", "Only objects whose labels match are returned.");
const LIMIT: Parameter =
    query("limit", "integer", "The largest number of objects in one answer; the others follow with 'continue'.");
const RESOURCE_VERSION: Parameter =
    query("resourceVersion", "string", "From which version of the collection on the answer may be.");
const RESOURCE_VERSION_MATCH: Parameter =
    query("resourceVersionMatch", "string", "How 'resourceVersion' is meant: 'Exact' or 'NotOlderThan'.");
const SEND_INITIAL_EVENTS: Parameter = query(
    "sendInitialEvents",
    "boolean",
    "A watch begins with what is there already, and a bookmark says where that ends.",
);
const TIMEOUT: Parameter = query("timeoutSeconds", "integer", "After how many seconds a watch ends.");

pub(super) const LIST: &[Parameter] = &[
    query("allowWatchBookmarks", "boolean", "A watch may carry events that only say how far it has come."),
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    TIMEOUT,
    query("watch", "boolean", "Changes are sent as they happen, instead of a list."),
];
pub(super) const WRITE: &[Parameter] = &[
    DRY_RUN,
    query("fieldManager", "string", "Who makes the change: the owner of the fields that it sets."),
    query(
        "fieldValidation",
        "string",
        "What becomes of fields that are unknown or there twice: 'Strict' refuses, 'Warn' warns, 'Ignore' drops them.",
    ),
];
pub(super) const FORCE: Parameter =
    query("force", "boolean", "Server-side apply takes fields over that others own, instead of answering a conflict.");
pub(super) const DELETE: &[Parameter] = &[
    DRY_RUN,
    query("gracePeriodSeconds", "integer", ""),
    query("orphanDependents", "boolean", ""),
    query("propagationPolicy", "string", ""),
];
pub(super) const DELETE_COLLECTION: &[Parameter] = &[
    CONTINUE,
    FIELD_SELECTOR,
    LABEL_SELECTOR,
    LIMIT,
    RESOURCE_VERSION,
    RESOURCE_VERSION_MATCH,
    SEND_INITIAL_EVENTS,
    TIMEOUT,
];
const CONTAINER: Parameter = query("container", "string", "The container that is meant, where a Pod has several.");
pub(super) const LOG: &[Parameter] = &[
    CONTAINER,
    query("follow", "boolean", "The answer goes on as the container writes."),
    query("insecureSkipTLSVerifyBackend", "boolean", "The certificate of the node is not checked."),
    query("limitBytes", "integer", "The answer ends after this many bytes."),
    query("previous", "boolean", "The log of the container that ran before this one."),
    query("sinceSeconds", "integer", "Only what was written in this many seconds before now."),
    query("tailLines", "integer", "Only this many lines at the end."),
    query("timestamps", "boolean", "Each line begins with the time at which it was written."),
];
const STREAMS: [Parameter; 4] = [
    query("stderr", "boolean", "Standard error is sent."),
    query("stdin", "boolean", "Standard input is received."),
    query("stdout", "boolean", "Standard output is sent."),
    query("tty", "boolean", "The process has a terminal."),
];
pub(super) const EXEC: &[Parameter] = &[
    query("command", "string", "The program to run, and its arguments."),
    CONTAINER,
    STREAMS[0],
    STREAMS[1],
    STREAMS[2],
    STREAMS[3],
];
pub(super) const ATTACH: &[Parameter] = &[CONTAINER, STREAMS[0], STREAMS[1], STREAMS[2], STREAMS[3]];
pub(super) const PROXY: &[Parameter] = &[query("path", "string", "The path to ask for.")];
pub(super) const PORT_FORWARD: &[Parameter] = &[query("ports", "integer", "The ports of the Pod, with commas.")];

impl Parameter {
    pub(super) fn written(&self, schemas: &Schemas, dialect: Dialect) -> Value {
        let description =
            if self.description.is_empty() { schemas.words(DELETE_OPTIONS, self.name) } else { self.description };
        let mut parameter = json!({ "description": description, "in": self.place, "name": self.name });
        if self.place == "path" {
            parameter["required"] = json!(true);
        }
        match dialect {
            Dialect::V2 => {
                parameter["type"] = json!(self.value);
                parameter["uniqueItems"] = json!(true);
            }
            Dialect::V3 => parameter["schema"] = json!({ "type": self.value, "uniqueItems": true }),
        }
        parameter
    }
}
