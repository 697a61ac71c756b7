//! Reading Kubernetes protobuf: no bytes make it panic or take memory out of proportion.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let body = [b"k8s\0".as_slice(), data].concat();
    for body in [data, &body] {
        if let Ok(value) = corten_schema::proto::decode(body) {
            let text = value.to_string();
            assert!(text.len() <= 4096 + 512 * body.len(), "{} bytes became {}", body.len(), text.len());
        }
    }
});
