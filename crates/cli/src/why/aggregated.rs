//! Kinds whose objects another API server holds: which APIService hands requests there, and who runs that server.

use std::rc::Rc;

use corten_api::resources::API_SERVICES;
use corten_kinds::Kind;
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

/// None for whoever may not list them, and nobody misses them who asked about something else.
async fn services(reader: &Reader<'_>) -> Rc<Vec<Value>> {
    reader.try_list(&API_SERVICES).await.unwrap_or_default()
}
