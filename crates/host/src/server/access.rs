//! Who is calling, and may they: asked of the cluster by TokenReview and SubjectAccessReview.
//!
//! Nobody is anonymous here. Where the cluster cannot be asked nobody new gets in.

use std::time::SystemTime;

use corten_stream::is_cross_site;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, StatusCode, header};
use serde_json::Value;

use super::answer::PlainTextError;

/// Whose request it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
}

/// Whose a connection is, by a certificate that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Certified {
    pub(super) caller: Caller,
    /// The certificate's end.
    pub(super) until: SystemTime,
}

/// What the caller must be allowed to do to the `subresource` of this node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeAccess {
    /// As RBAC writes it; empty for methods that have none.
    pub verb: &'static str,
    pub subresource: &'static str,
}

/// What the kubelet's server asks of the cluster, as its node. The answers may be some minutes old.
pub trait Cluster: Send + Sync + 'static {
    /// Whose token is it? `None` where it is nobody's.
    fn review_token(&self, token: String) -> BoxFuture<'_, Result<Option<Caller>, String>>;

    /// May they?
    fn review_access(&self, caller: Caller, access: NodeAccess) -> BoxFuture<'_, Result<bool, String>>;

    /// A Pod as the API has it.
    fn pod(&self, namespace: String, name: String) -> BoxFuture<'_, Result<Option<Value>, String>>;

    /// The `PodList` of this node.
    fn pods(&self) -> BoxFuture<'_, Result<Value, String>>;

    /// What the kubelet itself has, whatever the API says.
    fn own(&self) -> BoxFuture<'_, Result<OwnList, String>>;
}

/// What a kubelet has.
#[derive(Clone, Debug, Default)]
pub struct OwnList {
    pub node: Option<Value>,
    /// Each with the status that it has now.
    pub pods: Vec<Value>,
}

/// The caller that the connection's certificate names, else the bearer of the request's token. A connection can outlast
/// its certificate.
pub(super) async fn authenticate<B>(
    cluster: &dyn Cluster,
    certificate: Option<&Certified>,
    request: &Request<B>,
    now: SystemTime,
) -> Result<Caller, PlainTextError> {
    if let Some(certificate) = certificate.filter(|it| now <= it.until) {
        if is_cross_site(request.method(), request.uri(), request.headers()) {
            let message = "cross-site request with a client certificate: use a token";
            return Err(PlainTextError::new(StatusCode::FORBIDDEN, message));
        }
        return Ok(certificate.caller.clone());
    }
    let unauthorized = || PlainTextError::new(StatusCode::UNAUTHORIZED, "Unauthorized");
    let token = bearer(request.headers()).ok_or_else(unauthorized)?;
    match cluster.review_token(token).await {
        Ok(caller) => caller.ok_or_else(unauthorized),
        Err(error) => {
            tracing::warn!(%error, "cannot ask whose token a request to the kubelet carries");
            Err(unauthorized())
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// Any one of the subresources is enough; the first is the narrowest.
pub(super) async fn authorize(
    cluster: &dyn Cluster,
    caller: &Caller,
    verb: &'static str,
    subresources: &[&'static str],
) -> Result<(), PlainTextError> {
    for subresource in subresources {
        let access = NodeAccess { verb, subresource };
        match cluster.review_access(caller.clone(), access).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "cannot ask what a caller of the kubelet may do");
                let message = format!(
                    "Authorization error (user={}, verb={verb}, resource=nodes, subresource={subresource})",
                    caller.user
                );
                return Err(PlainTextError::new(StatusCode::INTERNAL_SERVER_ERROR, message));
            }
        }
    }
    let message = format!(
        "Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{}])",
        caller.user,
        subresources.join(" ")
    );
    Err(PlainTextError::new(StatusCode::FORBIDDEN, message))
}

pub(super) fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Knows one token.
    struct OneToken;

    impl Cluster for OneToken {
        fn review_token(&self, token: String) -> BoxFuture<'_, Result<Option<Caller>, String>> {
            let caller = Caller { user: "bearer".into(), ..Caller::default() };
            Box::pin(async move { Ok((token == "good").then_some(caller)) })
        }

        fn review_access(&self, _: Caller, access: NodeAccess) -> BoxFuture<'_, Result<bool, String>> {
            Box::pin(async move { Ok(access.verb == "get" && access.subresource == "proxy") })
        }

        fn pod(&self, _: String, _: String) -> BoxFuture<'_, Result<Option<Value>, String>> {
            Box::pin(async { Ok(None) })
        }

        fn pods(&self) -> BoxFuture<'_, Result<Value, String>> {
            Box::pin(async { Ok(Value::Null) })
        }

        fn own(&self) -> BoxFuture<'_, Result<OwnList, String>> {
            Box::pin(async { Ok(OwnList::default()) })
        }
    }

    #[tokio::test]
    async fn a_certificate_counts_until_its_end_and_for_its_own_site() {
        let until = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
        let caller = Caller { user: "ann".into(), ..Caller::default() };
        let certified = Certified { caller, until };
        let bearer = ("authorization", "Bearer good");
        let evil = ("origin", "https://evil.example");
        for (what, is_shown, seconds, method, headers, expected) in [
            ("a certificate", true, 999, "GET", &[][..], Ok("ann")),
            ("in its last second", true, 1000, "GET", &[], Ok("ann")),
            ("that has ended while the connection went on", true, 1001, "GET", &[], Err(401)),
            ("that has ended, and a token", true, 1001, "GET", &[bearer], Ok("bearer")),
            ("a token", false, 0, "GET", &[bearer], Ok("bearer")),
            ("a wrong token", false, 0, "GET", &[("authorization", "Bearer bad")], Err(401)),
            ("nothing", false, 0, "GET", &[], Err(401)),
            ("another site's form", true, 0, "POST", &[evil], Err(403)),
            ("another site's page that was given a token", false, 0, "POST", &[evil, bearer], Ok("bearer")),
            (
                "another site's websocket",
                true,
                0,
                "GET",
                &[evil, ("connection", "Upgrade"), ("upgrade", "websocket")],
                Err(403),
            ),
        ] {
            let mut request = Request::builder().method(method).uri("/exec/a/b/c").header("host", "n1:10250");
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(()).expect("a request");
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            let found = authenticate(&OneToken, is_shown.then_some(&certified), &request, now).await;
            let found = found.map(|it| it.user).map_err(|it| it.status.as_u16());
            assert_eq!(found, expected.map(str::to_owned), "{what}");
        }
    }

    /// Whoever may read through `nodes/proxy` gets no shell by way of a GET.
    #[tokio::test]
    async fn a_get_that_acts_needs_create() {
        for (path, expected) in [
            ("/containerLogs/a/b/c", true),
            ("/exec/a/b/c", false),
            ("/attach/a/b/c", false),
            ("/portForward/a/b", false),
        ] {
            let found = super::super::routes::find(&Method::GET, path);
            let may = authorize(&OneToken, &Caller::default(), found.verb, found.access).await;
            assert_eq!(may.is_ok(), expected, "{path}");
        }
    }
}
