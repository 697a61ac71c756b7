//! The volumes of a Pod. Sources that this release does not mount are checked for being the only one.

use std::collections::BTreeSet;

use corten_meta::Quantity;
use corten_schema::Cursor;

use super::{
    container::{local_path, no_way_up},
    environment, names, sources,
};
use crate::{
    labels,
    rules::{self, signer::signer_name},
    volume_claim,
};

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// Checks all volumes and gives the names that mounts may use.
pub(super) fn validate<'a>(spec: Cursor<'a>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    for volume in spec.list("volumes") {
        let name = volume.at("name");
        if names::label_name(name) && !seen.insert(name.str()) {
            name.duplicate();
        }
        let mut sources = volume.map().into_iter().flatten().map(|it| it.0.as_str()).filter(|it| *it != "name");
        match sources.next() {
            None => volume.missing("must specify a volume type"),
            Some(first) => source(first, volume.at(first)),
        }
        for more in sources {
            volume.at(more).forbidden("may not specify more than 1 volume type");
        }
    }
    seen
}

pub fn source(kind: &str, source: Cursor<'_>) {
    match kind {
        "emptyDir" if source.at("sizeLimit").quantity().is_some_and(Quantity::is_negative) => {
            source.at("sizeLimit").forbidden("SizeLimit field must be a valid resource quantity");
        }
        "hostPath" => {
            if source.at("path").required() {
                no_way_up(source.at("path"));
            }
            source.at("type").one_of(&HOST_PATH_TYPES);
        }
        "configMap" => {
            source.at("name").required();
            mode(source.at("defaultMode"));
            keys(source);
        }
        "secret" => {
            source.at("secretName").required();
            mode(source.at("defaultMode"));
            keys(source);
        }
        "downwardAPI" => {
            mode(source.at("defaultMode"));
            source.list("items").for_each(downward);
        }
        "projected" => projected(source),
        "persistentVolumeClaim" => {
            source.at("claimName").required();
        }
        "nfs" => nfs(source),
        "csi" => {
            rules::driver_name(source.at("driver"));
            if source.at("nodePublishSecretRef").exists() {
                source.at("nodePublishSecretRef").at("name").required();
            }
        }
        "ephemeral" => {
            let template = source.at("volumeClaimTemplate");
            if template.exists() {
                volume_claim::validate(template.at("spec"));
            } else {
                template.missing("");
            }
        }
        "image" => {
            source.at("reference").required();
            source.at("pullPolicy").one_of(&["Always", "IfNotPresent", "Never"]);
        }
        _ => sources::validate(kind, source),
    }
}

fn nfs(source: Cursor<'_>) {
    source.at("server").required();
    let path = source.at("path");
    if path.required() && !path.str().starts_with('/') {
        path.invalid("must be an absolute path");
    }
}

fn mode(mode: Cursor<'_>) {
    if mode.exists() && !(0..=0o777).contains(&mode.int()) {
        mode.invalid("must be a number between 0 and 0777 (octal), both inclusive");
    }
}

fn keys(source: Cursor<'_>) {
    for item in source.list("items") {
        item.at("key").required();
        file_path(item.at("path"));
        mode(item.at("mode"));
    }
}

/// Where in the volume a file goes. Names that begin with two dots belong to the kubelet.
fn file_path(path: Cursor<'_>) {
    if !path.required() {
        return;
    }
    local_path(path);
    if path.str().starts_with("..") && !path.str().starts_with("../") && path.str() != ".." {
        path.invalid("must not start with '..'");
    }
}

fn downward(item: Cursor<'_>) {
    file_path(item.at("path"));
    mode(item.at("mode"));
    let (field, resource) = (item.at("fieldRef"), item.at("resourceFieldRef"));
    match (field.exists(), resource.exists()) {
        (true, false) => environment::volume_field_ref(field),
        (false, true) => {
            if resource.at("containerName").required() {
                environment::resource_ref(resource);
            }
        }
        (true, true) => item.invalid("fieldRef and resourceFieldRef can not be specified simultaneously"),
        (false, false) => item.missing("one of fieldRef and resourceFieldRef is required"),
    }
}

fn projected(projected: Cursor<'_>) {
    mode(projected.at("defaultMode"));
    let mut seen = BTreeSet::new();
    for source in projected.list("sources") {
        let mut kinds = source.map().into_iter().flatten().map(|it| it.0.as_str());
        let Some(kind) = kinds.next() else {
            source.missing("must specify a volume projection type");
            continue;
        };
        for more in kinds {
            source.at(more).forbidden("may not specify more than 1 volume type");
        }
        let inner = source.at(kind);
        match kind {
            "configMap" | "secret" => {
                inner.at("name").required();
                keys(inner);
            }
            "downwardAPI" => inner.list("items").for_each(downward),
            "serviceAccountToken" => token(inner),
            "podCertificate" => certificate(inner),
            "clusterTrustBundle" => trust_bundle(inner),
            _ => {}
        }
        for (path, shown) in projected_paths(kind, inner) {
            if !seen.insert(path.str()) {
                projected.invalid_as(shown.str(), "conflicting duplicate paths");
            }
        }
    }
}

/// The files of one source that no other source may have, and what a refusal shows of each. As upstream
/// (`validateProjectionSources`), the file of a token may be another's, too, and that source wins which comes last.
fn projected_paths<'a>(kind: &str, source: Cursor<'a>) -> Vec<(Cursor<'a>, Cursor<'a>)> {
    let itself = |it: Cursor<'a>| (it, it);
    let items = || source.list("items").map(|it| it.at("path"));
    let paths: Vec<_> = match kind {
        "configMap" | "secret" => items().map(|it| (it, source.at("name"))).collect(),
        "downwardAPI" => items().map(itself).collect(),
        "clusterTrustBundle" => vec![itself(source.at("path"))],
        "podCertificate" => CERTIFICATE_FILES.map(|it| itself(source.at(it))).to_vec(),
        _ => Vec::new(),
    };
    paths.into_iter().filter(|it| !it.0.is_empty()).collect()
}

fn token(token: Cursor<'_>) {
    let expiration = token.at("expirationSeconds");
    if expiration.int() < 600 {
        expiration.invalid("may not specify a duration less than 10 minutes");
    }
    if expiration.int() > 1 << 32 {
        expiration.invalid("may not specify a duration larger than 2^32 seconds");
    }
    file_path(token.at("path"));
}

const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const CERTIFICATE_FILES: [&str; 3] = ["credentialBundlePath", "keyPath", "certificateChainPath"];
/// An hour, and 91 days.
const CERTIFICATE_SECONDS: [i64; 2] = [3600, 7_862_400];

fn certificate(certificate: Cursor<'_>) {
    signer_name(certificate.at("signerName"));
    certificate.at("keyType").one_of(&KEY_TYPES);
    let (seconds, [least, most]) = (certificate.at("maxExpirationSeconds"), CERTIFICATE_SECONDS);
    if seconds.exists() && seconds.int() < least {
        seconds.invalid(&format!("if provided, maxExpirationSeconds must be >= {least}"));
    } else if seconds.exists() && seconds.int() > most {
        seconds.invalid(&format!("if provided, maxExpirationSeconds must be <= {most}"));
    }
    let paths = CERTIFICATE_FILES.map(|it| certificate.at(it));
    paths.into_iter().filter(|it| !it.is_empty()).for_each(file_path);
    if paths.into_iter().all(Cursor::is_empty) {
        certificate.missing("specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
    }
    labels::user_annotations(certificate.at("userAnnotations"));
}

fn trust_bundle(bundle: Cursor<'_>) {
    let (name, signer, selector) = (bundle.at("name"), bundle.at("signerName"), bundle.at("labelSelector"));
    match (name.exists(), signer.exists()) {
        (true, true) => bundle.invalid("only one of name and signerName may be used"),
        (true, false) => {
            name.required();
            if selector.exists() {
                selector.invalid("labelSelector must be unset if name is specified");
            }
        }
        (false, true) => {
            signer_name(signer);
            labels::label_selector(selector);
        }
        (false, false) => bundle.missing("either name or signerName must be specified"),
    }
    file_path(bundle.at("path"));
}
