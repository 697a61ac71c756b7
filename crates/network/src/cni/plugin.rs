//! Who plugs Pods in: this node, with a bridge of its own, or a CNI plug-in of another's, by its configuration.
//!
//! ```text
//! Bridge:  configuration is written here; bridge, masquerading, guards at Pods' doors, ways to other nodes
//! Plugin:  configuration is read from its folder, by containerd, whenever it comes; all of these are the plug-in's
//! ```
//! Rules of Services and policies are the node's own either way: they go by addresses, as libcni has kept them.

use std::{fs, net::IpAddr, path::PathBuf};

use corten_machine::{Doing, Layout, MachineError, command};
use corten_meta::address::Cidr;
use corten_netpolicy::Plugged as PluggedPod;

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
    /// The machine's network cannot be changed; or Pods are still plugged into a bridge that is to go.
    pub async fn prepare(&self, layout: &Layout, networks: &[String], all: &[Cidr]) -> Result<(), MachineError> {
        match self {
            Self::Bridge => super::prepare(layout, networks, all).await,
            Self::Plugin(folders) => folders.prepare(layout).await,
        }
    }

    /// The folder of programs.
    ///
    /// # Errors
    /// What every sandbox needs is not in it.
    pub fn programs(&self) -> Result<PathBuf, MachineError> {
        match self {
            Self::Bridge => super::plugins(),
            Self::Plugin(folders) => folders.checked_programs(),
        }
    }

    /// The folder of its configuration.
    pub fn config(&self, layout: &Layout) -> PathBuf {
        match self {
            Self::Bridge => layout.cni_config(),
            Self::Plugin(folders) => folders.config.clone(),
        }
    }

    /// Whose sandbox this is, and its addresses.
    ///
    /// # Errors
    /// libcni has kept nothing of it that can be read.
    pub(crate) fn plugged(&self, layout: &Layout, sandbox: &str) -> Result<PluggedPod, MachineError> {
        match self {
            Self::Bridge => kept::plugged(layout, sandbox),
            Self::Plugin(_) => kept::plugged_by_plugin(sandbox),
        }
    }

    /// As [`PodLink::plugged`], of all sandboxes.
    pub(crate) fn all_plugged(&self, layout: &Layout) -> Vec<PluggedPod> {
        match self {
            Self::Bridge => kept::all_plugged(layout),
            Self::Plugin(_) => kept::all_plugged_by_plugin(layout),
        }
    }

    /// The addresses of a sandbox: to be asked before it is unplugged.
    pub fn addresses(&self, layout: &Layout, sandbox: &str) -> Vec<IpAddr> {
        self.plugged(layout, sandbox).map(|it| it.addresses).unwrap_or_default()
    }

    /// Removes what libcni keeps of a sandbox where it is damaged. True where something went.
    pub fn forget_broken_result(&self, layout: &Layout, sandbox: &str) -> bool {
        match self {
            Self::Bridge => kept::forget_broken_result(layout, sandbox),
            Self::Plugin(_) => kept::forget_broken_result_of_plugin(sandbox),
        }
    }
}

impl CniFolders {
    /// The bridge of before has the address that a plug-in would give its own, and rules that guard it.
    async fn prepare(&self, layout: &Layout) -> Result<(), MachineError> {
        let n_left = kept::ports(layout).len();
        if n_left > 0 {
            return Err(MachineError::Missing(format!(
                "{n_left} pods are plugged into {}, which a CNI plug-in is to replace: drain the node first, \
                 as it was started before",
                layout.bridge
            )));
        }
        let table = &layout.nft_table;
        command::run("nft", &["-f", "-"], &format!("table inet {table}\ndelete table inet {table}\n")).await?;
        SourceGuard::new(layout).remove().await?;
        bridge::remove_device(&nat64::device(layout)).await?;
        bridge::remove(layout).await?;
        bridge::forward()?;
        // It is watched from the start: a plug-in that runs in Pods puts its configuration there later.
        fs::create_dir_all(&self.config).doing("create", &self.config)
    }

    fn checked_programs(&self) -> Result<PathBuf, MachineError> {
        if self.programs.join("loopback").exists() {
            return Ok(self.programs.clone());
        }
        let known = super::plugins().map_or_else(
            |_| "install containernetworking-plugins".to_owned(),
            |it| format!("it is in {}: copy it, or say --cni-plugins={}", it.display(), it.display()),
        );
        Err(MachineError::Missing(format!(
            "no CNI plug-in `loopback` in {}, which every pod needs: {known}",
            self.programs.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_without_loopback_are_refused_with_what_to_do() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let link = PodLink::Plugin(CniFolders { config: "/nowhere".into(), programs: dir.path().to_owned() });
        let refusal = link.programs().expect_err("refused").to_string();
        assert!(refusal.contains("`loopback`") && refusal.contains("--cni-plugins=") | refusal.contains("install"));
        fs::write(dir.path().join("loopback"), "").expect("a file");
        assert_eq!(link.programs().expect("found"), dir.path());
        assert_eq!(link.config(&Layout::new("/data", "/run/x")), PathBuf::from("/nowhere"));
    }
}
