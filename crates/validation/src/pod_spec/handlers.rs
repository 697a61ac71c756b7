//! Probes and lifecycle hooks: what is called, and how often.

use corten_schema::Cursor;

use super::names;

pub(super) fn probes(container: Cursor<'_>) {
    let (liveness, readiness, startup) =
        (container.at("livenessProbe"), container.at("readinessProbe"), container.at("startupProbe"));
    for one in [liveness, readiness, startup].into_iter().filter(|it| it.exists()) {
        probe(one);
    }
    for one in [liveness, startup].into_iter().filter(|it| it.exists()) {
        if one.at("successThreshold").int() != 1 {
            one.at("successThreshold").invalid("must be 1");
        }
        if one.at("terminationGracePeriodSeconds").exists() {
            one.at("terminationGracePeriodSeconds").positive_int();
        }
    }
    if readiness.at("terminationGracePeriodSeconds").exists() {
        readiness.at("terminationGracePeriodSeconds").invalid("must not be set for readinessProbes");
    }
}

pub(super) fn lifecycle(lifecycle: Cursor<'_>) {
    for hook in ["postStart", "preStop"].map(|it| lifecycle.at(it)) {
        if hook.exists() {
            handler(hook, &["exec", "httpGet", "tcpSocket", "sleep"]);
        }
    }
}

fn probe(probe: Cursor<'_>) {
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"]);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        probe.at(field).non_negative_int();
    }
}

/// Exactly one kind of call.
fn handler<'a>(of: Cursor<'a>, kinds: &[&'a str]) {
    let mut found = false;
    for kind in kinds {
        let call = of.at(kind);
        if !call.exists() {
            continue;
        }
        if found {
            call.forbidden("may not specify more than 1 handler type");
            continue;
        }
        found = true;
        self::call(kind, call);
    }
    if !found {
        of.missing("must specify a handler type");
    }
}

fn call(kind: &str, call: Cursor<'_>) {
    match kind {
        "exec" => {
            call.at("command").required();
        }
        "httpGet" => {
            call.at("path").required();
            names::port_number_or_name(call.at("port"));
            call.at("scheme").one_of(&["HTTP", "HTTPS"]);
            for header in call.list("httpHeaders") {
                header.at("name").follows(header_name);
            }
        }
        "tcpSocket" => names::port_number_or_name(call.at("port")),
        "grpc" => call.at("port").int_between(1, 65535),
        _ => {}
    }
}

fn header_name(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-') {
        return Vec::new();
    }
    vec!["a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')".to_owned()]
}
