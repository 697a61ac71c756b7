//! A page of lines that fits a screen: lines are wrapped or cut at its width, and what can be spared goes when it is full.

use corten_console::output::steers_a_terminal;

use super::PageStyle;

const HEIGHT: usize = 24;
/// Where the text of a labelled line begins.
const LABEL: usize = 15;
pub(super) const INDENT: usize = 3;

pub(super) const GREEN: &str = "32";
pub(super) const YELLOW: &str = "33";
pub(super) const RED: &str = "31";
pub(super) const DIM: &str = "2";

/// One thing to say, which may take several lines of the screen.
#[derive(Default)]
pub(super) struct Line {
    depth: usize,
    label: &'static str,
    text: String,
    /// Paints all of it.
    colour: Option<&'static str>,
    /// Paints this word where it first occurs.
    word: Option<(&'static str, &'static str)>,
    n_rows_max: usize,
    is_command: bool,
    /// 0: it stays. Of the others the largest go first.
    dropped: u8,
}

impl Line {
    pub(super) fn new(depth: usize, text: impl Into<String>) -> Self {
        // Logs and messages may hold anything; a terminal must not be steered by them.
        let text = text.into().replace(steers_a_terminal, " ");
        Self { depth, text, n_rows_max: 1, ..Self::default() }
    }

    pub(super) fn labelled(self, label: &'static str) -> Self {
        Self { label, ..self }
    }

    pub(super) fn painted(self, colour: &'static str) -> Self {
        Self { colour: Some(colour), ..self }
    }

    pub(super) fn word(self, colour: &'static str, word: &'static str) -> Self {
        Self { word: Some((colour, word)), ..self }
    }

    pub(super) fn wrapped(self, n_rows_max: usize) -> Self {
        Self { n_rows_max, ..self }
    }

    pub(super) fn cut(self) -> Self {
        self.wrapped(1)
    }

    pub(super) fn command(self) -> Self {
        Self { is_command: true, ..self }
    }

    pub(super) fn dropped(self, dropped: u8) -> Self {
        Self { dropped, ..self }
    }

    pub(super) fn height(&self, width: usize) -> usize {
        self.rows(width).len()
    }

    fn rows(&self, width: usize) -> Vec<String> {
        let indent = if self.label.is_empty() { INDENT * self.depth } else { LABEL };
        let room = width.saturating_sub(indent).max(20);
        // Where a line goes on it stands a little further in.
        let hang = if self.label.is_empty() { INDENT } else { 0 };
        let rows =
            if self.is_command { command(&self.text, room) } else { wrap(&self.text, room, hang, self.n_rows_max) };
        let row = |(at, row): (usize, &String)| match (at, self.label) {
            (0, "") => format!("{}{row}", " ".repeat(indent)),
            (0, label) => format!("{label:LABEL$}{row}"),
            _ => format!("{}{row}", " ".repeat(indent)),
        };
        rows.iter().enumerate().map(row).collect()
    }

    fn paint(&self, row: &str) -> String {
        if let Some(colour) = self.colour {
            return format!("\x1b[{colour}m{row}\x1b[0m");
        }
        match self.word {
            Some((colour, word)) => row.replacen(word, &format!("\x1b[{colour}m{word}\x1b[0m"), 1),
            None => row.to_owned(),
        }
    }
}

pub(super) struct Page {
    width: usize,
    /// As many rows as it takes: nobody looks at it on a screen.
    is_whole: bool,
    lines: Vec<Line>,
}

impl Page {
    pub(super) fn new(look: PageStyle) -> Self {
        Self { width: look.width, is_whole: look.is_whole(), lines: Vec::new() }
    }

    pub(super) fn fits(&self) -> bool {
        self.is_whole || self.height() <= HEIGHT
    }

    pub(super) fn push(&mut self, line: Line) {
        self.lines.push(line);
    }

    pub(super) fn height(&self) -> usize {
        self.lines.iter().map(|it| it.height(self.width)).sum()
    }

    pub(super) fn print(mut self, colour: bool) -> String {
        while !self.fits() {
            let Some(worst) = self.lines.iter().map(|it| it.dropped).max().filter(|it| *it > 0) else { break };
            // Of a log the oldest line goes first, as of everything else.
            let at = self.lines.iter().position(|it| it.dropped == worst).expect("it is the worst of them");
            self.lines.remove(at);
        }
        let mut text = String::new();
        for line in &self.lines {
            for (at, row) in line.rows(self.width).iter().enumerate() {
                text.push_str(
                    if colour && (at == 0 || line.colour.is_some()) { line.paint(row) } else { row.clone() }.trim_end(),
                );
                text.push('\n');
            }
        }
        text
    }
}

/// Breaks a text between words. Of what does not fit one row the end is cut off; of what does not fit several, the middle: the cause
/// stands last in the messages of most programs.
fn wrap(text: &str, room: usize, hang: usize, n_rows_max: usize) -> Vec<String> {
    let rows = broken(text, room, hang);
    if rows.len() <= n_rows_max {
        return rows;
    }
    if n_rows_max <= 1 {
        let head: String = text.chars().take(room - 1).collect();
        return vec![format!("{}…", head.trim_end())];
    }
    let mut length = room + (n_rows_max - 1) * (room - hang);
    loop {
        let rows = broken(&both_ends(text, length), room, hang);
        // Breaks between words leave room unused.
        if rows.len() <= n_rows_max || length <= room {
            return rows;
        }
        length -= 1;
    }
}

/// Of a text that does not fit, its beginning and its end.
pub(super) fn both_ends(text: &str, room: usize) -> String {
    let n = text.chars().count();
    if n <= room || room < 2 {
        return text.to_owned();
    }
    let begin = room / 2;
    let head: String = text.chars().take(begin).collect();
    let tail: String = text.chars().skip(n - (room - begin - 1)).collect();
    format!("{head}…{tail}")
}

fn broken(text: &str, room: usize, hang: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let mut rest: Vec<char> = text.chars().collect();
    loop {
        let hang = if rows.is_empty() { 0 } else { hang };
        let room = room - hang;
        if rest.len() <= room {
            rows.push(" ".repeat(hang) + &rest.iter().collect::<String>());
            return rows;
        }
        // A word that is longer than half a row is broken rather than moved.
        let end = rest[..=room].iter().rposition(|it| *it == ' ').filter(|it| *it > room / 2).unwrap_or(room);
        let head: String = rest[..end].iter().collect();
        rows.push(" ".repeat(hang) + head.trim_end());
        let n_blanks = rest[end..].iter().take_while(|it| **it == ' ').count();
        rest.drain(..end + n_blanks);
    }
}

/// Breaks a command so that it can still be pasted: between words with a backslash, within quoted JSON after a comma, and a remark
/// into several.
fn command(text: &str, room: usize) -> Vec<String> {
    let mut rows: Vec<String> = vec![String::new()];
    let mut options = words(text).into_iter();
    let mut is_remark = false;
    while let Some(mut word) = options.next() {
        is_remark |= word == "#";
        // A namespace stays with its option.
        if word == "-n" {
            word = format!("{word} {}", options.next().unwrap_or_default());
        }
        let row = rows.last_mut().expect("there is a row");
        let n_taken = row.chars().count();
        let n_word = word.chars().count();
        if n_taken == 0 {
            row.push_str(&word);
        } else if n_taken + 1 + n_word + 2 <= room {
            row.push(' ');
            row.push_str(&word);
        } else if is_remark {
            // The shell would run what follows a row of it.
            rows.push(if word == "#" { word } else { format!("# {word}") });
        } else {
            row.push_str(" \\");
            rows.push(word);
        }
    }
    rows.into_iter().flat_map(|it| json_rows(it, room)).collect()
}

/// A shell's words: blanks within quotes do not part them.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (None, ' ') => {
                words.push(String::new());
                continue;
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(it), _) if it == letter => quote = None,
            _ => {}
        }
        words.last_mut().expect("there is a word").push(letter);
    }
    words
}

fn json_rows(row: String, room: usize) -> Vec<String> {
    if row.chars().count() <= room || !row.contains('\'') {
        return vec![row];
    }
    let mut rows = vec![String::new()];
    for part in row.split_inclusive("},").flat_map(|it| it.split_inclusive("\",")) {
        let last = rows.last_mut().expect("there is a row");
        if !last.is_empty() && last.chars().count() + part.chars().count() > room {
            rows.push(part.to_owned());
        } else {
            last.push_str(part);
        }
    }
    rows
}

#[cfg(test)]
mod tests;
