//! Images: not there, not shown, or their registry does not answer.

use corten_api::resources::{NODES, SECRETS};
use corten_meta::Key;
use corten_reconcile::Actor;

use super::case::{Advice, Case, last_part};
use crate::why::{
    command::kubectl,
    fields::{items, text},
    nearest::nearest,
};

const DENIED: [&str; 7] = [
    "401 Unauthorized",
    "403 Forbidden",
    "access denied",
    "authorization failed",
    "insufficient_scope",
    "no basic auth",
    "pull access denied",
];

pub(super) async fn pull(case: &Case<'_>) -> Advice {
    let image = image(case);
    let registry = registry(&image);
    let message = &case.wait.message;
    if case.wait.actor == Actor::Operator {
        let url = format!("https://{}/v2/", address(&registry));
        return Advice::run(format!("curl -sS -m 5 {}", super::case::shell(&url)))
            .headline(format!("the registry {registry} cannot be spoken to: {}", last_part(message)))
            .who("whoever runs the cluster, or the registry: the node must reach it; or its author, if another was meant")
            .hint("run it on the node: it is the node that pulls");
    }
    if DENIED.iter().any(|it| message.contains(it)) {
        return denied(case, &image, &registry).await;
    }
    if !message.contains("not found") && !message.contains("404") {
        return Advice::run(change(case, &image)).headline(format!("the image {image} cannot be pulled"));
    }
    Advice::run(change(case, &image))
        .headline(format!("the image {image} is not in the registry {registry}"))
        .hints(near(case, &image).await)
        .hints(undo_hint(case))
}

/// A part of it is on the node, and not what it was.
pub(super) fn damaged(case: &Case<'_>) -> Advice {
    let node = text(case.object, "/spec/nodeName");
    Advice::run("corten down".into())
        .headline(format!("the image {} is damaged on the node {node}", image(case)))
        .who(format!("whoever runs the node {node}: its images must be fetched anew"))
        .hint("then remove the folder `containerd` in its data folder, and run `corten up`: volumes and logs stay")
}

pub(super) async fn never(case: &Case<'_>) -> Advice {
    let image = image(case);
    Advice::run(change(case, &image))
        .headline(format!("the image {image} is not on the node, and its policy forbids to pull it"))
        .hints(near(case, &image).await)
        .hint("imagePullPolicy Never means: only what is on the node already")
}

pub(super) fn invalid(case: &Case<'_>) -> Advice {
    let image = image(case);
    Advice::run(change(case, &image))
        .headline(format!("{image:?} is no image's name"))
        .hint("a name is registry/path:tag, in lower case")
}

async fn denied(case: &Case<'_>, image: &str, registry: &str) -> Advice {
    let names = items(case.object, "/spec/imagePullSecrets").iter().map(|it| text(it, "/name").to_owned());
    let names: Vec<String> = names.collect();
    let mut advice = Advice::default()
        .headline(format!("the registry {registry} does not show the image {image} to this cluster"))
        .who(format!("whoever wrote {}: it needs a pull secret that the registry knows", case.author));
    let mut wanted = "registry".to_owned();
    if names.is_empty() {
        advice = advice.hint("the pod names no imagePullSecrets, and neither does its service account");
        advice = advice.hint(format!("then: {}", name_it(case, &wanted)));
    }
    for name in names {
        let is_missing = case.reader.is_missing(&SECRETS, &Key::new(case.namespace, &*name)).await;
        let state = if is_missing { "is not there" } else { "is there, and the registry does not accept it" };
        advice = advice.hint(format!("its pull secret {name:?} {state}"));
        wanted = name;
    }
    let server = format!("--docker-server={registry}");
    let words = ["create", "secret", "docker-registry", &wanted, &server];
    let namespace = if case.namespace.is_empty() { String::new() } else { format!(" -n {}", case.namespace) };
    let account = r#"--docker-username="$REGISTRY_USER" --docker-password="$REGISTRY_PASSWORD""#;
    advice.next = format!("{} {account}{namespace}", kubectl("", &words));
    advice
}

fn name_it(case: &Case<'_>, secret: &str) -> String {
    let account = text(case.object, "/spec/serviceAccountName");
    let account = format!("serviceaccount/{}", if account.is_empty() { "default" } else { account });
    let patch = serde_json::json!({"imagePullSecrets": [{"name": secret}]}).to_string();
    kubectl(case.namespace, &["patch", &account, "-p", &patch])
}

/// The image that is waited for: the container's own, or one that it mounts as a volume.
fn image(case: &Case<'_>) -> String {
    let Some(container) = case.container() else { return String::new() };
    let own = text(container, "/image");
    let mounted = items(container, "/volumeMounts");
    let volumes = items(case.object, "/spec/volumes").iter().filter(|volume| {
        let name = text(volume, "/name");
        mounted.iter().any(|it| text(it, "/name") == name)
    });
    let mut references = volumes.map(|it| text(it, "/image/reference")).filter(|it| !it.is_empty());
    let message = &case.wait.message;
    let meant = if message.contains(own) { None } else { references.find(|it| message.contains(it)) };
    meant.unwrap_or(own).to_owned()
}

/// Where the name leads: the first part, if it looks like a host.
fn registry(image: &str) -> String {
    match image.split_once('/') {
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => host.to_owned(),
        _ => "docker.io".to_owned(),
    }
}

/// Where runtimes look for it.
fn address(registry: &str) -> &str {
    if registry == "docker.io" { "registry-1.docker.io" } else { registry }
}

/// A new version that does not come up is best taken back; else its image must be changed.
fn change(case: &Case<'_>, image: &str) -> String {
    if has_earlier(case) {
        return kubectl(case.namespace, &["rollout", "undo", &case.author]);
    }
    if case.is_bare_pod() && !image.is_empty() {
        return kubectl(case.namespace, &["edit", &case.author]);
    }
    case.edit()
}

pub(super) fn has_earlier(case: &Case<'_>) -> bool {
    let revision = text(&case.author_object, "/metadata/annotations/deployment.kubernetes.io~1revision");
    case.author.starts_with("deployment/") && revision.parse::<u32>().is_ok_and(|it| it > 1)
}

pub(super) fn undo_hint(case: &Case<'_>) -> Option<String> {
    has_earlier(case).then(|| "this takes the Deployment back to the version before; the old pods still run".into())
}

/// An image of the node with nearly this name.
async fn near(case: &Case<'_>, image: &str) -> Option<String> {
    let node = case.reader.get(&NODES, &Key::cluster(text(case.object, "/spec/nodeName"))).await?;
    let names: Vec<&str> =
        items(&node, "/status/images").iter().flat_map(|it| items(it, "/names")).filter_map(|it| it.as_str()).collect();
    let short = |it: &&str| it.trim_start_matches("docker.io/library/").trim_start_matches("docker.io/").to_owned();
    let names: Vec<String> = names.iter().filter(|it| !it.contains('@')).map(short).collect();
    let path = |it: &str| it.rsplit('/').next().unwrap_or(it).to_owned();
    let same_path = names.iter().find(|it| path(it) == path(image));
    let near = same_path.map(String::as_str).or_else(|| nearest(image, names.iter().map(String::as_str)))?;
    (near != image).then(|| format!("the node has an image {near:?}"))
}
