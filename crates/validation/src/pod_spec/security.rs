//! Security contexts of Pods and containers.

use std::collections::BTreeSet;

use corten_meta::Violation;
use corten_schema::Cursor;

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

const SYSCTL: &str = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const SYSCTL_BYTES_MAX: usize = 253;

fn is_sysctl(name: &str) -> bool {
    let edge = |it: Option<&u8>| it.is_some_and(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    let is_part = |it: &str| {
        let bytes = it.as_bytes();
        let inner = |it: &u8| it.is_ascii_lowercase() || it.is_ascii_digit() || matches!(it, b'-' | b'_');
        edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)
    };
    name.len() <= SYSCTL_BYTES_MAX && name.split(['.', '/']).all(is_part)
}

pub(super) fn of_pod(context: Cursor<'_>) {
    user_and_group(context);
    if context.at("fsGroup").exists() {
        context.at("fsGroup").int_between(0, i64::from(i32::MAX));
    }
    for group in context.list("supplementalGroups") {
        group.int_between(0, i64::from(i32::MAX));
    }
    if context.at("fsGroupChangePolicy").exists() {
        context.at("fsGroupChangePolicy").one_of(&["Always", "OnRootMismatch"]);
    }
    let mut seen = BTreeSet::new();
    for sysctl in context.list("sysctls") {
        let name = sysctl.at("name");
        if name.required() && seen.contains(name.str()) {
            name.duplicate();
        }
        seen.insert(name.str());
        if !name.is_empty() && !is_sysctl(name.str()) {
            name.invalid(&format!("must have at most {SYSCTL_BYTES_MAX} characters and match regex ^{SYSCTL}$"));
        }
    }
    for (field, known) in
        [("supplementalGroupsPolicy", ["Merge", "Strict"]), ("seLinuxChangePolicy", ["MountOption", "Recursive"])]
    {
        if context.at(field).exists() {
            context.at(field).one_of(&known);
        }
    }
    profiles(context);
}

/// What is masked in /proc guards the node from users that are the node's own (ValidateSecurityContext).
pub(super) fn proc_mount(spec: Cursor<'_>, container: Cursor<'_>) {
    let (host_users, kind) = (spec.at("hostUsers"), container.at("securityContext").at("procMount"));
    if kind.str() == "Unmasked" && (!host_users.exists() || host_users.bool()) {
        kind.invalid("`hostUsers` must be false to use `Unmasked`");
    }
}

pub(super) fn of_container(context: Cursor<'_>) {
    if !context.exists() {
        return;
    }
    user_and_group(context);
    profiles(context);
    if context.at("procMount").exists() {
        context.at("procMount").one_of(&["Default", "Unmasked"]);
    }
    let (escalation, privileged) = (context.at("allowPrivilegeEscalation"), context.at("privileged").bool());
    if escalation.exists() && !escalation.bool() {
        if privileged {
            context.invalid("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        let added = context.at("capabilities").at("add").items();
        if added.iter().any(|it| it == "CAP_SYS_ADMIN") {
            context.invalid("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
        }
    }
}

fn user_and_group(context: Cursor<'_>) {
    for id in ["runAsUser", "runAsGroup"].map(|it| context.at(it)) {
        if id.exists() {
            id.int_between(0, i64::from(i32::MAX));
        }
    }
}

fn profiles(context: Cursor<'_>) {
    for (name, profile) in ["seccompProfile", "appArmorProfile"].map(|it| (it, context.at(it))) {
        if !profile.exists() {
            continue;
        }
        let (kind, local) = (profile.at("type"), profile.at("localhostProfile"));
        if kind.is_empty() {
            kind.missing(&format!("type is required when {name} is set"));
            continue;
        }
        if !kind.one_of(&PROFILES) {
            continue;
        }
        if kind.str() == "Localhost" {
            if local.is_empty() {
                local.missing("must be set when type is Localhost");
            } else {
                super::container::local_path(local);
            }
        } else if local.exists() {
            let detail = "can only be set when type is Localhost";
            local.report(Violation::invalid(local.path(), local.value(), detail));
        }
    }
}
