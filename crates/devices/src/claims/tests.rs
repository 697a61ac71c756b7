//! The sample driver at its socket: claims are prepared for Pods, and taken back with the last of them.

use std::{fs, sync::Arc, time::Duration};

use corten_grpc::{PLUGINS, follow_plugins};
use corten_kubelet::{GivenDevice, PodRef, ReservedClaim};
use corten_machine::Layout;
use tokio::task::JoinSet;

use super::ClaimDrivers;
use crate::sample_driver::SampleDriver;

const NAME: &str = "gpu.example.com";

struct Node {
    folder: tempfile::TempDir,
    layout: Layout,
    drivers: ClaimDrivers,
    tasks: JoinSet<()>,
}

impl Node {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::new(folder.path().join("data"), folder.path().join("run"));
        let drivers = ClaimDrivers::new(&layout);
        let mut tasks = JoinSet::new();
        let running = drivers.clone();
        tasks.spawn(follow_plugins(layout.data.join(PLUGINS), vec![Arc::new(running)]));
        Self { folder, layout, drivers, tasks }
    }

    fn start_driver(&mut self) {
        let driver = SampleDriver::new(NAME, self.folder.path());
        let registry = self.layout.data.join(PLUGINS);
        self.tasks.spawn(async move { driver.serve(&registry).await.expect("its socket can be made") });
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).expect("written");
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Prepares once the driver is known.
    async fn prepare(&self, pod: &str, claims: &[&str]) -> Result<String, String> {
        let who = PodRef::new("default", pod, pod);
        let given = GivenDevice { request: "r".into(), driver: NAME.into(), ..GivenDevice::default() };
        let claim = |name: &&str| ReservedClaim {
            in_pod: "gpu".into(),
            claim: (*name).to_owned(),
            uid: format!("uid-{name}"),
            results: vec![given.clone()],
            users: Vec::new(),
        };
        let claims: Vec<ReservedClaim> = claims.iter().map(claim).collect();
        let wait = async {
            loop {
                match self.drivers.prepare(&who, claims.clone()).await {
                    Err(error) if error.ends_with("is not registered") => tokio::task::yield_now().await,
                    other => return other,
                }
            }
        };
        let prepared = tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it registers")?;
        let devices = prepared.iter().flat_map(|it| &it.devices).flat_map(|it| &it.cdi_devices);
        Ok(devices.cloned().collect::<Vec<_>>().join(" "))
    }
}

#[tokio::test]
async fn what_pods_share_is_taken_back_with_the_last_of_them() {
    let mut node = Node::new();
    let who = PodRef::new("default", "a", "a");
    let given = GivenDevice { driver: NAME.into(), ..GivenDevice::default() };
    let claim = ReservedClaim { results: vec![given], ..ReservedClaim::default() };
    let missing = node.drivers.prepare(&who, vec![claim]).await.expect_err("nobody is there");
    assert_eq!(missing, "DRA driver gpu.example.com is not registered");
    node.drivers.prepare(&who, Vec::new()).await.expect("no claims");
    node.start_driver();
    assert_eq!(node.prepare("a", &["one", "two"]).await, Ok(format!("{NAME}/claim=uid-one {NAME}/claim=uid-two")));
    assert_eq!(node.prepare("b", &["two"]).await, Ok(format!("{NAME}/claim=uid-two")));
    node.drivers.release("a").await.expect("taken back");
    node.drivers.release("a").await.expect("there is nothing left");
    // As after kill -9: only the disk knows.
    node.drivers = ClaimDrivers::new(&node.layout);
    let running = node.drivers.clone();
    node.tasks.spawn(follow_plugins(node.layout.data.join(PLUGINS), vec![Arc::new(running)]));
    let recalled = node.drivers.recall("b").await.expect("known");
    assert_eq!(recalled[0].devices[0].cdi_devices, [format!("{NAME}/claim=uid-two")]);
    assert_eq!(node.drivers.recall("a").await, None);
    node.prepare("c", &[]).await.expect("nothing");
    assert_eq!(node.prepare("b", &["two"]).await, Ok(format!("{NAME}/claim=uid-two")));
    node.drivers.release("b").await.expect("taken back");
    let log: Vec<String> = node.log().lines().filter(|it| !it.starts_with("registered")).map(str::to_owned).collect();
    let expected = [
        "prepare default/one",
        "prepare default/two",
        "prepare default/two",
        "unprepare default/one",
        "prepare default/two",
        "unprepare default/two",
    ];
    assert_eq!(log, expected);
}

#[tokio::test]
async fn a_driver_that_refuses_is_asked_again_and_nothing_is_forgotten() {
    let mut node = Node::new();
    node.start_driver();
    node.write("fault", "prepare");
    let refused = node.prepare("a", &["one"]).await.expect_err("refused");
    assert_eq!(refused, "NodePrepareResources failed for ResourceClaim one: told to refuse");
    node.write("fault", "");
    node.prepare("a", &["one"]).await.expect("prepared");
    node.write("fault", "unprepare");
    let refused = node.drivers.release("a").await.expect_err("refused");
    assert_eq!(refused, "NodeUnprepareResources: rpc error: code = Internal desc = told to refuse");
    node.write("fault", "");
    node.drivers.release("a").await.expect("taken back");
    assert!(node.log().ends_with("prepare default/one\nunprepare default/one\n"), "{}", node.log());
}
