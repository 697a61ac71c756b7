//! Clients that each speak as a service account of kube-system, by tokens that the API server gives for it.
//!
//! As client-go's `DynamicClientBuilder`: an account that is missing is made, its token is of an hour and is had anew when four fifths of
//! that are over, and at once where it is refused.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_api::resources::SERVICE_ACCOUNTS;
use corten_client::{Body, BoxFuture, Client, Error, Transport, TransportError, decode};
use corten_meta::{Key, Time};
use http::{HeaderValue, Request, Response, StatusCode, header};
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::Mutex, time::Instant};

use crate::process::Clock;

const NAMESPACE: &str = "kube-system";
const LIFETIME: Duration = Duration::from_secs(3600);
/// Where clocks differ a token seems to be over already: it is had anew no sooner than after this.
const RENEWED_AFTER_MIN: Duration = Duration::from_secs(30);

/// Makes such clients.
#[derive(Clone)]
pub(crate) struct AccountClients {
    /// Who may make accounts and ask for their tokens.
    manager: Client,
    /// To the same server, as nobody.
    transport: Arc<dyn Transport>,
    clock: Clock,
}

impl AccountClients {
    pub(crate) fn new(manager: Client, transport: Arc<dyn Transport>, clock: Clock) -> Self {
        Self { manager, transport, clock }
    }

    pub(crate) fn client(&self, account: &str) -> Client {
        let account = Key::new(NAMESPACE, account);
        Client::new(Arc::new(AccountTransport { clients: self.clone(), account, held: Mutex::default() }))
    }
}

struct AccountTransport {
    clients: AccountClients,
    account: Key,
    /// Held while a token is asked for: whoever comes meanwhile waits for it.
    held: Mutex<Option<Token>>,
}

#[derive(Clone)]
struct Token {
    bearer: HeaderValue,
    renewed_at: Instant,
}

impl Transport for AccountTransport {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(async move {
            let bearer = self.token(None).await?;
            let answer = self.clients.transport.send(authorized(request.clone(), &bearer)).await?;
            if answer.status() != StatusCode::UNAUTHORIZED {
                return Ok(answer);
            }
            // Nothing was done: the account is another now, or the key of tokens.
            let bearer = self.token(Some(&bearer)).await?;
            self.clients.transport.send(authorized(request, &bearer)).await
        })
    }

    fn host(&self) -> Option<Arc<str>> {
        self.clients.transport.host()
    }
}

impl AccountTransport {
    /// A token that is good, as far as is known: another one than `refused`.
    async fn token(&self, refused: Option<&HeaderValue>) -> Result<HeaderValue, TransportError> {
        let mut held = self.held.lock().await;
        let known = held.as_ref().filter(|it| refused != Some(&it.bearer));
        if let Some(token) = known.filter(|it| Instant::now() < it.renewed_at) {
            return Ok(token.bearer.clone());
        }
        match (self.obtained().await, known) {
            (Ok(token), _) => Ok(held.insert(token).bearer.clone()),
            // It is good for a fifth of its life yet.
            (Err(error), Some(token)) => {
                tracing::warn!(account = %self.account, %error, "another token is not to be had yet");
                let bearer = token.bearer.clone();
                *held = Some(Token { bearer: bearer.clone(), renewed_at: Instant::now() + RENEWED_AFTER_MIN });
                Ok(bearer)
            }
            (Err(error), None) => {
                Err(TransportError(format!("no token of the service account {}: {error}", self.account)))
            }
        }
    }

    async fn obtained(&self) -> Result<Token, Error> {
        let manager = &self.clients.manager;
        let asked = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": { "expirationSeconds": LIFETIME.as_secs() },
        });
        let ask = async || manager.create_subresource(&SERVICE_ACCOUNTS, &self.account, "token", &asked).await;
        let answer = match ask().await {
            Err(error) if error.is_not_found() => {
                self.make().await?;
                ask().await?
            }
            answer => answer?,
        };
        let status = decode::<TokenRequest>(&answer)?.status;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", status.token))
            .map_err(|_| Error::Decode("the token holds characters no header may hold".to_owned()))?;
        bearer.set_sensitive(true);
        let life = status.expiration_timestamp.since((self.clients.clock)());
        let renewed_at = Instant::now() + life.mul_f64(0.8).max(RENEWED_AFTER_MIN);
        Ok(Token { bearer, renewed_at })
    }

    async fn make(&self) -> Result<(), Error> {
        let Key { namespace, name } = &self.account;
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": namespace, "name": name },
        });
        match self.clients.manager.create(&SERVICE_ACCOUNTS, namespace, &account).await {
            Err(error) if !error.is_already_exists() => Err(error),
            _ => Ok(()),
        }
    }
}

fn authorized(mut request: Request<Bytes>, bearer: &HeaderValue) -> Request<Bytes> {
    request.headers_mut().insert(header::AUTHORIZATION, bearer.clone());
    request
}

#[derive(Deserialize)]
struct TokenRequest {
    status: TokenStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenStatus {
    token: String,
    expiration_timestamp: Time,
}

#[cfg(test)]
mod tests;
