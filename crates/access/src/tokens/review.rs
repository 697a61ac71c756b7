//! TokenReview: who holds this token, as far as this server knows?

use corten_meta::Status;
use serde_json::{Value, json};

use super::{Authenticator, ISSUER, Look};
use crate::identity::{AUTHENTICATED, user_info};

/// What is asked about. Empty where nothing is.
pub(crate) fn token(spec: &Value) -> &str {
    spec["token"].as_str().unwrap_or_default().trim()
}

/// The `status` of a review.
///
/// # Errors
/// 400 where there is no token to ask about.
pub(crate) fn status(authenticator: &Authenticator, at: &Look<'_>, spec: &Value) -> Result<Value, Status> {
    let token = token(spec);
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let asked: Vec<&str> = spec["audiences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let audiences = if asked.is_empty() { vec![ISSUER] } else { asked };
    Ok(match authenticator.authenticate(at, token, &audiences) {
        Ok(mut accepted) => {
            accepted.who.groups.push(AUTHENTICATED.into());
            json!({ "authenticated": true, "user": user_info(&accepted.who), "audiences": accepted.audiences })
        }
        Err(refusals) => {
            let error = match &*refusals {
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            json!({ "user": {}, "error": error })
        }
    })
}
