//! CustomResourceDefinitions: whoever converts their objects, and whoever answers in their place; kinds of other servers that cannot
//! be listed; quotas of kinds that are not there.

use corten_api::resources::API_SERVICES;
use corten_kinds::Kind;
use corten_meta::Key;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::{backends, found::Findings, workloads};
use crate::why::{
    aggregated, custom,
    fields::{condition, items, text},
    reader::Reader,
};

const UNREADABLE: &str = "Unreadable";

/// What the server says, in upstream's words, of objects in a version that is none.
pub(crate) const NO_VERSION: &str = "request to convert CR from an invalid group/version: ";

pub(super) async fn definition(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let n_before = found.waits.len();
    backends::of_client(reader, &object["spec"]["conversion"]["webhook"]["clientConfig"]["service"], found).await;
    if found.waits.len() > n_before {
        let is_it = |it: &Wait| it.reason == "ConversionWebhookFailing";
        let since = backends::asked_in_vain_since(reader, "customresourcedefinition", object, is_it).await;
        found.begun(n_before, since);
    }
    let group = text(object, "/spec/group");
    if serves_nothing(object) {
        let message = "none of its versions is served: nobody can read or write its objects";
        found.add("NoVersionServed", message, Actor::Author);
    }
    unreadable(reader, object, found).await;
    for version in items(object, "/spec/versions").iter().filter(|it| it["served"] == true) {
        let name = format!("{}.{group}", text(version, "/name"));
        let Some(service) = reader.get(&API_SERVICES, &Key::cluster(&*name)).await else { continue };
        if !service["spec"]["service"].is_object() {
            continue;
        }
        if condition(&service, "Available").is_some_and(|it| it["status"] == "True") {
            found
                .notices
                .push(format!("another server answers for {name}, as apiservice/{name} says: not this definition"));
            continue;
        }
        let message = format!("apiservice/{name} hands its requests to another server, which does not answer");
        found.wait(Wait::new("HiddenByAPIService", message, Actor::Operator).on("APIService", &name));
    }
}

/// What is stored in a version that the definition does not have can be neither read nor deleted, whatever `storedVersions` says; nor
/// can what is encrypted by a key that is not here.
async fn unreadable(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let name = text(object, "/metadata/name");
    let Some(kind) = custom::kinds(reader).await.into_iter().find(|it| it.resource.qualified() == name) else { return };
    let Some(said) = reader.refused_list(&kind.resource).await else { return };
    let Some((_, version)) = said.split_once(NO_VERSION) else {
        // Who answers in its place is told of below, and who converts its objects by its journal.
        if aggregated::server_of(reader, kind).await.is_none() && !said.contains("conversion webhook") {
            found.add(UNREADABLE, format!("its objects cannot be listed: {said}"), Actor::Operator);
        }
        return;
    };
    let version = version.split([' ', ';', ',']).next().unwrap_or_default();
    let version = version.rsplit('/').next().unwrap_or_default();
    let message = format!(
        "some of its objects are stored in version {version}, which spec.versions does not have: they cannot be read or deleted before {version} is put back there"
    );
    found.add("StoredVersionMissing", message, Actor::Author);
}

/// An APIService whose server is well by its status, and does not list what it is asked for.
pub(super) async fn handed(reader: &Reader<'_>, service: &Value, found: &mut Findings) {
    let is_available = condition(service, "Available").is_some_and(|it| it["status"] == "True");
    if !service["spec"]["service"].is_object() || !is_available {
        return;
    }
    let is_handed = |it: &&'static Kind| {
        it.resource.group == text(service, "/spec/group") && it.resource.version == text(service, "/spec/version")
    };
    for kind in custom::kinds(reader).await.into_iter().filter(is_handed) {
        if let Some(said) = reader.refused_list(&kind.resource).await {
            let message = format!("{} cannot be listed: {said}", kind.resource.qualified());
            found.add(UNREADABLE, message, Actor::External);
        }
    }
}

pub(crate) fn serves_nothing(definition: &Value) -> bool {
    let versions = items(definition, "/spec/versions");
    !versions.is_empty() && !versions.iter().any(|it| it["served"] == true)
}

/// `count/PLURAL.GROUP` of a kind that nobody serves counts nothing, and nobody says so.
pub(super) async fn quota(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    for name in object["spec"]["hard"].as_object().into_iter().flatten().map(|it| it.0) {
        let Some(counted) = name.strip_prefix("count/").filter(|it| corten_kinds::by_qualified(it).is_none()) else {
            continue;
        };
        if custom::kind_named(reader, counted).await.is_none() && custom::is_known(reader).await {
            let message = format!("it limits {name}, and nobody serves {counted}: it counts nothing");
            found.add("KindNotServed", message, Actor::Author);
        }
    }
    workloads::quota(object, found);
}

/// Does a quota count kinds that are none of this release?
pub(crate) fn counts_others(quota: &Value) -> bool {
    let mut names =
        quota["spec"]["hard"].as_object().into_iter().flatten().filter_map(|it| it.0.strip_prefix("count/"));
    names.any(|it| corten_kinds::by_qualified(it).is_none())
}
