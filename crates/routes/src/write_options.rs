//! The options of a write, which its query says: `CreateOptions`, `UpdateOptions`, `PatchOptions`, `DeleteOptions`.

use corten_meta::{Resource, Status, Violation};

use crate::{DeleteOptions, Query};

/// What the options of this verb are called; `None` where it writes nothing.
fn kind(verb: &str) -> Option<&'static str> {
    match verb {
        "create" => Some("CreateOptions"),
        "update" => Some("UpdateOptions"),
        "patch" => Some("PatchOptions"),
        "delete" | "deletecollection" => Some(DeleteOptions::KIND),
        _ => None,
    }
}

/// The options of this verb are wrong.
pub fn invalid(verb: &str, violations: &[Violation]) -> Status {
    let kind = kind(verb).unwrap_or_default();
    Status::invalid(&Resource::cluster("meta.k8s.io", "v1", kind, ""), "", violations)
}

/// # Errors
/// 422 where a write has a `dryRun` that is anything but `All`: nothing, too (`ValidateDryRun`). Who is unsure must not write.
pub fn dry_run(query: &Query, verb: &str) -> Result<(), Status> {
    let other = query.all("dryRun").find(|it| *it != "All").filter(|_| kind(verb).is_some());
    other.map_or(Ok(()), |other| Err(invalid(verb, &[Violation::not_supported("dryRun", other, &["All"])])))
}
