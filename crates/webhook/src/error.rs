//! Why there is no answer, in the words that Kubernetes's clients have for it.

use std::io;

use corten_meta::{Status, Time};
use rustls::CertificateError;
use rustls_pki_types::UnixTime;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Nobody was reached, or what was reached gave no answer.
    #[error("Post \"{url}\": {reason}")]
    Unanswered { url: String, reason: Reason },
    /// An answer that is a refusal, or none that can be read.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    #[error("{0}")]
    Unreadable(String),
}

impl Error {
    /// The HTTP code under which measurements count it.
    pub fn code(&self) -> u16 {
        match self {
            Self::Refused(status) => status.code,
            Self::Unanswered { .. } | Self::Unreadable(_) => 503,
        }
    }

    /// Of an answer that is a refusal. Kubernetes's words for most of them do not say it.
    pub fn answered_code(&self) -> Option<u16> {
        match self {
            Self::Refused(status) => Some(status.code),
            Self::Unanswered { .. } | Self::Unreadable(_) => None,
        }
    }

    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Unanswered { reason: Reason::Deadline, .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("context deadline exceeded")]
    Deadline,
    #[error("{0}")]
    Other(String),
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

/// What became of dialling `address`.
pub(crate) fn dialled(address: &str, error: &io::Error) -> String {
    let cause = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".into(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".into(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".into(),
        io::ErrorKind::TimedOut => "i/o timeout".into(),
        _ => error.to_string(),
    };
    format!("dial tcp {address}: {cause}")
}

/// What became of a TLS handshake.
pub(crate) fn handshake(error: &io::Error, server_name: &str) -> String {
    let Some(cause) = error.get_ref().and_then(|it| it.downcast_ref::<rustls::Error>()) else {
        return if error.kind() == io::ErrorKind::UnexpectedEof { "EOF".into() } else { error.to_string() };
    };
    match cause {
        rustls::Error::InvalidCertificate(certificate) => {
            format!("tls: failed to verify certificate: x509: {}", of_certificate(certificate, server_name))
        }
        rustls::Error::InvalidMessage(_) => "http: server gave HTTP response to HTTPS client".into(),
        rustls::Error::AlertReceived(alert) => format!("remote error: tls: {alert:?}"),
        other => format!("tls: {other}"),
    }
}

fn of_certificate(error: &CertificateError, server_name: &str) -> String {
    match error {
        CertificateError::UnknownIssuer => "certificate signed by unknown authority".into(),
        CertificateError::Expired | CertificateError::NotValidYet => OUT_OF_TIME.into(),
        CertificateError::ExpiredContext { time, not_after } => {
            format!("{OUT_OF_TIME}: current time {} is after {}", shown_time(*time), shown_time(*not_after))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("{OUT_OF_TIME}: current time {} is before {}", shown_time(*time), shown_time(*not_before))
        }
        CertificateError::NotValidForName => format!("certificate is not valid for {server_name}"),
        // It has no `subjectAltName`; a common name is a name for nobody.
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "certificate relies on legacy Common Name field, use SANs instead".into()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<_> = presented.iter().map(|it| bare(it)).collect();
            let names = names.join(", ");
            format!("certificate is valid for {names}, not {server_name}")
        }
        other => other.to_string(),
    }
}

/// Of both, as Go's `x509.CertificateInvalidError` says it.
const OUT_OF_TIME: &str = "certificate has expired or is not yet valid";

/// As `time.RFC3339`.
fn shown_time(time: UnixTime) -> Time {
    Time::from_unix_seconds(time.as_secs().try_into().unwrap_or(i64::MAX))
}

/// rustls presents `DnsName("a.b")`.
fn bare(presented: &str) -> &str {
    presented.split('"').nth(1).unwrap_or(presented)
}

/// As `NewGenericServerResponse` puts an answer that is no object, where it is a Status of its own.
pub(crate) fn refused(code: u16, body: &[u8]) -> Status {
    if let Ok(status) = serde_json::from_slice::<Status>(body)
        && status.kind == "Status"
        && !status.message.is_empty()
    {
        return Status { code: if status.code == 0 { code } else { status.code }, ..status };
    }
    let (reason, message): (&str, String) = match code {
        400 => ("BadRequest", "the server rejected our request for an unknown reason".into()),
        401 => ("Unauthorized", "the server has asked for the client to provide credentials".into()),
        403 => ("Forbidden", shown(body)),
        404 => ("NotFound", "the server could not find the requested resource".into()),
        405 => ("MethodNotAllowed", "the server does not allow this method on the requested resource".into()),
        409 => ("Conflict", "the server reported a conflict".into()),
        422 => ("Invalid", "the server rejected our request due to an error in our request".into()),
        429 => {
            ("TooManyRequests", "the server has received too many requests and has asked us to try again later".into())
        }
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request".into()),
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .into(),
        ),
        500.. => (
            "InternalError",
            format!("an error on the server ({:?}) has prevented the request from succeeding", shown(body)),
        ),
        _ => ("Unknown", format!("the server responded with the status code {code} but did not return more details")),
    };
    Status::failure(code, reason, message)
}

/// What a stranger wrote, as far as a message can hold it.
fn shown(body: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 512;
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * CHARACTERS_MAX)]);
    text.trim().chars().take(CHARACTERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_certificate_out_of_time_says_when_it_is_and_when_it_was_valid() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        for (error, says) in [
            (
                CertificateError::ExpiredContext { time: at(1_795_176_000), not_after: at(1_795_172_400) },
                ": current time 2026-11-20T12:00:00Z is after 2026-11-20T11:00:00Z",
            ),
            (
                CertificateError::NotValidYetContext { time: at(1_795_172_400), not_before: at(1_795_176_000) },
                ": current time 2026-11-20T11:00:00Z is before 2026-11-20T12:00:00Z",
            ),
            (CertificateError::Expired, ""),
        ] {
            let error = io::Error::other(rustls::Error::InvalidCertificate(error));
            let said = handshake(&error, "x");
            let begin = "tls: failed to verify certificate: x509: certificate has expired or is not yet valid";
            assert_eq!(said.strip_prefix(begin), Some(says), "{said}");
        }
    }
}
