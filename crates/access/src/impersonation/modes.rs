//! By which right someone acts as another. Most are limited: to a kind of user, and to what may be done as one. The last is
//! the right of old, `impersonate`, which is not.

use std::cell::Cell;

use corten_meta::{Status, field};
use corten_routes::RequestInfo;

use super::ImpersonatedUser;
use crate::{
    answers::Answers,
    identity::Identity,
    question::{Attributes, Decision, MASTERS, ResourceOrPath},
};

const NODE: &str = "system:node:";
const NODES: &str = "system:nodes";
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const GROUP: &str = "authentication.k8s.io";
/// From so many names on, the right over all is asked for first.
const MANY: usize = 4;

pub struct Allowed {
    pub identity: Identity,
    /// Which of the limited rights; empty for the one of old.
    pub constraint: &'static str,
}

/// Why nobody lets somebody act as another.
pub struct ImpersonationRefusal {
    pub status: Status,
    /// All who could have allowed it have answered.
    pub is_certain: bool,
}

/// One way of acting as another.
struct Mode {
    name: &'static str,
    /// What its right over users is called.
    verb: &'static str,
    applies: fn(&ImpersonatedUser, &Identity) -> bool,
}

/// In the order they are tried.
const MODES: &[Mode] = &[
    Mode {
        name: "associated-node",
        verb: "impersonate:associated-node",
        applies: |wanted, who| {
            let own = who.extra.get(NODE_NAME).map(Vec::as_slice);
            let is_account = who.user.starts_with(super::SERVICE_ACCOUNT);
            is_account && wanted.is_plain() && node(wanted).is_some_and(|it| own == Some(&[it.to_owned()]))
        },
    },
    Mode {
        name: "arbitrary-node",
        verb: "impersonate:arbitrary-node",
        applies: |wanted, _| wanted.is_plain() && node(wanted).is_some(),
    },
    Mode {
        name: "serviceaccount",
        verb: "impersonate:serviceaccount",
        applies: |wanted, _| wanted.is_plain() && wanted.account().is_some(),
    },
    Mode {
        name: "user-info",
        verb: "impersonate:user-info",
        applies: |wanted, _| node(wanted).is_none() && wanted.account().is_none(),
    },
];

/// The node that the user name means.
fn node(wanted: &ImpersonatedUser) -> Option<&str> {
    wanted.user.strip_prefix(NODE).filter(|it| field::dns1123_subdomain(it).is_empty())
}

/// Whoever may do it in some way may do it.
///
/// # Errors
/// What the first way would have taken.
pub(super) fn allowed(asker: &Asker<'_>) -> Result<Allowed, ImpersonationRefusal> {
    in_some_way(asker).map_err(|status| ImpersonationRefusal { status, is_certain: !asker.has_unanswered.get() })
}

fn in_some_way(asker: &Asker<'_>) -> Result<Allowed, Status> {
    let Asker { who, wanted, .. } = *asker;
    let mut refusal = None;
    for mode in MODES.iter().filter(|it| (it.applies)(wanted, who)) {
        match asker.limited(mode) {
            Ok(identity) => return Ok(Allowed { identity, constraint: mode.verb }),
            Err(status) => refusal = refusal.or(Some(status)),
        }
    }
    asker.as_of_old().map(|identity| Allowed { identity, constraint: "" }).map_err(|it| refusal.unwrap_or(it))
}

pub(super) struct Asker<'a> {
    pub(super) answers: &'a Answers<'a>,
    pub(super) info: &'a RequestInfo,
    pub(super) who: &'a Identity,
    pub(super) wanted: &'a ImpersonatedUser,
    /// Whether somebody who could have allowed a question gave no answer to it.
    pub(super) has_unanswered: Cell<bool>,
}

impl Asker<'_> {
    fn ask(&self, question: &Attributes<'_>) -> Result<(), Status> {
        match self.answers.decide(question) {
            Decision::Allowed(_) => Ok(()),
            Decision::Denied(denial) => {
                self.has_unanswered.set(self.has_unanswered.get() || !denial.error.is_empty());
                Err(question.forbidden(&denial.reason))
            }
        }
    }

    fn may(&self, verb: &str, target: ResourceOrPath<'_>) -> Result<(), Status> {
        self.ask(&Attributes { verb, target, ..Attributes::of(self.who) })
    }

    fn limited(&self, mode: &Mode) -> Result<Identity, Status> {
        let asked = Attributes::of_request(self.who, self.info);
        let verb = format!("impersonate-on:{}:{}", mode.name, asked.verb);
        self.ask(&Attributes { verb: &verb, ..asked })?;
        let ImpersonatedUser { user, groups, .. } = self.wanted;
        if let Some(name) = node(self.wanted) {
            // The right over one's own node says nothing of which: it is the same Pod on every node.
            let name = if mode.name == "associated-node" { "*" } else { name };
            self.may(mode.verb, resource(GROUP, "nodes", "", "", name))?;
            return Ok(self.wanted.identity(&[NODES]));
        }
        if let Some((namespace, name)) = self.wanted.account() {
            self.may(mode.verb, resource(GROUP, "serviceaccounts", "", namespace, name))?;
            return Ok(self.account_identity(namespace));
        }
        self.may(mode.verb, resource(GROUP, "users", "", "", user))?;
        self.uid(mode.verb)?;
        for (group, reason) in [
            ("", "impersonating the empty string group is not allowed"),
            (MASTERS, "impersonating the system:masters group is not allowed"),
        ] {
            if groups.iter().any(|it| it == group) {
                return Err(self.refuse(mode.verb, resource(GROUP, "groups", "", "", group), reason));
            }
        }
        let over_all = groups.len() >= MANY && self.may(mode.verb, resource(GROUP, "groups", "", "", "*")).is_ok();
        if !over_all {
            self.groups(mode.verb, GROUP)?;
        }
        if let Some(reason) = self.bad_extra() {
            return Err(self.refuse(mode.verb, resource(GROUP, "userextras", "", "", ""), &reason));
        }
        let n_extra: usize = self.wanted.extra.values().map(Vec::len).sum();
        let over_all = n_extra >= MANY && self.may(mode.verb, resource(GROUP, "userextras", "*", "", "*")).is_ok();
        if !over_all {
            self.extra(mode.verb)?;
        }
        Ok(self.wanted.identity(&[]))
    }

    fn refuse(&self, verb: &str, target: ResourceOrPath<'_>, reason: &str) -> Status {
        Attributes { verb, target, ..Attributes::of(self.who) }.forbidden(reason)
    }

    /// Why no limited right is over such extra fields.
    fn bad_extra(&self) -> Option<String> {
        self.wanted.extra.iter().find_map(|(key, values)| {
            if key.is_empty() {
                return Some("impersonating the empty string key in extra is not allowed".to_owned());
            }
            if *key != key.to_lowercase() {
                return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
            }
            if values.iter().any(String::is_empty) {
                return Some("impersonating the empty string value in extra is not allowed".to_owned());
            }
            None
        })
    }

    fn as_of_old(&self) -> Result<Identity, Status> {
        const VERB: &str = "impersonate";
        let identity = match self.wanted.account() {
            Some((namespace, name)) => {
                self.may(VERB, resource("", "serviceaccounts", "", namespace, name))?;
                self.account_identity(namespace)
            }
            None => {
                self.may(VERB, resource("", "users", "", "", &self.wanted.user))?;
                self.wanted.identity(&[])
            }
        };
        self.uid(VERB)?;
        self.groups(VERB, "")?;
        self.extra(VERB)?;
        Ok(identity)
    }

    fn account_identity(&self, namespace: &str) -> Identity {
        self.wanted.identity(&["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")])
    }

    fn uid(&self, verb: &str) -> Result<(), Status> {
        let uid = &*self.wanted.uid;
        if uid.is_empty() { Ok(()) } else { self.may(verb, resource(GROUP, "uids", "", "", uid)) }
    }

    fn groups(&self, verb: &str, group: &str) -> Result<(), Status> {
        self.wanted.groups.iter().try_for_each(|it| self.may(verb, resource(group, "groups", "", "", it)))
    }

    fn extra(&self, verb: &str) -> Result<(), Status> {
        let extra = self.wanted.extra.iter().flat_map(|(key, values)| values.iter().map(move |it| (key, it)));
        extra.into_iter().try_for_each(|(key, value)| self.may(verb, resource(GROUP, "userextras", key, "", value)))
    }
}

fn resource<'a>(
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    namespace: &'a str,
    name: &'a str,
) -> ResourceOrPath<'a> {
    ResourceOrPath::Resource { group, resource, subresource, namespace, name }
}
