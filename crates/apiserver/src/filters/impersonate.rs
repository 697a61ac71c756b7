//! Lets those who may act as someone else: `kubectl --as`. What comes after sees only whom they act as; the audit record
//! names both.

use corten_access::impersonation::{self, Allowed, ImpersonatedUser};
use corten_cacher::{answer, body::Response};

use super::next::Rest;
use crate::context::Context;

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    if !impersonation::is_asked(&ctx.headers) {
        return rest.run(ctx).await;
    }
    let wanted = match ImpersonatedUser::of(&ctx.headers) {
        Ok(wanted) => wanted,
        Err(status) => return answer::status(&status),
    };
    impersonation::forget(&mut ctx.headers);
    let Some(wanted) = wanted else { return rest.run(ctx).await };
    // Boxed: most requests do not impersonate anybody.
    let impersonated = Box::pin(ctx.state.access().impersonated(&wanted, &ctx.info, ctx.asker_now()));
    match impersonated.await {
        Ok(Allowed { identity, constraint }) => {
            ctx.impersonator = ctx.identity.replace(identity);
            ctx.impersonation_constraint = constraint;
            ctx.impersonated = Some(wanted);
            rest.run(ctx).await
        }
        Err(refused) => answer::status(&refused.status),
    }
}
