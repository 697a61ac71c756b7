//! The types of `io.k8s.api.core.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.AWSElasticBlockStoreVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[2]).always(),
        field("partition", Int32).omitted().at(&[3]).always(),
        field("readOnly", Boolean).omitted().at(&[4]).always(),
        field("volumeID", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 0, 1, 2],
};

pub(super) static AFFINITY: Type = Type {
    name: "io.k8s.api.core.v1.Affinity",
    atomic: false,
    fields: &[
        field("nodeAffinity", Object(&super::core_v1::NODE_AFFINITY)).at(&[1]),
        field("podAffinity", Object(&super::core_v1::POD_AFFINITY)).at(&[2]),
        field("podAntiAffinity", Object(&super::core_v1::POD_ANTI_AFFINITY)).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static APP_ARMOR_PROFILE: Type = Type {
    name: "io.k8s.api.core.v1.AppArmorProfile",
    atomic: false,
    fields: &[field("localhostProfile", String).at(&[2]), field("type", String).zero().required().at(&[1]).always()],
    wire: &[1, 0],
};

pub(super) static ATTACHED_VOLUME: Type = Type {
    name: "io.k8s.api.core.v1.AttachedVolume",
    atomic: false,
    fields: &[
        field("devicePath", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static AZURE_DISK_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.AzureDiskVolumeSource",
    atomic: false,
    fields: &[
        field("cachingMode", String).or("ReadWrite").at(&[3]),
        field("diskName", String).zero().required().at(&[1]).always(),
        field("diskURI", String).zero().required().at(&[2]).always(),
        field("fsType", String).or("ext4").at(&[4]),
        field("kind", String).or("Shared").at(&[6]),
        field("readOnly", Boolean).zero().at(&[5]),
    ],
    wire: &[1, 2, 0, 3, 5, 4],
};

pub(super) static AZURE_FILE_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.AzureFilePersistentVolumeSource",
    atomic: false,
    fields: &[
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("secretName", String).zero().required().at(&[1]).always(),
        field("secretNamespace", String).at(&[4]),
        field("shareName", String).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 3, 0, 2],
};

pub(super) static AZURE_FILE_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.AzureFileVolumeSource",
    atomic: false,
    fields: &[
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("secretName", String).zero().required().at(&[1]).always(),
        field("shareName", String).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static BINDING: Type = Type {
    name: "io.k8s.api.core.v1.Binding",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("target", Object(&super::core_v1::OBJECT_REFERENCE)).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static CSI_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.CSIPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("controllerExpandSecretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[9]),
        field("controllerPublishSecretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[6]),
        field("driver", String).zero().required().at(&[1]).always(),
        field("fsType", String).omitted().at(&[4]).always(),
        field("nodeExpandSecretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[10]),
        field("nodePublishSecretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[8]),
        field("nodeStageSecretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[7]),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("volumeAttributes", Map(&String)).at(&[5]),
        field("volumeHandle", String).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 9, 7, 3, 8, 1, 6, 5, 0, 4],
};

pub(super) static CSI_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.CSIVolumeSource",
    atomic: false,
    fields: &[
        field("driver", String).zero().required().at(&[1]).always(),
        field("fsType", String).at(&[3]),
        field("nodePublishSecretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).at(&[5]),
        field("readOnly", Boolean).at(&[2]),
        field("volumeAttributes", Map(&String)).at(&[4]),
    ],
    wire: &[0, 3, 1, 4, 2],
};

pub(super) static CAPABILITIES: Type = Type {
    name: "io.k8s.api.core.v1.Capabilities",
    atomic: false,
    fields: &[field("add", List(&String)).at(&[1]), field("drop", List(&String)).at(&[2])],
    wire: &[0, 1],
};

pub(super) static CEPH_FS_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.CephFSPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("monitors", List(&String)).required().at(&[1]),
        field("path", String).omitted().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[6]).always(),
        field("secretFile", String).omitted().at(&[4]).always(),
        field("secretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[5]),
        field("user", String).omitted().at(&[3]).always(),
    ],
    wire: &[0, 1, 5, 3, 4, 2],
};

pub(super) static CEPH_FS_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.CephFSVolumeSource",
    atomic: false,
    fields: &[
        field("monitors", List(&String)).required().at(&[1]),
        field("path", String).omitted().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[6]).always(),
        field("secretFile", String).omitted().at(&[4]).always(),
        field("secretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).at(&[5]),
        field("user", String).omitted().at(&[3]).always(),
    ],
    wire: &[0, 1, 5, 3, 4, 2],
};

pub(super) static CINDER_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.CinderPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("secretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[4]),
        field("volumeID", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 0, 1, 2],
};

pub(super) static CINDER_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.CinderVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("secretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).at(&[4]),
        field("volumeID", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 0, 1, 2],
};

pub(super) static CLIENT_IP_CONFIG: Type = Type {
    name: "io.k8s.api.core.v1.ClientIPConfig",
    atomic: false,
    fields: &[field("timeoutSeconds", Int32).at(&[1])],
    wire: &[0],
};

pub(super) static CLUSTER_TRUST_BUNDLE_PROJECTION: Type = Type {
    name: "io.k8s.api.core.v1.ClusterTrustBundleProjection",
    atomic: false,
    fields: &[
        field("labelSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[3]),
        field("name", String).at(&[1]),
        field("optional", Boolean).at(&[5]),
        field("path", String).zero().required().at(&[4]).always(),
        field("signerName", String).at(&[2]),
        field("user", Int64).at(&[6]),
    ],
    wire: &[1, 4, 0, 3, 2, 5],
};

pub(super) static COMPONENT_CONDITION: Type = Type {
    name: "io.k8s.api.core.v1.ComponentCondition",
    atomic: false,
    fields: &[
        field("error", String).omitted().at(&[4]).always(),
        field("message", String).omitted().at(&[3]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 2, 1, 0],
};

pub(super) static COMPONENT_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ComponentStatus",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("conditions", List(&Object(&super::core_v1::COMPONENT_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[2]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 1],
};

pub(super) static CONFIG_MAP: Type = Type {
    name: "io.k8s.api.core.v1.ConfigMap",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("binaryData", Map(&Bytes)).at(&[3]),
        field("data", Map(&String)).at(&[2]),
        field("immutable", Boolean).at(&[4]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 2, 1, 3],
};

pub(super) static CONFIG_MAP_ENV_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ConfigMapEnvSource",
    atomic: false,
    fields: &[
        field("name", String).zero().required().omitted().at(&[1, 1]).always(),
        field("optional", Boolean).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static CONFIG_MAP_KEY_SELECTOR: Type = Type {
    name: "io.k8s.api.core.v1.ConfigMapKeySelector",
    atomic: true,
    fields: &[
        field("key", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().omitted().at(&[1, 1]).always(),
        field("optional", Boolean).at(&[3]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static CONFIG_MAP_NODE_CONFIG_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ConfigMapNodeConfigSource",
    atomic: false,
    fields: &[
        field("kubeletConfigKey", String).zero().required().at(&[5]).always(),
        field("name", String).zero().required().at(&[2]).always(),
        field("namespace", String).zero().required().at(&[1]).always(),
        field("resourceVersion", String).omitted().at(&[4]).always(),
        field("uid", String).omitted().at(&[3]).always(),
    ],
    wire: &[2, 1, 4, 3, 0],
};

pub(super) static CONFIG_MAP_PROJECTION: Type = Type {
    name: "io.k8s.api.core.v1.ConfigMapProjection",
    atomic: false,
    fields: &[
        field("items", List(&Object(&super::core_v1::KEY_TO_PATH))).at(&[2]),
        field("name", String).zero().required().omitted().at(&[1, 1]).always(),
        field("optional", Boolean).at(&[4]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static CONFIG_MAP_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ConfigMapVolumeSource",
    atomic: false,
    fields: &[
        field("defaultMode", Int32).at(&[3]),
        field("defaultUser", Int64).at(&[5]),
        field("items", List(&Object(&super::core_v1::KEY_TO_PATH))).at(&[2]),
        field("name", String).zero().required().omitted().at(&[1, 1]).always(),
        field("optional", Boolean).at(&[4]),
    ],
    wire: &[3, 2, 0, 4, 1],
};

pub(super) static CONTAINER: Type = Type {
    name: "io.k8s.api.core.v1.Container",
    atomic: false,
    fields: &[
        field("args", List(&String)).at(&[4]),
        field("command", List(&String)).at(&[3]),
        field("env", List(&Object(&super::core_v1::ENV_VAR)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[7]),
        field("envFrom", List(&Object(&super::core_v1::ENV_FROM_SOURCE))).at(&[19]),
        field("image", String).omitted().at(&[2]).always(),
        field("imagePullPolicy", String).omitted().at(&[14]).always(),
        field("lifecycle", Object(&super::core_v1::LIFECYCLE)).at(&[12]),
        field("livenessProbe", Object(&super::core_v1::PROBE)).at(&[10]),
        field("name", String).zero().required().at(&[1]).always(),
        field("ports", List(&Object(&super::core_v1::CONTAINER_PORT)))
            .merged(&Merge {
                apply: ByKeys(&["containerPort", "protocol"]),
                patch: ByKey("containerPort"),
                retain_keys: false,
            })
            .at(&[6]),
        field("readinessProbe", Object(&super::core_v1::PROBE)).at(&[11]),
        field("resizePolicy", List(&Object(&super::core_v1::CONTAINER_RESIZE_POLICY))).at(&[23]),
        field("resources", Object(&super::core_v1::RESOURCE_REQUIREMENTS)).zero().at(&[8]).always(),
        field("restartPolicy", String).at(&[24]),
        field("restartPolicyRules", List(&Object(&super::core_v1::CONTAINER_RESTART_RULE))).at(&[25]),
        field("securityContext", Object(&super::core_v1::SECURITY_CONTEXT)).at(&[15]),
        field("startupProbe", Object(&super::core_v1::PROBE)).at(&[22]),
        field("stdin", Boolean).omitted().at(&[16]).always(),
        field("stdinOnce", Boolean).omitted().at(&[17]).always(),
        field("terminationMessagePath", String).omitted().at(&[13]).always(),
        field("terminationMessagePolicy", String).omitted().at(&[20]).always(),
        field("tty", Boolean).omitted().at(&[18]).always(),
        field("volumeDevices", List(&Object(&super::core_v1::VOLUME_DEVICE)))
            .merged(&Merge { apply: ByKeys(&["devicePath"]), patch: ByKey("devicePath"), retain_keys: false })
            .at(&[21]),
        field("volumeMounts", List(&Object(&super::core_v1::VOLUME_MOUNT)))
            .merged(&Merge { apply: ByKeys(&["mountPath"]), patch: ByKey("mountPath"), retain_keys: false })
            .at(&[9]),
        field("workingDir", String).omitted().at(&[5]).always(),
    ],
    wire: &[8, 4, 1, 0, 24, 9, 2, 12, 23, 7, 10, 6, 19, 5, 15, 17, 18, 21, 3, 20, 22, 16, 11, 13, 14],
};

pub(super) static CONTAINER_EXTENDED_RESOURCE_REQUEST: Type = Type {
    name: "io.k8s.api.core.v1.ContainerExtendedResourceRequest",
    atomic: false,
    fields: &[
        field("containerName", String).zero().required().at(&[1]).always(),
        field("requestName", String).zero().required().at(&[3]).always(),
        field("resourceName", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 2, 1],
};

pub(super) static CONTAINER_IMAGE: Type = Type {
    name: "io.k8s.api.core.v1.ContainerImage",
    atomic: false,
    fields: &[field("names", List(&String)).at(&[1]), field("sizeBytes", Int64).omitted().at(&[2]).always()],
    wire: &[0, 1],
};

pub(super) static CONTAINER_PORT: Type = Type {
    name: "io.k8s.api.core.v1.ContainerPort",
    atomic: false,
    fields: &[
        field("containerPort", Int32).zero().required().at(&[3]).always(),
        field("hostIP", String).omitted().at(&[5]).always(),
        field("hostPort", Int32).omitted().at(&[2]).always(),
        field("name", String).omitted().at(&[1]).always(),
        field("protocol", String).or("TCP").omitted().at(&[4]).always(),
    ],
    wire: &[3, 2, 0, 4, 1],
};

pub(super) static CONTAINER_RESIZE_POLICY: Type = Type {
    name: "io.k8s.api.core.v1.ContainerResizePolicy",
    atomic: false,
    fields: &[
        field("resourceName", String).zero().required().at(&[1]).always(),
        field("restartPolicy", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static CONTAINER_RESTART_RULE: Type = Type {
    name: "io.k8s.api.core.v1.ContainerRestartRule",
    atomic: false,
    fields: &[
        field("action", String).required().at(&[1]).always(),
        field("exitCodes", Object(&super::core_v1::CONTAINER_RESTART_RULE_ON_EXIT_CODES)).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static CONTAINER_RESTART_RULE_ON_EXIT_CODES: Type = Type {
    name: "io.k8s.api.core.v1.ContainerRestartRuleOnExitCodes",
    atomic: false,
    fields: &[
        field("operator", String).required().at(&[1]).always(),
        field("values", List(&Int32)).merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false }).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static CONTAINER_STATE: Type = Type {
    name: "io.k8s.api.core.v1.ContainerState",
    atomic: false,
    fields: &[
        field("running", Object(&super::core_v1::CONTAINER_STATE_RUNNING)).at(&[2]),
        field("terminated", Object(&super::core_v1::CONTAINER_STATE_TERMINATED)).at(&[3]),
        field("waiting", Object(&super::core_v1::CONTAINER_STATE_WAITING)).at(&[1]),
    ],
    wire: &[2, 0, 1],
};

pub(super) static CONTAINER_STATE_RUNNING: Type = Type {
    name: "io.k8s.api.core.v1.ContainerStateRunning",
    atomic: false,
    fields: &[field("startedAt", Time).at(&[1]).always()],
    wire: &[0],
};

pub(super) static CONTAINER_STATE_TERMINATED: Type = Type {
    name: "io.k8s.api.core.v1.ContainerStateTerminated",
    atomic: false,
    fields: &[
        field("containerID", String).omitted().at(&[7]).always(),
        field("exitCode", Int32).zero().required().at(&[1]).always(),
        field("finishedAt", Time).at(&[6]).always(),
        field("message", String).omitted().at(&[4]).always(),
        field("reason", String).omitted().at(&[3]).always(),
        field("signal", Int32).at(&[2]).always(),
        field("startedAt", Time).at(&[5]).always(),
    ],
    wire: &[1, 5, 4, 3, 6, 2, 0],
};

pub(super) static CONTAINER_STATE_WAITING: Type = Type {
    name: "io.k8s.api.core.v1.ContainerStateWaiting",
    atomic: false,
    fields: &[
        field("message", String).omitted().at(&[2]).always(),
        field("reason", String).omitted().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static CONTAINER_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ContainerStatus",
    atomic: false,
    fields: &[
        field("allocatedResources", Map(&Quantity)).at(&[10]),
        field("allocatedResourcesStatus", List(&Object(&super::core_v1::RESOURCE_STATUS)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[14]),
        field("containerID", String).omitted().at(&[8]).always(),
        field("image", String).zero().required().at(&[6]).always(),
        field("imageID", String).zero().required().at(&[7]).always(),
        field("lastState", Object(&super::core_v1::CONTAINER_STATE)).zero().at(&[3]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("ready", Boolean).zero().required().at(&[4]).always(),
        field("resources", Object(&super::core_v1::RESOURCE_REQUIREMENTS)).at(&[11]),
        field("restartCount", Int32).zero().required().at(&[5]).always(),
        field("started", Boolean).at(&[9]),
        field("state", Object(&super::core_v1::CONTAINER_STATE)).zero().at(&[2]).always(),
        field("stopSignal", String).at(&[15]),
        field("user", Object(&super::core_v1::CONTAINER_USER)).at(&[13]),
        field("volumeMounts", List(&Object(&super::core_v1::VOLUME_MOUNT_STATUS)))
            .merged(&Merge { apply: ByKeys(&["mountPath"]), patch: ByKey("mountPath"), retain_keys: false })
            .at(&[12]),
    ],
    wire: &[6, 11, 5, 7, 9, 3, 4, 2, 10, 0, 8, 14, 13, 1, 12],
};

pub(super) static CONTAINER_USER: Type = Type {
    name: "io.k8s.api.core.v1.ContainerUser",
    atomic: false,
    fields: &[field("linux", Object(&super::core_v1::LINUX_CONTAINER_USER)).at(&[1])],
    wire: &[0],
};

pub(super) static DAEMON_ENDPOINT: Type = Type {
    name: "io.k8s.api.core.v1.DaemonEndpoint",
    atomic: false,
    fields: &[field("Port", Int32).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static DOWNWARD_API_PROJECTION: Type = Type {
    name: "io.k8s.api.core.v1.DownwardAPIProjection",
    atomic: false,
    fields: &[field("items", List(&Object(&super::core_v1::DOWNWARD_API_VOLUME_FILE))).at(&[1])],
    wire: &[0],
};

pub(super) static DOWNWARD_API_VOLUME_FILE: Type = Type {
    name: "io.k8s.api.core.v1.DownwardAPIVolumeFile",
    atomic: false,
    fields: &[
        field("fieldRef", Object(&super::core_v1::OBJECT_FIELD_SELECTOR)).at(&[2]),
        field("mode", Int32).at(&[4]),
        field("path", String).zero().required().at(&[1]).always(),
        field("resourceFieldRef", Object(&super::core_v1::RESOURCE_FIELD_SELECTOR)).at(&[3]),
        field("user", Int64).at(&[5]),
    ],
    wire: &[2, 0, 3, 1, 4],
};

pub(super) static DOWNWARD_API_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.DownwardAPIVolumeSource",
    atomic: false,
    fields: &[
        field("defaultMode", Int32).at(&[2]),
        field("defaultUser", Int64).at(&[3]),
        field("items", List(&Object(&super::core_v1::DOWNWARD_API_VOLUME_FILE))).at(&[1]),
    ],
    wire: &[2, 0, 1],
};

pub(super) static EMPTY_DIR_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.EmptyDirVolumeSource",
    atomic: false,
    fields: &[
        field("medium", String).omitted().at(&[1]).always(),
        field("mode", Int32).at(&[3]),
        field("sizeLimit", Quantity).at(&[2]),
    ],
    wire: &[0, 2, 1],
};

pub(super) static ENDPOINT_ADDRESS: Type = Type {
    name: "io.k8s.api.core.v1.EndpointAddress",
    atomic: true,
    fields: &[
        field("hostname", String).omitted().at(&[3]).always(),
        field("ip", String).zero().required().at(&[1]).always(),
        field("nodeName", String).at(&[4]),
        field("targetRef", Object(&super::core_v1::OBJECT_REFERENCE)).at(&[2]),
    ],
    wire: &[1, 3, 0, 2],
};

pub(super) static ENDPOINT_PORT: Type = Type {
    name: "io.k8s.api.core.v1.EndpointPort",
    atomic: true,
    fields: &[
        field("appProtocol", String).at(&[4]),
        field("name", String).omitted().at(&[1]).always(),
        field("port", Int32).zero().required().at(&[2]).always(),
        field("protocol", String).omitted().at(&[3]).always(),
    ],
    wire: &[1, 2, 3, 0],
};

pub(super) static ENDPOINT_SUBSET: Type = Type {
    name: "io.k8s.api.core.v1.EndpointSubset",
    atomic: false,
    fields: &[
        field("addresses", List(&Object(&super::core_v1::ENDPOINT_ADDRESS))).at(&[1]),
        field("notReadyAddresses", List(&Object(&super::core_v1::ENDPOINT_ADDRESS))).at(&[2]),
        field("ports", List(&Object(&super::core_v1::ENDPOINT_PORT))).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static ENDPOINTS: Type = Type {
    name: "io.k8s.api.core.v1.Endpoints",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("subsets", List(&Object(&super::core_v1::ENDPOINT_SUBSET))).at(&[2]),
    ],
    wire: &[2, 3],
};

pub(super) static ENV_FROM_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.EnvFromSource",
    atomic: false,
    fields: &[
        field("configMapRef", Object(&super::core_v1::CONFIG_MAP_ENV_SOURCE)).at(&[2]),
        field("prefix", String).omitted().at(&[1]).always(),
        field("secretRef", Object(&super::core_v1::SECRET_ENV_SOURCE)).at(&[3]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static ENV_VAR: Type = Type {
    name: "io.k8s.api.core.v1.EnvVar",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("value", String).omitted().at(&[2]).always(),
        field("valueFrom", Object(&super::core_v1::ENV_VAR_SOURCE)).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static ENV_VAR_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.EnvVarSource",
    atomic: false,
    fields: &[
        field("configMapKeyRef", Object(&super::core_v1::CONFIG_MAP_KEY_SELECTOR)).at(&[3]),
        field("fieldRef", Object(&super::core_v1::OBJECT_FIELD_SELECTOR)).at(&[1]),
        field("fileKeyRef", Object(&super::core_v1::FILE_KEY_SELECTOR)).at(&[5]),
        field("resourceFieldRef", Object(&super::core_v1::RESOURCE_FIELD_SELECTOR)).at(&[2]),
        field("secretKeyRef", Object(&super::core_v1::SECRET_KEY_SELECTOR)).at(&[4]),
    ],
    wire: &[1, 3, 0, 4, 2],
};

pub(super) static EPHEMERAL_CONTAINER: Type = Type {
    name: "io.k8s.api.core.v1.EphemeralContainer",
    atomic: false,
    fields: &[
        field("args", List(&String)).at(&[1, 4]),
        field("command", List(&String)).at(&[1, 3]),
        field("env", List(&Object(&super::core_v1::ENV_VAR)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[1, 7]),
        field("envFrom", List(&Object(&super::core_v1::ENV_FROM_SOURCE))).at(&[1, 19]),
        field("image", String).omitted().at(&[1, 2]).always(),
        field("imagePullPolicy", String).omitted().at(&[1, 14]).always(),
        field("lifecycle", Object(&super::core_v1::LIFECYCLE)).at(&[1, 12]),
        field("livenessProbe", Object(&super::core_v1::PROBE)).at(&[1, 10]),
        field("name", String).zero().required().at(&[1, 1]).always(),
        field("ports", List(&Object(&super::core_v1::CONTAINER_PORT)))
            .merged(&Merge {
                apply: ByKeys(&["containerPort", "protocol"]),
                patch: ByKey("containerPort"),
                retain_keys: false,
            })
            .at(&[1, 6]),
        field("readinessProbe", Object(&super::core_v1::PROBE)).at(&[1, 11]),
        field("resizePolicy", List(&Object(&super::core_v1::CONTAINER_RESIZE_POLICY))).at(&[1, 23]),
        field("resources", Object(&super::core_v1::RESOURCE_REQUIREMENTS)).zero().at(&[1, 8]).always(),
        field("restartPolicy", String).at(&[1, 24]),
        field("restartPolicyRules", List(&Object(&super::core_v1::CONTAINER_RESTART_RULE))).at(&[1, 25]),
        field("securityContext", Object(&super::core_v1::SECURITY_CONTEXT)).at(&[1, 15]),
        field("startupProbe", Object(&super::core_v1::PROBE)).at(&[1, 22]),
        field("stdin", Boolean).omitted().at(&[1, 16]).always(),
        field("stdinOnce", Boolean).omitted().at(&[1, 17]).always(),
        field("targetContainerName", String).omitted().at(&[2]).always(),
        field("terminationMessagePath", String).omitted().at(&[1, 13]).always(),
        field("terminationMessagePolicy", String).omitted().at(&[1, 20]).always(),
        field("tty", Boolean).omitted().at(&[1, 18]).always(),
        field("volumeDevices", List(&Object(&super::core_v1::VOLUME_DEVICE)))
            .merged(&Merge { apply: ByKeys(&["devicePath"]), patch: ByKey("devicePath"), retain_keys: false })
            .at(&[1, 21]),
        field("volumeMounts", List(&Object(&super::core_v1::VOLUME_MOUNT)))
            .merged(&Merge { apply: ByKeys(&["mountPath"]), patch: ByKey("mountPath"), retain_keys: false })
            .at(&[1, 9]),
        field("workingDir", String).omitted().at(&[1, 5]).always(),
    ],
    wire: &[8, 4, 1, 0, 25, 9, 2, 12, 24, 7, 10, 6, 20, 5, 15, 17, 18, 22, 3, 21, 23, 16, 11, 13, 14, 19],
};

pub(super) static EPHEMERAL_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.EphemeralVolumeSource",
    atomic: false,
    fields: &[field("volumeClaimTemplate", Object(&super::core_v1::PERSISTENT_VOLUME_CLAIM_TEMPLATE)).at(&[1])],
    wire: &[0],
};

pub(super) static EVENT: Type = Type {
    name: "io.k8s.api.core.v1.Event",
    atomic: false,
    fields: &[
        field("action", String).omitted().at(&[12]).always(),
        field("apiVersion", String),
        field("count", Int32).omitted().at(&[8]).always(),
        field("eventTime", MicroTime).at(&[10]).always(),
        field("firstTimestamp", Time).at(&[6]).always(),
        field("involvedObject", Object(&super::core_v1::OBJECT_REFERENCE)).zero().required().at(&[2]).always(),
        field("kind", String),
        field("lastTimestamp", Time).at(&[7]).always(),
        field("message", String).omitted().at(&[4]).always(),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("reason", String).omitted().at(&[3]).always(),
        field("related", Object(&super::core_v1::OBJECT_REFERENCE)).at(&[13]),
        field("reportingComponent", String).zero().at(&[14]).always(),
        field("reportingInstance", String).zero().omitted().at(&[15]).always(),
        field("series", Object(&super::core_v1::EVENT_SERIES)).at(&[11]),
        field("source", Object(&super::core_v1::EVENT_SOURCE)).zero().at(&[5]).always(),
        field("type", String).omitted().at(&[9]).always(),
    ],
    wire: &[9, 5, 10, 8, 15, 4, 7, 2, 16, 3, 14, 0, 11, 12, 13],
};

pub(super) static EVENT_SERIES: Type = Type {
    name: "io.k8s.api.core.v1.EventSeries",
    atomic: false,
    fields: &[
        field("count", Int32).omitted().at(&[1]).always(),
        field("lastObservedTime", MicroTime).at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EVENT_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.EventSource",
    atomic: false,
    fields: &[
        field("component", String).omitted().at(&[1]).always(),
        field("host", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EVICTION_RESPONDER: Type = Type {
    name: "io.k8s.api.core.v1.EvictionResponder",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("priority", Int32).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static EXEC_ACTION: Type = Type {
    name: "io.k8s.api.core.v1.ExecAction",
    atomic: false,
    fields: &[field("command", List(&String)).at(&[1])],
    wire: &[0],
};

pub(super) static FC_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.FCVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[3]).always(),
        field("lun", Int32).at(&[2]),
        field("readOnly", Boolean).omitted().at(&[4]).always(),
        field("targetWWNs", List(&String)).at(&[1]),
        field("wwids", List(&String)).at(&[5]),
    ],
    wire: &[3, 1, 0, 2, 4],
};

pub(super) static FILE_KEY_SELECTOR: Type = Type {
    name: "io.k8s.api.core.v1.FileKeySelector",
    atomic: true,
    fields: &[
        field("key", String).zero().required().at(&[3]).always(),
        field("optional", Boolean).zero().at(&[4]),
        field("path", String).zero().required().at(&[2]).always(),
        field("volumeName", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 2, 0, 1],
};

pub(super) static FLEX_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.FlexPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("driver", String).zero().required().at(&[1]).always(),
        field("fsType", String).omitted().at(&[2]).always(),
        field("options", Map(&String)).at(&[5]),
        field("readOnly", Boolean).omitted().at(&[4]).always(),
        field("secretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[3]),
    ],
    wire: &[0, 1, 4, 3, 2],
};

pub(super) static FLEX_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.FlexVolumeSource",
    atomic: false,
    fields: &[
        field("driver", String).zero().required().at(&[1]).always(),
        field("fsType", String).omitted().at(&[2]).always(),
        field("options", Map(&String)).at(&[5]),
        field("readOnly", Boolean).omitted().at(&[4]).always(),
        field("secretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).at(&[3]),
    ],
    wire: &[0, 1, 4, 3, 2],
};

pub(super) static FLOCKER_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.FlockerVolumeSource",
    atomic: false,
    fields: &[
        field("datasetName", String).omitted().at(&[1]).always(),
        field("datasetUUID", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static GCE_PERSISTENT_DISK_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.GCEPersistentDiskVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[2]).always(),
        field("partition", Int32).omitted().at(&[3]).always(),
        field("pdName", String).zero().required().at(&[1]).always(),
        field("readOnly", Boolean).omitted().at(&[4]).always(),
    ],
    wire: &[2, 0, 1, 3],
};

pub(super) static GRPC_ACTION: Type = Type {
    name: "io.k8s.api.core.v1.GRPCAction",
    atomic: false,
    fields: &[
        field("mode", String).at(&[3]),
        field("port", Int32).zero().required().at(&[1]).always(),
        field("service", String).zero().at(&[2]),
    ],
    wire: &[1, 2, 0],
};

pub(super) static GIT_REPO_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.GitRepoVolumeSource",
    atomic: false,
    fields: &[
        field("directory", String).omitted().at(&[3]).always(),
        field("repository", String).zero().required().at(&[1]).always(),
        field("revision", String).omitted().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static GLUSTERFS_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.GlusterfsPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("endpoints", String).zero().required().at(&[1]).always(),
        field("endpointsNamespace", String).at(&[4]),
        field("path", String).zero().required().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
    ],
    wire: &[0, 2, 3, 1],
};

pub(super) static GLUSTERFS_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.GlusterfsVolumeSource",
    atomic: false,
    fields: &[
        field("endpoints", String).zero().required().at(&[1]).always(),
        field("path", String).zero().required().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
    ],
    wire: &[0, 1, 2],
};

pub(super) static HTTP_GET_ACTION: Type = Type {
    name: "io.k8s.api.core.v1.HTTPGetAction",
    atomic: false,
    fields: &[
        field("host", String).omitted().at(&[3]).always(),
        field("httpHeaders", List(&Object(&super::core_v1::HTTP_HEADER))).at(&[5]),
        field("path", String).omitted().at(&[1]).always(),
        field("port", IntOrString).required().at(&[2]).always(),
        field("protocol", String).at(&[6]),
        field("scheme", String).omitted().at(&[4]).always(),
    ],
    wire: &[2, 3, 0, 5, 1, 4],
};

pub(super) static HTTP_HEADER: Type = Type {
    name: "io.k8s.api.core.v1.HTTPHeader",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("value", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static HOST_ALIAS: Type = Type {
    name: "io.k8s.api.core.v1.HostAlias",
    atomic: false,
    fields: &[field("hostnames", List(&String)).at(&[2]), field("ip", String).zero().required().at(&[1]).always()],
    wire: &[1, 0],
};

pub(super) static HOST_IP: Type = Type {
    name: "io.k8s.api.core.v1.HostIP",
    atomic: false,
    fields: &[field("ip", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static HOST_PATH_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.HostPathVolumeSource",
    atomic: false,
    fields: &[field("path", String).zero().required().at(&[1]).always(), field("type", String).at(&[2])],
    wire: &[0, 1],
};

pub(super) static ISCSI_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ISCSIPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("chapAuthDiscovery", Boolean).omitted().at(&[8]).always(),
        field("chapAuthSession", Boolean).omitted().at(&[11]).always(),
        field("fsType", String).omitted().at(&[5]).always(),
        field("initiatorName", String).at(&[12]),
        field("iqn", String).zero().required().at(&[2]).always(),
        field("iscsiInterface", String).or("default").omitted().at(&[4]).always(),
        field("lun", Int32).zero().required().at(&[3]).always(),
        field("portals", List(&String)).at(&[7]),
        field("readOnly", Boolean).omitted().at(&[6]).always(),
        field("secretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[10]),
        field("targetPortal", String).zero().required().at(&[1]).always(),
    ],
    wire: &[10, 4, 6, 5, 2, 8, 7, 0, 9, 1, 3],
};

pub(super) static ISCSI_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ISCSIVolumeSource",
    atomic: false,
    fields: &[
        field("chapAuthDiscovery", Boolean).omitted().at(&[8]).always(),
        field("chapAuthSession", Boolean).omitted().at(&[11]).always(),
        field("fsType", String).omitted().at(&[5]).always(),
        field("initiatorName", String).at(&[12]),
        field("iqn", String).zero().required().at(&[2]).always(),
        field("iscsiInterface", String).or("default").omitted().at(&[4]).always(),
        field("lun", Int32).zero().required().at(&[3]).always(),
        field("portals", List(&String)).at(&[7]),
        field("readOnly", Boolean).omitted().at(&[6]).always(),
        field("secretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).at(&[10]),
        field("targetPortal", String).zero().required().at(&[1]).always(),
    ],
    wire: &[10, 4, 6, 5, 2, 8, 7, 0, 9, 1, 3],
};

pub(super) static IMAGE_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ImageVolumeSource",
    atomic: false,
    fields: &[
        field("pullPolicy", String).omitted().at(&[2]).always(),
        field("reference", String).omitted().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static IMAGE_VOLUME_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ImageVolumeStatus",
    atomic: false,
    fields: &[field("imageRef", String).required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static KEY_TO_PATH: Type = Type {
    name: "io.k8s.api.core.v1.KeyToPath",
    atomic: false,
    fields: &[
        field("key", String).zero().required().at(&[1]).always(),
        field("mode", Int32).at(&[3]),
        field("path", String).zero().required().at(&[2]).always(),
        field("user", Int64).at(&[4]),
    ],
    wire: &[0, 2, 1, 3],
};

pub(super) static LIFECYCLE: Type = Type {
    name: "io.k8s.api.core.v1.Lifecycle",
    atomic: false,
    fields: &[
        field("postStart", Object(&super::core_v1::LIFECYCLE_HANDLER)).at(&[1]),
        field("preStop", Object(&super::core_v1::LIFECYCLE_HANDLER)).at(&[2]),
        field("stopSignal", String).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static LIFECYCLE_HANDLER: Type = Type {
    name: "io.k8s.api.core.v1.LifecycleHandler",
    atomic: false,
    fields: &[
        field("exec", Object(&super::core_v1::EXEC_ACTION)).at(&[1]),
        field("httpGet", Object(&super::core_v1::HTTP_GET_ACTION)).at(&[2]),
        field("sleep", Object(&super::core_v1::SLEEP_ACTION)).at(&[4]),
        field("tcpSocket", Object(&super::core_v1::TCP_SOCKET_ACTION)).at(&[3]),
    ],
    wire: &[0, 1, 3, 2],
};

pub(super) static LIMIT_RANGE: Type = Type {
    name: "io.k8s.api.core.v1.LimitRange",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::LIMIT_RANGE_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static LIMIT_RANGE_ITEM: Type = Type {
    name: "io.k8s.api.core.v1.LimitRangeItem",
    atomic: false,
    fields: &[
        field("default", Map(&Quantity)).at(&[4]),
        field("defaultRequest", Map(&Quantity)).at(&[5]),
        field("max", Map(&Quantity)).at(&[2]),
        field("maxLimitRequestRatio", Map(&Quantity)).at(&[6]),
        field("min", Map(&Quantity)).at(&[3]),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 2, 4, 0, 1, 3],
};

pub(super) static LIMIT_RANGE_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.LimitRangeSpec",
    atomic: false,
    fields: &[field("limits", List(&Object(&super::core_v1::LIMIT_RANGE_ITEM))).required().at(&[1])],
    wire: &[0],
};

pub(super) static LINUX_CONTAINER_USER: Type = Type {
    name: "io.k8s.api.core.v1.LinuxContainerUser",
    atomic: false,
    fields: &[
        field("gid", Int64).zero().required().at(&[2]).always(),
        field("supplementalGroups", List(&Int64)).at(&[3]),
        field("uid", Int64).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static LOAD_BALANCER_INGRESS: Type = Type {
    name: "io.k8s.api.core.v1.LoadBalancerIngress",
    atomic: false,
    fields: &[
        field("hostname", String).omitted().at(&[2]).always(),
        field("ip", String).omitted().at(&[1]).always(),
        field("ipMode", String).at(&[3]),
        field("ports", List(&Object(&super::core_v1::PORT_STATUS))).at(&[4]),
    ],
    wire: &[1, 0, 2, 3],
};

pub(super) static LOAD_BALANCER_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.LoadBalancerStatus",
    atomic: false,
    fields: &[field("ingress", List(&Object(&super::core_v1::LOAD_BALANCER_INGRESS))).at(&[1])],
    wire: &[0],
};

pub(super) static LOCAL_OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.core.v1.LocalObjectReference",
    atomic: true,
    fields: &[field("name", String).zero().required().omitted().at(&[1]).always()],
    wire: &[0],
};

pub(super) static LOCAL_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.LocalVolumeSource",
    atomic: false,
    fields: &[field("fsType", String).at(&[2]), field("path", String).zero().required().at(&[1]).always()],
    wire: &[1, 0],
};

pub(super) static MODIFY_VOLUME_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ModifyVolumeStatus",
    atomic: false,
    fields: &[
        field("status", String).zero().required().at(&[2]).always(),
        field("targetVolumeAttributesClassName", String).at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static NFS_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.NFSVolumeSource",
    atomic: false,
    fields: &[
        field("path", String).zero().required().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("server", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static NAMESPACE: Type = Type {
    name: "io.k8s.api.core.v1.Namespace",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::NAMESPACE_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::NAMESPACE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static NAMESPACE_CONDITION: Type = Type {
    name: "io.k8s.api.core.v1.NamespaceCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[4]).always(),
        field("message", String).omitted().at(&[6]).always(),
        field("reason", String).omitted().at(&[5]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static NAMESPACE_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.NamespaceSpec",
    atomic: false,
    fields: &[field("finalizers", List(&String)).at(&[1])],
    wire: &[0],
};

pub(super) static NAMESPACE_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.NamespaceStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::core_v1::NAMESPACE_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[2]),
        field("phase", String).omitted().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static NODE: Type = Type {
    name: "io.k8s.api.core.v1.Node",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::NODE_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::NODE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static NODE_ADDRESS: Type = Type {
    name: "io.k8s.api.core.v1.NodeAddress",
    atomic: false,
    fields: &[
        field("address", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static NODE_AFFINITY: Type = Type {
    name: "io.k8s.api.core.v1.NodeAffinity",
    atomic: false,
    fields: &[
        field(
            "preferredDuringSchedulingIgnoredDuringExecution",
            List(&Object(&super::core_v1::PREFERRED_SCHEDULING_TERM)),
        )
        .at(&[2]),
        field("requiredDuringSchedulingIgnoredDuringExecution", Object(&super::core_v1::NODE_SELECTOR)).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static NODE_ALLOCATABLE_MAPPED_RESOURCES: Type = Type {
    name: "io.k8s.api.core.v1.NodeAllocatableMappedResources",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("quantity", Quantity).required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static NODE_ALLOCATABLE_OVERHEAD_RESOURCES: Type = Type {
    name: "io.k8s.api.core.v1.NodeAllocatableOverheadResources",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("perContainer", Quantity).at(&[3]),
        field("perPod", Quantity).at(&[2]),
    ],
    wire: &[0, 2, 1],
};

pub(super) static NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus",
    atomic: false,
    fields: &[
        field("containers", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Replace, retain_keys: false })
            .at(&[2]),
        field("mapping", List(&Object(&super::core_v1::NODE_ALLOCATABLE_MAPPED_RESOURCES))).at(&[4]),
        field("overhead", List(&Object(&super::core_v1::NODE_ALLOCATABLE_OVERHEAD_RESOURCES))).at(&[5]),
        field("resourceClaimName", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 0, 1, 2],
};

pub(super) static NODE_CONDITION: Type = Type {
    name: "io.k8s.api.core.v1.NodeCondition",
    atomic: false,
    fields: &[
        field("lastHeartbeatTime", Time).at(&[3]).always(),
        field("lastTransitionTime", Time).at(&[4]).always(),
        field("message", String).omitted().at(&[6]).always(),
        field("reason", String).omitted().at(&[5]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 4, 0, 1, 3, 2],
};

pub(super) static NODE_CONFIG_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.NodeConfigSource",
    atomic: false,
    fields: &[field("configMap", Object(&super::core_v1::CONFIG_MAP_NODE_CONFIG_SOURCE)).at(&[2])],
    wire: &[0],
};

pub(super) static NODE_CONFIG_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.NodeConfigStatus",
    atomic: false,
    fields: &[
        field("active", Object(&super::core_v1::NODE_CONFIG_SOURCE)).at(&[2]),
        field("assigned", Object(&super::core_v1::NODE_CONFIG_SOURCE)).at(&[1]),
        field("error", String).omitted().at(&[4]).always(),
        field("lastKnownGood", Object(&super::core_v1::NODE_CONFIG_SOURCE)).at(&[3]),
    ],
    wire: &[1, 0, 3, 2],
};

pub(super) static NODE_DAEMON_ENDPOINTS: Type = Type {
    name: "io.k8s.api.core.v1.NodeDaemonEndpoints",
    atomic: false,
    fields: &[field("kubeletEndpoint", Object(&super::core_v1::DAEMON_ENDPOINT)).zero().at(&[1]).always()],
    wire: &[0],
};

pub(super) static NODE_FEATURES: Type = Type {
    name: "io.k8s.api.core.v1.NodeFeatures",
    atomic: false,
    fields: &[field("supplementalGroupsPolicy", Boolean).at(&[1])],
    wire: &[0],
};

pub(super) static NODE_POD_PREEMPTION_POLICY: Type = Type {
    name: "io.k8s.api.core.v1.NodePodPreemptionPolicy",
    atomic: false,
    fields: &[field("disableResizePreemption", List(&String)).at(&[1])],
    wire: &[0],
};

pub(super) static NODE_RUNTIME_HANDLER: Type = Type {
    name: "io.k8s.api.core.v1.NodeRuntimeHandler",
    atomic: false,
    fields: &[
        field("features", Object(&super::core_v1::NODE_RUNTIME_HANDLER_FEATURES)).at(&[2]),
        field("name", String).zero().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static NODE_RUNTIME_HANDLER_FEATURES: Type = Type {
    name: "io.k8s.api.core.v1.NodeRuntimeHandlerFeatures",
    atomic: false,
    fields: &[field("recursiveReadOnlyMounts", Boolean).at(&[1]), field("userNamespaces", Boolean).at(&[2])],
    wire: &[0, 1],
};

pub(super) static NODE_SELECTOR: Type = Type {
    name: "io.k8s.api.core.v1.NodeSelector",
    atomic: true,
    fields: &[field("nodeSelectorTerms", List(&Object(&super::core_v1::NODE_SELECTOR_TERM))).required().at(&[1])],
    wire: &[0],
};

pub(super) static NODE_SELECTOR_REQUIREMENT: Type = Type {
    name: "io.k8s.api.core.v1.NodeSelectorRequirement",
    atomic: false,
    fields: &[
        field("key", String).zero().required().at(&[1]).always(),
        field("operator", String).zero().required().at(&[2]).always(),
        field("values", List(&String)).at(&[3]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static NODE_SELECTOR_TERM: Type = Type {
    name: "io.k8s.api.core.v1.NodeSelectorTerm",
    atomic: true,
    fields: &[
        field("matchExpressions", List(&Object(&super::core_v1::NODE_SELECTOR_REQUIREMENT))).at(&[1]),
        field("matchFields", List(&Object(&super::core_v1::NODE_SELECTOR_REQUIREMENT))).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static NODE_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.NodeSpec",
    atomic: false,
    fields: &[
        field("configSource", Object(&super::core_v1::NODE_CONFIG_SOURCE)).at(&[6]),
        field("externalID", String).omitted().at(&[2]).always(),
        field("podCIDR", String).omitted().at(&[1]).always(),
        field("podCIDRs", List(&String))
            .merged(&Merge { apply: Apply::Set, patch: Patch::Set, retain_keys: false })
            .at(&[7]),
        field("podPreemptionPolicy", Object(&super::core_v1::NODE_POD_PREEMPTION_POLICY)).at(&[8]),
        field("providerID", String).omitted().at(&[3]).always(),
        field("taints", List(&Object(&super::core_v1::TAINT))).at(&[5]),
        field("unschedulable", Boolean).omitted().at(&[4]).always(),
    ],
    wire: &[2, 1, 5, 7, 6, 0, 3, 4],
};

pub(super) static NODE_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.NodeStatus",
    atomic: false,
    fields: &[
        field("addresses", List(&Object(&super::core_v1::NODE_ADDRESS)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[5]),
        field("allocatable", Map(&Quantity)).at(&[2]),
        field("capacity", Map(&Quantity)).at(&[1]),
        field("conditions", List(&Object(&super::core_v1::NODE_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[4]),
        field("config", Object(&super::core_v1::NODE_CONFIG_STATUS)).at(&[11]),
        field("daemonEndpoints", Object(&super::core_v1::NODE_DAEMON_ENDPOINTS)).zero().at(&[6]).always(),
        field("declaredFeatures", List(&String)).at(&[14]),
        field("features", Object(&super::core_v1::NODE_FEATURES)).at(&[13]),
        field("images", List(&Object(&super::core_v1::CONTAINER_IMAGE))).at(&[8]),
        field("nodeInfo", Object(&super::core_v1::NODE_SYSTEM_INFO)).zero().at(&[7]).always(),
        field("phase", String).omitted().at(&[3]).always(),
        field("runtimeHandlers", List(&Object(&super::core_v1::NODE_RUNTIME_HANDLER))).at(&[12]),
        field("volumesAttached", List(&Object(&super::core_v1::ATTACHED_VOLUME))).at(&[10]),
        field("volumesInUse", List(&String)).at(&[9]),
    ],
    wire: &[2, 1, 10, 3, 0, 5, 9, 8, 13, 12, 4, 11, 7, 6],
};

pub(super) static NODE_SWAP_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.NodeSwapStatus",
    atomic: false,
    fields: &[field("capacity", Int64).at(&[1])],
    wire: &[0],
};

pub(super) static NODE_SYSTEM_INFO: Type = Type {
    name: "io.k8s.api.core.v1.NodeSystemInfo",
    atomic: false,
    fields: &[
        field("architecture", String).zero().required().at(&[10]).always(),
        field("bootID", String).zero().required().at(&[3]).always(),
        field("containerRuntimeVersion", String).zero().required().at(&[6]).always(),
        field("kernelVersion", String).zero().required().at(&[4]).always(),
        field("kubeProxyVersion", String).zero().required().at(&[8]).always(),
        field("kubeletVersion", String).zero().required().at(&[7]).always(),
        field("machineID", String).zero().required().at(&[1]).always(),
        field("operatingSystem", String).zero().required().at(&[9]).always(),
        field("osImage", String).zero().required().at(&[5]).always(),
        field("runningInUserNamespace", Boolean),
        field("swap", Object(&super::core_v1::NODE_SWAP_STATUS)).at(&[11]),
        field("systemUUID", String).zero().required().at(&[2]).always(),
    ],
    wire: &[6, 11, 1, 3, 8, 2, 5, 4, 7, 0, 10],
};

pub(super) static OBJECT_FIELD_SELECTOR: Type = Type {
    name: "io.k8s.api.core.v1.ObjectFieldSelector",
    atomic: true,
    fields: &[
        field("apiVersion", String).omitted().at(&[1]).always(),
        field("fieldPath", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.core.v1.ObjectReference",
    atomic: true,
    fields: &[
        field("apiVersion", String).omitted().at(&[5]).always(),
        field("fieldPath", String).omitted().at(&[7]).always(),
        field("kind", String).omitted().at(&[1]).always(),
        field("name", String).omitted().at(&[3]).always(),
        field("namespace", String).omitted().at(&[2]).always(),
        field("resourceVersion", String).omitted().at(&[6]).always(),
        field("uid", String).omitted().at(&[4]).always(),
    ],
    wire: &[2, 4, 3, 6, 0, 5, 1],
};

pub(super) static PERSISTENT_VOLUME: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolume",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::PERSISTENT_VOLUME_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::PERSISTENT_VOLUME_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static PERSISTENT_VOLUME_CLAIM: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeClaim",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::PERSISTENT_VOLUME_CLAIM_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::PERSISTENT_VOLUME_CLAIM_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static PERSISTENT_VOLUME_CLAIM_CONDITION: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeClaimCondition",
    atomic: false,
    fields: &[
        field("lastProbeTime", Time).at(&[3]).always(),
        field("lastTransitionTime", Time).at(&[4]).always(),
        field("message", String).omitted().at(&[6]).always(),
        field("reason", String).omitted().at(&[5]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 4, 0, 1, 3, 2],
};

pub(super) static PERSISTENT_VOLUME_CLAIM_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeClaimSpec",
    atomic: false,
    fields: &[
        field("accessModes", List(&String)).at(&[1]),
        field("dataSource", Object(&super::core_v1::TYPED_LOCAL_OBJECT_REFERENCE)).at(&[7]),
        field("dataSourceRef", Object(&super::core_v1::TYPED_OBJECT_REFERENCE)).at(&[8]),
        field("resources", Object(&super::core_v1::VOLUME_RESOURCE_REQUIREMENTS)).zero().at(&[2]).always(),
        field("selector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[4]),
        field("storageClassName", String).at(&[5]),
        field("volumeAttributesClassName", String).at(&[9]),
        field("volumeMode", String).at(&[6]),
        field("volumeName", String).omitted().at(&[3]).always(),
    ],
    wire: &[0, 3, 8, 4, 5, 7, 1, 2, 6],
};

pub(super) static PERSISTENT_VOLUME_CLAIM_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeClaimStatus",
    atomic: false,
    fields: &[
        field("accessModes", List(&String)).at(&[2]),
        field("allocatedResourceStatuses", Map(&String)).at(&[7]),
        field("allocatedResources", Map(&Quantity)).at(&[5]),
        field("capacity", Map(&Quantity)).at(&[3]),
        field("conditions", List(&Object(&super::core_v1::PERSISTENT_VOLUME_CLAIM_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[4]),
        field("currentVolumeAttributesClassName", String).at(&[8]),
        field("healthStatus", Object(&super::core_v1::VOLUME_HEALTH_STATUS)).at(&[10]),
        field("modifyVolumeStatus", Object(&super::core_v1::MODIFY_VOLUME_STATUS)).at(&[9]),
        field("phase", String).omitted().at(&[1]).always(),
    ],
    wire: &[8, 0, 3, 4, 2, 1, 5, 7, 6],
};

pub(super) static PERSISTENT_VOLUME_CLAIM_TEMPLATE: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeClaimTemplate",
    atomic: false,
    fields: &[
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().at(&[1]).always(),
        field("spec", Object(&super::core_v1::PERSISTENT_VOLUME_CLAIM_SPEC)).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeClaimVolumeSource",
    atomic: false,
    fields: &[
        field("claimName", String).zero().required().at(&[1]).always(),
        field("readOnly", Boolean).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static PERSISTENT_VOLUME_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeSpec",
    atomic: false,
    fields: &[
        field("accessModes", List(&String)).at(&[3]),
        field("awsElasticBlockStore", Object(&super::core_v1::AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)).at(&[2, 2]),
        field("azureDisk", Object(&super::core_v1::AZURE_DISK_VOLUME_SOURCE)).at(&[2, 16]),
        field("azureFile", Object(&super::core_v1::AZURE_FILE_PERSISTENT_VOLUME_SOURCE)).at(&[2, 13]),
        field("capacity", Map(&Quantity)).at(&[1]),
        field("cephfs", Object(&super::core_v1::CEPH_FS_PERSISTENT_VOLUME_SOURCE)).at(&[2, 9]),
        field("cinder", Object(&super::core_v1::CINDER_PERSISTENT_VOLUME_SOURCE)).at(&[2, 8]),
        field("claimRef", Object(&super::core_v1::OBJECT_REFERENCE)).at(&[4]),
        field("csi", Object(&super::core_v1::CSI_PERSISTENT_VOLUME_SOURCE)).at(&[2, 22]),
        field("fc", Object(&super::core_v1::FC_VOLUME_SOURCE)).at(&[2, 10]),
        field("flexVolume", Object(&super::core_v1::FLEX_PERSISTENT_VOLUME_SOURCE)).at(&[2, 12]),
        field("flocker", Object(&super::core_v1::FLOCKER_VOLUME_SOURCE)).at(&[2, 11]),
        field("gcePersistentDisk", Object(&super::core_v1::GCE_PERSISTENT_DISK_VOLUME_SOURCE)).at(&[2, 1]),
        field("glusterfs", Object(&super::core_v1::GLUSTERFS_PERSISTENT_VOLUME_SOURCE)).at(&[2, 4]),
        field("hostPath", Object(&super::core_v1::HOST_PATH_VOLUME_SOURCE)).at(&[2, 3]),
        field("iscsi", Object(&super::core_v1::ISCSI_PERSISTENT_VOLUME_SOURCE)).at(&[2, 7]),
        field("local", Object(&super::core_v1::LOCAL_VOLUME_SOURCE)).at(&[2, 20]),
        field("mountOptions", List(&String)).at(&[7]),
        field("nfs", Object(&super::core_v1::NFS_VOLUME_SOURCE)).at(&[2, 5]),
        field("nodeAffinity", Object(&super::core_v1::VOLUME_NODE_AFFINITY)).at(&[9]),
        field("persistentVolumeReclaimPolicy", String).omitted().at(&[5]).always(),
        field("photonPersistentDisk", Object(&super::core_v1::PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)).at(&[2, 17]),
        field("portworxVolume", Object(&super::core_v1::PORTWORX_VOLUME_SOURCE)).at(&[2, 18]),
        field("quobyte", Object(&super::core_v1::QUOBYTE_VOLUME_SOURCE)).at(&[2, 15]),
        field("rbd", Object(&super::core_v1::RBD_PERSISTENT_VOLUME_SOURCE)).at(&[2, 6]),
        field("scaleIO", Object(&super::core_v1::SCALE_IO_PERSISTENT_VOLUME_SOURCE)).at(&[2, 19]),
        field("storageClassName", String).at(&[6]).always(),
        field("storageos", Object(&super::core_v1::STORAGE_OS_PERSISTENT_VOLUME_SOURCE)).at(&[2, 21]),
        field("volumeAttributesClassName", String).at(&[10]),
        field("volumeMode", String).at(&[8]),
        field("vsphereVolume", Object(&super::core_v1::VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)).at(&[2, 14]),
    ],
    wire: &[
        4, 12, 1, 14, 13, 18, 24, 15, 6, 5, 9, 11, 10, 3, 30, 23, 2, 21, 22, 25, 16, 27, 8, 0, 7, 20, 26, 17, 29, 19,
        28,
    ],
};

pub(super) static PERSISTENT_VOLUME_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.PersistentVolumeStatus",
    atomic: false,
    fields: &[
        field("lastPhaseTransitionTime", Time).at(&[4]),
        field("message", String).omitted().at(&[2]).always(),
        field("phase", String).omitted().at(&[1]).always(),
        field("reason", String).omitted().at(&[3]).always(),
    ],
    wire: &[2, 1, 3, 0],
};

pub(super) static PHOTON_PERSISTENT_DISK_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.PhotonPersistentDiskVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[2]).always(),
        field("pdID", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static POD: Type = Type {
    name: "io.k8s.api.core.v1.Pod",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::POD_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::POD_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static POD_AFFINITY: Type = Type {
    name: "io.k8s.api.core.v1.PodAffinity",
    atomic: false,
    fields: &[
        field(
            "preferredDuringSchedulingIgnoredDuringExecution",
            List(&Object(&super::core_v1::WEIGHTED_POD_AFFINITY_TERM)),
        )
        .at(&[2]),
        field("requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&super::core_v1::POD_AFFINITY_TERM)))
            .at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static POD_AFFINITY_TERM: Type = Type {
    name: "io.k8s.api.core.v1.PodAffinityTerm",
    atomic: false,
    fields: &[
        field("labelSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[1]),
        field("matchLabelKeys", List(&String)).at(&[5]),
        field("mismatchLabelKeys", List(&String)).at(&[6]),
        field("namespaceSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[4]),
        field("namespaces", List(&String)).at(&[2]),
        field("topologyKey", String).zero().required().at(&[3]).always(),
    ],
    wire: &[0, 4, 5, 3, 1, 2],
};

pub(super) static POD_ANTI_AFFINITY: Type = Type {
    name: "io.k8s.api.core.v1.PodAntiAffinity",
    atomic: false,
    fields: &[
        field(
            "preferredDuringSchedulingIgnoredDuringExecution",
            List(&Object(&super::core_v1::WEIGHTED_POD_AFFINITY_TERM)),
        )
        .at(&[2]),
        field("requiredDuringSchedulingIgnoredDuringExecution", List(&Object(&super::core_v1::POD_AFFINITY_TERM)))
            .at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static POD_CERTIFICATE_PROJECTION: Type = Type {
    name: "io.k8s.api.core.v1.PodCertificateProjection",
    atomic: false,
    fields: &[
        field("certificateChainPath", String).omitted().at(&[6]).always(),
        field("credentialBundlePath", String).omitted().at(&[4]).always(),
        field("keyPath", String).omitted().at(&[5]).always(),
        field("keyType", String).required().at(&[2]).always(),
        field("maxExpirationSeconds", Int32).at(&[3]),
        field("signerName", String).required().at(&[1]).always(),
        field("user", Int64).at(&[8]),
        field("userAnnotations", Map(&String)).at(&[7]),
    ],
    wire: &[5, 3, 4, 1, 2, 0, 7, 6],
};

pub(super) static POD_CONDITION: Type = Type {
    name: "io.k8s.api.core.v1.PodCondition",
    atomic: false,
    fields: &[
        field("lastProbeTime", Time).at(&[3]).always(),
        field("lastTransitionTime", Time).at(&[4]).always(),
        field("message", String).omitted().at(&[6]).always(),
        field("observedGeneration", Int64).omitted().at(&[7]).always(),
        field("reason", String).omitted().at(&[5]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[6, 5, 0, 1, 4, 2, 3],
};

pub(super) static POD_DNS_CONFIG: Type = Type {
    name: "io.k8s.api.core.v1.PodDNSConfig",
    atomic: false,
    fields: &[
        field("nameservers", List(&String)).at(&[1]),
        field("options", List(&Object(&super::core_v1::POD_DNS_CONFIG_OPTION))).at(&[3]),
        field("searches", List(&String)).at(&[2]),
    ],
    wire: &[0, 2, 1],
};

pub(super) static POD_DNS_CONFIG_OPTION: Type = Type {
    name: "io.k8s.api.core.v1.PodDNSConfigOption",
    atomic: false,
    fields: &[field("name", String).omitted().at(&[1]).always(), field("value", String).at(&[2])],
    wire: &[0, 1],
};

pub(super) static POD_EXTENDED_RESOURCE_CLAIM_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.PodExtendedResourceClaimStatus",
    atomic: false,
    fields: &[
        field("requestMappings", List(&Object(&super::core_v1::CONTAINER_EXTENDED_RESOURCE_REQUEST)))
            .required()
            .at(&[1]),
        field("resourceClaimName", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static POD_IP: Type = Type {
    name: "io.k8s.api.core.v1.PodIP",
    atomic: false,
    fields: &[field("ip", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static POD_OS: Type = Type {
    name: "io.k8s.api.core.v1.PodOS",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static POD_READINESS_GATE: Type = Type {
    name: "io.k8s.api.core.v1.PodReadinessGate",
    atomic: false,
    fields: &[field("conditionType", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static POD_RESOURCE_CLAIM: Type = Type {
    name: "io.k8s.api.core.v1.PodResourceClaim",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("resourceClaimName", String).at(&[3]),
        field("resourceClaimTemplateName", String).at(&[4]),
    ],
    wire: &[0, 1, 2],
};

pub(super) static POD_RESOURCE_CLAIM_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.PodResourceClaimStatus",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always(), field("resourceClaimName", String).at(&[2])],
    wire: &[0, 1],
};

pub(super) static POD_SCHEDULING_GATE: Type = Type {
    name: "io.k8s.api.core.v1.PodSchedulingGate",
    atomic: false,
    fields: &[field("name", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static POD_SCHEDULING_GROUP: Type = Type {
    name: "io.k8s.api.core.v1.PodSchedulingGroup",
    atomic: false,
    fields: &[field("podGroupName", String).at(&[1])],
    wire: &[0],
};

pub(super) static POD_SECURITY_CONTEXT: Type = Type {
    name: "io.k8s.api.core.v1.PodSecurityContext",
    atomic: false,
    fields: &[
        field("appArmorProfile", Object(&super::core_v1::APP_ARMOR_PROFILE)).at(&[11]),
        field("fsGroup", Int64).at(&[5]),
        field("fsGroupChangePolicy", String).at(&[9]),
        field("runAsGroup", Int64).at(&[6]),
        field("runAsNonRoot", Boolean).at(&[3]),
        field("runAsUser", Int64).at(&[2]),
        field("seLinuxChangePolicy", String).at(&[13]),
        field("seLinuxOptions", Object(&super::core_v1::SE_LINUX_OPTIONS)).at(&[1]),
        field("seccompProfile", Object(&super::core_v1::SECCOMP_PROFILE)).at(&[10]),
        field("supplementalGroups", List(&Int64)).at(&[4]),
        field("supplementalGroupsPolicy", String).at(&[12]),
        field("sysctls", List(&Object(&super::core_v1::SYSCTL))).at(&[7]),
        field("windowsOptions", Object(&super::core_v1::WINDOWS_SECURITY_CONTEXT_OPTIONS)).at(&[8]),
    ],
    wire: &[7, 5, 4, 9, 1, 3, 11, 12, 2, 8, 0, 10, 6],
};

pub(super) static POD_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.PodSpec",
    atomic: false,
    fields: &[
        field("activeDeadlineSeconds", Int64).at(&[5]),
        field("affinity", Object(&super::core_v1::AFFINITY)).at(&[18]),
        field("automountServiceAccountToken", Boolean).at(&[21]),
        field("containers", List(&Object(&super::core_v1::CONTAINER)))
            .required()
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[2]),
        field("dnsConfig", Object(&super::core_v1::POD_DNS_CONFIG)).at(&[26]),
        field("dnsPolicy", String).omitted().at(&[6]).always(),
        field("enableServiceLinks", Boolean).at(&[30]),
        field("ephemeralContainers", List(&Object(&super::core_v1::EPHEMERAL_CONTAINER)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[34]),
        field("evictionResponders", List(&Object(&super::core_v1::EVICTION_RESPONDER))).at(&[44]),
        field("hostAliases", List(&Object(&super::core_v1::HOST_ALIAS)))
            .merged(&Merge { apply: ByKeys(&["ip"]), patch: ByKey("ip"), retain_keys: false })
            .at(&[23]),
        field("hostIPC", Boolean).omitted().at(&[13]).always(),
        field("hostNetwork", Boolean).omitted().at(&[11]).always(),
        field("hostPID", Boolean).omitted().at(&[12]).always(),
        field("hostUsers", Boolean).at(&[37]),
        field("hostname", String).omitted().at(&[16]).always(),
        field("hostnameOverride", String).at(&[41]),
        field("imagePullSecrets", List(&Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[15]),
        field("initContainers", List(&Object(&super::core_v1::CONTAINER)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[20]),
        field("nodeName", String).omitted().at(&[10]).always(),
        field("nodeSelector", Map(&String))
            .merged(&Merge { apply: Atomic, patch: Patch::Deep, retain_keys: false })
            .at(&[7]),
        field("os", Object(&super::core_v1::POD_OS)).at(&[36]),
        field("overhead", Map(&Quantity)).at(&[32]),
        field("preemptionPolicy", String).at(&[31]),
        field("priority", Int32).at(&[25]),
        field("priorityClassName", String).omitted().at(&[24]).always(),
        field("readinessGates", List(&Object(&super::core_v1::POD_READINESS_GATE))).at(&[28]),
        field("resourceClaims", List(&Object(&super::core_v1::POD_RESOURCE_CLAIM)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: true })
            .at(&[39]),
        field("resources", Object(&super::core_v1::RESOURCE_REQUIREMENTS)).at(&[40]),
        field("restartPolicy", String).omitted().at(&[3]).always(),
        field("runtimeClassName", String).at(&[29]),
        field("schedulerName", String).omitted().at(&[19]).always(),
        field("schedulingGates", List(&Object(&super::core_v1::POD_SCHEDULING_GATE)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[38]),
        field("schedulingGroup", Object(&super::core_v1::POD_SCHEDULING_GROUP)).at(&[43]),
        field("securityContext", Object(&super::core_v1::POD_SECURITY_CONTEXT)).at(&[14]),
        field("serviceAccount", String).omitted().at(&[9]).always(),
        field("serviceAccountName", String).omitted().at(&[8]).always(),
        field("setHostnameAsFQDN", Boolean).at(&[35]),
        field("shareProcessNamespace", Boolean).at(&[27]),
        field("subdomain", String).omitted().at(&[17]).always(),
        field("terminationGracePeriodSeconds", Int64).at(&[4]),
        field("tolerations", List(&Object(&super::core_v1::TOLERATION))).at(&[22]),
        field("topologySpreadConstraints", List(&Object(&super::core_v1::TOPOLOGY_SPREAD_CONSTRAINT)))
            .merged(&Merge {
                apply: ByKeys(&["topologyKey", "whenUnsatisfiable"]),
                patch: ByKey("topologyKey"),
                retain_keys: false,
            })
            .at(&[33]),
        field("volumes", List(&Object(&super::core_v1::VOLUME)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: true })
            .at(&[1]),
    ],
    wire: &[
        42, 3, 28, 39, 0, 5, 19, 35, 34, 18, 11, 12, 10, 33, 16, 14, 38, 1, 30, 17, 2, 40, 9, 24, 23, 4, 37, 25, 29, 6,
        22, 21, 41, 7, 36, 20, 13, 31, 26, 27, 15, 32, 8,
    ],
};

pub(super) static POD_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.PodStatus",
    atomic: false,
    fields: &[
        field("allocatedResources", Map(&Quantity)).at(&[19]),
        field("conditions", List(&Object(&super::core_v1::POD_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[2]),
        field("containerStatuses", List(&Object(&super::core_v1::CONTAINER_STATUS))).at(&[8]),
        field("ephemeralContainerStatuses", List(&Object(&super::core_v1::CONTAINER_STATUS))).at(&[13]),
        field("extendedResourceClaimStatus", Object(&super::core_v1::POD_EXTENDED_RESOURCE_CLAIM_STATUS)).at(&[18]),
        field("hostIP", String).omitted().at(&[5]).always(),
        field("hostIPs", List(&Object(&super::core_v1::HOST_IP)))
            .merged(&Merge { apply: Atomic, patch: ByKey("ip"), retain_keys: false })
            .at(&[16]),
        field("initContainerStatuses", List(&Object(&super::core_v1::CONTAINER_STATUS))).at(&[10]),
        field("message", String).omitted().at(&[3]).always(),
        field(
            "nodeAllocatableResourceClaimStatuses",
            List(&Object(&super::core_v1::NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS)),
        )
        .at(&[21]),
        field("nominatedNodeName", String).omitted().at(&[11]).always(),
        field("observedGeneration", Int64).omitted().at(&[17]).always(),
        field("phase", String).omitted().at(&[1]).always(),
        field("podIP", String).omitted().at(&[6]).always(),
        field("podIPs", List(&Object(&super::core_v1::POD_IP)))
            .merged(&Merge { apply: ByKeys(&["ip"]), patch: ByKey("ip"), retain_keys: false })
            .at(&[12]),
        field("qosClass", String).omitted().at(&[9]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("resize", String).at(&[14]).always(),
        field("resourceClaimStatuses", List(&Object(&super::core_v1::POD_RESOURCE_CLAIM_STATUS)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: true })
            .at(&[15]),
        field("resources", Object(&super::core_v1::RESOURCE_REQUIREMENTS)).at(&[20]),
        field("startTime", Time).at(&[7]),
        field("volumeHealth", List(&Object(&super::core_v1::POD_VOLUME_HEALTH))).at(&[22]),
    ],
    wire: &[12, 1, 8, 16, 5, 13, 20, 2, 15, 7, 10, 14, 3, 17, 18, 6, 11, 4, 0, 19, 9, 21],
};

pub(super) static POD_TEMPLATE: Type = Type {
    name: "io.k8s.api.core.v1.PodTemplate",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("template", Object(&super::core_v1::POD_TEMPLATE_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[2, 3],
};

pub(super) static POD_TEMPLATE_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.PodTemplateSpec",
    atomic: false,
    fields: &[
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().at(&[1]).always(),
        field("spec", Object(&super::core_v1::POD_SPEC)).zero().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static POD_VOLUME_HEALTH: Type = Type {
    name: "io.k8s.api.core.v1.PodVolumeHealth",
    atomic: false,
    fields: &[
        field("healthConditions", List(&Object(&super::core_v1::VOLUME_HEALTH_CONDITION))).at(&[2]),
        field("lastTransitionTime", Time).at(&[3]),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static PORT_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.PortStatus",
    atomic: false,
    fields: &[
        field("error", String).at(&[3]),
        field("port", Int32).zero().required().at(&[1]).always(),
        field("protocol", String).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static PORTWORX_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.PortworxVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[2]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("volumeID", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static PREFERRED_SCHEDULING_TERM: Type = Type {
    name: "io.k8s.api.core.v1.PreferredSchedulingTerm",
    atomic: false,
    fields: &[
        field("preference", Object(&super::core_v1::NODE_SELECTOR_TERM)).zero().required().at(&[2]).always(),
        field("weight", Int32).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static PROBE: Type = Type {
    name: "io.k8s.api.core.v1.Probe",
    atomic: false,
    fields: &[
        field("exec", Object(&super::core_v1::EXEC_ACTION)).at(&[1, 1]),
        field("failureThreshold", Int32).omitted().at(&[6]).always(),
        field("grpc", Object(&super::core_v1::GRPC_ACTION)).at(&[1, 4]),
        field("httpGet", Object(&super::core_v1::HTTP_GET_ACTION)).at(&[1, 2]),
        field("initialDelaySeconds", Int32).omitted().at(&[2]).always(),
        field("periodSeconds", Int32).omitted().at(&[4]).always(),
        field("successThreshold", Int32).omitted().at(&[5]).always(),
        field("tcpSocket", Object(&super::core_v1::TCP_SOCKET_ACTION)).at(&[1, 3]),
        field("terminationGracePeriodSeconds", Int64).at(&[7]),
        field("timeoutSeconds", Int32).omitted().at(&[3]).always(),
    ],
    wire: &[0, 3, 7, 2, 4, 9, 5, 6, 1, 8],
};

pub(super) static PROJECTED_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ProjectedVolumeSource",
    atomic: false,
    fields: &[
        field("defaultMode", Int32).at(&[2]),
        field("defaultUser", Int64).at(&[3]),
        field("sources", List(&Object(&super::core_v1::VOLUME_PROJECTION))).at(&[1]),
    ],
    wire: &[2, 0, 1],
};

pub(super) static QUOBYTE_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.QuobyteVolumeSource",
    atomic: false,
    fields: &[
        field("group", String).omitted().at(&[5]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("registry", String).zero().required().at(&[1]).always(),
        field("tenant", String).omitted().at(&[6]).always(),
        field("user", String).omitted().at(&[4]).always(),
        field("volume", String).zero().required().at(&[2]).always(),
    ],
    wire: &[2, 5, 1, 4, 0, 3],
};

pub(super) static RBD_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.RBDPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[3]).always(),
        field("image", String).zero().required().at(&[2]).always(),
        field("keyring", String).or("/etc/ceph/keyring").omitted().at(&[6]).always(),
        field("monitors", List(&String)).required().at(&[1]),
        field("pool", String).or("rbd").omitted().at(&[4]).always(),
        field("readOnly", Boolean).omitted().at(&[8]).always(),
        field("secretRef", Object(&super::core_v1::SECRET_REFERENCE)).at(&[7]),
        field("user", String).or("admin").omitted().at(&[5]).always(),
    ],
    wire: &[3, 1, 0, 4, 7, 2, 6, 5],
};

pub(super) static RBD_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.RBDVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[3]).always(),
        field("image", String).zero().required().at(&[2]).always(),
        field("keyring", String).or("/etc/ceph/keyring").omitted().at(&[6]).always(),
        field("monitors", List(&String)).required().at(&[1]),
        field("pool", String).or("rbd").omitted().at(&[4]).always(),
        field("readOnly", Boolean).omitted().at(&[8]).always(),
        field("secretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).at(&[7]),
        field("user", String).or("admin").omitted().at(&[5]).always(),
    ],
    wire: &[3, 1, 0, 4, 7, 2, 6, 5],
};

pub(super) static REPLICATION_CONTROLLER: Type = Type {
    name: "io.k8s.api.core.v1.ReplicationController",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::REPLICATION_CONTROLLER_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::REPLICATION_CONTROLLER_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static REPLICATION_CONTROLLER_CONDITION: Type = Type {
    name: "io.k8s.api.core.v1.ReplicationControllerCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).omitted().at(&[5]).always(),
        field("reason", String).omitted().at(&[4]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[4, 3, 0, 2, 1],
};

pub(super) static REPLICATION_CONTROLLER_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.ReplicationControllerSpec",
    atomic: false,
    fields: &[
        field("minReadySeconds", Int32).zero().omitted().at(&[4]).always(),
        field("replicas", Int32).at(&[1]),
        field("selector", Map(&String))
            .merged(&Merge { apply: Atomic, patch: Patch::Deep, retain_keys: false })
            .at(&[2]),
        field("template", Object(&super::core_v1::POD_TEMPLATE_SPEC)).at(&[3]),
    ],
    wire: &[1, 2, 3, 0],
};

pub(super) static REPLICATION_CONTROLLER_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ReplicationControllerStatus",
    atomic: false,
    fields: &[
        field("availableReplicas", Int32).omitted().at(&[5]).always(),
        field("conditions", List(&Object(&super::core_v1::REPLICATION_CONTROLLER_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[6]),
        field("fullyLabeledReplicas", Int32).omitted().at(&[2]).always(),
        field("observedGeneration", Int64).omitted().at(&[3]).always(),
        field("readyReplicas", Int32).omitted().at(&[4]).always(),
        field("replicas", Int32).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 2, 3, 4, 0, 1],
};

pub(super) static RESOURCE_CLAIM: Type = Type {
    name: "io.k8s.api.core.v1.ResourceClaim",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("request", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static RESOURCE_FIELD_SELECTOR: Type = Type {
    name: "io.k8s.api.core.v1.ResourceFieldSelector",
    atomic: true,
    fields: &[
        field("containerName", String).omitted().at(&[1]).always(),
        field("divisor", Quantity).at(&[3]).always(),
        field("resource", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 2, 1],
};

pub(super) static RESOURCE_HEALTH: Type = Type {
    name: "io.k8s.api.core.v1.ResourceHealth",
    atomic: false,
    fields: &[
        field("health", String).at(&[2]).always(),
        field("message", String).at(&[6]),
        field("resourceID", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 0, 1],
};

pub(super) static RESOURCE_QUOTA: Type = Type {
    name: "io.k8s.api.core.v1.ResourceQuota",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::RESOURCE_QUOTA_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::RESOURCE_QUOTA_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static RESOURCE_QUOTA_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.ResourceQuotaSpec",
    atomic: false,
    fields: &[
        field("hard", Map(&Quantity)).at(&[1]),
        field("scopeSelector", Object(&super::core_v1::SCOPE_SELECTOR)).at(&[3]),
        field("scopes", List(&String)).at(&[2]),
    ],
    wire: &[0, 2, 1],
};

pub(super) static RESOURCE_QUOTA_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ResourceQuotaStatus",
    atomic: false,
    fields: &[field("hard", Map(&Quantity)).at(&[1]), field("used", Map(&Quantity)).at(&[2])],
    wire: &[0, 1],
};

pub(super) static RESOURCE_REQUIREMENTS: Type = Type {
    name: "io.k8s.api.core.v1.ResourceRequirements",
    atomic: false,
    fields: &[
        field("claims", List(&Object(&super::core_v1::RESOURCE_CLAIM)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: Replace, retain_keys: false })
            .at(&[3]),
        field("limits", Map(&Quantity)).at(&[1]),
        field("requests", Map(&Quantity)).at(&[2]),
    ],
    wire: &[1, 2, 0],
};

pub(super) static RESOURCE_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ResourceStatus",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("resources", List(&Object(&super::core_v1::RESOURCE_HEALTH)))
            .merged(&Merge { apply: ByKeys(&["resourceID"]), patch: Replace, retain_keys: false })
            .at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static SE_LINUX_OPTIONS: Type = Type {
    name: "io.k8s.api.core.v1.SELinuxOptions",
    atomic: false,
    fields: &[
        field("level", String).omitted().at(&[4]).always(),
        field("role", String).omitted().at(&[2]).always(),
        field("type", String).omitted().at(&[3]).always(),
        field("user", String).omitted().at(&[1]).always(),
    ],
    wire: &[3, 1, 2, 0],
};

pub(super) static SCALE_IO_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ScaleIOPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).or("xfs").omitted().at(&[9]).always(),
        field("gateway", String).zero().required().at(&[1]).always(),
        field("protectionDomain", String).omitted().at(&[5]).always(),
        field("readOnly", Boolean).omitted().at(&[10]).always(),
        field("secretRef", Object(&super::core_v1::SECRET_REFERENCE)).required().at(&[3]),
        field("sslEnabled", Boolean).omitted().at(&[4]).always(),
        field("storageMode", String).or("ThinProvisioned").omitted().at(&[7]).always(),
        field("storagePool", String).omitted().at(&[6]).always(),
        field("system", String).zero().required().at(&[2]).always(),
        field("volumeName", String).omitted().at(&[8]).always(),
    ],
    wire: &[1, 8, 4, 5, 2, 7, 6, 9, 0, 3],
};

pub(super) static SCALE_IO_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.ScaleIOVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).or("xfs").omitted().at(&[9]).always(),
        field("gateway", String).zero().required().at(&[1]).always(),
        field("protectionDomain", String).omitted().at(&[5]).always(),
        field("readOnly", Boolean).omitted().at(&[10]).always(),
        field("secretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).required().at(&[3]),
        field("sslEnabled", Boolean).omitted().at(&[4]).always(),
        field("storageMode", String).or("ThinProvisioned").omitted().at(&[7]).always(),
        field("storagePool", String).omitted().at(&[6]).always(),
        field("system", String).zero().required().at(&[2]).always(),
        field("volumeName", String).omitted().at(&[8]).always(),
    ],
    wire: &[1, 8, 4, 5, 2, 7, 6, 9, 0, 3],
};

pub(super) static SCOPE_SELECTOR: Type = Type {
    name: "io.k8s.api.core.v1.ScopeSelector",
    atomic: true,
    fields: &[field("matchExpressions", List(&Object(&super::core_v1::SCOPED_RESOURCE_SELECTOR_REQUIREMENT))).at(&[1])],
    wire: &[0],
};

pub(super) static SCOPED_RESOURCE_SELECTOR_REQUIREMENT: Type = Type {
    name: "io.k8s.api.core.v1.ScopedResourceSelectorRequirement",
    atomic: false,
    fields: &[
        field("operator", String).zero().required().at(&[2]).always(),
        field("scopeName", String).zero().required().at(&[1]).always(),
        field("values", List(&String)).at(&[3]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static SECCOMP_PROFILE: Type = Type {
    name: "io.k8s.api.core.v1.SeccompProfile",
    atomic: false,
    fields: &[field("localhostProfile", String).at(&[2]), field("type", String).zero().required().at(&[1]).always()],
    wire: &[1, 0],
};

pub(super) static SECRET: Type = Type {
    name: "io.k8s.api.core.v1.Secret",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("data", Map(&Bytes)).at(&[2]),
        field("immutable", Boolean).at(&[5]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("stringData", Map(&String)).at(&[4]),
        field("type", String).omitted().at(&[3]).always(),
    ],
    wire: &[4, 1, 6, 5, 2],
};

pub(super) static SECRET_ENV_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.SecretEnvSource",
    atomic: false,
    fields: &[
        field("name", String).zero().required().omitted().at(&[1, 1]).always(),
        field("optional", Boolean).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static SECRET_KEY_SELECTOR: Type = Type {
    name: "io.k8s.api.core.v1.SecretKeySelector",
    atomic: true,
    fields: &[
        field("key", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().omitted().at(&[1, 1]).always(),
        field("optional", Boolean).at(&[3]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static SECRET_PROJECTION: Type = Type {
    name: "io.k8s.api.core.v1.SecretProjection",
    atomic: false,
    fields: &[
        field("items", List(&Object(&super::core_v1::KEY_TO_PATH))).at(&[2]),
        field("name", String).zero().required().omitted().at(&[1, 1]).always(),
        field("optional", Boolean).at(&[4]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static SECRET_REFERENCE: Type = Type {
    name: "io.k8s.api.core.v1.SecretReference",
    atomic: true,
    fields: &[
        field("name", String).omitted().at(&[1]).always(),
        field("namespace", String).omitted().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static SECRET_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.SecretVolumeSource",
    atomic: false,
    fields: &[
        field("defaultMode", Int32).at(&[3]),
        field("defaultUser", Int64).at(&[5]),
        field("items", List(&Object(&super::core_v1::KEY_TO_PATH))).at(&[2]),
        field("optional", Boolean).at(&[4]),
        field("secretName", String).omitted().at(&[1]).always(),
    ],
    wire: &[4, 2, 0, 3, 1],
};

pub(super) static SECURITY_CONTEXT: Type = Type {
    name: "io.k8s.api.core.v1.SecurityContext",
    atomic: false,
    fields: &[
        field("allowPrivilegeEscalation", Boolean).at(&[7]),
        field("appArmorProfile", Object(&super::core_v1::APP_ARMOR_PROFILE)).at(&[12]),
        field("capabilities", Object(&super::core_v1::CAPABILITIES)).at(&[1]),
        field("privileged", Boolean).at(&[2]),
        field("procMount", String).at(&[9]),
        field("readOnlyRootFilesystem", Boolean).at(&[6]),
        field("runAsGroup", Int64).at(&[8]),
        field("runAsNonRoot", Boolean).at(&[5]),
        field("runAsUser", Int64).at(&[4]),
        field("seLinuxOptions", Object(&super::core_v1::SE_LINUX_OPTIONS)).at(&[3]),
        field("seccompProfile", Object(&super::core_v1::SECCOMP_PROFILE)).at(&[11]),
        field("windowsOptions", Object(&super::core_v1::WINDOWS_SECURITY_CONTEXT_OPTIONS)).at(&[10]),
    ],
    wire: &[2, 3, 9, 8, 7, 5, 0, 6, 4, 11, 10, 1],
};

pub(super) static SERVICE: Type = Type {
    name: "io.k8s.api.core.v1.Service",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::core_v1::SERVICE_SPEC)).zero().at(&[2]).always(),
        field("status", Object(&super::core_v1::SERVICE_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static SERVICE_ACCOUNT: Type = Type {
    name: "io.k8s.api.core.v1.ServiceAccount",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("automountServiceAccountToken", Boolean).at(&[4]),
        field("imagePullSecrets", List(&Object(&super::core_v1::LOCAL_OBJECT_REFERENCE))).at(&[3]),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("secrets", List(&Object(&super::core_v1::OBJECT_REFERENCE)))
            .merged(&Merge { apply: ByKeys(&["name"]), patch: ByKey("name"), retain_keys: false })
            .at(&[2]),
    ],
    wire: &[4, 5, 2, 1],
};

pub(super) static SERVICE_ACCOUNT_TOKEN_PROJECTION: Type = Type {
    name: "io.k8s.api.core.v1.ServiceAccountTokenProjection",
    atomic: false,
    fields: &[
        field("audience", String).omitted().at(&[1]).always(),
        field("expirationSeconds", Int64).at(&[2]),
        field("path", String).zero().required().at(&[3]).always(),
        field("user", Int64).at(&[4]),
    ],
    wire: &[0, 1, 2, 3],
};

pub(super) static SERVICE_PORT: Type = Type {
    name: "io.k8s.api.core.v1.ServicePort",
    atomic: false,
    fields: &[
        field("appProtocol", String).at(&[6]),
        field("name", String).omitted().at(&[1]).always(),
        field("nodePort", Int32).omitted().at(&[5]).always(),
        field("port", Int32).zero().required().at(&[3]).always(),
        field("protocol", String).or("TCP").omitted().at(&[2]).always(),
        field("targetPort", IntOrString).at(&[4]).always(),
    ],
    wire: &[1, 4, 3, 5, 2, 0],
};

pub(super) static SERVICE_SPEC: Type = Type {
    name: "io.k8s.api.core.v1.ServiceSpec",
    atomic: false,
    fields: &[
        field("allocateLoadBalancerNodePorts", Boolean).at(&[20]),
        field("clusterIP", String).omitted().at(&[3]).always(),
        field("clusterIPs", List(&String)).at(&[18]),
        field("externalIPs", List(&String)).at(&[5]),
        field("externalName", String).omitted().at(&[10]).always(),
        field("externalTrafficPolicy", String).omitted().at(&[11]).always(),
        field("healthCheckNodePort", Int32).omitted().at(&[12]).always(),
        field("internalTrafficPolicy", String).at(&[22]),
        field("ipFamilies", List(&String)).at(&[19]),
        field("ipFamilyPolicy", String).at(&[17]),
        field("loadBalancerClass", String).at(&[21]),
        field("loadBalancerIP", String).omitted().at(&[8]).always(),
        field("loadBalancerSourceRanges", List(&String)).at(&[9]),
        field("ports", List(&Object(&super::core_v1::SERVICE_PORT)))
            .merged(&Merge { apply: ByKeys(&["port", "protocol"]), patch: ByKey("port"), retain_keys: false })
            .at(&[1]),
        field("publishNotReadyAddresses", Boolean).omitted().at(&[13]).always(),
        field("selector", Map(&String))
            .merged(&Merge { apply: Atomic, patch: Patch::Deep, retain_keys: false })
            .at(&[2]),
        field("sessionAffinity", String).omitted().at(&[7]).always(),
        field("sessionAffinityConfig", Object(&super::core_v1::SESSION_AFFINITY_CONFIG)).at(&[14]),
        field("trafficDistribution", String).at(&[23]),
        field("type", String).omitted().at(&[4]).always(),
    ],
    wire: &[13, 15, 1, 19, 3, 16, 11, 12, 4, 5, 6, 14, 17, 9, 2, 8, 0, 10, 7, 18],
};

pub(super) static SERVICE_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.ServiceStatus",
    atomic: false,
    fields: &[
        field("conditions", List(&Object(&super::meta_v1::CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: ByKey("type"), retain_keys: false })
            .at(&[2]),
        field("loadBalancer", Object(&super::core_v1::LOAD_BALANCER_STATUS)).zero().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static SESSION_AFFINITY_CONFIG: Type = Type {
    name: "io.k8s.api.core.v1.SessionAffinityConfig",
    atomic: false,
    fields: &[field("clientIP", Object(&super::core_v1::CLIENT_IP_CONFIG)).at(&[1])],
    wire: &[0],
};

pub(super) static SLEEP_ACTION: Type = Type {
    name: "io.k8s.api.core.v1.SleepAction",
    atomic: false,
    fields: &[field("seconds", Int64).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static STORAGE_OS_PERSISTENT_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.StorageOSPersistentVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[3]).always(),
        field("readOnly", Boolean).omitted().at(&[4]).always(),
        field("secretRef", Object(&super::core_v1::OBJECT_REFERENCE)).at(&[5]),
        field("volumeName", String).omitted().at(&[1]).always(),
        field("volumeNamespace", String).omitted().at(&[2]).always(),
    ],
    wire: &[3, 4, 0, 1, 2],
};

pub(super) static STORAGE_OS_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.StorageOSVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[3]).always(),
        field("readOnly", Boolean).omitted().at(&[4]).always(),
        field("secretRef", Object(&super::core_v1::LOCAL_OBJECT_REFERENCE)).at(&[5]),
        field("volumeName", String).omitted().at(&[1]).always(),
        field("volumeNamespace", String).omitted().at(&[2]).always(),
    ],
    wire: &[3, 4, 0, 1, 2],
};

pub(super) static SYSCTL: Type = Type {
    name: "io.k8s.api.core.v1.Sysctl",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[1]).always(),
        field("value", String).zero().required().at(&[2]).always(),
    ],
    wire: &[0, 1],
};

pub(super) static TCP_SOCKET_ACTION: Type = Type {
    name: "io.k8s.api.core.v1.TCPSocketAction",
    atomic: false,
    fields: &[
        field("host", String).omitted().at(&[2]).always(),
        field("port", IntOrString).required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static TAINT: Type = Type {
    name: "io.k8s.api.core.v1.Taint",
    atomic: false,
    fields: &[
        field("effect", String).zero().required().at(&[3]).always(),
        field("key", String).zero().required().at(&[1]).always(),
        field("timeAdded", Time).at(&[4]),
        field("value", String).omitted().at(&[2]).always(),
    ],
    wire: &[1, 3, 0, 2],
};

pub(super) static TOLERATION: Type = Type {
    name: "io.k8s.api.core.v1.Toleration",
    atomic: false,
    fields: &[
        field("effect", String).omitted().at(&[4]).always(),
        field("key", String).omitted().at(&[1]).always(),
        field("operator", String).omitted().at(&[2]).always(),
        field("tolerationSeconds", Int64).at(&[5]),
        field("value", String).omitted().at(&[3]).always(),
    ],
    wire: &[1, 2, 4, 0, 3],
};

pub(super) static TOPOLOGY_SELECTOR_LABEL_REQUIREMENT: Type = Type {
    name: "io.k8s.api.core.v1.TopologySelectorLabelRequirement",
    atomic: false,
    fields: &[
        field("key", String).zero().required().at(&[1]).always(),
        field("values", List(&String)).required().at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static TOPOLOGY_SELECTOR_TERM: Type = Type {
    name: "io.k8s.api.core.v1.TopologySelectorTerm",
    atomic: true,
    fields: &[
        field("matchLabelExpressions", List(&Object(&super::core_v1::TOPOLOGY_SELECTOR_LABEL_REQUIREMENT))).at(&[1])
    ],
    wire: &[0],
};

pub(super) static TOPOLOGY_SPREAD_CONSTRAINT: Type = Type {
    name: "io.k8s.api.core.v1.TopologySpreadConstraint",
    atomic: false,
    fields: &[
        field("labelSelector", Object(&super::meta_v1::LABEL_SELECTOR)).at(&[4]),
        field("matchLabelKeys", List(&String)).at(&[8]),
        field("maxSkew", Int32).zero().required().at(&[1]).always(),
        field("minDomains", Int32).at(&[5]),
        field("nodeAffinityPolicy", String).at(&[6]),
        field("nodeTaintsPolicy", String).at(&[7]),
        field("topologyKey", String).zero().required().at(&[2]).always(),
        field("whenUnsatisfiable", String).zero().required().at(&[3]).always(),
    ],
    wire: &[2, 6, 7, 0, 3, 4, 5, 1],
};

pub(super) static TYPED_LOCAL_OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.core.v1.TypedLocalObjectReference",
    atomic: true,
    fields: &[
        field("apiGroup", String).at(&[1]),
        field("kind", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[3]).always(),
    ],
    wire: &[0, 1, 2],
};

pub(super) static TYPED_OBJECT_REFERENCE: Type = Type {
    name: "io.k8s.api.core.v1.TypedObjectReference",
    atomic: false,
    fields: &[
        field("apiGroup", String).at(&[1]),
        field("kind", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[3]).always(),
        field("namespace", String).at(&[4]),
    ],
    wire: &[0, 1, 2, 3],
};

pub(super) static VOLUME: Type = Type {
    name: "io.k8s.api.core.v1.Volume",
    atomic: false,
    fields: &[
        field("awsElasticBlockStore", Object(&super::core_v1::AWS_ELASTIC_BLOCK_STORE_VOLUME_SOURCE)).at(&[2, 4]),
        field("azureDisk", Object(&super::core_v1::AZURE_DISK_VOLUME_SOURCE)).at(&[2, 22]),
        field("azureFile", Object(&super::core_v1::AZURE_FILE_VOLUME_SOURCE)).at(&[2, 18]),
        field("cephfs", Object(&super::core_v1::CEPH_FS_VOLUME_SOURCE)).at(&[2, 14]),
        field("cinder", Object(&super::core_v1::CINDER_VOLUME_SOURCE)).at(&[2, 13]),
        field("configMap", Object(&super::core_v1::CONFIG_MAP_VOLUME_SOURCE)).at(&[2, 19]),
        field("csi", Object(&super::core_v1::CSI_VOLUME_SOURCE)).at(&[2, 28]),
        field("downwardAPI", Object(&super::core_v1::DOWNWARD_API_VOLUME_SOURCE)).at(&[2, 16]),
        field("emptyDir", Object(&super::core_v1::EMPTY_DIR_VOLUME_SOURCE)).at(&[2, 2]),
        field("ephemeral", Object(&super::core_v1::EPHEMERAL_VOLUME_SOURCE)).at(&[2, 29]),
        field("fc", Object(&super::core_v1::FC_VOLUME_SOURCE)).at(&[2, 17]),
        field("flexVolume", Object(&super::core_v1::FLEX_VOLUME_SOURCE)).at(&[2, 12]),
        field("flocker", Object(&super::core_v1::FLOCKER_VOLUME_SOURCE)).at(&[2, 15]),
        field("gcePersistentDisk", Object(&super::core_v1::GCE_PERSISTENT_DISK_VOLUME_SOURCE)).at(&[2, 3]),
        field("gitRepo", Object(&super::core_v1::GIT_REPO_VOLUME_SOURCE)).at(&[2, 5]),
        field("glusterfs", Object(&super::core_v1::GLUSTERFS_VOLUME_SOURCE)).at(&[2, 9]),
        field("hostPath", Object(&super::core_v1::HOST_PATH_VOLUME_SOURCE)).at(&[2, 1]),
        field("image", Object(&super::core_v1::IMAGE_VOLUME_SOURCE)).at(&[2, 30]),
        field("iscsi", Object(&super::core_v1::ISCSI_VOLUME_SOURCE)).at(&[2, 8]),
        field("name", String).zero().required().at(&[1]).always(),
        field("nfs", Object(&super::core_v1::NFS_VOLUME_SOURCE)).at(&[2, 7]),
        field("persistentVolumeClaim", Object(&super::core_v1::PERSISTENT_VOLUME_CLAIM_VOLUME_SOURCE)).at(&[2, 10]),
        field("photonPersistentDisk", Object(&super::core_v1::PHOTON_PERSISTENT_DISK_VOLUME_SOURCE)).at(&[2, 23]),
        field("portworxVolume", Object(&super::core_v1::PORTWORX_VOLUME_SOURCE)).at(&[2, 24]),
        field("projected", Object(&super::core_v1::PROJECTED_VOLUME_SOURCE)).at(&[2, 26]),
        field("quobyte", Object(&super::core_v1::QUOBYTE_VOLUME_SOURCE)).at(&[2, 21]),
        field("rbd", Object(&super::core_v1::RBD_VOLUME_SOURCE)).at(&[2, 11]),
        field("scaleIO", Object(&super::core_v1::SCALE_IO_VOLUME_SOURCE)).at(&[2, 25]),
        field("secret", Object(&super::core_v1::SECRET_VOLUME_SOURCE)).at(&[2, 6]),
        field("storageos", Object(&super::core_v1::STORAGE_OS_VOLUME_SOURCE)).at(&[2, 27]),
        field("vsphereVolume", Object(&super::core_v1::VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE)).at(&[2, 20]),
    ],
    wire: &[
        19, 16, 8, 13, 0, 14, 28, 20, 18, 15, 21, 26, 11, 4, 3, 12, 7, 10, 2, 5, 30, 25, 1, 22, 23, 27, 24, 29, 6, 9,
        17,
    ],
};

pub(super) static VOLUME_DEVICE: Type = Type {
    name: "io.k8s.api.core.v1.VolumeDevice",
    atomic: false,
    fields: &[
        field("devicePath", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static VOLUME_HEALTH_CONDITION: Type = Type {
    name: "io.k8s.api.core.v1.VolumeHealthCondition",
    atomic: false,
    fields: &[
        field("message", String).omitted().at(&[3]).always(),
        field("reason", String).zero().required().at(&[2]).always(),
        field("status", String).zero().required().at(&[1]).always(),
    ],
    wire: &[2, 1, 0],
};

pub(super) static VOLUME_HEALTH_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.VolumeHealthStatus",
    atomic: false,
    fields: &[
        field("healthConditions", List(&Object(&super::core_v1::VOLUME_HEALTH_CONDITION))).at(&[1]),
        field("lastTransitionTime", Time).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static VOLUME_MOUNT: Type = Type {
    name: "io.k8s.api.core.v1.VolumeMount",
    atomic: false,
    fields: &[
        field("bindMountOptions", List(&String)).at(&[8]),
        field("mountPath", String).zero().required().at(&[3]).always(),
        field("mountPropagation", String).at(&[5]),
        field("name", String).zero().required().at(&[1]).always(),
        field("readOnly", Boolean).omitted().at(&[2]).always(),
        field("recursiveReadOnly", String).at(&[7]),
        field("subPath", String).omitted().at(&[4]).always(),
        field("subPathExpr", String).omitted().at(&[6]).always(),
    ],
    wire: &[3, 4, 1, 6, 2, 7, 5, 0],
};

pub(super) static VOLUME_MOUNT_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.VolumeMountStatus",
    atomic: false,
    fields: &[
        field("mountPath", String).zero().required().at(&[2]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("readOnly", Boolean).omitted().at(&[3]).always(),
        field("recursiveReadOnly", String).at(&[4]),
        field("volumeStatus", Object(&super::core_v1::VOLUME_STATUS)).at(&[5]),
    ],
    wire: &[1, 0, 2, 3, 4],
};

pub(super) static VOLUME_NODE_AFFINITY: Type = Type {
    name: "io.k8s.api.core.v1.VolumeNodeAffinity",
    atomic: false,
    fields: &[field("required", Object(&super::core_v1::NODE_SELECTOR)).at(&[1])],
    wire: &[0],
};

pub(super) static VOLUME_PROJECTION: Type = Type {
    name: "io.k8s.api.core.v1.VolumeProjection",
    atomic: false,
    fields: &[
        field("clusterTrustBundle", Object(&super::core_v1::CLUSTER_TRUST_BUNDLE_PROJECTION)).at(&[5]),
        field("configMap", Object(&super::core_v1::CONFIG_MAP_PROJECTION)).at(&[3]),
        field("downwardAPI", Object(&super::core_v1::DOWNWARD_API_PROJECTION)).at(&[2]),
        field("podCertificate", Object(&super::core_v1::POD_CERTIFICATE_PROJECTION)).at(&[6]),
        field("secret", Object(&super::core_v1::SECRET_PROJECTION)).at(&[1]),
        field("serviceAccountToken", Object(&super::core_v1::SERVICE_ACCOUNT_TOKEN_PROJECTION)).at(&[4]),
    ],
    wire: &[4, 2, 1, 5, 0, 3],
};

pub(super) static VOLUME_RESOURCE_REQUIREMENTS: Type = Type {
    name: "io.k8s.api.core.v1.VolumeResourceRequirements",
    atomic: false,
    fields: &[field("limits", Map(&Quantity)).at(&[1]), field("requests", Map(&Quantity)).at(&[2])],
    wire: &[0, 1],
};

pub(super) static VOLUME_STATUS: Type = Type {
    name: "io.k8s.api.core.v1.VolumeStatus",
    atomic: false,
    fields: &[field("image", Object(&super::core_v1::IMAGE_VOLUME_STATUS)).at(&[1])],
    wire: &[0],
};

pub(super) static VSPHERE_VIRTUAL_DISK_VOLUME_SOURCE: Type = Type {
    name: "io.k8s.api.core.v1.VsphereVirtualDiskVolumeSource",
    atomic: false,
    fields: &[
        field("fsType", String).omitted().at(&[2]).always(),
        field("storagePolicyID", String).omitted().at(&[4]).always(),
        field("storagePolicyName", String).omitted().at(&[3]).always(),
        field("volumePath", String).zero().required().at(&[1]).always(),
    ],
    wire: &[3, 0, 2, 1],
};

pub(super) static WEIGHTED_POD_AFFINITY_TERM: Type = Type {
    name: "io.k8s.api.core.v1.WeightedPodAffinityTerm",
    atomic: false,
    fields: &[
        field("podAffinityTerm", Object(&super::core_v1::POD_AFFINITY_TERM)).zero().required().at(&[2]).always(),
        field("weight", Int32).zero().required().at(&[1]).always(),
    ],
    wire: &[1, 0],
};

pub(super) static WINDOWS_SECURITY_CONTEXT_OPTIONS: Type = Type {
    name: "io.k8s.api.core.v1.WindowsSecurityContextOptions",
    atomic: false,
    fields: &[
        field("gmsaCredentialSpec", String).at(&[2]),
        field("gmsaCredentialSpecName", String).at(&[1]),
        field("hostProcess", Boolean).at(&[4]),
        field("runAsUserName", String).at(&[3]),
    ],
    wire: &[1, 0, 3, 2],
};
