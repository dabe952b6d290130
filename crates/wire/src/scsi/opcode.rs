//! Operation codes and service actions: which command a CDB is (SPC-4 clause 4.2.5).
//!
//! The operation code is byte 0. Its upper three bits, the group code, say how long the CDB is. Some codes
//! carry several commands; bits 4:0 of byte 1, the service action, select one. Left out: codes of tapes,
//! printers, changers and enclosures. They survive as `Unknown`.

code! {
    /// Byte 0 of a CDB: the commands a disk or a disc drive may be sent (SPC-5, SBC-4, MMC-6, SAT-4).
    pub enum OperationCode: u8 {
        /// Reports whether the unit is ready for medium access (SPC-5).
        TestUnitReady = 0x00 => "TEST UNIT READY",
        /// Reads sense data that no status has delivered (SPC-5).
        RequestSense = 0x03 => "REQUEST SENSE",
        /// Formats the medium (SBC-4).
        FormatUnit = 0x04 => "FORMAT UNIT",
        /// Moves defective blocks elsewhere (SBC-4).
        ReassignBlocks = 0x07 => "REASSIGN BLOCKS",
        /// 21-bit LBA, 256 blocks at most (SBC-4, obsolete since).
        Read6 = 0x08 => "READ(6)",
        /// 21-bit LBA, 256 blocks at most (SBC-4, obsolete since).
        Write6 = 0x0a => "WRITE(6)",
        /// Reads the identity of the unit (SPC-5).
        Inquiry = 0x12 => "INQUIRY",
        /// Sets mode pages, short lengths (SPC-5).
        ModeSelect6 = 0x15 => "MODE SELECT(6)",
        /// SPC-2 reservation.
        Reserve6 = 0x16 => "RESERVE(6)",
        /// Releases an SPC-2 reservation.
        Release6 = 0x17 => "RELEASE(6)",
        /// Reads mode pages, short lengths (SPC-5).
        ModeSense6 = 0x1a => "MODE SENSE(6)",
        /// Power condition, load and eject (SBC-4).
        StartStopUnit = 0x1b => "START STOP UNIT",
        /// Reads a diagnostic page (SPC-5).
        ReceiveDiagnosticResults = 0x1c => "RECEIVE DIAGNOSTIC RESULTS",
        /// Starts a self-test or sends a diagnostic page (SPC-5).
        SendDiagnostic = 0x1d => "SEND DIAGNOSTIC",
        /// Locks the medium in (SBC-4).
        PreventAllowMediumRemoval = 0x1e => "PREVENT ALLOW MEDIUM REMOVAL",
        /// Sizes of the medium, formatted or not (MMC-6).
        ReadFormatCapacities = 0x23 => "READ FORMAT CAPACITIES",
        /// 32-bit last LBA and block length (SBC-4).
        ReadCapacity10 = 0x25 => "READ CAPACITY(10)",
        /// 32-bit LBA, 16-bit length (SBC-4).
        Read10 = 0x28 => "READ(10)",
        /// 32-bit LBA, 16-bit length (SBC-4).
        Write10 = 0x2a => "WRITE(10)",
        /// Write, then check the medium (SBC-4).
        WriteAndVerify10 = 0x2e => "WRITE AND VERIFY(10)",
        /// Check the medium, perhaps against data (SBC-4).
        Verify10 = 0x2f => "VERIFY(10)",
        /// Medium to cache (SBC-4).
        PreFetch10 = 0x34 => "PRE-FETCH(10)",
        /// Cache to medium (SBC-4).
        SynchronizeCache10 = 0x35 => "SYNCHRONIZE CACHE(10)",
        /// Defect lists (SBC-4).
        ReadDefectData10 = 0x37 => "READ DEFECT DATA(10)",
        /// Buffer tests, microcode download (SPC-5).
        WriteBuffer = 0x3b => "WRITE BUFFER",
        /// Buffer tests, error history (SPC-5).
        ReadBuffer10 = 0x3c => "READ BUFFER(10)",
        /// One block, many times (SBC-4).
        WriteSame10 = 0x41 => "WRITE SAME(10)",
        /// Deallocates blocks (SBC-4).
        Unmap = 0x42 => "UNMAP",
        /// Tracks and sessions (MMC-6).
        ReadToc = 0x43 => "READ TOC/PMA/ATIP",
        /// Features and profiles (MMC-6).
        GetConfiguration = 0x46 => "GET CONFIGURATION",
        /// Makes everything unreadable for good (SBC-4).
        Sanitize = 0x48 => "SANITIZE",
        /// Events of the drive, such as another medium (MMC-6).
        GetEventStatusNotification = 0x4a => "GET EVENT STATUS NOTIFICATION",
        /// Resets or sets log parameters (SPC-5).
        LogSelect = 0x4c => "LOG SELECT",
        /// Reads a log page (SPC-5).
        LogSense = 0x4d => "LOG SENSE",
        /// Sessions and tracks of the disc (MMC-6).
        ReadDiscInformation = 0x51 => "READ DISC INFORMATION",
        /// One track of the disc (MMC-6).
        ReadTrackInformation = 0x52 => "READ TRACK INFORMATION",
        /// Sets mode pages (SPC-5).
        ModeSelect10 = 0x55 => "MODE SELECT(10)",
        /// SPC-2 reservation.
        Reserve10 = 0x56 => "RESERVE(10)",
        /// Releases an SPC-2 reservation.
        Release10 = 0x57 => "RELEASE(10)",
        /// Reads mode pages (SPC-5).
        ModeSense10 = 0x5a => "MODE SENSE(10)",
        /// Reads keys and reservations (SPC-5).
        PersistentReserveIn = 0x5e => "PERSISTENT RESERVE IN",
        /// Registers, reserves, releases, preempts (SPC-5).
        PersistentReserveOut = 0x5f => "PERSISTENT RESERVE OUT",
        /// A CDB of variable length; the command is a 16-bit service action (SPC-4 clause 4.2.3).
        VariableLength = 0x7f => "VARIABLE LENGTH CDB",
        /// EXTENDED COPY and its kin (SPC-5).
        ThirdPartyCopyOut = 0x83 => "THIRD-PARTY COPY OUT",
        /// RECEIVE COPY RESULTS and its kin (SPC-5).
        ThirdPartyCopyIn = 0x84 => "THIRD-PARTY COPY IN",
        /// An ATA command with 48-bit registers (SAT-4).
        AtaPassThrough16 = 0x85 => "ATA PASS-THROUGH(16)",
        /// 64-bit LBA, 32-bit length (SBC-4).
        Read16 = 0x88 => "READ(16)",
        /// Test and set of blocks (SBC-4).
        CompareAndWrite = 0x89 => "COMPARE AND WRITE",
        /// 64-bit LBA, 32-bit length (SBC-4).
        Write16 = 0x8a => "WRITE(16)",
        /// Ors data into blocks (SBC-4).
        OrWrite16 = 0x8b => "ORWRITE(16)",
        /// Write, then check the medium (SBC-4).
        WriteAndVerify16 = 0x8e => "WRITE AND VERIFY(16)",
        /// Check the medium, perhaps against data (SBC-4).
        Verify16 = 0x8f => "VERIFY(16)",
        /// Medium to cache (SBC-4).
        PreFetch16 = 0x90 => "PRE-FETCH(16)",
        /// Cache to medium (SBC-4).
        SynchronizeCache16 = 0x91 => "SYNCHRONIZE CACHE(16)",
        /// One block, many times (SBC-4).
        WriteSame16 = 0x93 => "WRITE SAME(16)",
        /// All of the blocks or none (SBC-4).
        WriteAtomic16 = 0x9c => "WRITE ATOMIC(16)",
        /// Service actions that read: see [`ServiceActionIn16`].
        ServiceActionIn16 = 0x9e => "SERVICE ACTION IN(16)",
        /// Service actions that write (SPC-5).
        ServiceActionOut16 = 0x9f => "SERVICE ACTION OUT(16)",
        /// Lists the logical units (SPC-5).
        ReportLuns = 0xa0 => "REPORT LUNS",
        /// An ATA command with 28-bit registers (SAT-4).
        AtaPassThrough12 = 0xa1 => "ATA PASS-THROUGH(12)",
        /// Passwords and encryption, device to host (SPC-5).
        SecurityProtocolIn = 0xa2 => "SECURITY PROTOCOL IN",
        /// Service actions about the unit itself: see [`MaintenanceIn`].
        MaintenanceIn = 0xa3 => "MAINTENANCE IN",
        /// Service actions that set what MAINTENANCE IN reads (SPC-5).
        MaintenanceOut = 0xa4 => "MAINTENANCE OUT",
        /// 32-bit LBA, 32-bit length (SBC-4).
        Read12 = 0xa8 => "READ(12)",
        /// Service actions that write (SPC-5).
        ServiceActionOut12 = 0xa9 => "SERVICE ACTION OUT(12)",
        /// 32-bit LBA, 32-bit length (SBC-4).
        Write12 = 0xaa => "WRITE(12)",
        /// Service actions that read (SPC-5).
        ServiceActionIn12 = 0xab => "SERVICE ACTION IN(12)",
        /// Speed of the parts of the disc (MMC-6).
        GetPerformance = 0xac => "GET PERFORMANCE",
        /// Data of the disc outside of its blocks (MMC-6).
        ReadDiscStructure = 0xad => "READ DISC STRUCTURE",
        /// Write, then check the medium (SBC-4).
        WriteAndVerify12 = 0xae => "WRITE AND VERIFY(12)",
        /// Check the medium, perhaps against data (SBC-4).
        Verify12 = 0xaf => "VERIFY(12)",
        /// Passwords and encryption, host to device (SPC-5).
        SecurityProtocolOut = 0xb5 => "SECURITY PROTOCOL OUT",
        /// Defect lists from an index on (SBC-4).
        ReadDefectData12 = 0xb7 => "READ DEFECT DATA(12)",
        /// Speed to read and write at (MMC-6).
        SetCdSpeed = 0xbb => "SET CD SPEED",
        /// Tray and changer (MMC-6).
        MechanismStatus = 0xbd => "MECHANISM STATUS",
        /// Parts of sectors of a CD (MMC-6).
        ReadCd = 0xbe => "READ CD",
    }
}

impl OperationCode {
    /// Bytes of a CDB with this code: 6, 10, 12 or 16, by its group (SPC-4 clause 4.2.5.1).
    ///
    /// `None` where the code does not say: group 3, whose CDBs carry a length, and the vendor's groups 6
    /// and 7. For a whole CDB ask [`cdb_len`].
    pub fn cdb_len(self) -> Option<usize> {
        match u8::from(self) >> 5 {
            0 => Some(6),
            1 | 2 => Some(10),
            4 => Some(16),
            5 => Some(12),
            _ => None,
        }
    }

    /// Whether bits 4:0 of byte 1 are a service action and the code alone does not name the command.
    pub fn has_service_action(self) -> bool {
        matches!(
            self,
            Self::Sanitize
                | Self::PersistentReserveIn
                | Self::PersistentReserveOut
                | Self::VariableLength
                | Self::ThirdPartyCopyOut
                | Self::ThirdPartyCopyIn
                | Self::ServiceActionIn16
                | Self::ServiceActionOut16
                | Self::MaintenanceIn
                | Self::MaintenanceOut
                | Self::ServiceActionOut12
                | Self::ServiceActionIn12
        )
    }
}

/// Bytes of the CDB that `cdb` begins with, by its group code or, for 7Fh, by ADDITIONAL CDB LENGTH (byte 7).
///
/// `None` if the bytes do not say: none there, byte 7 missing, or a group without a fixed length.
/// The answer may exceed `cdb.len()`.
pub fn cdb_len(cdb: &[u8]) -> Option<usize> {
    let opcode = OperationCode::from(*cdb.first()?);
    match opcode {
        OperationCode::VariableLength => Some(8 + usize::from(*cdb.get(7)?)),
        _ => opcode.cdb_len(),
    }
}

/// The service action of a CDB: bits 4:0 of byte 1, or bytes 8 and 9 of a variable-length one.
///
/// `None` if the operation code has none, or the bytes are missing.
pub fn service_action(cdb: &[u8]) -> Option<u16> {
    match OperationCode::from(*cdb.first()?) {
        OperationCode::VariableLength => {
            cdb.get(8..).and_then(|rest| rest.first_chunk()).copied().map(u16::from_be_bytes)
        }
        opcode if opcode.has_service_action() => cdb.get(1).map(|byte| u16::from(byte & 0x1f)),
        _ => None,
    }
}

code! {
    /// Service actions of SERVICE ACTION IN(16) (SBC-4).
    pub enum ServiceActionIn16: u8 {
        /// 64-bit last LBA, block lengths, provisioning.
        ReadCapacity16 = 0x10 => "READ CAPACITY(16)",
        /// Reports which blocks are mapped.
        GetLbaStatus = 0x12 => "GET LBA STATUS",
        /// Reports open streams.
        GetStreamStatus = 0x16 => "GET STREAM STATUS",
    }
}

code! {
    /// Service actions of MAINTENANCE IN (SPC-5).
    pub enum MaintenanceIn: u8 {
        /// A text that the user gave the unit.
        ReportIdentifyingInformation = 0x05 => "REPORT IDENTIFYING INFORMATION",
        /// Asymmetric access states.
        ReportTargetPortGroups = 0x0a => "REPORT TARGET PORT GROUPS",
        /// Reports supported commands and their CDB usage maps.
        ReportSupportedOperationCodes = 0x0c => "REPORT SUPPORTED OPERATION CODES",
        /// Reports supported task management functions.
        ReportSupportedTaskManagementFunctions = 0x0d => "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
        /// The unit's clock.
        ReportTimestamp = 0x0f => "REPORT TIMESTAMP",
    }
}

code! {
    /// Service actions of PERSISTENT RESERVE IN (SPC-5).
    pub enum PersistentReserveInAction: u8 {
        /// All registered keys.
        ReadKeys = 0x00 => "READ KEYS",
        /// The reservation, if there is one.
        ReadReservation = 0x01 => "READ RESERVATION",
        /// Which types and options are supported.
        ReportCapabilities = 0x02 => "REPORT CAPABILITIES",
        /// Keys, holders and ports.
        ReadFullStatus = 0x03 => "READ FULL STATUS",
    }
}

code! {
    /// Service actions of PERSISTENT RESERVE OUT (SPC-5).
    pub enum PersistentReserveOutAction: u8 {
        /// Registers, changes or removes the sender's key.
        Register = 0x00 => "REGISTER",
        /// Takes the reservation.
        Reserve = 0x01 => "RESERVE",
        /// Gives it back.
        Release = 0x02 => "RELEASE",
        /// Removes every key and the reservation.
        Clear = 0x03 => "CLEAR",
        /// Takes over from another key.
        Preempt = 0x04 => "PREEMPT",
        /// The same, and its commands are aborted.
        PreemptAndAbort = 0x05 => "PREEMPT AND ABORT",
        /// Registers whatever key the sender had before.
        RegisterAndIgnoreExistingKey = 0x06 => "REGISTER AND IGNORE EXISTING KEY",
        /// Registers another port and moves the reservation to it.
        RegisterAndMove = 0x07 => "REGISTER AND MOVE",
        /// Replaces reservations that the device has lost.
        ReplaceLostReservation = 0x08 => "REPLACE LOST RESERVATION",
    }
}

code! {
    /// Service actions of SANITIZE (SBC-4).
    pub enum SanitizeAction: u8 {
        /// Writes a pattern over everything, once or more.
        Overwrite = 0x01 => "OVERWRITE",
        /// Erases by the medium's own means.
        BlockErase = 0x02 => "BLOCK ERASE",
        /// Forgets the key.
        CryptographicErase = 0x03 => "CRYPTOGRAPHIC ERASE",
        /// Ends the state that a failed sanitize left.
        ExitFailureMode = 0x1f => "EXIT FAILURE MODE",
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn cdb_length_follows_from_the_group_code() {
        for (opcode, len) in [
            (0x00, Some(6)),
            (0x1f, Some(6)),
            (0x28, Some(10)),
            (0x5f, Some(10)),
            (0x7e, None),
            (0x88, Some(16)),
            (0x9f, Some(16)),
            (0xa8, Some(12)),
            (0xbf, Some(12)),
            (0xc0, None),
            (0xff, None),
        ] {
            assert_eq!(OperationCode::from(opcode).cdb_len(), len, "{opcode:#04x}");
            assert_eq!(cdb_len(&[opcode]), len, "{opcode:#04x}");
        }
        assert_eq!(cdb_len(&[]), None);
    }

    #[test]
    fn cdb_length_of_a_variable_length_cdb_is_in_byte_7() {
        let read_32 = [0x7f, 0, 0, 0, 0, 0, 0, 0x18, 0x00, 0x09];
        assert_eq!(cdb_len(&read_32), Some(32));
        assert_eq!(cdb_len(&read_32[..7]), None);
    }

    #[test]
    fn names_are_the_standards() {
        assert_eq!(OperationCode::from(0x89).to_string(), "COMPARE AND WRITE");
        assert_eq!(OperationCode::from(0xc1).to_string(), "unknown (0xc1)");
        assert_eq!(ServiceActionIn16::from(0x12), ServiceActionIn16::GetLbaStatus);
        assert_eq!(MaintenanceIn::from(0x0d).to_string(), "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS");
        assert_eq!(PersistentReserveInAction::from(3), PersistentReserveInAction::ReadFullStatus);
        assert_eq!(PersistentReserveOutAction::from(7), PersistentReserveOutAction::RegisterAndMove);
        assert_eq!(SanitizeAction::from(0x1f), SanitizeAction::ExitFailureMode);
    }

    #[test]
    fn a_service_action_is_expected_where_the_code_is_shared() {
        assert!(OperationCode::from(0x9e).has_service_action());
        assert!(OperationCode::from(0xa3).has_service_action());
        assert!(!OperationCode::from(0x88).has_service_action());
    }
}
