//! Containers that do not start for a file: a key that is not there, a folder that is none, a script that nobody may run.

use corten_api::resources::{CONFIG_MAPS, SECRETS};
use corten_meta::{Key, Resource};
use serde_json::Value;

use super::{
    case::{Advice, Case},
    containers::command_of,
    sources,
};
use crate::why::fields::{items, text};

const NO_FOLDER: &str = "not a directory";
const NO_RIGHT: &str = "permission denied";

/// Could the container not be started for a file?
pub(super) fn is_about(case: &Case<'_>) -> bool {
    let message = case.wait.message.to_lowercase();
    let is_start = matches!(&*case.wait.reason, "RunContainerError" | "CreateContainerError")
        || case.wait.reason == "CrashLoopBackOff" && message.contains("it cannot be started");
    is_start && (message.contains(NO_FOLDER) || message.contains(NO_RIGHT))
}

pub(super) async fn of(case: &Case<'_>) -> Option<Advice> {
    let (container, name) = (case.container()?, case.container_name());
    let is_about_folder = case.wait.message.to_lowercase().contains(NO_FOLDER);
    let folder = text(container, "/workingDir");
    if is_about_folder && !folder.is_empty() && case.wait.message.contains(folder) {
        return Some(
            Advice::run(case.edit())
                .headline(format!("container {name} cannot start: its workingDir {folder} is a file, or below one"))
                .hint("`workingDir` must name a folder: it is made where there is none")
                .hints(case.edit_hints()),
        );
    }
    if is_about_folder { no_key(case, container).await } else { no_right(case, container) }
}

/// A ConfigMap or Secret that is the volume of this name: its word, its resource, its name, and what the volume says of it.
fn source<'c>(pod: &'c Value, volume: &Value) -> Option<(&'static str, Resource, &'c str, &'c Value)> {
    let volume = items(pod, "/spec/volumes").iter().find(|it| it["name"] == *volume)?;
    let (map, secret) = (&volume["configMap"], &volume["secret"]);
    if map.is_object() {
        return Some(("configmap", CONFIG_MAPS, text(map, "/name"), map));
    }
    secret.is_object().then(|| ("secret", SECRETS, text(secret, "/secretName"), secret))
}

/// A `subPath` that no key has is made as a folder, and that cannot be mounted over a file.
async fn no_key(case: &Case<'_>, container: &Value) -> Option<Advice> {
    for mount in items(container, "/volumeMounts") {
        let path = text(mount, "/subPath");
        let Some((word, resource, name, said)) = source(case.object, &mount["name"]).filter(|_| !path.is_empty())
        else {
            continue;
        };
        let chosen = items(said, "/items");
        let key = match chosen.iter().find(|it| it["path"] == path) {
            Some(it) => text(it, "/key"),
            None if chosen.is_empty() => path,
            None => {
                let headline = format!("no item of its volume {} has the path {path:?}", text(mount, "/name"));
                return Some(Advice::run(case.edit()).headline(headline).hints(case.edit_hints()));
            }
        };
        let object = case.reader.get(&resource, &Key::new(case.namespace, name)).await?;
        if ["data", "binaryData"].iter().all(|it| object[*it][key].is_null()) {
            let at = text(mount, "/mountPath");
            let advice = sources::key_of(case, word, &resource, name, key).await;
            return Some(
                advice.hint(format!("it is mounted by `subPath` at {at}, and is read when a container starts")),
            );
        }
    }
    None
}

/// What a ConfigMap has is a file of mode 0644, unless its volume says otherwise.
fn no_right(case: &Case<'_>, container: &Value) -> Option<Advice> {
    let command = command_of(&case.wait.message)?;
    let is_below = |it: &&Value| {
        let at = text(it, "/mountPath").trim_end_matches('/');
        command.strip_prefix(at).is_some_and(|it| it.is_empty() || it.starts_with('/'))
    };
    let mount =
        items(container, "/volumeMounts").iter().filter(is_below).max_by_key(|it| text(it, "/mountPath").len())?;
    let (word, _, name, said) = source(case.object, &mount["name"])?;
    let own = items(said, "/items").iter().find(|it| command.ends_with(&format!("/{}", text(it, "/path"))));
    let own = own.and_then(|it| it["mode"].as_u64());
    let mode = own.or_else(|| said["defaultMode"].as_u64()).unwrap_or(0o644);
    if mode & 0o111 != 0 {
        return None;
    }
    let container = case.container_name();
    Some(
        Advice::run(case.edit())
            .headline(format!("container {container} cannot start: {command} is not executable: its mode is 0{mode:o}"))
            .hint(format!(
                "it is of the {word} {name:?}: give the volume {} `defaultMode: 0755`, or name its interpreter in `command`",
                text(mount, "/name")
            ))
            .hints(case.edit_hints()),
    )
}
