//! Whether a program is another one.

use std::fs;

use super::*;

#[test]
fn a_program_is_the_same_by_what_is_in_it() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).expect("written");
        path
    };
    let large = vec![7; (2 << 20) + 3];
    let mut changed = large.clone();
    *changed.last_mut().expect("it is not empty") = 8;
    let (one, copy, other) = (file("one", &large), file("copy", &large), file("other", &changed));
    let longer = file("longer", &[&*large, b"x"].concat());
    let is_same = |other: &Path| is_same(&one, other).expect("both can be read");
    assert!(is_same(&one) && is_same(&copy));
    assert!(!is_same(&other) && !is_same(&longer));
}
