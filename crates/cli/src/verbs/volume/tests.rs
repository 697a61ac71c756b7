use super::*;

#[test]
fn what_is_called_off_removes_nothing() {
    for (from, to, said) in [
        ("n1", "n2", "persistentvolumeclaim/data is on node n2: what node n1 had of it is removed"),
        ("n1", "n1", "persistentvolumeclaim/data stays on node n1: its move is called off"),
    ] {
        assert_eq!(outcome("data", from, to), said);
    }
}
