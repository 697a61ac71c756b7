//! Answers "why is this not running?": reads an object, its events and the loops' journals, and follows what each
//! waits for down to whoever must act.
//!
//! [`reader`] reads, [`gather`] follows, [`findings`] and [`advice`] know the kinds and the causes, [`render`] prints.

mod account;
mod advice;
mod certificates;
mod command;
mod findings;
mod gather;
mod missing;
mod nearest;
mod outage;
mod pod_steps;
mod reader;
mod remedy;
mod render;
mod survey;
mod suspects;
#[cfg(test)]
mod tests;
mod unreached;

pub(crate) use account::{Account, State};
pub(crate) use certificates::{Validity, of_user as certificate_of_user};
pub(crate) use command::quoted;
pub(crate) use missing::{missing, missing_namespace};
pub(crate) use outage::{Life, Outage, unanswered};
pub(crate) use reader::Reader;
pub(crate) use remedy::of as remedy;
pub(crate) use render::{Look, duration, render, render_outage, render_survey};
pub(crate) use survey::{Group, Survey, survey};
pub(crate) use unreached::{may_not_look, unknown_asker, unreached};

use advice::Advice;
use corten_client::Error;
use corten_kinds::Kind;
use corten_meta::{Key, Time};
use corten_reconcile::Actor;
use serde::Serialize;

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

const API_VERSION: &str = "corten.dev/v1";

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
            message: account::one_line(&it.wait.message),
            actor: it.wait.actor,
            since: it.wait.since,
        });
    }
    if let (Some(root), Some(found)) = (&root, &found)
        && !found.headline.is_empty()
    {
        account.summary = format!("{}: {}", root.reason, account::one_line(&found.headline));
    }
    if root.is_none() && account.needs_somebody() {
        found = Some(advice::without_wait(&account));
    }
    let unknown = reader.hidden();
    let notices = std::mem::take(&mut account.notices);
    Ok(Explanation { api_version: API_VERSION, kind: "Explanation", account, root, advice: found, notices, unknown })
}
