//! What to do about the cause at the end of the chain: the facts that help, who must act, the command to run next.
//!
//! A command is one that can be pasted as it stands. Where only a person can know what to write, it opens an editor.

mod attaching;
pub(super) mod case;
mod changing;
mod containers;
mod devices;
mod exclusive;
mod extensions;
mod files;
mod images;
mod leaving;
mod managers;
mod mounting;
mod nodes;
mod pod_certificates;
mod provisioning;
mod refusals;
mod scheduling;
mod servers;
mod services;
mod snapshots;
mod sources;
mod volumes;
mod workloads;

use std::rc::Rc;

use corten_meta::Key;
use corten_reconcile::Actor;
use serde_json::Value;

use super::{
    account::{Account, Root},
    aggregated::OF_NOBODY,
    command::kubectl,
    fields::key_of,
    gather,
    reader::Reader,
};
use crate::why::advice::case::{Advice, Case};
use corten_console::shell::quoted;

/// The advice for the cause of an account; none where nothing is waited for.
pub(super) async fn of(reader: &Reader<'_>, root: &Root<'_>) -> Advice {
    let at = root.at();
    let (author, author_object) = author(reader, at).await;
    let case =
        Case { reader, root, wait: root.wait, at, object: &at.object, namespace: &at.namespace, author, author_object };
    let mut advice = match advise(&case).await {
        Some(advice) => advice,
        None => general(&case).await,
    };
    if advice.who.is_empty() {
        advice.who = who(&case);
    }
    advice
}

/// A loop fails again and again, and waits for nothing that has a name.
pub(super) fn without_wait(account: &Account) -> Advice {
    Advice::run(kubectl(&account.namespace, &["describe", &account.subject])).who("whoever runs the cluster")
}

async fn advise(case: &Case<'_>) -> Option<Advice> {
    if let Some(advice) = of_containers(case).await {
        return advice;
    }
    if let Some(advice) = of_nodes(case).await {
        return advice;
    }
    if let Some(advice) = of_volumes(case).await {
        return advice;
    }
    if let Some(advice) = of_refusals(case).await {
        return advice;
    }
    if let Some(advice) = of_workloads(case).await {
        return advice;
    }
    match of_cluster(case) {
        Some(advice) => advice,
        None if case.wait.reason == "ConversionWebhookFailing" => Some(extensions::conversion(case).await),
        None => extensions::condition(case).await,
    }
}

/// What a Pod waits for once it has a node; `None`: the reason is of something else.
async fn of_containers(case: &Case<'_>) -> Option<Option<Advice>> {
    if files::is_about(case)
        && let Some(advice) = files::of(case).await
    {
        return Some(Some(advice));
    }
    Some(match &*case.wait.reason {
        "ErrImagePull" | "ImagePullBackOff" => Some(images::pull(case).await),
        "ErrImageNeverPull" => Some(images::never(case).await),
        "InvalidImageName" => Some(images::invalid(case)),
        "CrashLoopBackOff" | "OOMKilled" | "PodFailed" => Some(containers::crash(case)),
        "RunContainerError" | "CreateContainerError" | "PostStartHookError" => Some(containers::start(case)),
        "Unhealthy" => Some(containers::probe(case)),
        "InitContainerRunning" => Some(containers::init(case)),
        "PostStartHookRunning" | "PreStopHookRunning" => Some(containers::hook(case)),
        "Evicted" if case.wait.actor == Actor::Author => Some(containers::evicted(case)),
        "FailedMount" if exclusive::is_about(case) => Some(exclusive::of(case).await),
        "FailedMount" if attaching::is_about(case) => Some(attaching::of(case).await),
        "FailedMount" if mounting::is_about(case) => Some(mounting::of(case).await),
        "CreateContainerConfigError" | "FailedMount" => sources::missing(case).await,
        "ReadinessGate" => Some(containers::gate(case)),
        "CPUThrottled" => Some(containers::throttled(case)),
        _ => return None,
    })
}

/// What has to do with nodes, and with which of them a Pod gets.
async fn of_nodes(case: &Case<'_>) -> Option<Option<Advice>> {
    Some(match &*case.wait.reason {
        "InsufficientResources" => scheduling::resources(case).await,
        "NodeUnschedulable" | "Cordoned" => Some(scheduling::cordoned(case)),
        "UntoleratedTaint" => scheduling::taint(case).await,
        "NodeAffinity" => scheduling::affinity(case).await,
        "DynamicResources" | "NoDeviceMatches" => Some(devices::allocation(case).await),
        "DevicesNotReady" => Some(devices::readiness(case)),
        "DeviceClassNotFound" => Some(devices::class(case).await),
        "DeviceSelectorFails" => Some(devices::selector(case)),
        "FailedPrepareDynamicResources" => Some(devices::preparation(case)),
        "NodePorts" => Some(scheduling::ports(case).await),
        "SchedulingGated" => Some(scheduling::gated(case)),
        "NotScheduled" => Some(scheduling::other(case).await),
        "NoNodes" => Some(scheduling::no_nodes(case).await),
        "NodeLate" | "NodeNotReady" | "NodeSilent" | "NotReady" => Some(nodes::unwell(case)),
        "ClocksApart" => Some(scheduling::clocks(case)),
        "VersionSkew" => Some(
            Advice::run(kubectl("", &["get", "nodes"]))
                .who("whoever runs the cluster: all servers are upgraded first, then nodes, each by `corten up` of the new program"),
        ),
        "NodeGone" => Some(scheduling::node_gone(case)),
        _ => return None,
    })
}

/// What has to do with claims and volumes.
async fn of_volumes(case: &Case<'_>) -> Option<Option<Advice>> {
    Some(match &*case.wait.reason {
        "ClaimInUse" => Some(leaving::in_use(case)),
        "VolumeBound" => Some(leaving::bound(case)),
        "FailedCleanup" => Some(mounting::cleanup(case).await),
        "FileSystemResizePending" => Some(changing::file_system(case)),
        "ModifyVolumePending" => Some(changing::unclassed(case).await),
        "VolumeRestrictions" => Some(exclusive::of(case).await),
        "ModifyVolumeError" => Some(changing::attributes(case)),
        "ControllerResizeError" | "NodeResizeError" => Some(changing::size(case)),
        "VolumeBinding" if case.at.subject.starts_with("pod/") => Some(volumes::placement(case).await),
        "NoStorageClass"
        | "StorageClassNotFound"
        | "NoVolumeFits"
        | "ExternalProvisioning"
        | "ProvisioningFailed"
        | "WaitForFirstConsumer"
        | "VolumeNotFound"
        | "VolumeMismatch"
        | "VolumeTaken"
        | "ClaimLost"
        | "ClaimMisbound"
        | "VolumeReleased"
        | "VolumeFailed"
        | "ClaimOfAnother" => volumes::of(case).await,
        "SnapshotNotReady"
        | "SnapshotContentCreationFailed"
        | "GetSnapshotClassFailed"
        | "SetDefaultSnapshotClassFailed" => Some(snapshots::of(case).await),
        _ => return None,
    })
}

/// What the API server refused to a loop.
async fn of_refusals(case: &Case<'_>) -> Option<Option<Advice>> {
    Some(match &*case.wait.reason {
        "WebhookRefused"
        | "WebhookFailed"
        | "WebhookFailing"
        | "WebhookDenying"
        | "WebhookConditionFailed"
        | "WebhookRefusesItsOwn" => Some(refusals::webhook(case).await),
        "ParameterNotFound" => Some(refusals::parameter(case)),
        "ParamKindNotFound" => Some(refusals::param_kind(case)),
        "ServiceNotFound" | "ServicePortMissing" => Some(extensions::service(case)),
        "PolicyRefused" | "PolicyFailed" | "PolicyFailing" | "PolicyDenying" => Some(refusals::policy(case).await),
        "RequestsRefused" => Some(refusals::turned_away()),
        "QuotaExceeded" => Some(refusals::quota(case).await),
        "QuotaNeedsRequests" => Some(refusals::requests(case)),
        "PodSecurityViolated" => Some(refusals::pod_security(case)),
        "LimitRangeViolated" => Some(refusals::limit_range(case)),
        "RoleNotFound" | "SubjectNotFound" => {
            Some(Advice::run(kubectl(case.namespace, &["get", &case.at.subject, "-o", "yaml"])))
        }
        "ServiceAccountNotFound" => Some(refusals::service_account(case).await),
        "PriorityClassNotFound" | "RuntimeClassNotFound" | "TemplateInvalid" => {
            Some(Advice::run(case.edit()).hints(case.edit_hints()))
        }
        "NeverDue" | "UnparseableSchedule" | "InvalidSchedule" | "UnknownTimeZone" => Some(Advice::run(case.edit())),
        _ => return None,
    })
}

/// What workloads, and the Services before them, wait for.
async fn of_workloads(case: &Case<'_>) -> Option<Option<Advice>> {
    Some(match &*case.wait.reason {
        _ if case.wait.message.contains(OF_NOBODY) => Some(workloads::metrics(case)),
        _ if workloads::is_metric_unknown(case) => Some(workloads::metric(case)),
        "DeploymentPaused" => Some(workloads::paused(case)),
        "JobSuspended" | "Suspended" => Some(workloads::suspended(case)),
        "ManagedElsewhere" => Some(workloads::managed_elsewhere(case)),
        "ApprovalNeeded" => Some(workloads::approval(case)),
        "CertificatePending" | "CertificateDenied" | "CertificateFailed" => Some(pod_certificates::of(case)),
        "TopologyAffinityError" | "SMTAlignmentError" | "UnexpectedAdmissionError" => Some(managers::of(case)),
        "CertificateMissing" | "Denied" | "SigningFailed" => Some(workloads::unsigned(case)),
        "NoDisruptionsAllowed" | "EvictionRefused" => Some(workloads::budget(case)),
        "JobAlreadyActive" | "PodsRunning" => Some(workloads::running(case)),
        "NoPodsSelected" => Some(services::selector(case).await),
        "NoEndpoints" | "LoadBalancerPending" => Some(services::endpoints(case).await),
        "NamedPortMissing" => Some(services::port(case).await),
        "ScaledToZero" => Some(services::scaled(case)),
        "PodsEnded" => Some(services::ended(case)),
        "TargetPortClosed" => Some(services::closed(case)),
        _ => return None,
    })
}

/// What has to do with the cluster itself, its machines and the ends of objects.
fn of_cluster(case: &Case<'_>) -> Option<Option<Advice>> {
    Some(match &*case.wait.reason {
        "NameServerSilent" => Some(Advice::run(case.edit()).hints(case.edit_hints())),
        "HostPortTaken" | "NodePortTaken" => Some(taken(case)),
        "VolumeConditionAbnormal" => Some(Advice::run(case.describe()).hint(
            "look at the disk of that machine (dmesg), and save what is in the volume before more of it is lost",
        )),
        "PortProtocolMismatch" => Some(Advice::run(case.edit())),
        "AddressNotInPool" | "AddressTaken" => Some(Advice::run(case.edit())),
        "PoolExhausted" => Some(services::pool(case)),
        "DriverNowhere" | "AttachRefused" | "AttachPending" | "DetachRefused" => Some(attaching::of_volume(case)),
        "FinalizerHolds" | "NamespaceContentRemaining" => Some(leaving::finalizer(case)),
        "NamespaceNotFound" => Some(leaving::namespace(case)),
        "StoredVersionMissing" => Some(extensions::stored_version(case)),
        "KeyStillUsed" => Some(Advice::run("kubectl get --raw /readyz/configuration-files".into())),
        "Unreadable" => Some(extensions::unlisted(case)),
        "ContentUnreadable" => Some(
            Advice::run("kubectl get --raw '/readyz?verbose'".into())
                .hint("it goes by itself when all of them can be read"),
        ),
        "LoopStuck" | "LoopPanicked" => Some(defect(case)),
        "ListFailing" => Some(unlisted(case)),
        "FolderExposed" | "FileExposed" | "FolderReplaceable" | "FileLost" | "FileSystemReadOnly"
        | "FileSystemFull" | "NoDefaultRoute" | "PodRangeTaken" => told(case),
        "PodTrafficFiltered" => {
            told(case).map(|it| it.hint("keep a rule for it where that filter is kept: it is loaded anew from there"))
        }
        _ => return None,
    })
}

/// The program itself fails at this object.
fn defect(case: &Case<'_>) -> Advice {
    let advice = Advice::run(kubectl(case.namespace, &["get", &case.at.subject, "-o", "yaml"]));
    let advice = advice.hint("report it with the object and the log: other objects are not concerned");
    let is_stuck = case.wait.reason == "LoopStuck";
    advice.hint(if is_stuck {
        "change or delete what is unusual about it, then restart Corten: a thread is busy with it until then"
    } else {
        "change or delete what is unusual about it"
    })
}

/// A loop waits for a resource that the server does not give, and does nothing else meanwhile.
fn unlisted(case: &Case<'_>) -> Advice {
    let resource = case.wait.message.split(" sees ").nth(1).and_then(|it| it.split(':').next()).unwrap_or_default();
    let advice = Advice::run(kubectl("", &["get", resource, "--all-namespaces"]));
    advice.hint("the loop does nothing for any object of the cluster before that; then it goes on by itself")
}

/// Another process listens at the port, and its message names it.
fn taken(case: &Case<'_>) -> Advice {
    let port = case.wait.message.split("at port ").nth(1).and_then(|it| it.split(',').next()).unwrap_or_default();
    if case.wait.actor == Actor::Operator {
        let delete = kubectl(case.namespace, &["delete", &case.at.subject]);
        return Advice::run(delete).hint("a pod that is made anew has another port; or end that process");
    }
    Advice::run(format!("ss -tlnp 'sport = :{port}'")).hint("end that process, or take another port")
}

/// The command that its message names.
fn told(case: &Case<'_>) -> Option<Advice> {
    let command = case.wait.message.split_once('`')?.1.rsplit_once('`')?.0;
    // A path may hold anything.
    let chmod = command.strip_prefix("chmod ").and_then(|it| it.split_once(' '));
    let quoted = chmod.map(|(mode, path)| format!("chmod {mode} {}", quoted(path)));
    Some(Advice::run(quoted.unwrap_or_else(|| command.to_owned())))
}

/// Nothing is known of this reason but what the wait says.
async fn general(case: &Case<'_>) -> Advice {
    let named = case.wait.on.as_deref().and_then(|it| it.split_once('/'));
    // What it waits for need not be an object of the API.
    let object = named.and_then(|(kind, name)| Some((corten_kinds::by_name(kind)?, name)));
    let Some((kind, name)) = object else { return Advice::run(case.describe()) };
    let (namespace, name) = name.split_once('/').unwrap_or((case.namespace, name));
    let namespace = if kind.resource.namespaced { namespace } else { "" };
    // What is not there cannot be described; what names it can.
    if case.reader.get(&kind.resource, &Key::new(namespace, name)).await.is_none() {
        return Advice::run(case.describe());
    }
    Advice::run(kubectl(namespace, &["describe", &format!("{}/{name}", kind.singular)]))
}

fn who(case: &Case<'_>) -> String {
    match case.wait.actor {
        Actor::Cluster => "nobody: it goes on by itself".into(),
        Actor::Author => format!("whoever wrote it: {} must change, or something it names", case.author),
        Actor::Operator => "whoever runs the cluster".into(),
        Actor::External => "a program outside the cluster, or whoever runs it".into(),
    }
}

/// The object at the top of the controllers, whose template a person wrote.
async fn author(reader: &Reader<'_>, at: &Account) -> (String, Rc<Value>) {
    let (mut subject, mut object) = (at.subject.clone(), at.object.clone());
    for _ in 0..3 {
        let Some((kind, name)) = gather::owner(&object) else { break };
        subject = format!("{}/{name}", kind.singular);
        let Some(owner) = reader.get(&kind.resource, &Key::new(key_of(&object).namespace, name)).await else { break };
        object = owner;
    }
    (subject, object)
}
