//! SCSI: CDBs, sense data, and every kind of parameter data.

use super::ROOM;
use wire::scsi::{
    block::*,
    buffer::*,
    capacity::*,
    cdb::Command,
    diagnostic::*,
    inquiry::*,
    log::*,
    mmc::*,
    mode::*,
    persistent_reserve::*,
    report_luns::*,
    sense::{Sense, SenseFormat},
    supported_opcodes::*,
    supported_tmf::*,
    vpd::*,
};

/// Checks the whole family on these bytes.
pub fn check(bytes: &[u8]) {
    commands(bytes);
    parameters(bytes);
    lists(bytes);
    pages(bytes);
    logs(bytes);
    discs(bytes);
}

fn commands(bytes: &[u8]) {
    if let Ok(command) = Command::decode(bytes) {
        assert_eq!(Command::decode(&command.encode()), Ok(command));
    }
    if let Ok(sense) = Sense::decode(bytes) {
        let mut out = [0; ROOM];
        // Descriptor format has room for everything that either format can say.
        let written = sense.encode(SenseFormat::Descriptor, &mut out).expect("there is room for it");
        assert_eq!(Sense::decode(&out[..written]), Ok(sense));
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
    let _ = LogPage::decode(bytes).map(|page| page.parameters().count());
    if let Ok(inquiry) = StandardInquiry::decode(bytes) {
        assert_eq!(StandardInquiry::decode(&inquiry.encode()), Ok(inquiry));
    }
    for long in [false, true] {
        if let Ok(list) = FormatList::decode(long, bytes) {
            let written = list.encode(long, &mut out).expect("there is room for it");
            assert_eq!(FormatList::decode(long, &out[..written]), Ok(list));
        }
    }
}

/// Lists decode to bytes that are walked, and are encoded from what the walk finds: that must be found again.
fn lists(bytes: &[u8]) {
    let mut out = [0; ROOM];
    if let Ok(list) = UnmapList::decode(bytes) {
        let runs: Vec<_> = list.descriptors().collect();
        let written = UnmapList::encode(&runs, &mut out).expect("there is room for it");
        assert!(UnmapList::decode(&out[..written]).is_ok_and(|again| again.descriptors().eq(runs)));
    }
    if let Ok(list) = ReservationKeys::decode(bytes) {
        let written = ReservationKeys::encode_list(list.generation, list.keys(), &mut out);
        let again = ReservationKeys::decode(&out[..written.expect("there is room for it")]);
        assert!(again.is_ok_and(|again| again.generation == list.generation && again.keys().eq(list.keys())));
    }
    if let Ok(list) = FullStatus::decode(bytes) {
        let whole = || list.iter().map_while(Result::ok);
        let written = FullStatus::encode_list(list.generation, whole(), &mut out);
        let again = FullStatus::decode(&out[..written.expect("there is room for it")]);
        assert!(again.is_ok_and(|again| again.iter().eq(whole().map(Ok))));
    }
    if let Ok(list) = AllCommands::decode(bytes) {
        let whole = || list.iter().map_while(Result::ok);
        let written = AllCommands::encode_list(whole(), &mut out).expect("there is room for it");
        assert!(AllCommands::decode(&out[..written]).is_ok_and(|again| again.iter().eq(whole().map(Ok))));
    }
}

fn logs(bytes: &[u8]) {
    let mut out = [0; ROOM];
    log_round_trip!(bytes, out;
        NonMediumErrors: NonMediumErrorLog; Temperature: TemperatureLog; StartStopCycles: StartStopCycleLog;
        SolidStateMedia: SolidStateMediaLog; SelfTestResults: SelfTestLog;
        LogicalBlockProvisioning: ProvisioningLog; InformationalExceptions: InformationalExceptionsLog;
        GeneralStatistics: GeneralStatisticsLog;
    );
    for code in [LogPageCode::WriteErrors, LogPageCode::ReadErrors, LogPageCode::VerifyErrors] {
        if let Ok(counters) = ErrorCounters::decode(code, bytes) {
            let mut writer = LogWriter::new(code, 0, 0, &mut out).expect("there is room for it");
            counters.encode(&mut writer).expect("there is room for it");
            let written = writer.finish().expect("it is shorter than a page may be");
            assert_eq!(ErrorCounters::decode(code, &out[..written]), Ok(counters));
        }
    }
    if let (Ok(log), Ok(page)) = (BackgroundScanLog::decode(bytes), LogPage::decode(bytes)) {
        let found: Vec<_> =
            BackgroundScanLog::results(page.parameters()).map_while(Result::ok).take(2048).collect();
        let mut writer =
            LogWriter::new(LogPageCode::BackgroundScan, 0, 0, &mut out).expect("there is room for it");
        log.encode(&found, &mut writer).expect("there is room for it");
        let written = writer.finish().expect("it is shorter than a page may be");
        assert_eq!(BackgroundScanLog::decode(&out[..written]), Ok(log));
        let again = LogPage::decode(&out[..written]).expect("it was just encoded");
        assert!(BackgroundScanLog::results(again.parameters()).eq(found.into_iter().map(Ok)));
    }
    if let Ok(list) = SupportedLogPages::decode(bytes) {
        let pages: Vec<_> = list.pages().collect();
        let written = SupportedLogPages::encode_list(&pages, &mut out).expect("there is room for it");
        assert!(SupportedLogPages::decode(&out[..written]).is_ok_and(|again| again.pages().eq(pages)));
    }
    if let Ok(list) = SupportedLogSubpages::decode(bytes) {
        let pages: Vec<_> = list.pages().collect();
        let written = SupportedLogSubpages::encode_list(&pages, &mut out).expect("there is room for it");
        assert!(SupportedLogSubpages::decode(&out[..written]).is_ok_and(|again| again.pages().eq(pages)));
    }
}

fn discs(bytes: &[u8]) {
    let mut out = [0; ROOM];
    round_trip!(bytes;
        FeatureHeader; ProfileDescriptor; CoreFeature; RemovableMediumFeature; RandomReadableFeature;
        EventHeader; MediaEvent; TocHeader; TocEntry; RawTocEntry; DiscInformation; TrackInformation;
        StructureHeader; StructureEntry; DvdPhysicalFormat; FormatCapacities; CapacityDescriptor;
        MechanismState; PerformanceHeader; PerformanceDescriptor;
        FeatureDescriptor => out;
    );
    let found: Vec<_> = Features::new(bytes).map_while(Result::ok).collect();
    let mut writer = FeatureWriter::new(Profile::None, &mut out).expect("there is room for it");
    found.iter().for_each(|feature| writer.feature(feature).expect("there is room for it"));
    let written = writer.finish().expect("there is room for it");
    assert!(Features::new(&out[FeatureHeader::LEN..written]).eq(found.into_iter().map(Ok)));
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
