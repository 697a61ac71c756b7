//! Tokens of nodes that join: Secrets in kube-system, each a pair of id and secret, `abcdef.0123456789abcdef`.

use aws_lc_rs::constant_time;
use base64::{Engine, engine::general_purpose::STANDARD};
use corten_api::resources::SECRETS;
use corten_meta::Time;
use serde_json::Value;

use super::CachesNow;
use crate::identity::Identity;

const NAMESPACE: &str = "kube-system";
const TYPE: &str = "bootstrap.kubernetes.io/token";
const PREFIX: &str = "bootstrap-token-";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 16;
const GROUP: &str = "system:bootstrappers";
/// What comes after `system:bootstrappers:` in an extra group, upstream's pattern: `[a-z0-9:-]{0,255}[a-z0-9]`.
const GROUP_BYTES_MAX: usize = 256;

pub(super) fn identify(at: &CachesNow<'_>, token: &str) -> Option<Identity> {
    let (id, secret) = token.split_once('.')?;
    let is_plain = |it: &str| it.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit());
    if id.len() != ID_BYTES || secret.len() != SECRET_BYTES || !is_plain(id) || !is_plain(secret) {
        return None;
    }
    let secrets = at.caches.get(&SECRETS).expect("secrets are a row of the table");
    let stored = secrets.get(NAMESPACE, &format!("{PREFIX}{id}"))?;
    holder(&stored.parse(), id, secret, at.now)
}

fn holder(object: &Value, id: &str, secret: &str, now: Time) -> Option<Identity> {
    if object["type"] != TYPE || !object["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let entry = |key: &str| {
        let text = STANDARD.decode(object["data"][key].as_str()?).ok()?;
        String::from_utf8(text).ok()
    };
    let expected = entry("token-secret").filter(|it| it.len() == SECRET_BYTES)?;
    let same = constant_time::verify_slices_are_equal(expected.as_bytes(), secret.as_bytes()).is_ok();
    if !same || entry("token-id").as_deref() != Some(id) || has_expired(entry("expiration").as_deref(), now) {
        return None;
    }
    if entry("usage-bootstrap-authentication").as_deref() != Some("true") {
        return None;
    }
    let mut groups = vec![GROUP.to_owned()];
    for group in entry("auth-extra-groups").unwrap_or_default().split(',').filter(|it| !it.is_empty()) {
        // As in `getGroups` of the bootstrap token authenticator: a group that is none makes the whole token worthless.
        groups.push(is_bootstrap_group(group).then(|| group.to_owned())?);
    }
    groups.sort();
    groups.dedup();
    Some(Identity { user: format!("system:bootstrap:{id}"), groups, ..Identity::default() })
}

/// A time that cannot be read has passed.
fn has_expired(expiration: Option<&str>, now: Time) -> bool {
    match expiration {
        None | Some("") => false,
        Some(text) => !text.parse::<Time>().is_ok_and(|it| it > now),
    }
}

fn is_bootstrap_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix(GROUP).and_then(|it| it.strip_prefix(':')) else { return false };
    let plain = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    (1..=GROUP_BYTES_MAX).contains(&rest.len())
        && rest.bytes().all(|it| plain(it) || it == b':' || it == b'-')
        && rest.bytes().last().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_lets_its_holder_join() {
        let now = Time::from_unix_seconds(1_800_000_000);
        let good =
            [("token-id", "abcdef"), ("token-secret", "0123456789abcdef"), ("usage-bootstrap-authentication", "true")];
        for (what, changes, expected) in [
            ("plain", vec![], Some(vec![GROUP])),
            ("an end to come", vec![("expiration", "2027-01-15T08:00:01Z")], Some(vec![GROUP])),
            ("an end that came", vec![("expiration", "2027-01-15T08:00:00Z")], None),
            ("an end that is none", vec![("expiration", "soon")], None),
            ("not for this", vec![("usage-bootstrap-authentication", "false")], None),
            ("another secret", vec![("token-secret", "fedcba9876543210")], None),
            ("another id", vec![("token-id", "fedcba")], None),
            (
                "a group",
                vec![("auth-extra-groups", "system:bootstrappers:a:b")],
                Some(vec![GROUP, "system:bootstrappers:a:b"]),
            ),
            ("a group of power", vec![("auth-extra-groups", "system:masters")], None),
        ] {
            let mut data = serde_json::Map::new();
            for (key, value) in good.into_iter().chain(changes) {
                data.insert(key.into(), STANDARD.encode(value).into());
            }
            let object = json!({ "type": TYPE, "metadata": {}, "data": data });
            let found = holder(&object, "abcdef", "0123456789abcdef", now);
            let found = found.map(|it| (it.user, it.groups));
            let expected = expected.map(|groups| {
                ("system:bootstrap:abcdef".to_owned(), groups.into_iter().map(str::to_owned).collect::<Vec<_>>())
            });
            assert_eq!(found, expected, "{what}");
        }
    }
}
