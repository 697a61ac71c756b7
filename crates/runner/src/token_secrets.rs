//! Puts tokens into Secrets of type `kubernetes.io/service-account-token`, over an API server that does not do it itself.
//!
//! ```text
//! Secret of an account, without a token        -> TokenRequest bound to the Secret -> token, namespace and certificates in the Secret
//! token past four fifths of its life           -> the same
//! account without such a Secret, old server    -> a Secret -> filled as above -> named by the account
//! ```
//! kube-controller-manager signs them with a key of its own; here the server is asked, and whoever deletes the Secret ends its token.
//! Servers before v1.24 want one for each account, and refuse its Pods before.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::Duration,
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use corten_api::resources::{SECRETS, SERVICE_ACCOUNTS};
use corten_client::{Backoff, Client, Error, Informer, InformerEvent, InformerParams, decode};
use corten_meta::{Key, ObjectMeta, Time};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::Clock;

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// The longest that a server gives. One that is set to less gives that.
const LIFETIME_SECONDS: u64 = 1 << 32;
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// How often it is looked whether a token is old.
const LOOKS_AGAIN: Duration = Duration::from_secs(60);

pub struct TokenSecretSettings {
    pub client: Client,
    /// By which certificates the server is known, as PEM.
    pub ca: String,
    /// The server wants a Secret for each account.
    pub is_one_wanted: bool,
    pub clock: Clock,
}

/// Runs until `shutdown` is ready.
pub async fn run_token_secrets(settings: TokenSecretSettings, shutdown: impl Future<Output = ()> + Send) {
    let mut shutdown = pin!(shutdown);
    let params = InformerParams { field_selector: format!("type={TYPE}"), ..InformerParams::all(SECRETS) };
    let mut secrets = Informer::new(settings.client.clone(), params);
    let mut accounts = Informer::new(settings.client.clone(), InformerParams::all(SERVICE_ACCOUNTS));
    let mut controller = TokenSecretController { settings, secrets: BTreeMap::new(), accounts: BTreeMap::new() };
    let mut backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX, 1);
    let mut next_look = Instant::now();
    let mut not_before = next_look;
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => return,
            event = secrets.next() => take(&mut controller.secrets, event, "a Secret of a token"),
            event = accounts.next() => take(&mut controller.accounts, event, "a ServiceAccount"),
            () = sleep_until(next_look), if secrets.n_lists() > 0 && accounts.n_lists() > 0 => {
                let (rest, has_failed) = controller.look(&mut backoff).await;
                next_look = Instant::now() + rest;
                // What failed is not tried again for each event.
                not_before = if has_failed { next_look } else { Instant::now() };
                continue;
            }
        }
        // What comes together is looked at together.
        next_look = next_look.min(not_before.max(Instant::now() + BACKOFF_FIRST));
    }
}

struct TokenSecretController {
    settings: TokenSecretSettings,
    secrets: BTreeMap<Key, TokenSecret>,
    accounts: BTreeMap<Key, Account>,
}

/// What is to be done.
enum Lack {
    /// Of this Secret, for this account.
    Token(Key, String),
    /// A Secret of this account.
    Secret(Key),
    /// The account does not name this Secret.
    Name(Key, String),
}

fn take<T: DeserializeOwned>(known: &mut BTreeMap<Key, T>, event: InformerEvent, what: &str) {
    match event {
        InformerEvent::Applied(object, identity) => match decode::<T>(&object) {
            Ok(object) => drop(known.insert(identity.key, object)),
            Err(error) => tracing::warn!(key = %identity.key, %error, "{what} cannot be read"),
        },
        InformerEvent::Deleted(gone) => drop(known.remove(&gone.key())),
        InformerEvent::Synced(_) => {}
    }
}

impl TokenSecretController {
    /// Does what there is to do, and gives when to look again, and whether something failed.
    async fn look(&mut self, backoff: &mut Backoff) -> (Duration, bool) {
        let mut has_failed = false;
        for lack in self.lacking() {
            let (what, done) = match &lack {
                Lack::Token(secret, account) => (secret, self.fill(secret, account).await),
                Lack::Secret(account) => (account, self.make(account).await),
                Lack::Name(account, secret) => (account, self.name(account, secret).await),
            };
            match done {
                Ok(()) => {}
                // It has changed, or is gone, and that comes as an event of its own.
                Err(error) if error.is_conflict() || error.is_not_found() || error.is_namespace_terminating() => {}
                Err(error) => {
                    tracing::warn!(key = %what, %error, "a token cannot be delivered");
                    has_failed = true;
                }
            }
        }
        if has_failed {
            return (backoff.delay(), true);
        }
        backoff.reset();
        (LOOKS_AGAIN, false)
    }

    fn lacking(&self) -> Vec<Lack> {
        let now = (self.settings.clock)();
        let mut lacking = Vec::new();
        let mut served: BTreeSet<Key> = BTreeSet::new();
        for (key, secret) in &self.secrets {
            let Some(account) = self.account_of(key, secret) else { continue };
            let of = Key::new(&*key.namespace, &*account.metadata.name);
            if !is_good(&secret.data.token, now) {
                lacking.push(Lack::Token(key.clone(), account.metadata.name.clone()));
            } else if account.names(&key.name) {
                served.insert(of);
                continue;
            } else if self.settings.is_one_wanted && key.name == own_name(account) {
                lacking.push(Lack::Name(of.clone(), key.name.clone()));
            }
            if key.name == own_name(account) || account.names(&key.name) {
                served.insert(of);
            }
        }
        if self.settings.is_one_wanted {
            let without = self.accounts.iter().filter(|it| !served.contains(it.0) && !it.1.metadata.is_deleting());
            lacking.extend(without.map(|it| Lack::Secret(it.0.clone())));
        }
        lacking
    }

    /// The account that is there and that the Secret means.
    fn account_of(&self, key: &Key, secret: &TokenSecret) -> Option<&Account> {
        let annotations = &secret.metadata.annotations;
        let account = self.accounts.get(&Key::new(&*key.namespace, &**annotations.get(ACCOUNT)?))?;
        let is_meant = annotations.get(ACCOUNT_UID).is_none_or(|it| it.is_empty() || *it == account.metadata.uid);
        (is_meant && !secret.metadata.is_deleting()).then_some(account)
    }

    async fn fill(&self, key: &Key, account: &str) -> Result<(), Error> {
        let client = &self.settings.client;
        let mut secret: Value = client.get_as(&SECRETS, key).await?;
        let account = Key::new(&*key.namespace, account);
        let asked = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "audiences": [], "expirationSeconds": LIFETIME_SECONDS,
                "boundObjectRef": {
                    "apiVersion": "v1", "kind": "Secret", "name": key.name, "uid": secret["metadata"]["uid"],
                },
            },
        });
        let answer = client.create_subresource(&SERVICE_ACCOUNTS, &account, "token", &asked).await?;
        let token: Value = decode(&answer)?;
        let token = token["status"]["token"].as_str().filter(|it| !it.is_empty());
        let token = token.ok_or_else(|| Error::Decode("the answer holds no token".to_owned()))?;
        let uid = self.accounts.get(&account).map(|it| it.metadata.uid.clone()).unwrap_or_default();
        secret["metadata"]["annotations"][ACCOUNT_UID] = json!(uid);
        let mut data = secret["data"].as_object().cloned().unwrap_or_default();
        for (name, value) in [("token", token), ("ca.crt", &*self.settings.ca), ("namespace", &*key.namespace)] {
            if !value.is_empty() {
                data.insert(name.to_owned(), json!(STANDARD.encode(value)));
            }
        }
        secret["data"] = Value::Object(data);
        client.replace(&SECRETS, key, "", &secret).await.map(|_| ())
    }

    async fn make(&self, key: &Key) -> Result<(), Error> {
        let Some(account) = self.accounts.get(key) else { return Ok(()) };
        let annotations = json!({ ACCOUNT: key.name, ACCOUNT_UID: account.metadata.uid });
        let metadata = json!({ "namespace": key.namespace, "name": own_name(account), "annotations": annotations });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "type": TYPE, "metadata": metadata });
        match self.settings.client.create(&SECRETS, &key.namespace, &secret).await {
            Err(error) if !error.is_already_exists() => Err(error),
            _ => Ok(()),
        }
    }

    async fn name(&self, key: &Key, secret: &str) -> Result<(), Error> {
        let mut account: Value = self.settings.client.get_as(&SERVICE_ACCOUNTS, key).await?;
        let named = json!({ "name": secret });
        match account["secrets"].as_array_mut() {
            Some(secrets) if secrets.contains(&named) => return Ok(()),
            Some(secrets) => secrets.push(named),
            None => account["secrets"] = json!([named]),
        }
        self.settings.client.replace(&SERVICE_ACCOUNTS, key, "", &account).await.map(|_| ())
    }
}

/// What the Secret is called that is made for an account: the same at each try.
fn own_name(account: &Account) -> String {
    let ObjectMeta { name, uid, .. } = &account.metadata;
    format!("{name}-token-{}", uid.split('-').next().unwrap_or_default())
}

/// Four fifths of its life are not over. One without an end is good for ever.
fn is_good(encoded: &str, now: Time) -> bool {
    match claims_of(encoded) {
        // Whoever wrote the Secret may say anything.
        Some(Claims { iat, exp: Some(end) }) => {
            now.unix_millis() / 1000 < iat.saturating_add(end.saturating_sub(iat) / 5 * 4)
        }
        // What cannot be read is somebody else's.
        _ => !encoded.is_empty(),
    }
}

fn claims_of(encoded: &str) -> Option<Claims> {
    let token = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?).ok()
}

#[derive(Deserialize)]
struct Claims {
    #[serde(default)]
    iat: i64,
    exp: Option<i64>,
}

#[derive(Deserialize)]
struct TokenSecret {
    metadata: ObjectMeta,
    #[serde(default)]
    data: TokenData,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenData {
    token: String,
}

#[derive(Deserialize)]
struct Account {
    metadata: ObjectMeta,
    #[serde(default)]
    secrets: Vec<Named>,
}

impl Account {
    fn names(&self, secret: &str) -> bool {
        self.secrets.iter().any(|it| it.name == secret)
    }
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    name: String,
}

#[cfg(test)]
mod tests;
