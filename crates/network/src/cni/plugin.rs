//! Who plugs Pods in: this node, with a bridge of its own, or a CNI plug-in of another's, by its configuration.
//!
//! ```text
//! Bridge:  configuration is written here; bridge, masquerading, guards at Pods' doors, ways to other nodes
//! Plugin:  configuration is read from its folder, by containerd, whenever it comes; all of these are the plug-in's
//! ```
//! Rules of Services and policies are the node's own either way: they go by addresses, which the runtime tells of a plug-in's sandboxes.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};

use corten_machine::{Doing, Layout, MachineError, command};
use corten_meta::address::Cidr;

use super::kept;
use crate::{bridge, nat64, nft::SourceGuard};

/// Where a plug-in of another's puts itself: the folders that containerd is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CniFolders {
    /// Of its configuration: the first file, by name, is the Pods' network.
    pub config: PathBuf,
    /// Of the programs that the configuration names, and of `loopback`.
    pub programs: PathBuf,
}

/// Who plugs the Pods of a node in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PodLink {
    #[default]
    Bridge,
    Plugin(CniFolders),
}

impl PodLink {
    pub fn is_plugin(&self) -> bool {
        matches!(self, Self::Plugin(_))
    }

    /// Makes everything ready for the first Pod; `networks` are this node's part of the cluster's Pod network, which is `all`.
    ///
    /// # Errors
    /// The machine's network cannot be changed, or Pods have the other one: see [`PodLink::refuse_change`].
    pub async fn prepare(&self, layout: &Layout, networks: &[String], all: &[Cidr]) -> Result<(), MachineError> {
        self.refuse_change(layout)?;
        match self {
            Self::Bridge => super::prepare(layout, networks, all).await?,
            Self::Plugin(folders) => folders.prepare(layout).await?,
        }
        let note = note(layout);
        note.parent().map_or(Ok(()), fs::create_dir_all).doing("create the folder of", &note)?;
        fs::write(&note, self.word()).doing("write", &note)
    }

    /// Whoever was plugged in by one can only be unplugged by it.
    ///
    /// # Errors
    /// Pods run that were.
    pub fn refuse_change(&self, layout: &Layout) -> Result<(), MachineError> {
        let before = fs::read_to_string(note(layout)).unwrap_or_else(|_| Self::Bridge.word().to_owned());
        let n_plugged = n_plugged(layout);
        if before == self.word() || n_plugged == 0 {
            return Ok(());
        }
        Err(MachineError::Missing(format!(
            "{n_plugged} pods of this node were plugged in by {before}, and {} would have to unplug them: run `corten down` \
             with the network of before, which ends them, and start again then",
            self.word()
        )))
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Bridge => "the node's own bridge",
            Self::Plugin(_) => "a CNI plug-in (--pod-network=cni)",
        }
    }

    /// The folder of programs.
    ///
    /// # Errors
    /// Those of the node's own bridge are not installed.
    pub fn programs(&self) -> Result<PathBuf, MachineError> {
        match self {
            Self::Bridge => super::plugins(),
            Self::Plugin(folders) => Ok(folders.programs.clone()),
        }
    }

    /// The folder of its configuration.
    pub fn config(&self, layout: &Layout) -> PathBuf {
        match self {
            Self::Bridge => layout.cni_config(),
            Self::Plugin(folders) => folders.config.clone(),
        }
    }

    /// Removes what libcni keeps of a sandbox where it is damaged. True where something went.
    pub fn forget_broken_result(&self, layout: &Layout, sandbox: &str) -> bool {
        match self {
            Self::Bridge => kept::forget_broken_result(layout, sandbox),
            Self::Plugin(_) => kept::forget_broken_result_of_plugin(sandbox),
        }
    }
}

/// The address that a sandbox's interface has made for itself: of a plug-in's, and where that has said enough to tell. The runtime
/// does not tell it.
pub fn link_local(sandbox: &str) -> Option<IpAddr> {
    kept::link_local_by_plugin(sandbox)
}

/// Who has plugged in what runs. Below `run`: no sandbox outlives the machine's own run.
fn note(layout: &Layout) -> PathBuf {
    layout.run.join("cni/pod-link")
}

/// How many sandboxes have a network of their own: containerd holds each by a file.
fn n_plugged(layout: &Layout) -> usize {
    let held = layout.containerd_state().join("io.containerd.grpc.v1.cri/netns");
    fs::read_dir(held).map_or(0, Iterator::count)
}

impl CniFolders {
    /// The bridge of before has the address that a plug-in would give its own, and rules that guard it.
    async fn prepare(&self, layout: &Layout) -> Result<(), MachineError> {
        let table = &layout.nft_table;
        command::run("nft", &["-f", "-"], &format!("table inet {table}\ndelete table inet {table}\n")).await?;
        SourceGuard::new(layout).remove().await?;
        bridge::remove_device(&nat64::device(layout)).await?;
        bridge::remove(layout).await?;
        bridge::forward()?;
        if !self.programs.join("loopback").exists() {
            tracing::warn!(folder = %self.programs.display(), "no CNI plug-in `loopback`, which every pod's start needs");
        }
        // They are watched from the start: a plug-in that runs in Pods puts itself there later.
        let make = |it: &Path| fs::create_dir_all(it).doing("create", it);
        make(&self.config).and_then(|()| make(&self.programs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_network_is_refused_while_pods_have_the_one_before() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let layout = Layout::new(dir.path().join("data"), dir.path().join("run"));
        let plugin = PodLink::Plugin(CniFolders { config: "/nowhere".into(), programs: "/nowhere".into() });
        let held = layout.containerd_state().join("io.containerd.grpc.v1.cri/netns");
        fs::create_dir_all(&held).expect("a folder");
        assert!(plugin.refuse_change(&layout).is_ok() && PodLink::Bridge.refuse_change(&layout).is_ok());
        fs::write(held.join("cni-1"), "").expect("a file");
        // A node of a release that noted nothing had the bridge.
        let refusal = plugin.refuse_change(&layout).expect_err("refused").to_string();
        assert!(refusal.contains("1 pods of this node were plugged in by the node's own bridge"), "{refusal}");
        assert!(PodLink::Bridge.refuse_change(&layout).is_ok());
        fs::create_dir_all(note(&layout).parent().expect("a folder")).expect("made");
        fs::write(note(&layout), plugin.word()).expect("a file");
        assert!(plugin.refuse_change(&layout).is_ok() && PodLink::Bridge.refuse_change(&layout).is_err());
        fs::remove_file(held.join("cni-1")).expect("removed");
        assert!(PodLink::Bridge.refuse_change(&layout).is_ok());
    }
}
