//! Who asks, and the other end of their connection.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use rustls_pki_types::CertificateDer;
use serde::Serialize;
use serde_json::{Value, json};

pub const ANONYMOUS: &str = "system:anonymous";
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Who issues the tokens of service accounts, and the audience they are for unless another is asked for. kubeadm's default.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Who asks, as authentication found out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub user: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    pub fn new(user: impl Into<String>, groups: &[&str]) -> Self {
        Self { user: user.into(), groups: groups.iter().map(|it| (*it).to_owned()).collect(), ..Self::default() }
    }

    /// Whoever shows no credential.
    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, &[UNAUTHENTICATED])
    }

    /// Whoever has proved who they are is one of this group.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        if !self.groups.iter().any(|it| it == AUTHENTICATED) {
            self.groups.push(AUTHENTICATED.into());
        }
        self
    }

    /// Is it a part of the cluster, or who runs it? What keeps a cluster going is not held up by those who use it.
    pub fn is_of_system(&self) -> bool {
        let is_part =
            |user: &str| user.starts_with("system:") && user != ANONYMOUS && !user.starts_with(SERVICE_ACCOUNT_PREFIX);
        is_part(&self.user) || self.groups.iter().any(|it| SYSTEM_GROUPS.contains(&&**it))
    }
}

/// Who has one share of what is shared: a user. The service accounts of one namespace have one together, because whoever may make one
/// may make many.
pub fn party(user: &str) -> &str {
    match user.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|it| it.rsplit_once(':')) {
        Some((namespace, _)) => &user[..SERVICE_ACCOUNT_PREFIX.len() + namespace.len()],
        None => user,
    }
}

const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SYSTEM_GROUPS: [&str; 3] = ["system:masters", "system:nodes", "system:serviceaccounts:kube-system"];

/// The other end of a network connection. Absent for calls from inside the process.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: SocketAddr,
    /// The client's certificate chain as it was sent, leaf first, empty where there is none: its holder has the key, but
    /// whether it is worth anything is for authentication to say.
    pub certificates: Arc<[CertificateDer<'static>]>,
}

/// `authentication.k8s.io/v1 UserInfo`, as it is written.
#[derive(Serialize)]
pub struct UserInfo<'a> {
    username: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    uid: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [String],
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

impl<'a> UserInfo<'a> {
    pub fn of(who: &'a Identity) -> Self {
        Self { username: &who.user, uid: &who.uid, groups: &who.groups, extra: &who.extra }
    }
}

/// `authentication.k8s.io/v1 UserInfo`.
pub fn user_info(who: &Identity) -> Value {
    json!(UserInfo::of(who))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_of_a_namespace_are_one_party() {
        for (user, expected) in [
            ("jane", "jane"),
            ("system:serviceaccount:shop:a", "system:serviceaccount:shop"),
            ("system:serviceaccount:shop:b", "system:serviceaccount:shop"),
            ("system:serviceaccount:a", "system:serviceaccount:a"),
            ("", ""),
        ] {
            assert_eq!(party(user), expected);
        }
    }

    #[test]
    fn who_keeps_the_cluster_going_is_of_the_system() {
        for (user, group, expected) in [
            ("jane", "dev", false),
            ("jane", "system:masters", true),
            ("system:node:n1", "system:nodes", true),
            ("system:kube-scheduler", "", true),
            ("system:serviceaccount:shop:a", "system:serviceaccounts:shop", false),
            ("system:serviceaccount:kube-system:a", "system:serviceaccounts:kube-system", true),
            (ANONYMOUS, UNAUTHENTICATED, false),
        ] {
            assert_eq!(Identity::new(user, &[group]).is_of_system(), expected, "{user} {group}");
        }
    }
}
