//! What a Pod shares with its node, and what it must not share at the same time; the system it is made for.

use corten_schema::Cursor;

pub(super) fn validate(spec: Cursor<'_>) {
    if spec.at("shareProcessNamespace").bool() && spec.at("hostPID").bool() {
        let shown = spec.at("securityContext").at("shareProcessNamespace").instead(spec.at("shareProcessNamespace"));
        shown.invalid("ShareProcessNamespace and HostPID cannot both be enabled");
    }
    if spec.at("hostUsers").value() == false {
        // In Kubernetes two of the paths are written as Go names the fields.
        for (field, path) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
            if spec.at(field).bool() {
                spec.at(path).forbidden("when `hostUsers` is false");
            }
        }
    }
    host_name(spec);
    if spec.at("os").at("name").str() == "linux" {
        let contexts = ["containers", "initContainers", "ephemeralContainers"].into_iter().flat_map(|it| spec.list(it));
        for context in [spec].into_iter().chain(contexts).map(|it| it.at("securityContext")) {
            if context.at("windowsOptions").exists() {
                context.at("windowsOptions").forbidden("windows options cannot be set for a linux pod");
            }
        }
    }
}

fn host_name(spec: Cursor<'_>) {
    const BYTES_MAX: usize = 64;
    let name = spec.at("hostnameOverride");
    if !name.exists() {
        return;
    }
    for reason in corten_meta::field::dns1123_subdomain(name.str()) {
        name.invalid(&reason);
    }
    if name.str().len() > BYTES_MAX {
        name.report(corten_meta::Violation::too_long(name.path(), BYTES_MAX));
    }
    if spec.at("hostNetwork").bool() {
        name.invalid("may not be specified when hostNetwork is true");
    }
    if spec.at("setHostnameAsFQDN").bool() {
        name.invalid("may not be specified when setHostnameAsFQDN is true");
    }
}
