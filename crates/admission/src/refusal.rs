//! The 403 of a plugin, naming the object as `admission.NewForbidden` does.

use corten_meta::Status;
use serde_json::Value;

use super::Attributes;

/// `pods "web" is forbidden: REASON`. An object that is still to be named goes by its `generateName`: its name is made when
/// nobody may change it any more.
pub(super) fn forbidden(request: &Attributes<'_>, object: &Value, reason: &str) -> Status {
    let meta = &object["metadata"];
    let given = meta["name"].as_str().filter(|_| !(request.is_open && request.generated_name));
    let name = [Some(request.name), given, meta["generateName"].as_str()];
    let name = name.into_iter().flatten().find(|it| !it.is_empty()).unwrap_or("Unknown");
    Status::forbidden(&request.kind.resource, name, reason)
}
