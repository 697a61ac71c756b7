//! From what the kubelet says of a sandbox or a container to CRI's messages.

use std::{collections::BTreeMap, path::Path};

use corten_kubelet::{
    AppArmor, ContainerSpec, Device, Dns, GrantedDevice, GrantedMount, Mount, Propagation, Resources, SandboxSpec,
    Seccomp, Security,
};
use corten_machine::{Cgroups, Layout};

use crate::{cri, user_namespaces};

/// `defaultMaskedPaths` and `defaultReadonlyPaths`, every runtime's default: what of /proc and /sys a container does not
/// see, or may not write.
pub const MASKED_PATHS: [&str; 11] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];
/// See [`MASKED_PATHS`].
pub const READ_ONLY_PATHS: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// `first_id`: of the Pod's own user namespace, where it has one.
pub(super) fn sandbox(
    spec: &SandboxSpec,
    layout: &Layout,
    cgroups: &Cgroups,
    first_id: Option<u32>,
) -> cri::PodSandboxConfig {
    let who = &spec.pod;
    let namespaces = namespaces(
        spec.host_network,
        if spec.share_process_namespace { cri::NamespaceMode::Pod } else { cri::NamespaceMode::Container },
        spec.host_pid,
        spec.host_ipc,
    );
    let namespaces = cri::NamespaceOption { userns_options: first_id.map(user_namespace), ..namespaces };
    cri::PodSandboxConfig {
        metadata: Some(metadata(who, spec.attempt)),
        // In the host's network the name is the host's.
        hostname: if spec.host_network { String::new() } else { spec.hostname.clone() },
        log_directory: log_directory(who, layout),
        dns_config: Some(dns(&spec.dns)),
        port_mappings: spec.ports.iter().map(port).collect(),
        labels: spec.labels.clone(),
        annotations: spec.annotations.clone(),
        linux: Some(cri::LinuxPodSandboxConfig {
            cgroup_parent: cgroups.parent(spec.qos, &who.uid),
            security_context: Some(cri::LinuxSandboxSecurityContext {
                namespace_options: Some(namespaces),
                run_as_user: spec.run_as_user.map(value),
                run_as_group: spec.run_as_group.filter(|_| spec.run_as_user.is_some()).map(value),
                supplemental_groups: spec.supplemental_groups.clone(),
                supplemental_groups_policy: groups_policy(spec.strict_groups).into(),
                privileged: spec.privileged,
                seccomp: Some(seccomp(&spec.seccomp, layout)),
                ..cri::LinuxSandboxSecurityContext::default()
            }),
            sysctls: spec.sysctls.clone(),
            ..cri::LinuxPodSandboxConfig::default()
        }),
    }
}

/// What CreateContainer needs to know of the sandbox it is for.
pub(super) fn sandbox_of_container(
    spec: &ContainerSpec,
    layout: &Layout,
    cgroups: &Cgroups,
    first_id: Option<u32>,
) -> cri::PodSandboxConfig {
    let in_namespace =
        |it| cri::NamespaceOption { userns_options: Some(user_namespace(it)), ..cri::NamespaceOption::default() };
    cri::PodSandboxConfig {
        metadata: Some(metadata(&spec.pod, 0)),
        hostname: spec.hostname.clone(),
        log_directory: log_directory(&spec.pod, layout),
        linux: Some(cri::LinuxPodSandboxConfig {
            cgroup_parent: cgroups.parent(spec.qos, &spec.pod.uid),
            // The runtime makes a privileged container in a privileged sandbox only.
            security_context: Some(cri::LinuxSandboxSecurityContext {
                namespace_options: first_id.map(in_namespace),
                privileged: spec.security.privileged,
                ..cri::LinuxSandboxSecurityContext::default()
            }),
            ..cri::LinuxPodSandboxConfig::default()
        }),
        ..cri::PodSandboxConfig::default()
    }
}

/// The annotation that names, by commas, the images which a container mounts: whoever makes room leaves them.
pub(super) const VOLUME_IMAGES: &str = "corten.dev/volume-images";

/// What a container is made of beside its spec.
pub(super) struct Parts {
    pub(super) mounts: Vec<cri::Mount>,
    pub(super) devices: Vec<cri::Device>,
    /// What else is written into its cgroup, with the kernel's second layout of cgroups.
    pub(super) unified: BTreeMap<String, String>,
    /// Of the Pod's own user namespace, where it has one.
    pub(super) first_id: Option<u32>,
}

pub(super) fn container(spec: &ContainerSpec, parts: Parts, layout: &Layout) -> cri::ContainerConfig {
    let Parts { mut mounts, mut devices, unified, first_id } = parts;
    // As KEP-127 has it: in the container a file belongs to whom it belongs to on the machine, whatever ids the Pod has.
    for it in &mut mounts {
        it.uid_mappings.extend(first_id.map(id_mapping));
        it.gid_mappings.extend(first_id.map(id_mapping));
    }
    let granted = &spec.plugged.granted;
    // What the Pod mounts stands before what a plugin would mount there.
    let free = |path: &String, taken: &[cri::Mount]| !taken.iter().any(|it| it.container_path == *path);
    let plugged: Vec<_> =
        granted.mounts.iter().filter(|it| free(&it.container_path, &mounts)).map(plugged_mount).collect();
    mounts.extend(plugged);
    devices.extend(granted.devices.iter().map(plugged_device));
    let key_value = |(key, value): &(String, String)| cri::KeyValue { key: key.clone(), value: value.clone() };
    // ImageStatus of the container shall show the name the user gave.
    let named = BTreeMap::from([("io.kubernetes.container.image".to_owned(), spec.image.clone())]);
    let mut annotations: BTreeMap<String, String> = granted.annotations.iter().cloned().collect();
    annotations.extend(spec.annotations.clone());
    annotations.extend(named);
    let images: Vec<&str> = mounts.iter().filter_map(|it| it.image.as_ref()).map(|it| it.image.as_str()).collect();
    if !images.is_empty() {
        annotations.insert(VOLUME_IMAGES.to_owned(), images.join(","));
    }
    cri::ContainerConfig {
        metadata: Some(cri::ContainerMetadata { name: spec.name.clone(), attempt: spec.attempt }),
        image: Some(cri::ImageSpec { image: spec.image_ref.clone(), ..cri::ImageSpec::default() }),
        command: spec.command.clone(),
        args: spec.args.clone(),
        working_dir: spec.working_dir.clone(),
        envs: spec.env.iter().map(key_value).collect(),
        mounts,
        devices,
        labels: spec.labels.clone(),
        annotations,
        log_path: Layout::relative_container_log(&spec.name, spec.attempt),
        stdin: spec.stdin,
        stdin_once: spec.stdin_once,
        tty: spec.tty,
        linux: Some(cri::LinuxContainerConfig {
            resources: Some(cri::LinuxContainerResources {
                hugepage_limits: spec.hugepages.iter().map(hugepages).collect(),
                unified,
                cpuset_cpus: spec.pins.cpus.to_string(),
                cpuset_mems: spec.pins.memory_nodes.to_string(),
                ..resources(&spec.resources)
            }),
            security_context: Some(security(spec, layout, first_id)),
        }),
        cdi_devices: granted.cdi_devices.iter().map(|it| cri::CdiDevice { name: it.clone() }).collect(),
    }
}

/// What an image holds is nobody's to change.
pub(super) fn image_mount(mount: &Mount, image_ref: &str, reference: &str, sub_path: &str) -> cri::Mount {
    let image = cri::ImageSpec {
        image: image_ref.to_owned(),
        user_specified_image: reference.to_owned(),
        ..cri::ImageSpec::default()
    };
    cri::Mount {
        container_path: mount.container_path.clone(),
        readonly: true,
        image: Some(image),
        image_sub_path: sub_path.to_owned(),
        ..cri::Mount::default()
    }
}

pub(super) fn mount(mount: &Mount, path: &Path) -> cri::Mount {
    let propagation = match mount.propagation {
        Propagation::Private => cri::MountPropagation::Private,
        Propagation::HostToContainer => cri::MountPropagation::HostToContainer,
        Propagation::Bidirectional => cri::MountPropagation::Bidirectional,
    };
    cri::Mount {
        container_path: mount.container_path.clone(),
        host_path: path.to_string_lossy().into_owned(),
        readonly: mount.read_only,
        recursive_read_only: mount.recursive_read_only,
        propagation: propagation.into(),
        ..cri::Mount::default()
    }
}

/// A block device: to be read and written, or read alone.
pub(super) fn device(device: &Device, path: &Path) -> cri::Device {
    cri::Device {
        container_path: device.container_path.clone(),
        host_path: path.to_string_lossy().into_owned(),
        permissions: if device.read_only { "r" } else { "mrw" }.to_owned(),
    }
}

fn plugged_mount(it: &GrantedMount) -> cri::Mount {
    cri::Mount {
        container_path: it.container_path.clone(),
        host_path: it.host_path.clone(),
        readonly: it.read_only,
        ..cri::Mount::default()
    }
}

fn plugged_device(it: &GrantedDevice) -> cri::Device {
    let GrantedDevice { container_path, host_path, permissions } = it.clone();
    cri::Device { container_path, host_path, permissions }
}

fn hugepages((page_size, limit): &(String, u64)) -> cri::HugepageLimit {
    cri::HugepageLimit { page_size: page_size.clone(), limit: *limit }
}

fn metadata(who: &corten_kubelet::PodRef, attempt: u32) -> cri::PodSandboxMetadata {
    cri::PodSandboxMetadata {
        name: who.key.name.clone(),
        uid: who.uid.clone(),
        namespace: who.key.namespace.clone(),
        attempt,
    }
}

fn log_directory(who: &corten_kubelet::PodRef, layout: &Layout) -> String {
    layout.pod_logs(&who.key.namespace, &who.key.name, &who.uid).to_string_lossy().into_owned()
}

fn namespaces(host_network: bool, pid: cri::NamespaceMode, host_pid: bool, host_ipc: bool) -> cri::NamespaceOption {
    let or_node = |is_host, otherwise| if is_host { cri::NamespaceMode::Node } else { otherwise };
    cri::NamespaceOption {
        network: or_node(host_network, cri::NamespaceMode::Pod).into(),
        pid: or_node(host_pid, pid).into(),
        ipc: or_node(host_ipc, cri::NamespaceMode::Pod).into(),
        ..cri::NamespaceOption::default()
    }
}

fn user_namespace(first_id: u32) -> cri::UserNamespace {
    let mapping = vec![id_mapping(first_id)];
    cri::UserNamespace { mode: cri::NamespaceMode::Pod.into(), uids: mapping.clone(), gids: mapping }
}

fn id_mapping(first_id: u32) -> cri::IdMapping {
    cri::IdMapping { host_id: first_id, container_id: 0, length: user_namespaces::LENGTH }
}

fn groups_policy(is_strict: bool) -> cri::SupplementalGroupsPolicy {
    if is_strict { cri::SupplementalGroupsPolicy::Strict } else { cri::SupplementalGroupsPolicy::Merge }
}

fn namespaces_of_container(spec: &ContainerSpec, first_id: Option<u32>) -> cri::NamespaceOption {
    let (pid, target) = match &spec.pid_target {
        _ if spec.share_process_namespace => (cri::NamespaceMode::Pod, ""),
        Some(target) if !spec.host_pid => (cri::NamespaceMode::Target, target.as_str()),
        _ => (cri::NamespaceMode::Container, ""),
    };
    let options = namespaces(spec.host_network, pid, spec.host_pid, spec.host_ipc);
    cri::NamespaceOption { target_id: target.to_owned(), userns_options: first_id.map(user_namespace), ..options }
}

fn dns(dns: &Dns) -> cri::DnsConfig {
    cri::DnsConfig { servers: dns.servers.clone(), searches: dns.searches.clone(), options: dns.options.clone() }
}

fn port(port: &corten_kubelet::PortMapping) -> cri::PortMapping {
    let protocol = match port.protocol.as_str() {
        "UDP" => cri::Protocol::Udp,
        "SCTP" => cri::Protocol::Sctp,
        _ => cri::Protocol::Tcp,
    };
    cri::PortMapping {
        protocol: protocol.into(),
        container_port: port.container_port,
        host_port: port.host_port,
        host_ip: port.host_ip.clone(),
    }
}

fn value(value: i64) -> cri::Int64Value {
    cri::Int64Value { value }
}

fn seccomp(seccomp: &Seccomp, layout: &Layout) -> cri::SecurityProfile {
    let (kind, path) = match seccomp {
        Seccomp::Unconfined => (cri::ProfileType::Unconfined, String::new()),
        Seccomp::RuntimeDefault => (cri::ProfileType::RuntimeDefault, String::new()),
        Seccomp::Localhost(name) => {
            (cri::ProfileType::Localhost, layout.data.join("seccomp").join(name).to_string_lossy().into_owned())
        }
    };
    cri::SecurityProfile { profile_type: kind.into(), localhost_ref: path }
}

fn app_armor(profile: &AppArmor) -> Option<cri::SecurityProfile> {
    let (kind, path) = match profile {
        AppArmor::Unset => return None,
        AppArmor::Unconfined => (cri::ProfileType::Unconfined, String::new()),
        AppArmor::RuntimeDefault => (cri::ProfileType::RuntimeDefault, String::new()),
        AppArmor::Localhost(name) => (cri::ProfileType::Localhost, name.clone()),
    };
    Some(cri::SecurityProfile { profile_type: kind.into(), localhost_ref: path })
}

fn se_linux(options: &[String; 4]) -> cri::SeLinuxOption {
    let [user, role, r#type, level] = options.clone();
    cri::SeLinuxOption { user, role, r#type, level }
}

pub(super) fn resources(resources: &Resources) -> cri::LinuxContainerResources {
    cri::LinuxContainerResources {
        cpu_shares: resources.cpu_shares,
        cpu_quota: resources.cpu_quota,
        cpu_period: resources.cpu_period,
        memory_limit_in_bytes: resources.memory_limit_bytes,
        oom_score_adj: resources.oom_score_adj,
        ..cri::LinuxContainerResources::default()
    }
}

fn security(spec: &ContainerSpec, layout: &Layout, first_id: Option<u32>) -> cri::LinuxContainerSecurityContext {
    let Security { privileged, unmasked_proc, .. } = spec.security;
    let security = &spec.security;
    let paths = |paths: &[&str]| {
        let hides = !privileged && !unmasked_proc;
        if hides { paths.iter().map(|it| (*it).to_owned()).collect() } else { Vec::new() }
    };
    cri::LinuxContainerSecurityContext {
        capabilities: Some(cri::Capability {
            add_capabilities: security.add_capabilities.clone(),
            drop_capabilities: security.drop_capabilities.clone(),
            ..cri::Capability::default()
        }),
        privileged,
        namespace_options: Some(namespaces_of_container(spec, first_id)),
        run_as_user: security.run_as_user.map(value),
        run_as_group: security.run_as_group.map(value),
        run_as_username: security.run_as_username.clone(),
        readonly_rootfs: security.read_only_rootfs,
        supplemental_groups: security.supplemental_groups.clone(),
        supplemental_groups_policy: groups_policy(security.strict_groups).into(),
        no_new_privs: security.no_new_privs,
        masked_paths: paths(&MASKED_PATHS),
        readonly_paths: paths(&READ_ONLY_PATHS),
        seccomp: Some(seccomp(&security.seccomp, layout)),
        apparmor: app_armor(&security.app_armor),
        selinux_options: security.se_linux.as_ref().map(se_linux),
    }
}
