//! Reading Kubernetes protobuf: no bytes make it panic or take memory out of proportion, and what was read is written so that it
//! reads the same.

#![no_main]

use corten_schema::proto;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let body = [b"k8s\0".as_slice(), data].concat();
    for body in [data, &body] {
        if let Ok(value) = proto::decode(body) {
            let text = value.to_string();
            assert!(text.len() <= 4096 + 512 * body.len(), "{} bytes became {}", body.len(), text.len());
            let Some(written) = proto::whole(&value) else { continue };
            let read = proto::decode(&written).expect("what was written can be read");
            let again = proto::whole(&read).expect("it is of the same type");
            assert_eq!(proto::decode(&again).as_ref(), Ok(&read), "{value}");
        }
    }
});
