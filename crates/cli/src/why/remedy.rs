//! What helps where Corten cannot start or cannot write, read off the words it ended with.

use std::path::Path;

use corten_machine::Layout;

use corten_console::shell::quoted;
use corten_node_process::node_process::command_for;

/// A known cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remedy {
    /// The cause in plain words, and what helps.
    pub(crate) message: String,
    /// The command to run.
    pub(crate) next: String,
}

/// The cause that the last of these lines tells of. None: nothing is known of any of them.
pub(crate) fn of<'a>(lines: impl DoubleEndedIterator<Item = &'a str>, layout: &Layout) -> Option<Remedy> {
    lines.rev().find_map(|it| of_line(it, layout))
}

fn of_line(line: &str, layout: &Layout) -> Option<Remedy> {
    let after = |mark: &str| line.split_once(mark).map(|it| it.1);
    let path = |path: &Path| quoted(&path.to_string_lossy());
    let data = &layout.data;
    let remedy = |message: String, next: String| Some(Remedy { message, next });
    if line.contains("No space left on device") || line.contains("Disk quota exceeded") {
        return remedy("the disk is full".into(), format!("df -h {}", path(data)));
    }
    if let Some(what) = after("the store is damaged: ") {
        let message = format!(
            "{what}. Nothing is guessed: this keeps the store as it is and erases the cluster; then unpack a backup in {}, where \
             there is one, and `corten up`",
            data.display()
        );
        let keep = format!("tar -C {} -czf corten-damaged.tar.gz store pki", path(data));
        return remedy(message, format!("{keep} && {}", command_for(layout, "reset")));
    }
    if line.contains("while the store was open") {
        let message = "a file of the store was removed, replaced or cut: put it back".into();
        return remedy(message, format!("ls -li {}", path(&data.join("store"))));
    }
    if line.contains("Address already in use") {
        let address = after("listening on ")?.split_whitespace().next()?.trim_end_matches(':');
        let port: u16 = address.rsplit(':').next()?.parse().ok()?;
        let message = format!("another process listens at {address}: end it, or choose another port");
        return remedy(message, format!("ss -ltunp 'sport = :{port}'"));
    }
    if line.contains("is in use by another process") {
        let lock = data.join("store/lock");
        let message = "another process has the store open: one Corten has a data folder for itself".into();
        return remedy(message, format!("lslocks --notruncate -o COMMAND,PID,PATH | grep {}", path(&lock)));
    }
    if line.contains("certificate authority") && line.contains("has expired") {
        let message = "the cluster's certificate authority has ended, and with it every certificate it signed: the command makes \
                       a new one. Copies of the kubeconfig are void; tokens and data stay"
            .into();
        let (rotate, up) = (command_for(layout, "certs rotate-ca"), command_for(layout, "up"));
        return remedy(message, format!("{rotate} && {up}"));
    }
    if let Some(what) = after(" is not what the cluster's PKI expects there: ") {
        let (pki, key) = (data.join("pki"), data.join("pki/sa.key"));
        let damaged = if line.contains(&*key.to_string_lossy()) { key } else { pki };
        let message = format!(
            "a file of the cluster's keys is damaged: {what}. The command begins with a new one; first look for a backup"
        );
        let kept = damaged.with_extension("damaged");
        let next = format!("mv {} {} && {}", path(&damaged), path(&kept), command_for(layout, "up"));
        return remedy(message, next);
    }
    if let Some(owner) = after("; chown ").filter(|_| line.contains(" belongs to user ")) {
        let (user, folder) = owner.split_once(' ')?;
        let message = "a folder of the cluster belongs to another user, who could change the cluster through it".into();
        return remedy(message, format!("chown {user} {}", path(Path::new(folder.trim()))));
    }
    None
}

#[cfg(test)]
mod tests;
