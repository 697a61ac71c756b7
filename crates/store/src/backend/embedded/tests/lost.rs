//! Files that somebody takes away, or puts others in their place, while the store is open: nothing is answered that the next
//! start would not find.

use std::fs;

use super::*;

/// Every file there is, and a store that was open before and has a checkpoint.
fn prepared(dir: &Path) -> (Embedded, Vec<std::path::PathBuf>) {
    let store = open(dir);
    let is_checkpoint = |it: &Path| it.extension().is_some_and(|it| it == "checkpoint");
    let names = || fs::read_dir(dir).expect("a folder").map(|it| it.expect("an entry").path());
    runtime().block_on(async {
        // Another thread writes it, and whoever closes the store before that is done gives it up.
        for n in 0_u32.. {
            commit(&store, put(&format!("/{}", n % 9), &n.to_string().repeat(20))).await.expect("the disk works");
            if n > 200 && names().any(|it| is_checkpoint(&it)) {
                break;
            }
        }
    });
    drop(store);
    // Without a checkpoint from now on: it would replace the files that are looked at.
    let store = Embedded::open(dir, Options::default()).expect("the store opens");
    runtime().block_on(commit(&store, put("/last", "1"))).expect("the disk works");
    let files: Vec<_> = names().collect();
    // What only holds room back holds nothing that could be lost.
    let files: Vec<_> = files.into_iter().filter(|it| !it.ends_with("reserve")).collect();
    let has = |extension: &str| files.iter().any(|it| it.extension().is_some_and(|it| it == extension));
    assert!(has("checkpoint") && has("log") && files.len() >= 3, "{files:?}");
    (store, files)
}

fn refused(store: &Embedded, what: &str) {
    runtime().block_on(async {
        let before = store.revision();
        let said = store.writable().expect_err(what).to_string();
        assert!(said.contains(what) && said.contains("while the store was open"), "{said}");
        assert_eq!(commit(store, put("/more", "2")).await.expect_err(what).to_string(), said);
        assert_eq!(store.revision(), before);
        assert!(store.get(b"/last").await.expect("reads go on").is_some());
    });
}

fn taken(store: &Embedded) {
    store.writable().expect("all is back");
    runtime().block_on(commit(store, put("/more", "3"))).expect("all is back");
}

#[test]
fn no_file_is_missed_unnoticed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, files) = prepared(&dir.path().join("store"));
    taken(&store);
    for file in files {
        let aside = dir.path().join("aside");
        fs::rename(&file, &aside).expect("moved");
        refused(&store, &format!("{} was removed", file.file_name().expect("a file").display()));
        // A copy is not the file that is written to.
        fs::copy(&aside, &file).expect("copied");
        refused(&store, &format!("{} was replaced", file.file_name().expect("a file").display()));
        fs::rename(&aside, &file).expect("moved back");
        taken(&store);
    }
}

#[test]
fn a_folder_that_is_gone_or_another_is_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store");
    let (store, _) = prepared(&path);
    let aside = dir.path().join("aside");
    fs::rename(&path, &aside).expect("moved");
    refused(&store, "was removed");
    fs::create_dir(&path).expect("made");
    refused(&store, "was removed");
    fs::remove_dir(&path).expect("removed");
    fs::rename(&aside, &path).expect("moved back");
    taken(&store);
}

#[test]
fn a_log_that_was_cut_is_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, files) = prepared(&dir.path().join("store"));
    let log = files.iter().rfind(|it| it.extension().is_some_and(|it| it == "log")).expect("there is one");
    fs::OpenOptions::new().write(true).open(log).and_then(|it| it.set_len(0)).expect("cut");
    refused(&store, "the log was cut by somebody else");
}
