//! ATA command codes and the codes inside them (ACS-4 clause 7 and table B.3).

code! {
    /// The command register.
    pub enum AtaCommand: u8 {
        /// Aborts outstanding queued commands, always fails.
        Nop = 0x00 => "NOP",
        /// TRIM.
        DataSetManagement = 0x06 => "DATA SET MANAGEMENT",
        /// 28-bit read by PIO.
        ReadSectors = 0x20 => "READ SECTOR(S)",
        /// 48-bit read by PIO.
        ReadSectorsExt = 0x24 => "READ SECTOR(S) EXT",
        /// 48-bit read by DMA.
        ReadDmaExt = 0x25 => "READ DMA EXT",
        /// Obsolete; the last native LBA, 48 bits.
        ReadNativeMaxAddressExt = 0x27 => "READ NATIVE MAX ADDRESS EXT",
        /// General purpose log by PIO.
        ReadLogExt = 0x2f => "READ LOG EXT",
        /// 28-bit write by PIO.
        WriteSectors = 0x30 => "WRITE SECTOR(S)",
        /// 48-bit write by PIO.
        WriteSectorsExt = 0x34 => "WRITE SECTOR(S) EXT",
        /// 48-bit write by DMA.
        WriteDmaExt = 0x35 => "WRITE DMA EXT",
        /// 48-bit write by DMA, on the medium when it ends.
        WriteDmaFuaExt = 0x3d => "WRITE DMA FUA EXT",
        /// General purpose log by PIO.
        WriteLogExt = 0x3f => "WRITE LOG EXT",
        /// 28-bit verify.
        ReadVerifySectors = 0x40 => "READ VERIFY SECTOR(S)",
        /// 48-bit verify.
        ReadVerifySectorsExt = 0x42 => "READ VERIFY SECTOR(S) EXT",
        /// Makes a sector unreadable.
        WriteUncorrectableExt = 0x45 => "WRITE UNCORRECTABLE EXT",
        /// General purpose log by DMA.
        ReadLogDmaExt = 0x47 => "READ LOG DMA EXT",
        /// General purpose log by DMA.
        WriteLogDmaExt = 0x57 => "WRITE LOG DMA EXT",
        /// Queued read.
        ReadFpdmaQueued = 0x60 => "READ FPDMA QUEUED",
        /// Queued write.
        WriteFpdmaQueued = 0x61 => "WRITE FPDMA QUEUED",
        /// Queued, without data.
        NcqNonData = 0x63 => "NCQ NON-DATA",
        /// Queued, with data to the device that are not sectors.
        SendFpdmaQueued = 0x64 => "SEND FPDMA QUEUED",
        /// Queued, with data from the device that are not sectors.
        ReceiveFpdmaQueued = 0x65 => "RECEIVE FPDMA QUEUED",
        /// Reports the diagnostic code.
        ExecuteDeviceDiagnostic = 0x90 => "EXECUTE DEVICE DIAGNOSTIC",
        /// Firmware by PIO.
        DownloadMicrocode = 0x92 => "DOWNLOAD MICROCODE",
        /// Firmware by DMA.
        DownloadMicrocodeDma = 0x93 => "DOWNLOAD MICROCODE DMA",
        /// For packet devices.
        IdentifyPacketDevice = 0xa1 => "IDENTIFY PACKET DEVICE",
        /// SMART; the features register says what.
        Smart = 0xb0 => "SMART",
        /// Erases all sectors.
        SanitizeDevice = 0xb4 => "SANITIZE DEVICE",
        /// 28-bit read by DMA.
        ReadDma = 0xc8 => "READ DMA",
        /// 28-bit write by DMA.
        WriteDma = 0xca => "WRITE DMA",
        /// To standby at once.
        StandbyImmediate = 0xe0 => "STANDBY IMMEDIATE",
        /// To idle at once.
        IdleImmediate = 0xe1 => "IDLE IMMEDIATE",
        /// To standby, and a timer.
        Standby = 0xe2 => "STANDBY",
        /// To idle, and a timer.
        Idle = 0xe3 => "IDLE",
        /// 512 bytes from the buffer.
        ReadBuffer = 0xe4 => "READ BUFFER",
        /// In which power mode.
        CheckPowerMode = 0xe5 => "CHECK POWER MODE",
        /// To sleep until a reset.
        Sleep = 0xe6 => "SLEEP",
        /// Cache to medium, 28-bit error address.
        FlushCache = 0xe7 => "FLUSH CACHE",
        /// 512 bytes to the buffer.
        WriteBuffer = 0xe8 => "WRITE BUFFER",
        /// Cache to medium, 48-bit error address.
        FlushCacheExt = 0xea => "FLUSH CACHE EXT",
        /// Identity, capabilities and settings: 512 bytes of IDENTIFY DEVICE data.
        IdentifyDevice = 0xec => "IDENTIFY DEVICE",
        /// Settings; the features register says which.
        SetFeatures = 0xef => "SET FEATURES",
        /// Sets a password.
        SecuritySetPassword = 0xf1 => "SECURITY SET PASSWORD",
        /// Unlocks with a password.
        SecurityUnlock = 0xf2 => "SECURITY UNLOCK",
        /// Announces an erase.
        SecurityErasePrepare = 0xf3 => "SECURITY ERASE PREPARE",
        /// Erases all sectors.
        SecurityEraseUnit = 0xf4 => "SECURITY ERASE UNIT",
        /// No security commands until a reset.
        SecurityFreezeLock = 0xf5 => "SECURITY FREEZE LOCK",
        /// Removes a password.
        SecurityDisablePassword = 0xf6 => "SECURITY DISABLE PASSWORD",
        /// Obsolete; the last native LBA, 28 bits.
        ReadNativeMaxAddress = 0xf8 => "READ NATIVE MAX ADDRESS",
    }
}

code! {
    /// The features register of SMART (ACS-4 clause 7.43).
    pub enum SmartSubcommand: u8 {
        /// One block of readings, [`SmartReadings`](super::SmartReadings).
        ReadData = 0xd0 => "SMART READ DATA",
        /// Obsolete; one block of limits, [`SmartThresholds`](super::SmartThresholds).
        ReadThresholds = 0xd1 => "SMART READ THRESHOLDS",
        /// Count register 00h off, F1h on.
        AttributeAutosave = 0xd2 => "SMART ENABLE/DISABLE ATTRIBUTE AUTOSAVE",
        /// Saves at once.
        SaveAttributeValues = 0xd3 => "SMART SAVE ATTRIBUTE VALUES",
        /// Starts a self-test, [`SelfTest`] in LBA 7:0.
        ExecuteOfflineImmediate = 0xd4 => "SMART EXECUTE OFF-LINE IMMEDIATE",
        /// Blocks of the log in LBA 7:0.
        ReadLog = 0xd5 => "SMART READ LOG",
        /// Blocks of the log in LBA 7:0.
        WriteLog = 0xd6 => "SMART WRITE LOG",
        /// Switches SMART on.
        Enable = 0xd8 => "SMART ENABLE OPERATIONS",
        /// Switches SMART off.
        Disable = 0xd9 => "SMART DISABLE OPERATIONS",
        /// Healthy or not, by the LBA registers.
        ReturnStatus = 0xda => "SMART RETURN STATUS",
        /// Obsolete; count register 00h off, F8h on.
        AutomaticOffline = 0xdb => "SMART ENABLE/DISABLE AUTOMATIC OFF-LINE",
    }
}

code! {
    /// Routines that SMART EXECUTE OFF-LINE IMMEDIATE starts (ACS-4 table 140).
    pub enum SelfTest: u8 {
        /// Collects off-line readings.
        OfflineRoutine = 0x00 => "off-line routine",
        /// A few minutes, in the background.
        Short = 0x01 => "short",
        /// The whole medium, in the background.
        Extended = 0x02 => "extended",
        /// After transport, in the background.
        Conveyance = 0x03 => "conveyance",
        /// Chosen spans, in the background.
        Selective = 0x04 => "selective",
        /// Stops the one that runs.
        Abort = 0x7f => "abort",
        /// A few minutes, the command waits for it.
        ShortCaptive = 0x81 => "short captive",
        /// The whole medium, the command waits for it.
        ExtendedCaptive = 0x82 => "extended captive",
        /// After transport, the command waits for it.
        ConveyanceCaptive = 0x83 => "conveyance captive",
        /// Chosen spans, the command waits for it.
        SelectiveCaptive = 0x84 => "selective captive",
    }
}

code! {
    /// The features register of SET FEATURES (ACS-4 clause 7.42).
    pub enum SetFeaturesSubcommand: u8 {
        /// Volatile write cache on.
        EnableWriteCache = 0x02 => "enable write cache",
        /// Transfer mode in the count register, [`TransferMode`].
        SetTransferMode = 0x03 => "set transfer mode",
        /// Advanced power management on, level in the count register.
        EnablePowerManagement = 0x05 => "enable APM",
        /// SATA feature in the count register on.
        EnableSataFeature = 0x10 => "enable SATA feature",
        /// Read look-ahead off.
        DisableLookAhead = 0x55 => "disable read look-ahead",
        /// Settings survive a software reset.
        KeepSettings = 0x66 => "disable reverting to power-on defaults",
        /// Volatile write cache off.
        DisableWriteCache = 0x82 => "disable write cache",
        /// Advanced power management off.
        DisablePowerManagement = 0x85 => "disable APM",
        /// SATA feature in the count register off.
        DisableSataFeature = 0x90 => "disable SATA feature",
        /// Read look-ahead on.
        EnableLookAhead = 0xaa => "enable read look-ahead",
        /// Sense data with errors.
        SenseDataReporting = 0xc3 => "sense data reporting",
        /// A software reset reverts settings.
        RevertSettings = 0xcc => "enable reverting to power-on defaults",
    }
}

code! {
    /// Power modes that CHECK POWER MODE returns in the count register (ACS-4 table 41).
    pub enum PowerMode: u8 {
        /// Spun down.
        Standby = 0x00 => "standby",
        /// Idle.
        Idle = 0x80 => "idle",
        /// Idle A.
        IdleA = 0x81 => "idle A",
        /// Idle B.
        IdleB = 0x82 => "idle B",
        /// Idle C.
        IdleC = 0x83 => "idle C",
        /// Active, or idle where the device does not distinguish them.
        Active = 0xff => "active or idle",
    }
}

/// The count register of SET FEATURES, set transfer mode: kind in bits 7:3, number in 2:0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferMode {
    /// PIO by default.
    PioDefault,
    /// PIO by default, without IORDY.
    PioDefaultNoIordy,
    /// PIO mode 0..=7.
    Pio(u8),
    /// Multiword DMA mode 0..=7.
    MultiwordDma(u8),
    /// Ultra DMA mode 0..=7.
    UltraDma(u8),
    /// Any other value.
    Other(u8),
}

impl From<u8> for TransferMode {
    fn from(count: u8) -> Self {
        let number = count & 0x07;
        match count >> 3 {
            0 if number == 0 => Self::PioDefault,
            0 if number == 1 => Self::PioDefaultNoIordy,
            1 => Self::Pio(number),
            4 => Self::MultiwordDma(number),
            8 => Self::UltraDma(number),
            _ => Self::Other(count),
        }
    }
}

impl From<TransferMode> for u8 {
    fn from(mode: TransferMode) -> u8 {
        match mode {
            TransferMode::PioDefault => 0x00,
            TransferMode::PioDefaultNoIordy => 0x01,
            TransferMode::Pio(number) => 0x08 | number & 0x07,
            TransferMode::MultiwordDma(number) => 0x20 | number & 0x07,
            TransferMode::UltraDma(number) => 0x40 | number & 0x07,
            TransferMode::Other(count) => count,
        }
    }
}

/// How a command moves data (ACS-4 clause 4.3, SAT-4 table 153).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Not at all.
    NonData,
    /// From the device, by PIO.
    PioIn,
    /// To the device, by PIO.
    PioOut,
    /// From the device, by DMA.
    DmaIn,
    /// To the device, by DMA.
    DmaOut,
    /// From the device, by queued DMA.
    QueuedIn,
    /// To the device, by queued DMA.
    QueuedOut,
    /// Queued, not at all.
    QueuedNonData,
    /// EXECUTE DEVICE DIAGNOSTIC has its own.
    Diagnostic,
}

impl AtaCommand {
    /// How the command moves data, `None` for an unknown one. SMART depends on its features register.
    pub fn protocol(self, features: u8) -> Option<Protocol> {
        Some(match self {
            Self::Smart => return SmartSubcommand::from(features).protocol(),
            Self::ReadSectors
            | Self::ReadSectorsExt
            | Self::ReadLogExt
            | Self::ReadBuffer
            | Self::IdentifyPacketDevice
            | Self::IdentifyDevice => Protocol::PioIn,
            Self::WriteSectors
            | Self::WriteSectorsExt
            | Self::WriteLogExt
            | Self::DownloadMicrocode
            | Self::WriteBuffer
            | Self::SecuritySetPassword
            | Self::SecurityUnlock
            | Self::SecurityEraseUnit
            | Self::SecurityDisablePassword => Protocol::PioOut,
            Self::ReadDma | Self::ReadDmaExt | Self::ReadLogDmaExt => Protocol::DmaIn,
            Self::DataSetManagement
            | Self::WriteDma
            | Self::WriteDmaExt
            | Self::WriteDmaFuaExt
            | Self::WriteLogDmaExt
            | Self::DownloadMicrocodeDma => Protocol::DmaOut,
            Self::ReadFpdmaQueued | Self::ReceiveFpdmaQueued => Protocol::QueuedIn,
            Self::WriteFpdmaQueued | Self::SendFpdmaQueued => Protocol::QueuedOut,
            Self::NcqNonData => Protocol::QueuedNonData,
            Self::ExecuteDeviceDiagnostic => Protocol::Diagnostic,
            Self::Nop
            | Self::ReadNativeMaxAddressExt
            | Self::ReadVerifySectors
            | Self::ReadVerifySectorsExt
            | Self::WriteUncorrectableExt
            | Self::SanitizeDevice
            | Self::StandbyImmediate
            | Self::IdleImmediate
            | Self::Standby
            | Self::Idle
            | Self::CheckPowerMode
            | Self::Sleep
            | Self::FlushCache
            | Self::FlushCacheExt
            | Self::SetFeatures
            | Self::SecurityErasePrepare
            | Self::SecurityFreezeLock
            | Self::ReadNativeMaxAddress => Protocol::NonData,
            Self::Unknown(_) => return None,
        })
    }

    /// Whether the command reads all 48 bits of the LBA and 16 of features and count.
    pub const fn is_48_bit(self) -> bool {
        matches!(
            self,
            Self::DataSetManagement
                | Self::ReadSectorsExt
                | Self::ReadDmaExt
                | Self::ReadNativeMaxAddressExt
                | Self::ReadLogExt
                | Self::WriteSectorsExt
                | Self::WriteDmaExt
                | Self::WriteDmaFuaExt
                | Self::WriteLogExt
                | Self::ReadVerifySectorsExt
                | Self::WriteUncorrectableExt
                | Self::ReadLogDmaExt
                | Self::WriteLogDmaExt
                | Self::ReadFpdmaQueued
                | Self::WriteFpdmaQueued
                | Self::NcqNonData
                | Self::SendFpdmaQueued
                | Self::ReceiveFpdmaQueued
                | Self::SanitizeDevice
                | Self::FlushCacheExt
        )
    }
}

impl SmartSubcommand {
    /// How the subcommand moves data, `None` for an unknown one.
    pub const fn protocol(self) -> Option<Protocol> {
        match self {
            Self::ReadData | Self::ReadThresholds | Self::ReadLog => Some(Protocol::PioIn),
            Self::WriteLog => Some(Protocol::PioOut),
            Self::Unknown(_) => None,
            _ => Some(Protocol::NonData),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn a_command_has_its_protocol() {
        let protocols = [
            (0xec, Protocol::PioIn),
            (0xc8, Protocol::DmaIn),
            (0xca, Protocol::DmaOut),
            (0x06, Protocol::DmaOut),
            (0x60, Protocol::QueuedIn),
            (0x61, Protocol::QueuedOut),
            (0xe7, Protocol::NonData),
            (0xef, Protocol::NonData),
            (0x90, Protocol::Diagnostic),
        ];
        for (command, protocol) in protocols {
            assert_eq!(AtaCommand::from(command).protocol(0), Some(protocol), "{command:#x}");
        }
        assert_eq!(AtaCommand::from(0x99).protocol(0), None);
    }

    #[test]
    fn the_protocol_of_smart_is_in_its_features() {
        let protocols = [(0xd0, Protocol::PioIn), (0xd6, Protocol::PioOut), (0xda, Protocol::NonData)];
        for (features, protocol) in protocols {
            assert_eq!(AtaCommand::Smart.protocol(features), Some(protocol));
        }
        assert_eq!(AtaCommand::Smart.protocol(0xdd), None);
    }

    #[test]
    fn ext_and_queued_commands_have_48_bits() {
        for command in [0x06, 0x25, 0x2f, 0x35, 0x60, 0x61, 0xea] {
            assert!(AtaCommand::from(command).is_48_bit(), "{command:#x}");
        }
        for command in [0x20, 0xb0, 0xc8, 0xca, 0xe7, 0xec, 0xf8] {
            assert!(!AtaCommand::from(command).is_48_bit(), "{command:#x}");
        }
    }

    #[test]
    fn every_transfer_mode_survives() {
        for count in 0..=u8::MAX {
            assert_eq!(u8::from(TransferMode::from(count)), count);
        }
        assert_eq!(TransferMode::from(0x46), TransferMode::UltraDma(6));
        assert_eq!(TransferMode::from(0x0c), TransferMode::Pio(4));
    }

    #[test]
    fn codes_have_names() {
        assert_eq!(AtaCommand::from(0xe5).to_string(), "CHECK POWER MODE");
        assert_eq!(SetFeaturesSubcommand::from(0x02).to_string(), "enable write cache");
        assert_eq!(SelfTest::from(0x7f).to_string(), "abort");
        assert_eq!(u8::from(PowerMode::Active), 0xff);
    }
}
