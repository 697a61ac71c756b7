//! The versions of a custom resource, and how its objects get from one to another (`pkg/apiserver/conversion` of
//! apiextensions-apiserver).

use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

use corten_meta::Resource;
use serde_json::Value;

use super::CustomSchema;

/// All versions of a definition, served or not: an object may be stored in any of them.
pub struct Versions {
    /// The definition's name.
    pub definition: String,
    of: Vec<Version>,
    storage: usize,
    /// `None`: conversion changes `apiVersion` alone (strategy `None`).
    pub webhook: Option<ConversionWebhook>,
}

pub struct Version {
    pub resource: Resource,
    pub schema: Arc<CustomSchema>,
    /// The place of the first version whose schema is the same.
    form: usize,
}

/// Who converts.
pub struct ConversionWebhook {
    /// Its `clientConfig`.
    pub client_config: Value,
    /// The first `apiVersion` of a ConversionReview that both sides know; `None` where there is none.
    pub review_version: Option<&'static str>,
    /// What whoever asks it keeps with it, for as long as the definition says the same.
    pub kept: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Versions {
    /// `of` are the versions in the definition's order with their schemas as text; `storage` is the place of the stored one.
    pub(crate) fn new(definition: &Value, of: Vec<(Resource, Arc<CustomSchema>)>, storage: usize) -> Self {
        let forms: Vec<usize> =
            of.iter().map(|it| of.iter().position(|other| other.1.open_api == it.1.open_api).unwrap_or(0)).collect();
        let of = of.into_iter().zip(forms).map(|((resource, schema), form)| Version { resource, schema, form });
        Self {
            definition: definition["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            of: of.collect(),
            storage,
            webhook: ConversionWebhook::read(&definition["spec"]["conversion"]),
        }
    }

    /// The version that objects are written in.
    pub fn storage(&self) -> &Version {
        &self.of[self.storage]
    }

    /// The storage version first.
    pub fn iter(&self) -> impl Iterator<Item = &Version> {
        let others = self.of.iter().enumerate().filter(|(at, _)| *at != self.storage).map(|it| it.1);
        std::iter::once(self.storage()).chain(others)
    }

    pub fn by_name(&self, version: &str) -> Option<&Version> {
        self.of.iter().find(|it| it.resource.version == version)
    }

    /// The object as it is read once it is stored; `None` where that is the same. What was left out after it was defaulted has its
    /// default again: a status that a create may not set, or what admission took away.
    pub fn as_read(&self, object: &Value) -> Option<Value> {
        let version = object["apiVersion"].as_str()?.rsplit('/').next()?;
        let schema = &self.by_name(version)?.schema;
        let mut read = object.clone();
        schema.coerce(&mut read);
        (read != *object).then_some(read)
    }

    /// Have both versions the same fields, and does nobody else convert between them?
    pub fn are_alike(&self, one: &str, other: &str) -> bool {
        let form = |name: &str| self.by_name(name).map(|it| it.form);
        self.webhook.is_none() && form(one).is_some() && form(one) == form(other)
    }
}

impl ConversionWebhook {
    fn read(conversion: &Value) -> Option<Self> {
        let webhook = Some(&conversion["webhook"]).filter(|_| conversion["strategy"] == "Webhook")?;
        let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let known = |it| match it {
            "v1" => Some("apiextensions.k8s.io/v1"),
            "v1beta1" => Some("apiextensions.k8s.io/v1beta1"),
            _ => None,
        };
        Some(Self {
            client_config: webhook["clientConfig"].clone(),
            review_version: versions.filter_map(known).next(),
            kept: OnceLock::new(),
        })
    }
}
