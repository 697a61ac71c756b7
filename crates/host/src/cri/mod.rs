//! The container runtime interface (`runtime.v1`): a call each, typed, with a deadline.
//!
//! The messages beside this file are written by hand and hold what Corten uses; prost skips what it does not know.

mod container;
mod image;
mod sandbox;
mod stats;

use std::{path::Path, time::Duration};

use corten_machine::MachineError;
use http::uri::PathAndQuery;
use tonic::{
    Code,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

pub use container::*;
pub use image::*;
pub use sandbox::*;
pub use stats::*;

/// What a call may take that only reads or changes records. The kubelet's `runtimeRequestTimeout`.
const QUICK: Duration = Duration::from_secs(120);
/// A sandbox waits for its network; twice the usual (`remoteRuntimeService.RunPodSandbox`).
const SANDBOX: Duration = Duration::from_secs(240);
/// A pull has no natural end; a registry that feeds it so slowly is as good as down.
const PULL: Duration = Duration::from_secs(3600);
/// Nothing is waited for longer. A runtime reckons in nanoseconds, and a grace of all time there is would end at once there;
/// gRPC has no words for more than some thousand years.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// A list of many containers, or the output of a chatty exec, is larger than gRPC's usual 4 MiB.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// A call the runtime did not answer as hoped.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{call}: {message}")]
pub struct CriError {
    pub call: &'static str,
    pub code: Code,
    pub message: String,
}

impl From<CriError> for MachineError {
    fn from(error: CriError) -> Self {
        Self::Runtime(Box::new(error))
    }
}

impl CriError {
    pub fn is_not_found(&self) -> bool {
        self.code == Code::NotFound
    }

    /// The runtime could not be reached; whether it acted is not known.
    pub fn is_unavailable(&self) -> bool {
        self.code == Code::Unavailable
    }

    /// Something answers, which has no such service.
    pub fn is_unimplemented(&self) -> bool {
        self.code == Code::Unimplemented
    }

    pub fn is_deadline(&self) -> bool {
        self.code == Code::DeadlineExceeded
    }
}

/// A connection to the runtime. Cheap to clone; connects when first used, and again after the runtime was away.
#[derive(Clone, Debug)]
pub struct Cri {
    channel: Channel,
}

/// A call's name, and the path it is posted to.
macro_rules! path {
    (runtime $method:literal) => {
        ($method, concat!("/runtime.v1.RuntimeService/", $method))
    };
    (image $method:literal) => {
        ($method, concat!("/runtime.v1.ImageService/", $method))
    };
}

pub(crate) fn channel(socket: &Path) -> Result<Channel, CriError> {
    let failed = |message: String| CriError { call: "connect", code: Code::InvalidArgument, message };
    Ok(Endpoint::from_shared(format!("unix:{}", socket.display()))
        .map_err(|it| failed(format!("socket {}: {it}", socket.display())))?
        .connect_timeout(Duration::from_secs(5))
        .connect_lazy())
}

impl Cri {
    pub fn connect(socket: &Path) -> Result<Self, CriError> {
        Ok(Self { channel: channel(socket)? })
    }

    async fn call<Q, A>(
        &self,
        (call, path): (&'static str, &'static str),
        within: Duration,
        q: Q,
    ) -> Result<A, CriError>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let failed = |code, message| CriError { call, code, message };
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let mut request = tonic::Request::new(q);
        request.set_timeout(within.min(LONGEST));
        let work = async {
            grpc.ready().await.map_err(|it| failed(Code::Unavailable, it.to_string()))?;
            let answer = grpc.unary(request, PathAndQuery::from_static(path), ProstCodec::<Q, A>::default()).await;
            answer.map_err(|it| failed(it.code(), it.message().to_owned()))
        };
        match tokio::time::timeout(within, work).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(failed(Code::DeadlineExceeded, format!("no answer within {} s", within.as_secs()))),
        }
    }

    pub async fn version(&self) -> Result<VersionResponse, CriError> {
        self.call(path!(runtime "Version"), QUICK, VersionRequest { version: "v1".to_owned() }).await
    }

    /// Is the runtime, is the network ready?
    pub async fn status(&self) -> Result<RuntimeStatus, CriError> {
        let answer: StatusResponse = self.call(path!(runtime "Status"), QUICK, StatusRequest::default()).await?;
        Ok(answer.status.unwrap_or_default())
    }

    /// What it offers beyond the minimum; old ones say nothing.
    pub async fn offers(&self) -> Result<StatusResponse, CriError> {
        self.call(path!(runtime "Status"), QUICK, StatusRequest::default()).await
    }

    /// Does the runtime know the devices of the Container Device Interface by their names? One that does not leaves them out
    /// and says nothing.
    pub async fn injects_devices(&self) -> Result<bool, CriError> {
        let version = self.version().await?;
        let request = StatusRequest { verbose: true };
        let told: StatusResponse = self.call(path!(runtime "Status"), QUICK, request).await?;
        let config = told.info.get("config").map(String::as_str).unwrap_or_default();
        Ok(injects_devices(&version.runtime_version, config))
    }

    pub async fn update_runtime_config(&self, pod_cidr: &str) -> Result<(), CriError> {
        let network_config = Some(NetworkConfig { pod_cidr: pod_cidr.to_owned() });
        let request = UpdateRuntimeConfigRequest { runtime_config: Some(RuntimeConfig { network_config }) };
        self.call(path!(runtime "UpdateRuntimeConfig"), QUICK, request).await.map(|Empty {}| ())
    }

    /// The new sandbox's id.
    ///
    /// Without a handler it is made by the usual runtime.
    pub async fn run_pod_sandbox(&self, config: PodSandboxConfig, handler: &str) -> Result<String, CriError> {
        let request = RunPodSandboxRequest { config: Some(config), runtime_handler: handler.to_owned() };
        let answer: RunPodSandboxResponse = self.call(path!(runtime "RunPodSandbox"), SANDBOX, request).await?;
        Ok(answer.pod_sandbox_id)
    }

    /// Ends all its containers at once and gives back its network. Harmless when repeated.
    pub async fn stop_pod_sandbox(&self, id: &str) -> Result<(), CriError> {
        let request = StopPodSandboxRequest { pod_sandbox_id: id.to_owned() };
        self.call(path!(runtime "StopPodSandbox"), SANDBOX, request).await.map(|Empty {}| ())
    }

    pub async fn remove_pod_sandbox(&self, id: &str) -> Result<(), CriError> {
        let request = RemovePodSandboxRequest { pod_sandbox_id: id.to_owned() };
        self.call(path!(runtime "RemovePodSandbox"), QUICK, request).await.map(|Empty {}| ())
    }

    pub async fn pod_sandbox_status(&self, id: &str) -> Result<PodSandboxStatus, CriError> {
        let request = PodSandboxStatusRequest { pod_sandbox_id: id.to_owned() };
        let answer: PodSandboxStatusResponse = self.call(path!(runtime "PodSandboxStatus"), QUICK, request).await?;
        Ok(answer.status.unwrap_or_default())
    }

    pub async fn list_pod_sandboxes(&self, filter: Option<PodSandboxFilter>) -> Result<Vec<PodSandbox>, CriError> {
        let request = ListPodSandboxRequest { filter };
        let answer: ListPodSandboxResponse = self.call(path!(runtime "ListPodSandbox"), QUICK, request).await?;
        Ok(answer.items)
    }

    /// The new container's id.
    pub async fn create_container(
        &self,
        sandbox: &str,
        config: ContainerConfig,
        sandbox_config: PodSandboxConfig,
    ) -> Result<String, CriError> {
        let request = CreateContainerRequest {
            pod_sandbox_id: sandbox.to_owned(),
            config: Some(config),
            sandbox_config: Some(sandbox_config),
        };
        let answer: CreateContainerResponse = self.call(path!(runtime "CreateContainer"), QUICK, request).await?;
        Ok(answer.container_id)
    }

    pub async fn start_container(&self, id: &str) -> Result<(), CriError> {
        let request = StartContainerRequest { container_id: id.to_owned() };
        self.call(path!(runtime "StartContainer"), QUICK, request).await.map(|Empty {}| ())
    }

    /// Asks it to end, and ends it `grace` later. Harmless when it has ended.
    pub async fn stop_container(&self, id: &str, grace: Duration) -> Result<(), CriError> {
        let grace = grace.min(LONGEST);
        let request = StopContainerRequest { container_id: id.to_owned(), timeout: whole_seconds(grace) };
        let within = QUICK.saturating_add(grace);
        self.call(path!(runtime "StopContainer"), within, request).await.map(|Empty {}| ())
    }

    /// Gives a container other limits while it runs.
    pub async fn update_container_resources(&self, id: &str, linux: LinuxContainerResources) -> Result<(), CriError> {
        let request = UpdateContainerResourcesRequest { container_id: id.to_owned(), linux: Some(linux) };
        self.call(path!(runtime "UpdateContainerResources"), QUICK, request).await.map(|Empty {}| ())
    }

    pub async fn remove_container(&self, id: &str) -> Result<(), CriError> {
        let request = RemoveContainerRequest { container_id: id.to_owned() };
        self.call(path!(runtime "RemoveContainer"), QUICK, request).await.map(|Empty {}| ())
    }

    pub async fn list_containers(&self, filter: Option<ContainerFilter>) -> Result<Vec<Container>, CriError> {
        let request = ListContainersRequest { filter };
        let answer: ListContainersResponse = self.call(path!(runtime "ListContainers"), QUICK, request).await?;
        Ok(answer.containers)
    }

    pub async fn container_status(&self, id: &str) -> Result<ContainerStatus, CriError> {
        let request = ContainerStatusRequest { container_id: id.to_owned(), verbose: false };
        let answer: ContainerStatusResponse = self.call(path!(runtime "ContainerStatus"), QUICK, request).await?;
        Ok(answer.status.unwrap_or_default())
    }

    /// The number of a container's first process, as this machine counts; nothing where it does not run.
    pub async fn container_pid(&self, id: &str) -> Result<Option<i32>, CriError> {
        let request = ContainerStatusRequest { container_id: id.to_owned(), verbose: true };
        let answer: ContainerStatusResponse = self.call(path!(runtime "ContainerStatus"), QUICK, request).await?;
        let is_running = answer.status.is_some_and(|it| it.state == i32::from(ContainerState::Running));
        let info = answer.info.get("info").and_then(|it| serde_json::from_str::<serde_json::Value>(it).ok());
        let pid = info.and_then(|it| it["pid"].as_i64()).and_then(|it| i32::try_from(it).ok());
        Ok(pid.filter(|it| is_running && *it > 0))
    }

    /// Writes a container's memory and what it has changed into an archive; it goes on running.
    pub async fn checkpoint_container(&self, id: &str, location: &Path, within: Duration) -> Result<(), CriError> {
        let request = CheckpointContainerRequest {
            container_id: id.to_owned(),
            location: location.to_string_lossy().into_owned(),
            timeout: whole_seconds(within),
        };
        // The usual time where none is told.
        let within = if within.is_zero() { QUICK } else { within };
        self.call(path!(runtime "CheckpointContainer"), within, request).await.map(|Empty {}| ())
    }

    /// Of the containers that run: what each wrote into its own layer. The runtime measures it now and then.
    pub async fn list_container_stats(&self) -> Result<Vec<ContainerStats>, CriError> {
        let request = ListContainerStatsRequest { filter: None };
        let answer: ListContainerStatsResponse = self.call(path!(runtime "ListContainerStats"), QUICK, request).await?;
        Ok(answer.stats)
    }

    /// After its log was moved away: go on with a new file.
    pub async fn reopen_container_log(&self, id: &str) -> Result<(), CriError> {
        let request = ReopenContainerLogRequest { container_id: id.to_owned() };
        self.call(path!(runtime "ReopenContainerLog"), QUICK, request).await.map(|Empty {}| ())
    }

    /// Runs a command in a container and waits for it. Past `timeout` it is killed and the code is `DeadlineExceeded`.
    pub async fn exec_sync(&self, id: &str, cmd: Vec<String>, timeout: Duration) -> Result<ExecSyncResponse, CriError> {
        let seconds = i64::try_from(timeout.as_secs().max(1)).unwrap_or(i64::MAX);
        let request = ExecSyncRequest { container_id: id.to_owned(), cmd, timeout: seconds };
        self.call(path!(runtime "ExecSync"), QUICK.saturating_add(timeout), request).await
    }

    /// Where to stream the command's input and output: a URL of the runtime's own server.
    pub async fn exec(&self, request: ExecRequest) -> Result<String, CriError> {
        let answer: ExecResponse = self.call(path!(runtime "Exec"), QUICK, request).await?;
        Ok(answer.url)
    }

    pub async fn attach(&self, request: AttachRequest) -> Result<String, CriError> {
        let answer: AttachResponse = self.call(path!(runtime "Attach"), QUICK, request).await?;
        Ok(answer.url)
    }

    pub async fn port_forward(&self, sandbox: &str, ports: Vec<i32>) -> Result<String, CriError> {
        let request = PortForwardRequest { pod_sandbox_id: sandbox.to_owned(), port: ports };
        let answer: PortForwardResponse = self.call(path!(runtime "PortForward"), QUICK, request).await?;
        Ok(answer.url)
    }

    pub async fn list_images(&self) -> Result<Vec<Image>, CriError> {
        let answer: ListImagesResponse = self.call(path!(image "ListImages"), QUICK, ListImagesRequest {}).await?;
        Ok(answer.images)
    }

    /// The image of this name or id, where the node has it.
    pub async fn image_status(&self, image: &str) -> Result<Option<Image>, CriError> {
        let request = ImageStatusRequest { image: Some(named(image)) };
        let answer: ImageStatusResponse = self.call(path!(image "ImageStatus"), QUICK, request).await?;
        Ok(answer.image)
    }

    /// The reference a container is to be created with.
    pub async fn pull_image(
        &self,
        image: &str,
        auth: Option<AuthConfig>,
        sandbox_config: Option<PodSandboxConfig>,
    ) -> Result<String, CriError> {
        let request = PullImageRequest { image: Some(named(image)), auth, sandbox_config };
        let answer: PullImageResponse = self.call(path!(image "PullImage"), PULL, request).await?;
        Ok(answer.image_ref)
    }

    pub async fn remove_image(&self, image: &str) -> Result<(), CriError> {
        let request = RemoveImageRequest { image: Some(named(image)) };
        self.call(path!(image "RemoveImage"), QUICK, request).await.map(|Empty {}| ())
    }

    pub async fn image_fs_info(&self) -> Result<Vec<FilesystemUsage>, CriError> {
        let answer: ImageFsInfoResponse = self.call(path!(image "ImageFsInfo"), QUICK, ImageFsInfoRequest {}).await?;
        Ok(answer.image_filesystems)
    }
}

fn named(image: &str) -> ImageSpec {
    ImageSpec { image: image.to_owned(), ..ImageSpec::default() }
}

/// As seconds, and never less than was promised.
fn whole_seconds(grace: Duration) -> i64 {
    let seconds = grace.as_secs().saturating_add(u64::from(grace.subsec_nanos() > 0));
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// containerd takes their names in a field since 1.7.2, where it is told so; since 2.0 unless it is told otherwise.
fn injects_devices(version: &str, config: &str) -> bool {
    let mut numbers =
        version.trim_start_matches('v').split(|it: char| !it.is_ascii_digit()).map(|it| it.parse().unwrap_or(0));
    let version: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    version >= [1, 7, 2] && config["enableCDI"].as_bool().unwrap_or(version >= [2, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_runtime_that_says_so_is_handed_names_of_devices() {
        let told = r#"{"enableCDI":true}"#;
        for (version, config, injects) in [
            ("1.6.20~ds1", "{}", false),
            ("1.7.1", told, false),
            ("1.7.24~ds1", told, true),
            ("1.7.24", "{}", false),
            ("v2.1.0", "", true),
            ("2.0.5", r#"{"enableCDI":false}"#, false),
            ("", "not JSON", false),
        ] {
            assert_eq!(injects_devices(version, config), injects, "{version} {config}");
        }
    }

    /// A grace may be as long as a number can say. What the runtime is told fits its nanoseconds, and the wait fits gRPC.
    #[test]
    fn the_longest_wait_can_be_said() {
        assert_eq!(whole_seconds(Duration::from_millis(1500)), 2);
        assert!(whole_seconds(LONGEST).checked_mul(1_000_000_000).is_some());
        let mut request = tonic::Request::new(());
        request.set_timeout(LONGEST.saturating_add(QUICK));
        assert!(request.metadata().contains_key("grpc-timeout"));
    }
}
