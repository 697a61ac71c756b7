//! What of the machine around a node is not as its Pods need it: said of the Node, for its operator.

use corten_reconcile::{Actor, Decision, Wait};

/// Something that is not protected, or does not reach Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeProblem {
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
    /// A folder of the node is on a file system that takes no writes.
    ReadOnly { path: String, mount: String },
    /// What a folder of the node is on has no room.
    Full { path: String, mount: String, left: String },
    /// The machine reaches nothing outside.
    NoDefaultRoute { address: String },
    /// Another on this machine has a route to addresses of Pods; `device` is empty where it leads nowhere.
    PodRangeTaken { range: String, route: String, device: String },
}

impl NodeProblem {
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
                let (what, lost) = match &**hook {
                    "input" => ("Pods send", "Pods reach neither the cluster's DNS nor its API"),
                    "output" => ("the node sends to Pods", "no probe, and no proxy of the API, reaches a Pod"),
                    _ => ("Pods send", "Pods reach neither each other nor Services"),
                };
                let message = format!(
                    "chain {chain} (hook {hook}) of this machine's packet filter drops what {what}: {lost}; `{command}` lets \
                     it through, or a rule for it where that filter is kept"
                );
                Wait::new("PodTrafficFiltered", message, Actor::Operator)
            }
            Self::Spoofing { why } => {
                let message = format!("nothing keeps Pods from sending from other Pods' addresses: {why}");
                Wait::new("SpoofingNotPrevented", message, Actor::Operator)
            }
            Self::ReadOnly { path, mount } => {
                let message = format!(
                    "{path} is on a file system that is read-only: Pods that run go on, no Pod starts, and writes fail as soon as \
                     they need room; the kernel's log says why it is, `mount -o remount,rw {mount}` ends it"
                );
                Wait::new("FileSystemReadOnly", message, Actor::Operator)
            }
            Self::Full { path, mount, left } => {
                let message = format!(
                    "{path} is on a file system that is full, {left}: Pods that run go on, none starts or ends in order until there \
                     is room; `du -xhd2 {mount}` says what takes it"
                );
                Wait::new("FileSystemFull", message, Actor::Operator)
            }
            Self::NoDefaultRoute { address } => {
                let message = format!(
                    "the machine has no default route: Pods reach each other and Services, nothing outside is reached, and the \
                     machine itself reaches no Service's address; the node is still {address}, and goes on when there is a route; \
                     `ip route` says which there are"
                );
                Wait::new("NoDefaultRoute", message, Actor::Operator)
            }
            Self::PodRangeTaken { range, route, device } => {
                let (whose, way_out) = match &**device {
                    "" => ("somebody".to_owned(), format!("`ip route del {route}` takes it away")),
                    it => (
                        format!("{it}, which is another's,"),
                        format!("give {it} another range, or `ip route del {route}`"),
                    ),
                };
                let message = format!(
                    "{whose} has a route on this machine to addresses of Pods, which are {range}: {route}; what is sent to them may \
                     not reach them; {way_out}"
                );
                Wait::new("PodRangeTaken", message, Actor::Operator)
            }
        }
    }
}

/// What there is to say of the Node.
pub fn decision(found: &[NodeProblem]) -> Decision {
    Decision { by: "kubelet".to_owned(), waits: found.iter().map(NodeProblem::wait).collect(), ..Decision::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_to_do() {
        let found = [
            NodeProblem::Folder { path: "/var/lib/corten".into(), mode: 0o755, wanted: 0o700 },
            NodeProblem::File { path: "/var/lib/corten/pki/ca.key".into(), mode: 0o666, wanted: 0o600 },
            NodeProblem::Replaceable {
                path: "/srv/data".into(),
                above: "/srv".into(),
                who: "every user of the machine".into(),
            },
            NodeProblem::Spoofing { why: "Operation not supported".into() },
            NodeProblem::ReadOnly { path: "/var/lib/corten".into(), mount: "/".into() },
            NodeProblem::PodRangeTaken {
                range: "10.244.0.0/24".into(),
                route: "10.244.0.0/24 dev br0".into(),
                device: "br0".into(),
            },
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
            "FileSystemReadOnly: /var/lib/corten is on a file system that is read-only: Pods that run go on, no Pod \
             starts, and writes fail as soon as they need room; the kernel's log says why it is, `mount -o remount,rw /` ends it",
            "PodRangeTaken: br0, which is another's, has a route on this machine to addresses of Pods, which are 10.244.0.0/24: \
             10.244.0.0/24 dev br0; what is sent to them may not reach them; give br0 another range, or \
             `ip route del 10.244.0.0/24 dev br0`",
        ];
        assert_eq!(said, expected);
        assert_eq!(decision(&[]).waits, []);
    }
}
