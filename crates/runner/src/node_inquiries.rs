//! What a kubelet's server asks of the cluster, as its node: whose token, may they, which Pods.
//!
//! Answers are kept as long as a kubelet keeps them (`authentication.webhook.cacheTTL`): a token that was taken back opens
//! for two minutes more, a right that was taken back for five. That nobody has a token is not kept: the next one may be
//! good.

use std::{collections::BTreeMap, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use corten_api::resources::{PODS, SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS};
use corten_client::{Client, Error, ListParams, decode};
use corten_meta::{Key, Time};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Clock;

const TOKENS_FOR: Duration = Duration::from_secs(120);
const ALLOWED_FOR: Duration = Duration::from_secs(300);
const DENIED_FOR: Duration = Duration::from_secs(30);
/// Of either kind of answer.
const ANSWERS_MAX: usize = 4096;

/// Who asks the kubelet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default)]
pub struct NodeCaller {
    #[serde(rename = "username")]
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
}

/// What they want to do to the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeQuestion {
    pub caller: NodeCaller,
    pub verb: &'static str,
    pub subresource: &'static str,
}

/// See the module's documentation.
pub struct NodeInquiries {
    client: Client,
    node: String,
    clock: Clock,
    /// By the tokens' hashes: how long a look-up takes says nothing of them.
    tokens: Mutex<Answers<Vec<u8>, NodeCaller>>,
    rights: Mutex<Answers<NodeQuestion, bool>>,
}

/// Answers and when they end.
type Answers<K, V> = BTreeMap<K, (V, Time)>;

fn kept<K: Ord, V: Clone>(answers: &Mutex<Answers<K, V>>, key: &K, now: Time) -> Option<V> {
    answers.lock().get(key).filter(|it| now < it.1).map(|it| it.0.clone())
}

fn keep<K: Ord, V>(answers: &Mutex<Answers<K, V>>, key: K, value: V, now: Time, length: Duration) {
    let mut answers = answers.lock();
    if answers.len() >= ANSWERS_MAX {
        answers.retain(|_, it| now < it.1);
    }
    // Still full: one that asks under thousands of names shall not fill the memory.
    if answers.len() >= ANSWERS_MAX {
        answers.clear();
    }
    answers.insert(key, (value, now.after(length)));
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Review<S> {
    status: S,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: NodeCaller,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessStatus {
    allowed: bool,
}

impl NodeInquiries {
    /// `client` speaks as the node.
    pub fn new(client: Client, node: &str, clock: Clock) -> Self {
        Self { client, node: node.to_owned(), clock, tokens: Mutex::default(), rights: Mutex::default() }
    }

    /// Whose token is it? `None` where it is nobody's.
    ///
    /// # Errors
    /// The cluster does not say.
    pub async fn review_token(&self, token: String) -> Result<Option<NodeCaller>, Error> {
        let now = (self.clock)();
        let hash = digest(&SHA256, token.as_bytes()).as_ref().to_vec();
        if let Some(caller) = kept(&self.tokens, &hash, now) {
            return Ok(Some(caller));
        }
        let review =
            json!({ "kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "spec": { "token": token } });
        let answer = self.client.create(&TOKEN_REVIEWS, "", &review).await?;
        let Review::<TokenStatus> { status } = decode(&answer)?;
        if !status.authenticated {
            return Ok(None);
        }
        keep(&self.tokens, hash, status.user.clone(), now, TOKENS_FOR);
        Ok(Some(status.user))
    }

    /// # Errors
    /// The cluster does not say.
    pub async fn review_access(&self, question: NodeQuestion) -> Result<bool, Error> {
        let now = (self.clock)();
        if let Some(allowed) = kept(&self.rights, &question, now) {
            return Ok(allowed);
        }
        let NodeQuestion { caller, verb, subresource } = &question;
        let review = json!({
            "kind": "SubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "spec": {
                "user": caller.user,
                "uid": caller.uid,
                "groups": caller.groups,
                "resourceAttributes": {
                    "version": "v1", "resource": "nodes", "subresource": subresource, "name": self.node, "verb": verb,
                },
            },
        });
        let answer = self.client.create(&SUBJECT_ACCESS_REVIEWS, "", &review).await?;
        let Review::<AccessStatus> { status } = decode(&answer)?;
        let length = if status.allowed { ALLOWED_FOR } else { DENIED_FOR };
        keep(&self.rights, question, status.allowed, now, length);
        Ok(status.allowed)
    }

    /// A Pod as the API has it.
    ///
    /// # Errors
    /// The cluster does not say.
    pub async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Value>, Error> {
        match self.client.get_as(&PODS, &Key::new(namespace, name)).await {
            Ok(pod) => Ok(Some(pod)),
            // A node may read no Pod of another node, nor one that is not there: of a kubelet neither is known.
            Err(Error::Status(status)) if status.is_not_found() || status.code == 403 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The `PodList` of this node.
    ///
    /// # Errors
    /// The cluster does not say.
    pub async fn pods(&self) -> Result<Value, Error> {
        let params = ListParams { field_selector: format!("spec.nodeName={}", self.node), ..ListParams::default() };
        let list = self.client.list(&PODS, &params).await?;
        let pods = list.items.iter().map(|it| decode(it)).collect::<Result<Vec<Value>, Error>>()?;
        Ok(json!({ "kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": pods }))
    }
}

#[cfg(test)]
mod tests;
