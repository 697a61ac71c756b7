use std::{fs, os::unix::fs::symlink, sync::atomic};

use rustix::{
    fs::{AtFlags, statat},
    mount::{UnmountFlags, mount_bind, unmount},
};

use super::{
    deep::{DEEP, make_deep, on_a_small_stack},
    *,
};

#[derive(Default)]
struct Count {
    met: usize,
    left: usize,
    files_max: usize,
}

impl Visitor for Count {
    fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
        self.met += 1;
        if self.met.is_multiple_of(1000) {
            self.files_max = self.files_max.max(open_files());
        }
        let stat = statat(entry.folder, entry.name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileType::from_raw_mode(stat.st_mode).is_dir())
    }

    fn leaves(&mut self, _parent: BorrowedFd<'_>, _name: &CStr) -> io::Result<()> {
        self.left += 1;
        Ok(())
    }
}

/// How many files this thread has open.
fn open_files() -> usize {
    fs::read_dir("/proc/thread-self/fd").expect("listed").count()
}

/// Files that other tests open from now on are none of this thread's.
fn with_files_of_its_own() {
    #[expect(unsafe_code, reason = "open files of its own for one thread")]
    // SAFETY: each thread closes what it has opened; what this one has open of others' goes with it.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FILES) }.expect("open files of its own");
}

fn no_bound() -> WalkBudget {
    WalkBudget::of_time(Duration::from_secs(600))
}

#[test]
fn a_deep_tree_takes_neither_stack_nor_files() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let top = dir.path().join("top");
    fs::create_dir(&top).expect("made");
    make_deep(&top, DEEP);
    on_a_small_stack(move || {
        with_files_of_its_own();
        let (before, mut count) = (open_files(), Count::default());
        let extent = walk(open_folder(&top).expect("a folder"), &mut no_bound(), &mut count).expect("walked");
        assert_eq!((extent, count.met, count.left), (Extent::Whole, DEEP + 1, DEEP));
        assert!(count.files_max <= before + 20, "{} beside {before}", count.files_max - before);
        assert!(count.files_max > before, "they are counted");
        remove(&top).expect("removed");
        assert!(!top.exists());
        remove(&top).expect("harmless");
    });
}

#[test]
fn a_wide_tree_is_removed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let top = dir.path().join("top");
    for folder in 0..200 {
        let folder = top.join(folder.to_string());
        fs::create_dir_all(&folder).expect("made");
        for file in 0..100 {
            fs::write(folder.join(file.to_string()), "").expect("written");
        }
    }
    remove(&top).expect("removed");
    assert!(!top.exists());
}

#[test]
fn links_are_removed_and_not_followed() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("kept"), "").expect("written");
    let top = dir.path().join("top");
    fs::create_dir_all(top.join("in")).expect("made");
    symlink(&outside, top.join("in/folder")).expect("linked");
    symlink(outside.join("kept"), top.join("file")).expect("linked");
    symlink("no such thing", top.join("broken")).expect("linked");
    remove(&top).expect("removed");
    assert!(!top.exists() && outside.join("kept").exists());

    symlink(&outside, &top).expect("linked");
    remove(&top).expect("removed");
    assert!(fs::symlink_metadata(&top).is_err() && outside.join("kept").exists(), "a link itself");
    fs::write(&top, "").expect("written");
    remove(&top).expect("removed");
    assert!(!top.exists(), "a file");
    remove(&dir.path().join("none/none")).expect("harmless");
}

#[test]
fn what_is_mounted_in_it_stays() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (outside, top) = (dir.path().join("outside"), dir.path().join("top"));
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("kept"), "").expect("written");
    fs::create_dir_all(top.join("a/mounted")).expect("made");
    // Of the same file system: no number of a device tells the two apart.
    mount_bind(&outside, top.join("a/mounted")).expect("mounted");
    let removed = remove(&top);
    let is_kept = outside.join("kept").exists();
    unmount(top.join("a/mounted"), UnmountFlags::empty()).expect("unmounted");
    assert!(is_kept, "{removed:?}");
    removed.expect_err("it is not empty");
    remove(&top).expect("removed");
    assert!(!top.exists());
}

#[test]
fn a_bound_ends_it_and_the_next_goes_on() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let top = dir.path().join("top");
    fs::create_dir(&top).expect("made");
    for file in 0..100 {
        fs::write(top.join(file.to_string()), "").expect("written");
    }
    let mut bound = WalkBudget::new(Duration::from_secs(60), 40);
    assert_eq!(remove_within(&top, &mut bound).expect_err("too many").kind(), io::ErrorKind::TimedOut);
    assert_eq!(fs::read_dir(&top).expect("listed").count(), 60);
    let mut late = WalkBudget { until: Instant::now(), entries: 1 << 20 };
    assert_eq!(remove_within(&top, &mut late).expect_err("late").kind(), io::ErrorKind::TimedOut);
    remove(&top).expect("removed");
}

/// A folder that is swapped for a link, and folders that are moved up, while they are walked: nothing outside is met.
#[test]
fn who_moves_things_about_leads_nobody_elsewhere() {
    struct Stay<'a>(&'a Path);
    impl Visitor for Stay<'_> {
        fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
            assert_ne!(entry.name, c"outside-file", "in {:?}", self.0);
            Ok(entry.kind != FileType::RegularFile && entry.kind != FileType::Symlink)
        }
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (outside, top) = (dir.path().join("outside"), dir.path().join("top"));
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("outside-file"), "").expect("written");
    let deep = (0..2 * LEVELS_HELD).fold(top.join("a"), |path, it| path.join(it.to_string()));
    fs::create_dir_all(&deep).expect("made");
    let is_over = atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let low = top.join("a").join((0..=LEVELS_HELD).map(|it| it.to_string()).collect::<std::path::PathBuf>());
            while !is_over.load(atomic::Ordering::Relaxed) {
                let _ = fs::rename(top.join("a/0"), top.join("b"));
                let _ = symlink(&outside, top.join("a/0"));
                let _ = fs::remove_file(top.join("a/0"));
                let _ = fs::rename(top.join("b"), top.join("a/0"));
                let _ = fs::rename(&low, top.join("c"));
                let _ = fs::rename(top.join("c"), &low);
            }
        });
        for _ in 0..300 {
            walk(open_folder(&top).expect("a folder"), &mut no_bound(), &mut Stay(&top)).expect("walked");
        }
        is_over.store(true, atomic::Ordering::Relaxed);
    });
}

/// The same moves, each between two steps of a walk: where they come, and how often they lead it astray, is known.
#[test]
fn who_moves_things_between_two_steps_leads_nobody_elsewhere() {
    /// Does the next move at the entry that is met as the `at`th.
    struct Mover<'a> {
        moves: &'a [(&'a Path, &'a Path)],
        at: usize,
        met: usize,
    }
    impl Visitor for Mover<'_> {
        fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
            assert_ne!(entry.name, c"outside-file", "after {} entries", self.met);
            self.met += 1;
            if self.met == self.at {
                for (from, to) in self.moves {
                    fs::rename(from, to).expect("moved");
                }
            }
            Ok(entry.kind != FileType::RegularFile && entry.kind != FileType::Symlink)
        }
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (outside, top) = (dir.path().join("outside"), dir.path().join("top"));
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("outside-file"), "").expect("written");
    let deep = (0..2 * LEVELS_HELD).fold(top.join("a"), |path, it| path.join(it.to_string()));
    fs::create_dir_all(&deep).expect("made");
    let low = top.join("a").join((0..=LEVELS_HELD).map(|it| it.to_string()).collect::<std::path::PathBuf>());
    let (high, beside, link) = (top.join("a/0"), top.join("b"), dir.path().join("link"));
    symlink(&outside, &link).expect("linked");
    let mut parts = [0; 2];
    for (which, [there, back]) in [
        // A folder that is walked through goes elsewhere, and a link out of the tree has its name.
        [[(&*high, &*beside), (&*link, &*high)], [(&*high, &*link), (&*beside, &*high)]],
        // One from below goes up; a link has its name.
        [[(&*low, &*beside), (&*link, &*low)], [(&*low, &*link), (&*beside, &*low)]],
    ]
    .into_iter()
    .enumerate()
    {
        for at in 1..=2 * LEVELS_HELD {
            let mut mover = Mover { moves: &there, at, met: 0 };
            let extent = walk(open_folder(&top).expect("a folder"), &mut no_bound(), &mut mover).expect("walked");
            parts[which] += usize::from(extent == Extent::Part);
            assert!(mover.met >= at, "the move was made");
            for (from, to) in back {
                fs::rename(from, to).expect("moved back");
            }
        }
    }
    // The levels near the top stay open, and whoever is below the last of them finds another folder above.
    assert!(parts[0] == 0 && parts[1] > 0, "{parts:?}");
}

/// What was moved up out of its folder is left, and the walk goes on where it can.
#[test]
fn a_walk_whose_folder_is_moved_goes_on_above() {
    struct Move<'a> {
        from: &'a Path,
        to: &'a Path,
        met: Vec<CString>,
    }
    impl Visitor for Move<'_> {
        fn meets(&mut self, entry: &Entry<'_>) -> io::Result<bool> {
            self.met.push(entry.name.to_owned());
            if entry.name == c"last" {
                fs::rename(self.from, self.to).expect("moved");
            }
            Ok(true)
        }
    }
    let dir = tempfile::tempdir().expect("a temporary folder");
    let top = dir.path().join("top");
    let low = (0..LEVELS_HELD + 3).fold(top.join("1"), |path, _| path.join("in"));
    fs::create_dir_all(low.join("last")).expect("made");
    fs::create_dir_all(top.join("0/beside")).expect("made");
    let to = dir.path().join("moved");
    let mut visitor = Move { from: &low, to: &to, met: Vec::new() };
    let extent = walk(open_folder(&top).expect("a folder"), &mut no_bound(), &mut visitor).expect("walked");
    assert_eq!(extent, Extent::Part);
    assert!(visitor.met.iter().any(|it| &**it == c"beside"), "{:?}", visitor.met);
}
