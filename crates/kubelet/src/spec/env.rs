//! A container's environment and the `$(VAR)` expansion in it, its command and its arguments.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::core::v1::{Container, EnvVar, EnvVarSource, FileKeySelector, Pod};
use corten_meta::Key;

use crate::{
    Source, SourceKind,
    spec::{
        downward::{self, DownwardContext},
        env_file::{self, EnvFilesRead},
        host_ports::ChosenPorts,
        pod::{is_static, spec_of},
        sources::{Lookup, Sources},
    },
};

/// What a container's environment may come to, and its command and arguments. Linux starts no program with more, and a value
/// that names another twice doubles it: a few lines would come to more than any machine has.
const BYTES_MAX: usize = 8 << 20;

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
    files: &EnvFilesRead,
    downward_context: &DownwardContext<'_>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let namespace = pod.metadata.namespace.clone().unwrap_or_default();
    // A pod that does not come from the API must not wait for it.
    if !downward_context.services.are_known && !is_static(pod) {
        return Err(ConfigError::Unread);
    }
    let links = spec_of(pod).enable_service_links != Some(false);
    let mut env =
        Environment { given: downward_context.services.variables(&namespace, links), ..Environment::default() };
    env.given.extend(ChosenPorts::of(pod).variables());
    let mut files_read = BTreeMap::new();
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
            env.set(format!("{prefix}{key}"), String::from_utf8_lossy(value).into_owned())?;
        }
    }
    for var in container.env.iter().flatten() {
        env.given.remove(&var.name);
        let of_file = var.value_from.as_ref().and_then(|it| it.file_key_ref.as_ref());
        let value = match of_file {
            Some(it) => value_in_file(it, files, &mut files_read)?,
            None => value_of(var, pod, container, sources, downward_context, &env)?,
        };
        if let Some(value) = value {
            env.set(var.name.clone(), value)?;
        }
    }
    Ok(env.finished())
}

#[derive(Default)]
struct Environment {
    vars: Vec<(String, String)>,
    index: BTreeMap<String, usize>,
    bytes: usize,
    /// Of Services and of ports that were chosen: seen by those that are defined, which come first and replace them.
    given: BTreeMap<String, String>,
}

impl Environment {
    fn set(&mut self, name: String, value: String) -> Result<(), ConfigError> {
        self.bytes = self.bytes.saturating_add(value.len());
        match self.index.get(&name) {
            Some(at) => {
                self.bytes = self.bytes.saturating_sub(self.vars[*at].1.len());
                self.vars[*at].1 = value;
            }
            None => {
                self.bytes = self.bytes.saturating_add(name.len());
                self.index.insert(name.clone(), self.vars.len());
                self.vars.push((name, value));
            }
        }
        if self.bytes > BYTES_MAX { Err(too_long("environment")) } else { Ok(()) }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let own = self.index.get(name).map(|it| self.vars[*it].1.as_str());
        own.or_else(|| self.given.get(name).map(String::as_str))
    }

    fn finished(self) -> Vec<(String, String)> {
        let Self { mut vars, index, given, .. } = self;
        vars.extend(given.into_iter().filter(|it| !index.contains_key(&it.0)));
        vars
    }
}

fn value_of(
    var: &EnvVar,
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    downward_context: &DownwardContext<'_>,
    env: &Environment,
) -> Result<Option<String>, ConfigError> {
    match (&var.value, &var.value_from) {
        (Some(value), _) if !value.is_empty() => expand(value, |it| env.get(it)).map(Some),
        (_, Some(from)) => value_from(from, pod, container, sources, downward_context),
        _ => Ok(Some(String::new())),
    }
}

fn value_from(
    from: &EnvVarSource,
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    downward_context: &DownwardContext<'_>,
) -> Result<Option<String>, ConfigError> {
    let broken = |it: Result<String, String>| it.map(Some).map_err(ConfigError::Broken);
    if let Some(it) = &from.field_ref {
        return broken(downward::field(pod, it, downward_context));
    }
    if let Some(it) = &from.resource_field_ref {
        let of = it.container_name.as_deref().filter(|it| !it.is_empty());
        let other = of.and_then(|name| crate::spec::pod::container_named(pod, name));
        return broken(downward::resource(it, other.unwrap_or(container), downward_context));
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

/// The value of a key of a file; `None` where that is missing and may be.
fn value_in_file(
    from: &FileKeySelector,
    files: &EnvFilesRead,
    read: &mut BTreeMap<(String, String), Variables>,
) -> Result<Option<String>, ConfigError> {
    let files = match files {
        EnvFilesRead::Done(Ok(files)) => files,
        EnvFilesRead::Done(Err(message)) => return Err(ConfigError::Broken(message.clone())),
        EnvFilesRead::No | EnvFilesRead::Reading => return Err(ConfigError::Unread),
    };
    let optional = from.optional == Some(true);
    let FileKeySelector { key, path, volume_name, .. } = from;
    let Some(content) = files.get(&(volume_name.clone(), path.clone())).and_then(Option::as_ref) else {
        let missing = format!("failed to open environment variable file {path:?} of volume {volume_name:?}");
        return if optional {
            Ok(None)
        } else {
            Err(ConfigError::Broken(format!("{missing}: no such file or directory")))
        };
    };
    // Once for all variables that are in it.
    let variables = read
        .entry((volume_name.clone(), path.clone()))
        .or_insert_with(|| env_file::variables(&String::from_utf8_lossy(content)));
    let broken = |it: &String| ConfigError::Broken(format!("environment variable file {path:?}: {it}"));
    match variables.as_ref().map_err(broken)?.get(key) {
        None if !optional => {
            Err(ConfigError::Broken(format!("environment variable key {key:?} not found in file {path:?}")))
        }
        found => Ok(found.cloned()),
    }
}

/// What one file defines, or what is wrong with it.
type Variables = Result<BTreeMap<String, String>, String>;

type Data = BTreeMap<String, Arc<[u8]>>;

/// The data of a source; `None` where it is missing and optional.
fn found<'a>(sources: &'a Sources, source: &Source, optional: Option<bool>) -> Result<Option<&'a Data>, ConfigError> {
    match sources.lookup(source) {
        Lookup::Found(data) => Ok(Some(data)),
        Lookup::Missing if optional == Some(true) => Ok(None),
        Lookup::Missing => Err(ConfigError::Broken(source.not_found())),
        Lookup::Unread => Err(ConfigError::Unread),
    }
}

fn too_long(what: &str) -> ConfigError {
    ConfigError::Broken(format!("the {what} is longer than {BYTES_MAX} bytes"))
}

/// Replaces `$(NAME)` by its value and `$$` by `$`; a name that is not known stays as it is written.
///
/// # Errors
/// It would be longer than any program can be given.
pub(crate) fn expand<'v>(text: &str, value_of: impl Fn(&str) -> Option<&'v str>) -> Result<String, ConfigError> {
    let mut out = String::with_capacity(text.len().min(BYTES_MAX));
    let mut rest = text;
    // Behind the last one no name is closed: whoever looked for its end each time would go through all that is left.
    let mut closes = text.matches(')').count();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        closes -= rest[..at].matches(')').count();
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) =
            rest.strip_prefix('(').filter(|_| closes > 0).and_then(|it| it.split_once(')'))
        {
            match value_of(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            closes -= 1;
            rest = after;
        } else {
            out.push('$');
        }
        if out.len() > BYTES_MAX {
            return Err(too_long("text with its variables"));
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands_as_upstream() {
        let value = |name: &str| (name == "A").then_some("x");
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
            assert_eq!(expand(text, value), Ok(expanded.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_doubles_itself_ends() {
        // Each names the one before it twice: all of them would make 2 to the 60 letters.
        let mut env = Environment::default();
        let values = (0..60).map(|it| if it == 0 { "x".to_owned() } else { format!("$(V{0})$(V{0})", it - 1) });
        let result = values.enumerate().try_for_each(|(it, value)| {
            let value = expand(&value, |name| env.get(name))?;
            env.set(format!("V{it}"), value)
        });
        assert_eq!(result, Err(too_long("environment")));
        assert!(env.bytes < 2 * BYTES_MAX);
        let large = "x".repeat(1 << 20);
        assert!(expand(&"$(A)".repeat(100_000), |_| Some(&large)).is_err());
    }

    #[test]
    fn what_is_not_closed_is_looked_for_once() {
        for text in ["$(".repeat(1 << 20), format!("){}", "$(".repeat(1 << 20)), "$(A".repeat(1 << 20)] {
            assert_eq!(expand(&text, |_| None), Ok(text));
        }
    }
}
