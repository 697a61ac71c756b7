//! Whether others let a connection begin, and with what: `exec`, `attach`, `portforward`, `proxy`.

use corten_meta::Status;

use super::{request_scope::RequestScope, write_request::WriteRequest};
use crate::context::Context;

/// # Errors
/// As the request is to be answered where it may not.
pub(crate) async fn admit(ctx: &mut Context, target: &RequestScope) -> Result<(), Status> {
    let Some(asked) = ctx.info.connect_options() else { return Ok(()) };
    let mut options = asked.clone();
    let connection = WriteRequest::connect(ctx, target);
    connection.admit(&mut options).await?;
    connection.validate(&options).await?;
    if options != asked {
        let taken = ctx.info.take_connect_options(&options);
        taken.map_err(|it| Status::internal(format!("an admission webhook or policy changed the options: {it}")))?;
    }
    Ok(())
}
