//! Secrets that the parameters of a class name for its driver, with placeholders for what is asked of it (`getSecretReference` of
//! external-provisioner and of external-snapshotter).

use std::collections::BTreeMap;

use corten_meta::Key;

/// Parameters of a class that begin so are not the driver's.
pub const OWN_PARAMETERS: &str = "csi.storage.k8s.io/";

/// What the parameters name as `what`. `known` says what a placeholder stands for; the flag: in a name, not in a namespace.
///
/// # Errors
/// Half of a name, or a placeholder that is none, in upstream's words.
pub fn secret_of(
    parameters: &BTreeMap<String, String>,
    what: &str,
    known: impl Fn(&str, bool) -> Option<String>,
) -> Result<Option<Key>, String> {
    let of = |part: &str| parameters.get(&format!("{OWN_PARAMETERS}{what}-{part}"));
    let (name, namespace) = match (of("name"), of("namespace")) {
        (None, None) => return Ok(None),
        (Some(name), Some(namespace)) => (name, namespace),
        _ => return Err(format!("either name and namespace for {what} secrets specified, Both must be specified")),
    };
    let resolved = |template: &str, is_name: bool| {
        let kind = if is_name { "name" } else { "namespace" };
        let resolved = expand(template, |it| known(it, is_name));
        let resolved = resolved.map_err(|it| format!("error resolving secret {kind} {template:?}: {it}"))?;
        match is_object_name(&resolved) {
            true => Ok(resolved),
            false => Err(format!("{template:?} resolved to {resolved:?} which is not a valid {kind} name")),
        }
    };
    Ok(Some(Key::new(resolved(namespace, false)?, resolved(name, true)?)))
}

/// Replaces each `${token}`.
fn expand(template: &str, known: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut text, mut rest, mut unknown) = (String::new(), template, Vec::new());
    while let Some((before, after)) = rest.split_once("${") {
        let (token, after) = after.split_once('}').ok_or("a placeholder does not end")?;
        text.push_str(before);
        match known(token) {
            Some(it) => text.push_str(&it),
            None => unknown.push(format!("{token:?}")),
        }
        rest = after;
    }
    if !unknown.is_empty() {
        return Err(format!("invalid tokens: [{}]", unknown.join(" ")));
    }
    text.push_str(rest);
    Ok(text)
}

/// As `IsDNS1123Subdomain`.
fn is_object_name(name: &str) -> bool {
    let is_label = |it: &str| {
        let inner = it.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-');
        inner && !it.is_empty() && !it.starts_with('-') && !it.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}
