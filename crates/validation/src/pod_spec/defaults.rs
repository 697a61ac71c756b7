//! What a Pod's author may leave out.

use serde_json::{Value, json};

use crate::fill::{Object, each, fill, fill_pointer, inner, is_absent, made, text};

/// Defaults of every Pod spec, in a Pod or in a template.
pub fn default(spec: &mut Object) {
    fill(spec, "restartPolicy", "Always");
    fill(spec, "dnsPolicy", "ClusterFirst");
    fill(spec, "schedulerName", "default-scheduler");
    fill(spec, "terminationGracePeriodSeconds", 30);
    fill(spec, "securityContext", json!({}));
    service_account(spec);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

/// Defaults of a Pod alone: templates stay as short as they were written. On the node's network a port is the node's, unless it
/// `is_open`: then its number is still to be chosen.
pub fn default_requests(spec: &mut Object, is_open: impl Fn(&Object) -> bool) {
    fill(spec, "enableServiceLinks", true);
    let host_network = spec.get("hostNetwork").is_some_and(|it| *it == true);
    for list in ["initContainers", "containers"] {
        for container in each(spec, list) {
            requests_from_limits(container);
            if host_network {
                for port in each(container, "ports").filter(|it| !is_open(it)) {
                    if let Some(number) = port.get("containerPort").cloned()
                        && port.get("hostPort").is_none_or(|it| *it == 0)
                    {
                        port.insert("hostPort".into(), number);
                    }
                }
            }
        }
    }
}

fn requests_from_limits(container: &mut Object) {
    let Some(resources) = inner(container, "resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).filter(|it| !it.is_empty()).cloned() else {
        return;
    };
    if let Some(requests) = made(resources, "requests") {
        for (name, limit) in limits {
            fill(requests, &name, limit);
        }
    }
}

/// The account has an old name and a new one; both are kept equal.
fn service_account(spec: &mut Object) {
    let name = [text(spec, "serviceAccountName"), text(spec, "serviceAccount")];
    let Some(name) = name.into_iter().find(|it| !it.is_empty()).map(str::to_owned) else { return };
    spec.insert("serviceAccountName".into(), name.clone().into());
    spec.insert("serviceAccount".into(), name.into());
}

fn container(container: &mut Object) {
    fill(container, "resources", json!({}));
    fill(container, "terminationMessagePath", "/dev/termination-log");
    fill(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(text(container, "image"));
    fill(container, "imagePullPolicy", policy);
    for port in each(container, "ports") {
        fill(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        let Some(source) = inner(variable, "valueFrom") else { continue };
        downward(source);
        if let Some(file) = inner(source, "fileKeyRef") {
            fill(file, "optional", false);
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = inner(container, probe) {
            self::probe(probe);
        }
    }
    if let Some(lifecycle) = inner(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = inner(lifecycle, hook) {
                http_get(hook);
            }
        }
    }
}

/// `Always` for an image that may change under its name: the tag `latest`, or none and no digest.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    // `parsers.ParseImageName`: what is no name of an image has no tag, not `latest`.
    let (domain, path) = name.split_once('/').unwrap_or(("", name));
    let is_domain = domain == "localhost" || domain.contains(['.', ':']);
    let path = if is_domain { path } else { name };
    if path.bytes().any(|it| it.is_ascii_uppercase()) && !path.contains(':') {
        return "IfNotPresent";
    }
    let last = name.rsplit('/').next().unwrap_or_default();
    match last.split_once(':').map(|it| it.1) {
        Some("latest") => "Always",
        None if digest.is_none() => "Always",
        _ => "IfNotPresent",
    }
}

fn probe(probe: &mut Object) {
    for (field, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        if probe.get(field).is_none_or(|it| *it == 0) {
            probe.insert(field.into(), value.into());
        }
    }
    http_get(probe);
    if let Some(grpc) = inner(probe, "grpc")
        && !grpc.contains_key("service")
    {
        grpc.insert("service".into(), "".into());
    }
}

fn http_get(handler: &mut Object) {
    if let Some(get) = inner(handler, "httpGet") {
        fill(get, "path", "/");
        fill(get, "scheme", "HTTP");
    }
}

/// References to fields and resources of the Pod itself.
fn downward(source: &mut Object) {
    if let Some(field) = inner(source, "fieldRef") {
        fill(field, "apiVersion", "v1");
    }
    if let Some(resource) = inner(source, "resourceFieldRef") {
        fill(resource, "divisor", "0");
    }
}

/// Defaults of the sources that Pods and PersistentVolumes share.
pub fn in_tree(volume: &mut Object) {
    for (source, field, value) in [
        ("iscsi", "iscsiInterface", "default"),
        ("rbd", "pool", "rbd"),
        ("rbd", "user", "admin"),
        ("rbd", "keyring", "/etc/ceph/keyring"),
        ("scaleIO", "storageMode", "ThinProvisioned"),
        ("scaleIO", "fsType", "xfs"),
    ] {
        if let Some(source) = inner(volume, source) {
            fill(source, field, value);
        }
    }
    if let Some(disk) = inner(volume, "azureDisk") {
        for (field, value) in [("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")] {
            fill_pointer(disk, field, value);
        }
        fill_pointer(disk, "readOnly", false);
    }
}

fn volume(volume: &mut Object) {
    if volume.keys().all(|it| it == "name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = inner(volume, source) {
            fill(source, "defaultMode", 0o644);
        }
    }
    if let Some(projected) = inner(volume, "projected") {
        for source in each(projected, "sources") {
            if let Some(token) = inner(source, "serviceAccountToken") {
                fill(token, "expirationSeconds", 3600);
            }
            if let Some(certificate) = inner(source, "podCertificate") {
                fill(certificate, "maxExpirationSeconds", 24 * 3600);
            }
            if let Some(api) = inner(source, "downwardAPI") {
                each(api, "items").for_each(downward);
            }
        }
    }
    if let Some(api) = inner(volume, "downwardAPI") {
        each(api, "items").for_each(downward);
    }
    if let Some(path) = inner(volume, "hostPath")
        && is_absent(path, "type")
    {
        path.insert("type".into(), "".into());
    }
    if let Some(image) = inner(volume, "image") {
        let policy = pull_policy(text(image, "reference"));
        fill(image, "pullPolicy", policy);
    }
    in_tree(volume);
    if let Some(claim) = inner(volume, "ephemeral").and_then(|it| inner(it, "volumeClaimTemplate"))
        && let Some(spec) = inner(claim, "spec")
    {
        fill_pointer(spec, "volumeMode", "Filesystem");
    }
}
