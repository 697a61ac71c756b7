use super::*;

#[test]
fn only_another_certificate_is_written() {
    let write = |stored: Option<Value>| {
        let write = write(&CONFIG_MAPS, NAMESPACE, "kube-root-ca.crt", &json!({ "ca.crt": "new" }), stored);
        write.map(|it| (it.method.to_string(), it.object["data"].clone()))
    };
    assert_eq!(write(None), Some(("POST".into(), json!({ "ca.crt": "new" }))));
    assert_eq!(write(Some(json!({ "data": { "ca.crt": "new", "mine": "1" } }))), None);
    let put = Some(("PUT".into(), json!({ "ca.crt": "new", "mine": "1" })));
    assert_eq!(write(Some(json!({ "data": { "ca.crt": "old", "mine": "1" } }))), put);
}
