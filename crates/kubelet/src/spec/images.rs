//! Names of images, and the credentials to pull them with.

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::core::v1::{Container, Pod};
use corten_meta::Key;
use serde_json::Value;

use crate::{
    Credential, Source, SourceKind,
    spec::{
        pod::spec_of,
        sources::{Lookup, Sources},
    },
};

/// What to do about an image's presence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PullPolicy {
    Always,
    IfNotPresent,
    Never,
}

pub(crate) fn policy(container: &Container) -> PullPolicy {
    match container.image_pull_policy.as_deref() {
        Some("Always") => PullPolicy::Always,
        Some("Never") => PullPolicy::Never,
        Some("IfNotPresent") => PullPolicy::IfNotPresent,
        // The API server's defaults fill this in; the rule is the same.
        _ if full_name(container.image.as_deref().unwrap_or_default())
            .is_ok_and(|it| it.ends_with(":latest") && !it.contains('@')) =>
        {
            PullPolicy::Always
        }
        _ => PullPolicy::IfNotPresent,
    }
}

/// The name with its tag: `:latest` where it has neither tag nor digest; or why it is no name.
pub(crate) fn full_name(image: &str) -> Result<String, &'static str> {
    const FORMAT: &str = "invalid reference format";
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let is_tag = |it: &str| {
        let mut bytes = it.bytes();
        bytes.next().is_some_and(|it| it.is_ascii_alphanumeric() || it == b'_')
            && it.len() <= 128
            && bytes.all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'.' | b'-'))
    };
    let is_digest = |it: &str| {
        it.split_once(':').is_some_and(|(algorithm, hex)| {
            !algorithm.is_empty() && hex.len() >= 32 && hex.bytes().all(|it| it.is_ascii_hexdigit())
        })
    };
    if tag.is_some_and(|it| !is_tag(it)) || digest.is_some_and(|it| !is_digest(it)) {
        return Err(FORMAT);
    }
    let (domain, path) = match name.split_once('/') {
        Some((domain, path)) if domain.contains(['.', ':']) || domain == "localhost" => (Some(domain), path),
        _ => (None, name),
    };
    let is_domain = |it: &str| {
        !it.is_empty()
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'.' | b'-' | b':' | b'[' | b']'))
    };
    if domain.is_some_and(|it| !is_domain(it)) || !path.to_ascii_lowercase().split('/').all(is_component) {
        return Err(FORMAT);
    }
    if path.bytes().any(|it| it.is_ascii_uppercase()) {
        return Err("invalid reference format: repository name must be lowercase");
    }
    Ok(if tag.is_none() && digest.is_none() { format!("{image}:latest") } else { image.to_owned() })
}

/// Letters and digits, with single `.`, one or two `_`, or any number of `-` between them.
fn is_component(part: &str) -> bool {
    let is_word = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let bytes = part.as_bytes();
    bytes.first().is_some_and(|it| is_word(*it))
        && bytes.last().is_some_and(|it| is_word(*it))
        && bytes.iter().all(|it| is_word(*it) || matches!(it, b'.' | b'_' | b'-'))
        && !part.contains("..")
        && !part.contains("___")
        && !["._", "_.", ".-", "-.", "_-", "-_"].iter().any(|it| part.contains(it))
}

/// Those of the pod's pull secrets that are for the image's registry, in the order the pod names them.
pub(crate) fn credentials(pod: &Pod, image: &str, sources: &Sources) -> Vec<Credential> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let registry = registry_of(image);
    let mut credentials = Vec::new();
    for secret in spec_of(pod).image_pull_secrets.iter().flatten() {
        let source = Source { kind: SourceKind::Secret, key: Key::new(namespace, &*secret.name) };
        let Lookup::Found(data) = sources.lookup(&source) else { continue };
        let config = data.get(".dockerconfigjson").and_then(|it| serde_json::from_slice::<Value>(it).ok());
        let auths = config.and_then(|mut it| it.get_mut("auths").map(Value::take));
        let old = || data.get(".dockercfg").and_then(|it| serde_json::from_slice::<Value>(it).ok());
        let Some(Value::Object(auths)) = auths.or_else(old) else { continue };
        for (host, entry) in auths {
            if registry_of_key(&host) == registry {
                credentials.extend(credential(&entry, registry));
            }
        }
    }
    credentials
}

/// True where a pull secret that exists has not been read yet.
pub(crate) fn awaits_secret(pod: &Pod, sources: &Sources) -> bool {
    pull_secrets(pod, sources).any(|it| matches!(it.1, Lookup::Unread))
}

/// The pull secrets that the pod names and that are not there: it goes on without them.
pub(crate) fn missing_secrets<'a>(pod: &'a Pod, sources: &'a Sources) -> Vec<&'a str> {
    pull_secrets(pod, sources).filter(|it| matches!(it.1, Lookup::Missing)).map(|it| it.0).collect()
}

fn pull_secrets<'a>(pod: &'a Pod, sources: &'a Sources) -> impl Iterator<Item = (&'a str, Lookup<'a>)> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    spec_of(pod).image_pull_secrets.iter().flatten().map(move |it| {
        let source = Source { kind: SourceKind::Secret, key: Key::new(namespace, &*it.name) };
        (it.name.as_str(), sources.lookup(&source))
    })
}

fn registry_of(image: &str) -> &str {
    match image.split_once('/') {
        Some((domain, _)) if domain.contains(['.', ':']) || domain == "localhost" => domain,
        _ => "docker.io",
    }
}

/// `https://index.docker.io/v1/` and the like → the registry's host.
fn registry_of_key(key: &str) -> &str {
    let host = key.trim_start_matches("https://").trim_start_matches("http://");
    let host = host.split('/').next().unwrap_or(host);
    if host == "index.docker.io" { "docker.io" } else { host }
}

fn credential(entry: &Value, registry: &str) -> Option<Credential> {
    let text = |name: &str| entry[name].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let (username, password) = match (text("username"), text("password")) {
        (Some(username), Some(password)) => (username, password),
        _ => {
            let auth = STANDARD.decode(text("auth")?).ok()?;
            let auth = String::from_utf8(auth).ok()?;
            let (username, password) = auth.split_once(':')?;
            (username.to_owned(), password.to_owned())
        }
    };
    Some(Credential { username, password, registry: registry.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (image, full) in [
            ("redis", Ok("redis:latest")),
            ("redis:5.0", Ok("redis:5.0")),
            ("localhost:5000/a/b", Ok("localhost:5000/a/b:latest")),
            ("reg.example.com:5000/x:1", Ok("reg.example.com:5000/x:1")),
            ("a--b/c__d", Ok("a--b/c__d:latest")),
            ("", Err("invalid reference format")),
            ("a b", Err("invalid reference format")),
            ("-a", Err("invalid reference format")),
            ("a:", Err("invalid reference format")),
            ("a//b", Err("invalid reference format")),
            ("a@sha256:12", Err("invalid reference format")),
            ("Redis", Err("invalid reference format: repository name must be lowercase")),
        ] {
            assert_eq!(full_name(image), full.map(str::to_owned), "{image}");
        }
        let digest = format!("a@sha256:{}", "0".repeat(64));
        assert_eq!(full_name(&digest), Ok(digest.clone()));
    }

    #[test]
    fn registries_and_passwords() {
        for (image, key, same) in [
            ("redis", "https://index.docker.io/v1/", true),
            ("reg.example.com/a", "reg.example.com", true),
            ("reg.example.com/a", "http://reg.example.com/v2/", true),
            ("reg.example.com:5000/a", "reg.example.com", false),
        ] {
            assert_eq!(registry_of(image) == registry_of_key(key), same, "{image} {key}");
        }
        let entry = serde_json::json!({"auth": STANDARD.encode("me:pass:word")});
        let expected = Credential { username: "me".into(), password: "pass:word".into(), registry: "r".into() };
        assert_eq!(credential(&entry, "r"), Some(expected));
    }
}
