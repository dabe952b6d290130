//! vfio-user: a header, and what its command has as a body.

use wire::Writer;
use wire::vfio_user::{
    DeviceInfo, DmaAccess, DmaMap, DmaUnmap, Header, IrqInfo, IrqSet, RegionAccess, RegionInfo, Version,
    WriteMulti,
};

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    let Ok(header) = Header::decode(bytes) else { return };
    assert_eq!(header.encode(), bytes[..Header::LEN]);
    let _ = (header.to_string(), header.reply(header.body_len()).encode(), header.failure(22).encode());
    let body = &bytes[Header::LEN..];
    round_trip!(body; DmaMap; DmaUnmap; DeviceInfo; RegionInfo; IrqInfo; IrqSet; RegionAccess; DmaAccess);
    version(body);
    for write in WriteMulti::decode(body).into_iter().flatten().flatten() {
        assert_eq!(write.bytes().len(), write.access.count as usize);
    }
}

fn version(body: &[u8]) {
    let Ok(version) = Version::decode(body) else { return };
    let mut out = vec![0; body.len() + 1];
    let mut writer = Writer::new(&mut out);
    version.encode(&mut writer).expect("there is room for it");
    let written = writer.written();
    assert_eq!(Version::decode(&out[..written]), Ok(version));
    let _ = version.to_string();
}
