//! ConfigMaps, Secrets, keys and claims that are named and not there.

use corten_api::resources::{CONFIG_MAPS, SECRETS};
use corten_meta::{Key, Resource};
use serde_json::Value;

use super::case::{Advice, Case};
use crate::why::{
    command::{kubectl, merge},
    fields::{items, text},
    nearest::nearest,
};

pub(super) async fn missing(case: &Case<'_>) -> Option<Advice> {
    let message = &case.wait.message;
    for (word, resource) in [("configmap", CONFIG_MAPS), ("secret", SECRETS)] {
        if let Some((_, rest)) = message.split_once(&format!("{word} \""))
            && let Some((name, _)) = rest.split_once("\" not found")
        {
            return Some(object(case, word, &resource, name).await);
        }
    }
    for (word, resource) in [("ConfigMap", CONFIG_MAPS), ("Secret", SECRETS)] {
        // "couldn't find key host in ConfigMap shop/app-config"
        if let Some((_, rest)) = message.split_once("couldn't find key ")
            && let Some((key, rest)) = rest.split_once(&format!(" in {word} "))
        {
            let name = rest.split(['/', ' ', ';']).nth(1).unwrap_or(rest);
            return Some(key_of(case, &word.to_lowercase(), &resource, name, key).await);
        }
    }
    // "references non-existent config key: host"
    if let Some((_, rest)) = message.split_once("references non-existent ") {
        let (what, key) = rest.split_once(" key: ")?;
        let (word, resource) = if what == "secret" { ("secret", SECRETS) } else { ("configmap", CONFIG_MAPS) };
        let key = key.split([';', ' ']).next().unwrap_or(key);
        let name = volume_source(case.object, word, message)?;
        return Some(key_of(case, word, &resource, &name, key).await);
    }
    if message.contains("runAsNonRoot") {
        return Some(Advice::run(case.edit()).headline(message.clone()).hints(case.edit_hints()));
    }
    None
}

async fn object(case: &Case<'_>, word: &str, resource: &Resource, name: &str) -> Advice {
    let list = case.reader.list(resource, case.namespace).await;
    let names: Vec<&str> = list.iter().map(|it| text(it, "/metadata/name")).collect();
    let near = nearest(name, names.iter().copied());
    let keys = wanted_keys(case.object, name);
    let next = create(case, word, name, &keys);
    let mut advice = Advice::run(next)
        .headline(format!("there is no {word} {name:?} in {}", case.namespace))
        .who(format!("whoever wrote {}, or whoever makes the {word}", case.author));
    if let Some(near) = near {
        advice = advice.hint(format!("there is one called {near:?}: if that is meant, {} must name it", case.author));
    }
    if !keys.is_empty() {
        advice = advice.hint(format!("of it the pod uses: {}", keys.join(", ")));
    }
    advice.hint("the pod goes on by itself within a moment of its being made")
}

fn create(case: &Case<'_>, word: &str, name: &str, keys: &[String]) -> String {
    let mut words: Vec<String> = vec!["create".into(), word.into()];
    if word == "secret" {
        words.push("generic".into());
    }
    words.push(name.into());
    words.extend(keys.iter().map(|it| format!("--from-literal={it}=VALUE")));
    kubectl(case.namespace, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

pub(super) async fn key_of(case: &Case<'_>, word: &str, resource: &Resource, name: &str, key: &str) -> Advice {
    let object = case.reader.get(resource, &Key::new(case.namespace, name)).await;
    let keys: Vec<String> = ["data", "binaryData"]
        .iter()
        .filter_map(|it| object.as_ref()?.get(*it)?.as_object())
        .flat_map(|it| it.keys().cloned())
        .collect();
    let field = if word == "secret" { "stringData" } else { "data" };
    let patch = serde_json::json!({ field: { key: "VALUE" } });
    let mut advice = Advice::run(merge(case.namespace, &format!("{word}/{name}"), &patch))
        .headline(format!("the {word} {name:?} has no key {key:?}"))
        .who(format!("whoever wrote {word}/{name}, or {}", case.author));
    if object.is_some() {
        let has = if keys.is_empty() { "it has none".to_owned() } else { format!("it has: {}", keys.join(", ")) };
        advice = advice.hint(has);
    }
    if let Some(near) = nearest(key, keys.iter().map(String::as_str)) {
        advice = advice.hint(format!("if {near:?} is meant, {} must name that", case.author));
    }
    advice
}

/// The keys of a ConfigMap or Secret that the Pod names one by one.
fn wanted_keys(pod: &Value, name: &str) -> Vec<String> {
    let containers = items(pod, "/spec/initContainers").iter().chain(items(pod, "/spec/containers"));
    let refs = containers.flat_map(|it| items(it, "/env")).filter_map(|it| {
        let from = it.get("valueFrom")?;
        from.get("configMapKeyRef").or_else(|| from.get("secretKeyRef"))
    });
    let from_env = refs.filter(|it| it["name"] == name).map(|it| text(it, "/key").to_owned());
    let volumes = items(pod, "/spec/volumes").iter();
    let sources = volumes.filter_map(|it| it.get("configMap").or_else(|| it.get("secret")));
    let named = sources.filter(|it| it["name"] == name || it["secretName"] == name);
    let from_volumes = named.flat_map(|it| items(it, "/items")).map(|it| text(it, "/key").to_owned());
    let mut keys: Vec<String> = from_env.chain(from_volumes).filter(|it| !it.is_empty()).collect();
    keys.dedup();
    keys
}

/// The object behind the volume a message is about: `MountVolume.SetUp failed for volume "conf" : …`.
fn volume_source(pod: &Value, word: &str, message: &str) -> Option<String> {
    let volume = message.split("volume \"").nth(1)?.split('"').next()?;
    let volume = items(pod, "/spec/volumes").iter().find(|it| it["name"] == volume)?;
    let name = if word == "secret" { text(volume, "/secret/secretName") } else { text(volume, "/configMap/name") };
    (!name.is_empty()).then(|| name.to_owned())
}
