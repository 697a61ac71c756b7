//! A pod's claims for devices: read at the API, then prepared by their drivers, before anything of the pod begins.
//!
//! A restarted kubelet takes over the claims that an earlier run had prepared for a running pod, as `newClaimInfoCache` does from the
//! checkpoint `dra_manager_state`. A container can then start again without the API and without a driver.

use std::sync::Arc;

use corten_api::core::v1::{Container, Pod, PodExtendedResourceClaimStatus};
use corten_meta::Time;
use corten_reconcile::EventType::Warning;

use crate::{
    ApiEffect, ClaimName, ClaimUser, Failure, HostEffect, PreparedClaim, ReservedClaim,
    backoff::pause,
    pod::{context::Context, machine::PodMachine},
    spec::pod::spec_of,
};

const RETRY_SECONDS_MAX: u64 = 30;

/// Stands for the name in the pod of the claim for its extended resources, which has none: no claim of `spec.resourceClaims`
/// can be named so.
const EXTENDED_RESOURCES: &str = "<extended-resources>";

#[derive(Debug, Default)]
pub(crate) struct DeviceClaims {
    in_flight: bool,
    /// An earlier run left nothing.
    is_forgotten: bool,
    prepared: Option<Arc<Vec<PreparedClaim>>>,
    failures: u32,
    retry_at: Option<Time>,
    /// Why they are not there, and since when.
    pub(crate) problem: Option<(String, Time)>,
}

impl DeviceClaims {
    pub(crate) fn are_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    pub(crate) fn prepared(&self) -> Arc<Vec<PreparedClaim>> {
        self.prepared.clone().unwrap_or_default()
    }
}

impl PodMachine {
    pub(crate) fn has_device_claims(&self) -> bool {
        self.spec().resource_claims.as_ref().is_some_and(|it| !it.is_empty()) || extended(&self.pod).is_some()
    }

    /// True once the containers can have the devices of all claims.
    pub(crate) fn prepare_device_claims(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.has_device_claims() || self.device_claims.prepared.is_some() {
            return true;
        }
        if self.device_claims.in_flight || !cx.is_due(self.device_claims.retry_at) {
            return false;
        }
        if self.sandbox().is_some() && !self.device_claims.is_forgotten {
            self.device_claims.in_flight = true;
            cx.host(HostEffect::RecallDevices { pod: self.who.clone() });
            return false;
        }
        match self.claim_names() {
            Ok(claims) if claims.is_empty() => {
                self.device_claims.prepared = Some(Arc::default());
                return true;
            }
            Ok(claims) => {
                self.device_claims.in_flight = true;
                cx.api(ApiEffect::ReadDeviceClaims { pod: self.who.clone(), claims });
            }
            Err(problem) => self.claims_failed(problem, cx),
        }
        false
    }

    /// The claims the pod needs: those that it names, those that were made for it, and the one for its extended resources.
    fn claim_names(&self) -> Result<Vec<ClaimName>, String> {
        let pod = self.pod.clone();
        let told = pod.status.as_ref().and_then(|it| it.resource_claim_statuses.as_ref());
        let mut names = Vec::new();
        for wanted in spec_of(&pod).resource_claims.iter().flatten() {
            let made = told.into_iter().flatten().find(|it| it.name == wanted.name);
            let claim = match (&wanted.resource_claim_name, made) {
                (Some(named), _) => Some(named.clone()),
                (None, Some(made)) => made.resource_claim_name.clone(),
                (None, None) => return Err(format!("pod \"{}\": ResourceClaim not created yet", self.who.key)),
            };
            names.extend(claim.map(|claim| ClaimName { in_pod: wanted.name.clone(), claim }));
        }
        let in_pod = || EXTENDED_RESOURCES.to_owned();
        names.extend(extended(&pod).map(|it| ClaimName { in_pod: in_pod(), claim: it.resource_claim_name.clone() }));
        Ok(names)
    }

    pub(crate) fn device_claims_read(&mut self, result: Result<Vec<ReservedClaim>, String>, cx: &mut Context<'_>) {
        match result {
            Ok(mut claims) => {
                for it in &mut claims {
                    it.users = users(&self.pod, &it.in_pod);
                }
                cx.host(HostEffect::PrepareDevices { pod: self.who.clone(), claims });
            }
            Err(problem) => {
                self.device_claims.in_flight = false;
                self.claims_failed(problem, cx);
            }
        }
    }

    pub(crate) fn devices_recalled(&mut self, found: Option<Vec<PreparedClaim>>) {
        let state = &mut self.device_claims;
        (state.in_flight, state.is_forgotten) = (false, found.is_none());
        state.prepared = found.map(Arc::new);
    }

    pub(crate) fn devices_prepared(&mut self, result: Result<Vec<PreparedClaim>, Failure>, cx: &mut Context<'_>) {
        let state = &mut self.device_claims;
        state.in_flight = false;
        match result {
            Ok(prepared) => {
                (state.prepared, state.problem, state.failures) = (Some(Arc::new(prepared)), None, 0);
            }
            Err(failure) => self.claims_failed(failure.message, cx),
        }
    }

    fn claims_failed(&mut self, problem: String, cx: &mut Context<'_>) {
        let state = &mut self.device_claims;
        state.failures += 1;
        state.retry_at = Some(cx.now.after(pause(state.failures, RETRY_SECONDS_MAX)));
        cx.is_due(state.retry_at);
        if state.problem.as_ref().is_none_or(|it| it.0 != problem) {
            let message = format!("Failed to prepare dynamic resources: prepare dynamic resources: {problem}");
            cx.event(&self.who, "", Warning, "FailedPrepareDynamicResources", message);
        }
        let since = self.device_claims.problem.take().map_or(cx.now, |it| it.1);
        self.device_claims.problem = Some((problem, since));
    }
}

/// The claim that the scheduler made for extended resources that a DeviceClass offers (KEP-5004).
fn extended(pod: &Pod) -> Option<&PodExtendedResourceClaimStatus> {
    pod.status.as_ref()?.extended_resource_claim_status.as_ref()
}

fn users(pod: &Pod, claim: &str) -> Vec<ClaimUser> {
    let spec = spec_of(pod);
    let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
    let named = containers.flat_map(|it| uses(pod, it).map(move |(claim, request)| (it, claim, request)));
    let of_claim = named.filter(|(_, named, _)| *named == claim);
    of_claim
        .map(|(it, _, request)| ClaimUser { container: it.name.clone(), request: request.map(str::to_owned) })
        .collect()
}

/// The claims a container has devices of, by their names in the pod, each with the request where it is one: those that it
/// names, then those that `requestMappings` give it for its extended resources.
fn uses<'a>(pod: &'a Pod, container: &'a Container) -> impl Iterator<Item = (&'a str, Option<&'a str>)> {
    let named = container.resources.iter().flat_map(|it| it.claims.iter().flatten());
    let mapped = extended(pod).into_iter().flat_map(|it| &it.request_mappings);
    let own = mapped.filter(|it| it.container_name == container.name);
    let own = own.map(|it| (EXTENDED_RESOURCES, Some(it.request_name.as_str())));
    named.map(|it| (it.name.as_str(), it.request.as_deref())).chain(own)
}

/// The devices of claims that a container has.
pub(crate) fn cdi_devices(pod: &Pod, container: &Container, prepared: &[PreparedClaim]) -> Vec<String> {
    let mut devices: Vec<String> = Vec::new();
    for (claim, request) in uses(pod, container) {
        let claims = prepared.iter().filter(|it| it.in_pod == claim);
        for device in claims.flat_map(|it| it.devices_for(request)).flat_map(|it| &it.cdi_devices) {
            if !devices.contains(device) {
                devices.push(device.clone());
            }
        }
    }
    devices
}
