//! What the cost of a claim for devices depends on beside the claim, as the watch cache has it.

use std::sync::{Arc, OnceLock};

use corten_api::resources::{DEVICE_CLASSES, PODS, RESOURCE_CLAIMS};
use corten_cacher::watch_cache::{Snapshot, Stored};
use corten_meta::Resource;
use corten_policies::quota::{DeviceClasses, Neighbours};
use serde_json::Value;

use super::Attributes;

pub(super) struct Cached<'a> {
    request: &'a Attributes<'a>,
    classes: OnceLock<DeviceClasses>,
}

impl<'a> Cached<'a> {
    pub(super) fn of(request: &'a Attributes<'a>) -> Self {
        Self { request, classes: OnceLock::new() }
    }

    fn snapshot(&self, resource: &Resource) -> Arc<Snapshot> {
        self.request.cluster.caches().get(resource).expect("it is a row of the table").snapshot()
    }
}

impl Neighbours for Cached<'_> {
    fn classes(&self) -> &DeviceClasses {
        self.classes.get_or_init(|| {
            let named = |it: &Arc<Stored>| {
                let resource = it.draft()["spec"]["extendedResourceName"].as_str().map(str::to_owned);
                (it.name().to_owned(), resource)
            };
            self.snapshot(&DEVICE_CLASSES).range("", None).map(named).collect()
        })
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        self.snapshot(&PODS).get(namespace, name).map(|it| it.draft())
    }

    fn claims(&self, namespace: &str) -> Vec<Value> {
        self.snapshot(&RESOURCE_CLAIMS).range(namespace, None).map(|it| it.draft()).collect()
    }
}
