//! A driver as others write them, at a socket, which fails where it is told to.

use std::{
    convert::Infallible,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::{BufMut, Bytes, BytesMut};
use corten_kubelet::{Backend, CsiVolume, PersistentMount, Secrets};
use corten_machine::{Layout, NodeMounts};
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http2,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use prost::Message;
use tokio::{net::UnixListener, task::JoinSet};

use super::{client, follow_registrations, messages as m};
use crate::{Drivers, Mounter};

#[derive(Default)]
struct Sample {
    /// What it was asked, in order.
    asked: Mutex<Vec<String>>,
    /// Method and gRPC code.
    fault: Mutex<Option<(&'static str, u8)>>,
    name: String,
}

type Answer = StreamBody<stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>>;

fn answer(message: &[u8], code: u8) -> Response<Answer> {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("small"));
    framed.put(message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", u16::from(code).into());
    trailers.insert("grpc-message", http::HeaderValue::from_static("told to fail"));
    let data = (code == 0).then(|| Ok(Frame::data(framed.freeze())));
    let frames: Vec<_> = data.into_iter().chain([Ok(Frame::trailers(trailers))]).collect();
    let mut response = Response::new(StreamBody::new(stream::iter(frames)));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/grpc"));
    response
}

impl Sample {
    async fn serve(self: Arc<Self>, socket: PathBuf) {
        let listener = UnixListener::bind(&socket).expect("bound");
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let sample = self.clone();
            let service = service_fn(move |request| {
                let sample = sample.clone();
                async move { Ok::<_, Infallible>(sample.answer(request).await) }
            });
            connections
                .spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service));
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Answer> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect().await.expect("read").to_bytes();
        let question = body.get(5..).unwrap_or_default();
        if let Some((_, code)) = self.fault.lock().filter(|it| it.0 == path) {
            return answer(b"", code);
        }
        let asked = |what: String| self.asked.lock().push(what);
        let message = match &*path {
            client::GET_INFO => m::PluginInfo {
                r#type: "CSIPlugin".into(),
                name: self.name.clone(),
                endpoint: String::new(),
                supported_versions: vec!["1.0.0".into()],
            }
            .encode_to_vec(),
            client::CAPABILITIES => {
                let of = |it| m::Capability { rpc: Some(m::Rpc { r#type: it }) };
                m::Capabilities { capabilities: vec![of(m::STAGES), of(m::EXPANDS)] }.encode_to_vec()
            }
            client::INFO => m::NodeInfo {
                node_id: "node-7".into(),
                max_volumes_per_node: 12,
                accessible_topology: Some(m::Topology { segments: [("zone".into(), "a".into())].into() }),
            }
            .encode_to_vec(),
            client::NOTIFY => {
                let status = m::RegistrationStatus::decode(question).expect("a status");
                asked(format!("registered {} {}", status.plugin_registered, status.error));
                Vec::new()
            }
            client::STAGE => {
                let it = m::NodeStageVolume::decode(question).expect("a volume");
                let mode = it.volume_capability.and_then(|it| it.access_mode);
                asked(format!("stage {} {mode:?} {:?}", it.volume_id, it.secrets));
                Vec::new()
            }
            client::PUBLISH => {
                let it = m::NodePublishVolume::decode(question).expect("a volume");
                std::fs::create_dir_all(&it.target_path).expect("made");
                asked(format!("publish {} read-only {} {:?}", it.volume_id, it.readonly, it.volume_context));
                Vec::new()
            }
            client::UNPUBLISH | client::UNSTAGE => {
                let it = m::NodeTakeAway::decode(question).expect("a volume");
                let what = path.rsplit('/').next().unwrap_or_default();
                asked(format!("{what} {}", it.volume_id));
                Vec::new()
            }
            _ => return answer(b"", 12),
        };
        answer(&message, 0)
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

fn mount(driver: &str) -> PersistentMount {
    let volume = CsiVolume {
        driver: driver.into(),
        handle: "h1".into(),
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
    }
}

struct World {
    _dir: tempfile::TempDir,
    layout: Layout,
    drivers: Drivers,
    tasks: JoinSet<()>,
}

fn world() -> World {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
    std::fs::create_dir_all(layout.data.join("plugins_registry")).expect("made");
    let (drivers, mut tasks) = (Drivers::default(), JoinSet::new());
    tasks.spawn(follow_registrations(layout.clone(), drivers.clone()));
    World { _dir: dir, layout, drivers, tasks }
}

impl World {
    fn socket(&self) -> PathBuf {
        self.layout.data.join("plugins_registry/sample.sock")
    }

    fn serve(&mut self, name: &str) -> Arc<Sample> {
        let sample = Arc::new(Sample { name: name.into(), ..Sample::default() });
        self.tasks.spawn(sample.clone().serve(self.socket()));
        sample
    }

    async fn until(&self, is_there: bool) {
        let mut drivers = self.drivers.follow();
        drivers.wait_for(|it| it.contains_key("sample.example") == is_there).await.expect("followed");
    }
}

#[tokio::test]
async fn a_driver_comes_is_used_and_goes() {
    let mut world = world();
    let sample = world.serve("sample.example");
    world.until(true).await;
    assert_eq!(sample.asked(), ["registered true "]);
    let driver = world.drivers.get("sample.example").expect("there");
    let facts = driver.facts();
    assert_eq!((facts.node_id.as_str(), facts.limit, facts.provisions), ("node-7", Some(12), false));
    assert_eq!(facts.topology["zone"], "a");

    let mounter = Mounter::new(world.layout.clone(), NodeMounts::own(), world.drivers.clone());
    mounter.set_up("u1", &mount("sample.example")).await.expect("published");
    assert_eq!(
        sample.asked(),
        ["stage h1 Some(AccessMode { mode: 1 }) {\"key\": \"s3cret\"}", "publish h1 read-only true {\"a\": \"b\"}"]
    );
    *sample.fault.lock() = Some((client::UNPUBLISH, 13));
    let error = mounter.tear_down("u1").await.expect_err("told to fail").to_string();
    assert_eq!(error, "kubernetes.io/csi: Unmounter.TearDownAt failed: rpc error: code = Internal desc = told to fail");
    *sample.fault.lock() = None;
    mounter.tear_down("u1").await.expect("taken away");
    assert_eq!(sample.asked(), ["NodeUnpublishVolume h1", "NodeUnstageVolume h1"]);

    std::fs::remove_file(world.socket()).expect("removed");
    world.until(false).await;
    let error = mounter.set_up("u1", &mount("sample.example")).await.expect_err("it is gone").to_string();
    assert!(error.contains("not found in the list of registered CSI drivers"), "{error}");
}

#[tokio::test]
async fn what_fails_between_two_steps_is_taken_away() {
    let mut world = world();
    let sample = world.serve("sample.example");
    world.until(true).await;
    sample.asked();
    let mounter = Mounter::new(world.layout.clone(), NodeMounts::own(), world.drivers.clone());
    *sample.fault.lock() = Some((client::PUBLISH, 9));
    let error = mounter.set_up("u1", &mount("sample.example")).await.expect_err("told to fail").to_string();
    assert!(error.ends_with("rpc error: code = FailedPrecondition desc = told to fail"), "{error}");
    *sample.fault.lock() = None;
    mounter.tear_down("u1").await.expect("taken away");
    let asked = sample.asked();
    assert_eq!(asked[1..], ["NodeUnpublishVolume h1", "NodeUnstageVolume h1"], "{asked:?}");
}

#[tokio::test]
async fn nobody_takes_the_built_in_drivers_name() {
    for bad in ["local.corten.dev", "../../x", ""] {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let socket = dir.path().join("s.sock");
        let sample = Arc::new(Sample { name: bad.into(), ..Sample::default() });
        let mut tasks = JoinSet::new();
        tasks.spawn(sample.clone().serve(socket.clone()));
        let info = m::PluginInfo {
            r#type: "CSIPlugin".into(),
            name: bad.into(),
            endpoint: String::new(),
            supported_versions: vec!["1.0.0".into()],
        };
        let roots = (PathBuf::from("/a"), PathBuf::from("/a"));
        super::registration::introduce(&info, Path::new(&socket), &roots).await.expect_err(bad);
    }
}
