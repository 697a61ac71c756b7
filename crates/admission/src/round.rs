//! All plugins that are asked about a write, one after another.

use corten_meta::Status;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    PLUGINS,
    measures::{Asked, Half},
    plugin::{Admission, Attributes},
    webhook_dispatch::{MutatingWebhook, ValidatingWebhook},
};

/// Lets every plugin change the object, and once more where others have changed what some had seen. Says whether others have.
///
/// # Errors
/// What the first plugin says that refuses it.
pub async fn admit(request: &Attributes<'_>, object: &mut Value) -> Result<bool, Status> {
    let begun = Instant::now();
    let mut outcome = admit_once(request, object).await;
    if outcome.is_ok() && request.reinvocation.begin_again() {
        outcome = admit_once(request, object).await;
    }
    request.cluster.measures.step(asked(request, Half::Admit, &outcome), begun.elapsed());
    outcome?;
    Ok(request.reinvocation.has_changed())
}

async fn admit_once(request: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
    let mut begun = Instant::now();
    for (nth, row) in PLUGINS.iter().enumerate().filter(|it| it.1.admits) {
        let outcome = row.plugin.admit(request, object).await;
        begun = took(request, nth, asked(request, Half::Admit, &outcome), begun);
        outcome?;
    }
    Ok(())
}

/// Lets every plugin refuse the object.
///
/// # Errors
/// What the first plugin says that refuses it.
pub async fn validate(request: &Attributes<'_>, object: &Value) -> Result<(), Status> {
    let begun = Instant::now();
    let outcome = validate_once(request, object).await;
    request.cluster.measures.step(asked(request, Half::Validate, &outcome), begun.elapsed());
    outcome
}

async fn validate_once(request: &Attributes<'_>, object: &Value) -> Result<(), Status> {
    let mut begun = Instant::now();
    for (nth, row) in PLUGINS.iter().enumerate().filter(|it| it.1.validates) {
        let outcome = row.plugin.validate(request, object).await;
        begun = took(request, nth, asked(request, Half::Validate, &outcome), begun);
        outcome?;
    }
    Ok(())
}

/// Lets webhooks change what is answered and never stored. No other plugin is about it.
///
/// # Errors
/// What a webhook says that refuses it, or that there was no answer.
pub async fn admit_by_webhooks(request: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
    MutatingWebhook.admit(request, object).await?;
    if request.reinvocation.begin_again() {
        MutatingWebhook.admit(request, object).await?;
    }
    Ok(())
}

/// Lets webhooks refuse what is answered and never stored.
///
/// # Errors
/// See [`admit_by_webhooks`].
pub async fn validate_by_webhooks(request: &Attributes<'_>, object: &Value) -> Result<(), Status> {
    ValidatingWebhook.validate(request, object).await
}

fn asked(request: &Attributes<'_>, half: Half, outcome: &Result<(), Status>) -> Asked {
    Asked { half, operation: request.operation, is_refused: outcome.is_err() }
}

/// The next plugin begins where this one ends: the clock is read once for each.
fn took(request: &Attributes<'_>, nth: usize, asked: Asked, begun: Instant) -> Instant {
    let ended = Instant::now();
    request.cluster.measures.plugin(nth, asked, ended.saturating_duration_since(begun));
    ended
}
