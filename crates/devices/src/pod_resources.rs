//! Tells whoever watches this machine which Pods have which devices: the kubelet's PodResources API, `v1`.

use std::{collections::BTreeMap, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use corten_grpc::{Answer, Service, Status, one, read};
use corten_kubelet::{AllocatedDevices, DeviceNews, MemoryBlock, PodRef, Shares};
use corten_machine::Layout;

use crate::{
    ClaimDrivers, DevicePlugins,
    claims::records::Record,
    messages::{
        AllocatableResources, CdiDevice, ClaimResource, ContainerDevices, ContainerMemory, ContainerResources,
        DynamicResource, GetPodResources, NumaNode, OnePodResources, PodResources, PodResourcesList, TopologyInfo,
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
pub trait PodsProvider: Send + Sync + 'static {
    /// Asks the runtime.
    fn pods(&self) -> Pin<Box<dyn Future<Output = Result<RunningPods, String>> + Send + '_>>;

    /// Which CPUs and which memory containers have for themselves.
    fn shares(&self) -> Pin<Box<dyn Future<Output = Result<Shares, String>> + Send + '_>>;
}

/// What answers there.
pub struct PodResourcesServer {
    socket: PathBuf,
    plugins: DevicePlugins,
    claims: ClaimDrivers,
    running: Arc<dyn PodsProvider>,
}

/// Who has what.
struct Allocations {
    devices: DeviceNews,
    claims: BTreeMap<String, Record>,
    shares: Shares,
}

impl PodResourcesServer {
    pub fn new(layout: &Layout, plugins: DevicePlugins, claims: ClaimDrivers, running: Arc<dyn PodsProvider>) -> Self {
        Self { socket: layout.data.join(SOCKET), plugins, claims, running }
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
        let shares = self.running.shares().await.map_err(Status::internal)?;
        let claims = self.claims.all().await.into_iter().collect();
        let given = Allocations { devices: self.plugins.news(), claims, shares };
        Ok(running.into_iter().map(|(pod, containers)| of_pod(&pod, containers, &given)).collect())
    }

    async fn one(&self, question: Bytes) -> Result<Answer, Status> {
        let wanted: GetPodResources = read(question)?;
        let is_it = |it: &PodResources| (&it.name, &it.namespace) == (&wanted.pod_name, &wanted.pod_namespace);
        let pod_resources = self.pods().await?.into_iter().find(is_it);
        let GetPodResources { pod_name, pod_namespace } = &wanted;
        let missing = || Status::unknown(format!("pod {pod_name} in namespace {pod_namespace} not found"));
        Ok(one(&OnePodResources { pod_resources: Some(pod_resources.ok_or_else(missing)?) }))
    }

    async fn allocatable(&self) -> Result<Answer, Status> {
        let shares = self.running.shares().await.map_err(Status::internal)?;
        let news = self.plugins.news();
        let of_resource = |(name, resource): (&String, &corten_kubelet::DeviceResource)| {
            let healthy = resource.devices.iter().filter(|it| resource.is_connected && it.1.is_healthy);
            by_node(name, healthy.map(|it| (it.0.as_str(), it.1.numa_nodes.clone())))
        };
        Ok(one(&AllocatableResources {
            devices: news.resources.iter().flat_map(of_resource).collect(),
            cpu_ids: shares.cpus.iter().map(i64::from).collect(),
            memory: shares.memory.iter().map(memory).collect(),
        }))
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
                ALLOCATABLE => self.allocatable().await,
                _ => Err(Status::unimplemented(format!("unknown method {method}"))),
            }
        })
    }
}

fn of_pod(pod: &PodRef, containers: Vec<String>, given: &Allocations) -> PodResources {
    let allocated = given.devices.allocated.get(&pod.uid).map(Vec::as_slice).unwrap_or_default();
    let of_container = |name: String| {
        let own = allocated.iter().filter(|it| it.container == name);
        let share = given.shares.pods.get(&pod.uid).and_then(|it| it.get(&name));
        ContainerResources {
            devices: own.flat_map(|it| plugged(it, &given.devices)).collect(),
            cpu_ids: share.into_iter().flat_map(|it| it.cpus.iter()).map(i64::from).collect(),
            memory: share.into_iter().flat_map(|it| &it.memory).map(memory).collect(),
            dynamic_resources: given.claims.get(&pod.uid).map(|it| claims(it, &name)).unwrap_or_default(),
            name,
        }
    };
    PodResources {
        name: pod.key.name.clone(),
        namespace: pod.key.namespace.clone(),
        containers: containers.into_iter().map(of_container).collect(),
    }
}

/// What the container has of the claims that it names.
fn claims(record: &Record, container: &str) -> Vec<DynamicResource> {
    let prepared = record.prepared.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    for claim in &record.claims {
        let users: Vec<_> = claim.users.iter().filter(|it| it.container == container).collect();
        let devices = prepared.iter().filter(|it| it.in_pod == claim.in_pod);
        let of_container = devices
            .flat_map(|it| users.iter().flat_map(|user| it.devices_for(user.request.as_deref())))
            .map(|it| ClaimResource {
                cdi_devices: it.cdi_devices.iter().map(|it| CdiDevice { name: it.clone() }).collect(),
                driver_name: it.driver.clone(),
                pool_name: it.pool.clone(),
                device_name: it.device.clone(),
            });
        let claim_resources: Vec<_> = of_container.collect();
        if !users.is_empty() {
            let (claim_name, claim_namespace) = (claim.claim.clone(), record.namespace.clone());
            found.push(DynamicResource { claim_name, claim_namespace, claim_resources });
        }
    }
    found
}

fn memory(block: &MemoryBlock) -> ContainerMemory {
    let nodes = block.nodes.iter().map(|id| NumaNode { id: i64::from(id) }).collect();
    let topology = Some(TopologyInfo { nodes });
    ContainerMemory { memory_type: block.kind.clone(), size: block.size, topology }
}

fn plugged(it: &AllocatedDevices, news: &DeviceNews) -> Vec<ContainerDevices> {
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
    use corten_kubelet::{PreparedClaim, PreparedDevice, ReservedClaim, Share};

    use super::*;
    use crate::messages::Empty;

    struct One;

    impl PodsProvider for One {
        fn pods(&self) -> Pin<Box<dyn Future<Output = Result<RunningPods, String>> + Send + '_>> {
            Box::pin(async { Ok(vec![(PodRef::new("default", "web", "u1"), vec!["c".to_owned(), "d".to_owned()])]) })
        }

        fn shares(&self) -> Pin<Box<dyn Future<Output = Result<Shares, String>> + Send + '_>> {
            let memory = vec![MemoryBlock { kind: "memory".into(), size: 7, nodes: [0, 1].into_iter().collect() }];
            let share = Share { cpus: [2, 3].into_iter().collect(), memory: memory.clone() };
            let pods = [("u1".to_owned(), [("c".to_owned(), share)].into())].into();
            Box::pin(async { Ok(Shares { cpus: [1, 2, 3].into_iter().collect(), memory, pods }) })
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
        let claim: ReservedClaim = serde_json::from_str(
            r#"{"inPod":"gpu","claim":"web-gpu","uid":"u2","users":[{"container":"d","request":"r"}]}"#,
        )
        .expect("a claim");
        let device = |name: &str, request: &str| PreparedDevice {
            requests: vec![request.to_owned()],
            driver: "gpu.example.com".into(),
            device: name.to_owned(),
            cdi_devices: vec![format!("gpu.example.com/gpu={name}")],
            ..PreparedDevice::default()
        };
        let prepared = PreparedClaim { in_pod: "gpu".into(), devices: vec![device("x", "r"), device("y", "other")] };
        let (namespace, name, prepared) = ("default".into(), "web".into(), Some(vec![prepared]));
        let record = Record { namespace, name, claims: vec![claim], prepared };
        crate::claims::records::Records::new(&layout).write("u1", &record).expect("written");
        let (plugins, claims) = (DevicePlugins::new(&layout), ClaimDrivers::new(&layout));
        let server = PodResourcesServer::new(&layout, plugins, claims, Arc::new(One));
        let listener = corten_grpc::listen(&server.socket).expect("bound");
        let (client, mut tasks) = (Client::new(&server.socket).expect("a path"), tokio::task::JoinSet::new());
        tasks.spawn(corten_grpc::serve(listener, Arc::new(server)));

        let patience = Duration::from_secs(10);
        let all: PodResourcesList = client.call(LIST, Empty {}, patience).await.expect("answered");
        let pod = &all.pod_resources[0];
        assert_eq!((pod.name.as_str(), pod.containers.len()), ("web", 2));
        assert_eq!(pod.containers[0].devices[0].device_ids, ["a", "b"]);
        assert!(pod.containers[1].devices.is_empty());
        let [c, d] = &pod.containers[..] else { panic!("two containers") };
        assert_eq!((&c.cpu_ids[..], c.memory[0].size, c.dynamic_resources.len()), (&[2, 3][..], 7, 0));
        assert_eq!(c.memory[0].topology.as_ref().map(|it| it.nodes.len()), Some(2));
        assert_eq!((d.cpu_ids.len(), d.memory.len(), &*d.dynamic_resources[0].claim_name), (0, 0, "web-gpu"));
        let [device] = &d.dynamic_resources[0].claim_resources[..] else { panic!("one device") };
        assert_eq!((&*device.device_name, &*device.cdi_devices[0].name), ("x", "gpu.example.com/gpu=x"));
        let wanted = |name: &str| GetPodResources { pod_name: name.into(), pod_namespace: "default".into() };
        let one: OnePodResources = client.call(GET, wanted("web"), patience).await.expect("answered");
        assert_eq!(one.pod_resources.as_ref(), Some(pod));
        let missing = client.call::<_, OnePodResources>(GET, wanted("no"), patience).await.expect_err("not there");
        assert_eq!(missing.message(), "pod no in namespace default not found");
        let free: AllocatableResources = client.call(ALLOCATABLE, Empty {}, patience).await.expect("answered");
        assert!(free.devices.is_empty());
        assert_eq!((&free.cpu_ids[..], free.memory.len()), (&[1, 2, 3][..], 1));
    }
}
