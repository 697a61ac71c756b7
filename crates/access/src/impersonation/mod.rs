//! Acting as somebody else: whom the headers name, and whether a right lets one.

mod modes;

use std::{cell::Cell, collections::BTreeMap};

use corten_meta::Status;
use corten_routes::RequestInfo;
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;

pub use modes::{Allowed, ImpersonationRefusal};

use crate::{
    answers::Answers,
    identity::{ANONYMOUS, AUTHENTICATED, Identity, UNAUTHENTICATED},
};

const PREFIX: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Does any header ask for it?
pub fn is_asked(headers: &HeaderMap) -> bool {
    headers.keys().any(|it| it.as_str().starts_with(PREFIX))
}

/// Nobody further in needs such headers.
pub fn forget(headers: &mut HeaderMap) {
    let ours: Vec<HeaderName> = headers.keys().filter(|it| it.as_str().starts_with(PREFIX)).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Whom the headers name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImpersonatedUser {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl ImpersonatedUser {
    /// `None` where the headers say nothing. `Err` where they say whose groups, but not who.
    ///
    /// # Errors
    /// 400.
    pub fn of(headers: &HeaderMap) -> Result<Option<Self>, Status> {
        let texts = |name: &str| -> Vec<String> {
            headers.get_all(name).iter().map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()).collect()
        };
        let first = |name: &str| texts(name).into_iter().next().unwrap_or_default();
        let (user, uid, groups) = (first("impersonate-user"), first("impersonate-uid"), texts("impersonate-group"));
        let mut extra = BTreeMap::new();
        for name in headers.keys().map(HeaderName::as_str) {
            let Some(key) = name.strip_prefix(EXTRA) else { continue };
            // Keys are written in lower case and escaped, since header names have no case and few characters.
            let key = percent_decode_str(key).decode_utf8().map_or_else(|_| key.to_owned(), Into::into);
            extra.insert(key, texts(name));
        }
        if !user.is_empty() {
            return Ok(Some(Self { user, uid, groups, extra }));
        }
        if groups.is_empty() && uid.is_empty() && extra.is_empty() {
            return Ok(None);
        }
        Err(Status::bad_request(format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{uid:?}, Groups:{}, Extra:{}}} without impersonating a user name",
            in_gos_words(&groups),
            if extra.is_empty() {
                "map[string][]string(nil)".to_owned()
            } else {
                let entries: Vec<String> =
                    extra.iter().map(|(key, values)| format!("{key:?}:{}", in_gos_words(values))).collect();
                format!("map[string][]string{{{}}}", entries.join(", "))
            }
        )))
    }

    /// Whom `who` becomes, where a right lets them.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn allowed(
        &self,
        answers: &Answers<'_>,
        info: &RequestInfo,
        who: &Identity,
    ) -> Result<Allowed, ImpersonationRefusal> {
        modes::allowed(&modes::Asker { answers, info, who, wanted: self, has_unanswered: Cell::new(false) })
    }

    /// The account that the user name means, as namespace and name.
    fn account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
        (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
    }

    /// Is nothing but a name given?
    fn is_plain(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// As those whose groups are known from their names get them.
    fn identity(&self, known_groups: &[&str]) -> Identity {
        let mut groups = if self.groups.is_empty() {
            known_groups.iter().map(|it| (*it).to_owned()).collect()
        } else {
            self.groups.clone()
        };
        let crowd = if self.user == ANONYMOUS { UNAUTHENTICATED } else { AUTHENTICATED };
        if !groups.iter().any(|it| it == crowd || it == UNAUTHENTICATED) {
            groups.push(crowd.into());
        }
        Identity { user: self.user.clone(), uid: self.uid.clone(), groups, extra: self.extra.clone() }
    }
}

/// A list as Go's `%#v` writes it.
fn in_gos_words(list: &[String]) -> String {
    if list.is_empty() {
        return "[]string(nil)".into();
    }
    let list: Vec<String> = list.iter().map(|it| format!("{it:?}")).collect();
    format!("[]string{{{}}}", list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    #[test]
    fn headers_name_someone() {
        const ACCOUNTS: &[&str] = &["system:serviceaccounts", "system:serviceaccounts:ns"];
        for (given, known, user, groups) in [
            (&[("impersonate-user", "jane")][..], &[][..], "jane", &["system:authenticated"][..]),
            (
                &[("impersonate-user", "jane"), ("impersonate-group", "a"), ("impersonate-group", "b")],
                &[],
                "jane",
                &["a", "b", "system:authenticated"],
            ),
            (
                &[("impersonate-user", "system:serviceaccount:ns:s")],
                ACCOUNTS,
                "system:serviceaccount:ns:s",
                &["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
            ),
            (&[("impersonate-user", "system:anonymous")], &[], "system:anonymous", &["system:unauthenticated"]),
            (
                &[("impersonate-user", "jane"), ("impersonate-group", "system:unauthenticated")],
                &[],
                "jane",
                &["system:unauthenticated"],
            ),
        ] {
            let wanted = ImpersonatedUser::of(&headers(given)).expect("someone is named").expect("someone is named");
            let found = wanted.identity(known);
            assert_eq!(
                (&*found.user, found.groups.iter().map(|it| &**it).collect::<Vec<_>>()),
                (user, groups.to_vec())
            );
        }
    }

    #[test]
    fn extra_keys_are_unescaped() {
        let given =
            [("impersonate-user", "jane"), ("impersonate-extra-acme.com%2fproject", "x"), ("impersonate-uid", "u")];
        let found = ImpersonatedUser::of(&headers(&given)).expect("someone is named").expect("someone is named");
        assert_eq!((&*found.uid, &found.extra["acme.com/project"]), ("u", &vec!["x".to_owned()]));
    }

    #[test]
    fn groups_of_nobody_are_refused() {
        let refused =
            ImpersonatedUser::of(&headers(&[("impersonate-group", "system:masters")])).expect_err("no user is named");
        assert_eq!(
            (refused.code, &*refused.message),
            (
                400,
                "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"system:masters\"}, Extra:map[string][]string(nil)} without impersonating a user name"
            )
        );
        assert_eq!(ImpersonatedUser::of(&headers(&[("impersonate-x", "y")])), Ok(None));
    }
}
