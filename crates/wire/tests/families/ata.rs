//! ATA: IDENTIFY, SMART, logs, and the frames of Serial ATA.

use wire::ata::*;

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    round_trip!(bytes;
        HostToDeviceFis; DeviceToHostFis; SetDeviceBitsFis; PioSetupFis; DmaSetupFis; DataFis; DmaActivateFis;
        TrimRange; IdentifyDevice; LogDirectory;
        SmartReadings; SmartThresholds; SummaryErrorLog; SelfTestLog; SelectiveSelfTestLog; ExtendedSelfTestLog; ExtendedErrorLog;
    );
    // Whole sectors, for types with a checksum or of 512 bytes: the fuzzer seldom makes one by itself.
    let mut sector = [0; 512];
    let len = bytes.len().min(sector.len() - 1);
    sector[..len].copy_from_slice(&bytes[..len]);
    sector[511] = sector[..511].iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    round_trip!(&sector;
        IdentifyDevice; LogDirectory;
        SmartReadings; SmartThresholds; SummaryErrorLog; SelfTestLog; SelectiveSelfTestLog; ExtendedSelfTestLog; ExtendedErrorLog;
    );
}
