use super::quirk::{Flag, Flags};
use super::*;
use alloc::string::ToString;
use bus::{EndpointAddress, Speed};
use core::num::NonZeroU16;
use proptest::prelude::*;
use wire::usb::{ClassCode, Direction};

/// 174c:55aa at SuperSpeed.
const DEVICE: [u8; 18] = [18, 0x01, 0x00, 0x03, 0, 0, 0, 9, 0x4c, 0x17, 0xaa, 0x55, 0x00, 0x01, 2, 3, 1, 1];
/// The same with an id that no table has: 1209:0001.
const UNLISTED: [u8; 18] = [18, 0x01, 0x00, 0x03, 0, 0, 0, 9, 0x09, 0x12, 0x01, 0x00, 0x00, 0x01, 1, 2, 3, 1];

const SUPER: Link = Link { speed: Speed::Super, streams_max: 256 };
const HIGH: Link = Link { speed: Speed::High, streams_max: 256 };

/// BOT as setting 0 and UAS as setting 1 at SuperSpeed; `exponents` are those of the streams of the pipes 1 to 4.
fn dual(max_power: u8, exponents: [u8; 4]) -> Vec<u8> {
    let [command, status, data_in, data_out] = exponents;
    [
        &[9, 0x02, 121, 0, 1, 1, 0, 0xc0, max_power][..],
        &[9, 0x04, 0, 0, 2, 0x08, 0x06, 0x50, 0], // interface 0, alternate 0: BOT
        &[7, 0x05, 0x81, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, 0, 0, 0],
        &[7, 0x05, 0x02, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, 0, 0, 0],
        &[9, 0x04, 0, 1, 4, 0x08, 0x06, 0x62, 0], // alternate 1: UAS
        &[7, 0x05, 0x01, 0x02, 0x00, 0x04, 0, 6, 0x30, 0, command, 0, 0, 4, 0x24, 1, 0],
        &[7, 0x05, 0x82, 0x02, 0x00, 0x04, 0, 6, 0x30, 0, status, 0, 0, 4, 0x24, 2, 0],
        &[7, 0x05, 0x83, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, data_in, 0, 0, 4, 0x24, 3, 0],
        &[7, 0x05, 0x04, 0x02, 0x00, 0x04, 0, 6, 0x30, 15, data_out, 0, 0, 4, 0x24, 4, 0],
    ]
    .concat()
}

/// UAS alone at high speed.
const UAS_HIGH: [u8; 62] = [
    9, 0x02, 62, 0, 1, 1, 0, 0x80, 250, //
    9, 0x04, 0, 0, 4, 0x08, 0x06, 0x62, 0, //
    7, 0x05, 0x01, 0x02, 0x00, 0x02, 0, 4, 0x24, 1, 0, //
    7, 0x05, 0x82, 0x02, 0x00, 0x02, 0, 4, 0x24, 2, 0, //
    7, 0x05, 0x83, 0x02, 0x00, 0x02, 0, 4, 0x24, 3, 0, //
    7, 0x05, 0x04, 0x02, 0x00, 0x02, 0, 4, 0x24, 4, 0,
];

fn judged(device: &[u8], configuration: &[u8], link: Link) -> Probe {
    let answers = Answers { device, configuration, bos: None, names: Names::default() };
    probe(&answers, link).unwrap()
}

/// The decisive rule against UAS: ours, Linux's.
fn against(probe: &Probe) -> (Option<Rule>, Option<Rule>) {
    let interface = &probe.interfaces[0];
    let rule = |finding: &Finding| finding.rule;
    (interface.uas.decisive().map(rule), interface.linux.decisive().map(rule))
}

fn end(address: u8, packet_bytes: u16, burst_packets: u8) -> PipeEnd {
    PipeEnd { address: EndpointAddress::try_from(address).unwrap(), packet_bytes, burst_packets }
}

#[test]
fn a_dual_device_is_planned_for_both_transports() {
    let probe = judged(&UNLISTED, &dual(0, [0, 5, 5, 5]), SUPER);
    let place = InterfaceSetting { configuration: 1, interface: 0, alternate: 1 };
    let plan = UasPlan {
        place,
        command: end(0x01, 1024, 1),
        status: end(0x82, 1024, 1),
        data_in: end(0x83, 1024, 16),
        data_out: end(0x04, 1024, 16),
        matching: Matching::Streams { request: NonZeroU16::new(32).unwrap() },
    };
    assert_eq!(probe.best(), Some(Plan::Uas(plan)));
    let bot = probe.bot().unwrap();
    assert_eq!(bot.place, InterfaceSetting { alternate: 0, ..place });
    assert_eq!((bot.bulk_in, bot.bulk_out), (end(0x81, 1024, 16), end(0x02, 1024, 16)));
    assert_eq!(against(&probe), (None, None));
    assert_eq!(
        probe.best().unwrap().to_string(),
        "UAS with 32 streams, configuration 1 interface 0 alternate 1"
    );
}

#[test]
fn below_super_speed_ready_ius_match() {
    let probe = judged(&UNLISTED, &UAS_HIGH, HIGH);
    assert_eq!(probe.uas().map(|plan| plan.matching), Some(Matching::Ready));
    assert_eq!(probe.bot(), None);
    assert_eq!(probe.interfaces[0].bot.decisive().map(|finding| finding.rule), Some(Rule::BotSetting));
    let asked: Vec<_> = probe.interfaces[0].uas.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(asked, [Rule::UasSetting, Rule::PipeUsages, Rule::PipeKinds, Rule::PacketSizes]);
}

#[test]
fn a_host_without_streams_goes_by_bot_at_super_speed() {
    let probe = judged(&UNLISTED, &dual(0, [0, 5, 5, 5]), Link { streams_max: 0, ..SUPER });
    assert_eq!(against(&probe), (Some(Rule::HostStreams), Some(Rule::HostStreams)));
    assert!(matches!(probe.best(), Some(Plan::Bot(_))));
}

#[test]
fn no_more_streams_are_asked_for_than_the_host_has() {
    let probe = judged(&UNLISTED, &dual(0, [0, 8, 8, 8]), Link { streams_max: 16, ..SUPER });
    let request = NonZeroU16::new(16).unwrap();
    assert_eq!(probe.uas().map(|plan| plan.matching), Some(Matching::Streams { request }));
}

#[test]
fn the_largest_count_of_streams_has_no_id_past_the_reserved_ones() {
    let probe = judged(&UNLISTED, &dual(0, [0, 16, 16, 31]), Link { streams_max: u16::MAX, ..SUPER });
    let request = NonZeroU16::new(65_533).unwrap();
    assert_eq!(probe.uas().map(|plan| plan.matching), Some(Matching::Streams { request }));
}

#[test]
fn streams_that_disagree_are_reported_and_the_fewest_count() {
    let probe = judged(&UNLISTED, &dual(0, [0, 5, 4, 5]), SUPER);
    let uas = &probe.interfaces[0].uas;
    let finding = uas.findings.iter().find(|finding| finding.rule == Rule::StreamsAgree).unwrap();
    assert!(!finding.met);
    assert_eq!(finding.evidence, Evidence::Streams { offered: [32, 16, 32], host_max: 256 });
    let request = NonZeroU16::new(16).unwrap();
    assert_eq!(uas.plan.map(|plan| plan.matching), Some(Matching::Streams { request }));
}

#[test]
fn a_pipe_without_streams_is_no_uas_at_super_speed() {
    let probe = judged(&UNLISTED, &dual(0, [0, 5, 0, 5]), SUPER);
    assert_eq!(against(&probe), (Some(Rule::StreamsOffered), Some(Rule::StreamsOffered)));
}

#[test]
fn a_missing_pipe_usage_is_no_uas() {
    let mut bytes = dual(0, [0, 5, 5, 5]);
    let at = bytes.len() - 2;
    bytes[at] = 3; // data-out says to be data-in
    let probe = judged(&UNLISTED, &bytes, SUPER);
    assert_eq!(against(&probe), (Some(Rule::PipeUsages), Some(Rule::PipeUsages)));
    let finding = probe.interfaces[0].uas.decisive().unwrap();
    assert_eq!(
        finding.to_string(),
        "pipe usage descriptors name all four pipes: no (interface 0 alternate 1 08/06/62 (UAS): \
         1 OUT bulk 1024 B command pipe, 2 IN bulk 1024 B status pipe 32 streams, \
         3 IN bulk 1024 B data-in pipe 32 streams, 4 OUT bulk 1024 B data-in pipe 32 streams)"
    );
}

#[test]
fn linux_does_not_look_at_the_direction_of_a_pipe_and_we_do() {
    let mut bytes = UAS_HIGH;
    bytes[20] = 0x85; // the command pipe is IN
    let probe = judged(&UNLISTED, &bytes, HIGH);
    assert_eq!(against(&probe), (Some(Rule::PipeKinds), None));
}

#[test]
fn a_packet_of_another_speed_is_reported() {
    let probe = judged(&UNLISTED, &UAS_HIGH, SUPER);
    assert_eq!(against(&probe).0, Some(Rule::PacketSizes));
}

#[test]
fn another_protocol_is_neither_transport() {
    let mut bytes = UAS_HIGH;
    bytes[16] = 0x01; // control/bulk/interrupt
    let probe = judged(&UNLISTED, &bytes, HIGH);
    assert_eq!(against(&probe), (Some(Rule::UasSetting), Some(Rule::UasSetting)));
    let class = ClassCode::new(8, 6, 1);
    let settings = [SettingName { interface: 0, alternate: 0, class }];
    let evidence = Evidence::Settings(settings.to_vec());
    assert_eq!(probe.interfaces[0].linux.decisive().map(|finding| &finding.evidence), Some(&evidence));
    assert_eq!(probe.best(), None);
}

#[test]
fn an_asmedia_bridge_is_known_by_its_power_and_its_streams() {
    let verdict = |max_power, exponent, link| {
        let probe = judged(&DEVICE, &dual(max_power, [0, exponent, exponent, exponent]), link);
        let linux = &probe.interfaces[0].linux;
        (against(&probe).1, linux.built_in.uas().contains(Flag::MaxSectors240))
    };
    assert_eq!(verdict(36, 5, SUPER), (Some(Rule::NotIgnored), false)); // ASM1051, or a late ASM1053
    assert_eq!(verdict(36, 4, SUPER), (None, true)); // ASM1053
    assert_eq!(verdict(0, 5, SUPER), (None, false)); // ASM1153
    assert_eq!(verdict(36, 4, HIGH), (Some(Rule::NotIgnored), false));
}

#[test]
fn limits_of_the_driver_do_not_depend_on_the_bridge() {
    let probe = judged(&DEVICE, &dual(36, [0, 5, 5, 5]), SUPER);
    assert_eq!(against(&probe).0, None);
    assert!(probe.uas().is_some());
}

#[test]
fn the_hiksemi_enclosure_is_known_by_its_names() {
    let mut device = UNLISTED;
    device[8..12].copy_from_slice(&[0xda, 0x0b, 0x10, 0x92]);
    let with = |product| {
        let names = Names { manufacturer: Some("HIKSEMI"), product: Some(product) };
        let configuration = dual(0, [0, 5, 5, 5]);
        let answers = Answers { device: &device, configuration: &configuration, bos: None, names };
        against(&probe(&answers, SUPER).unwrap()).1
    };
    assert_eq!(with("MD202"), Some(Rule::NotIgnored));
    assert_eq!(with("MD203"), None);
}

#[test]
fn a_seagate_keeps_uas_and_loses_pass_through() {
    let mut device = UNLISTED;
    device[8..10].copy_from_slice(&[0xc2, 0x0b]);
    let probe = judged(&device, &dual(0, [0, 5, 5, 5]), SUPER);
    assert_eq!(against(&probe).1, None);
    assert!(probe.interfaces[0].linux.built_in.uas().contains(Flag::NoAta1x));
}

#[test]
fn a_row_of_the_table_says_no_like_a_rule_in_the_code() {
    let mut device = UNLISTED;
    device[8..12].copy_from_slice(&[0x7d, 0x35, 0x88, 0x77]);
    let probe = judged(&device, &dual(0, [0, 5, 5, 5]), SUPER);
    let finding = probe.interfaces[0].linux.decisive().unwrap();
    assert_eq!(
        finding.to_string(),
        "Linux does not ignore UAS for the device: no (357d:7788 0100, bMaxPower 0, super speed, \
         32 status streams; flags f (no REPORT SUPPORTED OPERATION CODES), u (UAS is not used))"
    );
}

#[test]
fn without_a_uas_setting_there_is_no_coded_rule_and_the_row_counts() {
    let mut device = DEVICE;
    let mut bytes = dual(36, [0, 5, 5, 5]);
    let uas = bytes.iter().rposition(|byte| *byte == 0x62).unwrap();
    bytes[uas] = 0x63;
    let built_in = |device: &[u8]| judged(device, &bytes, SUPER).interfaces[0].linux.built_in;
    assert_eq!((built_in(&device).coded, built_in(&device).row), (None, None));
    device[8..12].copy_from_slice(&[0x09, 0x21, 0x11, 0x07]);
    assert_eq!(built_in(&device).storage(), Flags::of(&[Flag::NoAta1x]));
}

#[test]
fn a_super_speed_plus_capability_is_super_speed() {
    assert_eq!(fastest_speed(&[5, 0x0f, 5, 0, 0]), None);
    let high = [10, 0x10, 0x03, 0, 0x06, 0, 1, 10, 0xff, 0x07];
    assert_eq!(fastest_speed(&high), Some(Speed::High));
    let plus = [20, 0x10, 0x0a, 0, 0, 0, 0, 0, 0, 0x11, 0, 0, 0x30, 0x40, 0x0a, 0, 0xb0, 0x40, 0x0a, 0];
    assert_eq!(fastest_speed(&[&high[..], &plus].concat()), Some(Speed::Super));
    assert_eq!((fastest_lane_mbps(&high), fastest_lane_mbps(&plus)), (None, Some(10_000)));
}

#[test]
fn a_device_that_could_be_faster_is_reported() {
    let bos = [5, 0x0f, 15, 0, 1, 10, 0x10, 0x03, 0, 0x0e, 0, 1, 10, 0xff, 0x07];
    let answers =
        Answers { device: &UNLISTED, configuration: &UAS_HIGH, bos: Some(&bos), names: Names::default() };
    let probe = probe(&answers, HIGH).unwrap();
    assert!(!probe.link.met);
    assert_eq!(
        probe.link.to_string(),
        "the link is as fast as the device can be: no (link high speed, device super speed)"
    );
}

#[test]
fn the_interface_that_stores_is_found_among_others() {
    let mut bytes = [&[9, 0x02, 0, 0, 2, 1, 0, 0x80, 250][..], &[9, 0x04, 0, 0, 0, 0x03, 0, 0, 0]].concat();
    bytes.extend(&UAS_HIGH[9..]);
    bytes[2] = bytes.len() as u8;
    bytes[20] = 1; // bInterfaceNumber
    let probe = judged(&UNLISTED, &bytes, HIGH);
    assert_eq!(probe.interfaces.len(), 1);
    assert_eq!(probe.uas().map(|plan| plan.place.interface), Some(1));
}

#[test]
fn a_device_descriptor_that_is_none_is_an_error() {
    let answers =
        Answers { device: &UNLISTED[..17], configuration: &UAS_HIGH, bos: None, names: Names::default() };
    assert_eq!(probe(&answers, HIGH), Err(DecodeError::Truncated { needed: 18, got: 17 }));
}

proptest! {
    /// A good configuration with bytes changed at random.
    #[test]
    fn a_plan_names_endpoints_that_can_be_what_it_says(
        changes in prop::collection::vec((9usize..121, any::<u8>()), 0..12), super_speed: bool,
    ) {
        let mut bytes = dual(36, [0, 5, 5, 5]);
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        let link = if super_speed { SUPER } else { HIGH };
        let probe = judged(&DEVICE, &bytes, link);
        for interface in &probe.interfaces {
            prop_assert_eq!(interface.uas.plan.is_some(), interface.uas.decisive().is_none());
            prop_assert_eq!(interface.bot.plan.is_some(), interface.bot.decisive().is_none());
            if let Some(plan) = interface.uas.plan {
                let ends = [plan.command, plan.status, plan.data_in, plan.data_out];
                let directions = ends.map(|end| end.address.direction());
                prop_assert_eq!(directions, [Direction::Out, Direction::In, Direction::In, Direction::Out]);
                prop_assert_eq!(matches!(plan.matching, Matching::Streams { .. }), super_speed);
            }
            for finding in interface.uas.findings.iter().chain(&interface.linux.findings) {
                prop_assert!(!finding.to_string().is_empty());
            }
        }
    }
}
