//! Descriptions as vendors write them, and as they should not.

use std::{fs, path::PathBuf};

use super::inject;

struct Folders {
    _root: tempfile::TempDir,
    folders: [PathBuf; 2],
}

impl Folders {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a folder");
        let folders = ["etc", "run"].map(|it| root.path().join(it));
        folders.iter().for_each(|it| fs::create_dir(it).expect("made"));
        Self { _root: root, folders }
    }

    fn write(&self, folder: usize, name: &str, text: &str) {
        fs::write(self.folders[folder].join(name), text).expect("written");
    }

    fn env(&self, names: &[&str]) -> Result<String, String> {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let injected = inject(&names, &self.folders)?;
        Ok(injected.granted.env.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" "))
    }
}

#[test]
fn a_container_gets_what_is_described_for_its_devices() {
    let folders = Folders::new();
    folders.write(
        0,
        "vendor.yaml",
        "cdiVersion: 0.6.0\nkind: vendor.com/gpu\ncontainerEdits:\n  env: [ALL=1]\ndevices:\n- name: a\n  containerEdits:\n    \
         env: [DEVICE=a]\n    deviceNodes:\n    - path: /dev/gpu\n      hostPath: /dev/null\n    mounts:\n    - hostPath: /usr\n      \
         containerPath: /gpu\n      options: [ro, rbind]\n    additionalGids: [7, 0]\n- name: b\n  containerEdits:\n    env: [DEVICE=b]\n",
    );
    let names = ["vendor.com/gpu=a".to_owned(), "vendor.com/gpu=b".to_owned()];
    let injected = inject(&names, &folders.folders).expect("described");
    assert_eq!(folders.env(&["vendor.com/gpu=a", "vendor.com/gpu=b"]), Ok("ALL=1 DEVICE=b".to_owned()));
    assert_eq!(injected.groups, [7]);
    let device = &injected.granted.devices[0];
    assert_eq!((&*device.container_path, &*device.host_path, &*device.permissions), ("/dev/gpu", "/dev/null", "rwm"));
    let mount = &injected.granted.mounts[0];
    assert_eq!((&*mount.container_path, &*mount.host_path, mount.read_only), ("/gpu", "/usr", true));
    // What comes later, as drivers write it while the machine runs, stands before what was installed.
    folders.write(
        1,
        "now.json",
        r#"{"kind":"vendor.com/gpu","devices":[{"name":"a","containerEdits":{"env":["DEVICE=now"]}}]}"#,
    );
    assert_eq!(folders.env(&["vendor.com/gpu=a"]), Ok("DEVICE=now".to_owned()));
}

#[test]
fn what_cannot_be_given_is_refused() {
    let folders = Folders::new();
    let nowhere = "CDI device injection failed: unresolvable CDI devices v.com/c=a";
    for name in ["v.com/c=a", "v.com/c"] {
        assert!(folders.env(&[name]).expect_err("nowhere").starts_with("CDI device injection failed: unresolvable"));
    }
    folders.write(0, "broken.json", "{");
    assert!(folders.env(&["v.com/c=a"]).expect_err("broken").starts_with(&format!("{nowhere} (/")));
    for (edits, why) in [
        (r#"{"hooks":[{"hookName":"createContainer"}]}"#, "has hooks: that takes containerd 1.7.2 or later"),
        (
            r#"{"mounts":[{"hostPath":"/usr","containerPath":"/a","options":["nosuid"]}]}"#,
            "has the mount option nosuid: that",
        ),
        (r#"{"mounts":[{"hostPath":"x","containerPath":"/a","type":"tmpfs"}]}"#, "mounts a tmpfs: that"),
        (r#"{"mounts":[{"hostPath":"../x","containerPath":"/a"}]}"#, "names \"../x\", which is no absolute path"),
        (r#"{"deviceNodes":[{"path":"/dev/no-such-device"}]}"#, "is not there: /dev/no-such-device"),
        (r#"{"deviceNodes":[{"path":"/dev/null","gid":4711}]}"#, "has a gid that /dev/null has not"),
        (r#"{"env":["no value"]}"#, "has \"no value\" as a variable"),
    ] {
        let text = format!(r#"{{"kind":"v.com/c","devices":[{{"name":"a","containerEdits":{edits}}}]}}"#);
        folders.write(0, "v.json", &text);
        let told = folders.env(&["v.com/c=a"]).expect_err("refused");
        assert!(told.starts_with(&format!("CDI device injection failed: device v.com/c=a {why}")), "{told}");
    }
    let text = r#"{"kind":"v.com/c","devices":[{"name":"a"}]}"#;
    folders.write(0, "v.json", text);
    folders.write(0, "w.json", text);
    assert_eq!(
        folders.env(&["v.com/c=a"]).expect_err("twice"),
        "CDI device injection failed: device v.com/c=a is described 2 times"
    );
}
