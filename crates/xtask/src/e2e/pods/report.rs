//! What a failed case prints: what was expected, what was seen, and all that helps to find out why.

use std::fmt::Write;

use bytes::Bytes;
use serde_json::Value;

use super::{
    case::Case,
    expect::event_line,
    play::{Failure, Stage},
    world::PODS,
};

const LOG_LINES: usize = 15;

pub(super) async fn failure(case: &Case, failure: &Failure, stage: &Stage) -> String {
    let mut text = format!("FAILED {} ({})\n  expected\n", case.name, case.place);
    indented(&mut text, &failure.step);
    text += "  seen\n";
    indented(&mut text, &failure.why);
    let pod = stage.world.newest(&failure.pod);
    if let Some(pod) = &pod {
        let mut status = pod["status"].clone();
        if let Some(status) = status.as_object_mut() {
            status.retain(|key, _| !["hostIPs", "podIPs", "qosClass"].contains(&key.as_str()));
        }
        text += "  status\n";
        indented(&mut text, &serde_saphyr::to_string(&status).unwrap_or_default());
    }
    text += "  events\n";
    for event in stage.world.events(&failure.pod) {
        indented(&mut text, &event_line(&event));
    }
    for (container, log) in logs(pod.as_deref(), failure, stage).await {
        let _ = writeln!(text, "  log of {container}");
        indented(&mut text, &log);
    }
    text
}

async fn logs(pod: Option<&Value>, failure: &Failure, stage: &Stage) -> Vec<(String, String)> {
    let mut logs = Vec::new();
    for name in containers(pod).into_iter().take(4) {
        let path = format!("{}/log?container={name}&tailLines={LOG_LINES}", PODS.path(&failure.pod));
        let log: Result<Bytes, _> = stage.client.get_path(&path).await;
        if let Ok(log) = log
            && !log.is_empty()
        {
            logs.push((name.to_owned(), String::from_utf8_lossy(&log).into_owned()));
        }
    }
    logs
}

fn containers(pod: Option<&Value>) -> Vec<&str> {
    let spec = pod.map(|it| &it["spec"]).unwrap_or(&Value::Null);
    let lists = [&spec["initContainers"], &spec["containers"]];
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    all.filter_map(|it| it["name"].as_str()).collect()
}

fn indented(text: &mut String, lines: &str) {
    for line in lines.lines() {
        let _ = writeln!(text, "    {line}");
    }
}
