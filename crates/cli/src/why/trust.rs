//! Certificates that servers of others show and the API server does not take: what is wrong with them, and who can mend it.

use corten_reconcile::{Actor, Wait};

/// As Go's programs begin it, and the API server after them.
const FAILED: &str = "tls: failed to verify certificate: x509: ";

/// Waits for servers that an object of the API says how to ask.
pub(super) const OF_SERVERS: [&str; 4] =
    ["ConversionWebhookFailing", "FailedDiscoveryCheck", "WebhookFailed", "WebhookFailing"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Whoever signed it is none of those that the configuration names.
    Authority,
    /// It is for other names than the server is asked under.
    Name,
    Other,
}

fn fault(message: &str) -> Option<Fault> {
    let (_, why) = message.split_once("x509: ")?;
    let is_any = |words: &[&str]| words.iter().any(|it| why.contains(it));
    Some(if is_any(&["signed by unknown authority"]) {
        Fault::Authority
    } else if is_any(&["certificate is valid for ", "certificate is not valid for "]) {
        Fault::Name
    } else {
        Fault::Other
    })
}

/// Takes away the address, which stands before the reason and leaves no room for it; and says who must act.
pub(super) fn tell(wait: &mut Wait) {
    let Some((before, why)) = wait.message.split_once(FAILED).filter(|_| OF_SERVERS.contains(&&*wait.reason)) else {
        return;
    };
    let addresses = ["failing or missing response from ", "Post \"", "Get \""];
    let begin = addresses.iter().filter_map(|it| before.find(it)).min().unwrap_or(before.len());
    wait.message = format!("{}x509: {why}", &before[..begin]);
    wait.actor = match fault(&wait.message) {
        Some(Fault::Authority | Fault::Name) => Actor::Author,
        _ => Actor::External,
    };
}

/// `None`: it is about no certificate. `author` is the object that says whom to ask, and whom to believe.
pub(super) fn who(message: &str, author: &str, server: &str) -> Option<String> {
    Some(match fault(message)? {
        Fault::Authority => {
            format!("whoever wrote {author}: its caBundle must hold the authority that signed its server's certificate")
        }
        Fault::Name => {
            format!(
                "whoever wrote {author}: it must ask under a name that the certificate is for; or whoever runs {server}"
            )
        }
        Fault::Other => format!("whoever runs {server}: it needs another certificate"),
    })
}

#[cfg(test)]
mod tests;
