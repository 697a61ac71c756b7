//! From a file to the providers of each resource.

use std::{collections::HashMap, path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::duration;

use crate::{
    configuration::{API_VERSION, Configuration, KIND, KeysConfiguration, KmsConfiguration, ProviderConfiguration},
    envelope::hash_text,
    group_resource::GroupResource,
    kms::{Kms, KmsSettings},
    local::{self, Cbc, Cipher, CipherError, Gcm},
    metrics::Metrics,
    transformers::{ByResource, Key, Provider, Transformers},
    validation::{self, TIMEOUT},
};

/// Why a configuration is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// What a file says.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) by_resource: ByResource,
    pub(crate) kms: Vec<Arc<Kms>>,
    /// Of the file's content.
    pub(crate) hash: String,
}

/// A configuration is no larger.
const FILE_MAX: u64 = 3 << 20;

/// # Errors
/// There is no such file, or it is empty or too large.
pub(crate) fn read_file(path: &Path) -> Result<String, ConfigError> {
    let shown = path.display();
    let failed = |it: &dyn std::fmt::Display| {
        ConfigError(format!(
            "error while parsing file: error while loading file: error reading encryption provider configuration file {:?}: {it}",
            shown.to_string()
        ))
    };
    let size = std::fs::metadata(path).map_err(|it| failed(&it))?.len();
    if size > FILE_MAX {
        return Err(failed(&format!("it is larger than {FILE_MAX} bytes")));
    }
    let text = corten_files::read_to_string(path).map_err(|it| failed(&it))?;
    if text.is_empty() {
        return Err(ConfigError(format!(
            "error while parsing file: error while loading file: encryption provider configuration file {:?} is empty",
            shown.to_string()
        )));
    }
    Ok(text)
}

/// Plugins of `before` that are to be asked in the same way stay as they are, with what they know.
///
/// # Errors
/// The text is no configuration, or says what cannot be.
pub(crate) fn load(text: &str, before: &[Arc<Kms>], metrics: &Arc<Metrics>) -> Result<Loaded, ConfigError> {
    let wrong = |detail: String| ConfigError(format!("error while parsing file: {detail}"));
    let found: Configuration = serde_saphyr::from_str(text).map_err(|it| {
        // What follows shows the text around it, which may be a key.
        let said = it.to_string();
        let said = said.lines().next().unwrap_or_default();
        wrong(format!("strict decoding error: {}", without_keys(said.trim_start_matches("error: "))))
    })?;
    if found.kind != KIND || found.api_version != API_VERSION {
        return Err(wrong(format!(
            "no kind {:?} is registered for version {:?}, only {KIND} of {API_VERSION}",
            found.kind, found.api_version
        )));
    }
    if let Some(problems) = validation::problems(&found) {
        return Err(wrong(problems));
    }
    let mut loaded = Loaded { hash: hash_text(text.as_bytes()), ..Loaded::default() };
    build(&found, before, metrics, &mut loaded)
        .map_err(|it| ConfigError(format!("error while building transformers: {it}")))?;
    Ok(loaded)
}

/// The shortest key there is, in base64.
const KEY_TEXT_MIN: usize = 24;

/// A key that stands where something else is expected is not told.
fn without_keys(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let is_key = |it: char| it.is_ascii_alphanumeric() || "+/=".contains(it);
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(|it| !is_key(it)).unwrap_or(rest.len()));
        out += if word.len() < KEY_TEXT_MIN { word } else { "REDACTED" };
        let (between, next) = after.split_at(after.find(is_key).unwrap_or(after.len()));
        out += between;
        rest = next;
    }
    out
}

fn build(
    found: &Configuration,
    before: &[Arc<Kms>],
    metrics: &Arc<Metrics>,
    loaded: &mut Loaded,
) -> Result<(), String> {
    let mut by_resource: HashMap<GroupResource, Vec<&ProviderConfiguration>> = HashMap::new();
    for entry in &found.resources {
        for name in &entry.resources {
            let resource = GroupResource::parse(name);
            for earlier in [resource.all_of_group(), GroupResource::all()] {
                if by_resource.contains_key(&earlier) {
                    return Err(format!(
                        "resource {:?} is masked by earlier rule {:?}",
                        resource.to_string(),
                        earlier.to_string()
                    ));
                }
            }
            by_resource.entry(resource).or_default().extend(&entry.providers);
        }
        for kms in entry.providers.iter().filter_map(|it| it.kms.as_ref()) {
            loaded.kms.push(plugin(kms, before, metrics)?);
        }
    }
    for (resource, providers) in by_resource {
        let providers: Result<_, _> = providers.into_iter().map(|it| provider(it, &loaded.kms)).collect();
        loaded.by_resource.0.insert(resource, Arc::new(Transformers(providers?)));
    }
    Ok(())
}

fn plugin(configuration: &KmsConfiguration, before: &[Arc<Kms>], metrics: &Arc<Metrics>) -> Result<Arc<Kms>, String> {
    if configuration.is_v1() {
        // The gate KMSv1 is off by default since 1.29, and is not here.
        return Err(
            "KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.".into()
        );
    }
    let settings = KmsSettings {
        name: configuration.name.clone(),
        endpoint: configuration.endpoint.clone(),
        timeout: configuration.timeout.as_deref().map_or(Ok(TIMEOUT), duration::duration)?,
    };
    match before.iter().find(|it| *it.settings() == settings) {
        Some(known) => Ok(known.clone()),
        None => Kms::new(settings, metrics.clone()).map(Arc::new),
    }
}

fn provider(configuration: &ProviderConfiguration, kms: &[Arc<Kms>]) -> Result<Provider, String> {
    type Make = fn(&[u8]) -> Result<Cipher, CipherError>;
    let local: [(&'static str, &Option<KeysConfiguration>, Make); 3] = [
        ("k8s:enc:aesgcm:v1:", &configuration.aesgcm, |it| Gcm::new(it).map(Cipher::AesGcm)),
        ("k8s:enc:aescbc:v1:", &configuration.aescbc, |it| Cbc::new(it).map(|it| Cipher::AesCbc(Box::new(it)))),
        ("k8s:enc:secretbox:v1:", &configuration.secretbox, |it| local::secretbox(it).map(Cipher::Secretbox)),
    ];
    for (prefix, keys, make) in local {
        let Some(keys) = keys else { continue };
        let key = |it: &crate::configuration::KeyConfiguration| {
            let wrong = |error: &dyn std::fmt::Display| {
                format!("error while creating cipher for named key {}: {error}", it.name)
            };
            let secret = STANDARD.decode(it.secret.replace(['\r', '\n'], "")).map_err(|it| wrong(&it))?;
            let cipher = make(&secret).map_err(|it| wrong(&it))?;
            Ok(Key { name: it.name.clone(), cipher, hash: hash_text(&secret) })
        };
        return Ok(Provider::Local { prefix, keys: keys.keys.iter().map(key).collect::<Result<_, String>>()? });
    }
    if let Some(configuration) = &configuration.kms {
        let found = kms.iter().find(|it| it.settings().name == configuration.name);
        return found.cloned().map(Provider::Kms).ok_or_else(|| "a plugin is missing".to_owned());
    }
    Ok(Provider::Identity)
}
