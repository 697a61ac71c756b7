//! Which ids of the machine a Pod with a user namespace of its own has (KEP-127): 65,536, and no other Pod has them.
//!
//! As KEP-127 has it, they are out of what the machine gives to its user `kubelet`, or out of those after its own 65,536.
//! Which ones a Pod has stands in its folder: it has them for as long as it is there, also after a restart.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use corten_machine::{Layout, durable};
use serde_json::{Value, json};

/// How many ids each Pod has.
pub(crate) const LENGTH: u32 = 1 << 16;
/// As many Pods as a node takes.
const PODS_MAX: u32 = 110;
const USER: &str = "kubelet";
/// Its name in the Pod's folder, and its form, are upstream's.
const RECORD: &str = "userns";

/// What the machine says of its users and the ids beyond their own.
#[derive(Clone, Debug)]
struct Files {
    passwd: PathBuf,
    subuid: PathBuf,
    subgid: PathBuf,
}

/// Gives out ids. Cheap to clone; one at a time.
#[derive(Clone, Debug)]
pub(crate) struct UserNamespaces {
    pods: PathBuf,
    files: Files,
    turn: Arc<Mutex<()>>,
}

impl UserNamespaces {
    pub(crate) fn new(layout: &Layout) -> Self {
        let files = Files { passwd: "/etc/passwd".into(), subuid: "/etc/subuid".into(), subgid: "/etc/subgid".into() };
        Self { pods: layout.pods(), files, turn: Arc::default() }
    }

    /// The first of the Pod's ids: those that it has, else some that nobody has.
    ///
    /// # Errors
    /// None are left, the machine's files are not as they must be, or the disk fails.
    pub(crate) fn first_id(&self, uid: &str) -> Result<u32, String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let record = self.pods.join(uid).join(RECORD);
        // One that cannot be read is written anew.
        if let Some(first) = read(&record) {
            return Ok(first);
        }
        let entries = fs::read_dir(&self.pods).into_iter().flatten().flatten();
        let taken: BTreeSet<u32> = entries.filter_map(|it| read(&it.path().join(RECORD))).collect();
        let (begin, n_pods) = self.files.range()?;
        let mut firsts = (0..n_pods).map(|it| begin + it * LENGTH);
        let first = firsts.find(|it| !taken.contains(it));
        let first = first.ok_or("could not find an empty slot to allocate a user namespace")?;
        write(&record, first).map_err(|it| format!("record the ids of the pod's user namespace: {it}"))?;
        Ok(first)
    }
}

fn read(record: &Path) -> Option<u32> {
    let text = fs::read(record).ok()?;
    let value: Value = serde_json::from_slice(&text).ok()?;
    value["uidMappings"][0]["hostId"].as_u64().and_then(|it| u32::try_from(it).ok())
}

fn write(record: &Path, first: u32) -> io::Result<()> {
    let mapping = json!([{"hostId": first, "containerId": 0, "length": LENGTH}]);
    let text = json!({"uidMappings": mapping, "gidMappings": mapping}).to_string();
    if let Some(folder) = record.parent() {
        fs::create_dir_all(folder)?;
    }
    durable::write_whole(record, 0o644, text.as_bytes())
}

impl Files {
    /// The first id, and for how many Pods there are some.
    fn range(&self) -> Result<(u32, u32), String> {
        let text = |path: &Path| match fs::read_to_string(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(format!("read {}: {error}", path.display())),
            other => Ok(other.unwrap_or_default()),
        };
        let passwd = text(&self.passwd)?;
        let user = passwd.lines().map(|it| it.split(':').collect::<Vec<_>>()).find(|it| it.first() == Some(&USER));
        let Some(user) = user else { return Ok((LENGTH, PODS_MAX)) };
        let number = user.get(2).copied().unwrap_or_default();
        let uids = given(&text(&self.subuid)?, number).map_err(|it| format!("{}: {it}", self.subuid.display()))?;
        let gids = given(&text(&self.subgid)?, number).map_err(|it| format!("{}: {it}", self.subgid.display()))?;
        if uids != gids {
            return Err(format!("user {USER:?} has different subuids and subgids: {uids:?} vs {gids:?}"));
        }
        let (begin, length) = uids;
        check(begin, length)
    }
}

/// What one of the files gives to the user: the first id, and how many.
fn given(text: &str, number: &str) -> Result<(u32, u32), String> {
    let lines = text.lines().map(|it| it.split(':').collect::<Vec<_>>());
    let mut own = lines.filter(|it| it.first().is_some_and(|it| *it == USER || *it == number));
    let (Some(line), None) = (own.next(), own.next()) else {
        return Err(format!("there must be exactly one range of user {USER:?}"));
    };
    let id = |nth: usize| line.get(nth).and_then(|it| it.trim().parse().ok());
    id(1).zip(id(2)).ok_or_else(|| format!("{:?} is no range", line.join(":")))
}

/// In upstream's words.
fn check(begin: u32, length: u32) -> Result<(u32, u32), String> {
    if begin < LENGTH {
        return Err(format!("{USER} user assigned ID {begin} must be greater or equal to {LENGTH}"));
    }
    if !begin.is_multiple_of(LENGTH) {
        return Err(format!("{USER} user assigned ID {begin} is not a multiple of {LENGTH}"));
    }
    if !length.is_multiple_of(LENGTH) {
        return Err(format!("{USER} user assigned IDs length {length} is not a multiple of {LENGTH}"));
    }
    let n_pods = length / LENGTH;
    if n_pods < PODS_MAX {
        return Err(format!("{USER} user assigned enough IDs for {n_pods} pods but max pods is {PODS_MAX}"));
    }
    // There are no more ids than a number of 32 bits can say.
    Ok((begin, n_pods.min((u32::MAX - begin) / LENGTH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(dir: &Path) -> UserNamespaces {
        let file = |name: &str| dir.join(name);
        let files = Files { passwd: file("passwd"), subuid: file("subuid"), subgid: file("subgid") };
        UserNamespaces { pods: dir.join("pods"), files, turn: Arc::default() }
    }

    #[test]
    fn each_pod_has_its_own_for_as_long_as_it_is_there() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let given = of(dir.path());
        let firsts: Vec<_> = ["a", "b", "a", "c"].iter().map(|it| given.first_id(it)).collect();
        assert_eq!(firsts, [Ok(65536), Ok(131_072), Ok(65536), Ok(196_608)]);
        let record = fs::read_to_string(dir.path().join("pods/b/userns")).expect("written");
        let record: Value = serde_json::from_str(&record).expect("JSON");
        let mapping = json!([{"containerId": 0, "hostId": 131_072, "length": 65536}]);
        assert_eq!(record, json!({"gidMappings": mapping, "uidMappings": mapping}));
        // Another run of the node; one pod is gone meanwhile, and a record is broken.
        fs::remove_dir_all(dir.path().join("pods/b")).expect("there");
        fs::write(dir.path().join("pods/c/userns"), "{").expect("there");
        let given = of(dir.path());
        assert_eq!(given.first_id("d"), Ok(131_072));
        assert_eq!(given.first_id("a"), Ok(65536));
        assert_eq!(given.first_id("c"), Ok(196_608));
        for it in 3..PODS_MAX - 1 {
            given.first_id(&format!("more-{it}")).expect("there are some left");
        }
        given.first_id("last").expect("the last");
        let none = "could not find an empty slot to allocate a user namespace";
        assert_eq!(given.first_id("one-more"), Err(none.to_owned()));
        assert!(!dir.path().join("pods/one-more").exists());
    }

    #[test]
    fn the_machine_says_which() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let files = of(dir.path()).files;
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("written");
        write("passwd", "root:x:0:0::/root:/bin/sh\n");
        write("subuid", "kubelet:1:1\n");
        assert_eq!(files.range(), Ok((65536, 110)));
        write("passwd", "root:x:0:0::/root:/bin/sh\nkubelet:x:998:998::/:/bin/false\n");
        for (uids, gids, expected) in [
            ("me:1:2\nkubelet:131072:7208960\n", "998:131072:7208960\n", Ok((131_072, 110))),
            ("kubelet:131072:65536000", "kubelet:131072:65536000", Ok((131_072, 1000))),
            ("kubelet:65536:4294901760", "kubelet:65536:4294901760", Ok((65536, 65534))),
            ("kubelet:65537:7208960", "kubelet:65537:7208960", Err("ID 65537 is not a multiple of 65536")),
            ("kubelet:0:7208960", "kubelet:0:7208960", Err("ID 0 must be greater or equal to 65536")),
            ("kubelet:65536:7208961", "kubelet:65536:7208961", Err("length 7208961 is not a multiple of 65536")),
            ("kubelet:65536:65536", "kubelet:65536:65536", Err("enough IDs for 1 pods but max pods is 110")),
            ("kubelet:65536:7208960", "kubelet:131072:7208960", Err("different subuids and subgids")),
            ("kubelet:65536:7208960\nkubelet:1:2", "", Err("exactly one range")),
            ("kubelet:65536", "", Err("is no range")),
        ] {
            write("subuid", uids);
            write("subgid", gids);
            match (files.range(), expected) {
                (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
                (range, expected) => assert_eq!(range, expected.map_err(str::to_owned), "{uids}"),
            }
        }
    }
}
