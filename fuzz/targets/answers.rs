//! What servers of others answer: reviews, discovery, OpenAPI, keys. No answer makes their readers panic, or gets more believed than
//! the bounds say.
//!
//! The first byte says whose answer it is.

#![no_main]

use std::sync::Arc;

use corten_access::{Keys, Signed};
use corten_admission::answer::{self, Expected};
use corten_conversion::review;
use corten_openapi::{Aggregated, AggregatedVersion, Description, Documents, Resources, Swagger, discovery::Discovery};
use corten_kinds::Kinds;
use libfuzzer_sys::fuzz_target;

const UID: &str = "u";

fuzz_target!(|data: &[u8]| {
    let [whose, answer @ ..] = data else { return };
    match whose % 5 {
        0 => admission(answer),
        1 => conversion(answer),
        2 => discovery(answer),
        3 => openapi(answer),
        _ => keys(answer),
    }
});

fn admission(body: &[u8]) {
    for version in ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"] {
        for may_patch in [true, false] {
            let asked = Expected { uid: UID, version, webhook: "w", may_patch };
            let Ok(read) = answer::read(body, &asked) else { continue };
            assert!(read.patch.len() <= body.len(), "a patch is no longer than what holds it");
            assert!(may_patch || read.patch.is_empty(), "who validates changes nothing");
            assert!(read.warnings.len() <= 4096);
            let bytes: usize = read.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
            assert!(bytes <= 64 * 1024);
            assert!(read.refused.is_none_or(|it| (400..=599).contains(&it.code)), "a refusal is one");
        }
    }
}

fn conversion(body: &[u8]) {
    for version in ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"] {
        if let Ok(objects) = review::read(body, version, UID) {
            assert!(objects.len() <= body.len());
        }
    }
}

fn discovery(body: &[u8]) {
    let resources = [Resources::of_list(body).ok(), Resources::of_discovery(body, "g.example.com", "v1").ok().flatten()];
    for resources in resources.into_iter().flatten() {
        let aggregated = Aggregated::of([version(resources, None)]);
        let _ = Discovery::of(&Kinds::default(), &aggregated);
    }
}

fn openapi(body: &[u8]) {
    let _ = Description::of(body);
    let Ok(swagger) = Swagger::of(body, "/apis/g.example.com/v1/") else { return };
    let _ = Description::of_swagger(&swagger);
    let aggregated = Aggregated::of([version(Resources::default(), Some(swagger))]);
    let _ = Documents::of(Arc::default(), Arc::new(aggregated), &Documents::default());
}

fn keys(body: &[u8]) {
    let mut lines = body.splitn(2, |it| *it == b'\n');
    let (Some(keys), Some(token)) = (lines.next(), lines.next()) else { return };
    let (Ok(keys), Ok(token)) = (Keys::read(keys), std::str::from_utf8(token)) else { return };
    if let Some(token) = Signed::read(token) {
        assert!(!keys.has_signed(&token), "nobody signs by chance");
    }
}

fn version(resources: Resources, v2: Option<Swagger>) -> AggregatedVersion {
    AggregatedVersion {
        group: "g.example.com".into(),
        version: "v1".into(),
        group_priority: 1,
        version_priority: 1,
        is_current: true,
        resources: Arc::new(resources),
        v3: None,
        v2: v2.map(Arc::new),
    }
}
