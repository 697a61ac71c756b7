//! Devices by names of the Container Device Interface, for runtimes that do not know them: what vendors describe for a device
//! is made part of the container that has it.
//!
//! Only what the runtime can be asked for in another way. The rest is refused: a device without its hooks may look as if it
//! worked.

mod description;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt, path::PathBuf};

use corten_kubelet::{Granted, GrantedDevice, GrantedMount};
use description::{Description, Device, DeviceNode, Edits, Mount, read_all};

/// What a container gets beside that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Injected {
    pub granted: Granted,
    /// More groups of its processes.
    pub groups: Vec<i64>,
}

/// Where vendors describe devices: what a later folder says of one stands before an earlier one's.
pub fn folders() -> Vec<PathBuf> {
    ["/etc/cdi", "/var/run/cdi"].map(PathBuf::from).to_vec()
}

/// What the devices are for a container. Reads all descriptions anew: drivers write them as devices come. Blocks the thread.
///
/// # Errors
/// A device is described nowhere, or twice, or by what only a newer runtime can do.
pub fn inject(names: &[String], folders: &[PathBuf]) -> Result<Injected, String> {
    let read: Vec<_> = folders.iter().map(|it| read_all(it)).collect();
    let mut injected = Injected::default();
    let mut general = BTreeSet::new();
    for name in names {
        let found = read.iter().enumerate().rev().find_map(|(idx, (all, _))| found(name, all).map(|it| (idx, it)));
        let Some((idx, found)) = found else {
            let problems: Vec<&str> = read.iter().flat_map(|it| &it.1).map(String::as_str).collect();
            let why = if problems.is_empty() { String::new() } else { format!(" ({})", problems.join("; ")) };
            return Err(format!("CDI device injection failed: unresolvable CDI devices {name}{why}"));
        };
        let [(position, description, device)] = &*found else {
            return Err(format!("CDI device injection failed: device {name} is described {} times", found.len()));
        };
        let mut edits = vec![&device.container_edits];
        if general.insert((idx, *position)) {
            edits.insert(0, &description.container_edits);
        }
        for it in edits {
            injected.take(it).map_err(|it| format!("CDI device injection failed: device {name} {it}"))?;
        }
    }
    Ok(injected)
}

type DescribedDevice<'a> = (usize, &'a Description, &'a Device);

fn found<'a>(name: &str, all: &'a [Description]) -> Option<Vec<DescribedDevice<'a>>> {
    let (kind, device) = name.split_once('=')?;
    let of_kind = all.iter().enumerate().filter(|(_, it)| it.kind == kind);
    let found: Vec<_> = of_kind
        .flat_map(|(idx, it)| it.devices.iter().filter(move |it| it.name == device).map(move |of| (idx, it, of)))
        .collect();
    (!found.is_empty()).then_some(found)
}

impl Injected {
    /// As the library of the interface applies edits: of what two say the last one stands.
    fn take(&mut self, edits: &Edits) -> Result<(), String> {
        let beyond = [
            (!edits.hooks.is_empty(), "hooks"),
            (edits.intel_rdt.is_some(), "intelRdt"),
            (!edits.net_devices.is_empty(), "netDevices"),
        ];
        if let Some((_, what)) = beyond.iter().find(|it| it.0) {
            return Err(format!("has {what}: {NEWER}"));
        }
        for it in &edits.env {
            let (key, value) = it.split_once('=').ok_or_else(|| format!("has {it:?} as a variable"))?;
            self.granted.env.retain(|it| it.0 != key);
            self.granted.env.push((key.to_owned(), value.to_owned()));
        }
        for it in &edits.device_nodes {
            let device = device(it)?;
            self.granted.devices.retain(|it| it.container_path != device.container_path);
            self.granted.devices.push(device);
        }
        for it in &edits.mounts {
            let mount = mount(it)?;
            self.granted.mounts.retain(|it| it.container_path != mount.container_path);
            self.granted.mounts.push(mount);
        }
        for group in edits.additional_gids.iter().map(|it| i64::from(*it)) {
            // As for a runtime, the group of root is nobody's by this way.
            if group != 0 && !self.groups.contains(&group) {
                self.groups.push(group);
            }
        }
        Ok(())
    }
}

const NEWER: &str = "that takes containerd 1.7.2 or later";

fn absolute(path: &str) -> Result<String, String> {
    if path.starts_with('/') { Ok(path.to_owned()) } else { Err(format!("names {path:?}, which is no absolute path")) }
}

/// The runtime makes nodes as they are on the machine: others it cannot be asked for.
fn device(node: &DeviceNode) -> Result<GrantedDevice, String> {
    let container_path = absolute(&node.path)?;
    let host_path = if node.host_path.is_empty() { container_path.clone() } else { absolute(&node.host_path)? };
    let is = fs::metadata(&host_path).map_err(|it| format!("is not there: {host_path}: {it}"))?;
    let differs = [
        (node.file_mode.is_some_and(|it| it & 0o7777 != is.mode() & 0o7777), "fileMode"),
        (node.uid.is_some_and(|it| it != is.uid()), "uid"),
        (node.gid.is_some_and(|it| it != is.gid()), "gid"),
    ];
    if let Some((_, what)) = differs.iter().find(|it| it.0) {
        return Err(format!("has a {what} that {host_path} has not: {NEWER}"));
    }
    let permissions = if node.permissions.is_empty() { "rwm".to_owned() } else { node.permissions.clone() };
    if !permissions.chars().all(|it| "rwm".contains(it)) {
        return Err(format!("has permissions {permissions:?}"));
    }
    Ok(GrantedDevice { container_path, host_path, permissions })
}

fn mount(mount: &Mount) -> Result<GrantedMount, String> {
    if !matches!(&*mount.r#type, "" | "bind" | "none") {
        return Err(format!("mounts a {}: {NEWER}", mount.r#type));
    }
    let known = ["bind", "rbind", "ro", "rw", "private", "rprivate"];
    if let Some(option) = mount.options.iter().find(|it| !known.contains(&it.as_str())) {
        return Err(format!("has the mount option {option}: {NEWER}"));
    }
    let read_only = mount.options.iter().any(|it| it == "ro");
    let (container_path, host_path) = (absolute(&mount.container_path)?, absolute(&mount.host_path)?);
    Ok(GrantedMount { container_path, host_path, read_only })
}
