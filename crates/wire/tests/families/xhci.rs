//! xHCI: TRBs of the three families, contexts, the tables and registers that are read whole.

use wire::xhci::*;

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    round_trip!(bytes;
        SlotContext; EndpointContext; InputControlContext; StreamContext; EventRingSegment; CapabilityRegisters;
        SupportedProtocol;
    );
    if let Some(word) = bytes.first_chunk().copied().map(u32::from_le_bytes) {
        let power = PortPower::decode(word);
        assert_eq!(PortPower::decode(power.encode()), power);
    }
    macro_rules! trb {
        ($($kind:ty)*) => { $(
            if let Ok((trb, cycle)) = <$kind>::decode(bytes) {
                let _ = trb.to_string();
                assert_eq!(trb_type_of(&trb.encode(cycle)), trb.trb_type());
                assert_eq!(<$kind>::decode(&trb.encode(cycle)), Ok((trb.clone(), cycle)));
            }
        )* };
    }
    trb!(CommandTrb EventTrb);
    if let Ok((trb, cycle)) = TransferTrb::decode(bytes) {
        let _ = trb.to_string();
        // A setup stage is immediate, whatever its flag says; the second time round it says so.
        let once = trb.encode(cycle);
        let again = TransferTrb::decode(&once).map(|(trb, cycle)| trb.encode(cycle));
        assert_eq!(again, Ok(once));
    }
}
