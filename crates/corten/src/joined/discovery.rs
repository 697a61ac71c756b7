//! Finds out whose cluster it is: asks for its authority as a stranger, and believes the one whose public key has the hash that
//! the token came with.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use bytes::Bytes;
use corten_api::{core::v1::ConfigMap, resources::CONFIG_MAPS};
use corten_cli::Failure;
use corten_client::{
    Client, Error,
    https::API_SERVER_NAME,
    kubeconfig::{Kubeconfig, RestConfig},
};
use corten_meta::{Key, Time};
use corten_pki::{BootstrapToken, is_public_key_hash, public_key_hashes};
use http::{HeaderMap, Request, header};

use super::client;

const CLUSTER_INFO: &str = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
/// As far as certificates are dated back, so that a clock that is behind by this much believes them.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(300);
/// So long a control plane that has joined already waits for the server it joined by, before it begins without it.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);
/// More than a cluster says of itself: nobody is believed yet.
const ANSWER_MAX: usize = 1 << 20;
const CREATE: &str = "corten token create";

/// What `corten token create` printed.
#[derive(Clone, Debug)]
pub(crate) struct Invitation {
    /// `https://host:port`.
    pub(crate) server: String,
    pub(crate) token: BootstrapToken,
    pub(crate) ca_hash: String,
}

impl Invitation {
    /// # Errors
    /// What is no URL, token or hash.
    pub(crate) fn of(server: &str, token: Option<&str>, ca_hash: Option<&str>) -> Result<Self> {
        let refused = |message: String| Failure::new(message).next(format!("{CREATE} # on a machine of the cluster"));
        let (Some(token), Some(ca_hash)) = (token, ca_hash) else {
            return Err(refused("--token and --ca-hash are needed to join a cluster".to_owned()).into());
        };
        if !server.starts_with("https://") {
            return Err(refused(format!("{server:?} is no API server: its address begins with https://")).into());
        }
        let Some(token) = BootstrapToken::parse(token) else {
            return Err(refused("--token: a token is abcdef.0123456789abcdef".to_owned()).into());
        };
        if !is_public_key_hash(ca_hash) {
            return Err(refused("--ca-hash: a hash is sha256: and 64 hexadecimal digits".to_owned()).into());
        }
        let (server, ca_hash) = (server.trim_end_matches('/').to_owned(), ca_hash.to_lowercase());
        Ok(Self { server, token, ca_hash })
    }

    /// Its server, of the authority `ca`, asked with its token. What another machine of the cluster may show a certificate for, which has
    /// come to its address, is not asked.
    pub(super) fn target(&self, ca: &str) -> RestConfig {
        RestConfig {
            server: self.server.clone(),
            ca: ca.as_bytes().to_vec(),
            token: Some(self.token.text()),
            server_name: Some(API_SERVER_NAME.to_owned()),
            ..RestConfig::default()
        }
    }
}

/// The certificate (PEM) of the authority that the hash names.
///
/// # Errors
/// The server is not reached, publishes no authority or another one, or the clocks are apart.
pub(crate) async fn discover(invitation: &Invitation) -> Result<String> {
    let server = &invitation.server;
    let (headers, published) = published(&stranger(server)?).await.map_err(|it| unpublished(server, &it))?;
    refuse_other_clock(server, &headers, SystemTime::now())?;
    let hashes = public_key_hashes(&published);
    if let Some((_, certificate)) = hashes.iter().find(|it| it.0 == invitation.ca_hash) {
        return Ok(certificate.clone());
    }
    let found: Vec<&str> = hashes.iter().map(|it| it.0.as_str()).collect();
    let message =
        format!("{server} is not the API server that the token is for: its authority's hash is not --ca-hash");
    let mut failure = Failure::new(message).next(format!("{CREATE} # on a machine of the cluster"));
    failure.details.push(format!("asked for:     {}", invitation.ca_hash));
    failure.details.push(format!("found:         {}", found.join(", ")));
    Err(failure.into())
}

/// Compares the clocks of this machine and of the server, where that answers soon: one that has joined begins without it, too.
///
/// # Errors
/// The clocks are apart.
pub(super) async fn compare_clocks(invitation: &Invitation) -> Result<()> {
    let server = &invitation.server;
    match tokio::time::timeout(ANSWERS_WITHIN, published(&stranger(server)?)).await {
        Ok(Ok((headers, _))) => refuse_other_clock(server, &headers, SystemTime::now()),
        Ok(Err(_)) | Err(_) => Ok(()),
    }
}

/// Asks a server that is not known yet.
fn stranger(server: &str) -> Result<Client> {
    let target = RestConfig { server: server.to_owned(), insecure_skip_tls_verify: true, ..RestConfig::default() };
    Ok(client(&target)?.with_answers_up_to(ANSWER_MAX))
}

/// The authorities that the cluster tells its own nodes of, as PEM.
///
/// # Errors
/// The server is not reached, or tells of none.
pub(crate) async fn trusted(client: &Client) -> Result<String, String> {
    let key = Key::new("kube-system", "kube-root-ca.crt");
    let told: ConfigMap = client.get_as(&CONFIG_MAPS, &key).await.map_err(|it| it.to_string())?;
    let pem = told.data.unwrap_or_default().remove("ca.crt").filter(|it| !public_key_hashes(it).is_empty());
    pem.ok_or_else(|| format!("the ConfigMap {}/{} names no certificate authority", key.namespace, key.name))
}

async fn published(client: &Client) -> Result<(HeaderMap, String), Error> {
    let request = Request::get(CLUSTER_INFO).body(Bytes::new()).map_err(|it| Error::Decode(it.to_string()))?;
    let (head, body) = client.request(request).await?.into_parts();
    let info: ConfigMap = corten_client::decode(&body)?;
    let kubeconfig = info.data.unwrap_or_default().remove("kubeconfig").unwrap_or_default();
    let config = Kubeconfig::parse(&kubeconfig).map_err(Error::Decode)?;
    let pem = config.clusters.first().and_then(|it| it.cluster.authorities());
    let pem = pem.ok_or_else(|| Error::Decode("cluster-info names no certificate authority".to_owned()))?;
    Ok((head.headers, pem))
}

fn unpublished(server: &str, error: &Error) -> anyhow::Error {
    match error {
        Error::Status(status) if matches!(status.code, 401 | 403 | 404) => {
            let message = format!("{server} tells strangers no authority (kube-public/cluster-info): {status}");
            Failure::new(message).next(format!("{CREATE} # on a machine of the cluster")).into()
        }
        Error::Transport(error) => {
            let mut failure = Failure::new(format!("the API server {server} is not reached: {error}"));
            let hint = "it must run, be served at this address (`corten up --bind`), and no firewall may be between";
            failure.details.push(hint.to_owned());
            failure.next(format!("curl -k {server}/version")).into()
        }
        other => Failure::new(format!("{server} gave no authority to know it by: {other}")).into(),
    }
}

/// A certificate that is signed now is not valid yet, or no longer, by a clock that is far off.
fn refuse_other_clock(server: &str, headers: &HeaderMap, now: SystemTime) -> Result<()> {
    let date = headers.get(header::DATE).and_then(|it| it.to_str().ok());
    let Some(theirs) = date.and_then(|it| jiff::fmt::rfc2822::parse(it).ok()).map(|it| it.timestamp()) else {
        return Ok(());
    };
    let Ok(own) = jiff::Timestamp::try_from(now) else { return Ok(()) };
    let apart = own.duration_since(theirs).unsigned_abs();
    if apart <= CLOCKS_APART_MAX {
        return Ok(());
    }
    let (own, theirs) = (Time(own).whole_seconds(), Time(theirs).whole_seconds());
    let message =
        format!("this machine's clock says {own}, that of {server} {theirs}: certificates are not good by both");
    Err(Failure::new(message).next("timedatectl set-ntp true").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_invitation_is_refused() {
        let hash = format!("sha256:{}", "0".repeat(64));
        let token = "abcdef.0123456789abcdef";
        for (server, token, hash, said) in [
            ("https://a:6443", None, Some(&*hash), "--token and --ca-hash are needed"),
            ("http://a:6443", Some(token), Some(&*hash), "its address begins with https://"),
            ("https://a:6443", Some("abcdef"), Some(&*hash), "a token is abcdef."),
            ("https://a:6443", Some(token), Some("sha256:0"), "a hash is sha256:"),
        ] {
            let error = Invitation::of(server, token, hash).expect_err("refused").to_string();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(Invitation::of("https://a:6443/", Some(token), Some(&hash)).expect("fine").server, "https://a:6443");
    }

    #[test]
    fn clocks_that_are_far_apart_are_refused() {
        let mut headers = HeaderMap::new();
        headers.insert(header::DATE, "Thu, 26 Nov 2026 10:00:00 GMT".parse().expect("a header"));
        let at = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let server_time = 1_795_687_200;
        assert!(refuse_other_clock("s", &headers, at(server_time + 299)).is_ok());
        assert!(refuse_other_clock("s", &headers, at(server_time - 299)).is_ok());
        for now in [server_time - 3600, server_time + 3600] {
            let error = refuse_other_clock("https://s", &headers, at(now)).expect_err("an hour off").to_string();
            assert!(error.contains("that of https://s 2026-11-26T10:00:00Z"), "{error}");
        }
        assert!(refuse_other_clock("s", &HeaderMap::new(), at(0)).is_ok());
    }
}
