//! `authorization.k8s.io`: reviews that are answered, never stored.

pub(crate) mod self_subject_access_review;
pub(crate) mod subject_access_review;

use corten_schema::Cursor;

/// A review asks about a resource or a path, one of the two.
fn attributes(spec: Cursor<'_>) {
    let (resource, path) = (spec.at("resourceAttributes"), spec.at("nonResourceAttributes"));
    if resource.exists() && path.exists() {
        path.invalid("cannot be specified in combination with resourceAttributes");
    }
    if !resource.exists() && !path.exists() {
        resource.invalid("exactly one of nonResourceAttributes or resourceAttributes must be specified");
    }
}
