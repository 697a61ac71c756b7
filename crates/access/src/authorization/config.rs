//! From a configuration as it is written to what is asked of each request; with everything that is wrong with it.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use corten_meta::{duration, field};
use corten_webhook::ClientConfig;

use super::{
    compiled::{Compiled, CompiledWebhook, ReviewVersion, Type},
    conditions::Conditions,
    words::{Authorizer, Configuration, ConnectionInfo, Webhook},
};
use crate::{
    configuration,
    problems::{ConfigError, Problems},
};

/// What can stand as `type`, sorted.
const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
const TIMEOUT_MAX: Duration = Duration::from_secs(30);
/// More are asked one after another before a request is answered than anybody waits for.
const AUTHORIZERS_MAX: usize = 64;

/// # Errors
/// The text is no configuration, or says what cannot be.
pub(super) fn read(text: &str) -> Result<Compiled, ConfigError> {
    configuration::read(text, compile)
}

fn compile(found: &Configuration, problems: &mut Problems) -> Compiled {
    let mut compiled = Compiled { authorizers: Vec::new() };
    if found.authorizers.is_empty() {
        problems.required("authorizers", "at least one authorization mode must be defined");
    }
    if found.authorizers.len() > AUTHORIZERS_MAX {
        problems.too_many("authorizers", found.authorizers.len(), AUTHORIZERS_MAX);
        return compiled;
    }
    let (mut types, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (at, it) in found.authorizers.iter().enumerate() {
        let path = format!("authorizers[{at}]");
        let (of, at_type) = (&*it.of, format!("{path}.type"));
        if of.is_empty() {
            problems.required(&at_type, "");
            continue;
        }
        if !TYPES.contains(&of) {
            problems.not_supported(&at_type, of, &TYPES);
            continue;
        }
        if of == "ABAC" {
            problems.invalid(&at_type, of, "this server has no ABAC: write its policies as roles, and use RBAC");
            continue;
        }
        if !types.insert(of) && of != "Webhook" {
            problems.duplicate(&at_type, of);
            continue;
        }
        name(&format!("{path}.name"), &it.name, &mut names, problems);
        let of_type = authorizer(&path, it, problems);
        compiled.authorizers.extend(of_type.map(|of| (of, it.name.clone())));
    }
    compiled
}

fn name<'a>(path: &str, name: &'a str, seen: &mut BTreeSet<&'a str>, problems: &mut Problems) {
    let wrong = field::dns1123_subdomain(name);
    if name.is_empty() {
        problems.required(path, "");
    } else if !seen.insert(name) {
        problems.duplicate(path, name);
    } else if !wrong.is_empty() {
        problems.invalid(path, name, &format!("authorizer name is invalid: {}", wrong.join(", ")));
    }
}

fn authorizer(path: &str, of: &Authorizer, problems: &mut Problems) -> Option<Type> {
    let at = format!("{path}.webhook");
    if let Some(simple) = Type::simple(&of.of) {
        if of.webhook.is_some() {
            problems.invalid(&at, "non-null", "may only be specified when type=Webhook");
        }
        return Some(simple);
    }
    let Some(found) = &of.webhook else {
        problems.required(&at, "required when type=Webhook");
        return None;
    };
    webhook(path, found, problems).map(|it| Type::Webhook(Box::new(it)))
}

/// `ValidateWebhookConfiguration`: the paths of what is wrong leave `webhook` out.
fn webhook(path: &str, of: &Webhook, problems: &mut Problems) -> Option<CompiledWebhook> {
    let child = |name: &str| format!("{path}.{name}");
    let timeout = length(&child("timeout"), &of.timeout, Some(TIMEOUT_MAX), problems);
    let authorized = length(&child("authorizedTTL"), &of.authorized_ttl, None, problems);
    let unauthorized = length(&child("unauthorizedTTL"), &of.unauthorized_ttl, None, problems);
    let (at, text) = (child("subjectAccessReviewVersion"), &*of.subject_access_review_version);
    let version = ReviewVersion::of(text);
    match text {
        "" => problems.required(&at, ""),
        _ if version.is_none() => problems.not_supported(&at, text, &["v1", "v1beta1"]),
        _ => {}
    }
    let at = child("matchConditionSubjectAccessReviewVersion");
    match &*of.match_condition_subject_access_review_version {
        "" if of.match_conditions.is_empty() => {}
        "" => problems.required(&at, "required if match conditions are specified"),
        "v1" => {}
        other => problems.not_supported(&at, other, &["v1"]),
    }
    let at = child("failurePolicy");
    match &*of.failure_policy {
        "" => problems.required(&at, ""),
        "NoOpinion" | "Deny" => {}
        other => problems.not_supported(&at, other, &["NoOpinion", "Deny"]),
    }
    let client = connection(&child("connectionInfo"), &of.connection_info, problems);
    let sources = of.match_conditions.iter().map(|it| &*it.expression);
    let conditions = Conditions::compile(&child("matchConditions"), sources, problems);
    let kept = |is_kept: Option<bool>, time: Duration| if is_kept == Some(false) { Duration::ZERO } else { time };
    Some(CompiledWebhook {
        client: client?,
        timeout: timeout?,
        authorized: kept(of.cache_authorized_requests, authorized?),
        unauthorized: kept(of.cache_unauthorized_requests, unauthorized?),
        version: version?,
        denies_on_error: of.failure_policy == "Deny",
        conditions,
    })
}

fn length(path: &str, text: &str, max: Option<Duration>, problems: &mut Problems) -> Option<Duration> {
    if text.is_empty() {
        problems.required(path, "");
        return None;
    }
    let nanos = match duration::nanos(text) {
        Ok(0) => {
            problems.required(path, "");
            return None;
        }
        Ok(nanos) => nanos,
        Err(reason) => {
            problems.invalid(path, text, &reason);
            return None;
        }
    };
    let found = u64::try_from(nanos).ok().map(Duration::from_nanos);
    let found = found.filter(|it| max.is_none_or(|max| *it <= max));
    if found.is_none() {
        let detail = if max.is_some() { "must be > 0s and <= 30s" } else { "must be > 0s" };
        problems.invalid(path, text, detail);
    }
    found
}

fn connection(path: &str, of: &ConnectionInfo, problems: &mut Problems) -> Option<ClientConfig> {
    let at = format!("{path}.kubeConfigFile");
    match (&*of.of, of.kube_config_file.as_deref()) {
        ("", _) => problems.required(&format!("{path}.type"), ""),
        ("InClusterConfig", Some(file)) => problems.invalid(&at, file, "can only be set when type=KubeConfigFile"),
        // `rest.ErrNotInCluster`, outside of a Pod: in one the API server itself would be asked.
        ("InClusterConfig", None) => problems.invalid(
            &format!("{path}.type"),
            "InClusterConfig",
            "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined",
        ),
        ("KubeConfigFile", None | Some("")) => problems.required(&at, ""),
        ("KubeConfigFile", Some(file)) => return kubeconfig(&at, file, problems),
        (other, _) => {
            problems.not_supported(&format!("{path}.type"), other, &["InClusterConfig", "KubeConfigFile"]);
        }
    }
    None
}

fn kubeconfig(path: &str, file: &str, problems: &mut Problems) -> Option<ClientConfig> {
    if !Path::new(file).is_absolute() {
        problems.invalid(path, file, "must be an absolute path");
        return None;
    }
    match fs::metadata(file) {
        Err(error) => problems.invalid(path, file, &format!("error loading file: {error}")),
        Ok(found) if !found.is_file() => problems.invalid(path, file, "must be a regular file"),
        Ok(_) => match ClientConfig::of_kubeconfig(Path::new(file)) {
            Ok(config) => return Some(config),
            Err(error) => problems.invalid(path, file, &error.0),
        },
    }
    None
}
