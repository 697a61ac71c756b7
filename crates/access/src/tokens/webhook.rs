//! Tokens that only a server knows which somebody else runs: it is asked with a TokenReview, after all who know theirs themselves.

use std::{collections::BTreeMap, net::IpAddr, path::Path, sync::Arc, time::Duration};

use corten_metrics::{IntCounterVec, Registry, registered};
use corten_webhook::{ClientConfig, Clients};
use serde::Deserialize;
use serde_json::json;

use super::{
    Accepted,
    shares::{ReviewPermit, Shares},
};
use crate::{
    identity::{ISSUER, Identity},
    problems::ConfigError,
    remote::{Key, Keys, Memory, Remote, Trouble, Unanswering, UnderWay},
};

/// `TokenAccessReviewTimeout`: of one request, and of all tries for one token together.
const TIMEOUT: Duration = Duration::from_secs(10);
/// So many answers are kept. One that is longer than [`KEPT_BYTES`] takes the place of several: together they have no more than 64 MiB.
const KEPT_MAX: usize = 4096;
const KEPT_BYTES: usize = 16 * 1024;
/// Longer ones are no tokens: a header of HTTP holds hardly more.
const TOKEN_BYTES_MAX: usize = 256 * 1024;
const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenReview";

/// What the options say of it.
pub struct TokenWebhookSettings {
    client: ClientConfig,
    /// `v1` or `v1beta1`.
    version: String,
    ttl: Duration,
}

impl TokenWebhookSettings {
    /// `ttl`: how long an answer holds; zero keeps none.
    ///
    /// # Errors
    /// The file names no server that can be asked, or the version is unknown.
    pub fn load(path: &Path, version: &str, ttl: Duration) -> Result<Self, ConfigError> {
        if !["v1", "v1beta1"].contains(&version) {
            return Err(ConfigError(format!(
                "unsupported webhook authenticator version {version:?}, supported versions are v1, v1beta1"
            )));
        }
        let client = ClientConfig::of_kubeconfig(path).map_err(|it| ConfigError(it.0))?;
        Ok(Self { client, version: version.to_owned(), ttl })
    }
}

pub(crate) struct TokenWebhook {
    /// `Err`: it cannot be asked, and why.
    remote: Result<Remote, String>,
    api_version: String,
    ttl: Duration,
    keys: Keys,
    known: Memory<Arc<ReviewedUser>>,
    /// Tokens that are nobody's, apart: however many are tried, they displace none that is somebody's.
    nobodys: Memory<()>,
    shares: Shares,
    under_way: UnderWay<ReviewResult>,
    trouble: Trouble,
    measures: Measures,
}

/// Whose the token is, and for which of the wanted audiences. `None`: it is nobody's.
type ReviewedUser = Option<(Identity, Vec<String>)>;
/// `Err` says why the webhook has no answer, or refuses.
type ReviewResult = Result<Arc<ReviewedUser>, TokenRefusal>;

/// Why nobody was found.
#[derive(Clone, Debug)]
pub(crate) struct TokenRefusal {
    pub(crate) reason: String,
    /// The webhook has said so; else it could not be asked.
    pub(crate) is_certain: bool,
}

struct Measures {
    requests: IntCounterVec,
    cache: IntCounterVec,
}

impl TokenWebhook {
    pub(crate) fn new(settings: TokenWebhookSettings, clients: &Clients, registry: &Registry) -> Self {
        let TokenWebhookSettings { client, version, ttl } = settings;
        let remote = clients.client(&client).map(|it| Remote::new(it, TIMEOUT)).map_err(|it| it.0);
        Self {
            remote,
            api_version: format!("{GROUP}/{version}"),
            ttl,
            keys: Keys::default(),
            known: Memory::new(KEPT_MAX),
            nobodys: Memory::new(KEPT_MAX),
            shares: Shares::default(),
            under_way: UnderWay::default(),
            trouble: Trouble::default(),
            measures: Measures::new(registry),
        }
    }

    /// `Ok(None)`: the token is nobody's, or for others.
    pub(crate) async fn holder(
        &self,
        token: &str,
        wanted: &[&str],
        from: Option<IpAddr>,
    ) -> Result<Option<Accepted>, TokenRefusal> {
        if token.len() > TOKEN_BYTES_MAX {
            return Ok(None);
        }
        let parts = std::iter::once(token).chain(wanted.iter().copied());
        let key = self.keys.key(parts.map(str::as_bytes));
        let known = self.known.get(&key).or_else(|| self.nobodys.get(&key).map(|()| Arc::new(None)));
        let found = match known {
            Some(found) => {
                self.measures.cache.with_label_values(&["hit"]).inc();
                found
            }
            None => {
                self.measures.cache.with_label_values(&["miss"]).inc();
                self.asked_once(key, token, wanted, from).await?
            }
        };
        let accepted = |(who, audiences): &(Identity, Vec<String>)| {
            let (who, audiences) = (who.clone(), audiences.clone());
            Accepted { who, audiences, stale: None, unmarked: None }
        };
        Ok(found.as_ref().as_ref().map(accepted))
    }

    /// Where it gave no answer the last time it was asked.
    pub(crate) fn trouble(&self) -> Option<Unanswering> {
        self.trouble.of(|| "the token webhook".to_owned())
    }

    async fn asked_once(&self, key: Key, token: &str, wanted: &[&str], from: Option<IpAddr>) -> ReviewResult {
        let asking = async {
            let _turn = match from {
                Some(from) => Some(self.turn(from).await?),
                None => None,
            };
            let asked = self.ask(token, wanted).await;
            match asked.as_deref() {
                Ok(None) => self.nobodys.put(key, (), self.ttl),
                Ok(found) => {
                    let n_places = n_bytes(found) / KEPT_BYTES + 1;
                    self.known.put_large(key, Arc::new(found.clone()), self.ttl, n_places);
                }
                Err(_) => {}
            }
            asked
        };
        self.under_way.once(key, asking).await
    }

    async fn turn(&self, from: IpAddr) -> Result<ReviewPermit, TokenRefusal> {
        let turn = tokio::time::timeout(TIMEOUT, self.shares.turn(from)).await.ok().flatten();
        turn.ok_or_else(|| {
            let reason = format!("too many tokens from {from} are asked about at once");
            TokenRefusal { reason, is_certain: false }
        })
    }

    async fn ask(&self, token: &str, wanted: &[&str]) -> ReviewResult {
        let unasked = |reason: String| {
            self.trouble.goes_on(&reason);
            tracing::error!(reason, "failed to make webhook authenticator request");
            TokenRefusal { reason, is_certain: false }
        };
        let remote = self.remote.as_ref().map_err(|it| unasked(it.clone()))?;
        let review = json!({
            "kind": KIND,
            "apiVersion": self.api_version,
            "metadata": {},
            "spec": { "token": token, "audiences": wanted },
            "status": { "user": {} },
        });
        let asking = remote.ask(review.to_string().into(), |outcome, _| {
            self.measures.requests.with_label_values(&[outcome.as_str()]).inc();
        });
        let answer = tokio::time::timeout(TIMEOUT, asking).await;
        let answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => return Err(unasked(error.to_string())),
            Err(_) => return Err(unasked("context deadline exceeded".into())),
        };
        let review = self.read(&answer).map_err(unasked)?;
        self.trouble.over();
        holder(review, wanted).map(Arc::new)
    }

    fn read(&self, answer: &[u8]) -> Result<ReviewStatus, String> {
        let review: Review = serde_json::from_slice(answer).map_err(|it| format!("cannot read the answer: {it}"))?;
        let is_one = matches!(&*review.kind, "" | KIND)
            && (review.api_version.is_empty() || review.api_version == self.api_version);
        if is_one {
            return Ok(review.status);
        }
        Err(format!("expected {} {KIND}, got {:?} {:?}", self.api_version, review.api_version, review.kind))
    }
}

impl Measures {
    fn new(registry: &Registry) -> Self {
        Self {
            requests: registered::counter(
                registry,
                "corten_authentication_webhook_requests_total",
                "TokenReviews that were sent, by what became of them.",
                &["result"],
            ),
            cache: registered::counter(
                registry,
                "authentication_token_cache_request_total",
                "Questions for the holder of a token that only the webhook can know, by whether its answer was at hand.",
                &["status"],
            ),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Review {
    api_version: String,
    kind: String,
    status: ReviewStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    authenticated: bool,
    user: UserInfo,
    audiences: Option<Vec<String>>,
    error: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Vec<String>>>,
}

/// As `AuthenticateToken` reads an answer: one that names no audience is for the server's own.
fn holder(status: ReviewStatus, wanted: &[&str]) -> Result<ReviewedUser, TokenRefusal> {
    let own = || vec![ISSUER.to_owned()];
    let audiences = status.audiences.filter(|it| !it.is_empty()).unwrap_or_else(own);
    let audiences: Vec<String> = audiences.into_iter().filter(|it| wanted.contains(&&**it)).collect();
    if audiences.is_empty() {
        return Ok(None);
    }
    if !status.authenticated {
        let refused = |reason: String| TokenRefusal { reason, is_certain: true };
        return if status.error.is_empty() { Ok(None) } else { Err(refused(status.error)) };
    }
    let UserInfo { username, uid, groups, extra } = status.user;
    // A name is what everything else is decided by.
    if username.is_empty() {
        let reason = "the webhook named a user without a name".to_owned();
        return Err(TokenRefusal { reason, is_certain: true });
    }
    let who = Identity { user: username, uid, groups: groups.unwrap_or_default(), extra: extra.unwrap_or_default() };
    Ok(Some((who, audiences)))
}

fn n_bytes(found: &ReviewedUser) -> usize {
    let Some((who, audiences)) = found else { return 0 };
    // Each text costs its place, too.
    let texts = |list: &[String]| list.iter().map(|it| it.len() + size_of::<String>()).sum::<usize>();
    let extra: usize = who.extra.iter().map(|(key, values)| key.len() + texts(values)).sum();
    who.user.len() + who.uid.len() + texts(&who.groups) + texts(audiences) + extra
}
