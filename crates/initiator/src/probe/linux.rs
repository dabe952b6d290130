//! Linux's rules for UAS, as far as descriptors, names and the link decide (`uas_use_uas_driver` of 6.x kernels).
//!
//! In the kernel's order. Left out, because no descriptor tells: whether the driver is there, the table of quirks, the
//! user's own quirks, and what the host controller's driver cannot; a table entry may overrule [`LinuxFlags`].
//! Linux does not look at the directions and kinds of the pipes, and neither does this.

use super::configuration::Configuration;
use super::own::{about_endpoints, host_streams, setting_finding, streams_offered};
use super::pipes::Pipes;
use super::rule::{Evidence, Finding, Rule};
use super::{Link, Names};
use alloc::string::ToString;
use alloc::vec::Vec;
use bus::Speed;
use wire::usb::{ClassCode, DeviceDescriptor};

/// What Linux makes of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinuxJudgement {
    /// In the order asked, up to the first that hides the rest: without a setting or without pipes there is no more.
    pub findings: Vec<Finding>,
    /// What the rules that are written in code set, besides ignoring UAS.
    pub flags: LinuxFlags,
}

/// Flags that the kernel's code sets by itself, without its table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinuxFlags {
    /// Transfers of 240 sectors at most: an ASM1053, by its ids and streams. Letter `g`.
    pub max_sectors_240: bool,
    /// No ATA pass-through, so no SMART: every Seagate. Letter `t`.
    pub no_ata_pass_through: bool,
}

impl LinuxJudgement {
    /// The first rule that is broken: why the kernel does not use UAS. `None` if nothing here is against it.
    pub fn decisive(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| !finding.met)
    }
}

pub(super) fn judge(
    device: &DeviceDescriptor,
    names: &Names<'_>,
    configuration: &Configuration,
    interface: u8,
    link: Link,
) -> LinuxJudgement {
    let mut flags = LinuxFlags::default();
    let mut findings = Vec::new();
    findings.push(setting_finding(configuration, interface, ClassCode::UAS, Rule::UasSetting));
    let Some(setting) = configuration.setting_of_class(interface, ClassCode::UAS) else {
        return LinuxJudgement { findings, flags };
    };
    let pipes = Pipes::of(setting);
    findings.push(about_endpoints(Rule::PipeUsages, pipes.is_some(), setting, &setting.endpoints));
    let Some(pipes) = pipes else {
        return LinuxJudgement { findings, flags };
    };
    let max_power = configuration.head.max_power;
    let status_streams = pipes.status.streams();
    let bridge = asmedia_105x(device, max_power, link.speed, status_streams);
    flags.max_sectors_240 = bridge == Some(Asm105x::Asm1053);
    flags.no_ata_pass_through = device.vendor == SEAGATE;
    let (vendor, product) = (device.vendor, device.product);
    findings.push(Finding {
        rule: Rule::NotAsm1051,
        met: bridge != Some(Asm105x::MaybeAsm1051),
        evidence: Evidence::Bridge { vendor, product, max_power, speed: link.speed, status_streams },
    });
    findings.push(hiksemi(device, names));
    findings.push(host_streams(&pipes, link));
    // Not a rule but a failure: the driver is bound, allocates streams, gets none, and lets go.
    findings.push(streams_offered(&pipes, link));
    LinuxJudgement { findings, flags }
}

/// Which bridge an ASMedia id stands for, where it draws power from the bus (an ASM1153 says that it does not).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asm105x {
    /// UAS works, long transfers do not.
    Asm1053,
    /// It may be the one whose UAS is broken.
    MaybeAsm1051,
}

fn asmedia_105x(device: &DeviceDescriptor, max_power: u8, speed: Speed, streams: u32) -> Option<Asm105x> {
    let is_asmedia = device.vendor == ASMEDIA && ASMEDIA_PRODUCTS.contains(&device.product);
    if !is_asmedia || max_power == 0 {
        return None;
    }
    Some(match speed < Speed::Super || streams == ASM1051_STREAMS {
        true => Asm105x::MaybeAsm1051,
        false => Asm105x::Asm1053,
    })
}

fn hiksemi(device: &DeviceDescriptor, names: &Names<'_>) -> Finding {
    let (vendor, product) = (device.vendor, device.product);
    let is_md202 = (vendor, product) == HIKSEMI_RTL9210
        && names.manufacturer == Some("HIKSEMI")
        && names.product == Some("MD202");
    let manufacturer = names.manufacturer.map(ToString::to_string);
    let name = names.product.map(ToString::to_string);
    let evidence = Evidence::Names { vendor, product, manufacturer, name };
    Finding { rule: Rule::NotHiksemiMd202, met: !is_md202, evidence }
}

const ASMEDIA: u16 = 0x174c;
const ASMEDIA_PRODUCTS: [u16; 2] = [0x5106, 0x55aa];
const ASM1051_STREAMS: u32 = 32;
const SEAGATE: u16 = 0x0bc2;
const HIKSEMI_RTL9210: (u16, u16) = (0x0bda, 0x9210);
