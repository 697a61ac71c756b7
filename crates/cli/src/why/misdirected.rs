//! Servers of others that the API server never asks where an object sends it: only whoever wrote that can mend it.

use corten_reconcile::{Actor, Wait};

use super::{findings::refusal::between, trust::OF_SERVERS};

#[derive(Debug, PartialEq, Eq)]
enum Fault<'a> {
    /// It leads to the machine itself, or to a link-local address.
    Address,
    Port(&'a str),
    Service,
}

/// Read off what comes last: what others answered is not in the API server's own words.
fn fault(message: &str) -> Option<Fault<'_>> {
    let (_, why) = message.rsplit_once("\": ")?;
    if why.starts_with("dial tcp ") && why.ends_with(": address not allowed") {
        return Some(Fault::Address);
    }
    if let Some(port) = between(why, "no service port ", " found for service ") {
        return why.starts_with("no service port ").then_some(Fault::Port(port));
    }
    (why.starts_with("service \"") && why.ends_with("\" not found")).then_some(Fault::Service)
}

/// Says who must act.
pub(super) fn tell(wait: &mut Wait) {
    if OF_SERVERS.contains(&&*wait.reason) && fault(&wait.message).is_some() {
        wait.actor = Actor::Author;
    }
}

/// `None`: it is asked, or may be. `author` is the object that says whom to ask, `server` what it says: a Service or a URL.
pub(super) fn who(message: &str, author: &str, server: &str) -> Option<String> {
    let names = format!("whoever wrote {author}, which names it");
    let never = "the API server asks neither its own machine nor a link-local address";
    let is_service = server.starts_with("service/");
    Some(match fault(message)? {
        Fault::Address if is_service => format!("whoever wrote {server}: {never}; or {names}"),
        Fault::Address => format!("whoever wrote {author}: it must name another, for {never}"),
        Fault::Port(port) => format!("whoever wrote {server}: it has no port {port}; or {names}"),
        Fault::Service => format!("whoever is to make {server}; or {names}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_the_api_server_itself_say_so() {
        let post = |why: &str| format!("webhook w gives no valid answer: Post \"https://w.default.svc:444/x\": {why}");
        for (why, expected) in [
            ("dial tcp 169.254.169.254:80: address not allowed", Some(Fault::Address)),
            ("dial tcp [::1]:443: address not allowed", Some(Fault::Address)),
            ("no service port 444 found for service \"w\"", Some(Fault::Port("444"))),
            ("service \"w\" not found", Some(Fault::Service)),
            ("dial tcp 10.0.0.1:80: connect: connection refused", None),
            ("no endpoints available for service \"w\"", None),
            ("an error on the server (\"address not allowed\") has prevented the request from succeeding", None),
        ] {
            let message = post(why);
            assert_eq!(fault(&message), expected, "{why}");
            let mut wait = Wait::new("WebhookFailing", &*message, Actor::External);
            tell(&mut wait);
            assert_eq!(wait.actor == Actor::Author, expected.is_some(), "{why}");
        }
    }
}
