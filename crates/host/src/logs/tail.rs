//! Finds where the last lines of a log begin, from its end: what lies before them is never read.

use std::{fs::File, io, os::unix::fs::FileExt};

use super::line::Line;

const BLOCK: usize = 64 << 10;
/// A line's time, stream and tag are shorter than this.
const HEAD: usize = 64;

/// Where the last `count` lines begin in the first `size` bytes of `file`. A line in parts is one line.
pub(super) fn start_of_last(file: &File, size: u64, count: u64) -> io::Result<u64> {
    let mut lines = 0;
    // Where the part that was looked at last begins: the start, if nothing stops us before.
    let size = without_zeros(file, size)?;
    let mut start = size;
    let mut end = size;
    let mut first = true;
    while end > 0 {
        let begin = line_start(file, end)?;
        // The end of a line begins one more; so does a last line that has no end yet.
        if ends_line(file, begin, end)? || first {
            if lines == count {
                return Ok(start);
            }
            lines += 1;
        }
        first = false;
        start = begin;
        end = begin;
    }
    Ok(start)
}

/// A power cut may leave zeros at the end of a file, where its length was written and its content was not: they are no line.
fn without_zeros(file: &File, size: u64) -> io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut end = size;
    while end > 0 {
        let length = end.min(BLOCK as u64);
        let block = &mut block[..usize::try_from(length).unwrap_or(BLOCK)];
        file.read_exact_at(block, end - length)?;
        if let Some(last) = block.iter().rposition(|it| *it != 0) {
            return Ok(end - length + last as u64 + 1);
        }
        end -= length;
    }
    Ok(0)
}

/// Where the line begins that ends at `end`: after the newline before its own.
fn line_start(file: &File, end: u64) -> io::Result<u64> {
    let mut block = vec![0; BLOCK];
    let mut upper = end - 1;
    while upper > 0 {
        let length = upper.min(BLOCK as u64);
        let lower = upper - length;
        let block = &mut block[..usize::try_from(length).unwrap_or(BLOCK)];
        file.read_exact_at(block, lower)?;
        if let Some(newline) = block.iter().rposition(|it| *it == b'\n') {
            return Ok(lower + newline as u64 + 1);
        }
        upper = lower;
    }
    Ok(0)
}

fn ends_line(file: &File, begin: u64, end: u64) -> io::Result<bool> {
    let mut head = [0; HEAD];
    let length = usize::try_from(end - begin).unwrap_or(HEAD).min(HEAD);
    file.read_exact_at(&mut head[..length], begin)?;
    Ok(Line::parse(&head[..length]).is_none_or(|it| it.full))
}
