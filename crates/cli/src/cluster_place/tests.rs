//! Where a cluster is found.

use super::*;

#[test]
fn every_command_is_of_the_cluster_that_was_asked() {
    let server = ClusterPlace::of_server("https://127.0.0.1:16777", Some("/srv/my lab"));
    assert_eq!((server.up(), server.serve_everywhere()), (None, None));
    assert_eq!(server.up_after_server().as_deref(), Some("corten up --data-dir='/srv/my lab' --port=16777"));
    assert_eq!(server.listener(), "ss -tlnp 'sport = :16777'");
    let node = ClusterPlace::of_node("https://127.0.0.1:6443", "/srv/lab");
    assert_eq!(node.up().as_deref(), Some("corten up --data-dir=/srv/lab"));
    assert_eq!(
        node.serve_everywhere().as_deref(),
        Some("corten down --data-dir=/srv/lab && corten up --data-dir=/srv/lab --bind=0.0.0.0")
    );
}

#[test]
fn only_addresses_of_the_machine_itself_are_loopback() {
    for (server, is_loopback, port) in [
        ("https://127.0.0.1:16777", true, 16777),
        ("https://[::1]:7443/", true, 7443),
        ("https://localhost", true, 443),
        ("https://10.0.0.1:6443", false, 6443),
        ("https://[fd00::1]", false, 443),
        ("https://api.example.com/cluster", false, 443),
    ] {
        let place = ClusterPlace::of_server(server, None);
        assert_eq!((place.is_loopback(), place.port()), (is_loopback, port), "{server}");
    }
}
