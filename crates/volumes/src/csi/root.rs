//! The folder by which drivers know this node: their manifests name the kubelet's own, `/var/lib/kubelet`.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use corten_machine::Layout;

const KUBELET: &str = "/var/lib/kubelet";
/// Of the machine's usual node: another one beside it does not take the name.
const USUAL_RUN: &str = "/run/corten";

/// What the node's folder is called to drivers. Where the machine has no kubelet, its folder's name leads to the node's.
pub fn drivers_root(layout: &Layout) -> PathBuf {
    let is_usual = layout.run == Path::new(USUAL_RUN);
    let leads_here = || fs::read_link(KUBELET).is_ok_and(|it| it == layout.data);
    match is_usual && (leads_here() || symlink(&layout.data, KUBELET).is_ok()) {
        true => PathBuf::from(KUBELET),
        false => layout.data.clone(),
    }
}

/// Takes the name away again.
pub fn forget_drivers_root(layout: &Layout) {
    if fs::read_link(KUBELET).is_ok_and(|it| it == layout.data) {
        let _ = fs::remove_file(KUBELET);
    }
}
