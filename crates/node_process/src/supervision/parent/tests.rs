use std::{path::Path, process::Command};

use corten_machine::Layout;

use super::*;

/// What somebody did to the file while the node ran.
type Loss = (&'static str, fn(&Path));

const LOSSES: [Loss; 4] = [
    ("removed", |file| fs::remove_file(file).expect("it is there")),
    ("torn", |file| fs::write(file, "{ \"ends\": [").expect("written")),
    ("emptied", |file| fs::write(file, "{}").expect("written")),
    ("its folder removed", |file| fs::remove_dir_all(file.parent().expect("a folder")).expect("it is there")),
];

#[tokio::test]
async fn a_node_that_is_killed_is_started_again_whatever_became_of_the_file() {
    for (loss, lose) in LOSSES {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let node = NodeProcess { layout: Layout::new(dir.path().join("data"), dir.path().join("run")) };
        fs::create_dir_all(&node.layout.data).expect("a folder");
        let signals = Signals::listen().expect("signals");
        let (memory, is_unsaved) = (RefCell::default(), Cell::default());
        let parent = Parent { node: &node, args: &[], program: PathBuf::new(), signals, memory, is_unsaved };
        parent.change(|it| it.start_over(&node.layout.run, vec!["--port=7443".into()], output::now()));
        let child = Command::new("sh").args(["-c", "kill -9 $$"]).spawn().expect("a shell");
        let process = Process::find(rustix::process::Pid::from_child(&child)).expect("it is not waited for");
        let begun = parent.note_begin(child.id(), 0);
        lose(&node.layout.data.join("supervision.json"));
        let next = parent.note_end(WatchedNode { process, begun, child: Some(child) });
        assert_eq!(next, Some(Next::RestartAfter(Duration::from_secs(1))), "{loss}");
        let record = parent.record();
        assert_eq!(record.ends.last().map(|it| &it.how), Some(&How::Killed(9)), "{loss}");
        assert_eq!(record.options.is_empty(), loss == "emptied", "{loss}: what `up` was given is remembered");
    }
}
