//! `GET /containerLogs/NAMESPACE/POD/CONTAINER`: a container's log, or the end of it, or what it goes on to write.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use corten_meta::Time;
use futures_util::StreamExt;
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use jiff::Timestamp;
use tokio::{sync::watch, task::JoinHandle};

use super::{Body, Refused, containers, plain, query};
use crate::{
    Cri, NodeHands, cri,
    logs::{self, LogOptions, LogStream},
};

/// How often a container whose log is followed is asked whether it still runs.
const ALIVE: Duration = Duration::from_secs(1);

/// What the request asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wish {
    options: LogOptions,
    previous: bool,
}

pub(super) async fn answer(
    hands: &NodeHands,
    namespace: &str,
    pod: &str,
    container: &str,
    text: &str,
) -> Result<Response<Body>, Refused> {
    let wish = wish(text, Time(Timestamp::now())).map_err(|it| Refused::new(StatusCode::BAD_REQUEST, it))?;
    let newest =
        containers::attempts(hands.cri(), namespace, pod, container).await?.into_iter().next().ok_or_else(|| {
            let message = if wish.previous {
                format!("previous terminated container {container:?} in pod {pod:?} not found")
            } else {
                format!("container {container:?} in pod {pod:?} is waiting to start: ContainerCreating")
            };
            Refused::new(StatusCode::BAD_REQUEST, message)
        })?;
    let status = hands.cri().container_status(&newest.id).await.map_err(Refused::internal)?;
    let is_running = status.state == i32::from(cri::ContainerState::Running);
    let mut path = PathBuf::from(&status.log_path);
    if wish.previous {
        let attempt = newest.metadata.as_ref().map_or(0, |it| it.attempt);
        let has_ended = status.state == i32::from(cri::ContainerState::Exited);
        path = previous(&path, attempt, has_ended).filter(|it| it.exists()).ok_or_else(|| {
            let message = format!("previous terminated container {container:?} in pod {pod:?} not found");
            Refused::new(StatusCode::BAD_REQUEST, message)
        })?;
    }
    let (alive, is_alive) = watch::channel(is_running && !wish.previous);
    let watcher = wish.options.follow.then(|| Watcher::spawn(hands.cri().clone(), newest.id.clone(), alive));
    let pieces = logs::read(path, wish.options, is_alive);
    let frames = pieces.map(move |piece| {
        // The watcher lives as long as the body is read.
        let _ = &watcher;
        piece.map(Frame::data)
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    plain(&mut response);
    Ok(response)
}

/// The log of the attempt that ended last but for the one that is reported as current.
///
/// As upstream a restarted container that has ended again waits for its next start, and what just ended is the previous one.
/// The log outlives the container: a sandbox that breaks takes its containers along.
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

fn wish(text: &str, now: Time) -> Result<Wish, String> {
    let mut wish = Wish::default();
    let options = &mut wish.options;
    for (name, value) in query(text) {
        let is_on = matches!(value.as_str(), "true" | "1");
        let number = || value.parse::<u64>().map_err(|_| format!("invalid value {value:?} for {name}"));
        match name.as_str() {
            "follow" => options.follow = is_on,
            "previous" => wish.previous = is_on,
            "timestamps" => options.timestamps = is_on,
            "tailLines" => options.tail_lines = Some(number()?),
            "limitBytes" => options.limit_bytes = Some(number()?),
            "sinceSeconds" => {
                let seconds = i64::try_from(number()?).unwrap_or(i64::MAX);
                options.since = Some(Time::from_unix_seconds((now.unix_millis() / 1000).saturating_sub(seconds)));
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
    Ok(wish)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let all = wish("follow=true&tailLines=5&sinceSeconds=10&timestamps=true&limitBytes=9&previous=true", now);
        let options = LogOptions {
            follow: true,
            tail_lines: Some(5),
            since: Some(Time::from_unix_seconds(990)),
            timestamps: true,
            limit_bytes: Some(9),
            stream: None,
        };
        assert_eq!(all, Ok(Wish { options, previous: true }));
        let since = wish("sinceTime=1970-01-01T00%3A00%3A05Z&follow=false", now).expect("valid").options.since;
        assert_eq!(since, Some(Time::from_unix_seconds(5)));
        assert_eq!(wish("tailLines=x", now), Err("invalid value \"x\" for tailLines".into()));
        assert_eq!(wish("", now), Ok(Wish::default()));
    }
}
