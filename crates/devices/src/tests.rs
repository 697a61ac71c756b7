//! The sample plugin at its sockets: what it has is told, what it is asked for is given and outlives it.

use std::{fs, path::Path, time::Duration};

use corten_grpc::{Client, Code};
use corten_kubelet::{DeviceNews, DeviceResource, DeviceWish};
use corten_machine::Layout;
use futures_util::FutureExt;
use tokio::task::JoinSet;

use crate::{
    DevicePlugins,
    messages::{Empty, REGISTER, RegisterRequest, VERSION},
    sample::SamplePlugin,
};

const FAKE: &str = "example.com/fake";
const PATIENCE: Duration = Duration::from_secs(20);

struct Node {
    folder: tempfile::TempDir,
    layout: Layout,
    plugins: DevicePlugins,
    /// What ends with it.
    tasks: JoinSet<()>,
}

impl Node {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::new(folder.path().join("data"), folder.path().join("run"));
        let plugins = DevicePlugins::new(&layout);
        let mut node = Self { folder, layout, plugins, tasks: JoinSet::new() };
        node.run();
        node
    }

    fn run(&mut self) {
        let plugins = self.plugins.clone();
        self.tasks.spawn(async move { plugins.run().await });
    }

    /// As after kill -9: only the disk knows what was.
    async fn restart(&mut self) {
        self.tasks.shutdown().await;
        self.plugins = DevicePlugins::new(&self.layout);
        self.run();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).expect("written");
    }

    fn start_plugin(&self) -> JoinSet<()> {
        let plugin = SamplePlugin::new(FAKE, self.path(), &self.layout.data.join("device-plugins"));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { plugin.serve().await.expect("its socket can be made") });
        tasks
    }

    /// Waits until the resource is as it should be.
    async fn until(&self, holds: impl Fn(&DeviceResource) -> bool) -> DeviceNews {
        let wait = async {
            loop {
                let news = self.plugins.next_news().await;
                if news.resources.get(FAKE).is_some_and(&holds) {
                    return news;
                }
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.expect("it comes to that")
    }
}

fn wish(available: &[&str], count: usize) -> DeviceWish {
    let available: Vec<String> = available.iter().map(|it| (*it).to_owned()).collect();
    let (container, resource) = ("c".to_owned(), FAKE.to_owned());
    DeviceWish { container, resource, ids: available[..count].to_vec(), available, must_include: Vec::new() }
}

#[tokio::test]
async fn what_a_plugin_has_and_gives_is_known_and_kept() {
    let mut node = Node::new();
    node.write("devices", "a\nb\nc unhealthy 1\n");
    let mut plugin = node.start_plugin();
    let news = node.until(|it| it.is_connected).await;
    let devices = &news.resources[FAKE].devices;
    assert_eq!(devices.iter().map(|it| it.1.is_healthy).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(devices["c"].numa_nodes, [1]);

    // The plugin prefers the last one.
    let given = node.plugins.allocate("u1", wish(&["a", "b"], 1)).await.expect("given");
    assert_eq!((&*given.ids, &*given.granted.env), (&["b".to_owned()][..], &[("FAKE_DEVICES".into(), "b".into())][..]));
    assert_eq!(given.granted.devices[0].container_path, "/dev/fake-b");
    node.write("fault", "prefer");
    let second = node.plugins.allocate("u2", wish(&["a"], 1)).await.expect("given");
    assert_eq!(second.ids, ["a"], "what it prefers is none of those");
    node.write("fault", "allocate");
    let refused = node.plugins.allocate("u3", wish(&["a"], 1)).await.expect_err("refused");
    assert_eq!(refused, "rpc error: code = Internal desc = told to refuse");
    node.write("fault", "start");
    let refused = node.plugins.pre_start(&[(FAKE.into(), vec!["a".into()])]).await.expect_err("refused");
    assert_eq!(
        refused,
        "device plugin PreStartContainer rpc failed with err: rpc error: code = Internal desc = told to refuse"
    );
    node.write("fault", "");
    node.plugins.pre_start(&[(FAKE.into(), vec!["a".into()])]).await.expect("told");
    assert_eq!(fs::read_to_string(node.path().join("log")).expect("a log"), "allocate b\nallocate a\nstart a\n");

    node.write("devices", "a\nb unhealthy\n");
    node.until(|it| it.devices.len() == 2 && !it.devices["b"].is_healthy).await;
    plugin.shutdown().await;
    node.until(|it| !it.is_connected && it.devices.len() == 2).await;
    let missing = node.plugins.allocate("u3", wish(&["a"], 1)).await.expect_err("nobody gives it");
    assert_eq!(missing, "cannot allocate unregistered device example.com/fake");

    node.plugins.release("u2").await;
    node.restart().await;
    let news = node.until(|_| true).await;
    assert_eq!(news.resources[FAKE], DeviceResource::default());
    assert_eq!(news.allocated, [("u1".to_owned(), vec![given])].into());
    let _plugin = node.start_plugin();
    node.until(|it| it.is_connected).await;
}

#[tokio::test]
async fn a_plugin_finds_its_way_back_to_a_kubelet_that_was_killed() {
    let mut node = Node::new();
    node.write("devices", "a\n");
    let _plugin = node.start_plugin();
    node.until(|it| it.is_connected).await;
    node.restart().await;
    node.until(|it| it.is_connected && it.devices.len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_plugin_that_stays_away_has_nothing_after_five_minutes() {
    let node = Node::new();
    node.write("devices", "a\n");
    let mut plugin = node.start_plugin();
    // Sockets take real time, of which a paused clock knows nothing.
    tokio::time::resume();
    node.until(|it| it.is_connected).await;
    plugin.shutdown().await;
    node.until(|it| !it.is_connected && it.devices.len() == 1).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(299)).await;
    assert_eq!(node.plugins.news().resources[FAKE].devices.len(), 1);
    tokio::time::advance(Duration::from_secs(2)).await;
    tokio::time::resume();
    node.until(|it| it.devices.is_empty()).await;
}

#[tokio::test]
async fn what_is_no_plugin_does_not_register() {
    let node = Node::new();
    let socket = node.layout.data.join("device-plugins/kubelet.sock");
    while !socket.exists() {
        tokio::task::yield_now().await;
    }
    let kubelet = Client::new(&socket).expect("a path");
    for (version, endpoint, resource, why) in [
        (
            "v1",
            "a.sock",
            FAKE,
            "requested API version \"v1\" is not supported by kubelet. Supported versions are [\"v1beta1\"]",
        ),
        (VERSION, "a.sock", "cpu", "the ResourceName \"cpu\" is invalid"),
        (VERSION, "a.sock", "kubernetes.io/it", "the ResourceName \"kubernetes.io/it\" is invalid"),
        (VERSION, "a.sock", "example.com/a b", "the ResourceName \"example.com/a b\" is invalid"),
        (VERSION, "../a.sock", FAKE, "the endpoint \"../a.sock\" is not the name of a socket in device-plugins"),
        (VERSION, "kubelet.sock", FAKE, "the endpoint \"kubelet.sock\" is not the name of a socket in device-plugins"),
    ] {
        let request = RegisterRequest {
            version: version.into(),
            endpoint: endpoint.into(),
            resource_name: resource.into(),
            options: None,
        };
        let refused = kubelet.call::<_, Empty>(REGISTER, request, PATIENCE).await.expect_err("refused");
        assert_eq!((refused.code(), refused.message()), (Code::Unknown, why));
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&socket).expect("there").permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn devices_are_not_written_down_where_a_uid_leads_elsewhere() {
    let node = Node::new();
    node.write("devices", "a\n");
    let _plugin = node.start_plugin();
    node.until(|it| it.is_connected).await;
    let refused = node.plugins.allocate("../u", wish(&["a"], 1)).await.expect_err("refused");
    assert_eq!(refused, "cannot write down the devices of the pod: \"../u\" is not the uid of a Pod");
}

#[tokio::test]
async fn whoever_waits_for_news_does_not_hold_up_that_all_is_told_again() {
    let node = Node::new();
    node.plugins.next_news().await;
    let waiting = node.plugins.next_news();
    tokio::pin!(waiting);
    assert!((&mut waiting).now_or_never().is_none());
    node.plugins.renew();
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is told again");
}
