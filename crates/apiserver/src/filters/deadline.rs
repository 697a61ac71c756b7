//! No request takes longer than a minute until its answer begins. A watch has begun by then.

use std::time::Duration;

use corten_meta::Status;

use crate::{
    answer,
    chain::Rest,
    request::{Context, Response},
};

const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    // As upstream: what is asked of others takes as long as they take, and the query is theirs.
    if ctx.info.proxied.is_some() {
        return rest.run(ctx).await;
    }
    let asked = ctx.info.query.get("timeout").map(seconds);
    let deadline = match asked {
        None => DEADLINE,
        Some(Some(asked)) if asked.is_zero() => DEADLINE,
        Some(Some(asked)) => asked.min(DEADLINE),
        Some(None) => {
            return answer::status(&Status::bad_request("invalid timeout specified in the request URL"));
        }
    };
    match tokio::time::timeout(deadline, rest.run(ctx)).await {
        Ok(response) => response,
        Err(_) => answer::status(&Status::timeout("request did not complete within the allotted timeout")),
    }
}

/// Go's notation for the few units clients use: `30s`, `1m30s`, `500ms`; `0`.
fn seconds(text: &str) -> Option<Duration> {
    let (mut total, mut rest) = (Duration::ZERO, text);
    while !rest.is_empty() && rest != "0" {
        let digits = rest.find(|it: char| !it.is_ascii_digit())?;
        let number: u32 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|it: char| it.is_ascii_digit()).map_or(rest.len(), |it| it + digits);
        let unit = match &rest[digits..unit_end] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return None,
        };
        total = total.saturating_add(unit.saturating_mul(number));
        rest = &rest[unit_end..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_go_durations() {
        for (text, expected) in [
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("500ms", Some(500)),
            ("0", Some(0)),
            ("x", None),
            ("5", None),
            ("5y", None),
        ] {
            assert_eq!(seconds(text), expected.map(Duration::from_millis), "{text}");
        }
    }
}
