//! How a trace shows effects: one short line each.

use corten_meta::Time;
use corten_reconcile::Step;
use serde_json::Value;

use crate::{Action, Backend, HostEffect, MemoryCheck, MountSource, PersistentMount, ResizeStep, VolumeSource};

pub(super) fn host(effect: &HostEffect) -> String {
    let pod = &effect.pod().key.name;
    match effect {
        HostEffect::PrepareVolumes { volumes, .. } => {
            let volumes: Vec<_> = volumes.iter().map(|it| format!("{}:{}", it.name, volume(&it.source))).collect();
            format!("volumes {pod} [{}]", volumes.join(" "))
        }
        HostEffect::RunSandbox(spec) if !spec.runtime_handler.is_empty() => {
            let users = if spec.own_users { " with users of its own" } else { "" };
            format!("sandbox {pod} #{} by {}{users}", spec.attempt, spec.runtime_handler)
        }
        HostEffect::RunSandbox(spec) => format!("sandbox {pod} #{}", spec.attempt),
        HostEffect::StopSandbox { id, .. } => format!("stop-sandbox {pod} {id}"),
        HostEffect::RemoveSandbox { id, .. } => format!("remove-sandbox {pod} {id}"),
        HostEffect::InspectImage { container, image, .. } => format!("inspect {pod}/{container} {image}"),
        HostEffect::PullImage { container, image, credentials, .. } => {
            let users: Vec<_> = credentials.iter().map(|it| it.username.as_str()).collect();
            let with = if users.is_empty() { String::new() } else { format!(" as {}", users.join(",")) };
            format!("pull {pod}/{container} {image}{with}")
        }
        HostEffect::StartContainer(spec) => {
            format!("start {pod}/{} #{} in {}", spec.name, spec.attempt, spec.sandbox_id)
        }
        HostEffect::StopContainer { container, id, timeout_seconds, signal: Some(signal), .. } => {
            format!("stop {pod}/{container} {id} {timeout_seconds}s {signal}")
        }
        HostEffect::StopContainer { container, id, timeout_seconds, .. } => {
            format!("stop {pod}/{container} {id} {timeout_seconds}s")
        }
        HostEffect::RemoveContainer { container, id, .. } => format!("remove {pod}/{container} {id}"),
        HostEffect::Probe { container, probe, action: it, .. } => {
            format!("probe {pod}/{container} {probe:?} {}", action(it))
        }
        HostEffect::RunHook { container, hook, action: it, .. } => {
            format!("hook {pod}/{container} {hook:?} {}", action(it))
        }
        HostEffect::PinContainer { id, cpus, .. } => format!("pin {id} to {cpus}"),
        HostEffect::Resize { steps, checks, .. } => {
            let step = |it: &ResizeStep| match it {
                ResizeStep::Pod(it) => format!("pod {}/{}/{}", it.cpu_shares, it.cpu_quota, it.memory_limit_bytes),
                ResizeStep::Container { id, resources: it } => {
                    format!("{id} {}/{}/{}", it.cpu_shares, it.cpu_quota, it.memory_limit_bytes)
                }
            };
            let steps: Vec<_> = steps.iter().map(step).collect();
            let check = |it: &MemoryCheck| {
                let name = it.container.as_ref().map_or("pod", |it| it.0.as_str());
                format!(" if {name} uses less than {}", it.limit_bytes)
            };
            format!("resize {pod} [{}]{}", steps.join(", "), checks.iter().map(check).collect::<String>())
        }
        HostEffect::ReadFiles { container, files, .. } => {
            let files: Vec<_> = files.iter().map(|(volume, path)| format!("{volume}/{path}")).collect();
            format!("read {pod}/{container} {}", files.join(" "))
        }
        HostEffect::TailLog { container, attempt, .. } => format!("tail {pod}/{container} #{attempt}"),
        HostEffect::PrepareDevices { claims, .. } => {
            let claims: Vec<_> = claims.iter().map(|it| format!("{}={}", it.in_pod, it.claim)).collect();
            format!("prepare {pod} {}", claims.join(" "))
        }
        HostEffect::RecallDevices { .. } => format!("recall {pod}"),
        HostEffect::AllocateDevices { wish, .. } => {
            format!("allocate {pod}/{} {} {}", wish.container, wish.resource, wish.ids.join(","))
        }
        HostEffect::ReleaseVolumes { .. } => format!("release-volumes {pod}"),
        HostEffect::RemovePod { .. } => format!("remove-files {pod}"),
    }
}

fn volume(source: &VolumeSource) -> String {
    match source {
        VolumeSource::EmptyDir { medium: crate::Medium::Disk, .. } => "emptyDir".into(),
        VolumeSource::EmptyDir { medium: crate::Medium::HugePages { page_bytes }, .. } => {
            format!("pages-of-{page_bytes}")
        }
        VolumeSource::EmptyDir { .. } => "tmpfs".into(),
        VolumeSource::HostPath { path, .. } => path.clone(),
        VolumeSource::Persistent(it) => persistent(it),
        VolumeSource::Files { plugin, files } => {
            let files: Vec<_> = files
                .iter()
                .map(|it| {
                    let content = String::from_utf8_lossy(&it.content).replace('\n', "\\n");
                    format!("{}({:o})={content}", it.path, it.mode)
                })
                .collect();
            format!("{}{{{}}}", plugin.as_str(), files.join(","))
        }
    }
}

fn persistent(mount: &PersistentMount) -> String {
    let backend = match &mount.backend {
        Backend::HostPath { path, .. } | Backend::Local { path, .. } => path.clone(),
        Backend::Nfs { server, path } => format!("{server}:{path}"),
        Backend::Csi(it) => format!("{}/{}({}){:?}", it.driver, it.handle, it.fs_type, it.context),
    };
    let marks = [
        (mount.is_block, " block"),
        (mount.read_only, " read-only"),
        (mount.is_single_pod, " single-pod"),
        (mount.takes_group, " takes-group"),
    ];
    let marks: String = marks.into_iter().filter(|it| it.0).map(|it| it.1).collect();
    let options = mount.mount_options.iter().map(|it| format!(" -o {it}")).collect::<String>();
    let secrets = match &mount.backend {
        Backend::Csi(it) => it.publish_secrets.0.iter().map(|(name, it)| format!(" secret {name}={it}")).collect(),
        _ => String::new(),
    };
    format!("{}={backend}{marks}{options}{secrets}", mount.name)
}

fn action(action: &Action) -> String {
    match action {
        Action::Exec { command } => format!("exec {}", command.join(" ")),
        Action::Http { host, port, path, .. } => format!("http {host}:{port}{path}"),
        Action::Tcp { host, port } => format!("tcp {host}:{port}"),
        Action::Grpc { host, port, .. } => format!("grpc {host}:{port}"),
        Action::Sleep { seconds } => format!("sleep {seconds}"),
    }
}

/// What of a container's or sandbox's spec a trace may ask to see.
pub(super) fn details(effect: &HostEffect) -> Vec<String> {
    match effect {
        HostEffect::StartContainer(spec) => {
            let env: Vec<_> = spec.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let mut lines = vec![
                format!("command {:?} args {:?}", spec.command, spec.args),
                format!("env {}", env.join(" ")),
                format!("{:?}", spec.resources),
                format!("user {:?} groups {:?}", spec.security.run_as_user, spec.security.supplemental_groups),
                format!("own users {} strict groups {}", spec.own_users, spec.security.strict_groups),
            ];
            lines.extend(spec.pid_target.iter().map(|it| format!("sees the processes of {it}")));
            lines.extend(spec.plugged.granted.cdi_devices.iter().map(|it| format!("cdi {it}")));
            if spec.pins != crate::Pins::default() {
                lines.push(format!("cpus {} memory of {}", spec.pins.cpus, spec.pins.memory_nodes));
            }
            lines.extend(spec.devices.iter().map(|it| format!("{it:?}")));
            for mount in &spec.mounts {
                let source = match &mount.source {
                    MountSource::Volume { name, sub_path, .. } => format!("volume {name}/{sub_path}"),
                    MountSource::HostPath { path, sub_path, .. } => format!("host {path}/{sub_path}"),
                    MountSource::Image { reference, sub_path, .. } => format!("image {reference}/{sub_path}"),
                    MountSource::Hosts(hosts) => format!("hosts {} {:?}", hosts.hostname, hosts.ips),
                    MountSource::TerminationLog => "termination log".into(),
                };
                let read_only = if mount.read_only { " ro" } else { "" };
                lines.push(format!("mount {} <- {source}{read_only}", mount.container_path));
            }
            lines
        }
        HostEffect::RunSandbox(spec) => {
            let ports: Vec<_> =
                spec.ports.iter().map(|it| format!("{}->{}", it.host_port, it.container_port)).collect();
            vec![
                format!("hostname {} qos {:?} ports [{}]", spec.hostname, spec.qos, ports.join(" ")),
                format!("{:?}", spec.dns),
            ]
        }
        other => vec![format!("{other:?}")],
    }
}

/// `status web Running 10.0.0.1 web=running`, with what is not as it should be.
pub(super) fn status(pod: &Value) -> String {
    let status = &pod["status"];
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let mut words = vec!["status".to_owned(), text(&pod["metadata"]["name"]), text(&status["phase"])];
    words.extend(status["reason"].as_str().map(str::to_owned));
    words.extend(status["podIP"].as_str().map(str::to_owned));
    let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"].map(|it| &status[it]);
    for container in lists.into_iter().flat_map(|it| it.as_array().into_iter().flatten()) {
        let restarts = container["restartCount"].as_i64().unwrap_or(0);
        let restarts = if restarts == 0 { String::new() } else { format!(" x{restarts}") };
        let ready = if container["ready"] == true { " ready" } else { "" };
        let last = &container["lastState"]["terminated"];
        let last = if last.is_null() { String::new() } else { format!(" last:{}", exit(last)) };
        words.push(format!("{}=({}{restarts}{ready}{last})", text(&container["name"]), state(&container["state"])));
    }
    let conditions = status["conditions"].as_array().into_iter().flatten().filter(|it| it["status"] == "True");
    let names = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    let marks: String = names
        .iter()
        .zip(["N", "I", "R", "C", "S"])
        .filter(|(name, _)| conditions.clone().any(|it| it["type"] == **name))
        .map(|it| it.1)
        .collect();
    words.push(marks);
    words.join(" ")
}

fn state(state: &Value) -> String {
    if let Some(waiting) = state["waiting"].as_object() {
        return format!("waiting:{}", waiting["reason"].as_str().unwrap_or_default());
    }
    if state["running"].is_object() {
        return "running".into();
    }
    exit(&state["terminated"])
}

fn exit(exit: &Value) -> String {
    format!("{}:{}", exit["reason"].as_str().unwrap_or("nothing"), exit["exitCode"])
}

pub(super) fn node(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let conditions: Vec<_> = conditions
        .map(|it| {
            format!(
                "{}={}@{}",
                it["type"].as_str().unwrap(),
                it["status"].as_str().unwrap(),
                &it["lastHeartbeatTime"].as_str().unwrap()[11..19]
            )
        })
        .collect();
    let taints: Vec<_> =
        node["spec"]["taints"].as_array().into_iter().flatten().filter_map(|it| it["key"].as_str()).collect();
    format!("{} taints=[{}]", conditions.join(" "), taints.join(","))
}

pub(super) fn step(step: &Step) -> String {
    let mut line = format!("{}: {:?}", step.name, step.state);
    if !step.message.is_empty() {
        line = format!("{line} ({})", step.message.replace('\n', " | "));
    }
    if let Some(wait) = &step.wait {
        line = format!("{line} waits: {}: {} [{:?}]", wait.reason, wait.message, wait.actor);
    }
    line
}

pub(super) fn times(step: &Step) -> String {
    let begin: Time = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = |it: Option<Time>| it.map_or("-".to_owned(), |it| it.since(begin).as_secs().to_string());
    format!("{}: {} to {}", step.name, at(step.started), at(step.finished))
}

pub(super) fn of_node(effect: &crate::NodeEffect) -> String {
    use crate::NodeEffect as Effect;
    match effect {
        Effect::ReadSignals => "read signals".into(),
        Effect::MeasurePods { disks } => format!("measure pods{}", if *disks { " and disks" } else { "" }),
        Effect::ListImages => "list images".into(),
        Effect::RemoveImages { ids } => format!("remove images {}", ids.join(" ")),
        Effect::CountEviction { signal } => format!("count {signal}"),
        Effect::CountPreemption { resource } => format!("count preemption for {resource}"),
        Effect::CountPodStart { took } => format!("count a start of {took:?}"),
        Effect::CountManagers(it) => {
            let asked = |it: &crate::RequestCounts| format!("{}-{}", it.n, it.errors);
            let (topology, cpu, memory) = (asked(&it.topology), asked(&it.cpu), asked(&it.memory));
            format!("count pods {topology} cpus {cpu} memory {memory} own {} shared {}", it.own_cpus, it.shared_cpus)
        }
        Effect::NoteManagerStates(states) => {
            let of = |it: &Option<String>| it.clone().unwrap_or_default();
            format!("note states {}{}", of(&states.cpu), of(&states.memory))
        }
        Effect::NoteStops { containers } => format!("note stops {}", containers.join(" ")),
        Effect::NoteTermination { uid, note } => {
            let hooks: String = note.hooks.iter().map(|it| format!(", the hook of {it} is over")).collect();
            format!("note termination of {uid}{hooks}")
        }
        Effect::EndByForce { pod, sandboxes } => format!("end {} by force, with {}", pod.key.name, sandboxes.join(" ")),
        Effect::ReleaseDevices { uid } => format!("release devices of {uid}"),
        Effect::AskVolumeLimit { driver } => format!("ask {driver} for its limit"),
        Effect::ReadyToShutDown => "ready to shut down".into(),
    }
}
