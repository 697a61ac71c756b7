//! The 403 of a plugin, naming the object as `admission.NewForbidden` does.

use corten_meta::Status;
use serde_json::Value;

use super::Attributes;

/// `pods "web" is forbidden: REASON`. An object that is still to be named goes by its `generateName`.
pub(super) fn forbidden(request: &Attributes<'_>, object: &Value, reason: &str) -> Status {
    let meta = &object["metadata"];
    let name = [Some(request.name), meta["name"].as_str(), meta["generateName"].as_str()];
    let name = name.into_iter().flatten().find(|it| !it.is_empty()).unwrap_or("Unknown");
    Status::forbidden(&request.kind.resource, name, reason)
}
