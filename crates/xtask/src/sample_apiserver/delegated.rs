//! Whom the server believes, and what the cluster says they may: what `extension-apiserver-authentication` names, and
//! SubjectAccessReviews.

use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use corten_client::Client;
use hyper::{Method, Request, header};
use rustls::{
    RootCertStore,
    crypto::{CryptoProvider, aws_lc_rs},
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use serde_json::{Value, json};
use x509_parser::prelude::{FromDer, X509Certificate};

const CONFIG: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub(super) struct Delegated {
    cluster: Client,
    roots: Arc<RootCertStore>,
    allowed_names: Vec<String>,
}

/// What a request is about.
pub(super) struct Question {
    pub(super) verb: &'static str,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The revision that a watch begins after.
    pub(super) after: u64,
}

impl Delegated {
    pub(super) async fn read(cluster: Client) -> Result<Self> {
        let config = cluster.get_path(CONFIG).await.context("asking whom to believe")?;
        let config: Value = serde_json::from_slice(&config)?;
        let text = |name: &str| config["data"][name].as_str().with_context(|| format!("{name} is not said"));
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(text("requestheader-client-ca-file")?.as_bytes()) {
            roots.add(root?)?;
        }
        let allowed_names = serde_json::from_str(text("requestheader-allowed-names")?)?;
        Ok(Self { cluster, roots: Arc::new(roots), allowed_names })
    }

    pub(super) fn provider(&self) -> Arc<CryptoProvider> {
        Arc::new(aws_lc_rs::default_provider())
    }

    /// Lets in who shows nothing, too: they hear why not.
    pub(super) fn clients(&self) -> Result<Arc<dyn ClientCertVerifier>> {
        let verifier = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), self.provider());
        Ok(verifier.allow_unauthenticated().build()?)
    }

    /// The handshake has checked who signed it.
    pub(super) fn is_front_proxy(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some(Ok((_, leaf))) = chain.first().map(|it| X509Certificate::from_der(it)) else { return false };
        let name = leaf.subject().iter_common_name().next().and_then(|it| it.as_str().ok());
        name.is_some_and(|name| self.allowed_names.iter().any(|it| it == name))
    }

    pub(super) async fn may(&self, user: &str, groups: &[String], question: &Question) -> Result<bool> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": { "user": user, "groups": groups, "resourceAttributes": {
                "group": "wardle.example.com", "version": "v1", "resource": "flunders", "verb": question.verb,
                "namespace": question.namespace, "name": question.name,
            } },
        });
        let request = Request::post(REVIEWS).header(header::CONTENT_TYPE, "application/json");
        let answer = self.cluster.request(request.body(Bytes::from(review.to_string()))?).await?;
        let answer: Value = serde_json::from_slice(answer.body())?;
        Ok(answer["status"]["allowed"] == true)
    }
}

impl Question {
    /// `None` where the path is none of Flunders.
    pub(super) fn of(method: &Method, path: &str, query: &str) -> Option<Self> {
        let rest = path.strip_prefix("/apis/wardle.example.com/v1/")?;
        let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
        let (namespace, name) = match parts[..] {
            ["flunders"] => ("", ""),
            ["namespaces", namespace, "flunders"] => (namespace, ""),
            ["namespaces", namespace, "flunders", name] => (namespace, name),
            _ => return None,
        };
        let value = |wanted: &str| query.split('&').filter_map(|it| it.split_once('=')).find(|it| it.0 == wanted);
        let is_watch = value("watch").is_some_and(|it| it.1 != "false" && it.1 != "0");
        let verb = match (method.as_str(), name) {
            ("GET", "") if is_watch => "watch",
            ("GET", "") => "list",
            ("GET", _) => "get",
            ("POST", "") => "create",
            ("PUT", _) => "update",
            ("DELETE", name) if !name.is_empty() => "delete",
            _ => return None,
        };
        let after = value("resourceVersion").and_then(|it| it.1.parse().ok()).unwrap_or_default();
        Some(Self { verb, namespace: namespace.to_owned(), name: name.to_owned(), after })
    }
}
