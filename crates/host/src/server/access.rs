//! Who is calling, and may they: asked of the cluster, as upstream delegates it.
//!
//! Nobody is anonymous here. Where the cluster cannot be asked nobody new gets in.

use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::Value;

use super::Refused;

/// Whose request it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
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
}

/// The caller that the connection's certificate names, else the bearer of the request's token.
pub(super) async fn authenticate(
    cluster: &dyn Cluster,
    certificate: Option<&Caller>,
    headers: &HeaderMap,
) -> Result<Caller, Refused> {
    if let Some(caller) = certificate {
        return Ok(caller.clone());
    }
    let unauthorized = || Refused::new(StatusCode::UNAUTHORIZED, "Unauthorized");
    let token = bearer(headers).ok_or_else(unauthorized)?;
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
    method: &Method,
    subresources: &[&'static str],
) -> Result<(), Refused> {
    let verb = verb(method);
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
                return Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, message));
            }
        }
    }
    let message = format!(
        "Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{}])",
        caller.user,
        subresources.join(" ")
    );
    Err(Refused::new(StatusCode::FORBIDDEN, message))
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}
