//! A container's environment and the `$(VAR)` expansion in it, its command and its arguments.

use std::collections::BTreeMap;

use corten_api::core::v1::{Container, EnvVar, EnvVarSource, Pod};
use corten_meta::Key;

use crate::{
    Source, SourceKind,
    downward::{self, Surroundings},
    sources::{Lookup, Sources},
};

/// Why a container's configuration cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConfigError {
    /// A ConfigMap or Secret has not been read yet; the answer is on its way.
    Unread,
    /// What the status and the event say.
    Broken(String),
}

/// The variables in the order they are defined; a later one of the same name replaces an earlier one's value.
pub(crate) fn environment(
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    around: &Surroundings<'_>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut env = Environment::default();
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.clone().unwrap_or_default();
        let (kind, name, optional) = match (&from.config_map_ref, &from.secret_ref) {
            (Some(it), _) => (SourceKind::ConfigMap, &it.name, it.optional),
            (_, Some(it)) => (SourceKind::Secret, &it.name, it.optional),
            _ => continue,
        };
        let source = Source { kind, key: Key::new(&*namespace, &**name) };
        let Some(data) = found(sources, &source, optional)? else { continue };
        for (key, value) in data {
            env.set(format!("{prefix}{key}"), String::from_utf8_lossy(value).into_owned());
        }
    }
    for var in container.env.iter().flatten() {
        if let Some(value) = value_of(var, pod, container, sources, around, &env)? {
            env.set(var.name.clone(), value);
        }
    }
    Ok(env.vars)
}

#[derive(Default)]
struct Environment {
    vars: Vec<(String, String)>,
    index: BTreeMap<String, usize>,
}

impl Environment {
    fn set(&mut self, name: String, value: String) {
        if let Some(at) = self.index.get(&name) {
            self.vars[*at].1 = value;
            return;
        }
        self.index.insert(name.clone(), self.vars.len());
        self.vars.push((name, value));
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.index.get(name).map(|it| self.vars[*it].1.as_str())
    }
}

fn value_of(
    var: &EnvVar,
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    around: &Surroundings<'_>,
    env: &Environment,
) -> Result<Option<String>, ConfigError> {
    match (&var.value, &var.value_from) {
        (Some(value), _) if !value.is_empty() => Ok(Some(expand(value, |it| env.get(it).map(str::to_owned)))),
        (_, Some(from)) => value_from(from, pod, container, sources, around),
        _ => Ok(Some(String::new())),
    }
}

fn value_from(
    from: &EnvVarSource,
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    around: &Surroundings<'_>,
) -> Result<Option<String>, ConfigError> {
    let broken = |it: Result<String, String>| it.map(Some).map_err(ConfigError::Broken);
    if let Some(it) = &from.field_ref {
        return broken(downward::field(pod, it, around));
    }
    if let Some(it) = &from.resource_field_ref {
        let of = it.container_name.as_deref().filter(|it| !it.is_empty());
        let other = of.and_then(|name| crate::pod::container_named(pod, name));
        return broken(downward::resource(it, other.unwrap_or(container), around));
    }
    let (kind, name, key, optional) = match (&from.config_map_key_ref, &from.secret_key_ref) {
        (Some(it), _) => (SourceKind::ConfigMap, &it.name, &it.key, it.optional),
        (_, Some(it)) => (SourceKind::Secret, &it.name, &it.key, it.optional),
        _ => return Err(ConfigError::Broken("unsupported source of an environment variable's value".into())),
    };
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    let source = Source { kind, key: Key::new(namespace, &**name) };
    let Some(data) = found(sources, &source, optional)? else { return Ok(None) };
    match data.get(key) {
        Some(value) => Ok(Some(String::from_utf8_lossy(value).into_owned())),
        None if optional == Some(true) => Ok(None),
        None => {
            let kind = if kind == SourceKind::ConfigMap { "ConfigMap" } else { "Secret" };
            Err(ConfigError::Broken(format!("couldn't find key {key} in {kind} {}", source.key)))
        }
    }
}

type Data = BTreeMap<String, Vec<u8>>;

/// The data of a source; `None` where it is missing and optional.
fn found<'a>(sources: &'a Sources, source: &Source, optional: Option<bool>) -> Result<Option<&'a Data>, ConfigError> {
    match sources.lookup(source) {
        Lookup::Found(data) => Ok(Some(data)),
        Lookup::Missing if optional == Some(true) => Ok(None),
        Lookup::Missing => Err(ConfigError::Broken(source.not_found())),
        Lookup::Unread => Err(ConfigError::Unread),
    }
}

/// Replaces `$(NAME)` by its value and `$$` by `$`; a name that is not known stays as it is written.
pub(crate) fn expand(text: &str, value_of: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|it| it.split_once(')')) {
            match value_of(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_as_upstream() {
        let value = |name: &str| (name == "A").then(|| "x".to_owned());
        for (text, expanded) in [
            ("$(A)-$(A)", "x-x"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$x"),
            ("$(B)", "$(B)"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("100$", "100$"),
            ("", ""),
        ] {
            assert_eq!(expand(text, value), expanded, "{text}");
        }
    }
}
