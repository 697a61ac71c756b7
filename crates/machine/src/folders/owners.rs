//! Who owns what lies in the node's folders, and who could put other folders in their place.
//!
//! What another user of the machine left in a folder before Corten's first start would be believed: a key, a link to where the
//! key shall be written, a Pod. So nothing in these folders may be another user's, and Corten does not start while it is.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::Path,
};

use corten_kubelet::NodeProblem;

use crate::{
    Layout, MachineError,
    error::Doing,
    folders::own_folder::{self, NodeFolder},
};

/// The folders whose entries are believed, beneath their place. What is deeper was made by Corten, in a folder of its own.
const BELIEVED: [(NodeFolder, &str); 10] = [
    (NodeFolder::Data, ""),
    (NodeFolder::Data, "pki"),
    (NodeFolder::Data, "store"),
    (NodeFolder::Data, "kubelet"),
    (NodeFolder::Data, "kubelet/pki"),
    (NodeFolder::Data, "manifests"),
    (NodeFolder::Data, "seccomp"),
    (NodeFolder::Data, "images"),
    (NodeFolder::Data, "log"),
    (NodeFolder::Run, ""),
];

/// Those that people fill, too.
const BY_ROOT: [&str; 3] = ["images", "manifests", "seccomp"];

/// Refuses a place that holds what another user owns, or a link of another's.
///
/// # Errors
/// An entry is another's; it is named, with what helps. Or one cannot be looked at.
pub fn refuse_anothers(place: NodeFolder, path: &Path) -> Result<(), MachineError> {
    // Since then only root could put anything there, and may have left the owner as it was.
    let is_closed = own_folder::has_mark(path);
    let is_believed = |folder: &str| !is_closed || !BY_ROOT.contains(&folder);
    for (_, folder) in BELIEVED.iter().filter(|it| it.0 == place && is_believed(it.1)) {
        let folder = path.join(folder);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
            Err(error) => return Err(error).doing("read", &folder),
        };
        for entry in entries {
            let entry = entry.doing("read", &folder)?.path();
            // What somebody keeps beside Corten's, in the place itself, is never looked into.
            if entry.parent() == Some(path) && !own_folder::is_known(place, &entry) {
                continue;
            }
            refuse_entry(&entry)?;
        }
    }
    Ok(())
}

fn refuse_entry(path: &Path) -> Result<(), MachineError> {
    let owner = match stranger(path) {
        // What lies there comes and goes: locks, sockets, files that are being replaced.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        stranger => stranger.doing("look at", path)?,
    };
    let Some(owner) = owner else { return Ok(()) };
    let own = own_user();
    let is_link_of_ours = fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink() && !is_strange(it.uid()));
    if is_link_of_ours {
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let (path, target) = (path.display(), target.display());
        return Err(MachineError::Exposed(format!(
            "{path} leads to {target}, which belongs to user {owner}, and Corten would believe what it says; remove the link, \
             or, where you know what it is: chown {own} {target}"
        )));
    }
    let path = path.display();
    Err(MachineError::Exposed(format!(
        "{path} belongs to user {owner}, and Corten would believe what it says; remove it, or, where you know what it is: \
         chown -h {own} {path}"
    )))
}

/// The owner of a file or of a link, or of where the link leads, where that is neither root nor this process's user.
fn stranger(path: &Path) -> io::Result<Option<u32>> {
    let entry = fs::symlink_metadata(path)?;
    if is_strange(entry.uid()) || !entry.is_symlink() {
        return Ok(Some(entry.uid()).filter(|it| is_strange(*it)));
    }
    Ok(Some(fs::metadata(path)?.uid()).filter(|it| is_strange(*it)))
}

fn is_strange(user: u32) -> bool {
    user != 0 && user != own_user()
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Folders above the node's that others can write: they could put another folder in its place before the next start.
pub fn replaceable(layout: &Layout) -> Vec<NodeProblem> {
    let mut found: Vec<NodeProblem> = Vec::new();
    let program = std::env::current_exe().ok();
    for path in [&layout.data, &layout.run].into_iter().chain(&program) {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        for above in real.ancestors().skip(1) {
            let Some(who) = who_else_writes(above) else { continue };
            let node_problem =
                NodeProblem::Replaceable { path: path.display().to_string(), above: above.display().to_string(), who };
            found.push(node_problem);
        }
    }
    found
}

/// Can somebody apart from root and this user put another file in the place of what is in this folder, or another folder in its
/// place?
pub fn others_write(folder: &Path) -> bool {
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    real.ancestors().any(|it| who_else_writes(it).is_some())
}

/// Who apart from root and this user may replace what is in a folder.
fn who_else_writes(folder: &Path) -> Option<String> {
    const STICKY: u32 = 0o1000;
    let entry = fs::metadata(folder).ok()?;
    if is_strange(entry.uid()) {
        return Some(format!("user {}", entry.uid()));
    }
    if entry.mode() & STICKY != 0 {
        return None;
    }
    match entry.mode() {
        mode if mode & 0o002 != 0 => Some("every user of the machine".to_owned()),
        mode if mode & 0o020 != 0 && entry.gid() != 0 => Some(format!("group {}", entry.gid())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;
    use crate::{close_data, close_for_server, close_run};

    const STRANGER: Option<u32> = Some(4242);

    /// Root alone can give a file away.
    fn can_give_away() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn what_another_user_left_before_the_start_is_not_believed() {
        if !can_give_away() {
            return;
        }
        for (place, entry) in [
            (NodeFolder::Data, "node-name"),
            (NodeFolder::Data, "pki/ca.key"),
            (NodeFolder::Data, "pki/sa.key"),
            (NodeFolder::Data, "store/00000000000000000001.log"),
            (NodeFolder::Data, "kubelet/pki/kubelet-server-current.pem"),
            (NodeFolder::Data, "manifests/pod.yaml"),
            (NodeFolder::Data, "images/base.tar"),
            (NodeFolder::Data, "seccomp/all.json"),
            (NodeFolder::Data, "log/corten.log"),
            (NodeFolder::Run, "node.lock"),
        ] {
            for kind in ["file", "link", "target"] {
                let dir = tempfile::tempdir().expect("a temporary folder");
                let folder = dir.path().join("node");
                let path = folder.join(entry);
                fs::create_dir_all(path.parent().expect("in a folder")).expect("made");
                let target = dir.path().join("target");
                fs::write(&target, "x").expect("written");
                match kind {
                    "file" => fs::write(&path, "x").expect("written"),
                    _ => symlink(&target, &path).expect("linked"),
                }
                lchown(if kind == "target" { &target } else { &path }, STRANGER, None).expect("given");
                let closed = match place {
                    NodeFolder::Data => close_data(&folder),
                    NodeFolder::Run => close_run(&folder),
                };
                let error = closed.expect_err("refused").to_string();
                let said = match kind {
                    "target" => format!("{} leads to {}, which belongs to user 4242", path.display(), target.display()),
                    _ => format!("{} belongs to user 4242", path.display()),
                };
                assert!(error.starts_with(&said), "{kind} {entry}: {error}");
            }
        }
    }

    #[test]
    fn what_root_put_there_since_the_folder_is_closed_is_let_be() {
        if !can_give_away() {
            return;
        }
        let dir = tempfile::tempdir().expect("a temporary folder");
        let data = dir.path().join("data");
        close_for_server(&data).expect("made");
        for (folder, is_refused) in [("images", false), ("manifests", false), ("seccomp", false), ("pki", true)] {
            fs::create_dir_all(data.join(folder)).expect("made");
            let file = data.join(folder).join("file");
            fs::write(&file, "x").expect("written");
            lchown(&file, STRANGER, None).expect("given");
            assert_eq!(close_for_server(&data).is_err(), is_refused, "{folder}");
        }
    }

    #[test]
    fn what_is_ours_or_of_no_concern_is_let_be() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let data = dir.path().join("data");
        close_for_server(&data).expect("made");
        let disk = dir.path().join("disk");
        fs::create_dir(&disk).expect("made");
        symlink(&disk, data.join("images")).expect("linked");
        symlink(dir.path().join("not there"), data.join("pki/old.crt")).expect("linked");
        close_for_server(&data).expect("links of one's own are one's own affair");
        if can_give_away() {
            fs::write(data.join("thesis.tex"), "").expect("written");
            lchown(data.join("thesis.tex"), STRANGER, None).expect("given");
            close_for_server(&data).expect("it is not Corten's, and is not read");
        }
    }

    #[test]
    fn who_can_replace_the_folders_is_told() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let above = dir.path().join("above");
        fs::create_dir_all(above.join("data")).expect("made");
        let layout = Layout::new(above.join("data"), dir.path().join("run"));
        let set = |mode| fs::set_permissions(&above, fs::Permissions::from_mode(mode)).expect("set");
        for (mode, who) in [(0o755, None), (0o1777, None), (0o757, Some("every user of the machine"))] {
            set(mode);
            let found = replaceable(&layout);
            let said = found.iter().find_map(|it| match it {
                NodeProblem::Replaceable { above: it, who, .. } if Path::new(it) == above => Some(&**who),
                _ => None,
            });
            assert_eq!(said, who, "{mode:o}");
        }
        if can_give_away() {
            set(0o755);
            lchown(&above, STRANGER, None).expect("given");
            assert_eq!(who_else_writes(&above).as_deref(), Some("user 4242"));
        }
    }
}
