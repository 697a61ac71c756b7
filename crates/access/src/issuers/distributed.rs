//! Groups that a token names only the place of: distributed claims (OpenID Connect Core 1.0, section 5.6.2).
//!
//! What a source says is itself a signed token, of any issuer that proves itself to be the one it names: the token that named the source
//! was signed by an issuer of the configuration. Nobody is asked for a token that this issuer has not signed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use corten_meta::Time;
use corten_webhook::Clients;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::{sync::Semaphore, time::Instant};

use super::{
    FETCH_DEADLINE, Issuer, PAUSE, REFRESH, Refusal, claims,
    config::Compilation,
    fetch,
    keys::{Keys, Signed},
    words,
};
use crate::remote::{self, Memory, UnderWay};

/// As long as kube-apiserver keeps what it found of a token.
const KEPT: Duration = Duration::from_secs(10);
/// So many claims are kept of the tokens of one issuer. One that is longer than [`KEPT_BYTES`] takes the place of several: together they
/// have no more than 32 MiB.
const KEPT_MAX: usize = 1024;
const KEPT_BYTES: usize = 32 * 1024;
/// So many sources are asked at once for the tokens of one issuer.
const AT_ONCE: usize = 16;
/// The keys of so many issuers are kept that sign what sources say; one more lets the others be asked anew.
const SOURCES_MAX: usize = 16;

/// Where a claim is.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct ClaimSource {
    pub(super) endpoint: String,
    /// Shown to the endpoint, where it is not empty.
    pub(super) access_token: String,
}

/// What sources have said of the tokens of one issuer.
pub(super) struct DistributedClaims {
    hashes: remote::Keys,
    known: Memory<Resolution>,
    under_way: UnderWay<Resolution>,
    turns: Semaphore,
    /// By the issuer's URL.
    signers: Mutex<HashMap<String, Arc<Signer>>>,
}

type Resolution = Result<Arc<Value>, Refusal>;

/// An issuer that signs what a source says. Who waits for its keys waits for their turn here.
type Signer = tokio::sync::Mutex<Option<SignerKeys>>;

struct SignerKeys {
    since: Instant,
    keys: Arc<Keys>,
}

impl Default for DistributedClaims {
    fn default() -> Self {
        Self {
            hashes: remote::Keys::default(),
            known: Memory::new(KEPT_MAX),
            under_way: UnderWay::default(),
            turns: Semaphore::new(AT_ONCE),
            signers: Mutex::default(),
        }
    }
}

impl Issuer {
    /// Adds to the claims of a token, which was verified, the groups that they name only the place of (`claimResolver.expand`).
    pub(super) async fn expand(
        &self,
        clients: Option<&Clients>,
        now: Time,
        text: &str,
        claims: &mut Map<String, Value>,
    ) -> Result<(), Refusal> {
        let Some(Compilation::Claim { name, .. }) = &self.compiled.groups else { return Ok(()) };
        let told =
            |it: Refusal| Refusal { reason: format!("oidc: could not expand distributed claims: {}", it.reason), ..it };
        let Some(source) = source(claims, name).map_err(|it| told(it.into()))? else { return Ok(()) };
        // Boxed: few tokens are such ones.
        let found = Box::pin(self.resolved(clients, now, text, name, &source)).await.map_err(told)?;
        claims.insert(name.clone(), (*found).clone());
        Ok(())
    }

    async fn resolved(
        &self,
        clients: Option<&Clients>,
        now: Time,
        text: &str,
        claim: &str,
        source: &ClaimSource,
    ) -> Resolution {
        let of = &self.distributed;
        let key = of.hashes.key([text.as_bytes()]);
        if let Some(known) = of.known.get(&key) {
            return known;
        }
        let asking = async {
            let fetching = async {
                let _turn = of.turns.acquire().await.expect("it is never closed");
                self.fetched(clients, now, claim, source).await
            };
            let found = tokio::time::timeout(FETCH_DEADLINE, fetching).await;
            let found = found.unwrap_or_else(|_| Err(Refusal::uncertain("the source did not answer in time".into())));
            let n_bytes = found.as_ref().map_or(0, |it| it.to_string().len());
            // What failed is asked for again soon, and not by each of many requests.
            let keep = if found.is_ok() { KEPT } else { PAUSE };
            of.known.put_large(key, found.clone(), keep, n_bytes / KEPT_BYTES + 1);
            found
        };
        of.under_way.once(key, asking).await
    }

    async fn fetched(&self, clients: Option<&Clients>, now: Time, claim: &str, source: &ClaimSource) -> Resolution {
        let Some(clients) = clients else { return Err(Refusal::uncertain("nobody can be asked yet".into())) };
        let answer = fetch::claim_token(clients, &self.compiled.issuer, source).await.map_err(|it| Refusal {
            reason: format!("while getting distributed claim {claim:?}: {}", it.reason),
            ..it
        })?;
        let Some(mut token) = Signed::read(answer.trim()) else {
            let endpoint = &source.endpoint;
            return Err(format!("what the endpoint {endpoint} answers for claim {claim:?} is no signed token").into());
        };
        let signer = token.issuer().to_owned();
        let keys = self.keys_of(clients, &signer, &token.key).await.map_err(|it| Refusal {
            reason: format!("verifying untrusted issuer {signer} failed: {}", it.reason),
            ..it
        })?;
        if !keys.has_signed(&token) {
            return Err("verify distributed claim token: failed to verify signature".to_owned().into());
        }
        claims::check(&self.compiled, &token, now).map_err(|it| format!("verify distributed claim token: {it}"))?;
        let absent = || {
            format!("jwt returned by distributed claim endpoint {:?} did not contain claim: {claim}", source.endpoint)
        };
        Ok(Arc::new(token.claims.remove(claim).ok_or_else(absent)?))
    }

    /// The keys of who signed what a source says.
    async fn keys_of(&self, clients: &Clients, signer: &str, key: &str) -> Result<Arc<Keys>, Refusal> {
        if signer != self.compiled.issuer.url {
            return self.distributed.keys_of(clients, &self.compiled.issuer, signer, key).await;
        }
        if !self.knows(key) {
            self.asked_again().await;
        }
        self.keys.load_full().ok_or_else(|| Refusal::uncertain(self.is_not_initialized()))
    }
}

impl DistributedClaims {
    async fn keys_of(
        &self,
        clients: &Clients,
        issuer: &words::Issuer,
        signer: &str,
        key: &str,
    ) -> Result<Arc<Keys>, Refusal> {
        let turn = self.signer(signer);
        let mut known = turn.lock().await;
        if let Some(known) = &*known {
            let age = known.since.elapsed();
            if age < PAUSE || age < REFRESH && known.keys.knows(key) {
                return Ok(known.keys.clone());
            }
        }
        // Trusted as the issuer is whose token led here; where it describes itself only that one may say elsewhere.
        let signer = words::Issuer { url: signer.to_owned(), discovery_url: String::new(), ..issuer.clone() };
        match (fetch::keys(clients, &signer).await, &*known) {
            (Ok(fetched), _) => {
                let keys = Arc::new(fetched.keys);
                *known = Some(SignerKeys { since: Instant::now(), keys: keys.clone() });
                Ok(keys)
            }
            // Keys that were good stay so: who cannot be reached has taken nothing back.
            (Err(_), Some(before)) => Ok(before.keys.clone()),
            (Err(reason), None) => Err(Refusal::uncertain(reason)),
        }
    }

    fn signer(&self, url: &str) -> Arc<Signer> {
        let mut signers = self.signers.lock();
        if let Some(known) = signers.get(url) {
            return known.clone();
        }
        if signers.len() >= SOURCES_MAX {
            signers.clear();
        }
        signers.entry(url.to_owned()).or_default().clone()
    }
}

/// Where the claim is. `None` where the token does not say that it is elsewhere.
fn source(claims: &Map<String, Value>, claim: &str) -> Result<Option<ClaimSource>, String> {
    if claims.contains_key(claim) {
        return Ok(None);
    }
    let Some(names) = claims.get("_claim_names") else { return Ok(None) };
    let names: Option<BTreeMap<String, String>> =
        Deserialize::deserialize(names).map_err(|it| format!("oidc: error parsing distributed claim names: {it}"))?;
    let sources = claims.get("_claim_sources").ok_or("oidc: no claim sources")?;
    let sources: Option<BTreeMap<String, ClaimSource>> =
        Deserialize::deserialize(sources).map_err(|it| format!("oidc: could not parse claim sources: {it}"))?;
    let names = names.unwrap_or_default();
    let Some(name) = names.get(claim) else { return Ok(None) };
    let source = sources.unwrap_or_default().remove(name);
    let source =
        source.ok_or_else(|| format!("id token _claim_names contained a source {name} missing in _claims_sources"))?;
    // One without an endpoint may hold the claim itself (an aggregated claim), which upstream does not read either.
    Ok(Some(source).filter(|it| !it.endpoint.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_says_where_its_groups_are() {
        let at = |endpoint: &str, access_token: &str| {
            Ok(Some(ClaimSource { endpoint: endpoint.into(), access_token: access_token.into() }))
        };
        let sources = json!({ "a": { "endpoint": "https://a.example" },
            "b": { "endpoint": "https://b.example/x", "access_token": "t", "more": 1 }, "c": { "JWT": "x.y.z" } });
        for (claims, expected) in [
            (json!({}), Ok(None)),
            (json!({ "groups": [], "_claim_names": { "groups": "a" }, "_claim_sources": sources }), Ok(None)),
            (json!({ "_claim_names": { "groups": "a" }, "_claim_sources": sources }), at("https://a.example", "")),
            (json!({ "_claim_names": { "groups": "b" }, "_claim_sources": sources }), at("https://b.example/x", "t")),
            (json!({ "_claim_names": { "groups": "c" }, "_claim_sources": sources }), Ok(None)),
            (json!({ "_claim_names": { "roles": "a" }, "_claim_sources": sources }), Ok(None)),
            (
                json!({ "_claim_names": { "groups": "d" }, "_claim_sources": sources }),
                Err("id token _claim_names contained a source d missing in _claims_sources".to_owned()),
            ),
            (json!({ "_claim_names": { "groups": "a" } }), Err("oidc: no claim sources".to_owned())),
        ] {
            let claims = claims.as_object().expect("an object");
            assert_eq!(source(claims, "groups"), expected, "{claims:?}");
        }
        for claims in [
            json!({ "_claim_names": { "groups": 7 }, "_claim_sources": sources }),
            json!({ "_claim_names": { "groups": "a" }, "_claim_sources": { "a": "https://a.example" } }),
        ] {
            let claims = claims.as_object().expect("an object");
            assert!(source(claims, "groups").is_err(), "{claims:?}");
        }
    }
}
