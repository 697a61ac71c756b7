//! What is wrong with a configuration, in the words of upstream's `ValidateEncryptionConfiguration`.

use std::{collections::HashSet, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::{aggregate, duration};

use crate::{
    configuration::{
        Configuration, KeyConfiguration, KeysConfiguration, KmsConfiguration, ProviderConfiguration,
        ResourceConfiguration,
    },
    group_resource::GroupResource,
};

pub(crate) const AES_KEY_SIZES: &[usize] = &[16, 24, 32];
pub(crate) const SECRETBOX_KEY_SIZES: &[usize] = &[32];
/// How long a call of a plugin may take where nothing else is said.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn required(&mut self, path: &str, detail: &str) {
        self.0.push(format!("{path}: Required value: {detail}"));
    }

    /// `value` as it is to be shown.
    fn invalid(&mut self, path: &str, value: &str, detail: &str) {
        self.0.push(format!("{path}: Invalid value: {value}: {detail}"));
    }
}

/// Nothing where all is well; otherwise all that is wrong, joined as upstream's `ToAggregate` does.
pub(crate) fn problems(configuration: &Configuration) -> Option<String> {
    let mut problems = Problems::default();
    if configuration.resources.is_empty() {
        problems.required("resources", "at least one resources is required");
    }
    let mut kms_names = HashSet::new();
    for (at, entry) in configuration.resources.iter().enumerate() {
        entry_problems(&mut problems, &format!("resources[{at}]"), entry, &mut kms_names);
    }
    aggregate(problems.0)
}

fn entry_problems<'a>(
    problems: &mut Problems,
    path: &str,
    entry: &'a ResourceConfiguration,
    kms_names: &mut HashSet<&'a str>,
) {
    let resources = format!("{path}.resources");
    if entry.resources.is_empty() {
        problems.required(&resources, &format!("at least one {resources} is required"));
    }
    overlap(problems, &resources, &entry.resources);
    for (at, name) in entry.resources.iter().enumerate() {
        if let Some(detail) = wrong_name(name) {
            problems.invalid(&format!("{resources}[{at}]"), &format!("{name:?}"), detail);
        }
    }
    let providers = format!("{path}.providers");
    if entry.providers.is_empty() {
        problems.required(&providers, &format!("at least one {providers} is required"));
    }
    for (at, provider) in entry.providers.iter().enumerate() {
        provider_problems(problems, &format!("{providers}[{at}]"), provider, kms_names);
    }
}

fn overlap(problems: &mut Problems, path: &str, resources: &[String]) {
    let parsed: Vec<_> = resources.iter().map(|it| GroupResource::parse(it)).collect();
    let all = GroupResource::all();
    let (mut has_duplicate, mut has_overlap) = (false, false);
    for (i, one) in parsed.iter().enumerate() {
        for other in parsed.iter().enumerate().filter(|(j, _)| *j != i).map(|it| it.1) {
            // `validateResourceNames`: the first duplicate is not looked at for more.
            if one == other && !has_duplicate {
                has_duplicate = true;
                continue;
            }
            let is_any = |it: &GroupResource| it.resource == "*";
            has_overlap |= *one == all || (one.group == other.group && (is_any(one) || is_any(other)));
        }
    }
    let shown = format!("{resources:?}");
    if has_duplicate {
        problems.invalid(path, &shown, "the same resource cannot be specified multiple times");
    }
    if has_overlap {
        let detail = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked";
        problems.invalid(path, &shown, detail);
    }
}

fn wrong_name(name: &str) -> Option<&'static str> {
    let parsed = GroupResource::parse(name);
    if name.to_lowercase() != name {
        return Some("resource name should not contain capital letters");
    }
    if name == "*" {
        return Some("use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources");
    }
    if matches!(name, "apiserveripinfo" | "serviceipallocations" | "servicenodeportallocations") {
        return Some("resources which do not have REST API/s cannot be encrypted");
    }
    match &*parsed.group {
        "events.k8s.io" => Some(
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file",
        ),
        "extensions" => Some("'extensions' group has been removed and cannot be used for encryption"),
        "*" if parsed.resource != "*" => Some("encrypting the same resource across groups is not supported"),
        _ => None,
    }
}

fn provider_problems<'a>(
    problems: &mut Problems,
    path: &str,
    provider: &'a ProviderConfiguration,
    kms_names: &mut HashSet<&'a str>,
) {
    let names = provider.names();
    // What upstream shows here is the memory of a Go value. Keys are never shown.
    let shown = format!("{names:?}");
    if names.is_empty() {
        let detail =
            "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity";
        problems.invalid(path, &shown, detail);
    } else if names.len() > 1 {
        let detail = "more than one provider specified in a single element, should split into different list elements";
        problems.invalid(path, &shown, detail);
    }
    // Of several the first that is there is looked at (`ValidateEncryptionConfiguration`).
    if let Some(kms) = &provider.kms {
        kms_problems(problems, &format!("{path}.kms"), kms, kms_names);
        kms_names.insert(&kms.name);
    } else if let Some(it) = &provider.aesgcm {
        keys_problems(problems, &format!("{path}.aesgcm.keys"), it, AES_KEY_SIZES);
    } else if let Some(it) = &provider.aescbc {
        keys_problems(problems, &format!("{path}.aescbc.keys"), it, AES_KEY_SIZES);
    } else if let Some(it) = &provider.secretbox {
        keys_problems(problems, &format!("{path}.secretbox.keys"), it, SECRETBOX_KEY_SIZES);
    }
}

fn keys_problems(problems: &mut Problems, path: &str, configuration: &KeysConfiguration, sizes: &[usize]) {
    if configuration.keys.is_empty() {
        problems.required(path, "at least one keys is required");
    }
    for (at, key) in configuration.keys.iter().enumerate() {
        key_problems(problems, &format!("{path}[{at}]"), key, sizes);
    }
}

fn key_problems(problems: &mut Problems, path: &str, key: &KeyConfiguration, sizes: &[usize]) {
    if key.name.is_empty() {
        problems.required(&format!("{path}.name"), "name is a mandatory field for a key");
    }
    let path = format!("{path}.secret");
    if key.secret.is_empty() {
        return problems.required(&path, "secret is a mandatory field for a key");
    }
    const HIDDEN: &str = "\"REDACTED\"";
    match STANDARD.decode(key.secret.replace(['\r', '\n'], "")) {
        Err(_) => problems.invalid(&path, HIDDEN, "secrets must be base64 encoded"),
        Ok(secret) if !sizes.contains(&secret.len()) => {
            let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
            let detail = format!(
                "secret is not of the expected length, got {}, expected one of [{}]",
                secret.len(),
                sizes.join(" ")
            );
            problems.invalid(&path, HIDDEN, &detail);
        }
        Ok(_) => {}
    }
}

fn kms_problems(problems: &mut Problems, path: &str, kms: &KmsConfiguration, names: &HashSet<&str>) {
    let name = format!("{path}.name");
    if kms.name.is_empty() {
        problems.required(&name, "name is a mandatory field for a provider");
    }
    if !kms.is_v1() && kms.name.contains(':') {
        let detail = format!("invalid KMS provider name {}, must not contain ':'", kms.name);
        problems.invalid(&name, &format!("{:?}", kms.name), &detail);
    }
    if names.contains(&*kms.name) {
        let detail = format!("duplicate KMS provider name {}, names must be unique", kms.name);
        problems.invalid(&name, &format!("{:?}", kms.name), &detail);
    }
    if let Some(text) = &kms.timeout {
        match duration::nanos(text) {
            Ok(1..) => {}
            Ok(_) => problems.invalid(&format!("{path}.timeout"), text, "timeout should be a positive value"),
            Err(error) => problems.invalid(&format!("{path}.timeout"), text, &error),
        }
    }
    endpoint_problems(problems, &format!("{path}.endpoint"), &kms.endpoint);
    let size = format!("{path}.cachesize");
    match kms.cachesize {
        Some(n) if !kms.is_v1() => {
            problems.invalid(&size, &n.to_string(), "cachesize is not supported in v2");
        }
        Some(0) => {
            problems.invalid(&size, "0", "cachesize should be a positive value, or negative to disable");
        }
        _ => {}
    }
    if !KmsConfiguration::VERSIONS.contains(&kms.version()) {
        let supported = KmsConfiguration::VERSIONS.join(" and ");
        let detail = format!("unsupported apiVersion apiVersion for KMS provider, only {supported} are supported");
        problems.invalid(&format!("{path}.apiVersion"), &format!("{:?}", kms.version()), &detail);
    }
}

fn endpoint_problems(problems: &mut Problems, path: &str, endpoint: &str) {
    if endpoint.is_empty() {
        return problems.invalid(path, "\"\"", "endpoint is a mandatory field for a kms");
    }
    let scheme = endpoint.split_once("://").map_or("", |it| it.0);
    if scheme != "unix" {
        let detail = format!("unsupported scheme {scheme:?} for KMS provider, only unix is supported");
        problems.invalid(path, &format!("{endpoint:?}"), &detail);
    }
}
