//! SCSI: CDBs, sense data, and every kind of parameter data.
#![no_main]

use fuzz::{ROOM, decodes, round_trip};
use wire::scsi::{
    block::*,
    buffer::*,
    capacity::*,
    cdb::Command,
    diagnostic::*,
    inquiry::*,
    log::*,
    mode::*,
    persistent_reserve::*,
    report_luns::*,
    sense::{Sense, SenseFormat},
    supported_opcodes::*,
    supported_tmf::*,
    vpd::*,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    commands(bytes);
    parameters(bytes);
    pages(bytes);
});

fn commands(bytes: &[u8]) {
    if let Ok(command) = Command::decode(bytes) {
        assert_eq!(Command::decode(&command.encode()), Ok(command));
    }
    if let Ok(sense) = Sense::decode(bytes) {
        let mut out = [0; ROOM];
        // Descriptor format has room for everything that either format can say.
        let written = sense.encode(SenseFormat::Descriptor, &mut out).expect("there is room for it");
        assert!(Sense::decode(&out[..written]).is_ok());
    }
}

fn parameters(bytes: &[u8]) {
    let mut out = [0; ROOM];
    round_trip!(bytes;
        UnmapDescriptor; LbaStatusHeader; LbaStatusDescriptor; DefectListHeader10; DefectListHeader12;
        BufferDescriptor; EchoBufferDescriptor; DiagnosticHeader; ReservationCapabilities;
        SelfTestResult; BackgroundScanResult; Capacity10; Capacity16; LogPageHeader; SupportedTaskManagement;
        OverwriteList => out; LunList => out; SupportedDiagnosticPages => out; ReadReservation => out;
        PersistentReserveOutList => out; RegisterAndMoveList => out; OneCommand => out;
    );
    decodes!(bytes;
        StandardInquiry; UnmapList; ReservationKeys; FullStatus; AllCommands; SupportedLogPages;
        SupportedLogSubpages; NonMediumErrorLog; TemperatureLog; StartStopCycleLog; SolidStateMediaLog;
        SelfTestLog; ProvisioningLog; InformationalExceptionsLog; GeneralStatisticsLog; BackgroundScanLog;
        LogPage;
    );
    for long in [false, true] {
        if let Ok(list) = FormatList::decode(long, bytes) {
            let written = list.encode(long, &mut out).expect("there is room for it");
            assert_eq!(FormatList::decode(long, &out[..written]), Ok(list));
        }
    }
}

fn pages(bytes: &[u8]) {
    let mut out = [0; ROOM];
    let peripheral = Peripheral {
        qualifier: PeripheralQualifier::Connected,
        device_type: PeripheralDeviceType::DirectAccess,
    };
    round_trip!(bytes;
        ShortBlockDescriptor; LongBlockDescriptor;
        ModePage => out(false);
        VpdPage => out(peripheral);
    );
    for form in [ModeForm::Six, ModeForm::Ten] {
        if let Ok(header) = ModeHeader::decode(form, bytes) {
            let written = header.encode(form, &mut out).expect("there is room for it");
            assert_eq!(ModeHeader::decode(form, &out[..written]), Ok(header));
        }
        if let Ok(parameters) = ModeParameters::decode(form, bytes) {
            assert!(parameters.pages().count() <= bytes.len() / 2 + 1);
        }
    }
}
