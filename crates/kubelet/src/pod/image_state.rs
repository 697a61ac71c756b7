//! Gets one container's image onto the machine: is it there, pull it, wait after failures.

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::EventType::{Normal, Warning};

use crate::{
    Failure, HostEffect, Image,
    backoff::go_millis,
    pod::{
        container_record::{ContainerRecord, Frame},
        context::Context,
        span::Span,
    },
    spec::images::{self, PullPolicy},
};

/// Where the image of the next start stands; idle again once the start is under way.
#[derive(Debug, Default)]
pub(crate) enum ImageState {
    #[default]
    Idle,
    Inspecting,
    Pulling {
        since: Time,
    },
    Present(Image),
    /// Nothing is tried before `retry_at`; from `back_off_at` on that is called a back-off.
    Failed {
        message: String,
        back_off_at: Option<Time>,
        retry_at: Time,
    },
}

/// What the API and the journal call a pull that failed, and one that waits to be tried again.
pub(crate) const ERR_IMAGE_PULL: &str = "ErrImagePull";
pub(crate) const IMAGE_PULL_BACK_OFF: &str = "ImagePullBackOff";

/// What no pull can mend is looked at again at this pace (`backOffPeriod`).
const RETRY: Duration = Duration::from_secs(10);

/// True once the image is there; else something is under way or waited for.
pub(crate) fn ensure(track: &mut ContainerRecord, frame: &Frame<'_>, cx: &mut Context<'_>) -> bool {
    track.use_image(frame.container.image.as_deref().unwrap_or_default());
    match &track.image {
        ImageState::Present(_) => return true,
        ImageState::Inspecting | ImageState::Pulling { .. } => return false,
        ImageState::Failed { message, back_off_at, retry_at } => {
            let retry_at = *retry_at;
            if retry_at > cx.now {
                let (message, back_off_at) = (message.clone(), *back_off_at);
                back_off(track, frame, &message, back_off_at, cx);
                cx.wake_at(retry_at);
                return false;
            }
        }
        ImageState::Idle => {}
    }
    let image = frame.container.image.clone().unwrap_or_default();
    let full = match images::full_name(&image) {
        Ok(full) => full,
        Err(why) => {
            let message =
                format!("Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {why}");
            if track.waiting.as_ref().is_none_or(|it| it.reason != "InvalidImageName") {
                cx.event(frame.who, frame.field, Warning, "InspectFailed", message.clone());
                cx.event(frame.who, frame.field, Warning, "Failed", "Error: InvalidImageName".into());
            }
            track.wait("InvalidImageName", message, cx.now);
            return false;
        }
    };
    if images::awaits_secret(frame.pod, cx.sources) {
        return false;
    }
    track.image_span = Span { started: Some(cx.now), finished: None };
    if images::policy(frame.container) == PullPolicy::Always {
        pull(track, frame, full, cx);
    } else {
        track.image = ImageState::Inspecting;
        let (pod, container) = (frame.who.clone(), frame.container.name.clone());
        cx.host(HostEffect::InspectImage { pod, container, image: full });
    }
    false
}

/// A moment after the failure the wait is renamed, so that a reader sees first what failed and then that it repeats.
fn back_off(track: &mut ContainerRecord, frame: &Frame<'_>, why: &str, at: Option<Time>, cx: &mut Context<'_>) {
    let Some(at) = at else { return };
    if !cx.is_due(Some(at)) || track.waiting.as_ref().is_some_and(|it| it.reason == IMAGE_PULL_BACK_OFF) {
        return;
    }
    let image = frame.container.image.as_deref().unwrap_or_default();
    let message = format!("Back-off pulling image {image:?}");
    track.wait(IMAGE_PULL_BACK_OFF, format!("{message}: {ERR_IMAGE_PULL}: {why}"), cx.now);
    cx.event(frame.who, frame.field, Normal, "BackOff", message);
    cx.event(frame.who, frame.field, Warning, "Failed", format!("Error: {IMAGE_PULL_BACK_OFF}"));
}

fn pull(track: &mut ContainerRecord, frame: &Frame<'_>, full: String, cx: &mut Context<'_>) {
    let image = frame.container.image.as_deref().unwrap_or_default();
    cx.event(frame.who, frame.field, Normal, "Pulling", format!("Pulling image {image:?}"));
    track.image = ImageState::Pulling { since: cx.now };
    cx.host(HostEffect::PullImage {
        pod: frame.who.clone(),
        container: frame.container.name.clone(),
        credentials: images::credentials(frame.pod, &full, cx.sources),
        image: full,
    });
}

pub(crate) fn inspected(
    track: &mut ContainerRecord,
    frame: &Frame<'_>,
    result: Result<Option<Image>, Failure>,
    cx: &mut Context<'_>,
) {
    if !matches!(track.image, ImageState::Inspecting) {
        return;
    }
    let image = frame.container.image.clone().unwrap_or_default();
    match result {
        Ok(Some(found)) => {
            let message =
                format!("Container image {image:?} already present on machine and can be accessed by the pod");
            cx.event(frame.who, frame.field, Normal, "Pulled", message);
            track.image_span.finished = Some(cx.now);
            track.image = ImageState::Present(found);
        }
        Ok(None) if images::policy(frame.container) == PullPolicy::Never => {
            let message = format!("Container image {image:?} is not present with pull policy of Never");
            refuse(track, frame, "ErrImageNeverPull", message, cx);
        }
        Ok(None) => {
            let full = images::full_name(&image).unwrap_or(image);
            pull(track, frame, full, cx);
        }
        Err(failure) => {
            let message = format!("Failed to inspect image {image:?}: {}", failure.message);
            refuse(track, frame, "ImageInspectError", message, cx);
        }
    }
}

/// Something a pull would not mend.
fn refuse(track: &mut ContainerRecord, frame: &Frame<'_>, reason: &'static str, message: String, cx: &mut Context<'_>) {
    if track.waiting.as_ref().is_none_or(|it| it.reason != reason) {
        let event = if reason == "ErrImageNeverPull" { "ErrImageNeverPull" } else { "InspectFailed" };
        cx.event(frame.who, frame.field, Warning, event, message.clone());
        cx.event(frame.who, frame.field, Warning, "Failed", format!("Error: {reason}"));
    }
    track.wait(reason, message.clone(), cx.now);
    let retry_at = cx.now.after(RETRY);
    track.image = ImageState::Failed { message, back_off_at: None, retry_at };
    cx.wake_at(retry_at);
}

pub(crate) fn pulled(
    track: &mut ContainerRecord,
    frame: &Frame<'_>,
    result: Result<Image, Failure>,
    cx: &mut Context<'_>,
) {
    let ImageState::Pulling { since } = track.image else { return };
    let name = frame.container.image.as_deref().unwrap_or_default();
    match result {
        Ok(image) => {
            let took = go_millis(cx.now.since(since));
            let size = image.size_bytes;
            let message = format!(
                "Successfully pulled image {name:?} in {took} ({took} including waiting). Image size: {size} bytes."
            );
            cx.event(frame.who, frame.field, Normal, "Pulled", message);
            track.image_span.finished = Some(cx.now);
            track.image = ImageState::Present(image);
        }
        Err(failure) => {
            let message = failure.message;
            cx.event(frame.who, frame.field, Warning, "Failed", format!("Failed to pull image {name:?}: {message}"));
            cx.event(frame.who, frame.field, Warning, "Failed", format!("Error: {ERR_IMAGE_PULL}"));
            track.wait(ERR_IMAGE_PULL, message.clone(), cx.now);
            track.pulls.next(cx.now, cx.now);
            let retry_at = cx.now.after(track.pulls.delay());
            let back_off_at = Some(cx.now.after(Duration::from_secs(2)));
            track.image = ImageState::Failed { message, back_off_at, retry_at };
        }
    }
}
