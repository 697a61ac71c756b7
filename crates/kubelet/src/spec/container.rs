//! What the runtime is told of one container: everything expanded, resolved and checked.

use std::collections::BTreeMap;

use corten_api::core::v1::{
    Capabilities, Container, Pod, SELinuxOptions, SecurityContext, Volume, VolumeDevice, VolumeMount,
};

use crate::{
    AppArmor, Backend, ContainerDevices, ContainerSpec, Device, DeviceSource, Image, Mount, MountSource,
    PersistentMount, Pins, PodRef, Propagation, Seccomp, Security,
    spec::{
        downward::DownwardContext,
        env::{self, ConfigError, environment, expand},
        env_file::EnvFilesRead,
        host_ports::ChosenPorts,
        pod::spec_of,
        read_only, resources,
        sandbox::{self, hosts, identity, seccomp},
        sources::Sources,
        swap, user_namespace, volumes,
    },
};

/// What a container is made of besides its pod's spec.
pub(crate) struct Ingredients<'a> {
    pub(crate) sandbox_id: &'a str,
    pub(crate) attempt: u32,
    pub(crate) image: &'a Image,
    pub(crate) sources: &'a Sources,
    pub(crate) files: &'a EnvFilesRead,
    pub(crate) downward_context: DownwardContext<'a>,
    pub(crate) target: Option<&'a Result<String, String>>,
    /// The ids of the images that volumes are, by volume.
    pub(crate) images: &'a BTreeMap<String, String>,
    /// The volumes that outlive the pod, by their names in it.
    pub(crate) persistent: &'a Persistent,
    /// What device plugins give it.
    pub(crate) devices: ContainerDevices,
}

/// Volumes that outlive the pod, by their names in it.
pub(crate) type Persistent = BTreeMap<String, PersistentMount>;

pub(crate) fn spec(pod: &Pod, container: &Container, from: &Ingredients<'_>) -> Result<ContainerSpec, ConfigError> {
    let who = PodRef::of(pod);
    // What a plugin says goes before what the pod says, which holds (`GenerateRunContainerOptions`).
    let mut env = from.devices.granted.env.clone();
    env.extend(environment(pod, container, from.sources, from.files, &from.downward_context)?);
    let values: Values<'_> = env.iter().rev().map(|it| (&*it.0, &*it.1)).collect();
    let ports = ChosenPorts::of(pod);
    let mut room = EXPANDED_BYTES_MAX;
    let mut expanded = |list: &Option<Vec<String>>| -> Result<Vec<String>, ConfigError> {
        let expanded = list.iter().flatten().map(|it| {
            let text = expand(&ports.put_into(it), |name| values.get(name).copied())?;
            room = room.checked_sub(text.len()).ok_or_else(too_much)?;
            Ok(text)
        });
        expanded.collect()
    };
    let (command, args) = (expanded(&container.command)?, expanded(&container.args)?);
    let mut labels = identity(&who);
    labels.insert("io.kubernetes.container.name".into(), container.name.clone());
    let pod_spec = spec_of(pod);
    Ok(ContainerSpec {
        sandbox_id: from.sandbox_id.into(),
        hostname: sandbox::hostname(pod, from.downward_context.config),
        name: container.name.clone(),
        attempt: from.attempt,
        image: container.image.clone().unwrap_or_default(),
        image_ref: from.image.image_ref.clone(),
        command,
        args,
        working_dir: container.working_dir.clone().unwrap_or_default(),
        mounts: mounts(pod, container, &values, from)?,
        devices: devices(pod, container, from.persistent)?,
        plugged: from.devices.clone(),
        labels,
        annotations: annotations(pod, container, from.attempt),
        stdin: container.stdin == Some(true),
        stdin_once: container.stdin_once == Some(true),
        tty: container.tty == Some(true),
        resources: resources::of_container(container, pod, from.downward_context.facts),
        security: security(pod, container, from.image)?,
        host_network: pod_spec.host_network == Some(true),
        host_pid: pod_spec.host_pid == Some(true),
        host_ipc: pod_spec.host_ipc == Some(true),
        share_process_namespace: pod_spec.share_process_namespace == Some(true),
        own_users: user_namespace::is_own(pod),
        pid_target: from.target.cloned().transpose().map_err(ConfigError::Broken)?,
        hugepages: resources::hugepages(container, from.downward_context.facts),
        pins: Pins::default(),
        swap_bytes: swap::limit(
            container,
            pod,
            from.downward_context.facts,
            from.downward_context.config.swap_behavior,
        ),
        qos: sandbox::qos(pod),
        env,
        pod: who,
    })
}

/// A container's variables by name.
type Values<'e> = BTreeMap<&'e str, &'e str>;

/// What command and arguments may come to together, and so all paths within volumes: Linux starts no program with more.
const EXPANDED_BYTES_MAX: usize = 8 << 20;

fn too_much() -> ConfigError {
    ConfigError::Broken(format!("what its variables are put into is longer than {EXPANDED_BYTES_MAX} bytes"))
}

/// Changes when the container must be made anew: its image is the one thing of it that may be edited.
pub(crate) fn hash(container: &Container) -> String {
    let text = format!("{}\0{}", container.name, container.image.as_deref().unwrap_or_default());
    format!("{:016x}", corten_meta::stable_hash(text.as_bytes()))
}

fn annotations(pod: &Pod, container: &Container, attempt: u32) -> std::collections::BTreeMap<String, String> {
    let path = container.termination_message_path.clone().unwrap_or_else(|| DEFAULT_MESSAGE_PATH.into());
    let policy = container.termination_message_policy.clone().unwrap_or_else(|| "File".into());
    let grace = spec_of(pod).termination_grace_period_seconds.unwrap_or(30);
    [
        ("io.kubernetes.container.hash", hash(container)),
        ("io.kubernetes.container.restartCount", attempt.to_string()),
        ("io.kubernetes.container.terminationMessagePath", path),
        ("io.kubernetes.container.terminationMessagePolicy", policy),
        ("io.kubernetes.pod.terminationGracePeriod", grace.to_string()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

const DEFAULT_MESSAGE_PATH: &str = "/dev/termination-log";

fn mounts(
    pod: &Pod,
    container: &Container,
    values: &Values<'_>,
    from: &Ingredients<'_>,
) -> Result<Vec<Mount>, ConfigError> {
    let volumes: BTreeMap<&str, &Volume> =
        spec_of(pod).volumes.iter().flatten().rev().map(|it| (&*it.name, it)).collect();
    let mut mounts = Vec::new();
    let mut room = EXPANDED_BYTES_MAX;
    for mount in container.volume_mounts.iter().flatten() {
        let Some(volume) = volumes.get(&*mount.name).copied() else {
            let (volume, container) = (&mount.name, &container.name);
            return broken(format!("cannot find volume {volume:?} to mount into container {container:?}"));
        };
        let sub_path = sub_path(mount, values)?;
        room = room.checked_sub(sub_path.len()).ok_or_else(too_much)?;
        mounts.push(mount_of(volume, mount, sub_path, from)?);
    }
    let has = |mounts: &[Mount], path: &str| mounts.iter().any(|it| it.container_path == path);
    if !has(&mounts, "/etc/hosts") {
        let hosts = hosts(pod, from.downward_context.config, from.downward_context.pod_ips);
        mounts.push(own_mount("/etc/hosts", MountSource::Hosts(hosts)));
    }
    let path = container.termination_message_path.as_deref().filter(|it| !it.is_empty());
    let path = absolute(path.unwrap_or(DEFAULT_MESSAGE_PATH));
    if !has(&mounts, &path) {
        mounts.push(own_mount(&path, MountSource::TerminationLog));
    }
    Ok(mounts)
}

fn broken<T>(why: String) -> Result<T, ConfigError> {
    Err(ConfigError::Broken(why))
}

/// `subPath`, or `subPathExpr` with its variables in their places.
fn sub_path(mount: &VolumeMount, values: &Values<'_>) -> Result<String, ConfigError> {
    let value = |name: &str| values.get(name).copied();
    let sub_path = match mount.sub_path_expr.as_deref().filter(|it| !it.is_empty()) {
        Some(expr) => match unset(expr, value)? {
            missing if missing.is_empty() => env::expand(expr, value)?,
            missing => return broken(format!("missing value for {}", missing.join(", "))),
        },
        None => mount.sub_path.clone().unwrap_or_default(),
    };
    if sub_path.starts_with('/') {
        return broken(format!("error SubPath `{sub_path}` must not be an absolute path"));
    }
    if sub_path.split('/').any(|it| it == "..") {
        return broken(format!("unable to provision SubPath `{sub_path}`: must not contain '..'"));
    }
    Ok(sub_path)
}

fn mount_of(
    volume: &Volume,
    mount: &VolumeMount,
    sub_path: String,
    from: &Ingredients<'_>,
) -> Result<Mount, ConfigError> {
    // What walls a mount in is not left out: no runtime is asked for it (KEP-5855, off in Kubernetes unless it is switched on).
    if let Some(options) = mount.bind_mount_options.as_ref().filter(|it| !it.is_empty()) {
        let (volume, options) = (&mount.name, options.join(", "));
        return broken(format!(
            "volume {volume:?} requested bind mount options ({options}), but they are not supported by this node: leave \
             bindMountOptions out"
        ));
    }
    // Content that the kubelet makes is never the container's to change.
    let is_made = match from.persistent.get(&volume.name) {
        Some(it) => it.read_only,
        None => volume.host_path.is_none() && volume.empty_dir.is_none(),
    };
    Ok(Mount {
        container_path: absolute(&mount.mount_path),
        source: source(volume, sub_path, from).map_err(ConfigError::Broken)?,
        read_only: mount.read_only == Some(true) || is_made,
        recursive_read_only: read_only::is_recursive(mount, from.downward_context.facts)
            .map_err(ConfigError::Broken)?,
        propagation: match mount.mount_propagation.as_deref() {
            Some("HostToContainer") => Propagation::HostToContainer,
            Some("Bidirectional") => Propagation::Bidirectional,
            _ => Propagation::Private,
        },
    })
}

fn source(volume: &Volume, sub_path: String, from: &Ingredients<'_>) -> Result<MountSource, String> {
    let name = volume.name.clone();
    if let Some(it) = &volume.image {
        let image_ref =
            from.images.get(&name).cloned().ok_or_else(|| format!("the image of volume {name:?} is not there"))?;
        let reference = it.reference.clone().unwrap_or_default();
        return Ok(MountSource::Image { image_ref, reference, sub_path });
    }
    if let Some(it) = from.persistent.get(&name) {
        return persistent_source(name, it, sub_path);
    }
    match (&volume.host_path, volumes::plugin(volume)) {
        (Some(it), _) => Ok(MountSource::HostPath { name, path: it.path.clone(), sub_path }),
        (None, Some(plugin)) => Ok(MountSource::Volume { plugin, name, sub_path }),
        (None, None) => Err(format!("volume {name:?} is of a kind this node does not support")),
    }
}

fn persistent_source(volume: String, mount: &PersistentMount, sub_path: String) -> Result<MountSource, String> {
    if mount.is_block {
        return Err(format!("volume {} has volumeMode Block, but is specified in volumeMounts", mount.name));
    }
    Ok(match &mount.backend {
        Backend::HostPath { path, .. } => MountSource::HostPath { name: volume, path: path.clone(), sub_path },
        backend => MountSource::Volume { plugin: volumes::plugin_of(backend), name: mount.name.clone(), sub_path },
    })
}

/// As `makeBlockVolumes`.
fn devices(pod: &Pod, container: &Container, persistent: &Persistent) -> Result<Vec<Device>, ConfigError> {
    let names = || spec_of(pod).volumes.iter().flatten().map(|it| it.name.as_str());
    let device = |it: &VolumeDevice| {
        let broken = |why: String| ConfigError::Broken(why);
        if !names().any(|name| name == it.name) {
            let (volume, container) = (&it.name, &container.name);
            return Err(broken(format!("cannot find volume {volume:?} to pass into container {container:?}")));
        }
        let mount = persistent.get(&it.name).filter(|it| it.is_block);
        let mount = mount.ok_or_else(|| {
            broken(format!("volume {} has volumeMode Filesystem, but is specified in volumeDevices", it.name))
        })?;
        let source = match &mount.backend {
            Backend::Csi(_) => DeviceSource::Csi { name: mount.name.clone() },
            Backend::Local { path, .. } | Backend::HostPath { path, .. } => DeviceSource::Path(path.clone()),
            Backend::Nfs { .. } => return Err(broken(format!("volume {} of NFS has no device", mount.name))),
        };
        Ok(Device { container_path: it.device_path.clone(), source, read_only: mount.read_only })
    };
    container.volume_devices.iter().flatten().map(device).collect()
}

/// The variables of a subPathExpr that are not set, or empty: it must not come to name another folder.
fn unset<'v>(expr: &str, value: impl Fn(&str) -> Option<&'v str>) -> Result<Vec<String>, ConfigError> {
    let unset = std::cell::RefCell::new(std::collections::BTreeSet::new());
    env::expand(expr, |name| {
        let value = value(name).filter(|it| !it.is_empty());
        if value.is_none() {
            unset.borrow_mut().insert(name.to_owned());
        }
        value
    })?;
    Ok(unset.into_inner().into_iter().collect())
}

fn own_mount(path: &str, source: MountSource) -> Mount {
    let (read_only, recursive_read_only) = (false, false);
    let propagation = Propagation::Private;
    Mount { container_path: path.into(), source, read_only, recursive_read_only, propagation }
}

fn absolute(path: &str) -> String {
    if path.starts_with('/') { path.into() } else { format!("/{path}") }
}

fn security(pod: &Pod, container: &Container, image: &Image) -> Result<Security, ConfigError> {
    let of_pod = spec_of(pod).security_context.as_ref();
    let own = container.security_context.as_ref();
    let run_as_user = own.and_then(|it| it.run_as_user).or(of_pod.and_then(|it| it.run_as_user));
    let non_root = own.and_then(|it| it.run_as_non_root).or(of_pod.and_then(|it| it.run_as_non_root));
    if non_root == Some(true) {
        check_non_root(run_as_user, image, &PodRef::of(pod), &container.name)?;
    }
    let mut groups = of_pod.and_then(|it| it.supplemental_groups.clone()).unwrap_or_default();
    groups.extend(of_pod.and_then(|it| it.fs_group));
    let privileged = own.and_then(|it| it.privileged) == Some(true);
    let profile = own.and_then(|it| it.seccomp_profile.as_ref()).or(of_pod.and_then(|it| it.seccomp_profile.as_ref()));
    let capabilities = own.and_then(|it| it.capabilities.as_ref());
    let list = |of: fn(&Capabilities) -> &Option<Vec<String>>| capabilities.and_then(|it| of(it).clone());
    Ok(Security {
        privileged,
        run_as_user: run_as_user.or(image.uid),
        run_as_username: if run_as_user.is_none() && image.uid.is_none() {
            image.username.clone()
        } else {
            String::new()
        },
        run_as_group: own.and_then(|it| it.run_as_group).or(of_pod.and_then(|it| it.run_as_group)),
        supplemental_groups: groups,
        strict_groups: sandbox::keeps_groups_strictly(pod),
        read_only_rootfs: own.and_then(|it| it.read_only_root_filesystem) == Some(true),
        no_new_privs: no_new_privs(own, privileged),
        add_capabilities: list(|it| &it.add).unwrap_or_default(),
        drop_capabilities: list(|it| &it.drop).unwrap_or_default(),
        seccomp: if privileged { Seccomp::Unconfined } else { profile.map_or(Seccomp::Unconfined, seccomp) },
        app_armor: app_armor(pod, container),
        se_linux: own
            .and_then(|it| it.se_linux_options.as_ref())
            .or(of_pod.and_then(|it| it.se_linux_options.as_ref()))
            .map(se_linux),
        unmasked_proc: own.and_then(|it| it.proc_mount.as_deref()) == Some("Unmasked"),
    })
}

fn app_armor(pod: &Pod, container: &Container) -> AppArmor {
    let own = container.security_context.as_ref().and_then(|it| it.app_armor_profile.as_ref());
    let of_pod = spec_of(pod).security_context.as_ref().and_then(|it| it.app_armor_profile.as_ref());
    match own.or(of_pod) {
        None => AppArmor::Unset,
        Some(it) if it.type_ == "RuntimeDefault" => AppArmor::RuntimeDefault,
        Some(it) if it.type_ == "Localhost" => AppArmor::Localhost(it.localhost_profile.clone().unwrap_or_default()),
        Some(_) => AppArmor::Unconfined,
    }
}

fn se_linux(options: &SELinuxOptions) -> [String; 4] {
    let text = |it: &Option<String>| it.clone().unwrap_or_default();
    [text(&options.user), text(&options.role), text(&options.type_), text(&options.level)]
}

/// Only a plain `allowPrivilegeEscalation: false` forbids it, and never for who already has every privilege.
fn no_new_privs(own: Option<&SecurityContext>, privileged: bool) -> bool {
    let adds = own.and_then(|it| it.capabilities.as_ref()).and_then(|it| it.add.as_ref());
    let is_admin = adds.into_iter().flatten().any(|it| it == "SYS_ADMIN" || it == "CAP_SYS_ADMIN");
    own.and_then(|it| it.allow_privilege_escalation) == Some(false) && !privileged && !is_admin
}

fn check_non_root(user: Option<i64>, image: &Image, who: &PodRef, container: &str) -> Result<(), ConfigError> {
    let broken =
        |it: String| Err(ConfigError::Broken(format!("{it} (pod: {:?}, container: {container})", who.to_string())));
    match (user, image.uid) {
        (Some(0), _) => broken("container's runAsUser breaks non-root policy".into()),
        (Some(_), _) => Ok(()),
        (None, Some(0)) => broken("container has runAsNonRoot and image will run as root".into()),
        (None, Some(_)) => Ok(()),
        (None, None) if image.username.is_empty() => {
            broken("container has runAsNonRoot and image will run as root".into())
        }
        (None, None) => {
            let message = "container has runAsNonRoot and image has non-numeric user";
            Err(ConfigError::Broken(format!(
                "{message} ({}), cannot verify user is non-root (pod: {:?}, container: {container})",
                image.username,
                who.to_string()
            )))
        }
    }
}
