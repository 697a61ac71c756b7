//! What a process last wrote into its log: mostly why it ended.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::Path,
};

use corten_console::output::steers_a_terminal;

const LINES_MAX: usize = 12;
const LINE_CHARS_MAX: usize = 400;
/// A command that is cut cannot be pasted.
const NEXT_CHARS_MAX: usize = 4000;
/// What a line begins with that says what to run, as a failure is told.
pub const NEXT: &str = "run next:";
/// However much was written, no more than this is read.
const BYTES_MAX: u64 = 16 << 10;

/// The last lines of a log, of what was written behind its byte `from`. Nothing where it cannot be read.
pub fn of(log: &Path, from: u64) -> Vec<String> {
    let bytes = tail(log, from).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    // A power cut leaves zero bytes where lines were not written yet, and the next run goes on behind them.
    let said = text.lines().map(|it| it.trim_matches('\0').trim_end());
    let lines: Vec<&str> = said.filter(|it| !it.is_empty()).collect();
    let room = |it: &str| if it.starts_with(NEXT) { NEXT_CHARS_MAX } else { LINE_CHARS_MAX };
    let cut = |it: &&str| it.replace(steers_a_terminal, " ").chars().take(room(it)).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].iter().map(cut).collect()
}

fn tail(log: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    // A log that is shorter was put aside, and begun anew by this very process.
    let from = if from > length { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(BYTES_MAX))))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where what is written next begins.
pub fn end_of(log: &Path) -> u64 {
    fs::metadata(log).map_or(0, |it| it.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn are_those_of_this_run_and_not_too_many() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let log = dir.path().join("corten.log");
        assert!(of(&log, 0).is_empty(), "there is none yet");

        fs::write(&log, "INFO the run before\n").expect("written");
        let begin = end_of(&log);
        assert!(of(&log, begin).is_empty(), "it has said nothing");
        let mut text = fs::read_to_string(&log).expect("there");
        text += "INFO \x1b[31mup\x1b[0m\n\nthread 'requests' has overflowed its stack\nfatal runtime error: stack overflow, aborting\n";
        fs::write(&log, &text).expect("written");
        let words = of(&log, begin);
        assert_eq!(words[0], "INFO  [31mup [0m", "a terminal is not steered");
        assert_eq!(
            words[1..],
            ["thread 'requests' has overflowed its stack", "fatal runtime error: stack overflow, aborting"]
        );

        fs::write(&log, "error: listening\n").expect("written");
        assert_eq!(of(&log, begin + 1000), ["error: listening"], "the log was put aside meanwhile");

        fs::write(&log, ["INFO up\n", &"\0".repeat(3_000), "INFO up again\n", &"\0".repeat(500)].concat())
            .expect("written");
        assert_eq!(of(&log, 0), ["INFO up", "INFO up again"], "the power failed twice");

        let next = format!("run next:      corten up {}", "--label=a=b ".repeat(50));
        fs::write(&log, format!("error: it fails\n{next}\n")).expect("written");
        assert_eq!(of(&log, 0)[1], next.trim_end(), "a command is whole");

        let many: String = (0..5_000).map(|it| format!("line {it} {}\n", "ä".repeat(500))).collect();
        fs::write(&log, many).expect("written");
        let words = of(&log, 0);
        assert!(words.len() <= LINES_MAX && words.iter().all(|it| it.chars().count() <= LINE_CHARS_MAX));
        assert!(words.last().expect("some").starts_with("line 4999"), "{words:?}");
    }
}
