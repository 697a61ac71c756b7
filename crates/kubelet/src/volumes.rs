//! A pod's volumes: from its spec and the ConfigMaps and Secrets it names to what must lie on disk.
//!
//! A kind this node cannot provide is a problem like a missing ConfigMap is: the pod waits and says for what.

use corten_api::core::v1::{DownwardAPIVolumeFile, KeyToPath, Pod, Volume as ApiVolume};
use corten_meta::{Key, Quantity};

use crate::{
    HostPathKind, Plugin, Source, SourceKind, Volume, VolumeFile, VolumeSource,
    downward::{self, Surroundings},
    pod::{container_named, spec_of},
    sources::{Lookup, Sources},
};

/// Why a volume cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) volume: String,
    pub(crate) kind: ProblemKind,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProblemKind {
    /// Its ConfigMap or Secret has not been read yet.
    Unread,
    /// Something it needs is missing and may appear.
    Missing,
    /// This node has no such kind of volume.
    Unsupported,
}

const DEFAULT_MODE: u32 = 0o644;

/// All volumes of the pod, or everything that is wrong with them.
pub(crate) fn plan(pod: &Pod, sources: &Sources, around: &Surroundings<'_>) -> Result<Vec<Volume>, Vec<Problem>> {
    let mut volumes = Vec::new();
    let mut problems = Vec::new();
    for volume in spec_of(pod).volumes.iter().flatten() {
        let planner = Planner { pod, sources, around, volume: &volume.name };
        match planner.source(volume) {
            Ok(source) => volumes.push(Volume { name: volume.name.clone(), source }),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(volumes) } else { Err(problems) }
}

struct Planner<'a> {
    pod: &'a Pod,
    sources: &'a Sources,
    around: &'a Surroundings<'a>,
    volume: &'a str,
}

/// What several kinds of volume have in common: the keys of one object as files.
struct Keys<'a> {
    kind: SourceKind,
    name: &'a str,
    items: Option<&'a Vec<KeyToPath>>,
    optional: Option<bool>,
    mode: u32,
}

impl Planner<'_> {
    fn source(&self, volume: &ApiVolume) -> Result<VolumeSource, Problem> {
        if let Some(it) = &volume.empty_dir {
            let limit = it.size_limit.as_ref().and_then(|it| it.0.parse::<Quantity>().ok());
            return Ok(VolumeSource::EmptyDir {
                memory: it.medium.as_deref() == Some("Memory"),
                size_limit_bytes: limit.map(Quantity::value).filter(|it| *it > 0),
            });
        }
        if let Some(it) = &volume.host_path {
            let kind = host_path_kind(it.type_.as_deref().unwrap_or_default());
            let kind = kind.ok_or_else(|| self.unsupported("hostPath type"))?;
            return Ok(VolumeSource::HostPath { path: it.path.clone(), kind });
        }
        if let Some(it) = &volume.config_map {
            let mode = mode(it.default_mode, DEFAULT_MODE);
            let items = it.items.as_ref();
            let keys = Keys { kind: SourceKind::ConfigMap, name: &it.name, items, optional: it.optional, mode };
            return Ok(VolumeSource::Files { plugin: Plugin::ConfigMap, files: self.keys(&keys)? });
        }
        if let Some(it) = &volume.secret {
            let mode = mode(it.default_mode, DEFAULT_MODE);
            let (name, items) = (it.secret_name.as_deref().unwrap_or_default(), it.items.as_ref());
            let keys = Keys { kind: SourceKind::Secret, name, items, optional: it.optional, mode };
            return Ok(VolumeSource::Files { plugin: Plugin::Secret, files: self.keys(&keys)? });
        }
        if let Some(it) = &volume.downward_api {
            let mode = mode(it.default_mode, DEFAULT_MODE);
            return Ok(VolumeSource::Files {
                plugin: Plugin::DownwardApi,
                files: self.downward(it.items.as_ref(), mode)?,
            });
        }
        if volume.projected.is_some() {
            return self.projected(volume);
        }
        Err(self.unsupported(kind_name(volume)))
    }

    fn projected(&self, volume: &ApiVolume) -> Result<VolumeSource, Problem> {
        let mut files = Vec::new();
        let projected = volume.projected.as_ref();
        let mode = mode(projected.and_then(|it| it.default_mode), DEFAULT_MODE);
        for part in projected.iter().flat_map(|it| it.sources.iter().flatten()) {
            if let Some(it) = &part.config_map {
                let items = it.items.as_ref();
                let keys = Keys { kind: SourceKind::ConfigMap, name: &it.name, items, optional: it.optional, mode };
                files.extend(self.keys(&keys)?);
            } else if let Some(it) = &part.secret {
                let items = it.items.as_ref();
                let keys = Keys { kind: SourceKind::Secret, name: &it.name, items, optional: it.optional, mode };
                files.extend(self.keys(&keys)?);
            } else if let Some(it) = &part.downward_api {
                files.extend(self.downward(it.items.as_ref(), mode)?);
            } else if part.service_account_token.is_some() {
                return Err(self.unsupported("projected serviceAccountToken"));
            } else {
                return Err(self.unsupported("projected"));
            }
        }
        Ok(VolumeSource::Files { plugin: Plugin::Projected, files })
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
            let file = |(key, content): (&String, &Vec<u8>)| VolumeFile {
                path: key.clone(),
                mode: keys.mode,
                content: content.clone(),
            };
            return Ok(data.iter().map(file).collect());
        };
        let mut files = Vec::new();
        for item in items {
            match data.get(&item.key) {
                Some(content) => {
                    let mode = mode(item.mode, keys.mode);
                    files.push(VolumeFile { path: item.path.clone(), mode, content: content.clone() });
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

    fn downward(
        &self,
        items: Option<&Vec<DownwardAPIVolumeFile>>,
        default_mode: u32,
    ) -> Result<Vec<VolumeFile>, Problem> {
        let mut files = Vec::new();
        for item in items.into_iter().flatten() {
            let value = match (&item.field_ref, &item.resource_field_ref) {
                (Some(it), _) => downward::field(self.pod, it, self.around),
                (_, Some(it)) => {
                    let name = it.container_name.as_deref().unwrap_or_default();
                    match container_named(self.pod, name) {
                        Some(container) => downward::resource(it, container, self.around),
                        None => Err(format!("container {name} not found")),
                    }
                }
                _ => Err("neither fieldRef nor resourceFieldRef is set".into()),
            };
            let content = value.map_err(|it| self.missing(it))?.into_bytes();
            files.push(VolumeFile { path: item.path.clone(), mode: mode(item.mode, default_mode), content });
        }
        Ok(files)
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

fn host_path_kind(kind: &str) -> Option<HostPathKind> {
    Some(match kind {
        "" => HostPathKind::Unset,
        "DirectoryOrCreate" => HostPathKind::DirectoryOrCreate,
        "Directory" => HostPathKind::Directory,
        "FileOrCreate" => HostPathKind::FileOrCreate,
        "File" => HostPathKind::File,
        "Socket" => HostPathKind::Socket,
        "CharDevice" => HostPathKind::CharDevice,
        "BlockDevice" => HostPathKind::BlockDevice,
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

/// The name of the one source field that is set.
fn kind_name(volume: &ApiVolume) -> &'static str {
    let kinds = [
        (volume.persistent_volume_claim.is_some(), "persistentVolumeClaim"),
        (volume.csi.is_some(), "csi"),
        (volume.ephemeral.is_some(), "ephemeral"),
        (volume.image.is_some(), "image"),
        (volume.nfs.is_some(), "nfs"),
        (volume.iscsi.is_some(), "iscsi"),
        (volume.fc.is_some(), "fc"),
        (volume.git_repo.is_some(), "gitRepo"),
    ];
    kinds.into_iter().find(|it| it.0).map_or("unknown", |it| it.1)
}
