//! One question to one webhook: objects of a definition in another version.

use std::{sync::Arc, time::Duration};

use corten_cacher::watch_cache::versions;
use corten_kinds::{ConversionWebhook, Kind, Version, Versions};
use corten_meta::Status;
use corten_webhook::{Client, ClientConfig, Question, told};
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    Conversion, Inner,
    measures::ConversionLabels,
    restored::{Unfit, restored},
    review,
};

/// A definition cannot say another (`webhookConverter.Convert`).
const DEADLINE: Duration = Duration::from_secs(30);
const QUERY: &str = "timeout=30s";
/// Of the largest question there is: one object as large as one may be, or many small ones, which may grow.
const ANSWER_BYTES_MAX: usize = 8 << 20;

impl Conversion {
    /// A custom resource, or any other object, in the version of `row`. Owners that are still the text they are stored as stay so.
    ///
    /// # Errors
    /// 500 where its webhook does not convert it.
    pub async fn object(&self, row: &Kind, mut object: Value) -> Result<Value, Status> {
        let Some(versions) = row.versions.as_ref().filter(|it| it.webhook.is_some()) else {
            versions::from_stored(row, &mut object);
            return Ok(object);
        };
        let to = versions.by_name(&row.resource.version).unwrap_or_else(|| versions.storage());
        // Boxed: seldom asked, and large beside every request that might.
        Box::pin(self.0.one(versions, to, object)).await
    }

    /// A custom resource in the version that it is written in.
    ///
    /// # Errors
    /// See [`Self::object`].
    pub async fn to_storage(&self, row: &Kind, mut object: Value) -> Result<Value, Status> {
        let Some(versions) = &row.versions else { return Ok(object) };
        let mut stored = if versions.webhook.is_none() {
            versions::to_storage(versions, &mut object);
            object
        } else {
            Box::pin(self.0.one(versions, versions.storage(), object)).await?
        };
        // As it is read from then on: with the defaults of the version that it is stored in.
        versions.storage().schema.coerce(&mut stored);
        Ok(stored)
    }
}

/// Why there are no converted objects.
struct NoAnswer {
    reason: String,
    /// Of an answer that is a refusal.
    answered_code: Option<u16>,
}

impl Inner {
    async fn one(&self, versions: &Versions, to: &Version, object: Value) -> Result<Value, Status> {
        if object["apiVersion"] == to.resource.api_version() {
            return Ok(object);
        }
        let mut converted = self.convert(versions, to, vec![object]).await?;
        converted.pop().ok_or_else(|| Status::internal("no converted object"))
    }

    /// Objects of which none is in the wanted version, and all are in one. Each loses what the schema of that does not know.
    pub(crate) async fn convert(
        &self,
        versions: &Versions,
        to: &Version,
        objects: Vec<Value>,
    ) -> Result<Vec<Value>, Status> {
        let Some(webhook) = &versions.webhook else { return Ok(objects) };
        let (begun, question) = (Instant::now(), self.failing.begin());
        let from = objects[0]["apiVersion"].as_str().unwrap_or_default().to_owned();
        let gvk = format!("{from}, Kind={}", to.resource.kind);
        let asked = self.ask(webhook, to, &objects).await;
        let answered_code = asked.as_ref().err().and_then(|it| it.answered_code);
        let converted = match asked {
            Ok(converted) => accepted(&gvk, &objects, converted, to),
            Err(NoAnswer { reason, .. }) => {
                Err(format!("conversion for {gvk} failed: conversion webhook for {gvk} failed: {reason}"))
            }
        };
        let measured = ConversionLabels {
            definition: &versions.definition,
            from: from.rsplit('/').next().unwrap_or_default(),
            to: &to.resource.version,
        };
        self.measures.converted(&measured, begun.elapsed(), converted.is_ok());
        match &converted {
            Ok(_) => self.failing.answered(&versions.definition, (self.clock)()),
            Err(message) => {
                let message = told(message, answered_code);
                self.failing.failed(question, &versions.definition, &message, (self.clock)());
            }
        }
        // `webhookConverter.Convert` answers an error of no kind that clients know.
        converted.map_err(|message| Status::failure(500, "", message))
    }

    async fn ask(&self, webhook: &ConversionWebhook, to: &Version, objects: &[Value]) -> Result<Vec<Value>, NoAnswer> {
        let unasked = |reason: String| NoAnswer { reason, answered_code: None };
        let version =
            webhook.review_version.ok_or_else(|| unasked("no supported conversion review versions".to_owned()))?;
        let client = self.client(webhook).map_err(unasked)?;
        let uid = (self.uids)();
        let spelled: Vec<Value> = objects.iter().map(spelled_out).collect();
        let body = review::request(version, &uid, &to.resource.api_version(), &spelled);
        drop(spelled);
        let begun = Instant::now();
        let question = Question { query: QUERY, body, deadline: DEADLINE, answer_bytes_max: ANSWER_BYTES_MAX };
        let answered = match client.post_json(question).await {
            Ok(body) => review::read(&body, version, &uid).map_err(unasked),
            Err(error) => Err(NoAnswer { reason: error.to_string(), answered_code: error.answered_code() }),
        };
        self.measures.asked(begun.elapsed(), answered.is_ok());
        answered
    }

    /// Its connections live as long as the definition says the same.
    fn client(&self, webhook: &ConversionWebhook) -> Result<Arc<Client>, String> {
        type Made = Result<Arc<Client>, String>;
        let make = || -> Made {
            let config = ClientConfig::of_json(&webhook.client_config).map_err(|it| it.0)?;
            self.clients.client(&config).map_err(|it| it.0)
        };
        let kept = webhook.kept.get_or_init(|| Arc::new(make()));
        kept.downcast_ref::<Made>().cloned().unwrap_or_else(make)
    }
}

/// Between the store and the next write the owners are one text; others are shown a list.
fn spelled_out(object: &Value) -> Value {
    let mut shown = object.clone();
    let owners = shown["metadata"]["managedFields"].as_str().and_then(|it| serde_json::from_str::<Value>(it).ok());
    if let Some(list) = owners {
        shown["metadata"]["managedFields"] = list;
    }
    shown
}

fn accepted(gvk: &str, objects: &[Value], converted: Vec<Value>, to: &Version) -> Result<Vec<Value>, String> {
    if converted.len() != objects.len() {
        let (n, expected) = (converted.len(), objects.len());
        return Err(format!("conversion for {gvk} returned {n} objects, expected {expected}"));
    }
    let pairs = objects.iter().zip(converted).enumerate();
    let restored = pairs.map(|(at, (original, converted))| {
        // Messages count from one (`webhookConverter.Convert`).
        let at = at + 1;
        let unfit = |unfit| match unfit {
            Unfit::Object(reason) => {
                format!("conversion for {gvk} returned invalid converted object at index {at}: {reason}")
            }
            Unfit::Metadata(reason) => {
                format!("conversion for {gvk} returned invalid metadata in object at index {at}: {reason}")
            }
        };
        let mut object = restored(original, converted, &to.resource).map_err(unfit)?;
        to.schema.structural.prune(&mut object);
        Ok(object)
    });
    restored.collect()
}
