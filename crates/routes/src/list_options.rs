//! The query parameters of reads, checked as by `ValidateListOptions`.

use corten_meta::{Status, Violation, number};

use crate::Query;

/// `resourceVersion`: `None` for absent and for 0, which both mean "what you have".
///
/// # Errors
/// 400 where it is not a number.
pub fn resource_version(query: &Query) -> Result<Option<u64>, Status> {
    let Some(text) = query.get("resourceVersion") else { return Ok(None) };
    let revision: u64 = number::unsigned(text)
        .map_err(|it| invalid(&[Violation::invalid("resourceVersion", format!("{text:?}"), &it)]))?;
    Ok(Some(revision).filter(|it| *it > 0))
}

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    Exact,
    NotOlderThan,
}

pub fn version_match(query: &Query) -> Result<Option<Match>, Status> {
    match query.get("resourceVersionMatch") {
        None => Ok(None),
        Some("Exact") => Ok(Some(Match::Exact)),
        Some("NotOlderThan") => Ok(Some(Match::NotOlderThan)),
        Some(other) => {
            Err(invalid(&[Violation::not_supported("resourceVersionMatch", other, &["Exact", "NotOlderThan"])]))
        }
    }
}

/// What a list asks for beside its selectors.
pub struct ListOptions {
    pub revision: Option<u64>,
    pub exact: bool,
    pub limit: Option<usize>,
    pub token: Option<String>,
}

pub fn list(query: &Query) -> Result<ListOptions, Status> {
    let version_match = version_match(query)?;
    let token = query.get("continue").map(str::to_owned);
    let text = query.get("resourceVersion");
    let forbidden = |detail: &str| Err(invalid(&[Violation::forbidden("resourceVersionMatch", detail)]));
    if query.flag("sendInitialEvents").is_some() {
        let detail = "sendInitialEvents is forbidden for list";
        return Err(invalid(&[Violation::forbidden("sendInitialEvents", detail)]));
    }
    match (version_match, text) {
        (Some(_), None) => return forbidden("resourceVersionMatch is forbidden unless resourceVersion is provided"),
        (Some(_), _) if token.is_some() => {
            return forbidden("resourceVersionMatch is forbidden when continue is provided");
        }
        (Some(Match::Exact), Some("0")) => {
            return forbidden("resourceVersionMatch \"Exact\" is forbidden for resourceVersion \"0\"");
        }
        _ => {}
    }
    if token.is_some() && text.is_some_and(|it| it != "0") {
        return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
    }
    let limit = query.integer("limit")?.filter(|it| *it > 0).and_then(|it| usize::try_from(it).ok());
    let revision = resource_version(query)?;
    // As in etcd3's `GetList`: a limit turns a bare resourceVersion into an exact one.
    let exact = match version_match {
        Some(it) => it == Match::Exact,
        None => limit.is_some() && revision.is_some(),
    };
    Ok(ListOptions { revision, exact, limit, token })
}

/// The options themselves are wrong.
pub fn invalid(violations: &[Violation]) -> Status {
    let resource = corten_meta::Resource::cluster("meta.k8s.io", "v1", "ListOptions", "listoptions");
    Status::invalid(&resource, "", violations)
}
