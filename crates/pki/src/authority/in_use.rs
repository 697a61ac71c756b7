//! What the running server signs with and trusts, and who still showed it what the authority or the key of before signed: a
//! file beside the keys, for whoever replaces them.

use std::{
    collections::BTreeMap,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use corten_meta::Time;
use serde::{Deserialize, Serialize};

use super::Authority;
use crate::{Error, TokenKey, certificate, files, folder::CLUSTER, trust::Trust};

const FILE: &str = "in-use.json";
/// So many users are remembered by name, of each kind.
const USERS_MAX: usize = 100;
/// Whoever was not seen for so long makes room for others: what is of before may be dropped though they used it.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(24 * 3600);

/// See the module's documentation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InUse {
    /// The SHA-256 of the certificate that signs.
    pub authority: String,
    /// The same of the one of before, while it is trusted.
    pub old_authority: Option<String>,
    pub token_key: String,
    pub old_token_key: Option<String>,
    /// Users who showed a certificate of the authority of before, and when they last did, to the minute.
    pub old_certificates: BTreeMap<String, Time>,
    /// The same of tokens.
    pub old_tokens: BTreeMap<String, Time>,
}

impl InUse {
    /// What the folder asks for: who serves it has taken it up once its file says the same.
    ///
    /// # Errors
    /// The folder cannot be read, or does not hold an authority.
    pub fn wanted(dir: &Path) -> Result<Self, Error> {
        Ok(Self::of(&Trust::load(dir, CLUSTER)?))
    }

    /// What who serves the folder says. `None` where nobody did.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn said(dir: &Path) -> Result<Option<Self>, Error> {
        Ok(files::read(&dir.join(FILE))?.and_then(|it| serde_json::from_str(&it).ok()))
    }

    fn of(trust: &Trust) -> Self {
        let id = |it: &TokenKey| it.id().to_owned();
        Self {
            authority: certificate::fingerprint(&trust.certificate),
            old_authority: trust.old.as_ref().map(|it| certificate::fingerprint(&it.certificate)),
            token_key: id(&trust.token_keys.signing),
            old_token_key: trust.token_keys.old.as_deref().map(id),
            ..Self::default()
        }
    }

    /// Are the same authorities and keys used?
    pub fn is_same(&self, other: &Self) -> bool {
        let keys = |it: &Self| {
            (it.authority.clone(), it.old_authority.clone(), it.token_key.clone(), it.old_token_key.clone())
        };
        keys(self) == keys(other)
    }

    /// What the other saw of what is still trusted.
    fn take_sightings(&mut self, other: Self) {
        if self.old_authority.is_some() && self.old_authority == other.old_authority {
            self.old_certificates = other.old_certificates;
        }
        if self.old_token_key.is_some() && self.old_token_key == other.old_token_key {
            self.old_tokens = other.old_tokens;
        }
    }
}

/// Is it one that was not seen before?
fn note(users: &mut BTreeMap<String, Time>, user: &str, now: SystemTime) -> bool {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let minute = Time::from_unix_seconds(i64::try_from(seconds - seconds % 60).unwrap_or(i64::MAX));
    if let Some(last) = users.get_mut(user) {
        *last = minute;
        return false;
    }
    if users.len() >= USERS_MAX {
        users.retain(|_, last| minute.since(*last) < FORGOTTEN_AFTER);
    }
    let has_room = users.len() < USERS_MAX;
    if has_room {
        users.insert(user.to_owned(), minute);
    }
    has_room
}

impl Authority {
    pub(super) fn note_old_certificate(&self, user: &str) {
        if note(&mut self.in_use.lock().old_certificates, user, self.now()) {
            self.sighted.notify_one();
        }
    }

    pub fn note_old_token(&self, user: &str) {
        if note(&mut self.in_use.lock().old_tokens, user, self.now()) {
            self.sighted.notify_one();
        }
    }

    /// Returns once another user of what is of before was seen: that is to be said at once.
    pub async fn sighted(&self) {
        self.sighted.notified().await;
    }

    /// Begins with what the file says where it is of the same keys, else anew.
    pub(super) fn begin_in_use(&self) -> Result<(), Error> {
        let mut now = InUse::of(&self.trust());
        let mut in_use = self.in_use.lock();
        let before = match &self.dir {
            Some(dir) if *in_use == InUse::default() => InUse::said(dir)?.unwrap_or_default(),
            _ => in_use.clone(),
        };
        now.take_sightings(before);
        *in_use = now;
        Ok(())
    }

    /// Says in the folder what is in use; only where that is not what is there.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn write_in_use(&self) -> Result<(), Error> {
        let Some(dir) = &self.dir else { return Ok(()) };
        let in_use = self.in_use.lock().clone();
        if InUse::said(dir)?.as_ref() == Some(&in_use) {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&in_use).expect("texts and times") + "\n";
        files::write(&dir.join(FILE), text.as_bytes(), 0o600)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_used_it_long_ago_keeps_nobody_from_being_named() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let mut users = BTreeMap::new();
        for n in 0..USERS_MAX {
            assert!(note(&mut users, &format!("user-{n}"), at(60)));
        }
        assert!(!note(&mut users, "late", at(3600)), "all are recent: that is enough to know");
        assert!(!note(&mut users, "user-7", at(3600)), "known");
        assert!(note(&mut users, "late", at(24 * 3600 + 60)));
        assert_eq!(users.keys().collect::<Vec<_>>(), ["late", "user-7"]);
    }
}
