//! The rules that csi-sanity holds drivers to, of what is refused, what may be asked twice, and what is told: asked of the sample
//! by the messages themselves, and by what every driver here offers also of the one that is built in.

use std::fmt::Debug;

use prost::Message;

use super::*;
use crate::{
    CreateSnapshot, Fault, LocalDriver, Reserve, VolumeSource,
    csi::{
        client::{self, Client},
        controller_messages as cm,
        sample::messages as sm,
    },
};

pub(super) fn handle_of(name: &str) -> String {
    super::super::sample::id_of("vol-", name)
}

struct DriverClient(Client);

impl DriverClient {
    async fn refused<Q: Message + Debug + Clone + 'static>(&self, method: &'static str, question: Q, code: Code) {
        let answer: Result<m::Empty, Fault> = self.0.call(method, question.clone()).await;
        assert_eq!(answer.expect_err(method).code, code, "{method} {question:?}");
    }

    async fn ok<Q: Message + 'static, A: Message + Default + 'static>(&self, method: &'static str, question: Q) -> A {
        self.0.call(method, question).await.expect(method)
    }
}

async fn sample() -> (World, DriverClient) {
    let (world, _) = World::driver(&[]).await;
    let client = Client::new(&world.socket(), NAME, world.operations.clone()).expect("a path");
    (world, DriverClient(client))
}

fn mounted() -> m::VolumeCapability {
    let mount = Some(m::MountVolume::default());
    m::VolumeCapability { block: None, mount, access_mode: Some(m::AccessMode { mode: 1 }) }
}

fn range(required_bytes: i64) -> Option<m::CapacityRange> {
    Some(m::CapacityRange { required_bytes, limit_bytes: 0 })
}

fn create(name: &str, bytes: i64) -> cm::CreateVolume {
    cm::CreateVolume {
        name: name.into(),
        capacity_range: range(bytes),
        volume_capabilities: vec![mounted()],
        ..cm::CreateVolume::default()
    }
}

async fn make(asked: &DriverClient, name: &str) -> String {
    let made: cm::VolumeStanding = asked.ok(client::CREATE, create(name, 1 << 20)).await;
    made.volume.expect("a volume").volume_id
}

fn of_snapshot(id: &str) -> Option<cm::ContentSource> {
    Some(cm::ContentSource { snapshot: Some(cm::Id { id: id.into() }), volume: None })
}

fn of_volume(id: &str) -> Option<cm::ContentSource> {
    Some(cm::ContentSource { snapshot: None, volume: Some(cm::Id { id: id.into() }) })
}

#[tokio::test]
async fn identity() {
    let (_world, asked) = sample().await;
    let info: cm::GetPluginInfo = asked.ok(client::PLUGIN_INFO, m::Empty {}).await;
    assert!(!info.name.is_empty() && info.name.len() <= 63 && !info.vendor_version.is_empty());
    let capabilities: cm::PluginCapabilities = asked.ok(client::PLUGIN_CAPABILITIES, m::Empty {}).await;
    assert_eq!(capabilities.capabilities.len(), 2);
    let probed: sm::Probed = asked.ok(sm::PROBE, m::Empty {}).await;
    assert!(probed.ready.expect("said").value);
}

#[tokio::test]
async fn volumes_are_made_once_and_removed_as_often_as_is_asked() {
    let (_world, asked) = sample().await;
    asked.refused(client::CREATE, create("", 1), Code::InvalidArgument).await;
    let without = cm::CreateVolume { volume_capabilities: Vec::new(), ..create("a", 1) };
    asked.refused(client::CREATE, without, Code::InvalidArgument).await;
    let first = make(&asked, "a").await;
    assert_eq!(make(&asked, "a").await, first);
    asked.refused(client::CREATE, create("a", 2 << 20), Code::AlreadyExists).await;
    make(&asked, &"n".repeat(128)).await;
    asked.refused(client::CREATE, create("large", 1 << 41), Code::OutOfRange).await;
    asked.refused(client::CREATE, create("much", 1 << 35), Code::ResourceExhausted).await;
    let from = |source| cm::CreateVolume { volume_content_source: source, ..create("b", 1 << 20) };
    asked.refused(client::CREATE, from(of_snapshot("none")), Code::NotFound).await;
    asked.refused(client::CREATE, from(of_volume("none")), Code::NotFound).await;
    let cloned: cm::VolumeStanding = asked.ok(client::CREATE, from(of_volume(&first))).await;
    assert_eq!(cloned.volume.expect("a volume").content_source, of_volume(&first));

    let delete = |id: &str| cm::Delete { id: id.into(), ..cm::Delete::default() };
    asked.refused(client::DELETE, delete(""), Code::InvalidArgument).await;
    for id in ["../..", "none", &*first, &*first] {
        let _: m::Empty = asked.ok(client::DELETE, delete(id)).await;
    }
}

#[tokio::test]
async fn volumes_are_listed_page_by_page() {
    let (_world, asked) = sample().await;
    let list = |max_entries, token: &str| cm::List { max_entries, starting_token: token.into() };
    asked.refused(client::LIST, list(0, "invalid-token"), Code::Aborted).await;
    asked.refused(client::LIST, list(-1, ""), Code::InvalidArgument).await;
    for n in 0..5 {
        make(&asked, &format!("v{n}")).await;
    }
    let (mut found, mut token) = (0, String::new());
    loop {
        let page: cm::ListedVolumes = asked.ok(client::LIST, list(2, &token)).await;
        assert!(page.entries.len() <= 2);
        found += page.entries.len();
        token = page.next_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(found, 5);
    let capacity: cm::AvailableCapacity = asked.ok(client::CAPACITY, cm::GetCapacity::default()).await;
    assert_eq!(capacity.available_capacity, (1 << 30) - (5 << 20));
    let get = m::NodeGetVolumeStats { volume_id: handle_of("v1"), ..m::NodeGetVolumeStats::default() };
    let standing: cm::VolumeStanding = asked.ok(client::GET, get).await;
    assert_eq!(standing.status.expect("said").volume_condition.expect("said").message, "well");
}

#[tokio::test]
async fn capabilities_are_confirmed() {
    let (_world, asked) = sample().await;
    let volume_id = make(&asked, "a").await;
    let validate = |id: &str, volume_capabilities| sm::ValidateCapabilities {
        volume_id: id.into(),
        volume_capabilities,
        ..sm::ValidateCapabilities::default()
    };
    asked.refused(sm::VALIDATE, validate("", vec![mounted()]), Code::InvalidArgument).await;
    asked.refused(sm::VALIDATE, validate(&volume_id, Vec::new()), Code::InvalidArgument).await;
    asked.refused(sm::VALIDATE, validate("none", vec![mounted()]), Code::NotFound).await;
    let said: sm::ValidatedCapabilities = asked.ok(sm::VALIDATE, validate(&volume_id, vec![mounted()])).await;
    assert!(said.confirmed.is_some());
}

#[tokio::test]
async fn volumes_are_attached_and_detached() {
    let (_world, asked) = sample().await;
    let volume_id = make(&asked, "a").await;
    let attach = |id: &str, node: &str, readonly| cm::ControllerPublish {
        volume_id: id.into(),
        node_id: node.into(),
        volume_capability: Some(mounted()),
        readonly,
        ..cm::ControllerPublish::default()
    };
    asked.refused(client::ATTACH, attach("", "node-7", false), Code::InvalidArgument).await;
    asked.refused(client::ATTACH, attach(&volume_id, "", false), Code::InvalidArgument).await;
    let without = cm::ControllerPublish { volume_capability: None, ..attach(&volume_id, "node-7", false) };
    asked.refused(client::ATTACH, without, Code::InvalidArgument).await;
    asked.refused(client::ATTACH, attach("none", "node-7", false), Code::NotFound).await;
    asked.refused(client::ATTACH, attach(&volume_id, "none", false), Code::NotFound).await;
    for _ in 0..2 {
        let _: cm::ControllerPublished = asked.ok(client::ATTACH, attach(&volume_id, "node-7", false)).await;
    }
    asked.refused(client::ATTACH, attach(&volume_id, "node-7", true), Code::AlreadyExists).await;
    let detach = |id: &str| cm::ControllerUnpublish {
        volume_id: id.into(),
        node_id: "node-7".into(),
        ..cm::ControllerUnpublish::default()
    };
    asked.refused(client::DETACH, detach(""), Code::InvalidArgument).await;
    for id in [&*volume_id, &*volume_id, "none"] {
        let _: m::Empty = asked.ok(client::DETACH, detach(id)).await;
    }
}

#[tokio::test]
async fn snapshots_are_kept_listed_and_removed() {
    let (_world, asked) = sample().await;
    let (first, second) = (make(&asked, "a").await, make(&asked, "b").await);
    let snapshot = |name: &str, source: &str| cm::CreateSnapshot {
        name: name.into(),
        source_volume_id: source.into(),
        ..cm::CreateSnapshot::default()
    };
    asked.refused(client::CREATE_SNAPSHOT, snapshot("", &first), Code::InvalidArgument).await;
    asked.refused(client::CREATE_SNAPSHOT, snapshot("s", ""), Code::InvalidArgument).await;
    asked.refused(client::CREATE_SNAPSHOT, snapshot("s", "none"), Code::NotFound).await;
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let made: cm::SnapshotStanding = asked.ok(client::CREATE_SNAPSHOT, snapshot("s", &first)).await;
        let made = made.snapshot.expect("a snapshot");
        assert!(made.ready_to_use && made.creation_time.is_some() && made.source_volume_id == first);
        ids.insert(made.snapshot_id);
    }
    assert_eq!(ids.len(), 1, "the same name is the same snapshot");
    asked.refused(client::CREATE_SNAPSHOT, snapshot("s", &second), Code::AlreadyExists).await;
    let _: cm::SnapshotStanding = asked.ok(client::CREATE_SNAPSHOT, snapshot("t", &second)).await;
    let list = |source: &str, id: &str, token: &str| cm::ListSnapshots {
        max_entries: 1,
        source_volume_id: source.into(),
        snapshot_id: id.into(),
        starting_token: token.into(),
        ..cm::ListSnapshots::default()
    };
    let of_first: cm::ListedSnapshots = asked.ok(client::LIST_SNAPSHOTS, list(&first, "", "")).await;
    assert_eq!((of_first.entries.len(), &*of_first.next_token), (1, ""));
    let all: cm::ListedSnapshots = asked.ok(client::LIST_SNAPSHOTS, list("", "", "")).await;
    assert_eq!((all.entries.len(), &*all.next_token), (1, "1"));
    let none: cm::ListedSnapshots = asked.ok(client::LIST_SNAPSHOTS, list("", "none", "")).await;
    assert!(none.entries.is_empty());
    let delete = |id: &str| cm::Delete { id: id.into(), ..cm::Delete::default() };
    asked.refused(client::DELETE_SNAPSHOT, delete(""), Code::InvalidArgument).await;
    let id = ids.pop_first().expect("one");
    for id in [&*id, &*id, "none"] {
        let _: m::Empty = asked.ok(client::DELETE_SNAPSHOT, delete(id)).await;
    }
}

#[tokio::test]
async fn volumes_grow_and_are_changed() {
    let (_world, asked) = sample().await;
    let volume_id = make(&asked, "a").await;
    let expand = |id: &str, capacity_range| cm::ControllerExpand {
        volume_id: id.into(),
        capacity_range,
        volume_capability: Some(mounted()),
        ..cm::ControllerExpand::default()
    };
    asked.refused(client::CONTROLLER_EXPAND, expand("", range(1)), Code::InvalidArgument).await;
    asked.refused(client::CONTROLLER_EXPAND, expand(&volume_id, None), Code::InvalidArgument).await;
    asked.refused(client::CONTROLLER_EXPAND, expand("none", range(1)), Code::NotFound).await;
    asked.refused(client::CONTROLLER_EXPAND, expand(&volume_id, range(1 << 41)), Code::OutOfRange).await;
    for _ in 0..2 {
        let grown: cm::ControllerExpanded =
            asked.ok(client::CONTROLLER_EXPAND, expand(&volume_id, range(2 << 20))).await;
        assert_eq!((grown.capacity_bytes, grown.node_expansion_required), (2 << 20, true));
    }
    let modify = |id: &str, name: &str| cm::ControllerModify {
        volume_id: id.into(),
        mutable_parameters: [(name.to_owned(), "1".to_owned())].into(),
        ..cm::ControllerModify::default()
    };
    asked.refused(client::MODIFY, modify("", "iops"), Code::InvalidArgument).await;
    asked.refused(client::MODIFY, modify("none", "iops"), Code::NotFound).await;
    asked.refused(client::MODIFY, modify(&volume_id, "refused"), Code::InvalidArgument).await;
    let _: m::Empty = asked.ok(client::MODIFY, modify(&volume_id, "iops")).await;
}

#[tokio::test]
async fn nodes_stage_publish_and_take_away() {
    let (world, asked) = sample().await;
    let (volume_id, dir) = (make(&asked, "a").await, world.dir.path().join("p"));
    std::fs::create_dir_all(&dir).expect("made");
    let (staged, target) = (dir.join("s").display().to_string(), dir.join("t").display().to_string());
    let attach = cm::ControllerPublish {
        volume_id: volume_id.clone(),
        node_id: "node-7".into(),
        volume_capability: Some(mounted()),
        ..cm::ControllerPublish::default()
    };
    let attached: cm::ControllerPublished = asked.ok(client::ATTACH, attach).await;
    let stage = |id: &str, path: &str| m::NodeStageVolume {
        volume_id: id.into(),
        staging_target_path: path.into(),
        volume_capability: Some(mounted()),
        publish_context: attached.publish_context.clone(),
        ..m::NodeStageVolume::default()
    };
    asked.refused(client::STAGE, stage("", &staged), Code::InvalidArgument).await;
    asked.refused(client::STAGE, stage(&volume_id, ""), Code::InvalidArgument).await;
    let without = m::NodeStageVolume { volume_capability: None, ..stage(&volume_id, &staged) };
    asked.refused(client::STAGE, without, Code::InvalidArgument).await;
    asked.refused(client::STAGE, stage("none", &staged), Code::NotFound).await;
    let publish = |id: &str, path: &str| m::NodePublishVolume {
        volume_id: id.into(),
        staging_target_path: staged.clone(),
        target_path: path.into(),
        volume_capability: Some(mounted()),
        publish_context: attached.publish_context.clone(),
        ..m::NodePublishVolume::default()
    };
    asked.refused(client::PUBLISH, publish("", &target), Code::InvalidArgument).await;
    asked.refused(client::PUBLISH, publish(&volume_id, ""), Code::InvalidArgument).await;
    let without = m::NodePublishVolume { volume_capability: None, ..publish(&volume_id, &target) };
    asked.refused(client::PUBLISH, without, Code::InvalidArgument).await;
    asked.refused(client::PUBLISH, publish("none", &target), Code::NotFound).await;
    for _ in 0..2 {
        let _: m::Empty = asked.ok(client::STAGE, stage(&volume_id, &staged)).await;
        let _: m::Empty = asked.ok(client::PUBLISH, publish(&volume_id, &target)).await;
    }
    let stats = |id: &str, path: &str| m::NodeGetVolumeStats {
        volume_id: id.into(),
        volume_path: path.into(),
        ..m::NodeGetVolumeStats::default()
    };
    asked.refused(client::STATS, stats("", &target), Code::InvalidArgument).await;
    asked.refused(client::STATS, stats(&volume_id, ""), Code::InvalidArgument).await;
    asked.refused(client::STATS, stats("none", &target), Code::NotFound).await;
    asked.refused(client::STATS, stats(&volume_id, "/not/there"), Code::NotFound).await;
    let told: cm::NodeVolumeStats = asked.ok(client::STATS, stats(&volume_id, &target)).await;
    assert_eq!(told.usage[0].total, 1 << 20);
    let expand = |id: &str, path: &str| m::NodeExpandVolume {
        volume_id: id.into(),
        volume_path: path.into(),
        volume_capability: Some(mounted()),
        ..m::NodeExpandVolume::default()
    };
    asked.refused(client::EXPAND, expand("", &target), Code::InvalidArgument).await;
    asked.refused(client::EXPAND, expand(&volume_id, ""), Code::InvalidArgument).await;
    asked.refused(client::EXPAND, expand("none", &target), Code::NotFound).await;
    let take = |id: &str, path: &str| m::NodeTakeAway { volume_id: id.into(), path: path.into() };
    for (method, path) in [(client::UNPUBLISH, &target), (client::UNSTAGE, &staged)] {
        asked.refused(method, take("", path), Code::InvalidArgument).await;
        asked.refused(method, take(&volume_id, ""), Code::InvalidArgument).await;
        for _ in 0..2 {
            let _: m::Empty = asked.ok(method, take(&volume_id, path)).await;
        }
    }
    assert!(!std::path::Path::new(&target).exists(), "a place is gone that was published");
}

/// What holds of every driver, as this node asks it.
async fn rules(driver: &dyn Driver) {
    let own = |name: &str| CreateVolume { required_bytes: 16 << 20, ..wanted(name) };
    let made = driver.create(own("v1")).await.expect("made");
    assert!(!made.handle.is_empty() && (made.bytes == 0 || made.bytes >= own("v1").required_bytes));
    let again = driver.create(own("v1")).await.expect("there");
    assert_eq!((&again.handle, again.bytes), (&made.handle, made.bytes), "the same name is the same volume");
    let huge = CreateVolume { required_bytes: 1 << 60, ..own("huge") };
    let refused = driver.create(huge).await.expect_err("there is no room").code;
    assert!(matches!(refused, Code::ResourceExhausted | Code::OutOfRange), "{refused:?}");
    let other = CreateVolume { required_bytes: 64 << 20, ..own("v1") };
    assert_eq!(driver.create(other).await.expect_err("another volume").code, Code::AlreadyExists);
    let facts = driver.facts();
    if facts.clones {
        let unknown = VolumeSource::Volume("none".into());
        let of_nothing = CreateVolume { source: Some(unknown), ..own("copy") };
        driver.create(of_nothing).await.expect_err("its source is not there");
    }
    assert!(!facts.node_id.is_empty() && facts.node_id.len() <= 256);
    if facts.tells_capacity {
        driver.capacity([].into()).await.expect("told").expect("told");
    }
    let to_grow = |handle: &str| StageVolume { access_mode: "ReadWriteOnce".into(), ..StageVolume::of(handle) };
    if facts.expands {
        let grown = driver.expand(to_grow(&made.handle), 32 << 20).await.expect("grown");
        assert!(grown.bytes >= 32 << 20);
        let again = driver.expand(to_grow(&made.handle), 32 << 20).await.expect("as large");
        assert_eq!(again.bytes, grown.bytes);
        let unknown = driver.expand(to_grow("none"), 32 << 20).await.expect_err("it is not there").code;
        assert_eq!(unknown, Code::NotFound);
    }
    if facts.snapshots {
        let of =
            |name: &str| CreateSnapshot { name: name.into(), source: made.handle.clone(), ..CreateSnapshot::default() };
        let (first, second) = (driver.create_snapshot(of("s")).await, driver.create_snapshot(of("s")).await);
        let first = first.expect("kept");
        assert_eq!(first.handle, second.expect("there").handle);
        let found = driver.find_snapshot(first.handle.clone(), [].into()).await.expect("found").expect("told");
        assert_eq!((&found.source, found.is_ready, found.bytes > 0), (&made.handle, true, true));
        assert_eq!(found.created_at, first.created_at);
        let unknown = driver.find_snapshot("none".into(), [].into()).await.expect_err("it is not there");
        assert_eq!(unknown.code, Code::NotFound, "{unknown}");
        let of_none = CreateSnapshot { source: "none".into(), ..of("t") };
        driver.create_snapshot(of_none).await.expect_err("its volume is not there");
        for handle in [&*first.handle, &*first.handle, "none"] {
            driver.delete_snapshot(handle.to_owned(), [].into()).await.expect("gone");
        }
    }
    for handle in [&*made.handle, &*made.handle, "none", "../none"] {
        let gone = driver.delete(handle.to_owned(), [].into()).await;
        let is_refused = gone.as_ref().is_err_and(|it| it.code == Code::InvalidArgument) && handle.contains('/');
        assert!(gone.is_ok() || is_refused, "{handle}: {gone:?}");
    }
}

#[tokio::test]
async fn the_sample_keeps_the_rules() {
    let (_world, driver) = World::driver(&[]).await;
    rules(&*driver).await;
}

#[tokio::test]
async fn the_built_in_driver_keeps_the_rules() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
    let mounts = NodeMounts::prepare(&layout).expect("a namespace");
    rules(&LocalDriver::new(&layout, mounts, "n1", Reserve::default())).await;
    NodeMounts::release(&layout);
}
