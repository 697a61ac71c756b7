//! How requests from outside reach Services, by host and path.

use corten_api::resources::INGRESSES;
use corten_validation::{pod_spec::port_name, read::items, rules, warnings};
use std::collections::BTreeSet;

use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: INGRESSES,
    singular: "ingress",
    short_names: &["ing"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.networking.v1.Ingress",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Class", "The class it belongs to.", |object, _| {
            json!(object.pointer("/spec/ingressClassName").and_then(Value::as_str).unwrap_or("<none>"))
        }),
        column("Hosts", "The hosts it has rules for.", |object, _| json!(hosts(object))),
        column("Address", "Where it is reached.", |object, _| json!(addresses(object))),
        column("Ports", "The ports it is reached at.", |object, _| {
            json!(if items(object, "/spec/tls").is_empty() { "80" } else { "80, 443" })
        }),
        AGE,
    ],
    policy: &Ingress,
};

const HOSTS_SHOWN: usize = 3;

fn hosts(ingress: &Value) -> String {
    let rules = items(ingress, "/spec/rules");
    let named: Vec<&str> = rules.iter().filter_map(|it| it["host"].as_str()).filter(|it| !it.is_empty()).collect();
    if named.is_empty() {
        return "*".into();
    }
    let shown = named[..named.len().min(HOSTS_SHOWN)].join(",");
    if named.len() >= HOSTS_SHOWN && rules.len() > HOSTS_SHOWN {
        format!("{shown} + {} more...", rules.len() - HOSTS_SHOWN)
    } else {
        shown
    }
}

fn addresses(ingress: &Value) -> String {
    let points = items(ingress, "/status/loadBalancer/ingress").iter();
    let addresses: BTreeSet<&str> = points
        .filter_map(|it| ["ip", "hostname"].iter().filter_map(|name| it[name].as_str()).find(|it| !it.is_empty()))
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

struct Ingress;

impl Policy for Ingress {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |ingress| {
            let spec = ingress.at("spec");
            let (rules, default) = (spec.at("rules"), spec.at("defaultBackend"));
            if rules.is_empty() && !default.exists() {
                spec.report(Violation::invalid("spec", "null", "either `defaultBackend` or `rules` must be specified"));
            }
            if default.exists() {
                backend(default);
            }
            rules.each().for_each(rule);
            spec.list("tls").for_each(tls);
            if spec.at("ingressClassName").exists() {
                spec.at("ingressClassName").follows(field::dns1123_subdomain);
            }
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        warnings::ingress(new, old)
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |ingress| {
            for point in ingress.at("status").at("loadBalancer").list("ingress") {
                if !point.at("ip").is_empty() {
                    rules::address::address(point.at("ip"));
                }
                let host = point.at("hostname");
                if !host.is_empty() {
                    host.follows(field::dns1123_subdomain);
                    not_an_address(host);
                }
            }
        })
    }
}

fn not_an_address(host: Cursor<'_>) {
    if rules::address::is_address(host.str()) {
        host.invalid("must be a DNS name, not an IP address");
    }
}

/// A host name, whose first label may be a star.
fn host(host: Cursor<'_>) {
    const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    if !host.str().contains('*') {
        return host.follows(field::dns1123_subdomain);
    }
    let rest = host.str().strip_prefix("*.");
    if rest.is_none_or(|it| !field::dns1123_subdomain(it).is_empty()) {
        host.invalid(WILDCARD);
    }
}

fn rule(rule: Cursor<'_>) {
    if !rule.at("host").is_empty() {
        not_an_address(rule.at("host"));
        host(rule.at("host"));
    }
    let http = rule.at("http");
    if http.exists() {
        http.at("paths").required();
        http.list("paths").for_each(path);
    }
}

fn path(rule: Cursor<'_>) {
    let (path, kind) = (rule.at("path"), rule.at("pathType"));
    if !kind.exists() {
        return kind.missing("pathType must be specified");
    }
    let text = path.str();
    let absolute = || {
        if !text.starts_with('/') {
            path.invalid_as(text, "must be an absolute path");
        }
    };
    match kind.str() {
        "Exact" | "Prefix" => {
            absolute();
            for sequence in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|it| text.contains(**it)) {
                path.invalid(&format!("must not contain '{sequence}'"));
            }
            for suffix in ["/..", "/."].iter().filter(|it| text.ends_with(**it)) {
                path.invalid(&format!("cannot end with '{suffix}'"));
            }
        }
        "ImplementationSpecific" if text.is_empty() => {}
        "ImplementationSpecific" => absolute(),
        _ => kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"]),
    }
    backend(rule.at("backend"));
}

fn backend(backend: Cursor<'_>) {
    let (resource, service) = (backend.at("resource"), backend.at("service"));
    match (resource.exists(), service.exists()) {
        (true, true) => backend.invalid_as("", "cannot set both resource and service backends"),
        (false, false) => backend.invalid_as("", "resource or service backend is required"),
        (true, false) => {
            if resource.at("apiGroup").exists() {
                resource.at("apiGroup").follows(field::dns1123_subdomain);
            }
            rules::path_segment(resource.at("kind"));
            rules::path_segment(resource.at("name"));
        }
        (false, true) => {
            if service.at("name").required() {
                service.at("name").follows(field::dns1123_label);
            }
            service_port(backend, service.at("port"));
        }
    }
}

fn service_port(backend: Cursor<'_>, port: Cursor<'_>) {
    let (name, number) = (port.at("name"), port.at("number"));
    match (!name.is_empty(), number.int() != 0) {
        (true, true) => backend.invalid_as("", "cannot set both port name & port number"),
        (true, false) => name.follows(port_name),
        (false, true) => number.int_between(1, 65535),
        (false, false) => backend.missing("port name or number is required"),
    }
}

fn tls(tls: Cursor<'_>) {
    tls.list("hosts").for_each(host);
    if !tls.at("secretName").is_empty() {
        tls.at("secretName").follows(field::dns1123_subdomain);
    }
}
