//! Explains one object: the chain of causes, who must act, what to run next.

use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::{Key, Time};
use corten_reconcile::Actor;
use serde::Serialize;

use super::{
    account::{Account, State},
    advice::{self, case::Advice},
    fields::one_line,
    gather,
    reader::Reader,
};

/// What `corten why` answers about one object; with `-o json` it is printed as it stands.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explanation {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    #[serde(flatten)]
    pub(crate) account: Account,
    /// The cause at the end of the chain; none where nothing is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) root: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<Advice>,
    /// What is worth knowing besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notices: Vec<String>,
    /// What could not be seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unknown: Vec<String>,
}

/// The cause at the end of the chain, as data.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cause {
    pub(crate) subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<String>,
    pub(crate) by: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) actor: Actor,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Time>,
}

pub(crate) const API_VERSION: &str = "corten.dev/v1";

/// Explains one object: the chain of causes, who must act, what to run next.
///
/// # Errors
/// The object is not there, or the server refuses to show it.
pub(crate) async fn explain(reader: &Reader<'_>, kind: &'static Kind, key: &Key) -> Result<Explanation, Error> {
    let mut account = gather::explain(reader, kind, key).await?;
    let (mut root, mut found) = (None, None);
    if let Some(it) = account.root().filter(|_| !matches!(account.state, State::Fine | State::Finished)) {
        found = Some(advice::of(reader, &it).await);
        root = Some(Cause {
            subject: it.at().subject.clone(),
            namespace: it.at().namespace.clone(),
            step: it.step.map(|it| it.name.clone()),
            by: it.by.to_owned(),
            reason: it.wait.reason.clone(),
            message: one_line(&it.wait.message),
            actor: it.wait.actor,
            since: it.since,
        });
    }
    if let (Some(root), Some(found)) = (&root, &found)
        && !found.headline.is_empty()
    {
        account.summary = format!("{}: {}", root.reason, one_line(&found.headline));
    }
    if root.is_none() && account.needs_somebody() {
        found = Some(advice::without_wait(&account));
    }
    let unknown = reader.hidden();
    let notices = std::mem::take(&mut account.notices);
    Ok(Explanation { api_version: API_VERSION, kind: "Explanation", account, root, advice: found, notices, unknown })
}
