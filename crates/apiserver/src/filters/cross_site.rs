//! Refuses what a page of another site makes a browser do with its user's client certificate.
//!
//! A token is for the page itself to send, so it says that the page was given it. Upstream asks for tokens, too, and leaves
//! those with certificates to themselves.

use corten_access::credential::Credential;
use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use corten_stream::is_cross_site;

use super::next::Rest;
use crate::context::Context;

const REFUSED: &str = "cross-site request with a client certificate: use a token";

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    if matches!(ctx.credential, Credential::Certificate) && is_cross_site(&ctx.method, &ctx.uri, &ctx.headers) {
        return answer::status(&Status::failure(403, "Forbidden", REFUSED));
    }
    rest.run(ctx).await
}
