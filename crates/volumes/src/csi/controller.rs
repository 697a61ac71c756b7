//! What a plugin does with volumes as such, where it has the service Controller. What it answers is checked before anybody
//! believes it.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    client::{
        ATTACH, CAPACITY, CONTROLLER_CAPABILITIES, CONTROLLER_EXPAND, CREATE, CREATE_SNAPSHOT, Client, DELETE,
        DELETE_SNAPSHOT, DETACH, GET, LIST, LIST_SNAPSHOTS, MODIFY, PLUGIN_CAPABILITIES,
    },
    controller_messages::{
        self as cm, AvailableCapacity, ContentSource, ControllerExpand, ControllerExpanded, ControllerModify,
        ControllerPublish, ControllerPublished, ControllerUnpublish, Delete, GetCapacity, GetVolume, HAS_CONTROLLER,
        HAS_TOPOLOGY, Id, List, ListSnapshots, ListedSnapshots, ListedVolumes, PluginCapabilities, SnapshotStanding,
        TopologyRequirement, VolumeStanding, can,
    },
    messages::{AccessMode, Capabilities, CapacityRange, Empty, MountVolume, Topology, VolumeCapability},
};
use crate::{
    AttachedTo, Capacity, Code, CreateSnapshot, CreateVolume, CreatedVolume, Expanded, Fault, Snapshot, StageVolume,
    VolumeSource,
    answers::{check_handle, check_map, check_places},
};

/// Of a list of volumes.
const PAGES_MAX: usize = 10_000;

#[derive(Clone, Debug)]
pub(super) struct Controller {
    client: Client,
    capabilities: Vec<i32>,
    /// Not every node reaches each of its volumes.
    pub(super) has_topology: bool,
}

impl Controller {
    /// `None`: the plugin has no such service here, as where it runs for its node alone.
    ///
    /// # Errors
    /// It does not say.
    pub(super) async fn introduce(client: &Client) -> Result<Option<Self>, Fault> {
        let Some(plugin) = offered(client.call::<_, PluginCapabilities>(PLUGIN_CAPABILITIES, Empty {}).await)? else {
            return Ok(None);
        };
        let services: Vec<i32> =
            plugin.capabilities.iter().filter_map(|it| it.service.as_ref()).map(|it| it.r#type).collect();
        if !services.contains(&HAS_CONTROLLER) {
            return Ok(None);
        }
        // Plugins say of themselves what their other half has.
        let answer = offered(client.call::<_, Capabilities>(CONTROLLER_CAPABILITIES, Empty {}).await)?;
        Ok(answer.map(|it| Self {
            client: client.clone(),
            capabilities: it.capabilities.iter().filter_map(|it| it.rpc.as_ref()).map(|it| it.r#type).collect(),
            has_topology: services.contains(&HAS_TOPOLOGY),
        }))
    }

    pub(super) fn can(&self, what: i32) -> bool {
        self.capabilities.contains(&what)
    }

    fn needs(&self, what: i32, doing: &str) -> Result<(), Fault> {
        match self.can(what) {
            true => Ok(()),
            false => Err(Fault::new(Code::Unimplemented, format!("the driver does not {doing}"))),
        }
    }

    pub(super) async fn create(&self, asked: CreateVolume) -> Result<CreatedVolume, Fault> {
        self.needs(can::CREATE, "make volumes")?;
        let required = asked.required_bytes;
        let places: Vec<_> = asked.topologies.into_iter().map(|segments| Topology { segments }).collect();
        let places = (self.has_topology && !places.is_empty())
            .then(|| TopologyRequirement { requisite: places.clone(), preferred: places });
        let modes = if asked.access_modes.is_empty() { vec![String::new()] } else { asked.access_modes };
        let of = |mode: &String| StageVolume {
            fs_type: asked.fs_type.clone(),
            is_block: asked.is_block,
            access_mode: mode.clone(),
            mount_options: asked.mount_options.clone(),
            ..StageVolume::default()
        };
        let source = asked.source.map(source);
        let request = cm::CreateVolume {
            name: asked.name,
            capacity_range: Some(CapacityRange { required_bytes: whole(required), limit_bytes: 0 }),
            volume_capabilities: modes.iter().map(|it| self.capability(&of(it))).collect(),
            parameters: asked.parameters,
            secrets: asked.secrets,
            volume_content_source: source.clone(),
            accessibility_requirements: places,
            mutable_parameters: asked.mutable_parameters,
        };
        let answer: VolumeStanding = self.client.call(CREATE, request).await?;
        let volume = answer.volume.ok_or_else(|| Fault::internal("the driver answers without the volume"))?;
        check_handle("volume", &volume.volume_id)?;
        let bytes = u64::try_from(volume.capacity_bytes).unwrap_or(0);
        // It may be another's, too: who asked knows whether it is to be removed.
        if let Err(fault) = check_made(&volume, source.as_ref(), (bytes, required)) {
            return Ok(CreatedVolume { handle: volume.volume_id, refused: Some(fault), ..CreatedVolume::default() });
        }
        Ok(CreatedVolume {
            handle: volume.volume_id,
            bytes,
            context: volume.volume_context,
            topology: topologies(volume.accessible_topology),
            fs_type: String::new(),
            refused: None,
        })
    }

    pub(super) async fn delete(&self, handle: String, secrets: BTreeMap<String, String>) -> Result<(), Fault> {
        self.needs(can::CREATE, "remove volumes")?;
        self.client.call(DELETE, Delete { id: handle, secrets }).await.map(|Empty {}| ())
    }

    pub(super) async fn expand(&self, volume: StageVolume, bytes: u64) -> Result<Expanded, Fault> {
        self.needs(can::EXPAND, "grow volumes")?;
        let request = ControllerExpand {
            capacity_range: Some(CapacityRange { required_bytes: whole(bytes), limit_bytes: 0 }),
            volume_capability: Some(self.capability(&volume)),
            volume_id: volume.handle,
            secrets: volume.secrets,
        };
        let answer: ControllerExpanded = self.client.call(CONTROLLER_EXPAND, request).await?;
        let grown = u64::try_from(answer.capacity_bytes).unwrap_or(0);
        if grown > 0 && grown < bytes {
            let why = format!("the driver answers that the volume has {grown} bytes, of {bytes} that were asked for");
            return Err(Fault::internal(why));
        }
        Ok(Expanded { bytes: grown.max(bytes), node_expansion_required: answer.node_expansion_required })
    }

    pub(super) async fn capacity(
        &self,
        parameters: BTreeMap<String, String>,
        topology: &BTreeMap<String, String>,
    ) -> Result<Option<Capacity>, Fault> {
        if !self.can(can::TELL_CAPACITY) {
            return Ok(None);
        }
        let here = (self.has_topology && !topology.is_empty()).then(|| Topology { segments: topology.clone() });
        let request = GetCapacity { volume_capabilities: Vec::new(), parameters, accessible_topology: here };
        let answer: AvailableCapacity = self.client.call(CAPACITY, request).await?;
        let available = u64::try_from(answer.available_capacity);
        let available_bytes = available.map_err(|_| Fault::internal("the driver has less than nothing left"))?;
        let maximum_bytes = answer.maximum_volume_size.and_then(|it| u64::try_from(it.value).ok());
        Ok(Some(Capacity { available_bytes, maximum_bytes }))
    }

    pub(super) async fn attach(
        &self,
        volume: StageVolume,
        node_id: String,
        read_only: bool,
    ) -> Result<BTreeMap<String, String>, Fault> {
        self.needs(can::PUBLISH, "attach volumes")?;
        if read_only && !self.can(can::PUBLISH_READ_ONLY) {
            let why = "the driver does not attach volumes read-only (PUBLISH_READONLY)";
            return Err(Fault::new(Code::FailedPrecondition, why));
        }
        let request = ControllerPublish {
            volume_capability: Some(self.capability(&volume)),
            volume_id: volume.handle,
            node_id,
            readonly: read_only,
            secrets: volume.secrets,
            volume_context: volume.context,
        };
        let answer: ControllerPublished = self.client.call(ATTACH, request).await?;
        check_map("publish_context", &answer.publish_context)?;
        Ok(answer.publish_context)
    }

    pub(super) async fn detach(
        &self,
        handle: String,
        node_id: String,
        secrets: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.needs(can::PUBLISH, "attach volumes")?;
        let request = ControllerUnpublish { volume_id: handle, node_id, secrets };
        self.client.call(DETACH, request).await.map(|Empty {}| ())
    }

    pub(super) async fn create_snapshot(&self, asked: CreateSnapshot) -> Result<Snapshot, Fault> {
        self.needs(can::SNAPSHOT, "keep snapshots")?;
        let source = asked.source.clone();
        let request = cm::CreateSnapshot {
            source_volume_id: asked.source,
            name: asked.name,
            secrets: asked.secrets,
            parameters: asked.parameters,
        };
        let answer: SnapshotStanding = self.client.call(CREATE_SNAPSHOT, request).await?;
        let found = answer.snapshot.ok_or_else(|| Fault::internal("the driver answers without the snapshot"))?;
        check_handle("snapshot", &found.snapshot_id)?;
        if found.source_volume_id != source {
            return Err(Fault::internal("the driver answers with a snapshot of another volume"));
        }
        snapshot(found)
    }

    /// As the snapshotter's `GetSnapshotStatus`. An answer about others than the one that was asked for is none.
    pub(super) async fn find_snapshot(
        &self,
        handle: String,
        secrets: BTreeMap<String, String>,
    ) -> Result<Option<Snapshot>, Fault> {
        if !self.can(can::LIST_SNAPSHOTS) {
            return Ok(None);
        }
        let request = ListSnapshots { snapshot_id: handle.clone(), secrets, ..ListSnapshots::default() };
        let answer: ListedSnapshots = self.client.call(LIST_SNAPSHOTS, request).await?;
        let mut all = answer.entries.into_iter().filter_map(|it| it.snapshot);
        match all.find(|it| it.snapshot_id == handle) {
            Some(found) => snapshot(found).map(Some),
            None => Err(Fault::new(Code::NotFound, format!("can not find snapshot for snapshotID {handle}"))),
        }
    }

    pub(super) async fn delete_snapshot(&self, handle: String, secrets: BTreeMap<String, String>) -> Result<(), Fault> {
        self.needs(can::SNAPSHOT, "keep snapshots")?;
        self.client.call(DELETE_SNAPSHOT, Delete { id: handle, secrets }).await.map(|Empty {}| ())
    }

    pub(super) fn tells_conditions(&self) -> bool {
        self.can(can::TELL_CONDITION) && (self.can(can::LIST) || self.can(can::GET))
    }

    /// As external-health-monitor: of all volumes in one list where the driver has one, else of each by itself.
    pub(super) async fn conditions(
        &self,
        handles: BTreeSet<String>,
    ) -> Result<BTreeMap<String, Option<String>>, Fault> {
        if !self.tells_conditions() {
            return Err(Fault::new(Code::Unimplemented, "the driver does not say whether volumes are well"));
        }
        let mut told = BTreeMap::new();
        if !self.can(can::LIST) {
            for handle in handles {
                let request = GetVolume { volume_id: handle.clone() };
                match self.client.call::<_, VolumeStanding>(GET, request).await {
                    Ok(standing) => told.extend(condition(standing).map(|it| (handle, it.1))),
                    // It may be gone by now.
                    Err(fault) if fault.code == Code::NotFound => {}
                    Err(fault) => return Err(fault),
                }
            }
            return Ok(told);
        }
        let take = |it| told.extend(condition(it).filter(|it| handles.contains(&it.0)));
        self.list_volumes(take).await?;
        Ok(told)
    }

    pub(super) fn tells_attached(&self) -> bool {
        [can::PUBLISH, can::LIST, can::TELL_ATTACHED].into_iter().all(|it| self.can(it))
    }

    /// As external-attacher's reconciler: of these those that the driver lists.
    pub(super) async fn attached(&self, places: AttachedTo) -> Result<AttachedTo, Fault> {
        if !self.tells_attached() {
            return Err(Fault::new(Code::Unimplemented, "the driver does not say where volumes are attached"));
        }
        let mut told = AttachedTo::new();
        let take = |it: VolumeStanding| {
            let Some((volume, status)) = it.volume.zip(it.status) else { return };
            let all = status.published_node_ids.into_iter().map(|node| (volume.volume_id.clone(), node));
            told.extend(all.filter(|it| places.contains(it)));
        };
        self.list_volumes(take).await?;
        Ok(told)
    }

    async fn list_volumes(&self, mut take: impl FnMut(VolumeStanding)) -> Result<(), Fault> {
        let mut starting_token = String::new();
        for _ in 0..PAGES_MAX {
            let request = List { max_entries: 0, starting_token };
            let page: ListedVolumes = self.client.call(LIST, request).await?;
            page.entries.into_iter().for_each(&mut take);
            if page.next_token.is_empty() {
                return Ok(());
            }
            starting_token = page.next_token;
        }
        Err(Fault::internal("the driver's list of volumes does not end"))
    }

    pub(super) async fn modify(
        &self,
        handle: String,
        parameters: BTreeMap<String, String>,
        secrets: BTreeMap<String, String>,
    ) -> Result<(), Fault> {
        self.needs(can::MODIFY, "change volumes")?;
        let request = ControllerModify { volume_id: handle, secrets, mutable_parameters: parameters };
        self.client.call(MODIFY, request).await.map(|Empty {}| ())
    }

    fn capability(&self, volume: &StageVolume) -> VolumeCapability {
        capability(volume, self.can(can::SINGLE_NODE_MULTI_WRITER))
    }
}

/// `None`: the plugin does not know the method.
fn offered<T>(answer: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match answer {
        Err(fault) if fault.code == Code::Unimplemented => Ok(None),
        other => other.map(Some),
    }
}

/// The volume's handle, and why it is not well.
fn condition(standing: VolumeStanding) -> Option<(String, Option<String>)> {
    let condition = standing.status?.volume_condition?;
    Some((standing.volume?.volume_id, condition.abnormal.then(|| bounded(&condition.message))))
}

/// What a driver says of a volume's health, as far as an event has room for it.
pub(super) fn bounded(message: &str) -> String {
    message.chars().filter(|it| !it.is_control()).take(1024).collect()
}

fn snapshot(told: cm::Snapshot) -> Result<Snapshot, Fault> {
    let created = told.creation_time.unwrap_or_default();
    let nanos = created.seconds.checked_mul(1_000_000_000).and_then(|it| it.checked_add(i64::from(created.nanos)));
    Ok(Snapshot {
        handle: told.snapshot_id,
        source: told.source_volume_id,
        bytes: u64::try_from(told.size_bytes).unwrap_or(0),
        created_at: nanos.ok_or_else(|| Fault::internal("the driver answers with no time"))?,
        is_ready: told.ready_to_use,
    })
}

fn source(source: VolumeSource) -> ContentSource {
    match source {
        VolumeSource::Snapshot(id) => ContentSource { snapshot: Some(Id { id }), volume: None },
        VolumeSource::Volume(id) => ContentSource { snapshot: None, volume: Some(Id { id }) },
    }
}

/// How a volume is used, in CSI's words. `tells_writers_apart`: the plugin knows `SINGLE_NODE_MULTI_WRITER`.
pub(super) fn capability(volume: &StageVolume, tells_writers_apart: bool) -> VolumeCapability {
    let mount = || MountVolume {
        fs_type: volume.fs_type.clone(),
        mount_flags: volume.mount_options.clone(),
        volume_mount_group: volume.mount_group.map(|it| it.to_string()).unwrap_or_default(),
    };
    VolumeCapability {
        block: volume.is_block.then(Empty::default),
        mount: (!volume.is_block).then(mount),
        access_mode: Some(AccessMode { mode: access_mode(&volume.access_mode, tells_writers_apart) }),
    }
}

/// As the kubelet's `asCSIAccessModeV1` and `asSingleNodeMultiWriterCapableCSIAccessModeV1`.
fn access_mode(mode: &str, tells_writers_apart: bool) -> i32 {
    match (mode, tells_writers_apart) {
        ("ReadWriteOnce", true) => 7,
        ("ReadWriteOncePod", true) => 6,
        ("ReadWriteOnce" | "ReadWriteOncePod", false) => 1,
        ("ReadOnlyMany", _) => 3,
        ("ReadWriteMany", _) => 5,
        _ => 0,
    }
}

/// As external-provisioner, and whether there is room for what is said of it.
fn check_made(volume: &cm::Volume, source: Option<&ContentSource>, (bytes, required): (u64, u64)) -> Result<(), Fault> {
    check_map("volume_context", &volume.volume_context)?;
    if source.is_some() && volume.content_source.as_ref() != source {
        return Err(Fault::internal("the driver answers with a volume that was not made of the source"));
    }
    if bytes > 0 && bytes < required {
        let why = format!("created volume capacity {bytes} less than requested capacity {required}");
        return Err(Fault::new(Code::OutOfRange, why));
    }
    check_places(volume.accessible_topology.len())?;
    volume.accessible_topology.iter().try_for_each(|it| check_map("topology", &it.segments))
}

fn topologies(told: Vec<Topology>) -> Vec<BTreeMap<String, String>> {
    told.into_iter().map(|it| it.segments).filter(|it| !it.is_empty()).collect()
}

fn whole(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
