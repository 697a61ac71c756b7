//! TokenReview: who holds this token, as far as this server knows?

use corten_meta::{Status, aggregate};
use serde_json::{Value, json};

use super::{Authenticator, CachesNow, ISSUER};
use crate::identity::user_info;

/// What is asked about. Empty where nothing is.
pub(crate) fn token(spec: &Value) -> &str {
    spec["token"].as_str().unwrap_or_default().trim()
}

/// The `status` of a review.
///
/// # Errors
/// 400 where there is no token to ask about.
pub(crate) async fn status(authenticator: &Authenticator, at: &CachesNow<'_>, spec: &Value) -> Result<Value, Status> {
    let token = token(spec);
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let asked: Vec<&str> = spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let audiences = if asked.is_empty() { vec![ISSUER] } else { asked };
    Ok(match authenticator.holder(at, token, &audiences, None).await {
        Ok(accepted) => {
            let who = accepted.who.authenticated();
            json!({ "authenticated": true, "user": user_info(&who), "audiences": accepted.audiences })
        }
        Err(unproven) => {
            let error = aggregate(unproven.reasons).unwrap_or_default();
            json!({ "user": {}, "error": error })
        }
    })
}
