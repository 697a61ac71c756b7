//! What of the machine around a node is not as its Pods need it: said of the Node, for its operator.

use corten_reconcile::{Actor, Decision, Wait};

/// Something that is not protected, or does not reach Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Other users of the machine may look into a folder of the node.
    Folder { path: String, mode: u32, wanted: u32 },
    /// A file of the node holds keys or secrets, and its mode gives other users rights.
    File { path: String, mode: u32, wanted: u32 },
    /// Others can put another folder in the place of one of the node's, before the next start.
    Replaceable { path: String, above: String, who: String },
    /// A file was removed that the node needs.
    Lost { path: String, why: String },
    /// What containers leave in volumes gives others its owner's rights.
    SetUserId { why: String },
    /// A filter of another on this machine drops what Pods send.
    Filtered { chain: String, hook: String, command: String },
    /// Pods can send from others' addresses.
    Spoofing { why: String },
}

impl Exposure {
    fn wait(&self) -> Wait {
        match self {
            Self::Folder { path, mode, wanted } => {
                let message = format!(
                    "{path} has mode {mode:04o}: other users of the machine may look into it; `chmod {wanted:04o} {path}`, or \
                     start Corten again"
                );
                Wait::new("FolderExposed", message, Actor::Operator)
            }
            Self::File { path, mode, wanted } => {
                let message = format!(
                    "{path} has mode {mode:04o}, which gives other users rights to what only Corten may have; `chmod {wanted:04o} \
                     {path}`, or start Corten again"
                );
                Wait::new("FileExposed", message, Actor::Operator)
            }
            Self::Replaceable { path, above, who } => {
                let message = format!(
                    "{above} can be written by {who}, who could put another folder in the place of {path} while Corten is down; \
                     `chown root {above} && chmod go-w {above}`, or name another folder"
                );
                Wait::new("FolderReplaceable", message, Actor::Operator)
            }
            Self::Lost { path, why } => {
                Wait::new("FileLost", format!("{path} was removed while Corten runs: {why}"), Actor::Operator)
            }
            Self::SetUserId { why } => {
                let message = format!("volumes of Pods are not mounted nosuid,nodev: {why}");
                Wait::new("SetUserIDNotPrevented", message, Actor::Operator)
            }
            Self::Filtered { chain, hook, command } => {
                let lost = if hook == "input" {
                    "Pods reach neither the cluster's DNS nor its API"
                } else {
                    "Pods reach neither each other nor Services"
                };
                let message = format!(
                    "chain {chain} (hook {hook}) of this machine's packet filter drops what Pods send: {lost}; `{command}` lets \
                     it through, or a rule for it where that filter is kept"
                );
                Wait::new("PodTrafficFiltered", message, Actor::Operator)
            }
            Self::Spoofing { why } => {
                let message = format!("nothing keeps Pods from sending from other Pods' addresses: {why}");
                Wait::new("SpoofingNotPrevented", message, Actor::Operator)
            }
        }
    }
}

/// What there is to say of the Node.
pub fn decision(found: &[Exposure]) -> Decision {
    Decision { by: "kubelet".to_owned(), waits: found.iter().map(Exposure::wait).collect(), ..Decision::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_to_do() {
        let found = [
            Exposure::Folder { path: "/var/lib/corten".into(), mode: 0o755, wanted: 0o700 },
            Exposure::File { path: "/var/lib/corten/pki/ca.key".into(), mode: 0o666, wanted: 0o600 },
            Exposure::Replaceable {
                path: "/srv/data".into(),
                above: "/srv".into(),
                who: "every user of the machine".into(),
            },
            Exposure::Spoofing { why: "Operation not supported".into() },
        ];
        let waits = decision(&found).waits;
        let said: Vec<String> = waits.iter().map(|it| format!("{}: {}", it.reason, it.message)).collect();
        let expected = [
            "FolderExposed: /var/lib/corten has mode 0755: other users of the machine may look into it; \
             `chmod 0700 /var/lib/corten`, or start Corten again",
            "FileExposed: /var/lib/corten/pki/ca.key has mode 0666, which gives other users rights to what only Corten may \
             have; `chmod 0600 /var/lib/corten/pki/ca.key`, or start Corten again",
            "FolderReplaceable: /srv can be written by every user of the machine, who could put another folder in the place \
             of /srv/data while Corten is down; `chown root /srv && chmod go-w /srv`, or name another folder",
            "SpoofingNotPrevented: nothing keeps Pods from sending from other Pods' addresses: Operation not supported",
        ];
        assert_eq!(said, expected);
        assert_eq!(decision(&[]).waits, []);
    }
}
