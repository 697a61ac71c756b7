//! Trees that their Pods have shaped against who copies them.

use std::{
    fs::{create_dir, hard_link, rename, write},
    os::unix::fs::MetadataExt,
};

use corten_machine::tree::open_folder;

use super::*;
use crate::{Code, Fault, local::copy::Progress};

const MIB: usize = 1 << 20;

struct Trees {
    dir: tempfile::TempDir,
    progress: Progress,
}

fn trees() -> Trees {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for name in ["from", "work", "work/data", "work/kept"] {
        create_dir(dir.path().join(name)).expect("made");
    }
    Trees { dir, progress: Progress::default() }
}

impl Trees {
    fn at(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn copy(&self, most: Amount, has_room: &dyn Fn() -> Result<(), Fault>) -> io::Result<()> {
        folder(&self.at("from"), &self.at("work/data"), &Allowance::new(&self.progress, most, has_room))
    }
}

fn refused(error: io::Error) -> Fault {
    error.downcast().expect("it says what is not allowed")
}

#[test]
fn files_of_many_names_are_copied_once_however_deep_they_are() {
    let trees = trees();
    let mut here = open_folder(&trees.at("from")).expect("a folder");
    for _ in 0..700 {
        mkdirat(&here, c"deeper", Mode::RWXU).expect("made");
        here = openat(&here, c"deeper", FOLDER, Mode::empty()).expect("opened");
    }
    write(trees.at("from/file"), vec![7; 4 * MIB]).expect("written");
    let top = open_folder(&trees.at("from")).expect("a folder");
    for n in 0..100 {
        linkat(&top, c"file", &here, format!("n{n}"), AtFlags::empty()).expect("linked");
    }
    let there = measure(&trees.at("from")).expect("counted");
    assert_eq!(there.inodes, 701);
    trees.copy(there.of_copy(), &|| Ok(())).expect("copied");
    let copied = measure(&trees.at("work/data")).expect("counted");
    assert_eq!(copied.inodes, 701);
    assert!(copied.bytes < there.bytes + there.bytes / 10, "{there:?} {copied:?}");
    assert_eq!(fs::metadata(trees.at("work/data/file")).expect("there").nlink(), 101);
    assert!(!trees.at("work/names").exists());
}

/// ext4 gives a file 65,000 names.
#[test]
fn a_file_with_all_names_that_it_may_have_is_copied_once() {
    let trees = trees();
    write(trees.at("from/0"), "text").expect("written");
    let names = (1..65_100).take_while(|n| hard_link(trees.at("from/0"), trees.at(&format!("from/{n}"))).is_ok());
    let n_names = names.count() as u64 + 1;
    trees.copy(Amount { bytes: 4096, inodes: 1 }, &|| Ok(())).expect("copied");
    assert_eq!(fs::metadata(trees.at("work/data/0")).expect("there").nlink(), n_names);
}

#[test]
fn what_is_moved_ahead_of_the_copy_ends_at_a_bound() {
    let trees = trees();
    write(trees.at("from/0"), vec![7; 20 * MIB]).expect("written");
    let most = measure(&trees.at("from")).expect("counted").of_copy();
    let (has_room, from) = (|| Ok(()), open_folder(&trees.at("from")).expect("a folder"));
    let allowance = Allowance::new(&trees.progress, most, &has_room);
    let mut copying = Copying::begin(&trees.at("work/data"), &trees.at("work/kept"), &allowance).expect("begun");
    let mut measuring =
        Measuring { disk: fstat(&from).expect("there").st_dev, seen: BTreeMap::new(), amount: Amount::default() };
    let mut meet = |n: u32| {
        let name = CString::new(n.to_string()).expect("a name");
        let entry = Entry { folder: from.as_fd(), name: &name, kind: FileType::RegularFile };
        measuring.meets(&entry).expect("counted");
        let met = copying.meets(&entry);
        rename(trees.at(&format!("from/{n}")), trees.at(&format!("from/{}", n + 1))).expect("moved");
        met
    };
    let error = (0..37).find_map(|n| meet(n).err()).expect("it ends");
    let fault = refused(error);
    assert_eq!(fault.code, Code::ResourceExhausted);
    assert!(fault.message.contains("the copy would take more than"), "{fault}");
    assert!(measure(&trees.at("work/data")).expect("counted").bytes <= most.bytes);
    assert_eq!(measuring.amount.inodes, 1, "who counts meets it again and again, too");
}

#[test]
fn files_without_bytes_end_at_a_bound_too_and_the_disk_is_looked_at_meanwhile() {
    let trees = trees();
    for n in 0..1100 {
        create_dir(trees.at(&format!("from/{n}"))).expect("made");
    }
    let fault = refused(trees.copy(Amount { bytes: 0, inodes: 1000 }, &|| Ok(())).expect_err("too many"));
    assert_eq!(fault.code, Code::ResourceExhausted);
    let trees = Trees { progress: Progress::default(), ..trees };
    fs::remove_dir_all(trees.at("work/data")).and_then(|()| create_dir(trees.at("work/data"))).expect("emptied");
    fs::remove_dir(trees.at("work/names")).expect("removed");
    let full = || Err(Fault::new(Code::ResourceExhausted, "full"));
    assert_eq!(refused(trees.copy(Amount::UNBOUNDED, &full).expect_err("full")).message, "full");
}

#[test]
fn what_has_holes_counts_without_them() {
    let trees = trees();
    fs::File::create(trees.at("from/sparse")).and_then(|it| it.set_len(1 << 40)).expect("made");
    assert_eq!(measure(&trees.at("from")).expect("counted"), Amount { bytes: 0, inodes: 1 });
}
