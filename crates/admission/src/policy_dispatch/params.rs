//! Finds the objects that parametrize a policy.

use std::sync::Arc;

use corten_cacher::watch_cache::{CacheRef, Stored};
use corten_kinds::KindRef;
use corten_policies::{
    admission_policy::{Binding, ParamKind, ParamRef, Policy},
    matching::OUT_OF_BUDGET,
};
use serde_json::Value;

use crate::{plugin::Attributes, policy_source::PolicyFault};

/// Why a policy or one of its bindings cannot be asked.
pub(super) enum Misconfigured {
    Policy(String),
    /// With what is told to whoever asks why, where that is more.
    Binding {
        message: String,
        detail: String,
    },
}

impl Misconfigured {
    pub(super) fn binding(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Binding { detail: message.clone(), message }
    }
}

/// Each entry is one evaluation; `None` is one without parameters.
pub(super) type Params = Vec<Option<Param>>;

/// An object that parametrizes a policy. It is read where it is used, so that one of many is in memory at a time.
pub(super) struct Param {
    row: KindRef,
    stored: Arc<Stored>,
}

impl Param {
    /// Which one it is, for whoever asks why.
    pub(super) fn named(&self) -> String {
        let (singular, name) = (&self.row.singular, self.stored.name());
        format!("{singular} {name:?}{}", within(self.stored.namespace()))
    }

    pub(super) fn read(&self, request: &Attributes<'_>) -> Arc<Value> {
        request.cluster.policies.params.read(&self.row, &self.stored)
    }
}

/// What went wrong, with the parameter that it went wrong with: others of the same policy may be well.
pub(super) fn with_parameter(param: Option<&Param>, fault: PolicyFault) -> PolicyFault {
    PolicyFault { parameter: param.map(Param::named).unwrap_or_default(), ..fault }
}

/// To look one up, and to ask about it. Reading it takes one unit for each byte beside it.
const FUEL_OF_ONE: u64 = 1_000;

/// The parameters that a binding gives its policy for one request (`CollectParams`).
pub(super) async fn collect(
    request: &Attributes<'_>,
    policy: &Policy,
    binding: &Binding,
    namespace: &str,
) -> Result<Params, Misconfigured> {
    let Some(kind) = &policy.param_kind else { return Ok(vec![None]) };
    let row = request.kinds.by_kind(&kind.api_version, &kind.kind).filter(|it| it.stored_row().is_stored());
    let row = row.ok_or_else(|| Misconfigured::Policy(unknown(kind)))?;
    let Some(reference) = &binding.param_ref else { return Ok(vec![None]) };
    let stored = row.stored_row();
    let cache = match &stored {
        KindRef::BuiltIn(kind) => Some(CacheRef::BuiltIn(request.cluster.cache(kind))),
        KindRef::Custom(kind) => request.cluster.caches.custom(kind).map(CacheRef::Custom),
    };
    let cache = cache.ok_or_else(|| Misconfigured::Policy(unknown(kind)))?;
    let namespace = place(reference, &row, namespace).map_err(Misconfigured::binding)?;
    let found: Vec<Arc<Stored>> = if reference.name.is_empty() {
        let snapshot = cache.snapshot();
        snapshot.range(namespace, None).filter(|it| reference.selector.matches(it.labels())).cloned().collect()
    } else {
        cache.get(namespace, &reference.name).into_iter().collect()
    };
    if found.is_empty() && reference.denies_missing {
        let message = "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned();
        return Err(Misconfigured::Binding { detail: missing(reference, &row, namespace), message });
    }
    let mut params = Vec::with_capacity(found.len());
    for stored in found {
        // Whoever has room for them may have put many there: what they take is the request's.
        if !request.fuel.take(FUEL_OF_ONE + stored.value().len() as u64) {
            return Err(Misconfigured::binding(OUT_OF_BUDGET));
        }
        tokio::task::consume_budget().await;
        // Params that cannot be converted are an error of the binding.
        let stored = match &cache {
            CacheRef::Custom(cache) => request.cluster.conversion.stored(&row, cache, &stored).await,
            CacheRef::BuiltIn(_) => Ok(stored),
        };
        let stored = stored.map_err(|it| Misconfigured::binding(it.message))?;
        params.push(Some(Param { row: row.clone(), stored }));
    }
    Ok(params)
}

/// In which namespace they are.
fn place<'n>(reference: &'n ParamRef, row: &KindRef, of_request: &'n str) -> Result<&'n str, &'static str> {
    match (row.resource.namespaced, &*reference.namespace) {
        (true, "") if of_request.is_empty() => {
            Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")
        }
        (true, "") => Ok(of_request),
        (true, namespace) => Ok(namespace),
        (false, "") => Ok(""),
        (false, _) => Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"),
    }
}

fn missing(reference: &ParamRef, row: &KindRef, namespace: &str) -> String {
    let (kind, place) = (&row.singular, within(namespace));
    match &*reference.name {
        "" => format!("no {kind}{place} has the labels that its paramRef asks for"),
        name => format!("its parameter, the {kind} {name:?}{place}, is not there"),
    }
}

fn within(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!(" in {namespace}") }
}

fn unknown(kind: &ParamKind) -> String {
    let ParamKind { api_version, kind } = kind;
    format!("failed to find resource referenced by paramKind: '{api_version}, Kind={kind}'")
}
