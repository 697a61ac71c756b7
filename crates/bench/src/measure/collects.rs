//! An owner is deleted: how long until the garbage collector has deleted all that it owned?

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use bytes::Bytes;
use corten_testbed::{Data, Launcher, expect, text_field};
use hyper::{Method, StatusCode};
use serde_json::json;

use super::{
    super::{
        load,
        objects::CONFIG_MAPS,
        report::{Row, Unit},
    },
    Scale,
};

const PATIENCE: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const OWNED: &str = "/api/v1/namespaces/default/configmaps?labelSelector=owned&limit=1";

pub(super) async fn measure(launcher: &Launcher, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let data = Data::new()?;
    let (server, _) = launcher.start(&data).await?;
    let mut connection = server.connect().await?;
    let owner = connection.create(CONFIG_MAPS, json!({"metadata": {"name": "owner"}}).to_string().into()).await?;
    let uid = text_field(&owner, "uid")?.to_owned();
    let n = scale.owned;
    let body = move |idx: usize| {
        let reference = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid});
        let metadata = json!({"name": format!("owned-{idx}"), "labels": {"owned": ""}, "ownerReferences": [reference]});
        Bytes::from(json!({"metadata": metadata}).to_string())
    };
    load::create(server.connect_many(16).await?, n, CONFIG_MAPS, body).await?;

    let cpu = server.cpu()?;
    let start = Instant::now();
    let path = format!("{CONFIG_MAPS}/owner");
    let (status, answer) = connection.send(Method::DELETE, &path, Bytes::new()).await?;
    expect(status, StatusCode::OK, &path, &answer)?;
    while !connection.get(OWNED).await?.windows(11).any(|it| it == br#""items":[]}"#) {
        if start.elapsed() > PATIENCE {
            bail!("after {PATIENCE:?} not all was collected");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let took = start.elapsed().as_secs_f64();
    let each = (server.cpu()? - cpu).as_secs_f64() * 1e6 / n as f64;
    let row = Row::new(format!("{n} dependents of a deleted owner are gone"), took, Unit::Seconds);
    rows.push(row.note(format!("{:.0} /s, {each:.0} µs of the server's processor time each", n as f64 / took)));
    server.stop()
}
