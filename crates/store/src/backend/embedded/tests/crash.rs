//! SIGKILL amid concurrent writes, many rounds on one store: what was answered is there, no revision is used twice.
//!
//! The test starts itself as the process to be killed, and hears of every answer over a pipe:
//! ```text
//! open <revision>                                     the store is open, at this revision
//! put <key> <revision> <value> | delete <key> <revision>      answered
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use super::{model::Random, *};
use crate::{Compare, Range, Revision};

const DIR: &str = "CORTEN_CRASH_DIR";
const ROUNDS: &str = "CORTEN_CRASH_ROUNDS";
const THIS_TEST: &str = "backend::embedded::tests::crash::survives_being_killed";
const WRITERS: u64 = 48;

#[test]
fn survives_being_killed() {
    if let Some(dir) = env::var_os(DIR) {
        return runtime().block_on(write_until_killed(dir.as_ref()));
    }
    let rounds = env::var(ROUNDS).ok().and_then(|it| it.parse().ok()).unwrap_or(20);
    let dir = tempfile::tempdir().expect("a directory");
    let mut random = Random(0xc0de);
    let mut told = AcknowledgedWrites::default();
    for round in 0..rounds {
        let n_answers = 1 + random.below(3_000);
        told.listen_and_kill(dir.path(), n_answers);
        told.check(round, &open(dir.path()));
    }
    assert!(told.used.len() > rounds * 100, "only {} writes were answered", told.used.len());
}

/// What the killed processes said.
#[derive(Default)]
struct AcknowledgedWrites {
    /// The last answer for each key: its revision, and the value unless it was deleted.
    keys: BTreeMap<String, (Revision, Option<String>)>,
    used: BTreeSet<Revision>,
    /// What the store was at when it was last looked at: whatever comes later is later.
    newest: Revision,
}

impl AcknowledgedWrites {
    fn listen_and_kill(&mut self, dir: &Path, n_answers: u64) {
        let mut child = Command::new(env::current_exe().expect("the test knows its own file"))
            .args(["--exact", THIS_TEST, "--nocapture", "--quiet"])
            .env(DIR, dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test can be started again");
        let mut lines = BufReader::new(child.stdout.take().expect("its output is piped"));
        let mut n_heard = 0;
        let mut line = String::new();
        // Goes on after the kill, up to the end of what the pipe still holds.
        while lines.read_line(&mut line).expect("the pipe is readable") > 0 {
            if line.ends_with('\n') {
                self.hear(line.trim());
            }
            line.clear();
            n_heard += 1;
            if n_heard == n_answers {
                child.kill().expect("the child is there");
            }
        }
        let status = child.wait().expect("the child is there");
        assert!(n_heard >= n_answers, "the child ended by itself: {status}");
    }

    fn hear(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let number = |word: &str| word.parse::<Revision>().expect("a revision is a number");
        let (key, revision, value) = match words[..] {
            ["open", revision] => return assert!(number(revision) >= self.newest, "{line}, but was {}", self.newest),
            ["put", key, revision, value] => (key, number(revision), Some(value.to_owned())),
            ["delete", key, revision] => (key, number(revision), None),
            // The test harness speaks too.
            _ => return,
        };
        assert!(revision > self.newest, "{line}: the store was already at {}", self.newest);
        assert!(self.used.insert(revision), "{line}: this revision was used before");
        self.keys.insert(key.to_owned(), (revision, value));
    }

    fn check(&mut self, round: usize, store: &Embedded) {
        let page = runtime().block_on(store.range(Range::prefix("/"), None, 0)).expect("reads work");
        let last = self.used.last().copied().unwrap_or(1);
        assert!(page.revision >= last, "round {round}: at {}, but {last} was answered", page.revision);
        // Done, but not answered before the kill: at most one for each writer. An empty store is at revision 1 already.
        let unsaid: BTreeSet<_> =
            (self.newest.max(1) + 1..=page.revision).filter(|it| !self.used.contains(it)).collect();
        assert!(unsaid.len() as u64 <= WRITERS, "round {round}: nobody was told of {unsaid:?}");
        let found: BTreeMap<_, _> =
            page.entries.iter().map(|it| (String::from_utf8_lossy(&it.key).into_owned(), it)).collect();
        for (key, (revision, value)) in &self.keys {
            let entry = found.get(key.as_str());
            let is_there = match (entry, value) {
                (Some(entry), Some(value)) if entry.mod_revision == *revision => entry.value == value.as_bytes(),
                (Some(entry), _) => entry.mod_revision > *revision && unsaid.contains(&entry.mod_revision),
                (None, Some(_)) => unsaid.range(revision..).next().is_some(),
                (None, None) => true,
            };
            assert!(is_there, "round {round}: {key} was {value:?} at {revision}, found {entry:?}");
        }
        self.newest = page.revision;
        // What was done without an answer counts as said.
        self.keys = found
            .into_iter()
            .map(|(key, it)| (key, (it.mod_revision, Some(String::from_utf8_lossy(&it.value).into_owned()))))
            .collect();
        self.used.extend(self.keys.values().map(|(revision, _)| *revision));
    }
}

async fn write_until_killed(dir: &Path) {
    let options = Options { log_bytes_min: 256 << 10, log_ahead: 16 << 10, ..Options::default() };
    let store = Arc::new(Embedded::open(dir, options).expect("the store opens"));
    say(&format!("open {}", store.revision()));
    let writers: Vec<_> = (0..WRITERS).map(|it| tokio::spawn(write(store.clone(), it))).collect();
    for writer in writers {
        writer.await.expect("a writer writes until it is killed");
    }
}

/// Each writer has its own keys, so it knows what must be there.
async fn write(store: Arc<Embedded>, writer: u64) {
    let mut random = Random(writer ^ store.revision() << 8);
    loop {
        let key = format!("/{writer}/{}", random.below(10));
        let mod_revision = store.get(key.as_bytes()).await.expect("reads work").map_or(0, |it| it.mod_revision);
        let value = format!("{}-{}", random.below(u64::MAX), "v".repeat(random.index(300)));
        let is_deletion = mod_revision > 0 && random.below(5) == 0;
        let operation = if is_deletion {
            Operation::Delete { key: key.clone().into() }
        } else {
            Operation::Put { key: key.clone().into(), value: value.clone().into() }
        };
        let compares = vec![Compare { key: key.clone().into(), mod_revision }];
        let revision = commit(&*store, Txn { compares, operations: vec![operation] }).await.expect("the store writes");
        if is_deletion {
            say(&format!("delete {key} {revision}"));
        } else {
            say(&format!("put {key} {revision} {value}"));
        }
    }
}

/// One write per line: the pipe holds whole answers, and at most one torn at the end.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A full pipe only makes the writer wait; a closed one means that the listener is gone.
    if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}
