use super::*;

#[test]
fn reads_steps() {
    let steps = parse("# c\n$ a b\n  more\nx…z\nexit 3\n\n~5 c\nnot y\n").expect("valid");
    assert_eq!(steps.len(), 2);
    assert_eq!((&*steps[0].command, steps[0].exit, &*steps[0].expected), ("a b\n  more", 3, &["x…z".to_owned()][..]));
    assert_eq!((steps[1].patience.as_secs(), &*steps[1].absent), (5, &["y".to_owned()][..]));
    assert!(parse("expected before a command").is_err());
}

#[test]
fn reads_needs() {
    let with = |kubectl_minor, program: &str| Needs {
        kubectl_minor,
        program: Some(program.to_owned()).filter(|it| !it.is_empty()),
        ..Needs::default()
    };
    assert_eq!(needs("needs kubectl 1.26\n$ x\n"), (with(26, ""), "\n$ x\n"));
    assert_eq!(needs("needs program x\n$ x\n"), (with(0, "x"), "\n$ x\n"));
    let other = Some(("a new tool".to_owned(), "tool --version | grep ': 2'".to_owned()));
    let text = "needs a new tool: tool --version | grep ': 2'\n$ x\n";
    assert_eq!(needs(text), (Needs { other, ..Needs::default() }, "\n$ x\n"));
    assert_eq!(needs("$ x\n"), (with(0, ""), "$ x\n"));
}

#[test]
fn the_machine_that_plays_it_is_asked() {
    let script = |first: &str| {
        let (needs, text) = needs(first);
        Script { name: "s".into(), needs, steps: parse(text).expect("valid") }
    };
    let lacks = |first: &str, answer: (i32, &str)| {
        let lack = script(first).lacks(&mut |_| Ok((answer.0, answer.1.to_owned())));
        lack.expect("an answer that can be read").is_some()
    };
    assert!(!lacks("$ x\n", (1, "")));
    assert!(lacks("needs program x\n$ x\n", (1, "")));
    assert!(!lacks("needs program x\n$ x\n", (0, "/bin/x")));
    assert!(lacks("needs a tool: tool\n$ x\n", (1, "")));
    assert!(!lacks("needs a tool: tool\n$ x\n", (0, "")));
    let old = (0, r#"{"clientVersion": {"gitVersion": "v1.20.5+really1.20.2"}}"#);
    assert!(lacks("needs kubectl 1.27\n$ x\n", old));
    assert!(!lacks("needs kubectl 1.20\n$ x\n", old));
}

#[test]
fn judges_output() {
    let step = &parse("$ x\none\ntwo…end\nnot bad\n").expect("valid")[0];
    assert!(step.judge(0, "line one\ntwo and the end\n").is_ok());
    for (exit, output) in [(1, "one\ntwo end"), (0, "two end\none"), (0, "one\ntwo"), (0, "one\ntwo end\nbad")] {
        assert!(step.judge(exit, output).is_err(), "{output:?}");
    }
}
