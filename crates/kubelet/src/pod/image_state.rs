//! Gets one container's image onto the machine: is it there, pull it, wait after failures.

use std::time::Duration;

use corten_meta::Time;
use corten_reconcile::EventType::{Normal, Warning};

use crate::{
    Failure, HostEffect, Image,
    backoff::go_millis,
    pod::{
        container_record::{ContainerContext, ContainerRecord},
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
pub(crate) fn ensure(record: &mut ContainerRecord, context: &ContainerContext<'_>, cx: &mut Context<'_>) -> bool {
    record.use_image(context.container.image.as_deref().unwrap_or_default());
    match &record.image {
        ImageState::Present(_) => return true,
        ImageState::Inspecting | ImageState::Pulling { .. } => return false,
        ImageState::Failed { message, back_off_at, retry_at } => {
            let retry_at = *retry_at;
            if retry_at > cx.now {
                let (message, back_off_at) = (message.clone(), *back_off_at);
                back_off(record, context, &message, back_off_at, cx);
                cx.wake_at(retry_at);
                return false;
            }
        }
        ImageState::Idle => {}
    }
    let image = context.container.image.clone().unwrap_or_default();
    let full = match images::full_name(&image) {
        Ok(full) => full,
        Err(why) => {
            let message =
                format!("Failed to apply default image tag {image:?}: couldn't parse image name {image:?}: {why}");
            if record.waiting.as_ref().is_none_or(|it| it.reason != "InvalidImageName") {
                cx.event(context.who, context.field, Warning, "InspectFailed", message.clone());
                cx.event(context.who, context.field, Warning, "Failed", "Error: InvalidImageName".into());
            }
            record.wait("InvalidImageName", message, cx.now);
            return false;
        }
    };
    if images::awaits_secret(context.pod, cx.sources) {
        return false;
    }
    record.image_span = Span { started: Some(cx.now), finished: None };
    if images::policy(context.container) == PullPolicy::Always {
        pull(record, context, full, cx);
    } else {
        record.image = ImageState::Inspecting;
        let (pod, container) = (context.who.clone(), context.container.name.clone());
        cx.host(HostEffect::InspectImage { pod, container, image: full });
    }
    false
}

/// A moment after the failure the wait is renamed, so that a reader sees first what failed and then that it repeats.
fn back_off(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    why: &str,
    at: Option<Time>,
    cx: &mut Context<'_>,
) {
    let Some(at) = at else { return };
    if !cx.is_due(Some(at)) || record.waiting.as_ref().is_some_and(|it| it.reason == IMAGE_PULL_BACK_OFF) {
        return;
    }
    let image = context.container.image.as_deref().unwrap_or_default();
    let message = format!("Back-off pulling image {image:?}");
    record.wait(IMAGE_PULL_BACK_OFF, format!("{message}: {ERR_IMAGE_PULL}: {why}"), cx.now);
    cx.event(context.who, context.field, Normal, "BackOff", message);
    cx.event(context.who, context.field, Warning, "Failed", format!("Error: {IMAGE_PULL_BACK_OFF}"));
}

fn pull(record: &mut ContainerRecord, context: &ContainerContext<'_>, full: String, cx: &mut Context<'_>) {
    let image = context.container.image.as_deref().unwrap_or_default();
    cx.event(context.who, context.field, Normal, "Pulling", format!("Pulling image {image:?}"));
    record.image = ImageState::Pulling { since: cx.now };
    cx.host(HostEffect::PullImage {
        pod: context.who.clone(),
        container: context.container.name.clone(),
        credentials: images::credentials(context.pod, &full, cx.sources),
        image: full,
    });
}

pub(crate) fn inspected(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    result: Result<Option<Image>, Failure>,
    cx: &mut Context<'_>,
) {
    if !matches!(record.image, ImageState::Inspecting) {
        return;
    }
    let image = context.container.image.clone().unwrap_or_default();
    match result {
        Ok(Some(found)) => {
            let message =
                format!("Container image {image:?} already present on machine and can be accessed by the pod");
            cx.event(context.who, context.field, Normal, "Pulled", message);
            record.image_span.finished = Some(cx.now);
            record.image = ImageState::Present(found);
        }
        Ok(None) if images::policy(context.container) == PullPolicy::Never => {
            let message = format!("Container image {image:?} is not present with pull policy of Never");
            refuse(record, context, "ErrImageNeverPull", message, cx);
        }
        Ok(None) => {
            let full = images::full_name(&image).unwrap_or(image);
            pull(record, context, full, cx);
        }
        Err(failure) => {
            let message = format!("Failed to inspect image {image:?}: {}", failure.message);
            refuse(record, context, "ImageInspectError", message, cx);
        }
    }
}

/// Something a pull would not mend.
fn refuse(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    reason: &'static str,
    message: String,
    cx: &mut Context<'_>,
) {
    if record.waiting.as_ref().is_none_or(|it| it.reason != reason) {
        let event = if reason == "ErrImageNeverPull" { "ErrImageNeverPull" } else { "InspectFailed" };
        cx.event(context.who, context.field, Warning, event, message.clone());
        cx.event(context.who, context.field, Warning, "Failed", format!("Error: {reason}"));
    }
    record.wait(reason, message.clone(), cx.now);
    let retry_at = cx.now.after(RETRY);
    record.image = ImageState::Failed { message, back_off_at: None, retry_at };
    cx.wake_at(retry_at);
}

pub(crate) fn pulled(
    record: &mut ContainerRecord,
    context: &ContainerContext<'_>,
    result: Result<Image, Failure>,
    cx: &mut Context<'_>,
) {
    let ImageState::Pulling { since } = record.image else { return };
    let name = context.container.image.as_deref().unwrap_or_default();
    match result {
        Ok(image) => {
            let took = go_millis(cx.now.since(since));
            let size = image.size_bytes;
            let message = format!(
                "Successfully pulled image {name:?} in {took} ({took} including waiting). Image size: {size} bytes."
            );
            cx.event(context.who, context.field, Normal, "Pulled", message);
            record.image_span.finished = Some(cx.now);
            record.image = ImageState::Present(image);
        }
        Err(failure) => {
            let message = failure.message;
            cx.event(
                context.who,
                context.field,
                Warning,
                "Failed",
                format!("Failed to pull image {name:?}: {message}"),
            );
            cx.event(context.who, context.field, Warning, "Failed", format!("Error: {ERR_IMAGE_PULL}"));
            record.wait(ERR_IMAGE_PULL, message.clone(), cx.now);
            record.pulls.next(cx.now, cx.now);
            let retry_at = cx.now.after(record.pulls.delay());
            let back_off_at = Some(cx.now.after(Duration::from_secs(2)));
            record.image = ImageState::Failed { message, back_off_at, retry_at };
        }
    }
}
