//! The tokens by which a node's Pods speak as their service accounts.

use corten_api::resources::SERVICE_ACCOUNTS;
use corten_client::{Client, Error, decode};
use corten_kubelet::{PodRef, Token, TokenWish};
use corten_meta::{Key, Time};
use serde::Deserialize;
use serde_json::json;

/// Asks for a token. It is kept: a Pod that is started while no server answers is given the one of before.
pub(crate) async fn request(client: &Client, pod: &PodRef, account: &str, wish: &TokenWish) -> Result<Token, Error> {
    #[derive(Deserialize)]
    struct Answer {
        status: Issued,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Issued {
        token: String,
        expiration_timestamp: Time,
    }
    let audiences: Vec<&str> = Some(&*wish.audience).into_iter().filter(|it| !it.is_empty()).collect();
    let request = json!({
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": wish.seconds,
            "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": pod.key.name, "uid": pod.uid },
        },
    });
    let key = Key::new(pod.key.namespace.clone(), account);
    let what = format!("{} {}s", wish.audience, wish.seconds);
    let client = client.for_owner(&pod.uid);
    let answer = client.obtain(&SERVICE_ACCOUNTS, (&key, "token"), &what, &request).await?;
    let Answer { status } = decode(&answer)?;
    Ok(Token { token: status.token, expires: status.expiration_timestamp })
}
