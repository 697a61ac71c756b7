//! Drivers as others write them: they come, are used, fail, lie, and go.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use corten_grpc::{PLUGINS, PluginInfo, follow_plugins};
use corten_kubelet::{Backend, CsiVolume, PersistentMount, Secrets, VolumeGrowth, VolumeOwner};
use corten_machine::{Layout, NodeMounts};
use tokio::task::JoinSet;

use super::{CsiPlugins, SampleDriver, SampleSettings, messages as m};
use crate::{
    AttachedTo, Call, Code, CreateSnapshot, CreateVolume, Driver, Drivers, Fault, Mounter, Reply, StageVolume,
    StorageOperations,
    channel::{self, AskedOfDriver},
};

mod sanity;

const NAME: &str = "sample.example";

struct World {
    dir: tempfile::TempDir,
    layout: Layout,
    drivers: Drivers,
    /// What counts the drivers' calls.
    operations: StorageOperations,
    tasks: JoinSet<()>,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        std::fs::create_dir_all(layout.data.join(PLUGINS)).expect("made");
        let (drivers, mut tasks) = (Drivers::default(), JoinSet::new());
        let mounter = Mounter::new(layout.clone(), NodeMounts::own(), drivers.clone());
        let (csi, operations) = (CsiPlugins::new(&layout, &mounter), mounter.operations().clone());
        tasks.spawn(follow_plugins(layout.data.join(PLUGINS), vec![Arc::new(csi)]));
        Self { dir, layout, drivers, operations, tasks }
    }

    fn settings(&self, name: &str, without: &[&str]) -> SampleSettings {
        SampleSettings {
            folder: self.dir.path().join("sample"),
            socket: self.socket(),
            name: name.into(),
            node: "node-7".into(),
            others: BTreeSet::new(),
            zone: None,
            without: without.iter().map(|it| (*it).to_owned()).collect::<BTreeSet<_>>(),
            capacity: 1 << 30,
            mounts: false,
            is_old: false,
        }
    }

    fn socket(&self) -> PathBuf {
        self.layout.data.join("plugins_registry/sample.sock")
    }

    fn serve(&mut self, name: &str, without: &[&str]) {
        let driver = Arc::new(SampleDriver::new(self.settings(name, without)).expect("opened"));
        self.tasks.spawn(async move {
            let _ = driver.serve().await;
        });
    }

    async fn until(&self, is_there: bool) {
        let mut drivers = self.drivers.follow();
        drivers.wait_for(|it| it.contains_key(NAME) == is_there).await.expect("followed");
    }

    async fn driver(without: &[&str]) -> (Self, Arc<dyn Driver>) {
        let mut world = Self::new();
        world.serve(NAME, without);
        world.until(true).await;
        let driver = world.drivers.get(NAME).expect("there");
        (world, driver)
    }

    fn mounter(&self) -> Mounter {
        Mounter::new(self.layout.clone(), NodeMounts::own(), self.drivers.clone())
    }

    fn fault(&self, text: &str) {
        std::fs::write(self.dir.path().join("sample/faults"), text).expect("written");
    }

    /// What it was asked since it was last looked at, without what it was asked about itself.
    fn asked(&self) -> Vec<String> {
        let calls = self.dir.path().join("sample/calls");
        let text = std::fs::read_to_string(&calls).unwrap_or_default();
        std::fs::write(&calls, "").expect("written");
        let of_itself = ["Get", "NodeGet", "ControllerGet", "Probe"];
        let lines = text.lines().map(|it| it.trim().to_owned());
        lines.filter(|it| !of_itself.iter().any(|of| it.starts_with(of))).collect()
    }
}

#[tokio::test]
async fn calls_are_counted_with_what_came_of_them() {
    let (world, driver) = World::driver(&[]).await;
    driver.create(wanted("one")).await.expect("made");
    world.fault("CreateVolume ResourceExhausted");
    driver.create(wanted("two")).await.expect_err("it fails");
    let tallies = world.operations.tallies();
    let rows = tallies.iter().flat_map(|it| it.rows()).map(|it| format!("{} {}", it.labels.join(" "), it.n));
    let of_creation: Vec<String> = rows.filter(|it| it.contains("CreateVolume")).collect();
    let expected = ["OK", "ResourceExhausted"].map(|it| format!("{NAME} /csi.v1.Controller/CreateVolume {it} false 1"));
    assert_eq!(of_creation, expected);
}

#[tokio::test]
async fn how_many_volumes_the_node_takes_is_asked_again() {
    let (world, driver) = World::driver(&[]).await;
    assert_eq!(driver.facts().limit, Some(64));
    let news = world.drivers.follow();
    world.drivers.ask_limit(NAME).await;
    assert!(!news.has_changed().expect("followed"), "it says what it said");
    world.fault("NodeGetInfo small");
    world.drivers.ask_limit(NAME).await;
    assert!(news.has_changed().expect("followed"));
    assert_eq!(driver.facts().limit, Some(2));
    world.fault("NodeGetInfo Internal");
    world.drivers.ask_limit(NAME).await;
    assert_eq!(driver.facts().limit, Some(2), "what it does not say stays");
    world.drivers.ask_limit("other.example").await;
}

fn wanted(name: &str) -> CreateVolume {
    let access_modes = vec!["ReadWriteOnce".to_owned()];
    CreateVolume { name: name.into(), required_bytes: 1 << 20, access_modes, ..CreateVolume::default() }
}

fn mount(handle: &str) -> PersistentMount {
    let volume = CsiVolume {
        driver: NAME.into(),
        handle: handle.into(),
        access_mode: "ReadWriteOnce".into(),
        context: [("a".to_owned(), "b".to_owned())].into(),
        stage_secrets: Secrets([("key".to_owned(), "s3cret".to_owned())].into()),
        ..CsiVolume::default()
    };
    PersistentMount {
        name: "pv1".into(),
        backend: Backend::Csi(volume),
        is_block: false,
        read_only: true,
        mount_options: Vec::new(),
        is_single_pod: false,
        takes_group: false,
        group: None,
        owner: VolumeOwner { pod: "p".into(), volume: "data".into(), claim: "c".into(), namespace: "ns".into() },
    }
}

/// The folder of the node, as a mount of the machine.
struct Mounted(Layout);

impl Drop for Mounted {
    fn drop(&mut self) {
        NodeMounts::release(&self.0);
        let _ = corten_machine::mounts::unmount_beneath(&self.0.data);
        let _ = crate::file_system::unmount_all(&self.0.data);
    }
}

#[tokio::test]
async fn what_is_mounted_where_no_container_sees_it_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
    for (propagation, is_seen) in [(MountPropagationFlags::PRIVATE, false), (MountPropagationFlags::SHARED, true)] {
        let mut world = World::new();
        let data = world.layout.data.clone();
        mount_bind(&data, &data).and_then(|()| mount_change(&data, propagation)).expect("mounted");
        let _mounted = Mounted(world.layout.clone());
        let mounts = NodeMounts::prepare(&world.layout).expect("a namespace");
        let settings = SampleSettings { mounts: true, ..world.settings(NAME, &["attach"]) };
        let sample = Arc::new(SampleDriver::new(settings).expect("opened"));
        world.tasks.spawn(async move { drop(sample.serve().await) });
        world.until(true).await;
        let driver = world.drivers.get(NAME).expect("there");
        let mounter = Mounter::new(world.layout.clone(), mounts, world.drivers.clone());
        for is_block in [false, true] {
            let name = format!("pvc-{is_block}");
            let made = driver.create(CreateVolume { is_block, ..wanted(&name) }).await.expect("made");
            let of_pod = PersistentMount { is_block, ..mount(&made.handle) };
            let set_up = mounter.set_up("u1", &of_pod).await;
            match set_up {
                Ok(_) => assert!(is_seen, "it is in the bare folder"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(!is_seen && said.contains("run `mount --make-rshared /` before Corten starts"), "{said}");
                }
            }
            mounter.tear_down("u1").await.expect("taken away");
        }
    }
}

#[tokio::test]
async fn a_driver_gives_files_to_the_group_itself_where_it_can() {
    let own = rustix::process::getgid().as_raw();
    for (without, words) in [(&["attach"][..], format!(" group {own}")), (&["attach", "group"][..], String::new())] {
        let (world, driver) = World::driver(without).await;
        let made = driver.create(wanted("v1")).await.expect("made");
        world.asked();
        let mount = PersistentMount { group: Some(own), takes_group: true, ..mount(&made.handle) };
        let placed = world.mounter().set_up("u1", &mount).await.expect("published").expect("a mount");
        assert_eq!(placed.driver_gives_group, !words.is_empty());
        assert_eq!(world.asked().last(), Some(&format!("NodePublishVolume {}{words}", made.handle)));
    }
}

#[tokio::test]
async fn how_a_volume_is_is_told_with_its_claim_and_a_driver_that_hangs_is_passed_over() {
    let (world, driver) = World::driver(&["attach"]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let mounter = world.mounter();
    mounter.set_up("u1", &mount(&made.handle)).await.expect("published");
    world.fault("NodeGetVolumeStats sick");
    let told = mounter.figures().await;
    let [it] = &told[..] else { panic!("{told:?}") };
    assert_eq!((it.claim.as_ref().map(ToString::to_string), &*it.volume), (Some("ns/c".into()), "data"));
    assert!(it.tells_health && it.stats.abnormal.is_some() && it.stats.capacity_bytes >= 1 << 20, "{it:?}");
    world.fault("NodeGetVolumeStats hang");
    assert_eq!(mounter.figures().await, told, "of the same moment");
    assert!(world.mounter().figures().await.is_empty());
}

#[tokio::test]
async fn a_snapshot_that_was_there_before_is_asked_for() {
    let secret = || [("key".to_owned(), "s3cret".to_owned())].into();
    let (world, driver) = World::driver(&[]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let asked = CreateSnapshot { name: "s".into(), source: made.handle, ..CreateSnapshot::default() };
    let taken = driver.create_snapshot(asked).await.expect("taken");
    world.asked();
    let found = driver.find_snapshot(taken.handle.clone(), secret()).await.expect("found");
    assert_eq!(found.as_ref(), Some(&taken));
    assert_eq!(world.asked(), [format!("ListSnapshots {} key", taken.handle)]);
    let fault = driver.find_snapshot("snap-none".into(), secret()).await.expect_err("it is not there");
    assert_eq!(fault, Fault::new(Code::NotFound, "can not find snapshot for snapshotID snap-none"));
    let (world, driver) = World::driver(&["list-snapshots"]).await;
    assert_eq!(driver.find_snapshot("any".into(), secret()).await.expect("no fault"), None);
    assert!(world.asked().iter().all(|it| !it.starts_with("ListSnapshots")));
}

/// Over the node's own API, as the control plane asks.
#[tokio::test]
async fn a_driver_is_told_the_secret_for_a_change() {
    let (world, driver) = World::driver(&[]).await;
    let handle = driver.create(wanted("v1")).await.expect("made").handle;
    world.asked();
    let secrets = [("key".to_owned(), "s3cret".to_owned())].into();
    let call = Call::Modify { handle: handle.clone(), parameters: BTreeMap::new(), secrets };
    let message = channel::written(&AskedOfDriver { driver: NAME.into(), call }, &[]).expect("it can be written");
    let answer = channel::put(&message, |name| world.drivers.get(name)).await.expect("an answer");
    let (told, _) = channel::read::<Result<Reply, Fault>>(&answer).expect("it can be read");
    assert_eq!(told, Ok(Reply::Done));
    assert_eq!(world.asked(), [format!("ControllerModifyVolume {handle} key")]);
}

#[tokio::test]
async fn whether_volumes_are_well_is_asked_in_a_list_or_one_by_one() {
    for (without, method) in [(&[][..], "ListVolumes"), (&["list"][..], "ControllerGetVolume")] {
        let (world, driver) = World::driver(without).await;
        assert!(driver.facts().tells_conditions);
        let first = driver.create(wanted("v1")).await.expect("made").handle;
        driver.create(wanted("v2")).await.expect("made");
        let handles = BTreeSet::from([first.clone(), "gone".to_owned()]);
        let well = [(first.clone(), None)].into();
        assert_eq!(driver.conditions(handles.clone()).await.expect("told"), well, "of those that were asked for");
        world.fault(&format!("{method} sick"));
        let told = driver.conditions(handles.clone()).await.expect("told");
        assert_eq!(told, [(first, Some("the disk has bad blocks".to_owned()))].into(), "{method}");
        world.fault(&format!("{method} Unavailable"));
        assert_eq!(driver.conditions(handles).await.expect_err("told to fail").code, Code::Unavailable);
    }
    for without in [&["condition"][..], &["list", "get"][..]] {
        let (_world, driver) = World::driver(without).await;
        assert!(!driver.facts().tells_conditions);
        assert_eq!(driver.conditions(BTreeSet::new()).await.expect_err("not offered").code, Code::Unimplemented);
    }
}

/// Over the node's own API, as the control plane asks; all pages of the list are read.
#[tokio::test]
async fn where_volumes_are_attached_is_asked_in_a_list() {
    let (world, driver) = World::driver(&[]).await;
    assert!(driver.facts().tells_attached);
    let mut places = AttachedTo::new();
    for name in ["v1", "v2", "v3"] {
        let handle = driver.create(wanted(name)).await.expect("made").handle;
        let volume = StageVolume { access_mode: "ReadWriteOnce".into(), ..StageVolume::of(&handle) };
        driver.attach(volume, "node-7".into(), false).await.expect("attached");
        places.insert((handle, "node-7".to_owned()));
    }
    let mut asked = places.clone();
    let elsewhere = asked.pop_last().expect("three").0;
    asked.insert((elsewhere, "node-8".to_owned()));
    let told = async || {
        let call = Call::Attached { places: asked.clone() };
        let message = channel::written(&AskedOfDriver { driver: NAME.into(), call }, &[]).expect("it can be written");
        let answer = channel::put(&message, |name| world.drivers.get(name)).await.expect("an answer");
        channel::read::<Result<Reply, Fault>>(&answer).expect("it can be read").0
    };
    let both: AttachedTo = asked.intersection(&places).cloned().collect();
    assert_eq!(told().await, Ok(Reply::AttachedTo(both.clone())), "of those that were asked for");
    world.asked();
    world.fault("ListVolumes pages");
    assert_eq!(told().await, Ok(Reply::AttachedTo(both)));
    assert_eq!(world.asked().len(), 3, "a volume each");
    world.fault("ListVolumes detached");
    assert_eq!(told().await, Ok(Reply::AttachedTo(AttachedTo::new())));
    world.fault("ListVolumes Unavailable");
    assert_eq!(told().await.expect_err("told to fail").code, Code::Unavailable);
    for without in ["attached", "attach", "list"] {
        let (_world, driver) = World::driver(&[without]).await;
        assert!(!driver.facts().tells_attached, "{without}");
        assert_eq!(driver.attached(AttachedTo::new()).await.expect_err("not offered").code, Code::Unimplemented);
    }
}

#[tokio::test]
async fn tokens_are_told_where_a_driver_wants_them() {
    let (world, driver) = World::driver(&["attach"]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let mounter = world.mounter();
    for (tokens_in_secrets, words) in [(false, "with tokens"), (true, "with tokens among secrets")] {
        world.asked();
        let mut mount = mount(&made.handle);
        if let Backend::Csi(volume) = &mut mount.backend {
            volume.tokens_in_secrets = tokens_in_secrets;
            volume.tokens = Secrets([("csi.storage.k8s.io/serviceAccount.tokens".to_owned(), "{}".to_owned())].into());
        }
        mounter.set_up("u1", &mount).await.expect("published");
        let asked = world.asked();
        assert_eq!(asked.last(), Some(&format!("NodePublishVolume {} {words}", made.handle)));
        assert!(asked.iter().all(|it| !it.starts_with("NodeStageVolume") || it.ends_with(" key")), "{asked:?}");
    }
}

#[tokio::test]
async fn a_volume_is_grown_where_a_pod_has_it() {
    let (world, driver) = World::driver(&["attach"]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let mounter = world.mounter();
    let told = StageVolume { access_mode: "ReadWriteOnce".into(), ..StageVolume::of(&made.handle) };
    driver.expand(told.clone(), 2 << 20).await.expect("grown");
    assert!(mounter.growable().await.is_empty());
    world.asked();
    mounter.grow(NAME, told.clone(), 2 << 20).await.expect_err("no pod has it");
    assert!(world.asked().is_empty());
    mounter.set_up("u1", &mount(&made.handle)).await.expect("published");
    let [it] = &mounter.growable().await[..] else { panic!("there is one") };
    assert_eq!((&*it.driver, &it.handle, &*it.claim.to_string()), (NAME, &made.handle, "ns/c"));
    assert_eq!(it.pods.iter().map(|it| format!("{} {}", it.0, it.1)).collect::<Vec<_>>(), ["u1 ns/p"]);
    world.asked();
    mounter.grow(NAME, told.clone(), 2 << 20).await.expect("grown here");
    assert_eq!(world.asked(), [format!("NodeExpandVolume {} {}", made.handle, 2 << 20)]);
    let larger = mounter.grow(NAME, told, 3 << 20).await.expect_err("the controller has not grown it");
    assert_eq!(larger.code, Code::OutOfRange);
    // The next Pod's volume is grown before that has it.
    mounter.tear_down("u1").await.expect("taken away");
    driver
        .expand(StageVolume { access_mode: "ReadWriteOnce".into(), ..StageVolume::of(&made.handle) }, 4 << 20)
        .await
        .expect("grown");
    world.asked();
    let mut grown = mount(&made.handle);
    if let Backend::Csi(volume) = &mut grown.backend {
        let secrets = Secrets([("k".into(), "v".into())].into());
        volume.growth = Some(Box::new(VolumeGrowth { bytes: 4 << 20, secrets }));
    }
    world.fault("NodeExpandVolume FailedPrecondition");
    mounter.set_up("u2", &grown).await.expect("it begins all the same");
    world.fault("");
    mounter.tear_down("u2").await.expect("taken away");
    world.asked();
    mounter.set_up("u3", &grown).await.expect("published");
    let asked: Vec<String> = world.asked().iter().map(|it| it.split(' ').next().unwrap_or_default().into()).collect();
    assert_eq!(asked, ["NodeStageVolume", "NodeExpandVolume", "NodePublishVolume"]);
    // One that stages nothing is asked when the Pod's mount is there.
    let (world, driver) = World::driver(&["attach", "stage"]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    driver
        .expand(StageVolume { access_mode: "ReadWriteOnce".into(), ..StageVolume::of(&made.handle) }, 4 << 20)
        .await
        .expect("grown");
    let mut grown = mount(&made.handle);
    if let Backend::Csi(volume) = &mut grown.backend {
        volume.growth = Some(Box::new(VolumeGrowth { bytes: 4 << 20, secrets: Secrets::default() }));
    }
    let mounter = world.mounter();
    world.asked();
    mounter.set_up("u1", &grown).await.expect("published");
    let asked: Vec<String> = world.asked().iter().map(|it| it.split(' ').next().unwrap_or_default().into()).collect();
    assert_eq!(asked, ["NodePublishVolume", "NodeExpandVolume"]);
    // One that has no part in it is not asked.
    let (world, driver) = World::driver(&["attach", "node-expand"]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let mounter = world.mounter();
    mounter.set_up("u1", &mount(&made.handle)).await.expect("published");
    assert!(mounter.growable().await.is_empty());
}

#[tokio::test]
async fn a_driver_of_a_zone_says_of_its_volumes_that_they_are_there() {
    let mut world = World::new();
    let settings = SampleSettings { zone: Some("a".into()), ..world.settings(NAME, &["attach"]) };
    let sample = Arc::new(SampleDriver::new(settings).expect("opened"));
    world.tasks.spawn(async move { drop(sample.serve().await) });
    world.until(true).await;
    let driver = world.drivers.get(NAME).expect("there");
    let zone: BTreeMap<String, String> = [("topology.sample.example/zone".to_owned(), "a".to_owned())].into();
    assert_eq!(driver.facts().topology, zone);
    assert_eq!(driver.create(wanted("v1")).await.expect("made").topology, [zone]);
}

#[tokio::test]
async fn a_driver_comes_is_used_and_goes() {
    let (world, driver) = World::driver(&["attach"]).await;
    assert_eq!(world.asked(), ["NotifyRegistrationStatus true"]);
    let facts = driver.facts();
    assert_eq!((facts.node_id.as_str(), facts.limit), ("node-7", Some(64)));
    assert!(facts.provisions && facts.expands && facts.tells_capacity && facts.snapshots && !facts.attaches);
    assert_eq!(facts.topology["topology.sample.example/node"], "node-7");

    let made = driver.create(wanted("v1")).await.expect("made");
    world.asked();
    let mounter = world.mounter();
    mounter.set_up("u1", &mount(&made.handle)).await.expect("published");
    let handle = &made.handle;
    assert_eq!(world.asked(), [format!("NodeStageVolume {handle} key"), format!("NodePublishVolume {handle}")]);
    world.fault("NodeUnpublishVolume Internal");
    let error = mounter.tear_down("u1").await.expect_err("told to fail").to_string();
    assert_eq!(error, "kubernetes.io/csi: Unmounter.TearDownAt failed: rpc error: code = Internal desc = told to fail");
    world.fault("");
    world.asked();
    mounter.tear_down("u1").await.expect("taken away");
    assert_eq!(world.asked(), [format!("NodeUnpublishVolume {handle}"), format!("NodeUnstageVolume {handle}")]);

    std::fs::remove_file(world.socket()).expect("removed");
    world.until(false).await;
    let error = mounter.set_up("u1", &mount(handle)).await.expect_err("it is gone").to_string();
    assert!(error.contains("not found in the list of registered CSI drivers"), "{error}");
}

#[tokio::test]
async fn what_fails_between_two_steps_is_taken_away() {
    let (world, driver) = World::driver(&["attach"]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let mounter = world.mounter();
    // Done or not, by what is heard of it.
    for fault in ["FailedPrecondition", "lose-answer"] {
        world.fault(&format!("NodePublishVolume {fault}"));
        mounter.set_up("u1", &mount(&made.handle)).await.expect_err("told to fail");
        world.fault("");
        world.asked();
        mounter.tear_down("u1").await.expect("taken away");
        let handle = &made.handle;
        let asked = [format!("NodeUnpublishVolume {handle}"), format!("NodeUnstageVolume {handle}")];
        assert_eq!(world.asked(), asked, "{fault}");
    }
    driver.delete(made.handle, [].into()).await.expect("nobody has it");
}

#[tokio::test]
async fn a_place_that_leads_elsewhere_is_refused() {
    let (world, driver) = World::driver(&["attach"]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let mounter = world.mounter();
    for method in ["NodePublishVolume", "NodeStageVolume"] {
        world.fault(&format!("{method} link"));
        let error = mounter.set_up("u1", &mount(&made.handle)).await.expect_err("refused").to_string();
        assert!(error.contains("a link to another place"), "{method}: {error}");
        world.fault("");
        mounter.set_up("u1", &mount(&made.handle)).await.expect("its next try is in the right place");
        mounter.tear_down("u1").await.expect("taken away");
    }
}

/// With these it may be done yet (`IsFinalError` of upstream's sidecars).
#[tokio::test]
async fn what_a_driver_answers_says_whether_it_may_be_done_yet() {
    let (world, driver) = World::driver(&[]).await;
    for (code, is_final) in [
        ("Canceled", false),
        ("DeadlineExceeded", false),
        ("Unavailable", false),
        ("ResourceExhausted", false),
        ("Aborted", false),
        ("Internal", true),
        ("Unknown", true),
        ("InvalidArgument", true),
    ] {
        world.fault(&format!("CreateVolume {code}"));
        let fault = driver.create(wanted("v1")).await.expect_err(code);
        assert_eq!((format!("{:?}", fault.code).as_str(), fault.is_final()), (code, is_final));
    }
}

#[tokio::test]
async fn answers_are_not_believed() {
    let (world, driver) = World::driver(&[]).await;
    for (fault, words) in [("small", "less than requested"), ("huge", "more than 16384 bytes"), ("other", "volume id")]
    {
        world.fault(&format!("CreateVolume {fault}"));
        let answered = driver.create(wanted("v1")).await;
        // What it has made is named, for who asked: it is removed again.
        let error = answered.map_or_else(
            |it| it,
            |made| {
                assert_eq!(made.handle, sanity::handle_of("v1"));
                made.refused.expect(fault)
            },
        );
        assert!(error.to_string().contains(words), "{fault}: {error}");
        world.fault("");
        let made = driver.create(wanted("v1")).await.expect("it is the same volume");
        assert_eq!(made.refused, None);
        driver.delete(sanity::handle_of("v1"), [].into()).await.expect("gone");
    }
}

#[tokio::test]
async fn a_volume_is_attached_before_it_is_staged() {
    let (_world, driver) = World::driver(&[]).await;
    let made = driver.create(wanted("v1")).await.expect("made");
    let volume =
        StageVolume { handle: made.handle.clone(), access_mode: "ReadWriteOnce".into(), ..StageVolume::default() };
    let dir = tempfile::tempdir().expect("a folder");
    let error = driver.stage(volume.clone(), dir.path().join("s")).await.expect_err("it is not attached");
    assert_eq!(error.code, Code::FailedPrecondition);
    let publish_context = driver.attach(volume.clone(), "node-7".into(), false).await.expect("attached");
    driver.stage(StageVolume { publish_context, ..volume }, dir.path().join("s")).await.expect("staged");
    assert_eq!(driver.delete(made.handle.clone(), [].into()).await.expect_err("in use").code, Code::FailedPrecondition);
    driver.detach(made.handle.clone(), "node-7".into(), [].into()).await.expect("detached");
    driver.delete(made.handle, [].into()).await.expect("gone");
}

#[tokio::test]
async fn a_driver_without_a_controller_is_asked_for_no_volume() {
    let (_world, driver) = World::driver(&["controller"]).await;
    let facts = driver.facts();
    assert!(!facts.provisions && !facts.attaches && !facts.expands && !facts.snapshots);
    assert_eq!(driver.create(wanted("v1")).await.expect_err("none").code, Code::Unimplemented);
}

#[tokio::test]
async fn nobody_takes_anothers_name() {
    let info = |name: &str| PluginInfo {
        r#type: "CSIPlugin".into(),
        name: name.into(),
        endpoint: String::new(),
        supported_versions: vec!["1.0.0".into()],
    };
    let (world, _) = World::driver(&[]).await;
    let csi = CsiPlugins::new(&world.layout, &world.mounter());
    for bad in ["local.corten.dev", "../../x", ""] {
        csi.driver(&info(bad), &PathBuf::from("/x.sock")).await.expect_err(bad);
    }
    // The socket it names is another driver's.
    let error = csi.driver(&info("other.example"), &world.socket()).await;
    let error = error.expect_err("it is another's").to_string();
    assert!(error.contains("is not other.example"), "{error}");
}
