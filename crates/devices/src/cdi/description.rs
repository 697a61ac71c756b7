//! The files in which vendors describe their devices to runtimes: the specification of the Container Device Interface.
//!
//! Of what a runtime would have to do and is not read here (hooks, classes of the CPU's caches, devices of the network) it is
//! known only that it is there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// Descriptions of whole machines have some hundred kilobytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
const FILES_MAX: usize = 1024;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Description {
    /// `VENDOR/CLASS`.
    pub(super) kind: String,
    pub(super) devices: Vec<Device>,
    /// For whoever has any of the devices.
    pub(super) container_edits: Edits,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) container_edits: Edits,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Edits {
    pub(super) env: Vec<String>,
    pub(super) device_nodes: Vec<DeviceNode>,
    pub(super) mounts: Vec<Mount>,
    pub(super) additional_gids: Vec<u32>,
    pub(super) hooks: Vec<serde_json::Value>,
    pub(super) intel_rdt: Option<serde_json::Value>,
    pub(super) net_devices: Vec<serde_json::Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeviceNode {
    pub(super) path: String,
    pub(super) host_path: String,
    pub(super) permissions: String,
    pub(super) file_mode: Option<u32>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Mount {
    pub(super) host_path: String,
    pub(super) container_path: String,
    pub(super) options: Vec<String>,
    pub(super) r#type: String,
}

/// What a folder describes, and which of its files cannot be read.
pub(super) fn read_all(folder: &Path) -> (Vec<Description>, Vec<String>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(FILES_MAX);
    let is_one = |it: &PathBuf| it.extension().is_some_and(|it| it == "json" || it == "yaml");
    let mut paths: Vec<PathBuf> = entries.map(|it| it.path()).filter(is_one).collect();
    paths.sort();
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        match read(&path) {
            Ok(it) => all.push(it),
            Err(problem) => problems.push(format!("{}: {problem}", path.display())),
        }
    }
    (all, problems)
}

/// As JSON or YAML, whatever its name says.
fn read(path: &Path) -> Result<Description, String> {
    use io::Read as _;
    let file = fs::File::open(path).map_err(|it| it.to_string())?;
    if !file.metadata().is_ok_and(|it| it.is_file()) {
        return Err("it is no file".to_owned());
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|it| it.to_string())?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).map_err(|it| it.to_string())
    } else {
        serde_saphyr::from_str(&text).map_err(|it| it.to_string())
    }
}
