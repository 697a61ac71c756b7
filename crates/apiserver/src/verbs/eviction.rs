//! `pods/NAME/eviction`: a delete that a disruption budget may refuse. There is no such kind yet, so none does.

use corten_meta::Status;
use http::StatusCode;

use super::{
    delete::{self, DeleteOptions},
    target::Target,
    write::Asked,
};
use crate::{
    admission::Operation,
    answer, codec,
    request::{Context, Response},
};

pub(super) async fn evict(ctx: &mut Context, target: &Target) -> Result<Response, Status> {
    let mut eviction = codec::document(ctx, "Eviction").await?.value;
    let kind = eviction["kind"].as_str().unwrap_or("Eviction");
    if kind != "Eviction" {
        return Err(Status::bad_request(format!("{kind} cannot be handled as an Eviction")));
    }
    let name = eviction["metadata"]["name"].as_str().unwrap_or_default();
    if !name.is_empty() && name != target.name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let asked = Asked { ctx, target, operation: Operation::Create, old: None };
    asked.admit(&mut eviction).await?;
    asked.validate(&eviction).await?;
    let mut options = DeleteOptions::of(&eviction["deleteOptions"])?;
    options.pretend_if(ctx.dry_run());
    delete::remove(ctx, target, &options).await?;
    let mut status = Status::success();
    status.code = 201;
    Ok(answer::json(StatusCode::CREATED, &status))
}
