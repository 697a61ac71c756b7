//! The rules of one container.

use std::collections::BTreeSet;

use corten_meta::Violation;
use corten_schema::Cursor;

use super::{environment, handlers, names, resources, security};

const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// Which of the three lists a container stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Regular,
    Init,
    Ephemeral,
}

pub(super) fn validate(container: Cursor<'_>, role: Role, volumes: &BTreeSet<&str>) {
    container.at("image").required();
    if role != Role::Ephemeral {
        restart_policy(container, role);
        resources::validate(container.at("resources"));
    }
    if container.at("terminationMessagePolicy").required() {
        container.at("terminationMessagePolicy").one_of(&["File", "FallbackToLogsOnError"]);
    }
    if container.at("imagePullPolicy").required() {
        container.at("imagePullPolicy").one_of(&["Always", "IfNotPresent", "Never"]);
    }
    ports(container);
    environment::validate(container);
    mounts(container, volumes);
    devices(container, volumes);
    security::of_container(container.at("securityContext"));
    handlers::lifecycle(container.at("lifecycle"));
    handlers::probes(container);
}

/// An init container that ends takes no probes or hooks; one that goes on beside the others (a sidecar) does.
fn restart_policy(container: Cursor<'_>, role: Role) {
    let policy = container.at("restartPolicy");
    if policy.exists() {
        policy.one_of(&["Always", "Never", "OnFailure"]);
    }
    exit_rules(container.at("restartPolicyRules"), policy);
    if role == Role::Init && policy.str() != "Always" {
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.at(field).exists() {
                container.at(field).forbidden("may not be set for init containers without restartPolicy=Always");
            }
        }
    }
}

/// Which ends of it start it again.
fn exit_rules(rules: Cursor<'_>, policy: Cursor<'_>) {
    if rules.is_empty() {
        return;
    }
    if !policy.exists() {
        rules.missing("must specify restartPolicy when restart rules are used");
    }
    rules.at_most(RULES_MAX);
    for rule in rules.each() {
        if rule.at("action").required() {
            rule.at("action").one_of(&["Restart", "RestartAllContainers"]);
        }
        let codes = rule.at("exitCodes");
        if !codes.exists() {
            codes.missing("must be specified");
            continue;
        }
        if codes.at("operator").required() {
            codes.at("operator").one_of(&["In", "NotIn"]);
        }
        codes.at("values").at_most(EXIT_CODES_MAX);
    }
}

/// What becomes of a container whose resources change.
pub(super) fn resize_policy(policies: Cursor<'_>, restart: &str) {
    let mut seen = BTreeSet::new();
    for policy in policies.each() {
        let (name, asked) = (policy.at("resourceName"), policy.at("restartPolicy"));
        if !seen.insert(name.str()) {
            policy.instead(name).duplicate();
        }
        // Kubernetes's paths name the list here, without an index.
        if policies.instead(name).required() {
            policies.instead(name).one_of(&["cpu", "memory"]);
        }
        if policies.instead(asked).required() {
            policies.instead(asked).one_of(&["NotRequired", "RestartContainer"]);
        }
        if restart == "Never" && asked.str() != "NotRequired" {
            policies.instead(asked).invalid("must be 'NotRequired' when `restartPolicy` is 'Never'");
        }
    }
}

fn ports(container: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for port in container.list("ports") {
        let name = port.at("name");
        if !name.is_empty() {
            let reasons = names::port_name(name.str());
            if !reasons.is_empty() {
                name.invalid_all(reasons);
            } else if !seen.insert(name.str()) {
                name.duplicate();
            }
        }
        if port.at("containerPort").int() == 0 {
            port.at("containerPort").missing("");
        } else {
            port.at("containerPort").int_between(1, 65535);
        }
        if port.at("hostPort").int() != 0 {
            port.at("hostPort").int_between(1, 65535);
        }
        if port.at("protocol").required() {
            port.at("protocol").one_of(&["SCTP", "TCP", "UDP"]);
        }
    }
}

fn mounts(container: Cursor<'_>, volumes: &BTreeSet<&str>) {
    let mut seen = BTreeSet::new();
    let devices: BTreeSet<&str> = container.list("volumeDevices").map(|it| it.at("devicePath").str()).collect();
    for mount in container.list("volumeMounts") {
        let (name, path) = (mount.at("name"), mount.at("mountPath"));
        name.required();
        if !volumes.contains(name.str()) {
            name.report(Violation::not_found(name.path(), format!("{:?}", name.str())));
        }
        path.required();
        if !seen.insert(path.str()) {
            path.invalid("must be unique");
        }
        if devices.contains(path.str()) {
            path.invalid("must not already exist in volumeDevices");
        }
        let (sub, expression) = (mount.at("subPath"), mount.at("subPathExpr"));
        local_path(sub);
        local_path(expression);
        if !sub.is_empty() && !expression.is_empty() {
            expression.invalid("subPathExpr and subPath are mutually exclusive");
        }
        let propagation = mount.at("mountPropagation");
        if propagation.exists() {
            propagation.one_of(&["Bidirectional", "HostToContainer", "None"]);
            let privileged = container.at("securityContext").at("privileged").bool();
            if propagation.str() == "Bidirectional" && !privileged {
                propagation.forbidden("Bidirectional mount propagation is available only to privileged containers");
            }
        }
        recursive_read_only(mount);
    }
}

fn recursive_read_only(mount: Cursor<'_>) {
    let recursive = mount.at("recursiveReadOnly");
    if !recursive.exists() {
        return;
    }
    recursive.one_of(&["Disabled", "Enabled", "IfPossible"]);
    if matches!(recursive.str(), "Enabled" | "IfPossible") {
        if !mount.at("readOnly").bool() {
            recursive.forbidden("may only be specified when readOnly is true");
        }
        if !matches!(mount.at("mountPropagation").str(), "" | "None") {
            recursive.forbidden("may only be specified when mountPropagation is None or not specified");
        }
    }
}

fn devices(container: Cursor<'_>, volumes: &BTreeSet<&str>) {
    let mut seen = BTreeSet::new();
    for device in container.list("volumeDevices") {
        let (name, path) = (device.at("name"), device.at("devicePath"));
        name.required();
        if !volumes.contains(name.str()) {
            name.report(Violation::not_found(name.path(), format!("{:?}", name.str())));
        }
        path.required();
        if !seen.insert(path.str()) {
            path.invalid("must be unique");
        }
    }
}

/// A path below something: not absolute, and never up.
pub(super) fn local_path(path: Cursor<'_>) {
    if path.str().starts_with('/') {
        path.invalid("must be a relative path");
    }
    no_way_up(path);
}

/// No part of a path leads up.
pub fn no_way_up(path: Cursor<'_>) {
    if path.str().split('/').any(|it| it == "..") {
        path.invalid("must not contain '..'");
    }
}

/// No two containers may want the same port of the node.
pub(super) fn host_ports<'a>(containers: impl Iterator<Item = Cursor<'a>>) {
    let mut seen = BTreeSet::new();
    for port in containers.flat_map(|it| it.list("ports")) {
        let number = port.at("hostPort").int();
        if number == 0 {
            continue;
        }
        let place = format!("{}/{}/{number}", port.at("protocol").str(), port.at("hostIP").str());
        if seen.contains(&place) {
            let path = port.at("hostPort").path();
            port.report(Violation::duplicate(path, format!("{place:?}")));
        }
        seen.insert(place);
    }
}
