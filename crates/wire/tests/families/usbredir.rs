//! usbredir: every packet under every combination of capabilities, and the structured payloads.
//!
//! The first byte is the capabilities that both sides have.

use wire::{
    Writer,
    usbredir::{Capabilities, Filter, Header, Hello, Packet, PacketType, Side},
};

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let capabilities = Capabilities::from(u32::from(first));
    if let Ok(header) = Header::decode(bytes, capabilities) {
        let mut out = [0; Packet::HEADERS_LEN_MAX];
        let mut writer = Writer::new(&mut out);
        header.encode(capabilities, &mut writer).expect("there is room for it");
        assert_eq!(Header::decode(&out, capabilities), Ok(header));
        let _ = header.payload_len(capabilities);
        packet(header.kind, &bytes[Header::len(capabilities)..], capabilities);
    }
    let _ = Capabilities::decode(bytes).sound().to_string();
    if let Ok(hello) = Hello::decode(bytes) {
        assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    }
    if let Ok(filter) = Filter::decode(bytes) {
        for rule in filter.rules() {
            let _ = rule.map(|rule| (rule.matches(8, 0x46f4, 3, 0x100), rule.to_string()));
        }
    }
}

fn packet(kind: PacketType, bytes: &[u8], capabilities: Capabilities) {
    let Ok(packet) = Packet::decode(kind, bytes, capabilities) else { return };
    let mut out = [0; Packet::HEADERS_LEN_MAX];
    let mut writer = Writer::new(&mut out);
    packet.encode(capabilities, &mut writer).expect("there is room for it");
    let written = writer.written();
    assert_eq!(Packet::decode(kind, &out[..written], capabilities), Ok(packet));
    let _ = (packet.to_string(), packet.payload_len(Side::UsbHost), packet.payload_len(Side::UsbGuest));
}
