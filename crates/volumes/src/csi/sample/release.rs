//! What a release of CSI has: a sample of that time is asked nothing that came later, and says so where it is.

use prost::{
    bytes::Buf,
    encoding::{DecodeContext, decode_key, skip_field},
};

use crate::{Code, Fault};

/// What CSI 1.5 has: each method with the number of its request's last field.
const IN_1_5: &[(&str, u32)] = &[
    ("GetPluginInfo", 0),
    ("GetPluginCapabilities", 0),
    ("Probe", 0),
    ("CreateVolume", 7),
    ("DeleteVolume", 2),
    ("ControllerPublishVolume", 6),
    ("ControllerUnpublishVolume", 3),
    ("ValidateVolumeCapabilities", 5),
    ("ListVolumes", 2),
    ("GetCapacity", 3),
    ("ControllerGetCapabilities", 0),
    ("CreateSnapshot", 4),
    ("DeleteSnapshot", 2),
    ("ListSnapshots", 5),
    ("ControllerExpandVolume", 4),
    ("ControllerGetVolume", 1),
    ("NodeStageVolume", 6),
    ("NodeUnstageVolume", 2),
    ("NodePublishVolume", 8),
    ("NodeUnpublishVolume", 2),
    ("NodeGetVolumeStats", 3),
    ("NodeExpandVolume", 5),
    ("NodeGetCapabilities", 0),
    ("NodeGetInfo", 0),
];

/// Is a method with this request in CSI 1.5?
pub(super) fn check_1_5(method: &str, mut request: &[u8]) -> Result<(), Fault> {
    let Some((_, last)) = IN_1_5.iter().find(|it| it.0 == method) else {
        return Err(Fault::new(Code::Unimplemented, format!("CSI 1.5 has no method {method}")));
    };
    let unreadable = |it: prost::DecodeError| Fault::new(Code::InvalidArgument, it.to_string());
    while request.has_remaining() {
        let (field, wire_type) = decode_key(&mut request).map_err(unreadable)?;
        if field > *last {
            let why = format!("{method} has no field {field} in CSI 1.5");
            return Err(Fault::new(Code::InvalidArgument, why));
        }
        skip_field(wire_type, field, &mut request, DecodeContext::default()).map_err(unreadable)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::csi::controller_messages as cm;

    #[test]
    fn what_came_later_is_refused() {
        let mut request = cm::CreateVolume { name: "v".into(), ..cm::CreateVolume::default() };
        assert_eq!(check_1_5("CreateVolume", &request.encode_to_vec()), Ok(()));
        request.mutable_parameters.insert("tier".into(), "gold".into());
        let refused = check_1_5("CreateVolume", &request.encode_to_vec()).expect_err("of CSI 1.9");
        assert_eq!(refused.message, "CreateVolume has no field 8 in CSI 1.5");
        assert_eq!(check_1_5("ControllerModifyVolume", &[]).map_err(|it| it.code), Err(Code::Unimplemented));
    }
}
