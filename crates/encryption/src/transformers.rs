//! Providers in the order of the configuration: the first writes, all read.

use std::{collections::HashMap, sync::Arc, time::Instant};

use bytes::Bytes;
use corten_store::registry::ENCRYPTED;

use crate::{
    envelope::EncryptedObject,
    group_resource::GroupResource,
    kms::{Kms, OpenedBySeed},
    local::{Cipher, CipherError},
    metrics::{Direction, Metrics},
};

pub(crate) enum Provider {
    /// By name. Keys of one provider share what its values begin with.
    Local {
        prefix: &'static str,
        keys: Vec<Key>,
    },
    Kms(Arc<Kms>),
    Identity,
}

pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) cipher: Cipher,
    /// Of the key itself: whether two are the same.
    pub(crate) hash: String,
}

/// What became of a stored value.
pub(crate) enum Opened {
    Plain {
        value: Bytes,
        /// Today it would be stored otherwise.
        is_stale: bool,
    },
    /// Only the plugin can say.
    NeedsSeed(Arc<Kms>, Box<EncryptedObject>),
    /// Nothing opens it, and why: what was tried, by name.
    Unreadable(String),
}

/// Those of one resource.
pub(crate) struct Transformers(pub(crate) Vec<Provider>);

impl Transformers {
    /// The value as it is to be stored at `key`.
    ///
    /// # Errors
    /// Its key is not to be had.
    pub(crate) fn seal(&self, key: &[u8], plain: &Bytes, metrics: &Metrics) -> Result<Bytes, String> {
        let begun = Instant::now();
        let Some(first) = self.0.first() else { return Ok(plain.clone()) };
        let sealed = match first {
            Provider::Identity => Ok(plain.clone()),
            Provider::Kms(kms) => kms.seal(key, plain).map(Bytes::from),
            Provider::Local { prefix, keys } => match keys.first() {
                Some(first) => {
                    let prefix = format!("{prefix}{}:", first.name);
                    first.cipher.seal(prefix.as_bytes(), key, plain).map(Bytes::from).map_err(|it| it.to_string())
                }
                None => Err("aes provider has no valid keys".to_owned()),
            },
        };
        metrics.transformed(Direction::ToStorage, first.prefix(), begun, sealed.is_err());
        sealed
    }

    /// As upstream's `prefixTransformers`: the first provider, and its first key, whose name the value has and that opens it.
    pub(crate) fn open(&self, key: &[u8], stored: &Bytes, metrics: &Metrics) -> Opened {
        let begun = Instant::now();
        let mut tried: Vec<String> = Vec::new();
        for (at, provider) in self.0.iter().enumerate() {
            let opened = match provider {
                Provider::Identity => {
                    if stored.starts_with(ENCRYPTED) {
                        continue;
                    }
                    Ok(Some(Opened::Plain { value: stored.clone(), is_stale: at > 0 }))
                }
                Provider::Local { prefix, keys } => local(prefix, keys, key, stored, at > 0),
                Provider::Kms(kms) => kms.open(key, stored).map(|it| {
                    it.map(|it| match it {
                        OpenedBySeed::Plain { value, is_other } => {
                            Opened::Plain { value, is_stale: is_other || at > 0 }
                        }
                        OpenedBySeed::Unknown(object) => Opened::NeedsSeed(kms.clone(), object),
                    })
                }),
            };
            match opened {
                Ok(None) => {}
                Ok(Some(opened)) => {
                    if matches!(opened, Opened::Plain { .. }) {
                        metrics.transformed(Direction::FromStorage, provider.prefix(), begun, false);
                    }
                    return opened;
                }
                Err(error) => {
                    metrics.transformed(Direction::FromStorage, provider.prefix(), begun, true);
                    tried.push(error);
                }
            }
        }
        if tried.is_empty() {
            metrics.transformed(Direction::FromStorage, "unknown", begun, true);
            tried.push(self.no_match(stored));
        }
        Opened::Unreadable(tried.join(", "))
    }

    /// Do values that begin so have a key here? By its name alone.
    pub(crate) fn has_key_of(&self, stored: &[u8]) -> bool {
        self.0.iter().any(|provider| match provider {
            Provider::Identity => false,
            Provider::Kms(kms) => stored.starts_with(kms.prefix().as_bytes()),
            Provider::Local { prefix, keys } => stored.strip_prefix(prefix.as_bytes()).is_some_and(|rest| {
                let is_it = |name: &str| rest.strip_prefix(name.as_bytes()).is_some_and(|it| it.starts_with(b":"));
                keys.iter().any(|it| is_it(&it.name))
            }),
        })
    }

    /// The keys whose name a stored value begins with, and what comes after it: those of configurations, not those of plugins.
    fn named<'a>(&'a self, stored: &'a [u8]) -> impl Iterator<Item = (&'a str, &'a Key, &'a [u8])> {
        let locals = self.0.iter().filter_map(|it| match it {
            Provider::Local { prefix, keys } => Some((*prefix, keys, stored.strip_prefix(prefix.as_bytes())?)),
            Provider::Kms(_) | Provider::Identity => None,
        });
        locals.flat_map(|(prefix, keys, rest)| {
            let sealed = |key: &Key| rest.strip_prefix(key.name.as_bytes()).and_then(|it| it.strip_prefix(b":"));
            keys.iter().filter_map(move |it| Some((prefix, it, sealed(it)?)))
        })
    }

    /// Are the keys of the name that a value begins with all those that `before` has of it?
    pub(crate) fn has_all_of(&self, before: &Self, stored: &[u8]) -> bool {
        let mut theirs = before.named(stored).peekable();
        theirs.peek().is_some() && theirs.all(|(_, key, _)| self.named(stored).any(|it| it.1.hash == key.hash))
    }

    /// Does a key of its name open a value? `None` where there is none of that name. Nothing is measured.
    pub(crate) fn opens(&self, at: &[u8], stored: &[u8]) -> Option<bool> {
        let mut named = self.named(stored).peekable();
        named.peek()?;
        Some(named.any(|(_, key, sealed)| key.cipher.open(at, sealed).is_ok_and(|it| key.cipher.is_plausible(&it))))
    }

    fn no_match(&self, stored: &[u8]) -> String {
        let Some(maker) = maker(stored) else {
            return "no matching prefix found: the value is not encrypted, and no identity provider is configured"
                .into();
        };
        if matches!(&*self.0, [] | [Provider::Identity]) {
            return format!("identity transformer tried to read encrypted data: {maker} encrypted it");
        }
        format!("no matching prefix found: {maker} encrypted it, which is not configured")
    }
}

/// `Ok(None)` where it is another's.
fn local(prefix: &str, keys: &[Key], at: &[u8], stored: &Bytes, is_later: bool) -> Result<Option<Opened>, String> {
    let Some(rest) = stored.strip_prefix(prefix.as_bytes()) else { return Ok(None) };
    let mut tried = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        let Some(sealed) = rest.strip_prefix(key.name.as_bytes()).and_then(|it| it.strip_prefix(b":")) else {
            continue;
        };
        match key.cipher.open(at, sealed) {
            Ok(plain) => {
                let is_stale = is_later || place > 0;
                return Ok(Some(Opened::Plain { value: plain.into(), is_stale }));
            }
            Err(error) => tried.push(wrong_key(prefix, &key.name, error)),
        }
    }
    if tried.is_empty() {
        let names: Vec<_> = keys.iter().map(|it| format!("{:?}", it.name)).collect();
        let (provider, named) = (provider_name(prefix), name_of(rest));
        tried.push(format!(
            "no matching key was found for the provided {} transformer: key {named:?} of {provider} encrypted it, and configured of {provider} is {}",
            if provider == "secretbox" { "Secretbox" } else { "AES" },
            names.join(", "),
        ));
    }
    Err(tried.join(", "))
}

fn wrong_key(prefix: &str, name: &str, error: CipherError) -> String {
    format!("key {name:?} of {} does not open it: {error}", provider_name(prefix))
}

/// `aesgcm` of `k8s:enc:aesgcm:v1:`.
fn provider_name(prefix: &str) -> &str {
    prefix.split(':').nth(2).unwrap_or(prefix)
}

/// What comes before the next colon, as far as it is a name.
fn name_of(rest: &[u8]) -> String {
    let name = rest.split(|it| *it == b':').next().unwrap_or_default();
    String::from_utf8_lossy(&name[..name.len().min(NAME_MAX)]).into_owned()
}

const NAME_MAX: usize = 64;

/// Who encrypted a stored value, by what it begins with. `None` where nobody has.
pub(crate) fn maker(stored: &[u8]) -> Option<String> {
    let rest = stored.strip_prefix(ENCRYPTED)?;
    let mut parts = rest.splitn(4, |it| *it == b':');
    let (provider, version, name) = (parts.next()?, parts.next(), parts.next());
    let name = name_of(name.unwrap_or_default());
    let provider = name_of(provider);
    let version = name_of(version.unwrap_or_default());
    Some(match &*provider {
        "kms" => format!("KMS provider {name:?} ({version})"),
        _ => format!("key {name:?} of {provider}"),
    })
}

impl Provider {
    /// What measurements call it.
    fn prefix(&self) -> &str {
        match self {
            Self::Local { prefix, .. } => prefix,
            Self::Kms(kms) => kms.prefix(),
            Self::Identity => "identity",
        }
    }
}

/// Those of all resources.
#[derive(Default)]
pub(crate) struct ByResource(pub(crate) HashMap<GroupResource, Arc<Transformers>>);

impl ByResource {
    /// `transformerFromOverrides`: the resource itself, all of its group, all.
    pub(crate) fn of(&self, resource: &GroupResource) -> Option<&Arc<Transformers>> {
        let find = |it: &GroupResource| self.0.get(it);
        find(resource).or_else(|| find(&resource.all_of_group())).or_else(|| find(&GroupResource::all()))
    }
}
