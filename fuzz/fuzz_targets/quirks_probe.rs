//! Descriptors of any device: judged within limits, the same each time, and a plan is one that the descriptors bear out.
#![no_main]

use arbitrary::Arbitrary;
use bus::Speed;
use quirks::configuration::{Configuration, FAULTS_MAX, SETTINGS_MAX, Setting};
use quirks::{Answers, InterfaceSetting, Link, Matching, Names, Plan, Probe, fastest_lane_mbps, probe};

#[derive(Arbitrary, Debug)]
struct Device<'a> {
    device: [u8; 17],
    speed: u8,
    streams_max: u16,
    names: Option<(&'a str, &'a str)>,
    bos: Option<&'a [u8]>,
    head: [u8; 5],
    /// The bytes added to the length that the head announces.
    excess: i8,
    descriptors: Vec<Piece<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Piece<'a> {
    Raw(&'a [u8]),
    /// An interface of mass storage or of another class.
    Interface {
        number: u8,
        alternate: u8,
        endpoints: u8,
        class: u8,
    },
    Endpoint {
        address: u8,
        attributes: u8,
        packet_bytes: u16,
    },
    Companion {
        burst: u8,
        attributes: u8,
    },
    Usage(u8),
}

libfuzzer_sys::fuzz_target!(|device: Device| {
    let configuration = device.configuration();
    let descriptor = [&[18][..], &device.device].concat();
    let link = Link { speed: device.speed(), streams_max: device.streams_max };
    let (manufacturer, product) = device.names.unzip();
    let names = Names { manufacturer, product };
    let answers = Answers { device: &descriptor, configuration: &configuration, bos: device.bos, names };
    let found = probe(&answers, link);
    assert_eq!(found, probe(&answers, link));
    let _ = fastest_lane_mbps(device.bos.unwrap_or(&[]));
    if let Ok(found) = found {
        check_configuration(&found.configuration);
        check_judgements(&found);
        if let Some(plan) = found.best() {
            let _ = plan.to_string();
        }
        for plan in [found.uas().map(Plan::Uas), found.bot().map(Plan::Bot)].into_iter().flatten() {
            check_plan(&found, plan, link);
        }
    }
});

impl Device<'_> {
    fn speed(&self) -> Speed {
        match self.speed % 4 {
            0 => Speed::Full,
            1 => Speed::High,
            _ => Speed::Super,
        }
    }

    fn configuration(&self) -> Vec<u8> {
        let pieces: Vec<u8> = self.descriptors.iter().flat_map(Piece::bytes).collect();
        let announced = (9 + pieces.len() as u16).wrapping_add_signed(self.excess.into());
        let [low, high] = announced.to_le_bytes();
        [&[9, 2, low, high][..], &self.head, &pieces].concat()
    }
}

impl Piece<'_> {
    fn bytes(&self) -> Vec<u8> {
        match *self {
            Self::Raw(bytes) => bytes.to_vec(),
            Self::Interface { number, alternate, endpoints, class } => {
                let (class, subclass, protocol) = match class % 8 {
                    0..=2 => (8, 6, 0x62),
                    3..=5 => (8, 6, 0x50),
                    6 => (8, class, class),
                    _ => (class, 6, 0x62),
                };
                vec![9, 4, number % 4, alternate % 4, endpoints, class, subclass, protocol, 0]
            }
            Self::Endpoint { address, attributes, packet_bytes } => {
                let [low, high] = match packet_bytes % 8 {
                    0..=2 => [0, 4],
                    3..=4 => [0, 2],
                    5 => [64, 0],
                    _ => packet_bytes.to_le_bytes(),
                };
                vec![7, 5, address & 0x8f, attributes, low, high, 0]
            }
            Self::Companion { burst, attributes } => vec![6, 0x30, burst, attributes, 0, 0],
            Self::Usage(pipe) => vec![4, 0x24, pipe % 6, 0],
        }
    }
}

fn check_configuration(configuration: &Configuration) {
    assert!(configuration.settings.len() <= SETTINGS_MAX && configuration.faults.len() <= FAULTS_MAX);
    for fault in &configuration.faults {
        let _ = fault.to_string();
    }
    for (at, setting) in configuration.settings.iter().enumerate() {
        let name = |setting: &Setting| (setting.interface.number, setting.interface.alternate);
        let earlier = &configuration.settings[..at];
        assert!(earlier.iter().all(|other| name(other) != name(setting)), "a setting is there twice");
        for (at, endpoint) in setting.endpoints.iter().enumerate() {
            let address = endpoint.descriptor.address;
            let earlier = &setting.endpoints[..at];
            assert!(earlier.iter().all(|other| other.descriptor.address != address), "{address:?} twice");
        }
    }
}

fn check_judgements(found: &Probe) {
    let _ = found.link.to_string();
    for interface in &found.interfaces {
        assert_eq!(interface.bot.plan.is_some(), interface.bot.decisive().is_none());
        assert_eq!(interface.uas.plan.is_some(), interface.uas.decisive().is_none());
        let findings = [&interface.bot.findings, &interface.uas.findings, &interface.linux.findings];
        for finding in findings.into_iter().flatten() {
            let _ = finding.to_string();
        }
    }
}

/// Checks that the interface setting and the endpoints of a plan exist.
fn check_plan(found: &Probe, plan: Plan, link: Link) {
    let InterfaceSetting { configuration, interface, alternate } = plan.place();
    assert_eq!(configuration, found.configuration.head.value);
    let mut settings = found.configuration.settings_of(interface);
    let setting = settings.find(|setting| setting.interface.alternate == alternate).expect("a setting");
    let ends = match plan {
        Plan::Bot(plan) => vec![plan.bulk_in, plan.bulk_out],
        Plan::Uas(plan) => {
            if let Matching::Streams { request } = plan.matching {
                assert!(request.get() <= link.streams_max && link.speed == Speed::Super);
            }
            vec![plan.command, plan.status, plan.data_in, plan.data_out]
        }
    };
    for (at, end) in ends.iter().enumerate() {
        assert!(setting.endpoints.iter().any(|endpoint| endpoint.descriptor.address == end.address));
        assert!(ends[..at].iter().all(|other| other.address != end.address), "a pipe is named twice");
        assert!((1..=16).contains(&end.burst_packets) && end.packet_bytes > 0);
    }
}
