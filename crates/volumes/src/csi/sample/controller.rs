//! The sample's volumes and snapshots, with CSI's rules of what is refused and what may be asked twice.

use std::{collections::BTreeMap, fs};

use super::{
    SampleDriver,
    answer::{Served, read},
    client, cm, faults, m, messages as sm,
    state::{Snapshot, Source, State, Volume, copy, id_of},
};
use crate::{Code, Fault, with_faults_named};

/// A name longer than that is refused.
const NAME_BYTES_MAX: usize = 128;
/// No volume is larger.
pub(super) const VOLUME_BYTES_MAX: u64 = 1 << 40;
const DEFAULT_BYTES: u64 = 1 << 20;

fn invalid(why: impl Into<String>) -> Fault {
    Fault::new(Code::InvalidArgument, why)
}

impl SampleDriver {
    pub(super) fn controller(
        &self,
        path: &str,
        question: &[u8],
        fault: Option<&faults::Fault>,
    ) -> Result<Served, Fault> {
        let state = &mut *self.state.lock();
        let needs = |what: &str| match self.has(what) {
            true => Ok(()),
            false => Err(Fault::new(Code::Unimplemented, format!("{what} is not offered"))),
        };
        match path {
            client::CONTROLLER_CAPABILITIES => Ok(Served::of("", &self.controller_capabilities())),
            client::CREATE => self.create(state, read(question)?, fault),
            client::DELETE => self.delete(state, &read(question)?),
            client::ATTACH => needs("attach").and_then(|()| attach(self, state, &read(question)?)),
            client::DETACH => needs("attach").and_then(|()| detach(state, &read(question)?)),
            sm::VALIDATE => validate(state, read(question)?),
            client::LIST => needs("list").and_then(|()| self.list(state, &read(question)?, fault)),
            client::GET => {
                let asked: cm::GetVolume = read(question)?;
                Ok(Served::of(&asked.volume_id, &self.standing(state, &asked.volume_id, fault)?))
            }
            client::CAPACITY => {
                needs("capacity")?;
                let left = self.settings.capacity.saturating_sub(state.taken_bytes());
                let maximum = cm::Int64 { value: whole(left.min(VOLUME_BYTES_MAX)) };
                let told =
                    cm::AvailableCapacity { available_capacity: whole(left), maximum_volume_size: Some(maximum) };
                Ok(Served::of("", &told))
            }
            client::CREATE_SNAPSHOT => needs("snapshot").and_then(|()| create_snapshot(state, read(question)?)),
            client::DELETE_SNAPSHOT => needs("snapshot").and_then(|()| delete_snapshot(state, &read(question)?)),
            client::LIST_SNAPSHOTS => needs("list-snapshots").and_then(|()| list_snapshots(state, &read(question)?)),
            client::CONTROLLER_EXPAND => needs("expand").and_then(|()| self.expand(state, &read(question)?)),
            client::MODIFY => needs("modify").and_then(|()| modify(state, read(question)?)),
            _ => Err(Fault::new(Code::Unimplemented, format!("unknown method {path}"))),
        }
    }

    fn controller_capabilities(&self) -> m::Capabilities {
        use cm::can;
        let all = [
            ("create", can::CREATE),
            ("attach", can::PUBLISH),
            ("attach", can::PUBLISH_READ_ONLY),
            ("list", can::LIST),
            ("attached", can::TELL_ATTACHED),
            ("capacity", can::TELL_CAPACITY),
            ("snapshot", can::SNAPSHOT),
            ("list-snapshots", can::LIST_SNAPSHOTS),
            ("clone", can::CLONE),
            ("expand", can::EXPAND),
            ("condition", can::TELL_CONDITION),
            ("get", can::GET),
            ("multi-writer", can::SINGLE_NODE_MULTI_WRITER),
            ("modify", can::MODIFY),
        ];
        let offered = all.into_iter().filter(|it| self.has(it.0));
        let of = |it: (&str, i32)| m::Capability { rpc: Some(m::Rpc { r#type: it.1 }) };
        m::Capabilities { capabilities: offered.map(of).collect() }
    }

    fn create(
        &self,
        state: &mut State,
        asked: cm::CreateVolume,
        fault: Option<&faults::Fault>,
    ) -> Result<Served, Fault> {
        if asked.name.is_empty() || asked.name.len() > NAME_BYTES_MAX {
            return Err(invalid("name missing in request, or too long"));
        }
        let is_block = check_capabilities(&asked.volume_capabilities)?;
        let range = asked.capacity_range.clone().unwrap_or_default();
        let (required, limit) = (natural(range.required_bytes)?, natural(range.limit_bytes)?);
        if limit > 0 && required > limit {
            return Err(invalid("required bytes are more than the limit"));
        }
        let id = id_of("vol-", &asked.name);
        let source = self.source(state, asked.volume_content_source.as_ref(), required)?;
        let bytes = match &source {
            Some((_, least)) => required.max(*least),
            None if required == 0 => DEFAULT_BYTES,
            None => required,
        };
        if let Some(found) = state.volumes.get(&id) {
            let fits = found.bytes >= required && (limit == 0 || found.bytes <= limit);
            if !fits || found.source != source.map(|it| it.0) || found.is_block != is_block {
                let why = format!("volume {} exists already, and is another", asked.name);
                return Err(Fault::new(Code::AlreadyExists, why));
            }
            return Ok(self.created(state, &id, fault));
        }
        if bytes > VOLUME_BYTES_MAX || (limit > 0 && bytes > limit) {
            return Err(Fault::new(Code::OutOfRange, format!("no volume has {bytes} bytes")));
        }
        if state.taken_bytes().saturating_add(bytes) > self.settings.capacity {
            return Err(Fault::new(Code::ResourceExhausted, format!("there is no room for {bytes} bytes")));
        }
        let folder = state.volume_folder(&id);
        with_faults_named(fs::create_dir_all(&folder), "make a volume")?;
        let data = match source.as_ref().map(|it| &it.0) {
            Some(Source::Volume(it)) => Some(state.volume_folder(it)),
            Some(Source::Snapshot(it)) => Some(state.snapshot_folder(it)),
            None => None,
        };
        if let Some(data) = data {
            with_faults_named(copy(&data, &folder), "copy what it holds at first")?;
        }
        if is_block {
            with_faults_named(grow(&state.disk(&id), bytes), "make a disk")?;
        }
        let source = source.map(|it| it.0);
        let volume = Volume {
            name: asked.name,
            bytes,
            is_block,
            source,
            mutable: asked.mutable_parameters,
            ..Volume::default()
        };
        state.volumes.insert(id.clone(), volume);
        state.save()?;
        Ok(self.created(state, &id, fault))
    }

    fn created(&self, state: &State, id: &str, fault: Option<&faults::Fault>) -> Served {
        let mut volume = self.told(state, id);
        match fault {
            Some(faults::Fault::Other) => {
                let other = state.volumes.keys().find(|it| *it != id);
                volume.volume_id = other.cloned().unwrap_or_default();
            }
            Some(faults::Fault::Small) => volume.capacity_bytes = 1,
            Some(faults::Fault::Huge) => {
                volume.volume_context.insert("much".into(), "x".repeat(1 << 20));
            }
            _ => {}
        }
        Served::of(id, &cm::VolumeStanding { volume: Some(volume), status: None })
    }

    fn told(&self, state: &State, id: &str) -> cm::Volume {
        let found = state.volumes.get(id).cloned().unwrap_or_default();
        let source = found.source.map(|it| match it {
            Source::Snapshot(id) => cm::ContentSource { snapshot: Some(cm::Id { id }), volume: None },
            Source::Volume(id) => cm::ContentSource { snapshot: None, volume: Some(cm::Id { id }) },
        });
        cm::Volume {
            capacity_bytes: whole(found.bytes),
            volume_id: id.to_owned(),
            volume_context: BTreeMap::from([("sample/name".to_owned(), found.name)]),
            content_source: source,
            accessible_topology: self.has("topology").then(|| self.topology()).into_iter().collect(),
        }
    }

    pub(super) fn topology(&self) -> m::Topology {
        let (key, value) = match &self.settings.zone {
            Some(zone) => ("zone", zone),
            None => ("node", &self.settings.node),
        };
        let key = format!("topology.{}/{key}", self.settings.name);
        m::Topology { segments: BTreeMap::from([(key, value.clone())]) }
    }

    fn source(
        &self,
        state: &State,
        source: Option<&cm::ContentSource>,
        required: u64,
    ) -> Result<Option<(Source, u64)>, Fault> {
        let Some(source) = source else { return Ok(None) };
        let (found, least) = match (&source.snapshot, &source.volume) {
            (Some(it), None) if self.has("snapshot") => {
                let missing = || Fault::new(Code::NotFound, format!("snapshot {} not found", it.id));
                (Source::Snapshot(it.id.clone()), state.snapshots.get(&it.id).ok_or_else(missing)?.bytes)
            }
            (None, Some(it)) if self.has("clone") => (Source::Volume(it.id.clone()), state.volume(&it.id)?.bytes),
            _ => return Err(invalid("a volume is not made of that")),
        };
        if required > 0 && required < least {
            return Err(Fault::new(Code::OutOfRange, "its source is larger"));
        }
        Ok(Some((found, least)))
    }

    fn delete(&self, state: &mut State, asked: &cm::Delete) -> Result<Served, Fault> {
        if asked.id.is_empty() {
            return Err(invalid("volume id missing in request"));
        }
        if let Some(found) = state.volumes.get(&asked.id) {
            if !found.attached.is_empty() || !found.published.is_empty() {
                return Err(Fault::new(Code::FailedPrecondition, format!("volume {} is in use", asked.id)));
            }
            gone(fs::remove_dir_all(state.volume_folder(&asked.id)))?;
            state.volumes.remove(&asked.id);
            state.save()?;
        }
        Ok(Served::of(&asked.id, &m::Empty {}))
    }

    fn list(&self, state: &State, asked: &cm::List, fault: Option<&faults::Fault>) -> Result<Served, Fault> {
        let ids: Vec<String> = state.volumes.keys().cloned().collect();
        let entries_max = if fault == Some(&faults::Fault::Pages) { 1 } else { asked.max_entries };
        let (ids, next_token) = page(ids, entries_max, &asked.starting_token)?;
        let entries: Result<Vec<_>, Fault> = ids.iter().map(|it| self.standing(state, it, fault)).collect();
        Ok(Served::of("", &cm::ListedVolumes { entries: entries?, next_token }))
    }

    fn standing(&self, state: &State, id: &str, fault: Option<&faults::Fault>) -> Result<cm::VolumeStanding, Fault> {
        let found = state.volume(id)?;
        let status = cm::VolumeStatus {
            published_node_ids: match fault {
                Some(faults::Fault::Detached) => Vec::new(),
                _ => found.attached.keys().cloned().collect(),
            },
            volume_condition: Some(condition(fault)),
        };
        Ok(cm::VolumeStanding { volume: Some(self.told(state, id)), status: Some(status) })
    }

    fn expand(&self, state: &mut State, asked: &cm::ControllerExpand) -> Result<Served, Fault> {
        let (taken, capacity) = (state.taken_bytes(), self.settings.capacity);
        let volume = state.volume_mut(&asked.volume_id)?;
        let range = asked.capacity_range.as_ref().ok_or_else(|| invalid("capacity range missing in request"))?;
        check_capabilities(asked.volume_capability.as_slice())?;
        let bytes = natural(range.required_bytes)?.max(volume.bytes);
        if bytes > VOLUME_BYTES_MAX || (range.limit_bytes > 0 && bytes > natural(range.limit_bytes)?) {
            return Err(Fault::new(Code::OutOfRange, format!("no volume has {bytes} bytes")));
        }
        if taken - volume.bytes + bytes > capacity {
            return Err(Fault::new(Code::ResourceExhausted, format!("there is no room for {bytes} bytes")));
        }
        volume.bytes = bytes;
        let is_block = volume.is_block;
        if is_block {
            with_faults_named(grow(&state.disk(&asked.volume_id), bytes), "grow a disk")?;
        }
        state.save()?;
        let told =
            cm::ControllerExpanded { capacity_bytes: whole(bytes), node_expansion_required: self.has("node-expand") };
        Ok(Served::of(&format!("{} {bytes}", asked.volume_id), &told))
    }
}

/// A volume's state of health.
pub(super) fn condition(fault: Option<&faults::Fault>) -> cm::Condition {
    match fault {
        Some(faults::Fault::Sick) => cm::Condition { abnormal: true, message: "the disk has bad blocks".into() },
        _ => cm::Condition { abnormal: false, message: "well".into() },
    }
}

fn attach(driver: &SampleDriver, state: &mut State, asked: &cm::ControllerPublish) -> Result<Served, Fault> {
    if asked.node_id.is_empty() {
        return Err(invalid("node id missing in request"));
    }
    check_capabilities(asked.volume_capability.as_slice())?;
    let is_shared = asked
        .volume_capability
        .as_ref()
        .and_then(|it| it.access_mode.as_ref())
        .is_some_and(|it| matches!(it.mode, 3..=5));
    let volume = state.volume_mut(&asked.volume_id)?;
    if asked.node_id != driver.settings.node && !driver.settings.others.contains(&asked.node_id) {
        return Err(Fault::new(Code::NotFound, format!("node {} not found", asked.node_id)));
    }
    match volume.attached.get(&asked.node_id) {
        Some(read_only) if *read_only != asked.readonly => {
            return Err(Fault::new(Code::AlreadyExists, "it is attached, and otherwise"));
        }
        None if !is_shared && !volume.attached.is_empty() => {
            let other = volume.attached.keys().next().cloned().unwrap_or_default();
            return Err(Fault::new(Code::FailedPrecondition, format!("it is attached to {other}")));
        }
        _ => {}
    }
    volume.attached.insert(asked.node_id.clone(), asked.readonly);
    state.save()?;
    let publish_context = BTreeMap::from([("sample/device".to_owned(), format!("disk-{}", asked.volume_id))]);
    Ok(Served::of(&format!("{} {}", asked.volume_id, asked.node_id), &cm::ControllerPublished { publish_context }))
}

fn detach(state: &mut State, asked: &cm::ControllerUnpublish) -> Result<Served, Fault> {
    if asked.volume_id.is_empty() {
        return Err(invalid("volume id missing in request"));
    }
    if let Some(volume) = state.volumes.get_mut(&asked.volume_id) {
        if asked.node_id.is_empty() {
            volume.attached.clear();
        }
        volume.attached.remove(&asked.node_id);
        state.save()?;
    }
    Ok(Served::of(&format!("{} {}", asked.volume_id, asked.node_id), &m::Empty {}))
}

fn validate(state: &State, asked: sm::ValidateCapabilities) -> Result<Served, Fault> {
    let volume = state.volume(&asked.volume_id)?;
    let is_block = check_capabilities(&asked.volume_capabilities)?;
    let confirmed = (is_block == volume.is_block).then_some(sm::Confirmed {
        volume_context: asked.volume_context,
        volume_capabilities: asked.volume_capabilities,
        parameters: asked.parameters,
    });
    let message = if confirmed.is_some() { "" } else { "it is of the other mode" };
    Ok(Served::of(&asked.volume_id, &sm::ValidatedCapabilities { confirmed, message: message.into() }))
}

fn create_snapshot(state: &mut State, asked: cm::CreateSnapshot) -> Result<Served, Fault> {
    if asked.name.is_empty() || asked.source_volume_id.is_empty() {
        return Err(invalid("name or source missing in request"));
    }
    let id = id_of("snap-", &asked.name);
    match state.snapshots.get(&id) {
        Some(found) if found.source != asked.source_volume_id => {
            return Err(Fault::new(Code::AlreadyExists, "it exists already, of another volume"));
        }
        Some(_) => {}
        None => {
            let bytes = state.volume(&asked.source_volume_id)?.bytes;
            let (from, to) = (state.volume_folder(&asked.source_volume_id), state.snapshot_folder(&id));
            with_faults_named(copy(&from, &to), "copy a volume")?;
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let seconds = i64::try_from(now.as_secs()).unwrap_or(0);
            let snapshot = Snapshot { name: asked.name, source: asked.source_volume_id, bytes, seconds };
            state.snapshots.insert(id.clone(), snapshot);
            state.save()?;
        }
    }
    let about = with_secrets(&id, &asked.secrets);
    Ok(Served::of(&about, &snapshot_standing(&id, &state.snapshots[&id])))
}

fn snapshot_standing(id: &str, found: &Snapshot) -> cm::SnapshotStanding {
    let snapshot = cm::Snapshot {
        size_bytes: whole(found.bytes),
        snapshot_id: id.to_owned(),
        source_volume_id: found.source.clone(),
        creation_time: Some(cm::Timestamp { seconds: found.seconds, nanos: 0 }),
        ready_to_use: true,
    };
    cm::SnapshotStanding { snapshot: Some(snapshot) }
}

fn delete_snapshot(state: &mut State, asked: &cm::Delete) -> Result<Served, Fault> {
    if asked.id.is_empty() {
        return Err(invalid("snapshot id missing in request"));
    }
    if state.snapshots.contains_key(&asked.id) {
        gone(fs::remove_dir_all(state.snapshot_folder(&asked.id)))?;
        state.snapshots.remove(&asked.id);
        state.save()?;
    }
    Ok(Served::of(&with_secrets(&asked.id, &asked.secrets), &m::Empty {}))
}

/// What is written down of a call: the names of what it was told, too.
fn with_secrets(id: &str, secrets: &BTreeMap<String, String>) -> String {
    secrets.keys().fold(id.to_owned(), |about, it| format!("{about} {it}"))
}

fn list_snapshots(state: &State, asked: &cm::ListSnapshots) -> Result<Served, Fault> {
    let is_asked = |it: &(&String, &Snapshot)| {
        (asked.snapshot_id.is_empty() || asked.snapshot_id == *it.0)
            && (asked.source_volume_id.is_empty() || asked.source_volume_id == it.1.source)
    };
    let ids: Vec<String> = state.snapshots.iter().filter(is_asked).map(|it| it.0.clone()).collect();
    let (ids, next_token) = page(ids, asked.max_entries, &asked.starting_token)?;
    let entries = ids.iter().map(|it| snapshot_standing(it, &state.snapshots[it])).collect();
    Ok(Served::of(&with_secrets(&asked.snapshot_id, &asked.secrets), &cm::ListedSnapshots { entries, next_token }))
}

fn modify(state: &mut State, asked: cm::ControllerModify) -> Result<Served, Fault> {
    if asked.mutable_parameters.contains_key("refused") {
        return Err(invalid("parameter \"refused\" cannot be changed"));
    }
    state.volume_mut(&asked.volume_id)?.mutable = asked.mutable_parameters;
    state.save()?;
    Ok(Served::of(&with_secrets(&asked.volume_id, &asked.secrets), &m::Empty {}))
}

/// Is it a disk? All are of one kind, with an access mode.
fn check_capabilities(capabilities: &[m::VolumeCapability]) -> Result<bool, Fault> {
    if capabilities.is_empty() {
        return Err(invalid("volume capabilities missing in request"));
    }
    let is_block = capabilities.iter().any(|it| it.block.is_some());
    for it in capabilities {
        if it.block.is_some() == it.mount.is_some() || it.block.is_some() != is_block {
            return Err(invalid("a volume is either a disk or a folder"));
        }
        if it.access_mode.as_ref().is_none_or(|it| !(1..=7).contains(&it.mode)) {
            return Err(invalid("access mode missing in request"));
        }
    }
    Ok(is_block)
}

fn page(all: Vec<String>, entries_max: i32, token: &str) -> Result<(Vec<String>, String), Fault> {
    let first = match token {
        "" => 0,
        it => it
            .parse::<usize>()
            .ok()
            .filter(|it| *it <= all.len())
            .ok_or_else(|| Fault::new(Code::Aborted, format!("starting token {it:?} is none")))?,
    };
    let n = usize::try_from(entries_max).map_err(|_| invalid("max entries is negative"))?;
    let last = if n == 0 { all.len() } else { all.len().min(first + n) };
    let next = if last < all.len() { last.to_string() } else { String::new() };
    Ok((all[first..last].to_vec(), next))
}

fn grow(disk: &std::path::Path, bytes: u64) -> std::io::Result<()> {
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(disk)?;
    file.set_len(bytes)
}

fn gone(result: std::io::Result<()>) -> Result<(), Fault> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => with_faults_named(other, "remove its files"),
    }
}

pub(super) fn whole(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

pub(super) fn natural(bytes: i64) -> Result<u64, Fault> {
    u64::try_from(bytes).map_err(|_| invalid("a size is negative"))
}
