//! A pod's volumes: from its spec and the ConfigMaps and Secrets it names to what must lie on disk.
//!
//! A kind this node cannot provide is a problem like a missing ConfigMap is: the pod waits and says for what.

mod projected;

use std::{cell::Cell, sync::Arc};

use corten_api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume as ApiVolume};
use corten_meta::{Key, Quantity};

use crate::{
    Backend, HostPathType, Medium, PersistentMount, Plugin, Source, SourceKind, Volume, VolumeFile, VolumeGroup,
    VolumeSource,
    spec::{
        claims,
        downward::{self, DownwardContext},
        foreign, huge_pages,
        pod::{container_named, spec_of},
        pod_certificates::Certificates,
        resources,
        sources::{Lookup, Sources},
        tokens::Tokens,
        trust_bundles::TrustBundles,
    },
};

/// Why a volume cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    pub(crate) volume: String,
    pub(crate) kind: ProblemKind,
    pub(crate) message: String,
}

impl Problem {
    /// What comes by itself within moments has not come.
    pub(crate) fn lasts(&mut self) {
        if self.kind == ProblemKind::Unattached {
            self.kind = ProblemKind::Missing;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ProblemKind {
    /// Its ConfigMap or Secret has not been read yet.
    Unread,
    /// Its token is asked for: as good as there.
    Asked,
    /// Its certificate is asked for, and its signer has not answered.
    Unsigned,
    /// A signer has refused its certificate, or could not make it.
    Refused,
    SigningFailed,
    /// Its driver has not attached it to this node yet.
    Unattached,
    /// Something it needs is missing and may appear.
    Missing,
    /// This node has no such kind of volume.
    Unsupported,
}

impl ProblemKind {
    /// Is it worth an event when it appears?
    pub(crate) fn is_told(self) -> bool {
        !matches!(self, Self::Unread | Self::Asked | Self::Unsigned | Self::Unattached)
    }
}

const DEFAULT_MODE: u32 = 0o644;
/// What all files of one pod's volumes may come to: a pod may name one large key in thousands of places.
const BYTES_MAX: usize = 64 << 20;

/// All volumes of the pod, or everything that is wrong with them.
pub(crate) fn plan(
    pod: &Pod,
    sources: &Sources,
    given: &ProjectedSources<'_>,
    persistent: &impl Lasting,
    downward_context: &DownwardContext<'_>,
) -> Result<Vec<Volume>, Vec<Problem>> {
    let mut volumes = Vec::new();
    let mut problems = Vec::new();
    let room = Cell::new(BYTES_MAX);
    // One that is an image is the runtime's to make.
    for volume in spec_of(pod).volumes.iter().flatten().filter(|it| it.image.is_none()) {
        let planner = Planner { pod, sources, given, downward_context, volume: &volume.name, room: &room };
        let planned = match claims::name(pod, volume) {
            Some(_) => {
                let mount = persistent.mount(&volume.name).and_then(|it| planner.with_tokens(it));
                mount.map(|it| VolumeSource::Persistent(Box::new(it)))
            }
            None => match claims::in_place(volume) {
                Some(it) => Ok(VolumeSource::Persistent(Box::new(it))),
                None => planner.source(volume),
            },
        };
        match planned {
            Ok(source) => volumes.push(Volume { name: volume.name.clone(), source }),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(volumes) } else { Err(problems) }
}

/// What the pod is given of the cluster.
pub(crate) struct ProjectedSources<'a> {
    pub(crate) tokens: &'a Tokens,
    pub(crate) certificates: &'a Certificates,
    pub(crate) trust_bundles: &'a TrustBundles,
}

/// Who knows the volumes that outlive the pod.
pub(crate) trait Lasting {
    /// The volume that has this name in the pod, or why it is not there yet.
    fn mount(&self, volume: &str) -> Result<PersistentMount, Problem>;
}

/// Is one of them published again and again?
pub(crate) fn has_republished(volumes: &[Volume]) -> bool {
    let is_republished = |it: &Volume| match &it.source {
        VolumeSource::Persistent(it) => matches!(&it.backend, Backend::Csi(it) if it.is_republished),
        _ => false,
    };
    volumes.iter().any(is_republished)
}

/// Whom the pod's volumes are given to.
pub(crate) fn group(pod: &Pod) -> Option<VolumeGroup> {
    let security = spec_of(pod).security_context.as_ref()?;
    let only_on_root_mismatch = security.fs_group_change_policy.as_deref() == Some("OnRootMismatch");
    Some(VolumeGroup { gid: security.fs_group?, only_on_root_mismatch })
}

/// Where what is mounted for a pod lies; a hostPath is where it is.
pub(crate) fn plugin_of(backend: &Backend) -> Plugin {
    match backend {
        Backend::HostPath { .. } | Backend::Local { .. } => Plugin::LocalVolume,
        Backend::Nfs { .. } => Plugin::Nfs,
        Backend::Csi(_) => Plugin::Csi,
    }
}

struct Planner<'a> {
    pod: &'a Pod,
    sources: &'a Sources,
    given: &'a ProjectedSources<'a>,
    downward_context: &'a DownwardContext<'a>,
    volume: &'a str,
    /// How many bytes there may still be.
    room: &'a Cell<usize>,
}

/// What several kinds of volume have in common: the keys of one object as files.
struct Keys<'a> {
    kind: SourceKind,
    name: &'a str,
    items: Option<&'a Vec<KeyToPath>>,
    optional: Option<bool>,
    access: Access,
}

/// Whose a file is and what may be done to it, where its item says nothing else.
#[derive(Clone, Copy)]
struct Access {
    mode: u32,
    user: Option<i64>,
}

impl Access {
    fn file(self, path: &str, item_mode: Option<i32>, item_user: Option<i64>, content: Arc<[u8]>) -> VolumeFile {
        let user = item_user.or(self.user).and_then(|it| u32::try_from(it).ok());
        VolumeFile { path: path.to_owned(), mode: mode(item_mode, self.mode), user, content }
    }
}

impl Planner<'_> {
    fn source(&self, volume: &ApiVolume) -> Result<VolumeSource, Problem> {
        if let Some(it) = &volume.empty_dir {
            let limit = it.size_limit.as_ref().and_then(|it| it.0.parse::<Quantity>().ok());
            let limit = limit.map(Quantity::value).filter(|it| *it > 0);
            let medium = match it.medium.as_deref().unwrap_or_default() {
                "Memory" => Medium::Memory,
                name if huge_pages::is_of_huge_pages(name) => {
                    let page_bytes = huge_pages::page_bytes(name, self.pod).map_err(|it| self.missing(it))?;
                    Medium::HugePages { page_bytes }
                }
                _ => Medium::Disk,
            };
            return Ok(VolumeSource::EmptyDir {
                medium,
                size_limit_bytes: if medium == Medium::Memory { self.memory_size(limit) } else { limit },
                mode: mode(it.mode, 0o777),
            });
        }
        if let Some(it) = &volume.host_path {
            let kind = host_path_type(it.type_.as_deref().unwrap_or_default());
            let kind = kind.ok_or_else(|| self.unsupported("hostPath type"))?;
            return Ok(VolumeSource::HostPath { path: it.path.clone(), kind });
        }
        if let Some(it) = &volume.config_map {
            let access = Access { mode: mode(it.default_mode, DEFAULT_MODE), user: it.default_user };
            let items = it.items.as_ref();
            let keys = Keys { kind: SourceKind::ConfigMap, name: &it.name, items, optional: it.optional, access };
            return Ok(VolumeSource::Files { plugin: Plugin::ConfigMap, files: self.keys(&keys)? });
        }
        if let Some(it) = &volume.secret {
            let access = Access { mode: mode(it.default_mode, DEFAULT_MODE), user: it.default_user };
            let (name, items) = (it.secret_name.as_deref().unwrap_or_default(), it.items.as_ref());
            let keys = Keys { kind: SourceKind::Secret, name, items, optional: it.optional, access };
            return Ok(VolumeSource::Files { plugin: Plugin::Secret, files: self.keys(&keys)? });
        }
        if let Some(it) = &volume.downward_api {
            let access = Access { mode: mode(it.default_mode, DEFAULT_MODE), user: it.default_user };
            return Ok(VolumeSource::Files {
                plugin: Plugin::DownwardApi,
                files: self.downward(it.items.as_ref(), access)?,
            });
        }
        if volume.projected.is_some() {
            return self.projected(volume);
        }
        Err(self.unsupported(foreign::kind_of(volume)))
    }

    /// As in `calculateEmptyDirMemorySize`: no more than the pod may use, or all pods together.
    fn memory_size(&self, limit: Option<i64>) -> Option<i64> {
        let of_pod = Some(resources::of_pod(self.pod).memory_limit_bytes).filter(|it| *it > 0);
        let facts = self.downward_context.facts;
        let of_node =
            facts.map(|it| it.memory_bytes.saturating_sub(self.downward_context.config.reserved_memory_bytes));
        [limit, of_pod, of_node].into_iter().flatten().min()
    }

    fn keys(&self, keys: &Keys<'_>) -> Result<Vec<VolumeFile>, Problem> {
        let namespace = self.pod.metadata.namespace.clone().unwrap_or_default();
        let source = Source { kind: keys.kind, key: Key::new(namespace, keys.name) };
        let optional = keys.optional == Some(true);
        let data = match self.sources.lookup(&source) {
            Lookup::Found(data) => data,
            Lookup::Missing if optional => return Ok(Vec::new()),
            Lookup::Missing => return Err(self.missing(source.not_found())),
            Lookup::Unread => return Err(self.problem(ProblemKind::Unread, format!("{} is not read yet", keys.name))),
        };
        let Some(items) = keys.items.filter(|it| !it.is_empty()) else {
            let file = |(key, content): (&String, &Arc<[u8]>)| {
                self.take_room(content.len())?;
                Ok(keys.access.file(key, None, None, content.clone()))
            };
            return data.iter().map(file).collect();
        };
        let mut files = Vec::new();
        for item in items {
            match data.get(&item.key) {
                Some(content) => {
                    self.take_room(content.len())?;
                    files.push(keys.access.file(&item.path, item.mode, item.user, content.clone()));
                }
                None if optional => {}
                None if keys.kind == SourceKind::ConfigMap => {
                    return Err(self.missing(format!("configmap references non-existent config key: {}", item.key)));
                }
                None => return Err(self.missing(format!("references non-existent secret key: {}", item.key))),
            }
        }
        Ok(files)
    }

    fn downward(&self, items: Option<&Vec<DownwardAPIVolumeFile>>, access: Access) -> Result<Vec<VolumeFile>, Problem> {
        let mut files = Vec::new();
        for item in items.into_iter().flatten() {
            let value = match (&item.field_ref, &item.resource_field_ref) {
                (Some(it), _) => downward::field(self.pod, it, self.downward_context),
                (_, Some(it)) => {
                    let name = it.container_name.as_deref().unwrap_or_default();
                    match container_named(self.pod, name) {
                        Some(container) => downward::resource(it, container, self.downward_context),
                        None => Err(format!("container {name} not found")),
                    }
                }
                _ => Err("neither fieldRef nor resourceFieldRef is set".into()),
            };
            let content = value.map_err(|it| self.missing(it))?.into_bytes();
            self.take_room(content.len())?;
            files.push(access.file(&item.path, item.mode, item.user, content.into()));
        }
        Ok(files)
    }

    fn take_room(&self, bytes: usize) -> Result<(), Problem> {
        let left = self.room.get().checked_sub(bytes).ok_or_else(|| {
            let message = format!("volume {:?} makes more than {BYTES_MAX} bytes of files of this pod", self.volume);
            self.problem(ProblemKind::Unsupported, message)
        })?;
        self.room.set(left);
        Ok(())
    }

    fn missing(&self, reason: String) -> Problem {
        self.problem(ProblemKind::Missing, format!("MountVolume.SetUp failed for volume {:?} : {reason}", self.volume))
    }

    fn unsupported(&self, kind: &str) -> Problem {
        let message = format!("volume {:?} is of a kind this node does not support: {kind}", self.volume);
        self.problem(ProblemKind::Unsupported, message)
    }

    fn problem(&self, kind: ProblemKind, message: String) -> Problem {
        Problem { volume: self.volume.into(), kind, message }
    }
}

fn mode(mode: Option<i32>, default: u32) -> u32 {
    mode.and_then(|it| u32::try_from(it).ok()).unwrap_or(default)
}

pub(crate) fn host_path_type(kind: &str) -> Option<HostPathType> {
    Some(match kind {
        "" => HostPathType::Unset,
        "DirectoryOrCreate" => HostPathType::DirectoryOrCreate,
        "Directory" => HostPathType::Directory,
        "FileOrCreate" => HostPathType::FileOrCreate,
        "File" => HostPathType::File,
        "Socket" => HostPathType::Socket,
        "CharDevice" => HostPathType::CharDevice,
        "BlockDevice" => HostPathType::BlockDevice,
        _ => return None,
    })
}

/// Where the content of a volume this kubelet makes lies; `None` for a hostPath and for what it cannot make.
pub(crate) fn plugin(volume: &ApiVolume) -> Option<Plugin> {
    let plugins = [
        (volume.empty_dir.is_some(), Plugin::EmptyDir),
        (volume.config_map.is_some(), Plugin::ConfigMap),
        (volume.secret.is_some(), Plugin::Secret),
        (volume.downward_api.is_some(), Plugin::DownwardApi),
        (volume.projected.is_some(), Plugin::Projected),
    ];
    plugins.into_iter().find(|it| it.0).map(|it| it.1)
}
