use super::*;

#[test]
fn known_words_have_a_command() {
    let layout = Layout::new("/srv/my data", "/run/corten");
    let reset = "tar -C '/srv/my data' -czf corten-damaged.tar.gz store pki && corten reset --data-dir='/srv/my data'";
    for (line, said, next) in [
        ("error: the store is damaged: /srv/1.log: what follows byte 9 is unreadable", "/srv/1.log: what", reset),
        (
            "error: listening on 127.0.0.1:6443: Address already in use (os error 98)",
            "listens at 127.0.0.1:6443",
            "ss -ltunp 'sport = :6443'",
        ),
        (
            "error: listening on [::1]:10250 for the kubelet's API: Address already in use (os error 98)",
            "listens at [::1]:10250",
            "ss -ltunp 'sport = :10250'",
        ),
        (
            "the store cannot write: /srv/1.log was removed while the store was open: put it back",
            "put it back",
            "ls -li '/srv/my data/store'",
        ),
        ("error: cannot write /x: No space left on device (os error 28)", "disk is full", "df -h '/srv/my data'"),
        (
            "error: the store in /srv/my data/store is in use by another process",
            "has the store open",
            "lslocks --notruncate -o COMMAND,PID,PATH | grep '/srv/my data/store/lock'",
        ),
        (
            "error: the cluster's certificate authority in /x has expired; `corten certs rotate-ca` makes a new one",
            "authority has ended",
            "corten certs rotate-ca --data-dir='/srv/my data' && corten up --data-dir='/srv/my data'",
        ),
        (
            "error: preparing the certificates: /srv/my data/pki/sa.key is not what the cluster's PKI expects there: no key; put it back",
            "no key; put it back",
            "mv '/srv/my data/pki/sa.key' '/srv/my data/pki/sa.damaged' && corten up --data-dir='/srv/my data'",
        ),
        (
            "error: /srv/my data/pki/ca.crt is not what the cluster's PKI expects there: no certificate",
            "keys is damaged",
            "mv '/srv/my data/pki' '/srv/my data/pki.damaged' && corten up --data-dir='/srv/my data'",
        ),
        (
            "error: /srv/my data belongs to user 7, who could read and change the cluster through it; chown 0 /srv/my data",
            "belongs to another user",
            "chown 0 '/srv/my data'",
        ),
    ] {
        let remedy = of(["INFO up", line, "and more"].into_iter(), &layout).expect(line);
        assert!(remedy.message.contains(said), "{}", remedy.message);
        assert_eq!(remedy.next, next);
        let shell = std::process::Command::new("sh").args(["-n", "-c", next]).status().expect("a shell");
        assert!(shell.success(), "{next}");
    }
    assert_eq!(of(["error: something else"].into_iter(), &layout), None);
}
