//! Kinds whose objects another API server holds: which APIService hands requests there, and who runs that server.

use std::{collections::BTreeSet, rc::Rc};

use corten_api::resources::API_SERVICES;
use corten_kinds::Kind;
use corten_reconcile::Wait;
use serde_json::Value;

use super::{
    fields::{key_of, text},
    findings::{conditions, refusers},
    reader::Reader,
};

/// An APIService that hands requests to another server.
pub(super) struct Handed {
    /// `apiservice/v1.metrics.example.com`.
    pub(super) subject: String,
    pub(super) group: String,
    /// `service/metrics in monitoring`.
    pub(super) server: String,
    /// Why it is not available, where its status says so.
    pub(super) reason: Option<String>,
}

impl Handed {
    fn of(service: &Value) -> Option<Self> {
        service["spec"]["service"].is_object().then_some(())?;
        let kind = corten_kinds::by_name("apiservice")?;
        let condition = conditions::bad(kind, service).next();
        let words = condition.map(|it| ["/reason", "/type"].map(|at| text(it, at)));
        Some(Self {
            subject: format!("apiservice/{}", key_of(service).name),
            group: text(service, "/spec/group").to_owned(),
            server: refusers::place(&service["spec"]),
            reason: words.and_then(|it| it.into_iter().find(|it| !it.is_empty()).map(str::to_owned)),
        })
    }
}

/// The APIService that hands the requests for a kind to another server; none where this server answers them itself.
pub(super) async fn server_of(reader: &Reader<'_>, kind: &Kind) -> Option<Handed> {
    let name = format!("{}.{}", kind.resource.version, kind.resource.group);
    let services = services(reader).await;
    Handed::of(services.iter().find(|it| text(it, "/metadata/name") == name)?)
}

/// Those that are not available.
pub(super) async fn unavailable(reader: &Reader<'_>) -> Vec<Handed> {
    let services = services(reader).await;
    services.iter().filter_map(Handed::of).filter(|it| it.reason.is_some()).collect()
}

/// A loop that asks another server in vain waits for the APIService that hands its requests there.
pub(super) async fn place(reader: &Reader<'_>, object: &Value, waits: &mut Vec<(String, Wait)>) {
    let mut placed = BTreeSet::new();
    for (_, wait) in waits.iter_mut() {
        if OF_POINTED.contains(&&*wait.reason) && wait.on.is_some() {
            placed.insert(wait.reason.clone());
        }
        let Some(group) = group_asked(wait, object) else { continue };
        if let Some(it) = silent(reader, group).await {
            wait.on = Some(it.subject);
            placed.insert(wait.reason.clone());
        } else if wait.reason != "FailedGetScale" && is_of_nobody(reader, group).await {
            wait.message = format!("{group} {OF_NOBODY}: {}", wait.message);
            placed.insert(wait.reason.clone());
        }
    }
    // A condition repeats what the loop says.
    let mut told = BTreeSet::new();
    waits.retain(|(_, it)| !placed.contains(&it.reason) || told.insert(it.reason.clone()));
}

/// What an autoscaler's loop says, with what it waits for.
const OF_POINTED: [&str; 4] =
    ["FailedGetContainerResourceMetric", "FailedGetPodsMetric", "FailedGetResourceMetric", "FailedGetScale"];

/// What is said of a group of metrics that no server is registered for.
pub(super) const OF_NOBODY: &str = "is served by nobody: no APIService is there for it";

async fn is_of_nobody(reader: &Reader<'_>, group: &str) -> bool {
    let services = services(reader).await;
    let is_any = services.iter().any(|it| text(it, "/spec/group") == group);
    !is_any && !services.is_empty() && reader.is_whole(&API_SERVICES, &services)
}

/// The group of the API that an autoscaler got no answer of.
fn group_asked<'a>(wait: &Wait, object: &'a Value) -> Option<&'a str> {
    let words = ["unable to fetch metrics from ", "what the Pods use cannot be read: "];
    let is_of_metrics = words.iter().any(|it| wait.message.contains(it));
    match &*wait.reason {
        "FailedGetResourceMetric" | "FailedGetContainerResourceMetric" if is_of_metrics => Some("metrics.k8s.io"),
        "FailedGetPodsMetric" | "FailedGetObjectMetric" if is_of_metrics => Some("custom.metrics.k8s.io"),
        "FailedGetExternalMetric" if is_of_metrics => Some("external.metrics.k8s.io"),
        "FailedGetScale" => {
            let target = ["scaleTargetRef", "targetRef"].into_iter().map(|it| &object["spec"][it]);
            target.into_iter().find_map(|it| it["apiVersion"].as_str()?.split_once('/')).map(|it| it.0)
        }
        _ => None,
    }
}

/// The APIService of a group none of whose versions can be asked.
async fn silent(reader: &Reader<'_>, group: &str) -> Option<Handed> {
    let services = services(reader).await;
    let of_group: Vec<_> =
        services.iter().filter(|it| text(it, "/spec/group") == group).map(Handed::of).collect::<Option<_>>()?;
    let is_silent = of_group.iter().all(|it| it.reason.is_some());
    of_group.into_iter().next().filter(|_| is_silent)
}

/// None for whoever may not list them, and nobody misses them who asked about something else.
async fn services(reader: &Reader<'_>) -> Rc<Vec<Value>> {
    reader.try_list(&API_SERVICES).await.unwrap_or_default()
}
