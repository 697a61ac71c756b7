//! One node, for real: a private containerd, Pods with a network, crashes, and a machine left as it was found.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use corten_kubelet::Qos;
use corten_machine::{Cgroups, Layout, PodLimits, command, mounts};
use futures_util::StreamExt;
use rustix::process::{Signal, kill_process};
use tokio::{sync::watch, time::timeout};

use crate::{
    Containerd, Cri, Options, RuntimeEvent,
    containerd::{self, left_tasks},
    cri, events,
    logs::{self, LogOptions, RotateLimits},
    stop_all,
};

const IN_TIME: Duration = Duration::from_secs(60);

/// The archives that `images/build` makes, where it has been run and containers can be.
async fn archives(names: &[&str]) -> Option<Vec<PathBuf>> {
    let cache =
        std::env::var_os("CORTEN_IMAGES").map_or_else(|| PathBuf::from("/var/cache/corten/images"), PathBuf::from);
    let archives: Vec<PathBuf> = names.iter().map(|it| cache.join(it)).collect();
    let is_root = rustix::process::geteuid().is_root();
    let has_containerd = is_root && command::run("containerd", &["--version"], "").await.is_ok();
    let found = has_containerd && archives.iter().all(|it| it.exists());
    if !found {
        eprintln!("skipped: needs root and containerd, and what images/build makes");
    }
    found.then_some(archives)
}

/// A node of its own beside the machine's, and beside that of other tests.
fn layout(test: u8) -> Layout {
    // A socket's path is short.
    let place = PathBuf::from(format!("/tmp/corten-{}-{test}", std::process::id()));
    Layout {
        cgroup_root: format!("corten-test-{}-{test}", std::process::id()),
        bridge: format!("cortentest{test}"),
        nft_table: format!("corten_test{test}"),
        image_folders: vec![place.join("images")],
        ..Layout::new(place.join("data"), place.join("run"))
    }
}

async fn start(layout: &Layout) -> Containerd {
    let pod_cidr = format!("10.245.{}.0/24", layout.bridge.trim_start_matches("cortentest"));
    let options = Options { pod_cidrs: vec![pod_cidr], ..Options::default() };
    timeout(IN_TIME, Containerd::start(layout.clone(), options)).await.expect("in time").expect("started")
}

fn sandbox(layout: &Layout, cgroups: &Cgroups) -> cri::PodSandboxConfig {
    cri::PodSandboxConfig {
        metadata: Some(cri::PodSandboxMetadata {
            name: "web".to_owned(),
            uid: "u1".to_owned(),
            namespace: "default".to_owned(),
            attempt: 0,
        }),
        hostname: "web".to_owned(),
        log_directory: layout.pod_logs("default", "web", "u1").to_string_lossy().into_owned(),
        port_mappings: vec![cri::PortMapping { container_port: 80, host_port: 18_177, ..Default::default() }],
        labels: BTreeMap::from([("io.kubernetes.pod.uid".to_owned(), "u1".to_owned())]),
        linux: Some(cri::LinuxPodSandboxConfig {
            cgroup_parent: cgroups.parent(Qos::BestEffort, "u1"),
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn shell(name: &str, script: &str) -> cri::ContainerConfig {
    cri::ContainerConfig {
        metadata: Some(cri::ContainerMetadata { name: name.to_owned(), attempt: 0 }),
        image: Some(cri::ImageSpec { image: "busybox:1.35".to_owned(), ..Default::default() }),
        command: vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
        log_path: Layout::relative_container_log(name, 0),
        ..Default::default()
    }
}

/// Runs `pods` on a node, whatever comes of it takes the node away, and looks that nothing is left.
async fn on_a_node<F: Future<Output = ()> + Send + 'static>(
    test: u8,
    archives: Vec<PathBuf>,
    pods: impl FnOnce(Layout, Containerd) -> F,
) {
    let layout = layout(test);
    let images = &layout.image_folders[0];
    fs::create_dir_all(images).expect("a folder");
    for archive in archives {
        fs::copy(&archive, images.join(archive.file_name().expect("a name"))).expect("copied");
    }
    let node = start(&layout).await;
    node.import_images(|_| true).await;
    let outcome = tokio::spawn(pods(layout.clone(), node)).await;
    let stopped = timeout(IN_TIME, stop_all(&layout)).await.expect("in time");
    leaves_nothing(&layout).await;
    crate::erase(&layout).expect("erased");
    assert!(!layout.data.exists());
    let _ = fs::remove_dir_all(layout.data.parent().expect("a folder"));
    outcome.expect("the pods did as they should");
    stopped.expect("stopped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_runs_pods_through_crashes_and_leaves_nothing() {
    let Some(archives) = archives(&["pause.tar", "busybox.tar"]).await else { return };
    on_a_node(177, archives, run_pods).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_answers_from_inside() {
    let Some(archives) = archives(&["pause.tar", "demo.tar"]).await else { return };
    on_a_node(178, archives, run_demo).await;
}

/// `user` says which of the others is not there yet, and in the end proves that it talked to both.
async fn run_demo(layout: Layout, node: Containerd) {
    let cri = node.cri();
    let cgroups = Cgroups::detect(&layout);
    cgroups.create_pod(Qos::BestEffort, "u1", &PodLimits::default()).expect("made");
    let config = sandbox(&layout, &cgroups);
    let pod = cri.run_pod_sandbox(config.clone(), "").await.expect("a sandbox");
    let ip = cri.pod_sandbox_status(&pod).await.expect("answered").network.expect("a network").ip;
    let password = cri::KeyValue { key: "MYSQL_ROOT_PASSWORD".to_owned(), value: "it's \\ secret".to_owned() };
    let mut answers = Vec::new();
    for (name, image) in [("user", "user"), ("redis", "redis:5.0"), ("mysql", "mysql-for-user")] {
        let container = cri::ContainerConfig {
            metadata: Some(cri::ContainerMetadata { name: name.to_owned(), attempt: 0 }),
            image: Some(cri::ImageSpec { image: image.to_owned(), ..Default::default() }),
            envs: vec![password.clone()],
            log_path: Layout::relative_container_log(name, 0),
            ..Default::default()
        };
        let container = cri.create_container(&pod, container, config.clone()).await.expect("created");
        cri.start_container(&container).await.expect("started");
        answers.push(answer(&ip, |it| it.contains("mysql is not up")).await);
    }
    assert!(answers[0].contains("503 Service Unavailable") && answers[0].contains("redis is not up"), "{}", answers[0]);
    let last = answer(&ip, |it| it.contains("200 OK")).await;
    assert!(last.contains("\"ping\":\"PONG\"") && last.contains("-MariaDB") && last.contains("\"visits\":1"), "{last}");
}

/// containerd's part for CRI does not know of the task, as after a start that was taken back.
async fn remove_what_runs_unknown(layout: &Layout, cri: &Cri, pod: &str, config: cri::PodSandboxConfig) {
    let left = cri.create_container(pod, shell("left", "sleep 1000"), config).await.expect("created");
    let socket = layout.containerd_socket();
    let of_node = ["--address", &socket.to_string_lossy(), "--namespace", "k8s.io"];
    let started = [&of_node[..], &["tasks", "start", "--detach", "--null-io", &left]].concat();
    command::run("ctr", &started, "").await.expect("started");

    let refused = cri.remove_container(&left).await.expect_err("its task runs");
    assert!(refused.message.contains("failed precondition"), "{refused}");
    assert!(left_tasks::end(layout, &refused.message).await, "{refused}");
    cri.remove_container(&left).await.expect("removed");
}

/// What the Pod says, as soon as it is what is waited for.
async fn answer(ip: &str, wanted: impl Fn(&str) -> bool) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let ask = async || -> std::io::Result<String> {
        let mut stream = tokio::net::TcpStream::connect((ip, 10086)).await?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        Ok(text)
    };
    let asking = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(50));
        loop {
            ticks.tick().await;
            match ask().await {
                Ok(text) if wanted(&text) => return text,
                _ => {}
            }
        }
    };
    timeout(IN_TIME, asking).await.expect("in time")
}

async fn run_pods(layout: Layout, node: Containerd) {
    let cri = node.cri();
    let status = cri.status().await.expect("answered");
    assert!(status.conditions.iter().all(|it| it.status), "{status:?}");
    assert_eq!(cri.version().await.expect("answered").runtime_name, "containerd");
    assert!(cri.image_status("busybox:1.35").await.expect("answered").is_some());
    assert!(cri.image_status("busybox:0").await.expect("answered").is_none());
    let mut happened = events(&layout.containerd_socket());
    assert_eq!(timeout(IN_TIME, happened.next()).await.expect("in time"), Some(RuntimeEvent::Connected));

    let cgroups = Cgroups::detect(&layout);
    cgroups.create_pod(Qos::BestEffort, "u1", &PodLimits::default()).expect("made");
    let config = sandbox(&layout, &cgroups);
    let pod = cri.run_pod_sandbox(config.clone(), "").await.expect("a sandbox");
    let ip = cri.pod_sandbox_status(&pod).await.expect("answered").network.expect("a network").ip;
    assert!(ip.starts_with("10.245.177."), "{ip}");

    // A container that ends is heard of at once, and its log and exit code are there.
    let brief = shell("brief", "echo hello; echo oops >&2; exit 3");
    let brief = cri.create_container(&pod, brief, config.clone()).await.expect("created");
    cri.start_container(&brief).await.expect("started");
    loop {
        let event = timeout(IN_TIME, happened.next()).await.expect("in time").expect("endless");
        if event == (RuntimeEvent::Exited { container: brief.clone() }) {
            break;
        }
    }
    let mut ended = cri.container_status(&brief).await.expect("answered");
    while ended.state() != cri::ContainerState::Exited {
        tokio::task::yield_now().await; // CRI learns it from the same event, a moment later
        ended = cri.container_status(&brief).await.expect("answered");
    }
    assert_eq!(ended.exit_code, 3);
    remove_what_runs_unknown(&layout, &cri, &pod, config.clone()).await;
    let (_, ended) = watch::channel(false);
    let log = layout.container_log("default", "web", "u1", "brief", 0);
    let text: Vec<_> = logs::read(log, LogOptions { tail_lines: Some(1), ..Default::default() }, ended).collect().await;
    assert_eq!(text.len(), 1);

    // A command that is not there is the container's failure, not the runtime's.
    let broken = cri::ContainerConfig { command: vec!["/no/such".to_owned()], ..shell("broken", "") };
    let broken = cri.create_container(&pod, broken, config.clone()).await.expect("created");
    let error = cri.start_container(&broken).await.expect_err("nothing to start");
    assert!(error.message.contains("/no/such"), "{error}");

    let long = cri
        .create_container(&pod, shell("long", "mkfifo /say; while :; do cat /say; done"), config)
        .await
        .expect("created");
    cri.start_container(&long).await.expect("started");
    let command = ["sh", "-c", "echo out; exit 7"].map(str::to_owned).to_vec();
    let executed = cri.exec_sync(&long, command, Duration::from_secs(10)).await.expect("executed");
    assert_eq!((executed.stdout.as_slice(), executed.exit_code), (&b"out\n"[..], 7));
    let url = cri.exec(cri::ExecRequest {
        container_id: long.clone(),
        cmd: vec!["true".to_owned()],
        stdout: true,
        ..Default::default()
    });
    assert!(url.await.expect("a url").starts_with("http://127.0.0.1:"));

    moves_a_large_log_away(&cri, &long).await;
    let before = cri.container_status(&long).await.expect("answered");
    survives(&layout, node, &long, &before).await;
}

/// The container goes on in a new file, with the same name.
async fn moves_a_large_log_away(cri: &Cri, container: &str) {
    let path = PathBuf::from(cri.container_status(container).await.expect("answered").log_path);
    let say = async |script: &str| {
        let command = ["sh", "-c", script].map(str::to_owned).to_vec();
        let said = cri.exec_sync(container, command, Duration::from_secs(10)).await.expect("executed");
        assert_eq!(said.exit_code, 0, "{said:?}");
    };
    let limits = RotateLimits { bytes_max: 4000, files_max: 5 };
    say("until [ -p /say ]; do :; done; yes many | head -n 100 >/say").await;
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let rotated = async {
        // All of it is written before the log is rotated: what comes later would be in the next one.
        while fs::read_to_string(&path).map_or(0, |it| it.matches("many").count()) < 100 {
            ticks.tick().await;
        }
        while logs::rotate_all(cri, limits).await.is_ok() && fs::metadata(&path).is_ok_and(|it| it.len() > 0) {
            ticks.tick().await;
        }
        say("echo after >/say").await;
        while fs::read_to_string(&path).map_or(true, |it| !it.contains("stdout F after")) {
            ticks.tick().await;
        }
    };
    timeout(IN_TIME, rotated).await.expect("in time");
    assert!(!fs::read_to_string(&path).expect("read").contains("many"));
}

/// kill -9 of containerd, then an end of ours: both times the container goes on as it is.
async fn survives(layout: &Layout, node: Containerd, container: &str, before: &cri::ContainerStatus) {
    let (stop, stopping) = watch::channel(false);
    let mut stopping = stopping;
    let supervised = tokio::spawn(async move {
        node.supervise(async move { drop(stopping.wait_for(|it| *it).await) }).await;
        node
    });
    let first = containerd::running(layout).expect("running");
    let mut happened = events(&layout.containerd_socket());
    assert_eq!(timeout(IN_TIME, happened.next()).await.expect("in time"), Some(RuntimeEvent::Connected));
    kill_process(first, Signal::KILL).expect("killed");
    // Connected again: it is back.
    while timeout(IN_TIME, happened.next()).await.expect("in time") != Some(RuntimeEvent::Connected) {}
    let second = containerd::running(layout).expect("running");
    assert_ne!(first, second);
    stop.send(true).expect("heard");
    let node = timeout(IN_TIME, supervised).await.expect("in time").expect("joined");
    assert_eq!(&node.cri().container_status(container).await.expect("answered"), before);

    drop(node);
    let node = start(layout).await;
    assert_eq!(containerd::running(layout), Some(second), "adopted, not started again");
    assert_eq!(&node.cri().container_status(container).await.expect("answered"), before);
}

async fn leaves_nothing(layout: &Layout) {
    assert!(mounts::mounts_beneath(&layout.data).is_empty() && mounts::mounts_beneath(&layout.run).is_empty());
    assert!(!layout.run.exists(), "{:?}", fs::read_dir(&layout.run).map(|it| it.flatten().collect::<Vec<_>>()));
    assert!(!PathBuf::from("/sys/class/net").join(&layout.bridge).exists());
    let rules = command::run("nft", &["list", "ruleset"], "").await.expect("listed");
    assert!(!rules.contains(&layout.nft_table), "{rules}");
    // Another node of this machine may still have host ports; ours must be gone.
    assert!(!rules.contains("dport 18177") && !rules.contains("10.245.177."), "{rules}");
    assert!(Cgroups::detect(layout).pods().is_empty());
    for tree in fs::read_dir("/sys/fs/cgroup").expect("listed").flatten() {
        let names = Cgroups::every(layout).into_iter().flat_map(|it| [it.root(), it.runtime()]);
        for name in names {
            assert!(!tree.path().join(&name).exists() && !tree.path().with_file_name(&name).exists(), "{tree:?}");
        }
    }
    let place = layout.run.to_string_lossy().into_owned();
    for process in fs::read_dir("/proc").expect("listed").flatten() {
        let command_line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&command_line).contains(&place), "{process:?} still runs");
    }
}
