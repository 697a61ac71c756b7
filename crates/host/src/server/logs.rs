//! `GET /containerLogs/NAMESPACE/POD/CONTAINER`: a container's log, or the end of it, or what it goes on to write.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use corten_meta::Time;
use corten_routes::is_true;
use futures_util::StreamExt;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use serde_json::Value;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Body, PlainTextError,
    containers::{self, Pod},
    plain, query,
    routes::Call,
    text,
};
use crate::{
    Cri, cri,
    logs::{self, LogOptions, LogStream},
};

/// How often a container whose log is followed is asked whether it still runs.
const ALIVE: Duration = Duration::from_secs(1);

/// What the request asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct LogQuery {
    options: LogOptions,
    previous: bool,
}

pub(super) async fn answer(call: Call) -> Result<Response<Body>, PlainTextError> {
    let cri = call.server.hands().cri();
    let (namespace, name, container) = (call.name(0), call.name(1), call.name(2));
    let log_query = log_query(call.query(), Time(Timestamp::now()))
        .map_err(|it| PlainTextError::new(StatusCode::BAD_REQUEST, it))?;
    let pod = containers::pod(&call, namespace, name).await?;
    if !pod.has_container(container) {
        let message = format!("container {container:?} not found in pod {name:?}\n");
        return Err(PlainTextError::new(StatusCode::NOT_FOUND, message));
    }
    let found = containers::attempts(cri, namespace, name, pod.uid(), container).await?;
    let refused = |message| PlainTextError::new(StatusCode::BAD_REQUEST, message);
    let Some(newest) = found.into_iter().next() else {
        return match absent(&pod, container, log_query.previous) {
            Absent::Refused(message) => Err(refused(message)),
            // 200: Kubernetes's kubelet has begun to answer by then.
            Absent::Removed(id) => Ok(plain_text(format!("unable to retrieve container logs for {id}"))),
        };
    };
    let status = cri.container_status(&newest.id).await.map_err(PlainTextError::internal)?;
    let is_running = status.state == i32::from(cri::ContainerState::Running);
    let mut path = PathBuf::from(&status.log_path);
    if log_query.previous {
        let attempt = newest.metadata.as_ref().map_or(0, |it| it.attempt);
        let has_ended = status.state == i32::from(cri::ContainerState::Exited);
        path = previous(&path, attempt, has_ended)
            .filter(|it| it.exists())
            .ok_or_else(|| refused(no_previous(&pod, container)))?;
    }
    let (alive, is_alive) = watch::channel(is_running && !log_query.previous);
    let watcher = log_query.options.follow.then(|| Watcher::spawn(cri.clone(), newest.id.clone(), alive));
    let pieces = logs::read(path, log_query.options, is_alive);
    let frames = pieces.map(move |piece| {
        // The watcher lives as long as the body is read.
        let _ = &watcher;
        piece.map(Frame::data)
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    plain(&mut response);
    Ok(response)
}

fn plain_text(message: String) -> Response<Body> {
    let mut response = Response::new(text(message));
    plain(&mut response);
    response
}

fn no_previous(pod: &Pod, container: &str) -> String {
    format!("previous terminated container {container:?} in pod {:?} not found", pod.name())
}

/// Why the runtime knows nothing of a container.
#[derive(Debug, PartialEq, Eq)]
enum Absent {
    Refused(String),
    /// It was there, and its log went with it.
    Removed(String),
}

/// As the Pod's status tells it, in upstream's words.
fn absent(pod: &Pod, container: &str, previous: bool) -> Absent {
    let name = pod.name();
    let about = |what: String| Absent::Refused(format!("container {container:?} in pod {name:?} is {what}"));
    let Some(status) = pod.container_status(container) else { return about("not available".into()) };
    let id = |state: &Value| state["terminated"]["containerID"].as_str().unwrap_or_default().to_owned();
    let (current, last) = (&status["state"], &status["lastState"]);
    if previous {
        return match id(last) {
            id if id.is_empty() => Absent::Refused(no_previous(pod, container)),
            id => Absent::Removed(id),
        };
    }
    if current["running"].is_object() {
        return Absent::Removed(status["containerID"].as_str().unwrap_or_default().to_owned());
    }
    if current["terminated"].is_object() || last["terminated"].is_object() {
        return match [id(current), id(last)].into_iter().find(|it| !it.is_empty()) {
            Some(id) => Absent::Removed(id),
            None => about("terminated".into()),
        };
    }
    match current["waiting"]["reason"].as_str() {
        Some("ErrImagePull") => about("waiting to start: image can't be pulled".into()),
        Some("ImagePullBackOff") => about("waiting to start: trying and failing to pull image".into()),
        Some(reason) => about(format!("waiting to start: {reason}")),
        None => about("waiting to start - no logs yet".into()),
    }
}

/// The log of the attempt that ended last but for the one that is reported as current.
///
/// As in `validateContainerLogStatus`, a restarted container that has ended again waits for its next start, and what just
/// ended is the previous one. The log outlives the container: a sandbox that breaks takes its containers along.
fn previous(newest: &Path, attempt: u32, has_ended: bool) -> Option<PathBuf> {
    let before = attempt.checked_sub(1)?;
    Some(if has_ended { newest.to_owned() } else { newest.with_file_name(format!("{before}.log")) })
}

/// Asks whether a container still runs until it does not, or nobody wants to know.
struct Watcher(JoinHandle<()>);

impl Watcher {
    fn spawn(cri: Cri, id: String, alive: watch::Sender<bool>) -> Self {
        Self(tokio::spawn(async move {
            loop {
                match cri.container_status(&id).await {
                    Ok(status) if status.state == i32::from(cri::ContainerState::Running) => {}
                    // A runtime that is away for a moment does not end a container.
                    Err(error) if !error.is_not_found() => {}
                    _ => break,
                }
                tokio::time::sleep(ALIVE).await;
            }
            alive.send_replace(false);
        }))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn log_query(text: &str, now: Time) -> Result<LogQuery, String> {
    let mut log_query = LogQuery::default();
    let options = &mut log_query.options;
    for (name, value) in query(text) {
        let is_on = is_true(&value);
        let number = || value.parse::<u64>().map_err(|_| format!("invalid value {value:?} for {name}"));
        match name.as_str() {
            "follow" => options.follow = is_on,
            "previous" => log_query.previous = is_on,
            "timestamps" => options.timestamps = is_on,
            "tailLines" => options.tail_lines = Some(number()?),
            "limitBytes" => options.limit_bytes = Some(number()?),
            "sinceSeconds" => {
                let seconds = i64::try_from(number()?).unwrap_or(i64::MAX);
                options.since = Some(now.whole_seconds().after_seconds(seconds.saturating_neg()));
            }
            "sinceTime" => {
                options.since = Some(value.parse().map_err(|_| format!("invalid value {value:?} for {name}"))?)
            }
            "stream" => {
                options.stream = match value.as_str() {
                    "Stdout" => Some(LogStream::Stdout),
                    "Stderr" => Some(LogStream::Stderr),
                    "" | "All" => None,
                    _ => return Err(format!("invalid value {value:?} for {name}")),
                }
            }
            _ => {}
        }
    }
    Ok(log_query)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_there_is_told_in_upstreams_words() {
        let waiting = |reason: &str| json!({ "state": { "waiting": { "reason": reason } } });
        let refused = |text: &str| Absent::Refused(format!("container \"c\" in pod \"web\" is {text}"));
        let removed = || Absent::Removed("containerd://1".into());
        let none = || Absent::Refused("previous terminated container \"c\" in pod \"web\" not found".into());
        let ended = json!({ "terminated": { "containerID": "containerd://1" } });
        for (status, previous, expected) in [
            (json!(null), false, refused("not available")),
            (waiting("ContainerCreating"), false, refused("waiting to start: ContainerCreating")),
            (waiting("ErrImagePull"), false, refused("waiting to start: image can't be pulled")),
            (waiting("ImagePullBackOff"), false, refused("waiting to start: trying and failing to pull image")),
            (json!({ "state": {} }), false, refused("waiting to start - no logs yet")),
            (json!({ "state": { "terminated": {} } }), false, refused("terminated")),
            (json!({ "state": ended }), false, removed()),
            (json!({ "state": { "waiting": {} }, "lastState": ended }), false, removed()),
            (json!({ "state": { "running": {} }, "containerID": "containerd://1" }), false, removed()),
            (json!({ "state": { "running": {} }, "lastState": ended }), true, removed()),
            (waiting("CrashLoopBackOff"), true, none()),
        ] {
            let mut pod = json!({ "metadata": { "name": "web" }, "status": { "containerStatuses": [] } });
            if let Some(mut status) = status.is_object().then(|| status.clone()) {
                status["name"] = json!("c");
                pod["status"]["containerStatuses"] = json!([status]);
            }
            assert_eq!(absent(&Pod(pod), "c", previous), expected, "{status} {previous}");
        }
    }

    #[test]
    fn the_previous_log_is_that_of_the_attempt_that_ended_last() {
        for (attempt, has_ended, wanted) in
            [(0, false, None), (0, true, None), (2, false, Some("/l/1.log")), (2, true, Some("/l/2.log"))]
        {
            let newest = format!("/l/{attempt}.log");
            assert_eq!(
                previous(newest.as_ref(), attempt, has_ended),
                wanted.map(PathBuf::from),
                "{attempt} {has_ended}"
            );
        }
    }

    #[test]
    fn reads_what_is_wanted() {
        let now = Time::from_unix_seconds(1000);
        let all = log_query("follow=true&tailLines=5&sinceSeconds=10&timestamps=true&limitBytes=9&previous=true", now);
        let options = LogOptions {
            follow: true,
            tail_lines: Some(5),
            since: Some(Time::from_unix_seconds(990)),
            timestamps: true,
            limit_bytes: Some(9),
            stream: None,
        };
        assert_eq!(all, Ok(LogQuery { options, previous: true }));
        for (query, follows) in [("follow", true), ("follow=", true), ("follow=FALSE", false), ("follow=0", false)] {
            assert_eq!(log_query(query, now).expect("valid").options.follow, follows, "{query}");
        }
        let since = log_query("sinceTime=1970-01-01T00%3A00%3A05Z&follow=false", now).expect("valid").options.since;
        assert_eq!(since, Some(Time::from_unix_seconds(5)));
        assert_eq!(log_query("tailLines=x", now), Err("invalid value \"x\" for tailLines".into()));
        assert_eq!(log_query("", now), Ok(LogQuery::default()));
    }
}
