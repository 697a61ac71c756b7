//! What journals say of webhooks and policies that fail, or deny all: in words, and who must act.

use corten_reconcile::{Actor, Wait};

use crate::{
    policy_source::{FailingPolicy, PolicyTrouble},
    webhook_source::{FailingWebhook, Trouble},
};

/// What becomes of a request.
fn becomes(may_fail: bool) -> &'static str {
    if may_fail { "passes without it" } else { "is refused" }
}

/// How often it failed, after `between`; nothing where it was once.
fn often(between: &str, n_in_a_row: u64, now_and_then: Option<(u32, u32)>) -> String {
    match now_and_then {
        Some((failed, of)) => format!("{between}{failed} of the last {of} times"),
        None if n_in_a_row > 1 => format!("{between}{n_in_a_row} times in a row"),
        None => String::new(),
    }
}

impl FailingWebhook {
    pub fn wait(&self) -> Wait {
        let Self { webhook, message, n_in_a_row, .. } = self;
        let becomes = becomes(self.may_fail);
        let often = often(", ", *n_in_a_row, self.now_and_then);
        let mut wait = match self.trouble {
            Trouble::NoAnswer | Trouble::Moves => {
                let begin = format!("failed calling webhook {webhook:?}: ");
                let why = message.strip_prefix(&begin).unwrap_or(message);
                let why = why.strip_prefix("failed to call webhook: ").unwrap_or(why);
                let message =
                    format!("webhook {webhook} gives no valid answer{often}, and what it is about {becomes}: {why}");
                Wait::new("WebhookFailing", message, Actor::External)
            }
            Trouble::Condition => {
                let message = format!(
                    "webhook {webhook} cannot be asked{often}, for one of its matchConditions fails, and what it is about {becomes}: {message}"
                );
                Wait::new("WebhookConditionFailed", message, Actor::Author)
            }
            Trouble::Denies => {
                let message = format!("webhook {webhook} denied all of the last {n_in_a_row} requests: {message}");
                Wait::new("WebhookDenying", message, Actor::External)
            }
        };
        wait.since = Some(self.since);
        wait
    }
}

impl FailingPolicy {
    pub fn wait(&self) -> Wait {
        let Self { operation, binding, parameter, message, n_in_a_row, .. } = self;
        let by = match &**parameter {
            "" => String::new(),
            parameter => format!("with its parameter, the {parameter}: "),
        };
        let becomes = becomes(self.may_fail);
        let mut wait = match self.trouble {
            PolicyTrouble::Fails | PolicyTrouble::Moves => {
                let often = often(" ", *n_in_a_row, self.now_and_then);
                let message = format!("it failed{often}, and what it is about {becomes}: {by}{message}");
                Wait::new("PolicyFailing", message, Actor::Author)
            }
            PolicyTrouble::Denies => {
                let message = format!(
                    "it denied the last {n_in_a_row} requests to {operation} that it was asked about, by {message}"
                );
                Wait::new("PolicyDenying", message, Actor::Author)
            }
            PolicyTrouble::Misconfigured => {
                let often = often(", ", *n_in_a_row, None);
                let message = format!(
                    "bound by {binding}, the policy could not be asked{often}, and what it is about {becomes}: {message}"
                );
                Wait::new("ParameterNotFound", message, Actor::Author)
            }
        };
        wait.since = Some(self.since);
        wait
    }
}

#[cfg(test)]
mod tests {
    use corten_meta::Time;

    use super::*;

    #[test]
    fn how_often_and_what_becomes_of_requests_is_said() {
        let webhook = FailingWebhook {
            webhook: "w".into(),
            trouble: Trouble::NoAnswer,
            since: Time::from_unix_seconds(0),
            message: "failed calling webhook \"w\": failed to call webhook: EOF".into(),
            n_in_a_row: 1,
            now_and_then: None,
            may_fail: false,
        };
        let more = FailingWebhook { n_in_a_row: 2, may_fail: true, ..webhook.clone() };
        let flaps = FailingWebhook { n_in_a_row: 0, now_and_then: Some((3, 6)), ..webhook.clone() };
        let condition =
            FailingWebhook { trouble: Trouble::Condition, message: "no such key".into(), ..webhook.clone() };
        for (failing, says) in [
            (webhook, "webhook w gives no valid answer, and what it is about is refused: EOF"),
            (more, "webhook w gives no valid answer, 2 times in a row, and what it is about passes without it: EOF"),
            (flaps, "webhook w gives no valid answer, 3 of the last 6 times, and what it is about is refused: EOF"),
            (
                condition,
                "webhook w cannot be asked, for one of its matchConditions fails, and what it is about is refused: no such key",
            ),
        ] {
            assert_eq!(failing.wait().message, says);
        }
    }
}
