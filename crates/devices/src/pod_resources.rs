//! Tells whoever watches this machine which Pods have which devices: the kubelet's PodResources API, `v1`.

use std::{collections::BTreeMap, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_grpc::{Answer, Service, Status, one};
use corten_kubelet::{AllocatedDevices, DeviceNews, PodRef};
use corten_machine::Layout;
use prost::Message;

use crate::{
    DevicePlugins,
    messages::{
        AllocatableResources, ContainerDevices, ContainerResources, GetPodResources, NumaNode, OnePodResources,
        PodResources, PodResourcesList, TopologyInfo,
    },
};

/// In the kubelet's folder.
const SOCKET: &str = "pod-resources/kubelet.sock";
const LIST: &str = "/v1.PodResourcesLister/List";
const GET: &str = "/v1.PodResourcesLister/Get";
const ALLOCATABLE: &str = "/v1.PodResourcesLister/GetAllocatableResources";
const RETRY: Duration = Duration::from_secs(10);

/// The Pods that run here, each with the names of its containers.
pub type RunningPods = Vec<(PodRef, Vec<String>)>;

/// Says what runs on this node.
pub trait Running: Send + Sync + 'static {
    /// Asks the runtime.
    fn pods(&self) -> Pin<Box<dyn Future<Output = Result<RunningPods, String>> + Send + '_>>;
}

/// What answers there.
pub struct PodResourcesServer {
    socket: PathBuf,
    plugins: DevicePlugins,
    running: Arc<dyn Running>,
}

impl PodResourcesServer {
    pub fn new(layout: &Layout, plugins: DevicePlugins, running: Arc<dyn Running>) -> Self {
        Self { socket: layout.data.join(SOCKET), plugins, running }
    }

    /// Answers, for ever.
    pub async fn run(self) {
        let server = Arc::new(self);
        loop {
            match corten_grpc::listen(&server.socket) {
                Ok(listener) => corten_grpc::serve(listener, server.clone()).await,
                Err(error) => tracing::error!(%error, "nobody can ask which pods have which devices"),
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn pods(&self) -> Result<Vec<PodResources>, Status> {
        let running = self.running.pods().await.map_err(Status::internal)?;
        let news = self.plugins.news();
        Ok(running.into_iter().map(|(pod, containers)| of_pod(&pod, containers, &news)).collect())
    }

    async fn one(&self, question: Bytes) -> Result<Answer, Status> {
        let wanted = GetPodResources::decode(question).map_err(|it| Status::invalid_argument(it.to_string()))?;
        let is_it = |it: &PodResources| (&it.name, &it.namespace) == (&wanted.pod_name, &wanted.pod_namespace);
        let pod_resources = self.pods().await?.into_iter().find(is_it);
        let GetPodResources { pod_name, pod_namespace } = &wanted;
        let missing = || Status::unknown(format!("pod {pod_name} in namespace {pod_namespace} not found"));
        Ok(one(&OnePodResources { pod_resources: Some(pod_resources.ok_or_else(missing)?) }))
    }

    fn allocatable(&self) -> Answer {
        let news = self.plugins.news();
        let of_resource = |(name, resource): (&String, &corten_kubelet::DeviceResource)| {
            let healthy = resource.devices.iter().filter(|it| resource.is_connected && it.1.is_healthy);
            by_node(name, healthy.map(|it| (it.0.as_str(), it.1.numa_nodes.clone())))
        };
        one(&AllocatableResources { devices: news.resources.iter().flat_map(of_resource).collect() })
    }
}

impl Service for PodResourcesServer {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        question: Bytes,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Status>> + Send + 'a>> {
        Box::pin(async move {
            match method {
                LIST => Ok(one(&PodResourcesList { pod_resources: self.pods().await? })),
                GET => self.one(question).await,
                ALLOCATABLE => Ok(self.allocatable()),
                _ => Err(Status::unimplemented(format!("unknown method {method}"))),
            }
        })
    }
}

fn of_pod(pod: &PodRef, containers: Vec<String>, news: &DeviceNews) -> PodResources {
    let allocated = news.allocated.get(&pod.uid).map(Vec::as_slice).unwrap_or_default();
    let of_container = |name: String| {
        let own = allocated.iter().filter(|it| it.container == name);
        ContainerResources { devices: own.flat_map(|it| given(it, news)).collect(), name }
    };
    PodResources {
        name: pod.key.name.clone(),
        namespace: pod.key.namespace.clone(),
        containers: containers.into_iter().map(of_container).collect(),
    }
}

fn given(it: &AllocatedDevices, news: &DeviceNews) -> Vec<ContainerDevices> {
    let known = news.resources.get(&it.resource);
    let nodes = |id: &String| known.and_then(|it| it.devices.get(id)).map(|it| it.numa_nodes.clone());
    by_node(&it.resource, it.ids.iter().map(|id| (id.as_str(), nodes(id).unwrap_or_default())))
}

/// An entry for the devices of each place, as the kubelet's `ResourceDeviceInstances` has it.
fn by_node<'a>(resource: &str, devices: impl Iterator<Item = (&'a str, Vec<i64>)>) -> Vec<ContainerDevices> {
    let mut places: BTreeMap<Vec<i64>, Vec<String>> = BTreeMap::new();
    for (id, nodes) in devices {
        places.entry(nodes).or_default().push(id.to_owned());
    }
    let place = |(nodes, device_ids): (Vec<i64>, Vec<String>)| ContainerDevices {
        resource_name: resource.to_owned(),
        device_ids,
        topology: (!nodes.is_empty())
            .then(|| TopologyInfo { nodes: nodes.into_iter().map(|id| NumaNode { id }).collect() }),
    };
    places.into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use corten_grpc::Client;

    use super::*;
    use crate::messages::Empty;

    struct One;

    impl Running for One {
        fn pods(&self) -> Pin<Box<dyn Future<Output = Result<RunningPods, String>> + Send + '_>> {
            Box::pin(async { Ok(vec![(PodRef::new("default", "web", "u1"), vec!["c".to_owned(), "d".to_owned()])]) })
        }
    }

    #[tokio::test]
    async fn whoever_asks_is_told_which_pod_has_which_devices() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout::new(folder.path().join("data"), folder.path().join("run"));
        let devices = |ids: &[&str]| ids.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let given = [AllocatedDevices {
            container: "c".into(),
            resource: "example.com/fake".into(),
            ids: devices(&["a", "b"]),
            ..AllocatedDevices::default()
        }];
        crate::records::Records::new(&layout).write("u1", &given).expect("written");
        let server = PodResourcesServer::new(&layout, DevicePlugins::new(&layout), Arc::new(One));
        let listener = corten_grpc::listen(&server.socket).expect("bound");
        let (client, mut tasks) = (Client::new(&server.socket).expect("a path"), tokio::task::JoinSet::new());
        tasks.spawn(corten_grpc::serve(listener, Arc::new(server)));

        let patience = Duration::from_secs(10);
        let all: PodResourcesList = client.call(LIST, Empty {}, patience).await.expect("answered");
        let pod = &all.pod_resources[0];
        assert_eq!((pod.name.as_str(), pod.containers.len()), ("web", 2));
        assert_eq!(pod.containers[0].devices[0].device_ids, ["a", "b"]);
        assert!(pod.containers[1].devices.is_empty());
        let wanted = |name: &str| GetPodResources { pod_name: name.into(), pod_namespace: "default".into() };
        let one: OnePodResources = client.call(GET, wanted("web"), patience).await.expect("answered");
        assert_eq!(one.pod_resources.as_ref(), Some(pod));
        let missing = client.call::<_, OnePodResources>(GET, wanted("no"), patience).await.expect_err("not there");
        assert_eq!(missing.message(), "pod no in namespace default not found");
        let free: AllocatableResources = client.call(ALLOCATABLE, Empty {}, patience).await.expect("answered");
        assert!(free.devices.is_empty());
    }
}
