//! `/debug/api_priority_and_fairness/`: who waits and who is answered in which priority level (upstream's paths).

use corten_cacher::{answer, body::Response};
use corten_fairness::Dump;
use http::StatusCode;

use crate::context::Context;

const FOLDER: &str = "/debug/api_priority_and_fairness/";

/// `None` where something else is asked for.
pub(crate) fn answer(ctx: &Context) -> Option<Response> {
    let includes_details = || ctx.info.query.get("includeRequestDetails").is_some_and(|it| !it.is_empty());
    let dump = match ctx.info.path.strip_prefix(FOLDER)? {
        "dump_priority_levels" => Dump::PriorityLevels,
        "dump_queues" => Dump::Queues,
        "dump_requests" => Dump::Requests { includes_details: includes_details() },
        _ => return None,
    };
    let table = ctx.state.fairness().dump(ctx.state.caches(), dump);
    Some(answer::text(StatusCode::OK, table))
}
