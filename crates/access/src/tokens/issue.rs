//! Makes tokens of service accounts, bound to what is to end them.

use corten_api::resources::{NODES, PODS, SECRETS};
use corten_cacher::watch_cache::{Caches, Stored};
use corten_meta::{Resource, Status, Time};
use corten_pki::TokenKey;
use serde_json::{Value, json};

use super::{
    ISSUER,
    claims::{BoundObject, Claims, Private, user_name},
    jwt, unix_seconds,
};

/// The hour and a little that kubelets ask for on behalf of Pods which may not know that tokens end. Such a token lasts a
/// year, and its use after the hour is told of.
const EXTENDED_SECONDS: i64 = 60 * 60 + 7;
const EXTENSION_SECONDS: i64 = 365 * 24 * 60 * 60;

/// What is asked for, checked by [`bound`] and by the verb.
pub struct TokenSpec<'a> {
    pub namespace: &'a str,
    pub account: &'a str,
    pub account_uid: &'a str,
    pub audiences: Vec<String>,
    pub seconds: i64,
    pub bound: Option<BoundTo>,
}

/// What ends the token before its time.
pub struct BoundTo {
    pod: Option<BoundObject>,
    secret: Option<BoundObject>,
    node: Option<BoundObject>,
}

pub struct Issued {
    pub token: String,
    /// Names the token in audit records.
    pub id: String,
    /// In Unix seconds; what the asker is told.
    pub expires: i64,
}

/// A new token, named `id`.
///
/// # Errors
/// 500 where the system gives no randomness.
pub fn issue(key: &TokenKey, now: Time, id: String, wanted: TokenSpec<'_>) -> Result<Issued, Status> {
    let now = unix_seconds(now);
    let for_us = wanted.audiences.iter().all(|it| it == ISSUER);
    let extended = wanted.seconds == EXTENDED_SECONDS && for_us;
    let bound = wanted.bound.unwrap_or(BoundTo { pod: None, secret: None, node: None });
    let claims = Claims {
        aud: wanted.audiences,
        exp: now.saturating_add(if extended { EXTENSION_SECONDS } else { wanted.seconds }),
        iat: now,
        iss: ISSUER.into(),
        jti: id,
        private: Private {
            namespace: wanted.namespace.into(),
            node: bound.node,
            pod: bound.pod,
            secret: bound.secret,
            serviceaccount: BoundObject { name: wanted.account.into(), uid: wanted.account_uid.into() },
            warnafter: extended.then_some(now.saturating_add(wanted.seconds)),
        },
        nbf: now,
        sub: user_name(wanted.namespace, wanted.account),
    };
    let token = jwt::signed(key, &claims)
        .ok_or_else(|| Status::internal("failed to generate token: the system gives no randomness"))?;
    Ok(Issued { token, id: claims.jti, expires: now.saturating_add(wanted.seconds) })
}

/// The object a token is to be bound to, as it is now.
///
/// # Errors
/// 400 for a kind that cannot be bound to or a Pod of another account, 404 where it is missing, 409 where it is another
/// object of the same name.
pub fn bound(caches: &Caches, namespace: &str, account: &str, reference: &Value) -> Result<BoundTo, Status> {
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let (api_version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let none = BoundTo { pod: None, secret: None, node: None };
    let find = |resource: &Resource, namespace: &str| {
        let cache = caches.get(resource).expect("a row of the table");
        cache.get(namespace, name).ok_or_else(|| Status::not_found(resource, name))
    };
    let bound = |it: &Stored| Some(BoundObject { name: it.name().into(), uid: it.uid().into() });
    let (found, to) = match (group, kind) {
        ("", "Pod") => {
            let pod = find(&PODS, namespace)?;
            let spec = &pod.parse()["spec"];
            if spec["serviceAccountName"] != account {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            let node = spec["nodeName"].as_str().filter(|it| !it.is_empty()).map(|it| node_of(caches, it));
            let to = BoundTo { pod: bound(&pod), node, ..none };
            (pod, to)
        }
        ("", "Secret") => {
            let secret = find(&SECRETS, namespace)?;
            let to = BoundTo { secret: bound(&secret), ..none };
            (secret, to)
        }
        ("", "Node") => {
            let node = find(&NODES, "")?;
            let to = BoundTo { node: bound(&node), ..none };
            (node, to)
        }
        _ => {
            let group_version = if group.is_empty() { format!("/{version}") } else { api_version.to_owned() };
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group_version}, Kind={kind}"
            )));
        }
    };
    let (asked, is) = (text("uid"), found.uid());
    if !asked.is_empty() && asked != is {
        let of = Resource { plural: kind.to_owned().into(), ..PODS };
        return Err(Status::conflict(
            &of,
            name,
            &format!(
                "the UID in the bound object reference ({asked}) does not match the UID in record. The object might have been deleted and then recreated"
            ),
        ));
    }
    Ok(to)
}

fn node_of(caches: &Caches, name: &str) -> BoundObject {
    let nodes = caches.get(&NODES).expect("a row of the table");
    BoundObject { name: name.to_owned(), uid: nodes.get("", name).map(|it| it.uid().to_owned()).unwrap_or_default() }
}

/// `status` of an answered request.
pub fn status(issued: &Issued) -> Value {
    let expires = Time::from_unix_seconds(issued.expires).to_string();
    json!({ "token": issued.token, "expirationTimestamp": expires })
}
