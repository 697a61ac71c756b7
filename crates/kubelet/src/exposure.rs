//! What should keep a node's Pods and the machine's users apart, and does not: said of the Node, for its operator.

use corten_reconcile::{Actor, Decision, Wait};

/// Something that is not protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Other users of the machine may look into a folder of the node.
    Folder { path: String, mode: u32, wanted: u32 },
    /// What containers leave in volumes gives others its owner's rights.
    SetUserId { why: String },
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
            Self::SetUserId { why } => {
                let message = format!("volumes of Pods are not mounted nosuid,nodev: {why}");
                Wait::new("SetUserIDNotPrevented", message, Actor::Operator)
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
            Exposure::Spoofing { why: "Operation not supported".into() },
        ];
        let waits = decision(&found).waits;
        let said: Vec<String> = waits.iter().map(|it| format!("{}: {}", it.reason, it.message)).collect();
        let expected = [
            "FolderExposed: /var/lib/corten has mode 0755: other users of the machine may look into it; \
             `chmod 0700 /var/lib/corten`, or start Corten again",
            "SpoofingNotPrevented: nothing keeps Pods from sending from other Pods' addresses: Operation not supported",
        ];
        assert_eq!(said, expected);
        assert_eq!(decision(&[]).waits, []);
    }
}
