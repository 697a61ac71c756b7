use super::*;

#[test]
fn a_node_whose_run_folder_was_removed_is_known_by_its_record() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
    fs::create_dir_all(&node.layout.data).expect("made");
    let mut command = Command::new("sh");
    // What is in its command line is what a node's holds: program, verb, folders.
    let script = dir.path().join("node");
    fs::write(&script, "kill -STOP $$").expect("written");
    command.arg("node").args(node.folders()).current_dir(dir.path());
    let mut child = command.spawn().expect("started");
    wait_for_words(&child);
    assert!(!node.runs().expect("looked"), "nothing is noted of it");
    Record::change(&node.layout.data, |it| it.note_begin(child.id(), 0, output::now()));
    assert!(node.runs().expect("looked"));
    let another = NodeProcess { layout: Layout::new(&node.layout.data, dir.path().join("other")) };
    assert!(!another.runs().expect("looked"));
    assert!(node.process().expect("looked").is_some());
    child.kill().and_then(|()| child.wait()).expect("ended");
    assert!(!node.runs().expect("looked"));
}

#[test]
fn who_looks_keeps_nobody_from_starting() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
    let looks = node.lock().expect("opened").expect("free");
    std::thread::scope(|scope| {
        let starts = scope.spawn(|| node.lock().expect("opened").is_some());
        drop(looks);
        assert!(starts.join().expect("tried"), "nobody holds it for long");
    });
}

/// The kernel tells the words of a process a moment after its program has begun.
fn wait_for_words(child: &Child) {
    let pid = Pid::from_child(child);
    while !CommandLine::of(pid).is_ok_and(|it| it.is_known()) {
        std::thread::yield_now();
    }
}

#[test]
fn who_holds_one_folder_with_another_is_named_and_left_alone() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let node = |data: &str, run: &str| NodeProcess { layout: Layout::new(dir.path().join(data), dir.path().join(run)) };
    let running = node("data", "run");
    let lock = running.lock().expect("opened").expect("free");
    let mut command = Command::new("sh");
    let script = dir.path().join("node");
    fs::write(&script, "kill -STOP $$").expect("written");
    command.current_dir(dir.path()).args(["node", "--data-dir"]).arg(&running.layout.data);
    let mut child = command.stdin(Stdio::from(lock)).spawn().expect("started");
    wait_for_words(&child);
    fs::write(running.pid_path(), child.id().to_string()).expect("written");
    fs::create_dir_all(&running.layout.data).expect("made");
    Record::change(&running.layout.data, |it| it.start_over(&running.layout.run, Vec::new(), output::now()));

    running.refuse_others().expect("it is this very node");
    let other_data = node("other", "run").refuse_others().expect_err("refused").to_string();
    let data = running.layout.data.display();
    assert!(other_data.contains(&format!("has its data in {data}, not in ")), "{other_data}");
    assert!(other_data.contains(&format!("`corten down --data-dir={data} --run-dir=")), "{other_data}");
    let second = node("data", "second").refuse_others().expect_err("refused").to_string();
    assert!(second.contains(&format!("the cluster in {data} runs already, in ")), "{second}");
    let claimed = NodeClaim::new(node("data", "second").layout).err().map(|it| it.to_string());
    assert_eq!(claimed.as_deref(), Some(&*second), "in the foreground, too");
    assert_eq!(Record::load(&running.layout.data).run_dir, running.layout.run, "and nothing was noted");
    node("other", "second").refuse_others().expect("nothing is in its way");
    let zombie = CommandLine::new(rustix::process::getpid(), &[]);
    assert!(!zombie.is_known(), "a process that dies is nobody's");
    child.kill().and_then(|()| child.wait()).expect("ended");
}

#[test]
fn the_lock_holds_as_long_as_the_process_that_has_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
    assert!(!node.runs().expect("looked") && !node.layout.run.exists(), "looking makes nothing");
    assert!(!node.end(Duration::ZERO).expect("harmless"));

    let lock = node.lock().expect("opened").expect("free");
    let mut child = Command::new("sleep").arg("1000").stdin(Stdio::from(lock)).spawn().expect("started");
    fs::write(node.pid_path(), child.id().to_string()).expect("written");
    assert!(node.runs().expect("looked"));
    let refusal = node.claim().expect_err("it is another's").to_string();
    assert!(refusal.contains("`corten down` ends it"), "{refusal}");
    assert!(node.start(Path::new("true"), &[]).expect("harmless").is_none(), "a second one is not started");
    assert!(node.end(Duration::from_secs(10)).expect("ended"));
    assert!(!node.runs().expect("looked"));
    child.wait().expect("waited for");

    let claim = node.claim().expect("free").expect("not given as standard input");
    assert!(node.runs().expect("looked"), "one in the foreground is seen, too");
    let pid = fs::read_to_string(node.pid_path()).expect("written");
    assert_eq!(pid, std::process::id().to_string(), "and can be ended");
    drop(claim);
    assert!(!node.runs().expect("looked"));
    node.forget();
    assert!(!node.layout.run.exists());
}
