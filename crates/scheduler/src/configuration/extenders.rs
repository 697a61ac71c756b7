//! `extenders`: the servers that are asked beside the plugins, with upstream's defaults and bounds.

use std::{collections::BTreeSet, time::Duration};

use super::reader::{At, Reader};
use crate::{Extender, ExtenderTls, Pem};

const FIELDS: &[&str] = &[
    "urlPrefix",
    "filterVerb",
    "preemptVerb",
    "prioritizeVerb",
    "weight",
    "bindVerb",
    "enableHTTPS",
    "tlsConfig",
    "httpTimeout",
    "nodeCacheCapable",
    "managedResources",
    "ignorable",
];
const TLS_FIELDS: &[&str] =
    &["insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"];
/// `DefaultExtenderTimeout`.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The extenders, and the resources that only they look at (`ignoredByScheduler`).
pub(super) fn extenders(root: &At<'_>, reader: &mut Reader) -> (Vec<Extender>, BTreeSet<String>) {
    let (mut extenders, mut ignored, mut managed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for at in reader.children(root, "extenders", FIELDS) {
        let text = |reader: &mut Reader, field| reader.text(&at, field).to_owned();
        let mut extender = Extender {
            url_prefix: text(reader, "urlPrefix"),
            filter_verb: text(reader, "filterVerb"),
            prioritize_verb: text(reader, "prioritizeVerb"),
            preempt_verb: text(reader, "preemptVerb"),
            bind_verb: text(reader, "bindVerb"),
            weight: reader.number(&at, "weight", 0, (i64::MIN, i64::from(i32::MAX))),
            enable_https: reader.truth(&at, "enableHTTPS"),
            tls: tls(&at, reader),
            timeout: timeout(&at, reader),
            node_cache_capable: reader.truth(&at, "nodeCacheCapable"),
            managed_resources: BTreeSet::new(),
            ignorable: reader.truth(&at, "ignorable"),
        };
        if !(extender.url_prefix.starts_with("http://") || extender.url_prefix.starts_with("https://")) {
            let what = format!("Invalid value: {:?}: must begin with http:// or https://", extender.url_prefix);
            reader.problem(&at.path("urlPrefix"), &what);
        }
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            let what = format!("Invalid value: {}: must have a positive weight applied to it", extender.weight);
            reader.problem(&at.path("weight"), &what);
        }
        for resource in reader.children(&at, "managedResources", &["name", "ignoredByScheduler"]) {
            let name = reader.text(&resource, "name").to_owned();
            if !name.contains('/') || name.starts_with("kubernetes.io/") {
                let what = format!("Invalid value: {name:?}: must be the name of an extended resource");
                reader.problem(&resource.path("name"), &what);
            } else if !managed.insert(name.clone()) {
                let what = format!("Invalid value: {name:?}: duplicate extender managed resource name");
                reader.problem(&resource.path("name"), &what);
            }
            if reader.truth(&resource, "ignoredByScheduler") {
                ignored.insert(name.clone());
            }
            extender.managed_resources.insert(name);
        }
        extenders.push(extender);
    }
    let n_binders = extenders.iter().filter(|it| !it.bind_verb.is_empty()).count();
    if n_binders > 1 {
        let what = format!("Invalid value: found {n_binders} extenders implementing bind: only one may");
        reader.problem("extenders", &what);
    }
    (extenders, ignored)
}

fn tls(extender: &At<'_>, reader: &mut Reader) -> ExtenderTls {
    let at = reader.child(extender, "tlsConfig", TLS_FIELDS);
    let pem = |reader: &mut Reader, file, data| match (reader.text(&at, file), reader.text(&at, data)) {
        (_, data) if !data.is_empty() => Pem::Data(data.to_owned()),
        ("", _) => Pem::None,
        (file, _) => Pem::File(file.to_owned()),
    };
    ExtenderTls {
        insecure: reader.truth(&at, "insecure"),
        server_name: reader.text(&at, "serverName").to_owned(),
        certificate: pem(reader, "certFile", "certData"),
        key: pem(reader, "keyFile", "keyData"),
        ca: pem(reader, "caFile", "caData"),
    }
}

fn timeout(extender: &At<'_>, reader: &mut Reader) -> Duration {
    match reader.duration(extender, "httpTimeout", TIMEOUT) {
        Duration::ZERO => TIMEOUT,
        timeout => timeout,
    }
}
