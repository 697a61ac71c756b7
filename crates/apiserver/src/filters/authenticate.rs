//! Finds out who asks: the caller inside the process, the holder of a client certificate, or nobody in particular.
//!
//! A credential that was presented and proves nothing is 401; only a request without any is anonymous.

use aws_lc_rs::digest::{SHA256, digest};
use corten_meta::Status;
use http::{HeaderMap, header};

use crate::{
    answer,
    chain::Rest,
    request::{Context, Identity, Peer, Response},
};

pub(crate) const ANONYMOUS: &str = "system:anonymous";
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    match identify(ctx) {
        Ok(identity) => ctx.identity = Some(identity),
        Err(status) => return answer::status(&status),
    }
    // Nobody further in needs the secret, and it must not be passed on to a kubelet.
    ctx.headers.remove(header::AUTHORIZATION);
    rest.run(ctx).await
}

fn identify(ctx: &mut Context) -> Result<Identity, Status> {
    let identity = match (&ctx.identity, &ctx.peer) {
        // Only calls from inside the process come with an identity: nothing on the wire can set it.
        (Some(known), _) => known.clone(),
        (None, peer) => from_wire(peer.as_ref(), &ctx.headers, &ctx.server.config().pki)?,
    };
    refuse_foreign_identities(&ctx.headers)?;
    Ok(identity)
}

fn from_wire(peer: Option<&Peer>, headers: &HeaderMap, pki: &crate::pki::Authority) -> Result<Identity, Status> {
    let chain = peer.map_or(&[][..], |it| &it.certificates);
    if let Some(leaf) = chain.first() {
        return match pki.verify_client(chain) {
            Ok(proven) => Ok(holder_of(leaf, proven)),
            Err(error) => {
                tracing::info!(%error, "a client certificate was refused");
                Err(Status::unauthorized())
            }
        };
    }
    if headers.contains_key(header::AUTHORIZATION) {
        return Err(Status::unauthorized());
    }
    Ok(Identity::new(ANONYMOUS, &[UNAUTHENTICATED]))
}

fn holder_of(leaf: &[u8], proven: crate::pki::Proven) -> Identity {
    let fingerprint: String = digest(&SHA256, leaf).as_ref().iter().map(|it| format!("{it:02x}")).collect();
    let mut identity = Identity { user: proven.user, groups: proven.groups, ..Identity::default() };
    if !identity.groups.iter().any(|it| it == AUTHENTICATED) {
        identity.groups.push(AUTHENTICATED.into());
    }
    let credential = "authentication.kubernetes.io/credential-id".to_owned();
    identity.extra.insert(credential, vec![format!("X509SHA256={fingerprint}")]);
    identity
}

/// Headers that would make the request someone else's are refused, not ignored: ignoring them would do the wrong thing
/// with the right of the real caller.
fn refuse_foreign_identities(headers: &HeaderMap) -> Result<(), Status> {
    for name in headers.keys().map(http::HeaderName::as_str) {
        if name.starts_with("impersonate-") {
            return Err(Status::failure(403, "Forbidden", "impersonation is not supported yet"));
        }
        if name.starts_with("x-remote-") {
            return Err(Status::failure(403, "Forbidden", "authentication by request headers is not supported yet"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
