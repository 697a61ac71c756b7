//! No request takes longer than a minute until its answer begins. A watch has begun by then.

use std::time::Duration;

use corten_cacher::{answer, body::Response};
use corten_meta::{Status, duration::nanos};

use crate::{context::Context, filters::next::Rest};

const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    // As in `WithRequestDeadline`: what is asked of others takes as long as they take, and the query is theirs.
    if ctx.info.proxied.is_some() || ctx.is_aggregated_for_long() {
        let Some(attendance) = ctx.attendance() else { return rest.run(ctx).await };
        // Nothing else would end it; nobody sees this answer.
        return tokio::select! {
            response = rest.run(ctx) => response,
            () = attendance.ends() => answer::status(&Status::timeout("the client has left")),
        };
    }
    let Ok(asked) = ctx.info.query.get("timeout").map(nanos).transpose() else {
        return answer::status(&Status::bad_request("invalid timeout specified in the request URL"));
    };
    let deadline = asked.map_or(DEADLINE, within);
    ctx.deadline = Some(tokio::time::Instant::now() + deadline);
    match tokio::time::timeout(deadline, rest.run(ctx)).await {
        Ok(response) => response,
        Err(_) => super::measure::terminated(ctx, &too_late()),
    }
}

pub(super) fn too_late() -> Status {
    Status::timeout("request did not complete within the allotted timeout")
}

/// As in `parseTimeout`: zero and less are no wish, and nobody may wish for more.
fn within(nanos: i64) -> Duration {
    match u64::try_from(nanos) {
        Ok(1..) => Duration::from_nanos(nanos.unsigned_abs()).min(DEADLINE),
        _ => DEADLINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_heard_within_the_bound() {
        for (text, millis) in
            [("30s", 30_000), ("500ms", 500), ("0", 60_000), ("-5s", 60_000), ("1m30s", 60_000), ("2562047h", 60_000)]
        {
            assert_eq!(within(nanos(text).expect(text)), Duration::from_millis(millis), "{text}");
        }
    }
}
