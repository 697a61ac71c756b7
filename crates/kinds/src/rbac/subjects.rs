//! Whom a binding gives which role.

use corten_meta::field;
use corten_schema::Cursor;
use corten_validation::{
    fill::{each, fill, made, text as field_text},
    read::{items, text},
};
use serde_json::{Value, json};

use crate::{
    Column,
    columns::{column, wide},
};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const ROLE: Column = column("Role", "The role it gives.", |object, _| {
    json!(format!("{}/{}", text(object, "/roleRef/kind"), text(object, "/roleRef/name")))
});
pub(super) const USERS: Column = wide("Users", "The users who get it.", |object, _| json!(of_kind(object, "User")));
pub(super) const GROUPS: Column =
    wide("Groups", "The groups that get it.", |object, _| json!(of_kind(object, "Group")));
pub(super) const SERVICE_ACCOUNTS: Column =
    wide("ServiceAccounts", "The service accounts that get it.", |object, _| json!(of_kind(object, "ServiceAccount")));

fn of_kind(binding: &Value, kind: &str) -> String {
    let subjects = items(binding, "/subjects").iter().filter(|it| it["kind"] == kind);
    let names = subjects.map(|it| match (kind, text(it, "/name")) {
        ("ServiceAccount", name) => format!("{}/{name}", text(it, "/namespace")),
        (_, name) => name.to_owned(),
    });
    names.collect::<Vec<_>>().join(", ")
}

pub(super) fn default(binding: &mut Value) {
    let Some(binding) = binding.as_object_mut() else { return };
    if let Some(role) = made(binding, "roleRef") {
        fill(role, "apiGroup", GROUP);
    }
    for subject in each(binding, "subjects") {
        if matches!(field_text(subject, "kind"), "User" | "Group") {
            fill(subject, "apiGroup", GROUP);
        }
    }
}

/// A binding in a namespace looks for accounts without a namespace in its own (ValidateRoleBindingSubject).
pub(super) fn validate(binding: Cursor<'_>, roles: &[&str]) {
    let is_namespaced = !binding.at("metadata").at("namespace").is_empty();
    let role = binding.at("roleRef");
    role.at("apiGroup").one_of(&[GROUP]);
    role.at("kind").one_of(roles);
    if role.at("name").required() {
        role.at("name").follows(field::path_segment);
    }
    binding.list("subjects").for_each(|it| subject(it, is_namespaced));
}

fn subject(subject: Cursor<'_>, is_namespaced: bool) {
    let (name, group) = (subject.at("name"), subject.at("apiGroup"));
    name.required();
    match subject.at("kind").str() {
        "ServiceAccount" => {
            if !name.is_empty() {
                name.follows(field::dns1123_subdomain);
            }
            if !group.is_empty() {
                group.unsupported(&[""]);
            }
            if !is_namespaced {
                subject.at("namespace").required();
            }
        }
        "User" | "Group" => {
            group.one_of(&[GROUP]);
        }
        _ => subject.at("kind").unsupported(&["ServiceAccount", "User", "Group"]),
    }
}
