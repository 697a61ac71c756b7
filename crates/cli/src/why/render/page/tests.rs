use super::*;

const WIDTH: usize = 100;

#[test]
fn a_long_command_can_still_be_pasted() {
    let json = r#"[{"op":"test","path":"/metadata/finalizers/0","value":"example.com/cleanup"},{"op":"remove","path":"/metadata/finalizers/0"}]"#;
    let text = format!("kubectl patch configmap/held --type=json -p '{json}' -n shop");
    let rows = command(&text, WIDTH - LABEL);
    assert!(rows.iter().all(|it| it.chars().count() <= WIDTH - LABEL), "{rows:#?}");
    let pasted = std::process::Command::new("sh")
        .args(["-c", &format!("kubectl() {{ printf '%s\\n' \"$5\"; }}; {}", rows.join("\n"))])
        .output()
        .expect("a shell");
    let patch: serde_json::Value = serde_json::from_slice(&pasted.stdout).expect("it is still JSON");
    assert_eq!(patch, serde_json::from_str::<serde_json::Value>(json).expect("JSON"));
}

#[test]
fn what_is_remarked_on_a_command_is_never_run() {
    let text =
        format!("corten up --ha # on m1; {}where it never comes back: corten node remove m1", "and then ".repeat(20));
    for room in [24, 40, 60, 85] {
        let rows = command(&text, room);
        assert!(rows.len() > 1 && rows.iter().skip(1).all(|it| it.starts_with("# ")), "{rows:?}");
        assert!(rows.iter().all(|it| !it.ends_with('\\') && it.chars().count() <= room), "{rows:?}");
    }
}

#[test]
fn what_others_wrote_steers_no_terminal() {
    let line = Line::new(0, "image \u{1b}[2Jgpj\u{202e}exe\u{2066} \u{7}not found");
    assert_eq!(line.rows(WIDTH), ["image  [2Jgpj exe   not found"]);
}

#[test]
fn what_does_not_fit_is_cut_and_says_so() {
    let text = format!("expression '{}' failed: no such key: wanted", "word ".repeat(100));
    for (n_rows, begins, ends) in [(1, "expression", "…"), (2, "expression", "wanted"), (3, "expression", "wanted")] {
        let rows = wrap(&text, 50, 3, n_rows);
        assert_eq!(rows.len(), n_rows);
        assert!(rows[0].starts_with(begins) && rows[n_rows - 1].ends_with(ends), "{rows:?}");
        assert!(rows.iter().any(|it| it.contains('…')) && rows.iter().all(|it| it.chars().count() <= 50), "{rows:?}");
    }
}
