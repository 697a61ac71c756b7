//! Is a service account's token signed by us, in its time, for the right audience, and is what it is bound to still there?

use std::{sync::Arc, time::Duration};

use aws_lc_rs::digest::{SHA256, digest};
use corten_api::resources::{NODES, PODS, SECRETS, SERVICE_ACCOUNTS};
use corten_cacher::watch_cache::Stored;
use corten_meta::{Key, Resource, Status, Time};
use corten_pki::{Authority, TokenKeys};
use serde::Deserialize;

use super::{
    Accepted, CREDENTIAL_ID, CachesNow, ISSUER,
    claims::{BoundObject, Claims, LEGACY_ISSUER, Legacy, user_name},
    jwt,
    legacy::{INVALID_SINCE, LAST_USED, day},
    unix_seconds,
};
use crate::{identity::Identity, remote::Memory};

/// Clocks may differ by this much, and what is deleted stays good for as long (go-jose's `DefaultLeeway`).
const LEEWAY_SECONDS: i64 = 60;
const INVALIDATED: &str = "service account token has been invalidated";
/// So many tokens' signatures are remembered.
const VERIFIED_MAX: usize = 4096;
/// So long, where nobody uses them any more.
const VERIFIED_KEPT: Duration = Duration::from_secs(3600);

/// What a token whose signature is ours says.
#[derive(Debug)]
enum Token {
    Bound(Box<Claims>),
    /// Kept in a Secret, without an end.
    Legacy(Legacy),
}

/// Tokens whose signatures were checked, by their hashes: a request then costs a look-up instead.
pub(super) struct Verified(Memory<VerifiedToken>);

impl Default for Verified {
    fn default() -> Self {
        Self(Memory::new(VERIFIED_MAX))
    }
}

#[derive(Clone)]
struct VerifiedToken {
    token: Arc<Token>,
    /// The key that signed it.
    key: String,
}

impl Verified {
    fn token(&self, keys: &TokenKeys, text: &str) -> Option<Result<VerifiedToken, String>> {
        #[derive(Deserialize)]
        struct Issuer {
            iss: String,
        }
        let hash = digest(&SHA256, text.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        // A key that is trusted no more has signed nothing.
        let known = self.0.get(&hash).filter(|it| keys.all().any(|key| key.id() == it.key));
        if let Some(known) = known {
            return Some(Ok(known));
        }
        let Issuer { iss } = jwt::unverified(text)?;
        if ![ISSUER, LEGACY_ISSUER].contains(&&*iss) {
            return None;
        }
        let Some(key) = jwt::signer(keys, text) else { return Some(Err("invalid signature".into())) };
        let token = if iss == ISSUER {
            jwt::unverified(text).map(|it| Token::Bound(Box::new(it)))
        } else {
            jwt::unverified(text).map(Token::Legacy)
        };
        let found = VerifiedToken { token: Arc::new(token?), key: key.id().to_owned() };
        self.0.put(hash, found.clone(), VERIFIED_KEPT);
        Some(Ok(found))
    }

    /// `None` where it is no token of a service account.
    pub(super) fn service_account(
        &self,
        pki: &Authority,
        at: &CachesNow<'_>,
        text: &str,
        wanted: &[&str],
    ) -> Option<Result<Accepted, String>> {
        let keys = pki.token_keys();
        let VerifiedToken { token, key } = match self.token(&keys, text)? {
            Ok(known) => known,
            Err(reason) => return Some(Err(reason)),
        };
        let accepted = match &*token {
            Token::Bound(claims) => at.bound(claims, wanted),
            Token::Legacy(claims) => at.legacy(claims, text, wanted),
        };
        if let Ok(it) = &accepted
            && key != keys.signing.id()
        {
            pki.note_old_token(&it.who.user);
        }
        Some(accepted)
    }
}

impl CachesNow<'_> {
    fn bound(&self, claims: &Claims, wanted: &[&str]) -> Result<Accepted, String> {
        let audiences: Vec<String> = claims.aud.iter().filter(|it| wanted.contains(&&***it)).cloned().collect();
        if audiences.is_empty() {
            let (of, target) = (quoted(&claims.aud), quoted(wanted));
            return Err(format!("token audiences {of} is invalid for the target audiences {target}"));
        }
        let now = unix_seconds(self.now);
        if now - LEEWAY_SECONDS > claims.exp {
            return Err("service account token has expired".into());
        }
        if now + LEEWAY_SECONDS < claims.nbf {
            return Err("service account token is not valid yet".into());
        }
        let it = &claims.private;
        self.account(&it.namespace, &it.serviceaccount)?;
        if let Some(secret) = &it.secret {
            self.holds(&SECRETS, &it.namespace, secret, "secret", "secret ref")?;
        }
        if let Some(pod) = &it.pod {
            self.holds(&PODS, &it.namespace, pod, "pod", "pod ref")?;
        } else if let Some(node) = &it.node {
            // Beside a Pod the node is told, not leaned on: a Pod does not outlive its node for long.
            self.holds(&NODES, "", node, "node", "node ref")?;
        }
        let mut who = account(&it.namespace, &it.serviceaccount.name, &it.serviceaccount.uid);
        for (kind, of) in [("pod", &it.pod), ("node", &it.node)] {
            let Some(of) = of else { continue };
            who.extra.insert(format!("authentication.kubernetes.io/{kind}-name"), vec![of.name.clone()]);
            if !of.uid.is_empty() {
                who.extra.insert(format!("authentication.kubernetes.io/{kind}-uid"), vec![of.uid.clone()]);
            }
        }
        if !claims.jti.is_empty() {
            who.extra.insert(CREDENTIAL_ID.into(), vec![format!("JTI={}", claims.jti)]);
        }
        let late = it.warnafter.map(|it| now - it).filter(|it| *it > 0);
        let stale = late.map(|it| format!("subject: {}, seconds after warning threshold: {it}", claims.sub));
        Ok(Accepted { who, audiences, stale, unmarked: None })
    }

    /// Such a token is for the API server, and good for as long as the Secret holds it.
    fn legacy(&self, claims: &Legacy, text: &str, wanted: &[&str]) -> Result<Accepted, String> {
        if !wanted.contains(&ISSUER) {
            let target = quoted(wanted);
            return Err(format!("token audiences [{ISSUER:?}] is invalid for the target audiences {target}"));
        }
        let secret = self.find(&SECRETS, &claims.namespace, &claims.secret).ok_or(INVALIDATED)?;
        let object = secret.parse();
        if !super::legacy::holds(&object, text) {
            return Err("token does not match server's copy".into());
        }
        let bound = BoundObject { name: claims.account.clone(), uid: claims.uid.clone() };
        if self.is_gone(&secret) {
            return Err(INVALIDATED.into());
        }
        self.account(&claims.namespace, &bound)?;
        if super::legacy::is_marked_invalid(&object) {
            let Legacy { namespace, secret, account, .. } = claims;
            return Err(format!(
                "the token in secret {namespace}/{secret} for service account {namespace}/{account} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }
        let who = account(&claims.namespace, &claims.account, &claims.uid);
        let is_marked = object["metadata"]["labels"][LAST_USED] == *day(self.now);
        let unmarked = (!is_marked).then(|| Key::new(&*claims.namespace, &*claims.secret));
        Ok(Accepted { who, audiences: vec![ISSUER.into()], stale: None, unmarked })
    }

    fn account(&self, namespace: &str, claimed: &BoundObject) -> Result<(), String> {
        let name = &claimed.name;
        let found = self.find(&SERVICE_ACCOUNTS, namespace, name);
        let found = found.ok_or_else(|| Status::not_found(&SERVICE_ACCOUNTS, name).message)?;
        if self.is_gone(&found) {
            return Err(format!("service account {namespace}/{name} has been deleted"));
        }
        if found.uid() != claimed.uid {
            return Err(format!("service account UID ({}) does not match claim ({})", found.uid(), claimed.uid));
        }
        Ok(())
    }

    fn holds(
        &self,
        resource: &Resource,
        namespace: &str,
        bound: &BoundObject,
        what: &str,
        claim: &str,
    ) -> Result<(), String> {
        let found = self.find(resource, namespace, &bound.name).ok_or(INVALIDATED)?;
        if self.is_gone(&found) {
            return Err(INVALIDATED.into());
        }
        if found.uid() != bound.uid {
            let (is, was) = (found.uid(), &bound.uid);
            return Err(format!("{what} UID ({is}) does not match service account {claim} claim ({was})"));
        }
        Ok(())
    }

    fn find(&self, resource: &Resource, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.caches.get(resource).expect("a row of the table").get(namespace, name)
    }

    /// Deleted for longer than clocks may differ, and waiting for its finalizers or its grace to end.
    fn is_gone(&self, object: &Stored) -> bool {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Deletion {
            deletion_timestamp: Option<Time>,
        }
        #[derive(Deserialize)]
        struct Object {
            metadata: Deletion,
        }
        let read = serde_json::from_slice::<Object>(object.value());
        let deleted = read.ok().and_then(|it| it.metadata.deletion_timestamp);
        deleted.is_some_and(|it| unix_seconds(it) < unix_seconds(self.now) - LEEWAY_SECONDS)
    }
}

fn account(namespace: &str, name: &str, uid: &str) -> Identity {
    Identity {
        user: user_name(namespace, name),
        uid: uid.to_owned(),
        groups: vec!["system:serviceaccounts".into(), format!("system:serviceaccounts:{namespace}")],
        ..Identity::default()
    }
}

/// As Go prints a list of strings.
fn quoted(list: &[impl AsRef<str>]) -> String {
    let list: Vec<String> = list.iter().map(|it| format!("{:?}", it.as_ref())).collect();
    format!("[{}]", list.join(" "))
}
