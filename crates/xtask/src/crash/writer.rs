//! Writes to objects of its own until the server is gone.

use std::sync::Arc;

use anyhow::{Result, bail};
use bytes::Bytes;
use corten_testbed::Connection;
use hyper::{Method, StatusCode};
use parking_lot::Mutex;
use rand::{Rng, rngs::StdRng};

use super::{
    CONFIG_MAPS,
    oracle::{KeyWrite, Object, Oracle},
};

const OBJECTS: usize = 12;
const VALUE_BYTES: std::ops::Range<usize> = 0..600;

pub(crate) async fn write(
    number: usize,
    mut connection: Connection,
    truth: Arc<Mutex<Oracle>>,
    mut dice: StdRng,
) -> Result<()> {
    loop {
        let name = format!("w-{number}-{}", dice.random_range(0..OBJECTS));
        let is_there = truth.lock().holds(&name);
        let path = format!("{CONFIG_MAPS}/{name}");
        let (key_write, method, path) = match (is_there, dice.random_range(0..4)) {
            (true, 0) => (KeyWrite::Delete, Method::DELETE, path),
            (true, _) => (KeyWrite::Put(value(&mut dice)), Method::PUT, path),
            (false, _) => (KeyWrite::Put(value(&mut dice)), Method::POST, CONFIG_MAPS.to_owned()),
        };
        truth.lock().asked(&name, key_write.clone());
        let body = match &key_write {
            KeyWrite::Put(value) => serde_json::json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value},
            })
            .to_string(),
            KeyWrite::Delete => String::new(),
        };
        // No answer: the server is gone, and what was asked for stays in doubt.
        let Ok((status, answer)) = connection.send(method, &path, Bytes::from(body)).await else { return Ok(()) };
        match (status, key_write) {
            (StatusCode::OK | StatusCode::CREATED, KeyWrite::Put(value)) => {
                let (named, version) = Object::read(&answer)?;
                if (&*named, &*version.value) != (&*name, &*value) {
                    bail!("{value} was put into {name}, and the answer is {version:?} of {named}");
                }
                truth.lock().put(&name, version)?;
            }
            (StatusCode::OK, KeyWrite::Delete) => truth.lock().deleted(&name),
            (other, key_write) => {
                bail!("{key_write:?} of {name} was answered {other}: {}", String::from_utf8_lossy(&answer))
            }
        }
    }
}

/// Unique, and of different lengths.
fn value(dice: &mut StdRng) -> String {
    let (id, length) = (dice.random::<u64>(), dice.random_range(VALUE_BYTES));
    format!("{id:016x}{}", "x".repeat(length))
}
