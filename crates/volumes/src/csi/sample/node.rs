//! The sample's part at a node: folders mounted in others' places.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use corten_machine::mounts;
use rustix::mount::MountFlags;

use super::{
    SampleDriver,
    answer::{Served, read},
    client, cm,
    controller::{condition, natural, whole},
    faults, m,
    state::State,
};
use crate::{Code, Fault, file_system, loop_device, with_faults_named};

fn invalid(why: &str) -> Fault {
    Fault::new(Code::InvalidArgument, why)
}

impl SampleDriver {
    pub(super) fn node(&self, path: &str, question: &[u8], fault: Option<&faults::Fault>) -> Result<Served, Fault> {
        let state = &mut *self.state.lock();
        match path {
            client::CAPABILITIES => Ok(Served::of("", &self.node_capabilities())),
            client::INFO => {
                let accessible_topology = self.has("topology").then(|| self.topology());
                let node_id = self.settings.node.clone();
                let max_volumes_per_node = if matches!(fault, Some(faults::Fault::Small)) { 2 } else { 64 };
                Ok(Served::of("", &m::NodeInfo { node_id, max_volumes_per_node, accessible_topology }))
            }
            client::STAGE => self.stage(state, &read(question)?, fault),
            client::UNSTAGE => {
                let asked: m::NodeTakeAway = read(question)?;
                check(&asked.volume_id, &asked.path)?;
                file_system::unmount_all(Path::new(&asked.path))?;
                Ok(Served::of(&asked.volume_id, &m::Empty {}))
            }
            client::PUBLISH => self.publish(state, &read(question)?, fault),
            client::UNPUBLISH => unpublish(state, &read(question)?),
            client::EXPAND => self.node_expand(state, &read(question)?),
            client::STATS => stats(state, &read(question)?, fault),
            _ => Err(Fault::new(Code::Unimplemented, format!("unknown method {path}"))),
        }
    }

    fn node_capabilities(&self) -> m::Capabilities {
        let all = [
            ("stage", m::STAGES),
            ("stats", m::TELLS_STATS),
            ("node-expand", m::EXPANDS),
            ("condition", m::TELLS_CONDITION),
            ("multi-writer", m::SINGLE_NODE_MULTI_WRITER),
            ("group", m::TAKES_GROUP),
        ];
        let of = |it: (&str, i32)| m::Capability { rpc: Some(m::Rpc { r#type: it.1 }) };
        m::Capabilities { capabilities: all.into_iter().filter(|it| self.has(it.0)).map(of).collect() }
    }

    fn is_attached(
        &self,
        state: &State,
        id: &str,
        context: &std::collections::BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        let volume = state.volume(id)?;
        let offers = self.has("attach") && self.has("controller");
        let is_known = context.get("sample/device").is_some_and(|it| *it == format!("disk-{id}"));
        match !offers || (is_known && volume.attached.contains_key(&self.settings.node)) {
            true => Ok(()),
            false => Err(Fault::new(Code::FailedPrecondition, format!("volume {id} is not attached to this node"))),
        }
    }

    fn stage(&self, state: &State, asked: &m::NodeStageVolume, fault: Option<&faults::Fault>) -> Result<Served, Fault> {
        check(&asked.volume_id, &asked.staging_target_path)?;
        if asked.volume_capability.is_none() {
            return Err(invalid("volume capability missing in request"));
        }
        let volume = state.volume(&asked.volume_id)?;
        self.is_attached(state, &asked.volume_id, &asked.publish_context)?;
        let target = Path::new(&asked.staging_target_path);
        if fault == Some(&faults::Fault::Link) {
            replace_by_link(target, self.folder())?;
        } else if !volume.is_block {
            with_faults_named(fs::create_dir_all(target), "make the mount's place")?;
            if self.settings.mounts {
                file_system::bind(&state.volume_folder(&asked.volume_id), target, MountFlags::empty())?;
            }
        }
        let secrets: Vec<&str> = asked.secrets.keys().map(String::as_str).collect();
        Ok(Served::of(&format!("{} {}", asked.volume_id, secrets.join(",")), &m::Empty {}))
    }

    fn publish(
        &self,
        state: &mut State,
        asked: &m::NodePublishVolume,
        fault: Option<&faults::Fault>,
    ) -> Result<Served, Fault> {
        check(&asked.volume_id, &asked.target_path)?;
        let Some(capability) = &asked.volume_capability else {
            return Err(invalid("volume capability missing in request"));
        };
        let is_ephemeral = asked.volume_context.get("csi.storage.k8s.io/ephemeral").is_some_and(|it| it == "true");
        if is_ephemeral {
            let volume = super::state::Volume { name: asked.volume_id.clone(), ..super::state::Volume::default() };
            // Its name is the node's, and only a step of a path where it is a harmless one.
            if asked.volume_id.contains(['/', '.']) {
                return Err(invalid("volume id is no name"));
            }
            with_faults_named(fs::create_dir_all(state.volume_folder(&asked.volume_id)), "make a volume")?;
            state.volumes.entry(asked.volume_id.clone()).or_insert(volume);
        } else {
            if self.has("stage") && asked.staging_target_path.is_empty() {
                return Err(invalid("staging target path missing in request"));
            }
            self.is_attached(state, &asked.volume_id, &asked.publish_context)?;
        }
        if capability.block.is_some() != state.volume(&asked.volume_id)?.is_block {
            return Err(invalid("it is of the other mode"));
        }
        let (target, is_block) = (PathBuf::from(&asked.target_path), capability.block.is_some());
        if fault == Some(&faults::Fault::Link) {
            replace_by_link(&target, self.folder())?;
        } else {
            self.show(state, &asked.volume_id, &target, is_block, asked.readonly)?;
        }
        let group = group_of(capability)?;
        if let Some(gid) = group {
            let given = std::os::unix::fs::chown(state.volume_folder(&asked.volume_id), None, Some(gid));
            with_faults_named(given, "give the volume to the group")?;
        }
        let secret_tokens = asked.secrets.get("csi.storage.k8s.io/serviceAccount.tokens");
        let tokens = secret_tokens.or_else(|| asked.volume_context.get("csi.storage.k8s.io/serviceAccount.tokens"));
        if let Some(tokens) = tokens {
            let file = self.folder().join("tokens");
            with_faults_named(corten_machine::write_whole(&file, 0o600, tokens.as_bytes()), "keep tokens")?;
        }
        state.volume_mut(&asked.volume_id)?.published.insert(asked.target_path.clone(), is_ephemeral);
        state.save()?;
        let about = match (tokens, secret_tokens) {
            (Some(_), Some(_)) => " with tokens among secrets",
            (Some(_), None) => " with tokens",
            _ => "",
        };
        let group = group.map(|it| format!(" group {it}")).unwrap_or_default();
        Ok(Served::of(&format!("{}{about}{group}", asked.volume_id), &m::Empty {}))
    }

    fn show(&self, state: &State, id: &str, target: &Path, is_block: bool, read_only: bool) -> Result<(), Fault> {
        let made = match is_block {
            true => fs::OpenOptions::new().write(true).create(true).truncate(false).open(target).map(drop),
            false => fs::create_dir_all(target),
        };
        with_faults_named(made, "make the mount's place")?;
        if !self.settings.mounts {
            return Ok(());
        }
        let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
        match is_block {
            true => file_system::bind(&loop_device::attach(&state.disk(id))?, target, flags),
            false => file_system::bind(&state.volume_folder(id), target, flags),
        }
    }

    fn node_expand(&self, state: &State, asked: &m::NodeExpandVolume) -> Result<Served, Fault> {
        check(&asked.volume_id, &asked.volume_path)?;
        if asked.volume_capability.is_none() {
            return Err(invalid("volume capability missing in request"));
        }
        let volume = state.volume(&asked.volume_id)?;
        let wanted = asked.capacity_range.as_ref().map_or(0, |it| it.required_bytes);
        if natural(wanted)? > volume.bytes {
            return Err(Fault::new(Code::OutOfRange, "the volume is smaller"));
        }
        if let Some(device) = loop_device::of(&state.disk(&asked.volume_id)).filter(|_| volume.is_block) {
            loop_device::refresh(&device)?;
        }
        let secrets: String = asked.secrets.keys().map(|it| format!(" {it}")).collect();
        let about = format!("{} {}{secrets}", asked.volume_id, volume.bytes);
        Ok(Served::of(&about, &m::NodeExpanded { capacity_bytes: whole(volume.bytes) }))
    }
}

/// To whom the files are to be given.
fn group_of(capability: &m::VolumeCapability) -> Result<Option<u32>, Fault> {
    let told = capability.mount.as_ref().map(|it| it.volume_mount_group.as_str()).filter(|it| !it.is_empty());
    told.map(|it| it.parse().map_err(|_| invalid("volume mount group is no number"))).transpose()
}

fn unpublish(state: &mut State, asked: &m::NodeTakeAway) -> Result<Served, Fault> {
    check(&asked.volume_id, &asked.path)?;
    let target = Path::new(&asked.path);
    let is_link = fs::symlink_metadata(target).is_ok_and(|it| it.is_symlink());
    let removed =
        if is_link { fs::remove_file(target).map_err(Fault::internal) } else { file_system::remove_place(target) };
    removed?;
    let Some(volume) = state.volumes.get_mut(&asked.volume_id) else {
        return Ok(Served::of(&asked.volume_id, &m::Empty {}));
    };
    let was_ephemeral = volume.published.remove(&asked.path) == Some(true);
    let is_last = volume.published.is_empty();
    if is_last && let Some(device) = loop_device::of(&state.disk(&asked.volume_id)) {
        loop_device::detach(&device)?;
    }
    if was_ephemeral && is_last {
        with_faults_named(fs::remove_dir_all(state.volume_folder(&asked.volume_id)), "remove its files")?;
        state.volumes.remove(&asked.volume_id);
    }
    state.save()?;
    Ok(Served::of(&asked.volume_id, &m::Empty {}))
}

fn stats(state: &State, asked: &m::NodeGetVolumeStats, fault: Option<&faults::Fault>) -> Result<Served, Fault> {
    check(&asked.volume_id, &asked.volume_path)?;
    let volume = state.volume(&asked.volume_id)?;
    if !Path::new(&asked.volume_path).exists() {
        return Err(Fault::new(Code::NotFound, format!("{} is not there", asked.volume_path)));
    }
    let used = fs::read_dir(state.volume_folder(&asked.volume_id)).into_iter().flatten().flatten();
    let used: u64 = used.filter_map(|it| it.metadata().ok()).filter(fs::Metadata::is_file).map(|it| it.len()).sum();
    let usage = |total: u64, used: u64, unit| m::Usage {
        available: whole(total.saturating_sub(used)),
        total: whole(total),
        used: whole(used),
        unit,
    };
    let told = cm::NodeVolumeStats {
        usage: vec![usage(volume.bytes, used, 1), usage(1000, 7, 2)],
        volume_condition: Some(condition(fault)),
    };
    Ok(Served::of(&asked.volume_id, &told))
}

fn check(id: &str, path: &str) -> Result<(), Fault> {
    match (id, path) {
        ("", _) => Err(invalid("volume id missing in request")),
        (_, "") => Err(invalid("path missing in request")),
        _ => Ok(()),
    }
}

/// As a driver would that is not to be trusted.
fn replace_by_link(target: &Path, to: &Path) -> Result<(), Fault> {
    if mounts::is_mount_point(target) {
        return Ok(());
    }
    let _ = fs::remove_dir(target);
    match symlink(to, target) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => with_faults_named(other, "make a link"),
    }
}
