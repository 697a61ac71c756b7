//! Deletes Secrets that hold what is no longer good: tokens of service accounts that are gone, bootstrap tokens past their
//! time.

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Answer, Controller, Effect, Plan, Propagation, Verb, View, Wake, Watch, Write};
use serde::Deserialize;

use crate::projections::{Bare, projection};

const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
const DELETE: &[Write] = &[Write { verb: Verb::Delete, resource: resources::SECRETS, fields: &[] }];

/// A Secret, without what is secret in it.
#[derive(Deserialize)]
struct TokenSecret {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Open,
}
projection!(TokenSecret, resources::SECRETS);

#[derive(Default, Deserialize)]
#[serde(default)]
struct Open {
    expiration: Option<String>,
}

fn of_type(r#type: &str, wake: Wake) -> Watch {
    let mut watch = Watch::new::<TokenSecret>(wake);
    watch.field_selector = format!("type={}", r#type);
    watch
}

fn delete(secret: &TokenSecret) -> Effect {
    Effect::Delete {
        resource: resources::SECRETS,
        key: secret.metadata.key(),
        uid: secret.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}

pub struct ServiceAccountTokens;

impl Controller for ServiceAccountTokens {
    fn name(&self) -> &'static str {
        "serviceaccount-token"
    }

    fn watches(&self) -> Vec<Watch> {
        let secrets = of_type("kubernetes.io/service-account-token", Wake::Itself);
        vec![secrets, Watch::of::<Bare>(resources::SERVICE_ACCOUNTS, Wake::With(secrets_of))]
    }

    fn writes(&self) -> &'static [Write] {
        DELETE
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(secret) = view.get::<TokenSecret>(key) else { return Plan::default() };
        let annotations = &secret.metadata.annotations;
        let Some(name) = annotations.get(ACCOUNT_NAME) else { return Plan::default() };
        let account = Key::new(&*key.namespace, &**name);
        let is_meant = |uid: &str| annotations.get(ACCOUNT_UID).is_none_or(|it| it.is_empty() || it == uid);
        let held = view.get_in::<Bare>(&resources::SERVICE_ACCOUNTS, &account);
        if secret.metadata.is_deleting() || held.is_some_and(|it| is_meant(&it.metadata.uid)) {
            return Plan::default();
        }
        let effect = match view.answer(&resources::SERVICE_ACCOUNTS, &account) {
            None => Some(Effect::Ask { resource: resources::SERVICE_ACCOUNTS, key: account }),
            Some(Answer::Found { uid }) if is_meant(uid) => None,
            Some(_) => Some(delete(secret)),
        };
        Plan { effects: effect.into_iter().collect(), ..Plan::default() }
    }
}

fn secrets_of(view: &View, account: &ObjectMeta) -> Vec<Key> {
    let secrets = view.in_namespace::<TokenSecret>(&account.namespace);
    let of_account = secrets.filter(|it| it.metadata.annotations.get(ACCOUNT_NAME) == Some(&account.name));
    of_account.map(|it| it.metadata.key()).collect()
}

pub struct BootstrapTokens;

impl Controller for BootstrapTokens {
    fn name(&self) -> &'static str {
        "token-cleaner"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![of_type("bootstrap.kubernetes.io/token", Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        DELETE
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let secret = view.get::<TokenSecret>(key).filter(|_| key.namespace == "kube-system");
        let Some(secret) = secret.filter(|it| !it.metadata.is_deleting()) else { return Plan::default() };
        match expiration(secret) {
            Some(end) if end <= now => Plan { effects: vec![delete(secret)], ..Plan::default() },
            end => Plan { wake_at: end, ..Plan::default() },
        }
    }
}

/// One that cannot be read is left alone: authentication does not take it either.
fn expiration(secret: &TokenSecret) -> Option<Time> {
    let bytes = STANDARD.decode(secret.data.expiration.as_ref()?).ok()?;
    String::from_utf8(bytes).ok()?.parse().ok()
}
